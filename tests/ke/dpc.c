#include "machine.h"
#include "withsetting.h"

#include <interlock/ex.h>
#include <interlock/exception.h>

#include "ke/irql.h"

#define THREADS 4

typedef struct record {
    KDPC dpc;
    volatile ULONG runs;
    KIRQL irql;
    ULONG processor;
    PVOID argument1, argument2, data;
    UCHAR depth;
    BOOLEAN active;
    int requeue;
} record;

static void note(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    record *r = context;

    require(dpc == &r->dpc);
    r->irql = KeGetCurrentIrql();
    r->processor = KeGetCurrentProcessorNumber();
    r->argument1 = argument1;
    r->argument2 = argument2;
    r->data = dpc->DpcData;
    r->depth = KeGetCurrentThread()->DpcDepth;
    r->active = KeGetCurrentThread()->Prcb != NULL && KeGetCurrentThread()->Prcb->DpcRoutineActive;
    if (r->requeue-- > 0)
        require(KeInsertQueueDpc(dpc, argument1, argument2));
    __atomic_add_fetch(&r->runs, 1, __ATOMIC_RELEASE);
}

static void await_runs(record *r, ULONG runs)
{
    watchdog_start(20);
    while (__atomic_load_n(&r->runs, __ATOMIC_ACQUIRE) != runs)
        usleep(100);
    watchdog_stop();
}

static void below_dispatch_level_it_has_run(void **state)
{
    (void)state;
    for (KIRQL irql = PASSIVE_LEVEL; irql < DISPATCH_LEVEL; irql++) {
        record r = {.requeue = 2};
        KIRQL old = KfRaiseIrql(irql);

        KeInitializeDpc(&r.dpc, note, &r);
        assert_int_equal(r.dpc.Type, DpcObject);
        assert_int_equal(r.dpc.Importance, MediumImportance);
        assert_true(KeInsertQueueDpc(&r.dpc, &old, &r));
        assert_int_equal(r.runs, 3);
        assert_int_equal(r.irql, DISPATCH_LEVEL);
        assert_ptr_equal(r.argument1, &old);
        assert_ptr_equal(r.argument2, &r);
        assert_null(r.data);
        assert_int_equal(r.depth, 1);
        assert_true(r.active);
        assert_int_equal(KeGetCurrentIrql(), irql);
        KeLowerIrql(old);
    }
}

static void at_dispatch_level_it_waits(void **state)
{
    (void)state;
    for (KIRQL irql = DISPATCH_LEVEL; irql <= HIGH_LEVEL; irql++) {
        record r = {.runs = 0};
        KIRQL old = KfRaiseIrql(irql);
        ULONG processor = KeGetCurrentProcessorNumber();

        KeInitializeDpc(&r.dpc, note, &r);
        assert_true(KeInsertQueueDpc(&r.dpc, (PVOID)1, (PVOID)2));
        assert_ptr_equal(r.dpc.DpcData, &KiProcessorBlock[processor]->DpcData[KI_DPC_NORMAL]);
        assert_false(KeInsertQueueDpc(&r.dpc, (PVOID)3, (PVOID)4));
        if (irql > DISPATCH_LEVEL)
            KeLowerIrql(DISPATCH_LEVEL);
        assert_int_equal(r.runs, 0);
        KeLowerIrql(old);
        assert_int_equal(r.runs, 1);
        assert_int_equal(r.processor, processor);
        assert_ptr_equal(r.argument1, (PVOID)1);
        assert_ptr_equal(r.argument2, (PVOID)2);
    }
}

static void removal(void **state)
{
    record r = {.runs = 0};
    KIRQL old;

    (void)state;
    KeInitializeDpc(&r.dpc, note, &r);
    assert_false(KeRemoveQueueDpc(&r.dpc));
    old = KeRaiseIrqlToDpcLevel();
    assert_true(KeInsertQueueDpc(&r.dpc, NULL, NULL));
    assert_true(KeRemoveQueueDpc(&r.dpc));
    assert_null(r.dpc.DpcData);
    assert_false(KeRemoveQueueDpc(&r.dpc));
    KeLowerIrql(old);
    assert_int_equal(r.runs, 0);
}

static char order[8];
static int ordered;

static void append(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)argument1;
    (void)argument2;
    order[ordered++] = *(char *)context;
}

