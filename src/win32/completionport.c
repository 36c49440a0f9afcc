/* completionport.c: completion ports. */
#include <interlock/win32/sync.h>

#include "base.h"

#include <interlock/io.h>

C_ASSERT(sizeof(OVERLAPPED_ENTRY) == sizeof(FILE_IO_COMPLETION_INFORMATION));
C_ASSERT(FIELD_OFFSET(OVERLAPPED_ENTRY, lpOverlapped) == FIELD_OFFSET(FILE_IO_COMPLETION_INFORMATION, ApcContext));
C_ASSERT(FIELD_OFFSET(OVERLAPPED_ENTRY, Internal) ==
         FIELD_OFFSET(FILE_IO_COMPLETION_INFORMATION, IoStatusBlock.Status));
C_ASSERT(FIELD_OFFSET(OVERLAPPED_ENTRY, dwNumberOfBytesTransferred) ==
         FIELD_OFFSET(FILE_IO_COMPLETION_INFORMATION, IoStatusBlock.Information));

HANDLE CreateIoCompletionPort(HANDLE FileHandle, HANDLE ExistingCompletionPort, ULONG_PTR CompletionKey,
                              DWORD NumberOfConcurrentThreads)
{
    HANDLE Port = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;

    UNREFERENCED_PARAMETER(CompletionKey); /* for files only */
    if (FileHandle != INVALID_HANDLE_VALUE) {
        /* A descriptor object is the closest thing to a file, but has no overlapped operations, which a port needs. */
        Status = IoQueryDescriptorObject(FileHandle, NULL, NULL);
        Status = NT_SUCCESS(Status) ? STATUS_INVALID_PARAMETER : Status;
    } else if (ExistingCompletionPort == NULL) {
        Status = NtCreateIoCompletion(&Port, IO_COMPLETION_ALL_ACCESS, NULL, NumberOfConcurrentThreads);
    }
    return BaseBoolStatus(Status) ? Port : NULL;
}

BOOL PostQueuedCompletionStatus(HANDLE CompletionPort, DWORD dwNumberOfBytesTransferred, ULONG_PTR dwCompletionKey,
                                LPOVERLAPPED lpOverlapped)
{
    return BaseBoolStatus(NtSetIoCompletion(CompletionPort, (PVOID)dwCompletionKey, lpOverlapped, STATUS_SUCCESS,
                                            dwNumberOfBytesTransferred));
}

/* Sets the last error of a removal that returned no packet. */
static BOOL BaseNothingRemoved(NTSTATUS Status)
{
    if (Status == STATUS_TIMEOUT) {
        BaseSetLastError(WAIT_TIMEOUT);
    } else if (Status == STATUS_ABANDONED_WAIT_0) {
        BaseSetLastError(ERROR_ABANDONED_WAIT_0);
    } else if (Status == STATUS_USER_APC) {
        BaseSetLastError(WAIT_IO_COMPLETION);
    } else {
        BaseSetLastNTError(Status);
    }
    return FALSE;
}

BOOL GetQueuedCompletionStatus(HANDLE CompletionPort, LPDWORD lpNumberOfBytesTransferred, PULONG_PTR lpCompletionKey,
                               LPOVERLAPPED *lpOverlapped, DWORD dwMilliseconds)
{
    LARGE_INTEGER Interval;
    IO_STATUS_BLOCK IoStatus;
    PVOID Key, Overlapped;

    if (lpNumberOfBytesTransferred == NULL || lpCompletionKey == NULL || lpOverlapped == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    NTSTATUS Status = NtRemoveIoCompletion(CompletionPort, &Key, &Overlapped, &IoStatus,
                                           BaseFormatTimeOut(&Interval, dwMilliseconds));
    if (Status != STATUS_SUCCESS) {
        *lpOverlapped = NULL;
        return BaseNothingRemoved(Status);
    }
    *lpNumberOfBytesTransferred = (DWORD)IoStatus.Information;
    *lpCompletionKey = (ULONG_PTR)Key;
    *lpOverlapped = Overlapped;
    return BaseBoolStatus(IoStatus.Status);
}

BOOL GetQueuedCompletionStatusEx(HANDLE CompletionPort, LPOVERLAPPED_ENTRY lpCompletionPortEntries, ULONG ulCount,
                                 PULONG ulNumEntriesRemoved, DWORD dwMilliseconds, BOOL fAlertable)
{
    PFILE_IO_COMPLETION_INFORMATION Entries = (PFILE_IO_COMPLETION_INFORMATION)(PVOID)lpCompletionPortEntries;
    BASE_WAIT_TIME Time;
    NTSTATUS Status;

    BaseBeginWait(&Time, dwMilliseconds, fAlertable);
    do {
        Status = NtRemoveIoCompletionEx(CompletionPort, Entries, ulCount, ulNumEntriesRemoved, Time.Timeout,
                                        Time.Alertable);
    } while (BaseWaitAgain(&Time, Status));
    return Status == STATUS_SUCCESS ? TRUE : BaseNothingRemoved(Status);
}
