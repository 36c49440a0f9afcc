/* completion.h: completion ports. OVERLAPPED and OVERLAPPED_ENTRY are in base.h. Part of win32.h. */
#ifndef INTERLOCK_WIN32_COMPLETION_H
#define INTERLOCK_WIN32_COMPLETION_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* No object here has overlapped operations, so FileHandle is INVALID_HANDLE_VALUE. A descriptor object (descriptor.h)
   gives ERROR_INVALID_PARAMETER, as a file that was not opened for them does; anything else ERROR_INVALID_HANDLE. */
WINBASEAPI HANDLE WINAPI CreateIoCompletionPort(HANDLE FileHandle, HANDLE ExistingCompletionPort,
                                                ULONG_PTR CompletionKey, DWORD NumberOfConcurrentThreads);
WINBASEAPI BOOL WINAPI PostQueuedCompletionStatus(HANDLE CompletionPort, DWORD dwNumberOfBytesTransferred,
                                                  ULONG_PTR dwCompletionKey, LPOVERLAPPED lpOverlapped);
WINBASEAPI BOOL WINAPI GetQueuedCompletionStatus(HANDLE CompletionPort, LPDWORD lpNumberOfBytesTransferred,
                                                 PULONG_PTR lpCompletionKey, LPOVERLAPPED *lpOverlapped,
                                                 DWORD dwMilliseconds);
WINBASEAPI BOOL WINAPI GetQueuedCompletionStatusEx(HANDLE CompletionPort, LPOVERLAPPED_ENTRY lpCompletionPortEntries,
                                                   ULONG ulCount, PULONG ulNumEntriesRemoved, DWORD dwMilliseconds,
                                                   BOOL fAlertable);

INTERLOCK_END

#endif
