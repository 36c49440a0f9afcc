/* version.c: the version of Windows that this library reports. */
#include <interlock/rtldriver.h>

static const RTL_OSVERSIONINFOEXW RtlpVersion = {
    .dwOSVersionInfoSize = sizeof(RTL_OSVERSIONINFOEXW),
    .dwMajorVersion = 10,
    .dwMinorVersion = 0,
    .dwBuildNumber = 19045,
    .dwPlatformId = VER_PLATFORM_WIN32_NT,
    .wProductType = VER_NT_WORKSTATION,
};

NTSTATUS RtlGetVersion(PRTL_OSVERSIONINFOW lpVersionInformation)
{
    ULONG Size = lpVersionInformation->dwOSVersionInfoSize;
    /* Any other size counts as that of the short form, as on Windows. */
    memcpy(lpVersionInformation, &RtlpVersion, Size == sizeof(RTL_OSVERSIONINFOEXW) ? Size : sizeof(RTL_OSVERSIONINFOW));
    lpVersionInformation->dwOSVersionInfoSize = Size;
    return STATUS_SUCCESS;
}

/* A member that can be compared. */
typedef struct _RTLP_VERSION_MEMBER {
    ULONG Type;
    ULONG Ours;
    ULONG Theirs;
} RTLP_VERSION_MEMBER;

static ULONG RtlpConditionShift(ULONG Type)
{
    return (ULONG)__builtin_ctz(Type) * VER_NUM_BITS_PER_CONDITION_MASK;
}

static ULONG RtlpConditionOf(ULONGLONG ConditionMask, ULONG Type)
{
    return (ULONG)(ConditionMask >> RtlpConditionShift(Type)) & VER_CONDITION_MASK;
}

static BOOLEAN RtlpIsConditionTrue(ULONG Condition, ULONG Ours, ULONG Theirs)
{
    switch (Condition) {
    case VER_EQUAL:
        return Ours == Theirs;
    case VER_GREATER:
        return Ours > Theirs;
    case VER_GREATER_EQUAL:
        return Ours >= Theirs;
    case VER_LESS:
        return Ours < Theirs;
    case VER_LESS_EQUAL:
        return Ours <= Theirs;
    case VER_AND: /* of a set of suites: all of them */
        return (Ours & Theirs) == Theirs;
    default: /* VER_OR: one of them */
        return Theirs == 0 || (Ours & Theirs) != 0;
    }
}

/* Numbers of decreasing significance: the first one that differs decides by its condition; if none does, the last one. */
static BOOLEAN RtlpCompareNumbers(const RTLP_VERSION_MEMBER *Members, ULONG Count, ULONG TypeMask, ULONGLONG ConditionMask)
{
    BOOLEAN Result = TRUE;
    for (ULONG Index = 0; Index < Count; Index++) {
        const RTLP_VERSION_MEMBER *Member = &Members[Index];
        if ((TypeMask & Member->Type) != 0) {
            Result = RtlpIsConditionTrue(RtlpConditionOf(ConditionMask, Member->Type), Member->Ours, Member->Theirs);
            if (Member->Ours != Member->Theirs) {
                break;
            }
        }
    }
    return Result;
}

static BOOLEAN RtlpIsConditionKnown(ULONG Type, ULONG Condition)
{
    return Type == VER_SUITENAME ? Condition >= VER_AND : Condition >= VER_EQUAL && Condition <= VER_LESS_EQUAL;
}

NTSTATUS RtlVerifyVersionInfo(PRTL_OSVERSIONINFOEXW VersionInfo, ULONG TypeMask, ULONGLONG ConditionMask)
{
    const RTL_OSVERSIONINFOEXW *Ours = &RtlpVersion;
    const RTLP_VERSION_MEMBER Numbers[] = {
        {VER_MAJORVERSION, Ours->dwMajorVersion, VersionInfo->dwMajorVersion},
        {VER_MINORVERSION, Ours->dwMinorVersion, VersionInfo->dwMinorVersion},
        {VER_SERVICEPACKMAJOR, Ours->wServicePackMajor, VersionInfo->wServicePackMajor},
        {VER_SERVICEPACKMINOR, Ours->wServicePackMinor, VersionInfo->wServicePackMinor},
    };
    const RTLP_VERSION_MEMBER Others[] = {
        {VER_BUILDNUMBER, Ours->dwBuildNumber, VersionInfo->dwBuildNumber},
        {VER_PLATFORMID, Ours->dwPlatformId, VersionInfo->dwPlatformId},
        {VER_PRODUCT_TYPE, Ours->wProductType, VersionInfo->wProductType},
        {VER_SUITENAME, Ours->wSuiteMask, VersionInfo->wSuiteMask},
    };
    BOOLEAN Result;
    if (TypeMask == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    for (ULONG Type = VER_MINORVERSION; Type <= VER_PRODUCT_TYPE; Type <<= 1) {
        if ((TypeMask & Type) != 0 && !RtlpIsConditionKnown(Type, RtlpConditionOf(ConditionMask, Type))) {
            return STATUS_INVALID_PARAMETER;
        }
    }
    Result = RtlpCompareNumbers(Numbers, RTL_NUMBER_OF(Numbers), TypeMask, ConditionMask);
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(Others); Index++) {
        Result = Result && RtlpCompareNumbers(&Others[Index], 1, TypeMask, ConditionMask);
    }
    return Result ? STATUS_SUCCESS : STATUS_REVISION_MISMATCH;
}

ULONGLONG VerSetConditionMask(ULONGLONG ConditionMask, ULONG TypeMask, UCHAR Condition)
{
    for (ULONG Type = VER_MINORVERSION; Type <= VER_PRODUCT_TYPE; Type <<= 1) {
        if ((TypeMask & Type) != 0) {
            ConditionMask &= ~((ULONGLONG)VER_CONDITION_MASK << RtlpConditionShift(Type));
            ConditionMask |= (ULONGLONG)(Condition & VER_CONDITION_MASK) << RtlpConditionShift(Type);
        }
    }
    return ConditionMask;
}
