/* What the verifier finds in freed memory: a row for each kind of thing in use, and for each kind of memory. */
#define DBG 1

#include <interlock/ex.h>
#include <interlock/ob.h>
#include <interlock/ps.h>

#include "ke/verifier.h"
#include "support.h"
#include "withsetting.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define TAG 0x64656572

/* In the freed memory. */
typedef struct block {
    KTIMER timer;
    KDPC dpc;
    KAPC apc;
    KEVENT event;
    ERESOURCE resource;
    WORK_QUEUE_ITEM item;
    FAST_MUTEX mutex;
    KSPIN_LOCK spin;
    EX_PUSH_LOCK push;
    KMUTANT mutant;
} block;

static KTIMER outer_timer;
static unsigned long waiting; /* the id of the thread that waits, or is about to */

static VOID no_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
}

static VOID no_kernel_routine(PKAPC apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)normal;
    (void)context;
    (void)argument1;
    (void)argument2;
}

static VOID no_normal_routine(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)context;
    (void)argument1;
    (void)argument2;
}

static void set_timer(block *b)
{
    LARGE_INTEGER due = {.QuadPart = -864000000000LL};
    KeInitializeTimer(&b->timer);
    KeSetTimer(&b->timer, due, NULL);
}

static void set_timer_of_the_day(block *b)
{
    LARGE_INTEGER due;
    KeQuerySystemTime(&due);
    due.QuadPart += 864000000000LL;
    KeInitializeTimer(&b->timer);
    KeSetTimer(&b->timer, due, NULL);
}

/* The timer is elsewhere. */
static void set_timer_with_dpc(block *b)
{
    LARGE_INTEGER due = {.QuadPart = -864000000000LL};
    KeInitializeDpc(&b->dpc, no_dpc, NULL);
    KeInitializeTimer(&outer_timer);
    KeSetTimer(&outer_timer, due, &b->dpc);
}

static void queue_dpc(block *b)
{
    KIRQL irql;
    KeInitializeDpc(&b->dpc, no_dpc, NULL);
    KeRaiseIrql(DISPATCH_LEVEL, &irql); /* it stays queued */
    KeInsertQueueDpc(&b->dpc, NULL, NULL);
}

static void queue_apc(block *b)
{
    KeEnterGuardedRegion();
    KeInitializeApc(&b->apc, KeGetCurrentThread(), OriginalApcEnvironment, no_kernel_routine, NULL, no_normal_routine,
                    KernelMode, NULL);
    KeInsertQueueApc(&b->apc, NULL, NULL, 0);
}

static void initialize_resource(block *b)
{
    ExInitializeResourceLite(&b->resource);
}

static VOID block_worker(PVOID context)
{
    KeWaitForSingleObject(context, Executive, KernelMode, FALSE, NULL);
}

/* Enough sleeping items that one more stays queued. */
static void queue_item(block *b)
{
    static KEVENT never;
    static WORK_QUEUE_ITEM blockers[300];
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    for (unsigned index = 0; index < 300; index++) {
        ExInitializeWorkItem(&blockers[index], block_worker, &never);
        ExQueueWorkItem(&blockers[index], DelayedWorkQueue);
    }
    ExInitializeWorkItem(&b->item, block_worker, &never);
    ExQueueWorkItem(&b->item, DelayedWorkQueue);
}

static void hold_mutex(block *b)
{
    ExInitializeFastMutex(&b->mutex);
    ExAcquireFastMutex(&b->mutex);
}

static void hold_spin(block *b)
{
    KIRQL irql;
    KeInitializeSpinLock(&b->spin);
    KeAcquireSpinLock(&b->spin, &irql);
}

static void hold_push(block *b)
{
    ExInitializePushLock(&b->push);
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&b->push);
}

static void hold_mutant(block *b)
{
    KeInitializeMutant(&b->mutant, FALSE);
    KeWaitForSingleObject(&b->mutant, Executive, KernelMode, FALSE, NULL);
}

static void *wait_for_event(void *event)
{
    __atomic_store_n(&waiting, (unsigned long)(ULONG_PTR)PsGetCurrentThreadId(), __ATOMIC_SEQ_CST);
    KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL);
    return NULL;
}

static void let_wait(block *b)
{
    pthread_t thread;
    unsigned long id;
    KeInitializeEvent(&b->event, NotificationEvent, FALSE);
    pthread_create(&thread, NULL, wait_for_event, &b->event);
    while ((id = __atomic_load_n(&waiting, __ATOMIC_SEQ_CST)) == 0 || !sleeps_in_the_host(id)) {
        LARGE_INTEGER moment = {.QuadPart = -10000};
        KeDelayExecutionThread(KernelMode, FALSE, &moment);
    }
}

