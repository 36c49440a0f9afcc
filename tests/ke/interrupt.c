#include "machine.h"
#include "withsetting.h"

#include <interlock/ex.h>
#include <interlock/exception.h>
#include <interlock/io.h>

#include "ke/irql.h"

#define VECTOR 0x51
#define DIRQL 5
#define EVERYWHERE (~(KAFFINITY)0)

typedef struct device {
    PKINTERRUPT interrupt;
    volatile ULONG served;  /* by KeSynchronizeExecution and the routine, under the interrupt's lock */
    BOOLEAN claims;
    KIRQL irql;
    ULONG processor;
    KDPC dpc;
    volatile ULONG dpcs;
    char name;
} device;

static char trace[8];
static ULONG traced;

static BOOLEAN serve(PKINTERRUPT interrupt, PVOID context)
{
    device *d = context;

    require(interrupt->ServiceContext == d);
    d->irql = KeGetCurrentIrql();
    d->processor = KeGetCurrentProcessorNumber();
    d->served++;
    if (d->name != '\0')
        trace[traced++] = d->name;
    if (d->dpc.DeferredRoutine != NULL)
        KeInsertQueueDpc(&d->dpc, NULL, NULL);
    return d->claims;
}

static NTSTATUS connect(device *d, ULONG vector, KIRQL irql, KIRQL synchronize, KINTERRUPT_MODE mode, BOOLEAN share)
{
    return IoConnectInterrupt(&d->interrupt, serve, d, NULL, vector, irql, synchronize, mode, share, EVERYWHERE, FALSE);
}

static void invalid_parameters(void **state)
{
    static const struct {
        ULONG vector;
        KIRQL irql, synchronize;
        KAFFINITY mask;
    } bad[] = {
        {KI_MAXIMUM_VECTOR, DIRQL, DIRQL, 1}, {VECTOR, DISPATCH_LEVEL, DIRQL, 1}, {VECTOR, IPI_LEVEL, IPI_LEVEL, 1},
        {VECTOR, DIRQL, DIRQL - 1, 1},        {VECTOR, DIRQL, IPI_LEVEL, 1},      {VECTOR, DIRQL, DIRQL, 0},
        {VECTOR, DIRQL, DIRQL, EVERYWHERE << 4},
    };
    PKINTERRUPT interrupt = (PKINTERRUPT)1;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(IoConnectInterrupt(&interrupt, serve, NULL, NULL, bad[i].vector, bad[i].irql,
                                            bad[i].synchronize, Latched, FALSE, bad[i].mask, FALSE),
                         STATUS_INVALID_PARAMETER);
        assert_null(interrupt);
    }
    assert_int_equal(IoConnectInterrupt(&interrupt, NULL, NULL, NULL, VECTOR, DIRQL, DIRQL, Latched, FALSE, 1, FALSE),
                     STATUS_INVALID_PARAMETER);
}

static void fired_on_a_free_processor(void **state)
{
    device d = {.claims = TRUE};

    (void)state;
    assert_int_equal(connect(&d, VECTOR, DIRQL, DIRQL + 1, LevelSensitive, FALSE), STATUS_SUCCESS);
    for (ULONG processor = 0; processor < KeNumberProcessors; processor++) {
        assert_true(KeFireInterrupt(d.interrupt, processor));
        assert_int_equal(d.served, processor + 1);
        assert_int_equal(d.processor, processor);
        assert_int_equal(d.irql, DIRQL + 1);
        assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    }
    d.claims = FALSE;
    assert_false(KeFireInterrupt(d.interrupt, 0));
    assert_false(KeFireInterrupt(d.interrupt, KeNumberProcessors));
    assert_int_equal(d.served, KeNumberProcessors + 1);
    IoDisconnectInterrupt(d.interrupt);
}

