/* rtlversion.h: the version of Windows, for drivers: 10.0, build 19045, a workstation. */
#ifndef INTERLOCK_RTLVERSION_H
#define INTERLOCK_RTLVERSION_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/* Version. */

/* Stores the version; dwOSVersionInfoSize, set by the caller, says which of the two structures it is. Since 2000. */
NTSYSAPI NTSTATUS RtlGetVersion(PRTL_OSVERSIONINFOW lpVersionInformation);

/* Compares the members that TypeMask names with the version, by the conditions of ConditionMask. Versions are compared from
   the major number on. Returns STATUS_REVISION_MISMATCH if a condition is not true, STATUS_INVALID_PARAMETER if there is
   nothing to compare or no condition for it. Since 2000. */
NTSYSAPI NTSTATUS RtlVerifyVersionInfo(PRTL_OSVERSIONINFOEXW VersionInfo, ULONG TypeMask, ULONGLONG ConditionMask);

/* Returns the mask with the condition for the members of TypeMask. Since 2000. */
NTSYSAPI ULONGLONG VerSetConditionMask(ULONGLONG ConditionMask, ULONG TypeMask, UCHAR Condition);
#define VER_SET_CONDITION(ConditionMask, TypeBitMask, ComparisonType)                                                  \
    ((ConditionMask) = VerSetConditionMask((ConditionMask), (TypeBitMask), (ComparisonType)))

INTERLOCK_END

#endif
