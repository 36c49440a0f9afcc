/*
 * threadpool.h: the thread pool, and the older work items, registered waits and timer queues. See docs/thread-pool.md.
 *
 * Objects are allocated (STATUS_NO_MEMORY, STATUS_INVALID_PARAMETER) and released; a released object lives until its
 * callbacks are over.
 */
#ifndef INTERLOCK_THREADPOOL_H
#define INTERLOCK_THREADPOOL_H

#include <interlock/rtl.h>

INTERLOCK_BEGIN

struct _IO_STATUS_BLOCK;

typedef VOID (*PTP_IO_CALLBACK)(PTP_CALLBACK_INSTANCE Instance, PVOID Context, PVOID ApcContext,
                                struct _IO_STATUS_BLOCK *IoStatusBlock, PTP_IO Io);
typedef WAITORTIMERCALLBACKFUNC RTL_WAITORTIMERCALLBACKFUNC;

/* Pools. */

/* Allocates a pool. It gets threads when it has objects. Since Vista. */
NTSYSAPI NTSTATUS TpAllocPool(PTP_POOL *PoolReturn, PVOID Reserved);

/* Releases the pool, which lives until the last of its objects is gone. Since Vista. */
NTSYSAPI VOID TpReleasePool(PTP_POOL Pool);

/* Sets the maximum number of threads, 500 by default; 0 counts as 1. Since Vista. */
NTSYSAPI VOID TpSetPoolMaxThreads(PTP_POOL Pool, ULONG MaxThreads);

/* Sets the number of threads that stay, and creates them. Since Vista. */
NTSYSAPI NTSTATUS TpSetPoolMinThreads(PTP_POOL Pool, ULONG MinThreads);

/* Sets the stack sizes of threads created later. Returns STATUS_INVALID_PARAMETER for bad sizes. Since 7. */
NTSYSAPI NTSTATUS TpSetPoolStackInformation(PTP_POOL Pool, PTP_POOL_STACK_INFORMATION PoolStackInformation);

/* Returns the sizes that were set. Since 7. */
NTSYSAPI NTSTATUS TpQueryPoolStackInformation(PTP_POOL Pool, PTP_POOL_STACK_INFORMATION PoolStackInformation);

/* Cleanup groups. Objects that are released together. */

/* Allocates a group of objects that are released together. Since Vista. */
NTSYSAPI NTSTATUS TpAllocCleanupGroup(PTP_CLEANUP_GROUP *CleanupGroupReturn);

/* Releases the group, which lives until its last member is gone. Since Vista. */
NTSYSAPI VOID TpReleaseCleanupGroup(PTP_CLEANUP_GROUP CleanupGroup);

/* Releases all members and waits for their callbacks, cancelling pending ones if asked. Then calls the cancel callback
   of each member that was cancelled before the program has released it. Since Vista. */
NTSYSAPI VOID TpReleaseCleanupGroupMembers(PTP_CLEANUP_GROUP CleanupGroup, LOGICAL CancelPendingCallbacks,
                                           PVOID CleanupParameter);

/* Inside a callback. What happens when it returns, and what the pool should know about it. */

/* Sets, releases or leaves the object when the callback returns. One of each kind: a second one raises
   STATUS_INVALID_PARAMETER. Since Vista. */
NTSYSAPI VOID TpCallbackSetEventOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Event);
NTSYSAPI VOID TpCallbackReleaseSemaphoreOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Semaphore,
                                                     ULONG ReleaseCount);
NTSYSAPI VOID TpCallbackReleaseMutexOnCompletion(PTP_CALLBACK_INSTANCE Instance, HANDLE Mutex);
NTSYSAPI VOID TpCallbackLeaveCriticalSectionOnCompletion(PTP_CALLBACK_INSTANCE Instance,
                                                         PRTL_CRITICAL_SECTION CriticalSection);