static void importance(void **state)
{
    static const struct {
        char name;
        KDPC_IMPORTANCE importance;
    } dpcs[] = {{'l', LowImportance}, {'m', MediumImportance}, {'h', HighImportance}, {'M', MediumHighImportance},
                {'H', HighImportance}};
    KDPC dpc[5];
    KIRQL old = KeRaiseIrqlToDpcLevel();

    (void)state;
    ordered = 0;
    for (int i = 0; i < 5; i++) {
        KeInitializeDpc(&dpc[i], append, (PVOID)(uintptr_t)&dpcs[i].name);
        KeSetImportanceDpc(&dpc[i], dpcs[i].importance);
        KeInsertQueueDpc(&dpc[i], NULL, NULL);
    }
    KeLowerIrql(old);
    assert_memory_equal(order, "HhlmM", 5);
}

static void target_processors(void **state)
{
    (void)state;
    for (ULONG target = 0; target < KeNumberProcessors; target++) {
        record r = {.runs = 0};
        PROCESSOR_NUMBER number;

        KeInitializeDpc(&r.dpc, note, &r);
        if (target % 2 == 0) {
            KeSetTargetProcessorDpc(&r.dpc, (CCHAR)target);
        } else {
            KeGetProcessorNumberFromIndex(target, &number);
            assert_int_equal(KeSetTargetProcessorDpcEx(&r.dpc, &number), STATUS_SUCCESS);
        }
        assert_true(KeInsertQueueDpc(&r.dpc, NULL, NULL));
        await_runs(&r, 1);
        assert_int_equal(r.processor, target);
        assert_int_equal(r.irql, DISPATCH_LEVEL);
    }
}

static void invalid_targets(void **state)
{
    PROCESSOR_NUMBER number = {.Number = (UCHAR)KeNumberProcessors};
    KDPC dpc;

    (void)state;
    KeInitializeDpc(&dpc, note, NULL);
    assert_int_equal(KeSetTargetProcessorDpcEx(&dpc, &number), STATUS_INVALID_PARAMETER);
    number = (PROCESSOR_NUMBER){.Group = 1};
    assert_int_equal(KeSetTargetProcessorDpcEx(&dpc, &number), STATUS_INVALID_PARAMETER);
}

/* The owner of a processor runs what others queue there when it lowers its level, and not before. */
static volatile int owner_state;

static void own_processor_1(void *unused, unsigned index)
{
    KIRQL old;

    (void)unused;
    (void)index;
    KeSetSystemAffinityThread(1 << 1);
    old = KeRaiseIrqlToDpcLevel();
    __atomic_store_n(&owner_state, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&owner_state, __ATOMIC_SEQ_CST) != 2)
        usleep(100);
    KeLowerIrql(old);
    KeRevertToUserAffinityThread();
}

static void busy_target(void **state)
{
    test_threads *threads = start_threads(1, own_processor_1, NULL);
    record r = {.runs = 0};

    (void)state;
    while (__atomic_load_n(&owner_state, __ATOMIC_SEQ_CST) != 1)
        usleep(100);
    KeInitializeDpc(&r.dpc, note, &r);
    KeSetTargetProcessorDpc(&r.dpc, 1);
    assert_true(KeInsertQueueDpc(&r.dpc, NULL, NULL));
    usleep(20000);
    assert_int_equal(__atomic_load_n(&r.runs, __ATOMIC_ACQUIRE), 0);
    __atomic_store_n(&owner_state, 2, __ATOMIC_SEQ_CST);
    await_runs(&r, 1);
    join_threads(threads, 20);
    assert_int_equal(r.processor, 1);
}

/* A DPC of a processor never runs concurrently with DISPATCH_LEVEL code of that processor; none is lost, none runs
   twice. */
static unsigned inside[64];

static void visit(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    ULONG number = KeGetCurrentProcessorNumber();

    (void)dpc;
    (void)argument1;
    (void)argument2;
    require(inside[number]++ == 0);
    /* atomic: queued again for another processor, the DPC may start there while it ends here */
    __atomic_add_fetch((unsigned long *)context, 1, __ATOMIC_RELAXED);
    require(--inside[number] == 0);
}

typedef struct visitor {
    KDPC dpc;
    unsigned long queued, ran;
} visitor;

static void queue_and_visit(void *visitors, unsigned index)
{
    visitor *v = (visitor *)visitors + index;
    test_random random;

    random_seed(&random, index + 1);
    KeInitializeDpc(&v->dpc, visit, &v->ran);
    for (unsigned long round = test_rounds(20000); round != 0; round--) {
        KIRQL old;
        ULONG number;

        KeSetTargetProcessorDpc(&v->dpc, (CCHAR)random_below(&random, KeNumberProcessors));
        v->queued += KeInsertQueueDpc(&v->dpc, NULL, NULL);
        old = KeRaiseIrqlToDpcLevel();
        number = KeGetCurrentProcessorNumber();
        require(inside[number]++ == 0);
        if (random_below(&random, 256) == 0)
            sched_yield();
        require(--inside[number] == 0);
        KeLowerIrql(old);
        if (random_below(&random, 16) == 0)
            v->queued -= KeRemoveQueueDpc(&v->dpc);
    }
}

