/* calls.c: work queues, DPCs, APCs. */
#include "soak.h"

/* Work items. The event is on the waiter's stack: no thread touches it after the wait. */

typedef struct job {
    WORK_QUEUE_ITEM item;
    KEVENT done;
    unsigned long result; /* plain */
} job;

static VOID do_job(PVOID context)
{
    job *self = context;

    self->result += 1;
    KeSetEvent(&self->done, IO_NO_INCREMENT, FALSE);
}

static VOID do_io_job(PDEVICE_OBJECT device, PVOID context)
{
    (void)device;
    do_job(context);
}

static WORK_QUEUE_TYPE a_queue(test_random *random)
{
    static const WORK_QUEUE_TYPE queues[] = {CriticalWorkQueue, DelayedWorkQueue, HyperCriticalWorkQueue,
                                             NormalWorkQueue, BackgroundWorkQueue};

    return queues[random_below(random, ARRAYSIZE(queues))];
}

static void work_queues_step(test_random *random)
{
    PIO_WORKITEM io_item = one_in(random, 3) ? IoAllocateWorkItem(NULL) : NULL;
    job own = {.result = 0};

    KeInitializeEvent(&own.done, SynchronizationEvent, FALSE);
    for (unsigned long i = 1; i <= 2; i++) {
        if (io_item != NULL) {
            IoQueueWorkItem(io_item, do_io_job, a_queue(random), &own);
        } else {
            ExInitializeWorkItem(&own.item, do_job, &own);
            ExQueueWorkItem(&own.item, a_queue(random));
        }
        require(wait_for(&own.done) == STATUS_SUCCESS && own.result == i);
    }
    if (io_item != NULL)
        IoFreeWorkItem(io_item);
}

const soak_family work_queues_family = {.name = "work queues", .weight = 3, .step = work_queues_step};

/* DPCs, threaded ones too, broadcasts. */

static VOID count_dpc(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    (void)dpc;
    require(one == (PVOID)1 && two == (PVOID)2);
    add((LONG *)context, 1);
}

static VOID count_call(PKDPC dpc, PVOID context, PVOID done, PVOID together)
{
    (void)dpc;
    add((LONG *)context, 1);
    KeSignalCallDpcSynchronize(together);
    KeSignalCallDpcDone(done);
}

static ULONG_PTR count_broadcast(ULONG_PTR argument)
{
    require(KeGetCurrentIrql() == IPI_LEVEL);
    return (ULONG_PTR)add((LONG *)argument, 1);
}

static void use_dpc(test_random *random)
{
    volatile LONG ran = 0;
    LONG queued = 0;
    KDPC dpc;

    if (one_in(random, 2))
        KeInitializeDpc(&dpc, count_dpc, (PVOID)&ran);
    else
        KeInitializeThreadedDpc(&dpc, count_dpc, (PVOID)&ran);
    if (one_in(random, 2))
        KeSetTargetProcessorDpc(&dpc, (CCHAR)random_below(random, KeQueryActiveProcessorCount(NULL)));
    if (one_in(random, 2))
        KeSetImportanceDpc(&dpc, (KDPC_IMPORTANCE)random_below(random, 4));
    for (int i = 0; i < 3; i++)
        queued += KeInsertQueueDpc(&dpc, (PVOID)1, (PVOID)2);
    if (one_in(random, 3))
        queued -= KeRemoveQueueDpc(&dpc);
    KeFlushQueuedDpcs();
    require(load(&ran) == queued);
}

static void dpcs_step(test_random *random)
{
    volatile LONG processors = 0;

    switch (random_below(random, 16)) {
    case 0:
        heap_gives(); /* routines that synchronize need a thread for each processor, which may have to be created */
        KeGenericCallDpc(count_call, (PVOID)&processors);
        require(load(&processors) == (LONG)KeQueryActiveProcessorCount(NULL));
        break;
    case 1:
        KeIpiGenericCall(count_broadcast, (ULONG_PTR)&processors);
        require(load(&processors) == (LONG)KeQueryActiveProcessorCount(NULL));
        break;
    default:
        use_dpc(random);
        break;
    }
}

const soak_family dpcs_family = {.name = "DPCs", .weight = 4, .without_heap = true, .step = dpcs_step};

/* APCs to the current thread. */

static VOID count_user_apc(PVOID counter, PVOID two, PVOID three)
{
    require(two == (PVOID)2 && three == (PVOID)3);
    *(unsigned *)counter += 1;
}

static VOID count_normal(PVOID counter, PVOID two, PVOID three)
{
    (void)two;
    (void)three;
    *(unsigned *)counter += 1;
}

static VOID nothing(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *one, PVOID *two)
{
    (void)apc;
    (void)routine;
    (void)context;
    (void)one;
    (void)two;
}

static void use_user_apcs(test_random *random)
{
    unsigned ran = 0, queued = 1 + random_below(random, 3);

    for (unsigned i = 0; i < queued; i++)
        require(NtQueueApcThread(NtCurrentThread(), count_user_apc, &ran, (PVOID)2, (PVOID)3) == STATUS_SUCCESS);
    require(ran == 0);
    if (one_in(random, 2))
        require(NtTestAlert() == STATUS_ALERTED || ran == queued); /* an alert comes before the APCs */
    while (ran == 0)
        SleepEx(INFINITE, TRUE);
    require(ran == queued);
}

static void use_kernel_apc(test_random *random)
{
    unsigned ran = 0;
    KAPC apc;

    KeInitializeApc(&apc, KeGetCurrentThread(), OriginalApcEnvironment, nothing, NULL, count_normal, KernelMode, &ran);
    if (one_in(random, 2)) {
        KeEnterCriticalRegion();
        require(KeInsertQueueApc(&apc, NULL, NULL, 0));
        require(ran == 0 && !KeInsertQueueApc(&apc, NULL, NULL, 0));
        KeLeaveCriticalRegion();
    } else {
        require(KeInsertQueueApc(&apc, NULL, NULL, 0));
    }
    require(ran == 1);
}

static void apcs_step(test_random *random)
{
    if (one_in(random, 2) && !PsIsSystemThread(PsGetCurrentThread())) /* which takes no user APCs */
        use_user_apcs(random);
    else
        use_kernel_apc(random);
}

const soak_family apcs_family = {.name = "APCs", .weight = 4, .step = apcs_step};