typedef struct row {
    void (*use)(block *b);
    ULONG code;
    uint64_t kind;
} row;

static const row rows[] = {
    {set_timer, TIMER_OR_DPC_INVALID, 0},
    {set_timer_of_the_day, TIMER_OR_DPC_INVALID, 0},
    {set_timer_with_dpc, TIMER_OR_DPC_INVALID, 1},
    {queue_dpc, TIMER_OR_DPC_INVALID, 1},
    {queue_apc, DRIVER_VERIFIER_DETECTED_VIOLATION, 0x494C0001},
    {let_wait, DRIVER_VERIFIER_DETECTED_VIOLATION, 0x494C0002},
    {initialize_resource, DRIVER_VERIFIER_DETECTED_VIOLATION, 0xD2},
    {queue_item, WORKER_INVALID, 0},
    {hold_mutex, DRIVER_VERIFIER_DETECTED_VIOLATION, 0x100B},
    {hold_spin, DRIVER_VERIFIER_DETECTED_VIOLATION, 0x100B},
    {hold_push, DRIVER_VERIFIER_DETECTED_VIOLATION, 0x100B},
    {hold_mutant, DRIVER_VERIFIER_DETECTED_VIOLATION, 0x100B},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void free_in_use(void *argument)
{
    const row *r = argument;
    block *b = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(block), TAG);
    r->use(b);
    ExFreePoolWithTag(b, TAG);
}

static void test_pool(void **state)
{
    (void)state;
    for (unsigned index = 0; index < ROWS; index++)
        expect_violation(rows[index].code, rows[index].kind, free_in_use, (void *)&rows[index]);
}

/* Everything in use at an address before and behind the block. */
static void test_neighbours(void **state)
{
    static block before;
    block *b = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(block), TAG);
    block *after = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(block), TAG);
    (void)state;
    assert_non_null(b);
    assert_non_null(after);
    set_timer(&before);
    set_timer(after);
    initialize_resource(&before);
    initialize_resource(after);
    ExFreePoolWithTag(b, TAG);
    KeCancelTimer(&before.timer);
    KeCancelTimer(&after->timer);
    ExDeleteResourceLite(&before.resource);
    ExDeleteResourceLite(&after->resource);
    ExFreePoolWithTag(after, TAG);
}

/* The first byte behind the memory is not freed. */
static void test_exactly_behind(void **state)
{
    static block blocks[3];
    (void)state;
    set_timer(&blocks[0]);
    set_timer(&blocks[2]);
    KiVerifyFreed(&blocks[0].dpc, (SIZE_T)((PUCHAR)&blocks[2] - (PUCHAR)&blocks[0].dpc), FALSE);
    assert_true(KeCancelTimer(&blocks[0].timer));
    assert_true(KeCancelTimer(&blocks[2].timer));
}

typedef struct search {
    volatile ULONG begun;
    volatile ULONG ended;
} search;

static void verify_memory(void *argument, unsigned index)
{
    static block unused;
    search *s = argument;
    (void)index;
    __atomic_store_n(&s->begun, 1, __ATOMIC_RELEASE);
    KiVerifyFreed(&unused, sizeof(unused), FALSE);
    __atomic_store_n(&s->ended, 1, __ATOMIC_RELEASE);
}

/* The list of a thread's APCs is searched under its lock. */
static void test_search_waits_for_apcs(void **state)
{
    PKTHREAD thread = KiCurrentThread();
    search s = {0};
    ULONG ended = 0;
    (void)state;
    KiEnterDispatcher(thread);
    KiAcquireLock(&thread->ApcQueueLock);
    test_threads *threads = start_threads(1, verify_memory, &s);
    while (!__atomic_load_n(&s.begun, __ATOMIC_ACQUIRE)) {
        HalDispatch.Yield();
    }
    for (unsigned round = 0; round < 20 && !ended; round++) {
        usleep(1000);
        ended = __atomic_load_n(&s.ended, __ATOMIC_ACQUIRE);
    }
    KiReleaseLock(&thread->ApcQueueLock);
    KiExitDispatcher(thread);
    join_threads(threads, 60);
    assert_false(ended);
    assert_true(s.ended);
}