static void exclusion(void **state)
{
    visitor visitors[THREADS] = {{.queued = 0}};

    (void)state;
    run_threads(THREADS, 60, queue_and_visit, visitors);
    KeFlushQueuedDpcs();
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(visitors[i].ran, visitors[i].queued);
        assert_true(visitors[i].ran > 0);
    }
}

static void flush(void **state)
{
    (void)state;
    for (unsigned long round = test_rounds(300); round != 0; round--) {
        record r[8];

        memset(r, 0, sizeof(r));
        for (int i = 0; i < 8; i++) {
            if (i % 2 == 0)
                KeInitializeDpc(&r[i].dpc, note, &r[i]);
            else
                KeInitializeThreadedDpc(&r[i].dpc, note, &r[i]);
            KeSetTargetProcessorDpc(&r[i].dpc, (CCHAR)((ULONG)i / 2 % KeNumberProcessors));
            assert_true(KeInsertQueueDpc(&r[i].dpc, NULL, NULL));
        }
        watchdog_start(20);
        KeFlushQueuedDpcs();
        watchdog_stop();
        for (int i = 0; i < 8; i++)
            assert_int_equal(r[i].runs, 1);
    }
}

static void threaded(void **state)
{
    record r = {.runs = 0};

    (void)state;
    KeInitializeThreadedDpc(&r.dpc, note, &r);
    assert_int_equal(r.dpc.Type, ThreadedDpcObject);
    KeSetTargetProcessorDpc(&r.dpc, 1);
    assert_true(KeInsertQueueDpc(&r.dpc, NULL, NULL));
    await_runs(&r, 1);
    assert_int_equal(r.irql, PASSIVE_LEVEL);
    assert_int_equal(r.processor, 1);
    assert_int_equal(r.depth, 0);
    assert_null(r.data);
}

typedef struct generic_call {
    volatile ULONG ran[64], arrived, elected;
} generic_call;

static void everywhere(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    generic_call *call = context;

    (void)dpc;
    require(KeGetCurrentIrql() == DISPATCH_LEVEL);
    __atomic_add_fetch(&call->ran[KeGetCurrentProcessorNumber()], 1, __ATOMIC_RELAXED);
    for (ULONG round = 1; round <= 3; round++) {
        __atomic_add_fetch(&call->arrived, 1, __ATOMIC_RELAXED);
        if (KeSignalCallDpcSynchronize(argument2))
            __atomic_add_fetch(&call->elected, 1, __ATOMIC_RELAXED);
        require(__atomic_load_n(&call->arrived, __ATOMIC_RELAXED) >= round * KeNumberProcessors);
        KeSignalCallDpcSynchronize(argument2);
    }
    KeSignalCallDpcDone(argument1);
}

static void call_everywhere(void *unused, unsigned index)
{
    (void)unused;
    (void)index;
    for (unsigned long round = test_rounds(100); round != 0; round--) {
        generic_call call;

        memset((void *)&call, 0, sizeof(call));
        KeGenericCallDpc(everywhere, &call);
        for (ULONG number = 0; number < KeNumberProcessors; number++)
            require(call.ran[number] == 1);
        require(call.arrived == 3 * KeNumberProcessors && call.elected == 3);
    }
}

static void generic_calls(void **state)
{
    (void)state;
    run_threads(1, 60, call_everywhere, NULL);
    run_threads(3, 120, call_everywhere, NULL);
}

/* Misuse. */

static void wait_inside(PKDPC dpc, PVOID event, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)argument1;
    (void)argument2;
    KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL);
}

static void raise_status_inside(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
    ExRaiseStatus(STATUS_UNSUCCESSFUL);
}

static void stay_raised(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
    KfRaiseIrql(SYNCH_LEVEL);
}

static void lower_inside(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
    KfLowerIrql(APC_LEVEL);
}

static void queue_in_try(void *routine)
{
    KEVENT event;
    KDPC dpc;

    KeInitializeEvent(&event, NotificationEvent, FALSE);
    KeInitializeDpc(&dpc, *(PKDEFERRED_ROUTINE *)routine, &event);
    __try {
        KeInsertQueueDpc(&dpc, NULL, NULL);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        fprintf(stderr, "the thread caught what its DPC raised\n");
    }
}

