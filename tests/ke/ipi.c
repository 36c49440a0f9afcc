#include "machine.h"
#include "withsetting.h"

#include "ke/irql.h"

#define CALLERS 3

typedef struct broadcast {
    volatile ULONG ran[64], running;
} broadcast;

/* When the function runs anywhere, no processor has yet to arrive. */
static void check_rendezvous(ULONG_PTR argument)
{
    for (ULONG number = 0; number < KeNumberProcessors; number++) {
        PKPRCB prcb = KiProcessorBlock[number];

        require(prcb->WorkerContext != argument || __atomic_load_n(&prcb->TargetCount, __ATOMIC_RELAXED) == 0);
    }
}

static ULONG_PTR worker(ULONG_PTR argument)
{
    broadcast *b = (broadcast *)argument;
    ULONG number = KeGetCurrentProcessorNumber();

    require(KeGetCurrentIrql() == IPI_LEVEL);
    require(KiOwnerThread(__atomic_load_n(&KiProcessorBlock[number]->Owner, __ATOMIC_RELAXED)) == KeGetCurrentThread());
    check_rendezvous(argument);
    __atomic_add_fetch(&b->ran[number], 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&b->running, 1, __ATOMIC_RELAXED);
    return number + 100;
}

static void broadcast_once(void)
{
    broadcast b;
    KIRQL old = KeGetCurrentIrql();
    ULONG_PTR result;

    memset((void *)&b, 0, sizeof(b));
    result = KeIpiGenericCall(worker, (ULONG_PTR)&b);
    require(KeGetCurrentIrql() == old);
    require(b.running == KeNumberProcessors);
    for (ULONG number = 0; number < KeNumberProcessors; number++)
        require(b.ran[number] == 1);
    require(result >= 100 && result < 100 + KeNumberProcessors);
    if (old >= DISPATCH_LEVEL)
        require(result == 100 + KeGetCurrentProcessorNumber());
}

static void every_processor_once(void **state)
{
    (void)state;
    watchdog_start(60);
    for (KIRQL irql = PASSIVE_LEVEL; irql < IPI_LEVEL; irql++) {
        KIRQL old = KfRaiseIrql(irql);

        broadcast_once();
        KeLowerIrql(old);
    }
    watchdog_stop();
}

/* A barrier inside the function: it does run everywhere at the same time. */
static ULONG_PTR meet(ULONG_PTR argument)
{
    volatile ULONG *met = (volatile ULONG *)argument;

    __atomic_add_fetch(met, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(met, __ATOMIC_SEQ_CST) != KeNumberProcessors)
        sched_yield();
    return 0;
}

static void at_the_same_time(void **state)
{
    (void)state;
    watchdog_start(60);
    for (int round = 0; round < 20; round++) {
        volatile ULONG met = 0;

        KeIpiGenericCall(meet, (ULONG_PTR)&met);
        assert_int_equal(met, KeNumberProcessors);
    }
    watchdog_stop();
}

/* A thread that only counts at a level is interrupted below IPI_LEVEL, and not at or above it. */
static volatile int counting, stop_counting, may_stop;
static volatile pid_t calling;

static void count_at(void *level, unsigned index)
{
    KIRQL old;

    (void)index;
    KeSetSystemAffinityThread(1 << 1);
    old = KfRaiseIrql((KIRQL)(uintptr_t)level);
    __atomic_store_n(&counting, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&stop_counting, __ATOMIC_SEQ_CST)) {
        usleep(10);
        KiPollInterrupts(KiCurrentThread()); /* as a thread that waits for a lock does */
    }
    KeLowerIrql(old);
    KeRevertToUserAffinityThread();
}

static void call_and_stop(void *unused, unsigned index)
{
    (void)unused;
    (void)index;
    __atomic_store_n(&calling, gettid(), __ATOMIC_SEQ_CST);
    broadcast_once();
    __atomic_store_n(&may_stop, 1, __ATOMIC_SEQ_CST);
}

