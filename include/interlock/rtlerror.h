/* rtlerror.h: a thread's last error and last status. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_RTLERROR_H
#define INTERLOCK_RTLERROR_H

#include <interlock/winerror.h>

INTERLOCK_BEGIN

/* The Win32 error that stands for a status; ERROR_MR_MID_NOT_FOUND where none does. */
NTSYSAPI ULONG RtlNtStatusToDosError(NTSTATUS Status);
NTSYSAPI ULONG RtlNtStatusToDosErrorNoTeb(NTSTATUS Status); /* does not become RtlGetLastNtStatus */

NTSYSAPI ULONG RtlGetLastWin32Error(VOID);
NTSYSAPI VOID RtlSetLastWin32Error(ULONG Win32Error);
NTSYSAPI VOID RtlRestoreLastWin32Error(ULONG Win32Error);
NTSYSAPI NTSTATUS RtlGetLastNtStatus(VOID);
NTSYSAPI VOID RtlSetLastWin32ErrorAndNtStatusFromNtStatus(NTSTATUS Status);

INTERLOCK_END

#endif