static void bad_target(void *unused)
{
    KDPC dpc;

    (void)unused;
    KeInitializeDpc(&dpc, note, NULL);
    KeSetTargetProcessorDpc(&dpc, (CCHAR)KeNumberProcessors);
}

static void flush_raised(void *unused)
{
    (void)unused;
    KfRaiseIrql(APC_LEVEL);
    KeFlushQueuedDpcs();
}

static void call_raised(void *unused)
{
    (void)unused;
    KfRaiseIrql(DISPATCH_LEVEL);
    KeGenericCallDpc(everywhere, NULL);
}

static void misuse(void **state)
{
    static const struct {
        PKDEFERRED_ROUTINE routine;
        ULONG code;
    } routines[] = {
        {wait_inside, ATTEMPTED_SWITCH_FROM_DPC},
        {raise_status_inside, KMODE_EXCEPTION_NOT_HANDLED},
        {stay_raised, IRQL_NOT_LESS_OR_EQUAL},
        {lower_inside, IRQL_NOT_GREATER_OR_EQUAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(routines) / sizeof(routines[0]); i++)
        expect_bugcheck(routines[i].code, queue_in_try, (void *)(uintptr_t)&routines[i].routine);
    expect_bugcheck(TIMER_OR_DPC_INVALID, bad_target, NULL);
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, flush_raised, NULL);
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, call_raised, NULL);
}

/* A host that refuses threads: DPCs for other processors still run. */
static int without_threads(void)
{
    record r[3];
    KIRQL old;

    memset(r, 0, sizeof(r));
    KeGetCurrentThread();
    take_threads_away();
    for (int i = 0; i < 3; i++) {
        KeInitializeDpc(&r[i].dpc, note, &r[i]);
        KeSetTargetProcessorDpc(&r[i].dpc, (CCHAR)i);
    }
    for (int i = 0; i < 3; i++) {
        require(KeInsertQueueDpc(&r[i].dpc, NULL, NULL));
        require(r[i].runs == 1 && r[i].processor == (ULONG)i);
    }
    old = KfRaiseIrql(SYNCH_LEVEL);
    for (int i = 0; i < 3; i++)
        require(KeInsertQueueDpc(&r[i].dpc, NULL, NULL));
    KeLowerIrql(DISPATCH_LEVEL);
    KeLowerIrql(old);
    for (int i = 0; i < 3; i++)
        require(r[i].runs == 2 && r[i].processor == (ULONG)i);
    KeInitializeThreadedDpc(&r[0].dpc, note, &r[0]);
    require(KeInsertQueueDpc(&r[0].dpc, NULL, NULL) && r[0].runs == 3 && r[0].irql == DISPATCH_LEVEL);
    require_free_processors();
    return 0;
}

/* DPCs stay queued in a forked child, whose processors no longer have their own threads. */
static void after_fork(void **state)
{
    record r[2];
    KIRQL old;
    pid_t child;
    int status;

    (void)state;
    memset(r, 0, sizeof(r));
    for (int i = 0; i < 2; i++)
        KeInitializeDpc(&r[i].dpc, note, &r[i]);
    KeSetTargetProcessorDpc(&r[1].dpc, 2);
    old = KeRaiseIrqlToDpcLevel();
    assert_true(KeInsertQueueDpc(&r[0].dpc, NULL, NULL));
    child = fork();
    if (child == 0) {
        alarm(20 * test_slowdown());
        require(r[0].runs == 0);
        KeLowerIrql(old);
        require(r[0].runs == 1);
        require(KeInsertQueueDpc(&r[1].dpc, NULL, NULL));
        KeFlushQueuedDpcs();
        require(r[1].runs == 1 && r[1].processor == 2);
        _exit(0);
    }
    KeLowerIrql(old);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(r[0].runs, 1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(below_dispatch_level_it_has_run),
        cmocka_unit_test(at_dispatch_level_it_waits),
        cmocka_unit_test(removal),
        cmocka_unit_test(importance),
        cmocka_unit_test(target_processors),
        cmocka_unit_test(invalid_targets),
        cmocka_unit_test(busy_target),
        cmocka_unit_test(exclusion),
        cmocka_unit_test(flush),
        cmocka_unit_test(threaded),
        cmocka_unit_test(generic_calls),
        cmocka_unit_test(misuse),
        cmocka_unit_test(no_host_threads),
        cmocka_unit_test(after_fork),
    };

    default_setting("INTERLOCK_PROCESSORS", "4");
    if (argc == 2 && strcmp(argv[1], "threadless") == 0)
        return without_threads();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