static void held_back_by_the_level(void **state)
{
    device d = {.claims = TRUE};
    KIRQL old;

    (void)state;
    assert_int_equal(connect(&d, VECTOR, DIRQL, DIRQL, Latched, FALSE), STATUS_SUCCESS);
    old = KfRaiseIrql(DIRQL);
    assert_false(KeFireInterrupt(d.interrupt, KeGetCurrentProcessorNumber()));
    assert_false(KeFireInterrupt(d.interrupt, KeGetCurrentProcessorNumber()));
    assert_int_equal(d.served, 0);
    KeLowerIrql(DIRQL - 1);
    assert_int_equal(d.served, 1);
    assert_true(KeFireInterrupt(d.interrupt, KeGetCurrentProcessorNumber()));
    assert_int_equal(d.served, 2);
    KeLowerIrql(old);
    assert_int_equal(d.served, 2);
    IoDisconnectInterrupt(d.interrupt);
}

/* The highest level first, whatever the order of arrival. */
static void pending_in_order_of_level(void **state)
{
    device d[3] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}};
    static const KIRQL level[3] = {6, 9, 4};
    KIRQL old;

    (void)state;
    for (ULONG i = 0; i < 3; i++)
        assert_int_equal(connect(&d[i], VECTOR + 60 * i, level[i], level[i], Latched, FALSE), STATUS_SUCCESS);
    old = KfRaiseIrql(SYNCH_LEVEL);
    for (ULONG i = 0; i < 3; i++)
        assert_false(KeFireInterrupt(d[i].interrupt, KeGetCurrentProcessorNumber()));
    KeLowerIrql(5);
    assert_int_equal(traced, 2);
    KeLowerIrql(old);
    assert_string_equal(trace, "bac");
    for (ULONG i = 0; i < 3; i++)
        IoDisconnectInterrupt(d[i].interrupt);
}

static void shared_vectors(void **state)
{
    static const struct {
        KINTERRUPT_MODE mode;
        BOOLEAN claims[3];
        ULONG served[3];
        BOOLEAN claimed;
    } cases[] = {
        {LevelSensitive, {FALSE, TRUE, TRUE}, {1, 1, 0}, TRUE},
        {LevelSensitive, {FALSE, FALSE, FALSE}, {1, 1, 1}, FALSE},
        {Latched, {TRUE, FALSE, TRUE}, {1, 1, 1}, TRUE},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        device d[3], other = {.claims = TRUE};

        memset(d, 0, sizeof(d));
        for (int i = 0; i < 3; i++) {
            d[i].claims = cases[c].claims[i];
            assert_int_equal(connect(&d[i], VECTOR, DIRQL, DIRQL, cases[c].mode, TRUE), STATUS_SUCCESS);
        }
        assert_int_equal(connect(&other, VECTOR, DIRQL, DIRQL, cases[c].mode, FALSE), STATUS_INVALID_PARAMETER);
        assert_int_equal(connect(&other, VECTOR, DIRQL + 1, DIRQL + 1, cases[c].mode, TRUE), STATUS_INVALID_PARAMETER);
        assert_int_equal(connect(&other, VECTOR, DIRQL, DIRQL, cases[c].mode == Latched ? LevelSensitive : Latched,
                                 TRUE),
                         STATUS_INVALID_PARAMETER);
        assert_int_equal(KeFireInterrupt(d[2].interrupt, 0), cases[c].claimed);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(d[i].served, cases[c].served[i]);
            IoDisconnectInterrupt(d[i].interrupt);
        }
        assert_int_equal(connect(&other, VECTOR, DIRQL + 1, DIRQL + 1, Latched, FALSE), STATUS_SUCCESS);
        IoDisconnectInterrupt(other.interrupt);
    }
}

static BOOLEAN add_one(PVOID context)
{
    device *d = context;

    require(KeGetCurrentIrql() == d->interrupt->SynchronizeIrql);
    d->served++;
    return d->served % 2 == 0;
}

