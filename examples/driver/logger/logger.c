/*++

Module Name:

    logger.c

Abstract:

    A log of fixed size records for a driver. See logger.h.

Environment:

    Kernel mode

--*/

#include "logger.h"

KDEFERRED_ROUTINE LoggerTimerDpc;
WORKER_THREAD_ROUTINE LoggerWorker;

#ifdef ALLOC_PRAGMA
#pragma alloc_text(PAGE, LoggerCreate)
#pragma alloc_text(PAGE, LoggerFlush)
#pragma alloc_text(PAGE, LoggerDelete)
#pragma alloc_text(PAGE, LoggerWorker)
#endif

_Use_decl_annotations_
NTSTATUS
LoggerCreate(
    PLOGGER_SINK Sink,
    PVOID SinkContext,
    ULONG Limit,
    ULONG FlushMilliseconds,
    PLOGGER *Logger
    )
{
    PLOGGER NewLogger;
    LARGE_INTEGER DueTime;

    PAGED_CODE();

    NT_ASSERT(Sink != NULL);

    *Logger = NULL;

    NewLogger = (PLOGGER)ExAllocatePoolZero(NonPagedPoolNxCacheAligned, sizeof(LOGGER), LOGGER_TAG);
    if (NewLogger == NULL) {
        DbgPrintEx(DPFLTR_IHVDRIVER_ID, DPFLTR_ERROR_LEVEL, "Logger: no memory for %Iu bytes\n", sizeof(LOGGER));
        return STATUS_INSUFFICIENT_RESOURCES;
    }

    KeInitializeSpinLock(&NewLogger->Lock);
    InitializeListHead(&NewLogger->Records);
    ExInitializeRundownProtection(&NewLogger->Rundown);
    ExInitializeFastMutex(&NewLogger->SinkMutex);
    ExInitializeNPagedLookasideList(&NewLogger->Lookaside,
                                    NULL,
                                    NULL,
                                    POOL_NX_ALLOCATION,
                                    sizeof(LOGGER_RECORD),
                                    LOGGER_TAG,
                                    0);
    NewLogger->Limit = Limit;
    NewLogger->Sink = Sink;
    NewLogger->SinkContext = SinkContext;

    ExInitializeWorkItem(&NewLogger->FlushItem, LoggerWorker, NewLogger);
    KeInitializeDpc(&NewLogger->FlushDpc, LoggerTimerDpc, NewLogger);
    KeInitializeTimerEx(&NewLogger->FlushTimer, SynchronizationTimer);
    DueTime.QuadPart = -10000LL * FlushMilliseconds;
    KeSetTimerEx(&NewLogger->FlushTimer, DueTime, (LONG)FlushMilliseconds, &NewLogger->FlushDpc);

    KdPrint(("Logger %p: created, limit %lu\n", (PVOID)NewLogger, Limit));
    *Logger = NewLogger;
    return STATUS_SUCCESS;
}

_Use_decl_annotations_
NTSTATUS
LoggerWrite(
    PLOGGER Logger,
    PCUNICODE_STRING Text
    )
{
    PLOGGER_RECORD Record;
    KLOCK_QUEUE_HANDLE LockHandle;
    NTSTATUS Status = STATUS_SUCCESS;

    if (!ExAcquireRundownProtection(&Logger->Rundown)) {
        return STATUS_DELETE_PENDING;
    }

    Record = (PLOGGER_RECORD)ExAllocateFromNPagedLookasideList(&Logger->Lookaside);
    if (Record == NULL) {
        Status = STATUS_INSUFFICIENT_RESOURCES;
        goto Exit;
    }

    KeQuerySystemTime(&Record->TimeStamp);
    Record->Sequence = (ULONG)InterlockedIncrement(&Logger->Sequence);
    Record->Length = Text->Length / sizeof(WCHAR);
    if (Record->Length > LOGGER_TEXT_LENGTH) {
        Record->Length = LOGGER_TEXT_LENGTH;
        Status = STATUS_BUFFER_OVERFLOW;
    }
    RtlCopyMemory(Record->Text, Text->Buffer, Record->Length * sizeof(WCHAR));

    KeAcquireInStackQueuedSpinLock(&Logger->Lock, &LockHandle);
    if (Logger->Count < Logger->Limit) {
        InsertTailList(&Logger->Records, &Record->ListEntry);
        Logger->Count += 1;
        Record = NULL;
    }
    KeReleaseInStackQueuedSpinLock(&LockHandle);

    if (Record != NULL) {
        InterlockedIncrement(&Logger->Dropped);
        ExFreeToNPagedLookasideList(&Logger->Lookaside, Record);
        Status = STATUS_DEVICE_BUSY;
    }

Exit:

    ExReleaseRundownProtection(&Logger->Rundown);
    return Status;
}

