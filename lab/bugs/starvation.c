/* Threads that make no progress even if the schedule is fair: others do, and these never. */
#include <interlock/lab.h>

static uint32_t lock, stop, flag;

static int is_stopped(void)
{
    return __atomic_load_n(&stop, __ATOMIC_RELAXED) != 0;
}

/* The first thread to try gets the lock: the previous owner beats the woken waiter every time. */
__attribute__((noinline)) static void acquire_barging(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0)
        LabWaitOnWord(&lock, 1);
}

__attribute__((noinline)) static void release_barging(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    LabWakeWord(&lock, 1);
}

static void barge(void)
{
    while (!is_stopped()) {
        acquire_barging();
        release_barging();
    }
}

static void acquire_once(void)
{
    acquire_barging();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    release_barging();
}
LAB_SCENARIO(starvation_barging, .Threads = {barge, acquire_once}, .Model = "sc", .Expect = "starvation");

/* Peterson's lock: a thread that returns lets the other one go first. */
static uint32_t wants[2], turn;

static void acquire_in_turn(unsigned self)
{
    __atomic_store_n(&wants[self], 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&turn, 1 - self, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&wants[1 - self], __ATOMIC_SEQ_CST) != 0 && __atomic_load_n(&turn, __ATOMIC_SEQ_CST) != self)
        ;
}

static void release_in_turn(unsigned self)
{
    __atomic_store_n(&wants[self], 0, __ATOMIC_SEQ_CST);
}

static void take_turns(void)
{
    while (!is_stopped()) {
        acquire_in_turn(0);
        release_in_turn(0);
    }
}

static void acquire_turn_once(void)
{
    acquire_in_turn(1);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    release_in_turn(1);
}
LAB_SCENARIO(starvation_in_turn, .Threads = {take_turns, acquire_turn_once}, .MaximumSchedules = 3000);

/* Waits for a condition that holds only briefly. */
__attribute__((noinline)) static void wait_for_flag(void)
{
    while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 0)
        ;
}

static void stop_after_flag(void)
{
    wait_for_flag();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static void blink(void)
{
    while (!is_stopped()) {
        __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
        __atomic_store_n(&flag, 0, __ATOMIC_RELEASE);
    }
}
LAB_SCENARIO(starvation_short_moment, .Threads = {blink, stop_after_flag}, .Model = "sc", .Expect = "starvation");

/* It holds until it was seen. */
static void signal_until_seen(void)
{
    while (!is_stopped()) {
        __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) != 0)
            ;
    }
}

static void see_and_stop(void)
{
    wait_for_flag();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&flag, 0, __ATOMIC_RELEASE);
}
LAB_SCENARIO(starvation_seen, .Threads = {signal_until_seen, see_and_stop});

/* Two threads that yield to each other forever: neither makes progress. */
static void enter_politely(unsigned self)
{
    for (;;) {
        __atomic_store_n(&wants[self], 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&wants[1 - self], __ATOMIC_SEQ_CST) == 0)
            break;
        __atomic_store_n(&wants[self], 0, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&wants[self], 0, __ATOMIC_SEQ_CST);
}

static void polite_first(void)
{
    enter_politely(0);
}

static void polite_second(void)
{
    enter_politely(1);
}
LAB_SCENARIO(livelock_polite, .Threads = {polite_first, polite_second}, .Model = "sc", .Expect = "livelock");

/* Only one of them yields, for as long as necessary. */
static void enter_stubbornly(void)
{
    __atomic_store_n(&wants[0], 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&wants[1], __ATOMIC_SEQ_CST) != 0)
        ;
    __atomic_store_n(&wants[0], 0, __ATOMIC_SEQ_CST);
}

static void give_way(void)
{
    for (;;) {
        __atomic_store_n(&wants[1], 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&wants[0], __ATOMIC_SEQ_CST) == 0)
            break;
        __atomic_store_n(&wants[1], 0, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&wants[0], __ATOMIC_SEQ_CST) != 0)
            ;
    }
    __atomic_store_n(&wants[1], 0, __ATOMIC_SEQ_CST);
}
LAB_SCENARIO(livelock_stubborn, .Threads = {enter_stubbornly, give_way});

/* A program that need not end: all threads make progress. */
static void alternate(uint32_t self)
{
    for (;;) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != self)
            ;
        LabProgress();
        __atomic_store_n(&turn, 1 - self, __ATOMIC_RELEASE);
    }
}

static void first_for_ever(void)
{
    alternate(0);
}

static void second_for_ever(void)
{
    alternate(1);
}
LAB_SCENARIO(starvation_for_ever, .Threads = {first_for_ever, second_for_ever}, .MaximumSchedules = 50);

/* The same under the weak model: every sequentially consistent schedule is one of its schedules. */
LAB_SCENARIO(livelock_polite_c11, .Threads = {polite_first, polite_second}, .Model = "c11", .Expect = "livelock");
LAB_SCENARIO(starvation_barging_c11, .Threads = {barge, acquire_once}, .Model = "c11", .Expect = "starvation");

/* Overlapping readers: the writer needs a moment without any. */
static uint32_t readers;

static void read_for_ever(void)
{
    for (;;) {
        __atomic_fetch_add(&readers, 1, __ATOMIC_ACQUIRE);
        LabProgress();
        __atomic_fetch_sub(&readers, 1, __ATOMIC_RELEASE);
    }
}

static void write_once(void)
{
    uint32_t none = 0;
    while (!__atomic_compare_exchange_n(&readers, &none, 0x100, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        none = 0;
    LabProgress();
    __atomic_fetch_sub(&readers, 0x100, __ATOMIC_RELEASE);
}
LAB_SCENARIO(starvation_of_writer, .Threads = {read_for_ever, read_for_ever, write_once}, .Model = "sc",
             .Expect = "starvation");
LAB_SCENARIO(starvation_of_writer_c11, .Threads = {read_for_ever, read_for_ever, write_once}, .Model = "c11",
             .Expect = "starvation");