static void synchronized_execution(void **state)
{
    KSPIN_LOCK lock = 0;
    device d = {.claims = TRUE};
    KIRQL old;

    (void)state;
    assert_int_equal(IoConnectInterrupt(&d.interrupt, serve, &d, &lock, VECTOR, DIRQL, DIRQL + 2, Latched, FALSE,
                                        EVERYWHERE, FALSE),
                     STATUS_SUCCESS);
    assert_false(KeSynchronizeExecution(d.interrupt, add_one, &d));
    assert_true(KeSynchronizeExecution(d.interrupt, add_one, &d));
    old = KeAcquireInterruptSpinLock(d.interrupt);
    assert_int_equal(old, PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), DIRQL + 2);
    assert_int_not_equal(lock, 0);
    KeReleaseInterruptSpinLock(d.interrupt, old);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_int_equal(lock, 0);
    IoDisconnectInterrupt(d.interrupt);
}

static void count_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)argument1;
    (void)argument2;
    __atomic_add_fetch(&((device *)context)->dpcs, 1, __ATOMIC_RELEASE);
}

static void routine_queues_a_dpc(void **state)
{
    device d = {.claims = TRUE};

    (void)state;
    KeInitializeDpc(&d.dpc, count_dpc, &d);
    assert_int_equal(connect(&d, VECTOR, DIRQL, DIRQL, Latched, FALSE), STATUS_SUCCESS);
    assert_true(KeFireInterrupt(d.interrupt, 2));
    assert_int_equal(d.dpcs, 1);
    IoDisconnectInterrupt(d.interrupt);
}

/* The owner of the processor is interrupted in whatever it does below the device's level. */
static volatile int owner_state;

static void own_processor_1(void *level, unsigned index)
{
    KIRQL old;

    (void)index;
    KeSetSystemAffinityThread(1 << 1);
    old = KfRaiseIrql((KIRQL)(uintptr_t)level);
    __atomic_store_n(&owner_state, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&owner_state, __ATOMIC_SEQ_CST) != 2)
        usleep(10);
    KeLowerIrql(old);
    KeRevertToUserAffinityThread();
}

static void let_owner_go(void *unused, unsigned index)
{
    (void)unused;
    (void)index;
    usleep(20000);
    __atomic_store_n(&owner_state, 2, __ATOMIC_SEQ_CST);
}

static void busy_processor(void **state)
{
    device d = {.claims = TRUE};

    (void)state;
    assert_int_equal(connect(&d, VECTOR, DIRQL, DIRQL, Latched, FALSE), STATUS_SUCCESS);
    for (uintptr_t level = DISPATCH_LEVEL; level <= DIRQL + 1; level++) {
        test_threads *owner, *helper = NULL;
        ULONG before = d.served;

        owner_state = 0;
        owner = start_threads(1, own_processor_1, (void *)level);
        while (__atomic_load_n(&owner_state, __ATOMIC_SEQ_CST) != 1)
            usleep(10);
        if (level >= DIRQL)
            helper = start_threads(1, let_owner_go, NULL);
        watchdog_start(20);
        assert_true(KeFireInterrupt(d.interrupt, 1));
        watchdog_stop();
        assert_int_equal(d.served, before + 1);
        assert_int_equal(d.processor, 1);
        if (level >= DIRQL) {
            join_threads(helper, 20);
        } else {
            assert_int_equal(owner_state, 1);
            __atomic_store_n(&owner_state, 2, __ATOMIC_SEQ_CST);
        }
        join_threads(owner, 20);
    }
    IoDisconnectInterrupt(d.interrupt);
}

/* Every interrupt that a thread waited for has run the routine once; the lock holds against KeSynchronizeExecution. */
static void fire_and_synchronize(void *context, unsigned index)
{
    device *d = context;
    test_random random;

    random_seed(&random, index + 1);
    for (unsigned long round = test_rounds(10000); round != 0; round--) {
        KIRQL old = KfRaiseIrql((KIRQL)random_below(&random, DISPATCH_LEVEL + 2));

        if (index % 2 == 0)
            require(KeFireInterrupt(d->interrupt, random_below(&random, KeNumberProcessors)));
        else
            KeSynchronizeExecution(d->interrupt, add_one, d);
        KeLowerIrql(old);
    }
}

