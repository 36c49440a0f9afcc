/*
 * criticalsectiondebug.c: debugging support for critical sections: the list of sections with debug information, their
 * contention, long waits, and sections that an ended thread still owns.
 */
#include "criticalsection.h"

#include "../ke/debugdata.h"
#include "../ob/obp.h"

LIST_ENTRY RtlCriticalSectionList = {&RtlCriticalSectionList, &RtlCriticalSectionList};
KD_REGISTER_ROOT(RtlCriticalSectionList);
KI_LOCK RtlCriticalSectionLock;
volatile LONGLONG RtlpTimeout = RTLP_DEFAULT_TIMEOUT * RTLP_SECOND;
volatile ULONG RtlpPossibleDeadlocks;

/* Debug information. */

NTSTATUS RtlpCreateDebugInfo(PRTL_CRITICAL_SECTION CriticalSection, ULONG Flags)
{
    PRTL_CRITICAL_SECTION_DEBUG DebugInfo = HalAllocate(sizeof(*DebugInfo), __alignof__(*DebugInfo));
    if (DebugInfo == NULL) {
        return STATUS_NO_MEMORY;
    }
    DebugInfo->Type = Flags & RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE ? RTL_RESOURCE_TYPE : RTL_CRITSECT_TYPE;
    DebugInfo->Flags = Flags & RTL_CRITICAL_SECTION_FLAG_STATIC_INIT ? RTL_CRITICAL_SECTION_DEBUG_FLAG_STATIC_INIT : 0;
    DebugInfo->CriticalSection = CriticalSection;
    CriticalSection->DebugInfo = DebugInfo;
    PKTHREAD Thread = KiEnterLocked(&RtlCriticalSectionLock);
    InsertTailList(&RtlCriticalSectionList, &DebugInfo->ProcessLocksList);
    KiExitLocked(&RtlCriticalSectionLock, Thread);
    return STATUS_SUCCESS;
}

static BOOLEAN RtlpIsDebugInfo(PRTL_CRITICAL_SECTION_DEBUG DebugInfo)
{
    return DebugInfo != NULL && DebugInfo != RTLP_NO_DEBUG_INFO;
}

VOID RtlpDeleteDebugInfo(PRTL_CRITICAL_SECTION_DEBUG DebugInfo)
{
    if (RtlpIsDebugInfo(DebugInfo)) {
        PKTHREAD Thread = KiEnterLocked(&RtlCriticalSectionLock);
        RemoveEntryList(&DebugInfo->ProcessLocksList);
        KiExitLocked(&RtlCriticalSectionLock, Thread);
        HalFree(DebugInfo);
    }
}

VOID RtlpCountContention(PRTL_CRITICAL_SECTION_DEBUG DebugInfo)
{
    if (RtlpIsDebugInfo(DebugInfo)) {
        /* relaxed: statistics */
        __atomic_add_fetch(&DebugInfo->EntryCount, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&DebugInfo->ContentionCount, 1, __ATOMIC_RELAXED);
    }
}

ULONG RtlpContentionCount(PRTL_CRITICAL_SECTION_DEBUG DebugInfo)
{
    /* relaxed: statistics */
    return RtlpIsDebugInfo(DebugInfo) ? __atomic_load_n(&DebugInfo->ContentionCount, __ATOMIC_RELAXED) : 0;
}

/* Long waits. */

static LONGLONG RtlpReadTimeout(VOID)
{
    /* relaxed: a setting */
    return __atomic_load_n(&RtlpTimeout, __ATOMIC_RELAXED);
}

PLARGE_INTEGER RtlpDeadlockTimeout(PLARGE_INTEGER Timeout)
{
    Timeout->QuadPart = -RtlpReadTimeout();
    return Timeout->QuadPart != 0 ? Timeout : NULL;
}

DECLSPEC_NOINLINE VOID RtlpReportPossibleDeadlock(const RTLP_LONG_WAIT *Wait)
{
    /* relaxed: statistics */
    __atomic_add_fetch(&RtlpPossibleDeadlocks, 1, __ATOMIC_RELAXED);
    HalPrint("interlock: possible deadlock: thread %u.%u has waited %lld ms in %s for %p\n", HalCurrentProcessId(),
             HalCurrentThreadId(), RtlpReadTimeout() / RTLP_MILLISECOND, Wait->Function, Wait->Lock);
    HalPrint("  owner: thread %u, count %d (0x%08X), waiters %u, ContentionCount %u%s\n", Wait->Owner, Wait->Count,
             (ULONG)Wait->Count, Wait->Waiters, RtlpContentionCount(Wait->DebugInfo),
             RtlpIsDebugInfo(Wait->DebugInfo) ? "" : " (no debug information)");
    HalPrintStackTrace(__builtin_return_address(0));
}

/* Orphans. */

static ULONG RtlpThreadIdOfHandle(HANDLE Handle)
{
    PVOID Thread;
    ULONG ThreadId = 0;
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, 0, &ObpThreadType, KernelMode, &Thread, NULL);
    if (NT_SUCCESS(Status)) {
        ThreadId = ((PKTHREAD)Thread)->ThreadId;
        ObDereferenceObject(Thread);
    }
    return ThreadId;
}

VOID RtlCheckForOrphanedCriticalSections(HANDLE ThreadHandle)
{
    ULONG ThreadId = RtlpThreadIdOfHandle(ThreadHandle);
    PKTHREAD Thread = KiEnterLocked(&RtlCriticalSectionLock);
    PLIST_ENTRY Head = &RtlCriticalSectionList;
    for (PLIST_ENTRY Entry = Head->Flink; ThreadId != 0 && Entry != Head; Entry = Entry->Flink) {
        PRTL_CRITICAL_SECTION_DEBUG DebugInfo = CONTAINING_RECORD(Entry, RTL_CRITICAL_SECTION_DEBUG, ProcessLocksList);
        if (RtlpReadOwner(DebugInfo->CriticalSection) == ThreadId) {
            HalPrint("interlock: critical section %p belongs to thread %u\n", (PVOID)DebugInfo->CriticalSection,
                     ThreadId);
        }
    }
    KiExitLocked(&RtlCriticalSectionLock, Thread);
}
