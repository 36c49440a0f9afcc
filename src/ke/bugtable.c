/*
 * bugtable.c: bugchecks in words: a name and four meanings per code (bugcodes.h), a sentence for the codes that need one,
 * and for codes whose first parameter is a kind of violation, meanings and a sentence per kind. A parameter's value is
 * explained by its meaning: a level, a status, a pool type and a tag have names.
 */
#include "bugtable.h"

#include <stdio.h>
#include <string.h>

#define KI_SMALLEST_ADDRESS 0x10000
#define KI_PAGED_POOL 1
#define KI_NON_PAGED_POOL_NX 512

#define KI_BUGCODE_ENTRY(Name, First, Second, Third, Fourth) {Name, #Name, {First, Second, Third, Fourth}},
#define KI_VERIFIER_ENTRY(Kind, Second, Third, Fourth, Description)                                                    \
    {DRIVER_VERIFIER_DETECTED_VIOLATION, Kind, {Second, Third, Fourth}, Description},
#define KI_IO_ENTRY(Kind, Second, Third, Fourth, Description)                                                          \
    {DRIVER_VERIFIER_IOMANAGER_VIOLATION, Kind, {Second, Third, Fourth}, Description},
#define KI_POOL_ENTRY(Kind, Second, Third, Fourth, Description)                                                        \
    {BAD_POOL_CALLER, Kind, {Second, Third, Fourth}, Description},

static const KI_BUGCODE KiBugCodes[] = {INTERLOCK_BUGCODE_LIST(KI_BUGCODE_ENTRY)};
static const KI_BUGCODE KiUnknownBugCode = {0, "unknown code", {"", "", "", ""}};
static const KI_VIOLATION KiViolations[] = {
    INTERLOCK_VERIFIER_LIST(KI_VERIFIER_ENTRY)
    INTERLOCK_IO_VERIFIER_LIST(KI_IO_ENTRY)
    INTERLOCK_POOL_CALLER_LIST(KI_POOL_ENTRY)
};

static const struct {
    ULONG Code;
    PCSTR Sentence;
} KiSentences[] = {
    {APC_INDEX_MISMATCH, "a critical or guarded region was left more often than entered"},
    {IRQL_NOT_GREATER_OR_EQUAL, "the IRQL is lower than the operation needs"},
    {IRQL_NOT_LESS_OR_EQUAL, "the IRQL is higher than the operation allows"},
    {MAXIMUM_WAIT_OBJECTS_EXCEEDED, "a wait for more objects than there are wait blocks for"},
    {SPIN_LOCK_ALREADY_OWNED, "a spinlock was acquired by the thread that already holds it"},
    {SPIN_LOCK_NOT_OWNED, "a spinlock was released that the thread does not hold"},
    {SPIN_LOCK_INIT_FAILURE, "a spinlock is acquired both as a queued and as an ordinary one"},
    {REFERENCE_BY_POINTER, "the reference count of an object is wrong"},
    {KMODE_EXCEPTION_NOT_HANDLED, "a status was raised and not caught"},
    {SHARED_RESOURCE_CONV_ERROR, "a thread that holds a resource shared waits for it exclusively, and so for itself"},
    {KERNEL_APC_PENDING_DURING_EXIT, "a thread ended in a critical or guarded region, or above PASSIVE_LEVEL"},
    {SYSTEM_EXIT_OWNED_MUTEX, "a worker routine returned while it owns a mutex"},
    {INVALID_KERNEL_HANDLE, "a handle was closed that is not open, or is protected"},
    {ATTEMPTED_SWITCH_FROM_DPC, "a DPC routine waited"},
    {TIMER_OR_DPC_INVALID, "a timer or DPC is invalid"},
    {WORKER_THREAD_RETURNED_AT_BAD_IRQL, "a worker routine returned above PASSIVE_LEVEL"},
    {RESOURCE_NOT_OWNED, "a resource was released or converted that the thread does not own"},
    {WORKER_INVALID, "a work item is already queued, or was freed while it is"},
    {RESOURCE_OWNER_POINTER_INVALID, "the two low bits of an owner pointer are not set"},
    {KERNEL_SECURITY_CHECK_FAILURE, "a list or another structure was found corrupt"},
    {INVALID_PUSH_LOCK_FLAGS, "a pushlock was acquired or released with unknown flags"},
    {KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE, "a pushlock or fast mutex was released that is not held"},
    {KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL, "a pushlock was acquired above APC_LEVEL"},
    {INVALID_SLOT_ALLOCATOR_FLAGS, "a pushlock was created with unknown flags"},
    {ERESOURCE_INVALID_RELEASE, "a resource was released for another thread"},
    {FAST_ERESOURCE_PRECONDITION_VIOLATION, "a resource was used by functions of another kind, or by a wrong owner"},
    {THREAD_TERMINATE_HELD_MUTEX, "a thread ended while it owns a mutex"},
};