static void storm(void **state)
{
    device d = {.claims = TRUE};

    (void)state;
    assert_int_equal(connect(&d, VECTOR, DIRQL, DIRQL + 1, Latched, FALSE), STATUS_SUCCESS);
    run_threads(4, 120, fire_and_synchronize, &d);
    assert_int_equal(d.served, 4 * test_rounds(10000));
    assert_int_equal(d.interrupt->ServiceCount, 2 * test_rounds(10000));
    IoDisconnectInterrupt(d.interrupt);
}

/* A host that refuses threads: interrupts of processors without an owner are still served. */
static int without_threads(void)
{
    device d = {.claims = TRUE};

    require(connect(&d, VECTOR, DIRQL, DIRQL, Latched, FALSE) == STATUS_SUCCESS);
    take_threads_away();
    for (KIRQL irql = PASSIVE_LEVEL; irql <= DIRQL; irql++) {
        for (ULONG processor = 0; processor < KeNumberProcessors; processor++) {
            KIRQL old = KfRaiseIrql(irql);
            ULONG before = d.served;

            for (ULONG round = 1; round <= 2; round++) {
                require(KeFireInterrupt(d.interrupt, processor) == (irql < DIRQL));
                require(d.served == (irql < DIRQL ? before + round : before));
            }
            KeLowerIrql(old);
            require(d.served == before + (irql < DIRQL ? 2 : 1) && d.processor == processor);
        }
    }
    require_free_processors();
    return 0;
}

static BOOLEAN raise_status(PKINTERRUPT interrupt, PVOID context)
{
    (void)interrupt;
    (void)context;
    ExRaiseStatus(STATUS_UNSUCCESSFUL);
}

static BOOLEAN change_level(PKINTERRUPT interrupt, PVOID context)
{
    (void)context;
    KfRaiseIrql((KIRQL)(interrupt->SynchronizeIrql + 1));
    return TRUE;
}

static void fire_in_try(void *routine)
{
    PKINTERRUPT interrupt;

    require(IoConnectInterrupt(&interrupt, *(PKSERVICE_ROUTINE *)routine, NULL, NULL, VECTOR, DIRQL, DIRQL, Latched,
                               FALSE, EVERYWHERE, FALSE) == STATUS_SUCCESS);
    __try {
        KeFireInterrupt(interrupt, 0);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        fprintf(stderr, "the thread caught what the routine raised\n");
    }
}

static void connect_raised(void *unused)
{
    device d = {.claims = TRUE};

    (void)unused;
    KfRaiseIrql(APC_LEVEL);
    connect(&d, VECTOR, DIRQL, DIRQL, Latched, FALSE);
}

static void misuse(void **state)
{
    static const struct {
        PKSERVICE_ROUTINE routine;
        ULONG code;
    } routines[] = {
        {raise_status, KMODE_EXCEPTION_NOT_HANDLED},
        {change_level, DRIVER_VERIFIER_DETECTED_VIOLATION},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(routines) / sizeof(routines[0]); i++)
        expect_bugcheck(routines[i].code, fire_in_try, (void *)(uintptr_t)&routines[i].routine);
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, connect_raised, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_parameters),
        cmocka_unit_test(fired_on_a_free_processor),
        cmocka_unit_test(held_back_by_the_level),
        cmocka_unit_test(pending_in_order_of_level),
        cmocka_unit_test(shared_vectors),
        cmocka_unit_test(synchronized_execution),
        cmocka_unit_test(routine_queues_a_dpc),
        cmocka_unit_test(busy_processor),
        cmocka_unit_test(storm),
        cmocka_unit_test(no_host_threads),
        cmocka_unit_test(misuse),
    };

    default_setting("INTERLOCK_PROCESSORS", "4");
    if (argc == 2 && strcmp(argv[1], "threadless") == 0)
        return without_threads();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