_Use_decl_annotations_
VOID
LoggerFlush(
    PLOGGER Logger
    )
{
    LIST_ENTRY Records;
    PLIST_ENTRY Entry;
    KLOCK_QUEUE_HANDLE LockHandle;

    PAGED_CODE();

    //
    // The mutex keeps the records of two flushes in order.
    //
    ExAcquireFastMutex(&Logger->SinkMutex);

    InitializeListHead(&Records);
    KeAcquireInStackQueuedSpinLock(&Logger->Lock, &LockHandle);
    while (!IsListEmpty(&Logger->Records)) {
        Entry = RemoveHeadList(&Logger->Records);
        InsertTailList(&Records, Entry);
        Logger->Count -= 1;
    }
    ASSERT(Logger->Count == 0);
    KeReleaseInStackQueuedSpinLock(&LockHandle);

    while (!IsListEmpty(&Records)) {
        PLOGGER_RECORD Record;

        Entry = RemoveHeadList(&Records);
        Record = CONTAINING_RECORD(Entry, LOGGER_RECORD, ListEntry);
        Logger->Sink(Logger->SinkContext, Record);
        ExFreeToNPagedLookasideList(&Logger->Lookaside, Record);
    }

    ExReleaseFastMutex(&Logger->SinkMutex);
}

_Use_decl_annotations_
VOID
LoggerTimerDpc(
    PKDPC Dpc,
    PVOID DeferredContext,
    PVOID SystemArgument1,
    PVOID SystemArgument2
    )
{
    PLOGGER Logger = (PLOGGER)DeferredContext;
    KLOCK_QUEUE_HANDLE LockHandle;
    BOOLEAN Queue;

    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(SystemArgument1);
    UNREFERENCED_PARAMETER(SystemArgument2);

    KeAcquireInStackQueuedSpinLockAtDpcLevel(&Logger->Lock, &LockHandle);
    Queue = !Logger->FlushQueued && !Logger->Stopping && Logger->Count != 0 &&
            ExAcquireRundownProtection(&Logger->Rundown);
    if (Queue) {
        Logger->FlushQueued = TRUE;
    }
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&LockHandle);

    if (Queue) {
        ExQueueWorkItem(&Logger->FlushItem, DelayedWorkQueue);
    }
}

_Use_decl_annotations_
VOID
LoggerWorker(
    PVOID Parameter
    )
{
    PLOGGER Logger = (PLOGGER)Parameter;
    KLOCK_QUEUE_HANDLE LockHandle;

    PAGED_CODE();

    LoggerFlush(Logger);

    KeAcquireInStackQueuedSpinLock(&Logger->Lock, &LockHandle);
    ExInitializeWorkItem(&Logger->FlushItem, LoggerWorker, Logger);
    Logger->FlushQueued = FALSE;
    KeReleaseInStackQueuedSpinLock(&LockHandle);

    ExReleaseRundownProtection(&Logger->Rundown);
}

_Use_decl_annotations_
VOID
LoggerDelete(
    PLOGGER Logger
    )
{
    KLOCK_QUEUE_HANDLE LockHandle;

    PAGED_CODE();

    KeAcquireInStackQueuedSpinLock(&Logger->Lock, &LockHandle);
    Logger->Stopping = TRUE;
    KeReleaseInStackQueuedSpinLock(&LockHandle);

    KeCancelTimer(&Logger->FlushTimer);
    KeFlushQueuedDpcs();
    ExWaitForRundownProtectionRelease(&Logger->Rundown);

    LoggerFlush(Logger);
    NT_VERIFY(IsListEmpty(&Logger->Records));

    KdPrintEx((DPFLTR_IHVDRIVER_ID, DPFLTR_INFO_LEVEL, "Logger %p: %ld records, %ld dropped\n", (PVOID)Logger,
               Logger->Sequence, Logger->Dropped));
    ExDeleteNPagedLookasideList(&Logger->Lookaside);
    ExFreePoolWithTag(Logger, LOGGER_TAG);
}