/* Canceled, removed, released and deleted objects may be freed. */
static void test_no_longer_in_use(void **state)
{
    KIRQL irql;
    block *b = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(block), TAG);
    (void)state;
    assert_non_null(b);
    set_timer(b);
    assert_true(KeCancelTimer(&b->timer));
    KeInitializeDpc(&b->dpc, no_dpc, NULL);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    KeInsertQueueDpc(&b->dpc, NULL, NULL);
    assert_true(KeRemoveQueueDpc(&b->dpc));
    KeLowerIrql(irql);
    initialize_resource(b);
    ExDeleteResourceLite(&b->resource);
    hold_mutex(b);
    ExReleaseFastMutex(&b->mutex);
    hold_push(b);
    ExReleasePushLockExclusive(&b->push);
    KeLeaveCriticalRegion();
    hold_mutant(b);
    KeReleaseMutant(&b->mutant, 0, FALSE, FALSE);
    ExFreePoolWithTag(b, TAG);
}

static void *use_stack(void *argument)
{
    const row *r = argument;
    block b;
    memset(&b, 0, sizeof(b));
    r->use(&b);
    return NULL;
}

static void end_in_use(void *argument)
{
    pthread_t thread;
    pthread_create(&thread, NULL, use_stack, argument);
    pthread_join(thread, NULL);
}

/* The stack of a thread that ends. AddressSanitizer keeps variables elsewhere, and reports their use itself. */
static void test_stack(void **state)
{
    (void)state;
    if (test_slowdown() != 1)
        return;
    expect_violation(TIMER_OR_DPC_INVALID, 0, end_in_use, (void *)&rows[0]);
    expect_violation(TIMER_OR_DPC_INVALID, 0, end_in_use, (void *)&rows[1]);
    expect_violation(TIMER_OR_DPC_INVALID, 1, end_in_use, (void *)&rows[2]);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xD2, end_in_use, (void *)&rows[6]);
}

/* The frames of a routine that returns to the system. Its thread goes on. */
static KEVENT left;

static VOID use_frame(PVOID argument)
{
    const row *r = argument;
    block b;
    memset(&b, 0, sizeof(b));
    r->use(&b);
}

static VOID use_frame_and_tell(PVOID argument)
{
    use_frame(argument);
    KeSetEvent(&left, 0, FALSE);
}

static void work_in_use(void *argument)
{
    WORK_QUEUE_ITEM item;
    KeInitializeEvent(&left, NotificationEvent, FALSE);
    ExInitializeWorkItem(&item, use_frame_and_tell, argument);
    ExQueueWorkItem(&item, DelayedWorkQueue);
    KeWaitForSingleObject(&left, Executive, KernelMode, FALSE, NULL);
    for (;;) /* the item ends after its signal */
        KeDelayExecutionThread(KernelMode, FALSE, &(LARGE_INTEGER){.QuadPart = -10000000});
}

static VOID notify_in_use(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    use_frame(context);
}

static void notification_in_use(void *argument)
{
    PCALLBACK_OBJECT callback;
    ExCreateCallback(&callback, NULL, TRUE, TRUE);
    ExRegisterCallback(callback, notify_in_use, argument);
    ExNotifyCallback(callback, NULL, NULL);
}

static VOID use_nothing(PVOID context, PVOID argument1, PVOID argument2)
{
    block b;
    (void)context;
    (void)argument1;
    (void)argument2;
    memset(&b, 0, sizeof(b));
    set_timer(&b);
    KeCancelTimer(&b.timer);
    initialize_resource(&b);
    ExDeleteResourceLite(&b.resource);
}

static void test_left_frames(void **state)
{
    PCALLBACK_OBJECT callback;
    block above; /* in the frame of a caller: it is still there */
    (void)state;
    if (test_slowdown() != 1)
        return;
    expect_violation(TIMER_OR_DPC_INVALID, 0, work_in_use, (void *)&rows[0]);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xD2, work_in_use, (void *)&rows[6]);
    expect_violation(TIMER_OR_DPC_INVALID, 0, notification_in_use, (void *)&rows[0]);
    expect_violation(TIMER_OR_DPC_INVALID, 1, notification_in_use, (void *)&rows[2]);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0xD2, notification_in_use, (void *)&rows[6]);
    memset(&above, 0, sizeof(above));
    set_timer(&above);
    assert_int_equal(ExCreateCallback(&callback, NULL, TRUE, TRUE), STATUS_SUCCESS);
    PVOID registration = ExRegisterCallback(callback, use_nothing, NULL);
    ExNotifyCallback(callback, NULL, NULL);
    ExUnregisterCallback(registration);
    ObDereferenceObject(callback);
    assert_true(KeCancelTimer(&above.timer));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_exactly_behind),
        cmocka_unit_test(test_search_waits_for_apcs),
        cmocka_unit_test(test_no_longer_in_use),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_left_frames),
    };
    default_setting("INTERLOCK_VERIFIER", "1");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
