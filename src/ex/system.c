/*
 * system.c: services of the executive that need no object: local time and the resolution of the clock, unique identifiers,
 * probing addresses, routines of the kernel by name.
 *
 * The clock always has the host's resolution. Requests are recorded only so that they can be queried: one of the process, which
 * the last call sets, and those of drivers, which nest. The finest of them is the current resolution.
 */
#include <interlock/ex.h>

#include "exp.h"

#include "../hal/hal.h"

static volatile ULONG ExpProcessResolution; /* in 100 ns; 0: none */
static volatile ULONG ExpDriverResolution;  /* the finest request since there was none */
static ULONG ExpDriverRequests;
static KI_LOCK ExpResolutionLock; /* for the two above */

static LONGLONG ExpZoneOffset(VOID)
{
    LARGE_INTEGER Now;
    KeQuerySystemTimePrecise(&Now);
    return HalQueryZoneOffset((ULONGLONG)Now.QuadPart);
}

VOID ExSystemTimeToLocalTime(PLARGE_INTEGER SystemTime, PLARGE_INTEGER LocalTime)
{
    LocalTime->QuadPart = SystemTime->QuadPart + ExpZoneOffset();
}

VOID ExLocalTimeToSystemTime(PLARGE_INTEGER LocalTime, PLARGE_INTEGER SystemTime)
{
    SystemTime->QuadPart = LocalTime->QuadPart - ExpZoneOffset();
}

static ULONG ExpBoundedResolution(ULONG DesiredTime)
{
    ULONG Finest = DesiredTime < EXP_FINEST_RESOLUTION ? EXP_FINEST_RESOLUTION : DesiredTime;
    return Finest < EXP_COARSEST_RESOLUTION ? Finest : EXP_COARSEST_RESOLUTION;
}

/* relaxed, both here and below: advisory only, publishes nothing */
static ULONG ExpCurrentResolution(VOID)
{
    ULONG Process = __atomic_load_n(&ExpProcessResolution, __ATOMIC_RELAXED);
    ULONG Driver = __atomic_load_n(&ExpDriverResolution, __ATOMIC_RELAXED);
    ULONG Finest = Process != 0 && (Driver == 0 || Process < Driver) ? Process : Driver;
    return Finest != 0 ? Finest : EXP_COARSEST_RESOLUTION;
}

BOOLEAN ExpSetProcessResolution(ULONG DesiredTime, BOOLEAN Set, PULONG Current)
{
    ULONG Wanted = Set ? ExpBoundedResolution(DesiredTime) : 0;
    ULONG Before = __atomic_exchange_n(&ExpProcessResolution, Wanted, __ATOMIC_RELAXED);
    *Current = ExpCurrentResolution();
    return Before != 0;
}

ULONG ExSetTimerResolution(ULONG DesiredTime, BOOLEAN SetResolution)
{
    ULONG Wanted = ExpBoundedResolution(DesiredTime);
    PKTHREAD Thread = KiEnterLocked(&ExpResolutionLock);
    if (SetResolution) {
        ExpDriverRequests++;
        if (ExpDriverResolution == 0 || Wanted < ExpDriverResolution) {
            __atomic_store_n(&ExpDriverResolution, Wanted, __ATOMIC_RELAXED);
        }
    } else if (ExpDriverRequests != 0 && --ExpDriverRequests == 0) {
        __atomic_store_n(&ExpDriverResolution, 0, __ATOMIC_RELAXED);
    }
    KiExitLocked(&ExpResolutionLock, Thread);
    return ExpCurrentResolution();
}

VOID ExQueryTimerResolution(PULONG MaximumTime, PULONG MinimumTime, PULONG CurrentTime)
{
    *MaximumTime = EXP_COARSEST_RESOLUTION;
    *MinimumTime = EXP_FINEST_RESOLUTION;
    *CurrentTime = ExpCurrentResolution();
}

/*
 * Unique identifiers of version 1 (RFC 4122): 60 bits of time, 14 of a clock sequence, 48 of a node.
 *
 * The time is the system's, or one more than the last one given out in this process, so that no two calls get the same.
 * Processes differ by the node, which is random with the multicast bit set, as the RFC requires of a node that is not
 * an address. A child of fork has its parent's random bits, so the process id is mixed in.
 */

#define EXP_UUID_EPOCH 5748192000000000LL /* from 1582-10-15 to 1601-01-01 */
#define EXP_UUID_VERSION 0x1000
#define EXP_UUID_VARIANT 0x80
#define EXP_UUID_MULTICAST 0x01

typedef struct _EXP_UUID_NODE {
    UCHAR Node[6];
    UCHAR Sequence[2];
} EXP_UUID_NODE;

static LONGLONG ExpLastUuidTime;