static void busy_targets(void **state)
{
    (void)state;
    for (uintptr_t level = DISPATCH_LEVEL; level <= HIGH_LEVEL; level++) {
        test_threads *target, *caller;

        counting = stop_counting = may_stop = 0;
        target = start_threads(1, count_at, (void *)level);
        while (!__atomic_load_n(&counting, __ATOMIC_SEQ_CST))
            usleep(10);
        caller = start_threads(1, call_and_stop, NULL);
        if (level < IPI_LEVEL) {
            watchdog_start(20);
            while (!__atomic_load_n(&may_stop, __ATOMIC_SEQ_CST))
                usleep(100);
            watchdog_stop();
        } else {
            usleep(10000);
            assert_false(__atomic_load_n(&may_stop, __ATOMIC_SEQ_CST));
        }
        __atomic_store_n(&stop_counting, 1, __ATOMIC_SEQ_CST);
        join_threads(caller, 20);
        join_threads(target, 20);
    }
}

/* How often the caller has given way: once for each look, as soon as it no longer spins. */
static unsigned long naps_of_caller(void)
{
    char path[64], line[128];
    unsigned long naps = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)__atomic_load_n(&calling, __ATOMIC_SEQ_CST));
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "voluntary_ctxt_switches: %lu", &naps);
    if (file != NULL)
        fclose(file);
    return naps;
}

/* A target takes longer than the time after which the caller repeats its requests. */
static void a_slow_target(void **state)
{
    test_threads *target, *caller;

    (void)state;
    counting = stop_counting = may_stop = 0;
    target = start_threads(1, count_at, (void *)(uintptr_t)HIGH_LEVEL);
    while (!__atomic_load_n(&counting, __ATOMIC_SEQ_CST))
        usleep(10);
    watchdog_start(60);
    calling = 0;
    caller = start_threads(1, call_and_stop, NULL);
    while (naps_of_caller() < KI_LOOKS_BEFORE_REPEAT + 64)
        usleep(1000);
    watchdog_stop();
    assert_false(__atomic_load_n(&may_stop, __ATOMIC_SEQ_CST));
    __atomic_store_n(&stop_counting, 1, __ATOMIC_SEQ_CST);
    join_threads(caller, 20);
    join_threads(target, 20);
}

static void call_and_churn(void *unused, unsigned index)
{
    (void)unused;
    for (unsigned long round = test_rounds(index < CALLERS ? 1000 : 20000); round != 0; round--) {
        if (index < CALLERS) {
            KIRQL old = KfRaiseIrql((KIRQL)(round % 4));

            broadcast_once();
            KeLowerIrql(old);
        } else {
            KIRQL old = KfRaiseIrql((KIRQL)(DISPATCH_LEVEL + round % (HIGH_LEVEL - DISPATCH_LEVEL + 1)));

            KeLowerIrql(old);
        }
    }
}

static void concurrent_callers(void **state)
{
    (void)state;
    run_threads(CALLERS + 2, 120, call_and_churn, NULL);
    for (ULONG number = 0; number < KeNumberProcessors; number++)
        assert_int_equal(KiOwnerThread(__atomic_load_n(&KiProcessorBlock[number]->Owner, __ATOMIC_RELAXED)) == NULL, 1);
}

/* A host that refuses threads: the caller acts for the processors without an owner. */
static int without_threads(void)
{
    KeGetCurrentThread();
    take_threads_away();
    for (KIRQL irql = PASSIVE_LEVEL; irql < IPI_LEVEL; irql++) {
        KIRQL old = KfRaiseIrql(irql);

        broadcast_once();
        broadcast_once();
        KeLowerIrql(old);
        require_free_processors();
    }
    return 0;
}

static void call_too_high(void *unused)
{
    (void)unused;
    KfRaiseIrql(IPI_LEVEL);
    KeIpiGenericCall(worker, 0);
}

static void misuse(void **state)
{
    (void)state;
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, call_too_high, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_processor_once),
        cmocka_unit_test(at_the_same_time),
        cmocka_unit_test(busy_targets),
        cmocka_unit_test(a_slow_target),
        cmocka_unit_test(concurrent_callers),
        cmocka_unit_test(no_host_threads),
        cmocka_unit_test(misuse),
    };

    default_setting("INTERLOCK_PROCESSORS", "4");
    if (argc == 2 && strcmp(argv[1], "threadless") == 0)
        return without_threads();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
