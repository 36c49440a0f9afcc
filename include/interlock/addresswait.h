/* addresswait.h: waiting for a value to change. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_ADDRESSWAIT_H
#define INTERLOCK_ADDRESSWAIT_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/*
 * Waits while the AddressSize bytes (1, 2, 4 or 8) at Address are the same as those at CompareAddress; any alignment.
 * It may return early, so look again. Who changes the value wakes afterwards, the longest waiter of the address or all
 * of them; an address that nobody waits for, and NULL, wake nobody.
 *
 * A wake without a fence is for who has ordered the change of the value before it already, by an interlocked operation
 * on it for example.
 */
NTSYSAPI NTSTATUS RtlWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize,
                                   PLARGE_INTEGER Timeout);
NTSYSAPI VOID RtlWakeAddressSingle(PVOID Address);
NTSYSAPI VOID RtlWakeAddressSingleNoFence(PVOID Address);
NTSYSAPI VOID RtlWakeAddressAll(PVOID Address);
NTSYSAPI VOID RtlWakeAddressAllNoFence(PVOID Address);

INTERLOCK_END

#endif
