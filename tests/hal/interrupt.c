#include "haltest.h"

#include "hal/halp.h"

#include <poll.h>
#include <pthread.h>

#define SIGNAL_OFFSET 5

static volatile ULONG interrupts;
static volatile ULONG foreign_signals;
static volatile ULONG news; /* what the senders of a flood announce, and */
static volatile ULONG seen; /* how much of it the handler has seen */
static struct _KTHREAD target_thread;

/* A handler changes errno on purpose: the interrupted thread must not see it. */
static VOID interrupt(BOOLEAN in_library)
{
    (void)in_library;
    assert_ptr_equal(HalCurrentThread, &target_thread);
    errno = EBADMSG;
    __atomic_store_n(&seen, __atomic_load_n(&news, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    __atomic_fetch_add(&interrupts, 1, __ATOMIC_RELEASE);
}

static void foreign_handler(int number)
{
    (void)number;
    __atomic_fetch_add(&foreign_signals, 1, __ATOMIC_RELEASE);
}

static const HAL_CALLBACKS callbacks = {.Interrupt = interrupt};

struct target {
    void (*occupation)(struct target *target);
    BOOLEAN adopted;
    int input;
    volatile ULONG id;
    volatile ULONG stop;
    volatile ULONG word;
};

static void compute(struct target *target)
{
    errno = ENOTTY;
    while (__atomic_load_n(&target->stop, __ATOMIC_ACQUIRE) == 0)
        assert_int_equal(errno, ENOTTY);
}

static void read_from_pipe(struct target *target)
{
    char byte;

    assert_int_equal(read(target->input, &byte, 1), 1);
}

static void poll_pipe(struct target *target)
{
    struct pollfd input = {.fd = target->input, .events = POLLIN};

    while (poll(&input, 1, -1) < 0)
        assert_int_equal(errno, EINTR);
    read_from_pipe(target);
}

static void wait_on_word(struct target *target)
{
    static const HAL_DEADLINE none = {HalNoDeadline, 0};

    while (__atomic_load_n(&target->word, __ATOMIC_ACQUIRE) == 0)
        assert_true(HalDispatch.Wait(&target->word, 0, &none));
}

static void sleep_in_clock(struct target *target)
{
    while (__atomic_load_n(&target->word, __ATOMIC_ACQUIRE) == 0)
        HalClockWait(&target->word, 0, 0, MAXULONGLONG);
}

static void run_target(void *argument, unsigned index)
{
    struct target *target = argument;

    (void)index;
    if (target->adopted) {
        HalCurrentThread = &target_thread;
        HalWatchThreadExit(&target_thread);
    }
    __atomic_store_n(&target->id, HalCurrentThreadId(), __ATOMIC_RELEASE);
    target->occupation(target);
}

static void wait_for_count(volatile ULONG *counter, ULONG count)
{
    while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < count)
        sleep_milliseconds(1);
}

static test_threads *start_target(struct target *target, int ends[2])
{
    test_threads *threads;

    assert_int_equal(pipe(ends), 0);
    target->input = ends[0];
    threads = start_threads(1, run_target, target);
    wait_until_set(&target->id);
    sleep_milliseconds(2);
    return threads;
}

static void stop_target(struct target *target, int ends[2], test_threads *threads)
{
    set_flag(&target->stop);
    set_flag(&target->word);
    HalDispatch.Wake(&target->word, 1);
    HalClockWake(&target->word);
    assert_int_equal(write(ends[1], "x", 1), 1);
    join_threads(threads, 20);
    close(ends[0]);
    close(ends[1]);
}

static const struct {
    const char *name;
    void (*occupation)(struct target *target);
} occupations[] = {
    {"running", compute},
    {"waiting on a word", wait_on_word},
    {"in a system call that starts over", read_from_pipe},
    {"in a system call that ends", poll_pipe},
    {"sleeping in the clock", sleep_in_clock},
};
#define OCCUPATIONS (sizeof(occupations) / sizeof(occupations[0]))

/* The sanitizer defers a signal that arrives just before a system call until the call returns. */
#ifdef HALP_THREAD_SANITIZER
#define INTERRUPTIBLE_OCCUPATIONS 2
#else
#define INTERRUPTIBLE_OCCUPATIONS OCCUPATIONS
#endif

static void interrupt_thread_that(void (*occupation)(struct target *target))
{
    struct target target = {.occupation = occupation, .adopted = TRUE};
    int ends[2];
    test_threads *threads;
    ULONG count;

    interrupts = 0;
    threads = start_target(&target, ends);
    watchdog_start(20);
    for (count = 1; count <= 20; count++) {
        HalInterruptThread(target.id);
        wait_for_count(&interrupts, count);
    }
    watchdog_stop();
    assert_int_equal(interrupts, 20);
    stop_target(&target, ends, threads);
}

static void a_thread_is_interrupted_whatever_it_does(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < INTERRUPTIBLE_OCCUPATIONS; i++) {
        print_message("# %s\n", occupations[i].name);
        interrupt_thread_that(occupations[i].occupation);
    }
}

