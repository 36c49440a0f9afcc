/* ntalert.h: alerts by thread id. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTALERT_H
#define INTERLOCK_NTALERT_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

/*
 * A thread waits, not alertably, until somebody alerts it by its id. An alert that comes while the thread does not wait
 * is kept for its next wait; two are one. Locks of user mode block in this way too, and an alert may be left over from
 * one of them or from a thread that had the id before, so look at what you wait for again after STATUS_ALERTED.
 *
 * Address only tells a debugger what is waited for. Lock, Boost and BoostCount have no influence on what happens. Of
 * several ids all that are good are alerted, and the status is that of the first that is not.
 */

struct _RTL_SRWLOCK;

NTSYSCALLAPI NTSTATUS NtWaitForAlertByThreadId(PVOID Address, PLARGE_INTEGER Timeout);
NTSYSCALLAPI NTSTATUS NtAlertThreadByThreadId(HANDLE ThreadId);
NTSYSCALLAPI NTSTATUS NtAlertThreadByThreadIdEx(HANDLE ThreadId, struct _RTL_SRWLOCK *Lock);
NTSYSCALLAPI NTSTATUS NtAlertMultipleThreadByThreadId(PHANDLE MultipleThreadId, ULONG Count, PVOID Boost,
                                                      ULONG BoostCount);

INTERLOCK_END

#endif