static LONGLONG ExpNextUuidTime(VOID)
{
    LARGE_INTEGER Now;
    LONGLONG Last, Next;
    KeQuerySystemTimePrecise(&Now);
    Now.QuadPart += EXP_UUID_EPOCH;
    Last = __atomic_load_n(&ExpLastUuidTime, __ATOMIC_RELAXED);
    do {
        Next = Now.QuadPart > Last ? Now.QuadPart : Last + 1;
        /* relaxed: only the values must differ */
    } while (!__atomic_compare_exchange_n(&ExpLastUuidTime, &Last, Next, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return Next;
}

NTSTATUS ExUuidCreate(UUID *Uuid)
{
    static ULONGLONG Chosen; /* the node and sequence of the process; 0: not yet */
    ULONGLONG Bits = __atomic_load_n(&Chosen, __ATOMIC_RELAXED);
    ULONGLONG None = 0;
    EXP_UUID_NODE Node;
    ULONG ProcessId = HalCurrentProcessId();
    ULONGLONG Time = (ULONGLONG)ExpNextUuidTime();
    /* The first thread's choice counts; relaxed: nothing else depends on it. */
    if (Bits == 0 && HalQueryRandom(&Bits, sizeof(Bits)) && Bits != 0 &&
        !__atomic_compare_exchange_n(&Chosen, &None, Bits, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        Bits = None;
    }
    memcpy(&Node, &Bits, sizeof(Node));
    for (ULONG Index = 0; Index < sizeof(ProcessId); Index++) {
        Node.Node[2 + Index] ^= (UCHAR)(ProcessId >> Index * 8);
    }
    Uuid->Data1 = (ULONG)Time;
    Uuid->Data2 = (USHORT)(Time >> 32);
    Uuid->Data3 = (USHORT)((Time >> 48 & 0x0FFF) | EXP_UUID_VERSION);
    Uuid->Data4[0] = (UCHAR)((Node.Sequence[0] & 0x3F) | EXP_UUID_VARIANT);
    Uuid->Data4[1] = Node.Sequence[1];
    Node.Node[0] |= EXP_UUID_MULTICAST;
    memcpy(&Uuid->Data4[2], Node.Node, sizeof(Node.Node));
    return Bits != 0 ? STATUS_SUCCESS : RPC_NT_UUID_LOCAL_ONLY;
}

/* Checking addresses that a user passes. */

/* Raises unless the buffer is aligned and below the addresses of the kernel. */
static VOID ExpProbe(ULONG_PTR Address, SIZE_T Length, ULONG Alignment)
{
    if (Address & (Alignment - 1)) {
        ExRaiseDatatypeMisalignment();
    }
    if (Address + Length < Address || Address + Length > MM_USER_PROBE_ADDRESS) {
        ExRaiseAccessViolation();
    }
}

VOID ProbeForRead(const volatile VOID *Address, SIZE_T Length, ULONG Alignment)
{
    if (Length != 0) {
        ExpProbe((ULONG_PTR)Address, Length, Alignment);
    }
}

BOOLEAN MmIsAddressValid(PVOID VirtualAddress)
{
    HAL_MAPPING Mapping;
    return NT_SUCCESS(HalQueryMapping((ULONG_PTR)VirtualAddress, &Mapping)) && Mapping.Mapped &&
           (Mapping.Access & HAL_ACCESS_READ) != 0;
}

VOID ProbeForWrite(volatile VOID *Address, SIZE_T Length, ULONG Alignment)
{
    ULONG_PTR At = (ULONG_PTR)Address;
    HAL_MAPPING Mapping;
    if (Length == 0) {
        return;
    }
    ExpProbe(At, Length, Alignment);
    while (At < (ULONG_PTR)Address + Length && NT_SUCCESS(HalQueryMapping(At, &Mapping))) {
        if (!Mapping.Mapped || (Mapping.Access & HAL_ACCESS_WRITE) == 0) {
            ExRaiseAccessViolation();
        }
        At = Mapping.End;
    }
}

#ifdef INTERLOCK_HOST

/* Routines of the kernel by name. */

#define EXP_LONGEST_ROUTINE 128

/* Routines that the kernel and the HAL export; the other exports of this library are user mode's. */
static const PCSTR ExpRoutinePrefixes[] = {"Dbg", "Ex", "Hal", "Io", "Kd", "Ke", "Mm", "Nt", "Ob",
                                           "Probe", "Ps", "Rtl", "vDbg", "Zw"};

static BOOLEAN ExpIsKernelName(PCSTR Name)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(ExpRoutinePrefixes); Index++) {
        SIZE_T Length = strlen(ExpRoutinePrefixes[Index]);
        if (strncmp(Name, ExpRoutinePrefixes[Index], Length) == 0) {
            return TRUE;
        }
    }
    return FALSE;
}

PVOID MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName)
{
    CHAR Name[EXP_LONGEST_ROUTINE];
    ULONG Length = SystemRoutineName->Length / (ULONG)sizeof(WCHAR);
    if (Length == 0 || Length >= sizeof(Name)) {
        return NULL;
    }
    for (ULONG Index = 0; Index < Length; Index++) {
        WCHAR Character = SystemRoutineName->Buffer[Index];
        if (Character == 0 || Character > 0x7F) {
            return NULL;
        }
        Name[Index] = (CHAR)Character;
    }
    Name[Length] = '\0';
    return ExpIsKernelName(Name) ? HalFindExport(HalLibrary, Name) : NULL;
}

#endif