static void a_thread_that_is_not_adopted_is_left_alone(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < OCCUPATIONS; i++) {
        struct target target = {.occupation = occupations[i].occupation};
        int ends[2];
        test_threads *threads;

        interrupts = 0;
        threads = start_target(&target, ends);
        HalInterruptThread(target.id);
        sleep_milliseconds(2);
        stop_target(&target, ends, threads);
        assert_int_equal(interrupts, 0);
    }
}

static void a_thread_interrupts_itself_at_once(void **state)
{
    (void)state;
    interrupts = 0;
    HalCurrentThread = &target_thread;
    errno = ENOTTY;
    HalInterruptThread(HalCurrentThreadId());
    assert_int_equal(errno, ENOTTY);
    assert_int_equal(__atomic_load_n(&interrupts, __ATOMIC_ACQUIRE), 1);
    HalCurrentThread = NULL;
}

static void an_ended_thread_is_no_error(void **state)
{
    struct target target = {.occupation = wait_on_word, .adopted = TRUE};
    int ends[2];

    (void)state;
    stop_target(&target, ends, start_target(&target, ends));
    errno = ENOTTY;
    HalInterruptThread(target.id);
    HalInterruptThread(0);
    HalInterruptThread(MAXULONG);
    assert_int_equal(errno, ENOTTY);
}

/* The same signal by other means, from this process and from another one, is not ours. */
static void other_senders_reach_the_previous_handler(void **state)
{
    int number = SIGRTMIN + SIGNAL_OFFSET;
    union sigval value = {.sival_ptr = NULL};
    pid_t child, parent = getpid();

    (void)state;
    interrupts = 0;
    foreign_signals = 0;
    HalCurrentThread = &target_thread;
    watchdog_start(20);
    assert_int_equal(pthread_kill(pthread_self(), number), 0);
    wait_for_count(&foreign_signals, 1);
    assert_int_equal(sigqueue(parent, number, value), 0);
    wait_for_count(&foreign_signals, 2);
    child = fork();
    if (child == 0) {
        kill(parent, number);
        _exit(0);
    }
    wait_for_count(&foreign_signals, 3);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    watchdog_stop();
    assert_int_equal(interrupts, 0);
    HalCurrentThread = NULL;
}

static void interrupt_in_child(void *argument)
{
    a_thread_interrupts_itself_at_once(argument);
    interrupt_thread_that(compute);
    interrupt_thread_that(wait_on_word);
}

static void interrupts_work_in_a_forked_child(void **state)
{
    (void)state;
    run_in_child(interrupt_in_child, NULL);
}

struct flood {
    struct target target;
    ULONG sent_by_each;
};

static void send_interrupts(void *argument, unsigned index)
{
    struct flood *flood = argument;
    ULONG count;

    (void)index;
    for (count = 0; count < flood->sent_by_each; count++) {
        __atomic_fetch_add(&news, 1, __ATOMIC_ACQ_REL);
        HalInterruptThread(flood->target.id);
    }
}

