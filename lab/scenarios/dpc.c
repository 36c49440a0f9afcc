/* DPCs and calls on every processor: each runs as often as it was queued, where it should, and alone there. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/ki.h"

static KDPC dpc, second;
static int ran, queued, removed;
static PVOID seen[2];

static VOID count_run(PKDPC self, PVOID context, PVOID first, PVOID argument)
{
    UNREFERENCED_PARAMETER(context);
    LabAssert(KeGetCurrentIrql() == DISPATCH_LEVEL || self->Type == ThreadedDpcObject);
    LabAssert(first == argument); /* the arguments belong to the same call */
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

/* On the processor that no thread of the scenario has chosen: its idle thread or its owner runs the DPC. */
static void setup(void)
{
    KeInitializeDpc(&dpc, count_run, NULL);
    KeSetTargetProcessorDpc(&dpc, 1);
    KeInitializeThreadedDpc(&second, count_run, NULL);
}

static void insert(int number)
{
    BOOLEAN inserted = KeInsertQueueDpc(&dpc, &seen[number], &seen[number]);
    __atomic_fetch_add(&queued, inserted, __ATOMIC_RELAXED);
}

static void insert_first(void)
{
    insert(0);
}

static void insert_second(void)
{
    insert(1);
}

static void remover(void)
{
    removed = KeRemoveQueueDpc(&dpc);
}

static void adds_up(void)
{
    LabAssert(queued >= 1 && ran + removed == queued && dpc.DpcData == NULL);
}
LAB_SCENARIO(dpc_insert_twice, .Setup = setup, .Threads = {insert_first, insert_second}, .Finish = adds_up,
             .Flags = LAB_LARGE);
LAB_SCENARIO(dpc_insert_remove, .Setup = setup, .Threads = {insert_first, remover}, .Finish = adds_up);
LAB_SCENARIO(dpc_insert_remove_insert, .Setup = setup, .Threads = {insert_first, remover, insert_second},
             .Finish = adds_up, .Flags = LAB_LARGE);

/* After the flush it has run, and its effects are visible. */
static int data;

static VOID write_data(PKDPC self, PVOID context, PVOID first, PVOID argument)
{
    count_run(self, context, first, argument);
    data += 1;
}

static void setup_writer(void)
{
    setup();
    dpc.DeferredRoutine = write_data;
    second.DeferredRoutine = write_data;
}

static void insert_and_flush(void)
{
    insert(0);
    KeFlushQueuedDpcs();
    LabAssert(data == 1);
}

static void insert_threaded_and_flush(void)
{
    LabAssert(KeInsertQueueDpc(&second, NULL, NULL));
    KeFlushQueuedDpcs();
    LabAssert(data == 1);
}
LAB_SCENARIO(dpc_flush, .Setup = setup_writer, .Threads = {insert_and_flush}, .Flags = LAB_LARGE);
LAB_SCENARIO(dpc_flush_threaded, .Setup = setup_writer, .Threads = {insert_threaded_and_flush}, .Flags = LAB_LARGE);
LAB_SCENARIO(dpc_flush_threadless, .Setup = setup_writer, .Threads = {insert_threaded_and_flush},
             .AllocationFailures = 2, .Flags = LAB_LARGE);

/* A DPC of a processor and code at DISPATCH_LEVEL on it share data without a lock. */
static int of_processor[2];

static VOID count_on_processor(PKDPC self, PVOID context, PVOID first, PVOID argument)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(argument);
    of_processor[KeGetCurrentProcessorNumber()] += 1;
}

static void setup_counter(void)
{
    KeInitializeDpc(&dpc, count_on_processor, NULL);
    KeSetTargetProcessorDpc(&dpc, 1);
}

static void dispatcher(void)
{
    KIRQL irql;
    KeSetSystemAffinityThread(2);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    LabAssert(KeGetCurrentProcessorNumber() == 1);
    of_processor[1] += 1;
    LabYield();
    of_processor[1] += 1;
    KeLowerIrql(irql);
}

static void counted_thrice(void)
{
    LabAssert(of_processor[0] == 0 && of_processor[1] == 3);
}
LAB_SCENARIO(dpc_beside_dispatch_level, .Setup = setup_counter, .Threads = {dispatcher, insert_first},
             .Finish = counted_thrice);

/* On every processor, on all of them at once. */
static int inside, calls[2];

static ULONG_PTR broadcast(ULONG_PTR context)
{
    LabAssert(KeGetCurrentIrql() == IPI_LEVEL);
    __atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);
    calls[KeGetCurrentProcessorNumber()] += 1; /* no race: one call at a time */
    return context;
}

static void caller(void)
{
    LabAssert(KeIpiGenericCall(broadcast, 7) == 7);
    LabAssert(__atomic_load_n(&inside, __ATOMIC_RELAXED) >= 2);
}

static void called_once(void)
{
    LabAssert(inside == 2 && calls[0] == 1 && calls[1] == 1);
}

static void called_twice(void)
{
    LabAssert(inside == 4 && calls[0] == 2 && calls[1] == 2);
}
LAB_SCENARIO(ipi_call, .Setup = setup, .Threads = {caller, insert_first}, .Finish = called_once, .Flags = LAB_LARGE);
LAB_SCENARIO(ipi_two_calls, .Threads = {caller, caller}, .Finish = called_twice, .Flags = LAB_LARGE);
LAB_SCENARIO(ipi_call_threadless, .Threads = {caller}, .Finish = called_once, .AllocationFailures = 2);

/* All processors have arrived before the function runs anywhere, so none is in code that cannot be interrupted. */
static int busy, looked;

static ULONG_PTR look(ULONG_PTR context)
{
    LabAssert(busy == 0); /* no race: neither continues before both have read */
    __atomic_fetch_add(&looked, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&looked, __ATOMIC_ACQUIRE) != 2)
        ;
    return context;
}

static void looker(void)
{
    KeIpiGenericCall(look, 0);
}

static void busy_thread(void)
{
    KIRQL irql;
    KeRaiseIrql(HIGH_LEVEL, &irql);
    busy = 1;
    LabYield();
    busy = 0;
    KeLowerIrql(irql);
}
LAB_SCENARIO(ipi_rendezvous, .Threads = {looker, busy_thread}, .Flags = LAB_LARGE);

static int arrived, last;

static VOID called(PKDPC self, PVOID context, PVOID first, PVOID argument)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(context);
    __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
    calls[KeGetCurrentProcessorNumber()] += 1;
    LOGICAL was_last = KeSignalCallDpcSynchronize(argument);
    LabAssert(__atomic_load_n(&arrived, __ATOMIC_RELAXED) == 2 && calls[0] == 1 && calls[1] == 1);
    __atomic_fetch_add(&last, was_last != FALSE, __ATOMIC_RELAXED);
    KeSignalCallDpcDone(first);
}

static void call_dpcs(void)
{
    KeGenericCallDpc(called, NULL);
    LabAssert(arrived == 2 && last == 1);
}
LAB_SCENARIO(dpc_on_every_processor, .Threads = {call_dpcs}, .Flags = LAB_LARGE);