const KI_BUGCODE *KiFindBugCode(ULONG Code)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(KiBugCodes); Index++) {
        if (KiBugCodes[Index].Code == Code) {
            return &KiBugCodes[Index];
        }
    }
    return &KiUnknownBugCode;
}

const KI_VIOLATION *KiFindViolation(ULONG Code, ULONG_PTR Kind)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(KiViolations); Index++) {
        if (KiViolations[Index].Code == Code && KiViolations[Index].Kind == Kind) {
            return &KiViolations[Index];
        }
    }
    return NULL;
}

PCSTR KiBugSentence(ULONG Code)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(KiSentences); Index++) {
        if (KiSentences[Index].Code == Code) {
            return KiSentences[Index].Sentence;
        }
    }
    return NULL;
}

PCSTR KiIrqlName(ULONG_PTR Irql)
{
    static const PCSTR Names[HIGH_LEVEL + 1] = {
        [PASSIVE_LEVEL] = "PASSIVE_LEVEL", [APC_LEVEL] = "APC_LEVEL",     [DISPATCH_LEVEL] = "DISPATCH_LEVEL",
        [CMCI_LEVEL] = "CMCI_LEVEL",       [SYNCH_LEVEL] = "SYNCH_LEVEL", [CLOCK_LEVEL] = "CLOCK_LEVEL",
        [IPI_LEVEL] = "IPI_LEVEL",         [HIGH_LEVEL] = "HIGH_LEVEL",
    };
    if (Irql > HIGH_LEVEL) {
        return "no level";
    }
    return Names[Irql] != NULL ? Names[Irql] : "level of a device";
}

static PCSTR KiPoolTypeName(ULONG_PTR PoolType)
{
    return PoolType & KI_PAGED_POOL ? "PagedPool" : PoolType & KI_NON_PAGED_POOL_NX ? "NonPagedPoolNx" : "NonPagedPool";
}

static VOID KiExplainTag(ULONG_PTR Tag, PSTR Buffer, SIZE_T Size)
{
    CHAR Text[sizeof(ULONG) + 1] = "";
    for (ULONG Index = 0; Index < sizeof(ULONG); Index++) {
        CHAR Character = (CHAR)(Tag >> 8 * Index);
        Text[Index] = Character >= ' ' && Character <= '~' ? Character : '.';
    }
    snprintf(Buffer, Size, "'%s'", Text);
}

BOOLEAN KiEndsIn(PCSTR Text, PCSTR End)
{
    SIZE_T Length = strlen(Text);
    return Length >= strlen(End) && strcmp(Text + Length - strlen(End), End) == 0;
}

BOOLEAN KiExplainValue(PCSTR Meaning, ULONG_PTR Value, PSTR Buffer, SIZE_T Size)
{
    Buffer[0] = '\0';
    if (strchr(Meaning, ',') != NULL || strstr(Meaning, "<<") != NULL) {
        return FALSE; /* it already lists values */
    }
    if (strstr(Meaning, "IRQL") != NULL && Value < KI_SMALLEST_ADDRESS) {
        snprintf(Buffer, Size, "%s", KiIrqlName(Value));
    } else if (KiEndsIn(Meaning, "status")) {
        PCSTR Name = KiStatusName((NTSTATUS)Value);
        snprintf(Buffer, Size, "%s (0x%08X)", Name != NULL ? Name : "no known status", (ULONG)Value);
    } else if (KiEndsIn(Meaning, "pool type")) {
        snprintf(Buffer, Size, "%s", KiPoolTypeName(Value));
    } else if (KiEndsIn(Meaning, "tag")) {
        KiExplainTag(Value, Buffer, Size);
    } else if (strstr(Meaning, "ApcDisable") != NULL) {
        snprintf(Buffer, Size, "%d", (SHORT)Value);
    } else {
        return Value >= KI_SMALLEST_ADDRESS;
    }
    return FALSE;
}