/* Several interrupts may merge into one, but the last one is not lost. */
static void a_flood_of_interrupts_leaves_nothing_unseen(void **state)
{
    struct flood flood = {.target = {.occupation = compute, .adopted = TRUE},
                          .sent_by_each = (ULONG)test_rounds(1000)};
    int ends[2];
    test_threads *threads;

    (void)state;
    interrupts = 0;
    news = 0;
    seen = 0;
    threads = start_target(&flood.target, ends);
    run_threads(2, 60, send_interrupts, &flood);
    watchdog_start(60);
    wait_for_count(&seen, 2 * flood.sent_by_each);
    watchdog_stop();
    stop_target(&flood.target, ends, threads);
    assert_in_range(interrupts, 1, 2 * flood.sent_by_each);
}

struct dekker {
    volatile ULONG round[2]; /* each side's, to start together */
    volatile ULONG flag[2];
    ULONG saw[2];
    unsigned long rounds;
    ULONG both_missed;
};

static void meet(struct dekker *dekker, unsigned index)
{
    ULONG round = __atomic_add_fetch(&dekker->round[index], 1, __ATOMIC_ACQ_REL);
    ULONG tries = 0;

    while (__atomic_load_n(&dekker->round[!index], __ATOMIC_ACQUIRE) < round)
        HalGiveWay(tries++);
}

/* Side 0 has no fence of its own: side 1's barrier on all threads has to serve both. */
static void store_and_look(void *argument, unsigned index)
{
    struct dekker *dekker = argument;
    unsigned long round;

    for (round = 0; round < dekker->rounds; round++) {
        meet(dekker, index);
        __atomic_store_n(&dekker->flag[index], 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (index == 1)
            assert_true(HalBarrierAllThreads());
        dekker->saw[index] = __atomic_load_n(&dekker->flag[!index], __ATOMIC_RELAXED);
        meet(dekker, index);
        if (index == 1) {
            dekker->both_missed += dekker->saw[0] == 0 && dekker->saw[1] == 0;
            dekker->flag[0] = 0;
            dekker->flag[1] = 0;
        }
    }
}

static void a_barrier_reaches_all_threads(void **state)
{
    struct dekker dekker = {.rounds = test_rounds(5000)};

    (void)state;
    if (!HalBarrierAllThreads())
        return;
    run_threads(2, 60, store_and_look, &dekker);
    assert_int_equal(dekker.both_missed, 0);
}

static void use_barrier_in_child(void *argument)
{
    assert_int_equal(HalBarrierAllThreads(), *(BOOLEAN *)argument);
}

static void a_forked_child_has_the_same_barrier(void **state)
{
    BOOLEAN offered = HalBarrierAllThreads();

    (void)state;
    run_in_child(use_barrier_in_child, &offered);
}

int main(void)
{
    struct sigaction action = {.sa_handler = foreign_handler, .sa_flags = SA_RESTART};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_is_interrupted_whatever_it_does),
        cmocka_unit_test(a_thread_that_is_not_adopted_is_left_alone),
        cmocka_unit_test(a_thread_interrupts_itself_at_once),
        cmocka_unit_test(an_ended_thread_is_no_error),
        cmocka_unit_test(other_senders_reach_the_previous_handler),
        cmocka_unit_test(interrupts_work_in_a_forked_child),
        cmocka_unit_test(a_flood_of_interrupts_leaves_nothing_unseen),
        cmocka_unit_test(a_barrier_reaches_all_threads),
        cmocka_unit_test(a_forked_child_has_the_same_barrier),
    };

    sigaction(SIGRTMIN + SIGNAL_OFFSET, &action, NULL);
    setenv("INTERLOCK_SIGNAL", "SIGRTMIN+5", 1);
    HalInitialize(&callbacks);
    HalCompleteInitialization();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
