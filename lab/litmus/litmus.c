/*
 * litmus.c: the explorer's own test. Small programs whose outcomes are known: which of them each memory model allows,
 * and which it forbids.
 */
#include <interlock/lab.h>

#include <stdatomic.h>

static atomic_int x, y, z;
static int data;
static int r[4];

#define LOAD(a, o)     atomic_load_explicit(&(a), memory_order_##o)
#define STORE(a, v, o) atomic_store_explicit(&(a), v, memory_order_##o)

/* Store buffering. */
#define STORE_BUFFERING(name, store_order, load_order, ...)                                                            \
    static void name##_1(void)                                                                                         \
    {                                                                                                                  \
        STORE(x, 1, store_order);                                                                                      \
        r[0] = LOAD(y, load_order);                                                                                    \
    }                                                                                                                  \
    static void name##_2(void)                                                                                         \
    {                                                                                                                  \
        STORE(y, 1, store_order);                                                                                      \
        r[1] = LOAD(x, load_order);                                                                                    \
    }                                                                                                                  \
    LAB_SCENARIO(name, .Threads = {name##_1, name##_2}, .Finish = sb_finish, __VA_ARGS__)

static void sb_finish(void)
{
    LabAssert(r[0] == 1 || r[1] == 1);
}

STORE_BUFFERING(sb_interleaved, relaxed, relaxed, .Model = "sc");
STORE_BUFFERING(sb_relaxed, relaxed, relaxed, .Model = "c11", .Expect = "assertion");
STORE_BUFFERING(sb_release_acquire, release, acquire, .Model = "c11", .Expect = "assertion");
STORE_BUFFERING(sb_tso, release, acquire, .Model = "tso", .Expect = "assertion");
STORE_BUFFERING(sb_tso_seq_cst, seq_cst, seq_cst, .Model = "tso");
STORE_BUFFERING(sb_seq_cst, seq_cst, seq_cst, .Model = "c11");

static void sb_fenced_1(void)
{
    STORE(x, 1, relaxed);
    atomic_exchange(&z, 1);
    r[0] = LOAD(y, relaxed);
}

static void sb_fenced_2(void)
{
    STORE(y, 1, relaxed);
    atomic_exchange(&z, 2);
    r[1] = LOAD(x, relaxed);
}
LAB_SCENARIO(sb_exchange_between, .Threads = {sb_fenced_1, sb_fenced_2}, .Finish = sb_finish, .Model = "c11");

/* Message passing. */
#define MESSAGE_PASSING(name, store_order, load_order, ...)                                                            \
    static void name##_1(void)                                                                                         \
    {                                                                                                                  \
        STORE(x, 1, relaxed);                                                                                          \
        STORE(y, 1, store_order);                                                                                      \
    }                                                                                                                  \
    static void name##_2(void)                                                                                         \
    {                                                                                                                  \
        if (LOAD(y, load_order) == 1)                                                                                  \
            LabAssert(LOAD(x, relaxed) == 1);                                                                          \
    }                                                                                                                  \
    LAB_SCENARIO(name, .Threads = {name##_1, name##_2}, __VA_ARGS__)

MESSAGE_PASSING(mp_interleaved, relaxed, relaxed, .Model = "sc");
MESSAGE_PASSING(mp_tso, relaxed, relaxed, .Model = "tso");
MESSAGE_PASSING(mp_relaxed, relaxed, relaxed, .Model = "c11", .Expect = "assertion");
MESSAGE_PASSING(mp_release_only, release, relaxed, .Model = "c11", .Expect = "assertion");
MESSAGE_PASSING(mp_acquire_only, relaxed, acquire, .Model = "c11", .Expect = "assertion");
MESSAGE_PASSING(mp_release_acquire, release, acquire, .Model = "c11");

static void plain_writer(void)
{
    data = 1;
    STORE(y, 1, release);
}

static void plain_reader_acquire(void)
{
    if (LOAD(y, acquire) == 1)
        LabAssert(data == 1);
}

static void plain_reader_relaxed(void)
{
    if (LOAD(y, relaxed) == 1)
        LabAssert(data == 1);
}
LAB_SCENARIO(mp_plain, .Threads = {plain_writer, plain_reader_acquire}, .Model = "c11");
LAB_SCENARIO(mp_plain_race, .Threads = {plain_writer, plain_reader_relaxed}, .Model = "sc", .Expect = "race");

/* A relaxed read-modify-write continues a release sequence; another thread's store does not. */
static void sequence_modifier(void)
{
    atomic_fetch_add_explicit(&y, 2, memory_order_relaxed);
}

static void sequence_reader(void)
{
    if (LOAD(y, acquire) == 3)
        LabAssert(data == 1);
}
LAB_SCENARIO(release_sequence, .Threads = {plain_writer, sequence_modifier, sequence_reader}, .Model = "c11");

static void sequence_breaker(void)
{
    if (LOAD(y, relaxed) == 1)
        STORE(y, 3, relaxed);
}
LAB_SCENARIO(release_sequence_broken, .Threads = {plain_writer, sequence_breaker, sequence_reader}, .Model = "c11",
             .Expect = "race");

/*
 * A lock that shares eight bytes with a plain member, which are cleared as one. A plain store to the member does not
 * affect the lock, which still carries its last release.
 */
static union {
    atomic_ullong both;
    struct {
        atomic_int lock;
        int member;
    };
} shared;

static void shared_setup(void)
{
    STORE(shared.both, 0, relaxed);
    STORE(shared.lock, 1, relaxed);
}

static void shared_owner(void)
{
    data = 1;
    STORE(shared.lock, 0, release);
}

static void shared_taker(void)
{
    int free = 0;

    shared.member = 1;
    if (atomic_compare_exchange_strong_explicit(&shared.lock, &free, 1, memory_order_acquire, memory_order_relaxed))
        LabAssert(data == 1);
}
LAB_SCENARIO(shared_cell, .Setup = shared_setup, .Threads = {shared_owner, shared_taker});
LAB_SCENARIO(shared_cell_c11, .Setup = shared_setup, .Threads = {shared_owner, shared_taker}, .Model = "c11");

/* x86 forwards a thread's own store before others see it. */
static void forward_1(void)
{
    STORE(x, 1, relaxed);
    r[0] = LOAD(x, relaxed);
    r[1] = LOAD(y, relaxed);
}

static void forward_2(void)
{
    STORE(y, 1, relaxed);
    r[2] = LOAD(y, relaxed);
    r[3] = LOAD(x, relaxed);
}

static void forward_finish(void)
{
    LabAssert(r[0] == 1 && r[2] == 1);
    LabAssert(r[1] == 1 || r[3] == 1);
}
LAB_SCENARIO(forwarding_tso, .Threads = {forward_1, forward_2}, .Finish = forward_finish, .Model = "tso",
             .Expect = "assertion");

/* Write to read causality. */
#define CAUSALITY(name, store_order, load_order, ...)                                                                  \
    static void name##_1(void)                                                                                         \
    {                                                                                                                  \
        STORE(x, 1, relaxed);                                                                                          \
    }                                                                                                                  \
    static void name##_2(void)                                                                                         \
    {                                                                                                                  \
        if (LOAD(x, relaxed) == 1)                                                                                     \
            STORE(y, 1, store_order);                                                                                  \
    }                                                                                                                  \
    static void name##_3(void)                                                                                         \
    {                                                                                                                  \
        if (LOAD(y, load_order) == 1)                                                                                  \
            LabAssert(LOAD(x, relaxed) == 1);                                                                          \
    }                                                                                                                  \
    LAB_SCENARIO(name, .Threads = {name##_1, name##_2, name##_3}, __VA_ARGS__)

CAUSALITY(wrc_relaxed, relaxed, relaxed, .Model = "c11", .Expect = "assertion");
CAUSALITY(wrc_tso, relaxed, relaxed, .Model = "tso");
CAUSALITY(wrc_release_acquire, release, acquire, .Model = "c11");

/* Independent reads of independent writes. */
#define INDEPENDENT_READS(name, store_order, load_order, ...)                                                          \
    static void name##_1(void)                                                                                         \
    {                                                                                                                  \
        STORE(x, 1, store_order);                                                                                      \
    }                                                                                                                  \
    static void name##_2(void)                                                                                         \
    {                                                                                                                  \
        STORE(y, 1, store_order);                                                                                      \
    }                                                                                                                  \
    static void name##_3(void)                                                                                         \
    {                                                                                                                  \
        r[0] = LOAD(x, load_order);                                                                                    \
        r[1] = LOAD(y, load_order);                                                                                    \
    }                                                                                                                  \
    static void name##_4(void)                                                                                         \
    {                                                                                                                  \
        r[2] = LOAD(y, load_order);                                                                                    \
        r[3] = LOAD(x, load_order);                                                                                    \
    }                                                                                                                  \
    LAB_SCENARIO(name, .Threads = {name##_1, name##_2, name##_3, name##_4}, .Finish = iriw_finish, __VA_ARGS__)

static void iriw_finish(void)
{
    LabAssert(!(r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0));
}

INDEPENDENT_READS(iriw_release_acquire, release, acquire, .Model = "c11", .Expect = "assertion");
INDEPENDENT_READS(iriw_tso, release, acquire, .Model = "tso");
INDEPENDENT_READS(iriw_seq_cst, seq_cst, seq_cst, .Model = "c11");

/* Coherence: two reads of one variable never go back. */
static void coherence_writer(void)
{
    STORE(x, 1, relaxed);
    STORE(x, 2, relaxed);
}

static void coherence_reader(void)
{
    int first = LOAD(x, relaxed);
    int second = LOAD(x, relaxed);
    LabAssert(second >= first);
}
LAB_SCENARIO(coherence, .Threads = {coherence_writer, coherence_reader, coherence_reader}, .Model = "c11");

/* Fences. */
static void fence_writer(void)
{
    data = 1;
    atomic_thread_fence(memory_order_release);
    STORE(y, 1, relaxed);
}

static void fence_reader(void)
{
    if (LOAD(y, relaxed) == 1) {
        atomic_thread_fence(memory_order_acquire);
        LabAssert(data == 1);
    }
}
LAB_SCENARIO(mp_fences, .Threads = {fence_writer, fence_reader}, .Model = "c11");

/* A spin loop ends when its variable changes, is a livelock if that never happens, and may read old values. */
static void spinner(void)
{
    while (LOAD(y, acquire) == 0)
        ;
    LabAssert(data == 1);
}
LAB_SCENARIO(spin, .Threads = {plain_writer, spinner}, .Model = "c11");
LAB_SCENARIO(spin_forever, .Threads = {spinner}, .Expect = "livelock");

static void ping(void)
{
    for (int i = 0; i < 3; i++) {
        while (LOAD(x, acquire) != 2 * i)
            ;
        STORE(x, 2 * i + 1, release);
    }
}

static void pong(void)
{
    for (int i = 0; i < 3; i++) {
        while (LOAD(x, acquire) != 2 * i + 1)
            ;
        STORE(x, 2 * i + 2, release);
    }
}
LAB_SCENARIO(ping_pong, .Threads = {ping, pong}, .Model = "c11");

/* Blocking: the wait that checks first, and the one that does not. */
static uint32_t word;

static void waker(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    LabWakeWord(&word, 1);
}

static void waiter(void)
{
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        LabWaitOnWord(&word, 0);
}
LAB_SCENARIO(wait_and_wake, .Threads = {waker, waiter}, .SpuriousWakes = 2, .Model = "c11");

static void forgetful_waker(void)
{
    LabWakeWord(&word, 1);
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
}
LAB_SCENARIO(wake_before_store, .Threads = {forgetful_waker, waiter}, .Expect = "lost wakeup");

static void sleeper(void)
{
    LabWaitOnWord(&word, 0);
}
LAB_SCENARIO(nobody_wakes, .Threads = {sleeper}, .Expect = "deadlock");

/* All choices are explored. */
static void chooser(void)
{
    unsigned a = LabChoose(3), b = LabChoose(4);
    LabAssert(!(a == 2 && b == 3));
}
LAB_SCENARIO(choices, .Threads = {chooser}, .Expect = "assertion");

/* Memory. */
static int *shared_block;

static void allocate(void)
{
    shared_block = LabAllocate(16);
}

static void use_block(void)
{
    __atomic_store_n(shared_block, 1, __ATOMIC_RELAXED);
}

static void free_block(void)
{
    LabFree(shared_block);
    *(volatile int *)shared_block = 2;
}

static void free_only(void)
{
    LabFree(shared_block);
}
LAB_SCENARIO(use_after_free, .Setup = allocate, .Threads = {free_block}, .Expect = "freed memory");
LAB_SCENARIO(use_against_free, .Setup = allocate, .Threads = {use_block, free_only}, .Expect = "race");

static void leaker(void)
{
    (void)LabAllocate(24);
}
LAB_SCENARIO(leak, .Threads = {leaker}, .Flags = LAB_CHECK_LEAKS, .Expect = "leak");

static int *_Atomic frame;

static __attribute__((noinline)) void lend_frame(void)
{
    int local = 0;
    atomic_store(&frame, &local);
    STORE(x, 1, seq_cst);
}

static void lender(void)
{
    lend_frame();
    STORE(y, 1, seq_cst);
}

static void borrower(void)
{
    int *borrowed = atomic_load(&frame);
    if (borrowed != NULL)
        __atomic_store_n(borrowed, 1, __ATOMIC_RELAXED);
}
LAB_SCENARIO(dead_frame, .Threads = {lender, borrower}, .Expect = "dead frame");