/* Unloads a module when the callback returns. Differs: modules are never unloaded. Since Vista. */
NTSYSAPI VOID TpCallbackUnloadDllOnCompletion(PTP_CALLBACK_INSTANCE Instance, PVOID DllHandle);

/* Stops counting the callback as running. Returns STATUS_TOO_MANY_THREADS if no other thread can take over. Since
   Vista. */
NTSYSAPI NTSTATUS TpCallbackMayRunLong(PTP_CALLBACK_INSTANCE Instance);

/* Counts the callback as finished for threads that wait on the object, but not for its cleanup group. Since Vista. */
NTSYSAPI VOID TpDisassociateCallback(PTP_CALLBACK_INSTANCE Instance);

/* Work objects. Posting cannot fail. */

/* Queues one callback without an object. Returns STATUS_NO_MEMORY, or STATUS_INSUFFICIENT_RESOURCES if the host gives
   no thread for it. Since Vista. */
NTSYSAPI NTSTATUS TpSimpleTryPost(PTP_SIMPLE_CALLBACK Callback, PVOID Context, PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Allocates a work object, and the first thread of its pool. Since Vista. */
NTSYSAPI NTSTATUS TpAllocWork(PTP_WORK *WorkReturn, PTP_WORK_CALLBACK Callback, PVOID Context,
                              PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Releases the object. Since Vista. */
NTSYSAPI VOID TpReleaseWork(PTP_WORK Work);

/* Queues one more callback; cannot fail. Callbacks of one object run concurrently. Since Vista. */
NTSYSAPI VOID TpPostWork(PTP_WORK Work);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
NTSYSAPI VOID TpWaitForWork(PTP_WORK Work, LOGICAL CancelPendingCallbacks);

/* Timer objects. */

/* Allocates a timer object. Since Vista. */
NTSYSAPI NTSTATUS TpAllocTimer(PTP_TIMER *Timer, PTP_TIMER_CALLBACK Callback, PVOID Context,
                               PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Releases the object, which no longer expires. Since Vista. */
NTSYSAPI VOID TpReleaseTimer(PTP_TIMER Timer);

/* Sets the timer: the due time in 100 ns, relative if negative, 0 for at once, NULL for never; period and window in
   milliseconds. The Ex form returns TRUE if the timer was already set and that setting was replaced before it expired.
   Since Vista, 8. */
NTSYSAPI VOID TpSetTimer(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength);
NTSYSAPI LOGICAL TpSetTimerEx(PTP_TIMER Timer, PLARGE_INTEGER DueTime, ULONG Period, ULONG WindowLength);

/* Returns TRUE if the last call that set the timer gave it a due time, even if it has expired since. Since Vista. */
NTSYSAPI LOGICAL TpIsTimerSet(PTP_TIMER Timer);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. The timer stays set. Since Vista. */
NTSYSAPI VOID TpWaitForTimer(PTP_TIMER Timer, LOGICAL CancelPendingCallbacks);

/* Wait objects. One callback per setting. Mutexes are refused, since only a thread can own one. */

/* Allocates a wait object. Since Vista. */
NTSYSAPI NTSTATUS TpAllocWait(PTP_WAIT *WaitReturn, PTP_WAIT_CALLBACK Callback, PVOID Context,
                              PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Releases the object, which no longer waits. Since Vista. */
NTSYSAPI VOID TpReleaseWait(PTP_WAIT Wait);

/* Queues one callback when the object is signaled or the time is over; a NULL handle cancels the wait. A bad handle
   raises its status. The Ex form returns TRUE if a wait was already set and was replaced before it fired. Differs: a
   mutex raises STATUS_THREADPOOL_HANDLE_EXCEPTION. Since Vista, 8. */
NTSYSAPI VOID TpSetWait(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout);
NTSYSAPI LOGICAL TpSetWaitEx(PTP_WAIT Wait, HANDLE Handle, PLARGE_INTEGER Timeout, PVOID Reserved);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
NTSYSAPI VOID TpWaitForWait(PTP_WAIT Wait, LOGICAL CancelPendingCallbacks);

/* I/O objects. Files are descriptor objects (io.h). */

/* Binds a file to callbacks. Differs: the file is a descriptor object; anything else is STATUS_OBJECT_TYPE_MISMATCH.
   Since Vista. */
NTSYSAPI NTSTATUS TpAllocIoCompletion(PTP_IO *IoReturn, HANDLE File, PTP_IO_CALLBACK Callback, PVOID Context,
                                      PTP_CALLBACK_ENVIRON CallbackEnviron);

/* Releases the object. Since Vista. */
NTSYSAPI VOID TpReleaseIoCompletion(PTP_IO Io);

/* Announces an operation, which will have one callback. Differs: the callback runs when the descriptor is ready, one
   after the other. Since Vista. */
NTSYSAPI VOID TpStartAsyncIoOperation(PTP_IO Io);

/* Withdraws an announced operation that has failed: it has no callback. Since Vista. */
NTSYSAPI VOID TpCancelAsyncIoOperation(PTP_IO Io);

/* Blocks until no callback is queued or running, cancelling pending ones if asked. Since Vista. */
NTSYSAPI VOID TpWaitForIoCompletion(PTP_IO Io, LOGICAL CancelPendingCallbacks);

/* The older interface. Everything runs in the pool of the process. */

/* Runs a routine in the pool of the process. Returns STATUS_NO_MEMORY if memory is exhausted. Since 2000. */
NTSYSAPI NTSTATUS RtlQueueWorkItem(WORKERCALLBACKFUNC Function, PVOID Context, ULONG Flags);

/* Runs a routine each time an object is signaled or the time is over, also while an earlier call runs. Differs: it
   references the object; a wait for a mutex has a thread of its own, which runs the routine. Since 2000. */
NTSYSAPI NTSTATUS RtlRegisterWait(PHANDLE WaitHandle, HANDLE Handle, WAITORTIMERCALLBACKFUNC Function, PVOID Context,
                                  ULONG Milliseconds, ULONG Flags);

/* Ends a registered wait. Returns STATUS_PENDING while calls of the routine are pending or running, which still occur.
   The Ex form sets Event after the last one, or blocks until then if Event is -1. Since 2000. */
NTSYSAPI NTSTATUS RtlDeregisterWait(HANDLE WaitHandle);
NTSYSAPI NTSTATUS RtlDeregisterWaitEx(HANDLE WaitHandle, HANDLE Event);

/* Creates a timer queue. Since 2000. */
NTSYSAPI NTSTATUS RtlCreateTimerQueue(PHANDLE TimerQueueHandle);

/* Creates a timer in a queue, or with NULL in the queue of the process. Times are in milliseconds. Since 2000. */
NTSYSAPI NTSTATUS RtlCreateTimer(HANDLE TimerQueueHandle, PHANDLE Handle, WAITORTIMERCALLBACKFUNC Function,
                                 PVOID Context, ULONG DueTime, ULONG Period, ULONG Flags);

/* Changes the due time and period. Since 2000. */
NTSYSAPI NTSTATUS RtlUpdateTimer(HANDLE TimerQueueHandle, HANDLE TimerHandle, ULONG DueTime, ULONG Period);

/* Deletes a timer. Event and STATUS_PENDING are those of RtlDeregisterWaitEx. Since 2000. */
NTSYSAPI NTSTATUS RtlDeleteTimer(HANDLE TimerQueueHandle, HANDLE TimerToCancel, HANDLE Event);

/* Deletes a queue with all its timers. Event is that of RtlDeregisterWaitEx. Since 2000. */
NTSYSAPI NTSTATUS RtlDeleteTimerQueue(HANDLE TimerQueueHandle);
NTSYSAPI NTSTATUS RtlDeleteTimerQueueEx(HANDLE TimerQueueHandle, HANDLE Event);

INTERLOCK_END

#endif
