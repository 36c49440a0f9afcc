/* schedule.c: affinity, priority class and times of processes, the topology of the machine. */
#include <interlock/ke.h>
#include <interlock/win32/thread.h>

#include "../hal/machine.h"
#include "../ke/ki.h"
#include "base.h"

/* Processes. */

static BOOL BaseQueryProcessClass(HANDLE Process, PROCESSINFOCLASS Class, PVOID Information, ULONG Length)
{
    return BaseBoolStatus(NtQueryInformationProcess(Process, Class, Information, Length, NULL));
}

static BOOL BaseSetProcessClass(HANDLE Process, PROCESSINFOCLASS Class, PVOID Information, ULONG Length)
{
    return BaseBoolStatus(NtSetInformationProcess(Process, Class, Information, Length));
}

BOOL GetProcessAffinityMask(HANDLE hProcess, PDWORD_PTR lpProcessAffinityMask, PDWORD_PTR lpSystemAffinityMask)
{
    PROCESS_BASIC_INFORMATION Basic;
    NTSTATUS Status = NtQueryInformationProcess(hProcess, ProcessBasicInformation, &Basic, sizeof(Basic), NULL);
    if (!NT_SUCCESS(Status) && Status != STATUS_NOT_SUPPORTED) { /* that is about its exit status */
        return BaseBoolStatus(Status);
    }
    if (lpProcessAffinityMask == NULL || lpSystemAffinityMask == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    *lpProcessAffinityMask = Basic.AffinityMask;
    *lpSystemAffinityMask = Basic.AffinityMask != 0 ? KeQueryGroupAffinity(0) : 0;
    return TRUE;
}

BOOL SetProcessAffinityMask(HANDLE hProcess, DWORD_PTR dwProcessAffinityMask)
{
    return BaseSetProcessClass(hProcess, ProcessAffinityMask, &dwProcessAffinityMask, sizeof(KAFFINITY));
}

static const DWORD BasePriorityClasses[] = {
    [PROCESS_PRIORITY_CLASS_UNKNOWN] = 0,
    [PROCESS_PRIORITY_CLASS_IDLE] = IDLE_PRIORITY_CLASS,
    [PROCESS_PRIORITY_CLASS_NORMAL] = NORMAL_PRIORITY_CLASS,
    [PROCESS_PRIORITY_CLASS_HIGH] = HIGH_PRIORITY_CLASS,
    [PROCESS_PRIORITY_CLASS_REALTIME] = REALTIME_PRIORITY_CLASS,
    [PROCESS_PRIORITY_CLASS_BELOW_NORMAL] = BELOW_NORMAL_PRIORITY_CLASS,
    [PROCESS_PRIORITY_CLASS_ABOVE_NORMAL] = ABOVE_NORMAL_PRIORITY_CLASS,
};

DWORD GetPriorityClass(HANDLE hProcess)
{
    PROCESS_PRIORITY_CLASS Class;
    if (!BaseQueryProcessClass(hProcess, ProcessPriorityClass, &Class, sizeof(Class))) {
        return 0;
    }
    return BasePriorityClasses[Class.PriorityClass];
}

static BOOL BaseSetPriorityClass(HANDLE Process, UCHAR Class)
{
    PROCESS_PRIORITY_CLASS Information = {.PriorityClass = Class};
    return BaseSetProcessClass(Process, ProcessPriorityClass, &Information, sizeof(Information));
}

/* Background mode is the idle class, until it ends: then the previous class is restored. */
static BOOL BaseSetBackground(HANDLE Process, BOOLEAN Begin)
{
    static volatile UCHAR ClassBefore; /* 0: not in background mode */
    PROCESS_PRIORITY_CLASS Class;
    UCHAR Before = 0;
    if (Process != GetCurrentProcess()) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    NtQueryInformationProcess(Process, ProcessPriorityClass, &Class, sizeof(Class), NULL);
    if (Begin) {
        /* relaxed, both: the word is self-contained */
        if (!__atomic_compare_exchange_n(&ClassBefore, &Before, Class.PriorityClass, FALSE, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED)) {
            BaseSetLastError(ERROR_PROCESS_MODE_ALREADY_BACKGROUND);
            return FALSE;
        }
        return BaseSetPriorityClass(Process, PROCESS_PRIORITY_CLASS_IDLE);
    }
    Before = __atomic_exchange_n(&ClassBefore, 0, __ATOMIC_RELAXED);
    if (Before == 0) {
        BaseSetLastError(ERROR_PROCESS_MODE_NOT_BACKGROUND);
        return FALSE;
    }
    return BaseSetPriorityClass(Process, Before);
}

BOOL SetPriorityClass(HANDLE hProcess, DWORD dwPriorityClass)
{
    UCHAR Class = RTL_NUMBER_OF(BasePriorityClasses) - 1;
    if (dwPriorityClass == PROCESS_MODE_BACKGROUND_BEGIN || dwPriorityClass == PROCESS_MODE_BACKGROUND_END) {
        return BaseSetBackground(hProcess, dwPriorityClass == PROCESS_MODE_BACKGROUND_BEGIN);
    }
    if (dwPriorityClass == REALTIME_PRIORITY_CLASS) {
        dwPriorityClass = HIGH_PRIORITY_CLASS;
    }
    while (Class != PROCESS_PRIORITY_CLASS_UNKNOWN && BasePriorityClasses[Class] != dwPriorityClass) {
        Class -= 1;
    }
    return BaseSetPriorityClass(hProcess, Class);
}

BOOL SetProcessPriorityBoost(HANDLE hProcess, BOOL bDisablePriorityBoost)
{
    ULONG Disable = bDisablePriorityBoost != FALSE;
    return BaseSetProcessClass(hProcess, ProcessPriorityBoost, &Disable, sizeof(Disable));
}

BOOL GetProcessPriorityBoost(HANDLE hProcess, PBOOL pDisablePriorityBoost)
{
    return BaseQueryProcessClass(hProcess, ProcessPriorityBoost, pDisablePriorityBoost, sizeof(ULONG));
}

BOOL GetProcessTimes(HANDLE hProcess, LPFILETIME lpCreationTime, LPFILETIME lpExitTime, LPFILETIME lpKernelTime,
                     LPFILETIME lpUserTime)
{
    KERNEL_USER_TIMES Times;
    return BaseQueryProcessClass(hProcess, ProcessTimes, &Times, sizeof(Times)) &&
           BaseStoreTimes(&Times, lpCreationTime, lpExitTime, lpKernelTime, lpUserTime);
}

BOOL GetProcessHandleCount(HANDLE hProcess, PDWORD pdwHandleCount)
{
    return BaseQueryProcessClass(hProcess, ProcessHandleCount, pdwHandleCount, sizeof(ULONG));
}

/* Topology. */

static const LOGICAL_PROCESSOR_RELATIONSHIP BaseRelationships[] = {
    [HalCore] = RelationProcessorCore,
    [HalCache] = RelationCache,
    [HalPackage] = RelationProcessorPackage,
    [HalNode] = RelationNumaNode,
};

static const PROCESSOR_CACHE_TYPE BaseCacheTypes[] = {
    [HalCacheUnified] = CacheUnified,
    [HalCacheInstruction] = CacheInstruction,
    [HalCacheData] = CacheData,
};

static BYTE BaseAssociativity(const HAL_RELATION *Relation)
{
    return Relation->Ways != 0 && Relation->Ways < CACHE_FULLY_ASSOCIATIVE ? (BYTE)Relation->Ways
                                                                           : CACHE_FULLY_ASSOCIATIVE;
}

static BYTE BaseCoreFlags(const HAL_RELATION *Relation)
{
    ULONG Processors = 0;
    for (ULONG Word = 0; Word < HAL_PROCESSOR_WORDS; Word++) {
        Processors += (ULONG)__builtin_popcountll(Relation->Processors[Word]);
    }
    return Relation->Kind == HalCore && Processors > 1 ? LTP_PC_SMT : 0;
}

/* Groups that the relation has processors in; at least one. */
static WORD BaseGroupsOf(const HAL_RELATION *Relation)
{
    WORD Groups = 0;
    for (ULONG Group = 0; Group < HAL_PROCESSOR_WORDS; Group++) {
        Groups += Relation->Processors[Group] != 0;
    }
    return Groups;
}

static VOID BaseStoreGroups(const HAL_RELATION *Relation, PGROUP_AFFINITY Affinity)
{
    for (WORD Group = 0; Group < HAL_PROCESSOR_WORDS; Group++) {
        if (Relation->Processors[Group] != 0) {
            memset(Affinity, 0, sizeof(*Affinity));
            Affinity->Mask = Relation->Processors[Group];
            Affinity->Group = Group;
            Affinity += 1;
        }
    }
}

/* What is filled: the length that is needed, and the records as far as they fit. */
typedef struct _BASE_RECORDS {
    PUCHAR Buffer;
    DWORD Room;
    DWORD Needed;
} BASE_RECORDS, *PBASE_RECORDS;

/* Zeroed; NULL: there is no room. */
static PVOID BaseNextRecord(PBASE_RECORDS Records, DWORD Size)
{
    DWORD Offset = Records->Needed;
    Records->Needed += Size;
    return Records->Needed <= Records->Room ? memset(Records->Buffer + Offset, 0, Size) : NULL;
}

static VOID BaseAddRecord(PBASE_RECORDS Records, const HAL_RELATION *Relation)
{
    PSYSTEM_LOGICAL_PROCESSOR_INFORMATION Record;
    if (Relation->Processors[0] == 0) {
        return;
    }
    Record = BaseNextRecord(Records, sizeof(*Record));
    if (Record == NULL) {
        return;
    }
    Record->ProcessorMask = Relation->Processors[0];
    Record->Relationship = BaseRelationships[Relation->Kind];
    if (Relation->Kind == HalCache) {
        Record->Cache.Level = (BYTE)Relation->Level;
        Record->Cache.Associativity = BaseAssociativity(Relation);
        Record->Cache.LineSize = (WORD)Relation->LineSize;
        Record->Cache.Size = Relation->Size;
        Record->Cache.Type = BaseCacheTypes[Relation->Type];
    } else if (Relation->Kind == HalNode) {
        Record->NumaNode.NodeNumber = Relation->Number;
    } else {
        Record->ProcessorCore.Flags = BaseCoreFlags(Relation);
    }
}

static VOID BaseFillCache(PCACHE_RELATIONSHIP Cache, const HAL_RELATION *Relation)
{
    Cache->Level = (BYTE)Relation->Level;
    Cache->Associativity = BaseAssociativity(Relation);
    Cache->LineSize = (WORD)Relation->LineSize;
    Cache->CacheSize = Relation->Size;
    Cache->Type = BaseCacheTypes[Relation->Type];
    Cache->GroupCount = BaseGroupsOf(Relation);
    BaseStoreGroups(Relation, Cache->GroupMasks);
}

static VOID BaseAddRecordEx(PBASE_RECORDS Records, const HAL_RELATION *Relation)
{
    PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Record;
    WORD Groups = BaseGroupsOf(Relation);
    LONG Masks = Relation->Kind == HalCache  ? FIELD_OFFSET(SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, Cache.GroupMasks)
                 : Relation->Kind == HalNode ? FIELD_OFFSET(SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, NumaNode.GroupMasks)
                                             : FIELD_OFFSET(SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, Processor.GroupMask);
    DWORD Size = (DWORD)Masks + Groups * (DWORD)sizeof(GROUP_AFFINITY);
    Record = BaseNextRecord(Records, Size);
    if (Record == NULL) {
        return;
    }
    Record->Relationship = BaseRelationships[Relation->Kind];
    Record->Size = Size;
    if (Relation->Kind == HalCache) {
        BaseFillCache(&Record->Cache, Relation);
    } else if (Relation->Kind == HalNode) {
        Record->NumaNode.NodeNumber = Relation->Number;
        Record->NumaNode.GroupCount = Groups;
        BaseStoreGroups(Relation, Record->NumaNode.GroupMasks);
    } else {
        Record->Processor.Flags = BaseCoreFlags(Relation);
        Record->Processor.GroupCount = Groups;
        BaseStoreGroups(Relation, Record->Processor.GroupMask);
    }
}

static VOID BaseAddGroups(PBASE_RECORDS Records)
{
    PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Record;
    WORD Groups = KeQueryActiveGroupCount();
    DWORD Size = (DWORD)FIELD_OFFSET(SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, Group.GroupInfo) +
                 Groups * (DWORD)sizeof(PROCESSOR_GROUP_INFO);
    Record = BaseNextRecord(Records, Size);
    if (Record == NULL) {
        return;
    }
    Record->Relationship = RelationGroup;
    Record->Size = Size;
    Record->Group.MaximumGroupCount = KeQueryMaximumGroupCount();
    Record->Group.ActiveGroupCount = Groups;
    for (WORD Group = 0; Group < Groups; Group++) {
        PPROCESSOR_GROUP_INFO Information = &Record->Group.GroupInfo[Group];
        Information->MaximumProcessorCount = (BYTE)KeQueryMaximumProcessorCountEx(Group);
        Information->ActiveProcessorCount = (BYTE)KeQueryActiveProcessorCountEx(Group);
        Information->ActiveProcessorMask = KeQueryGroupAffinity(Group);
    }
}

static BOOL BaseFinishRecords(const BASE_RECORDS *Records, PDWORD ReturnedLength)
{
    *ReturnedLength = Records->Needed;
    if (Records->Needed > Records->Room) {
        BaseSetLastError(ERROR_INSUFFICIENT_BUFFER);
        return FALSE;
    }
    return TRUE;
}

/* RelationAll: every kind. FALSE: no memory. */
static BOOLEAN BaseAddRelations(PBASE_RECORDS Records, LOGICAL_PROCESSOR_RELATIONSHIP Wanted,
                                VOID (*Add)(PBASE_RECORDS Records, const HAL_RELATION *Relation))
{
    PHAL_RELATION Relations;
    ULONG Count;
    if (!HalQueryTopology(KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS), &Relations, &Count)) {
        BaseSetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return FALSE;
    }
    for (ULONG Number = 0; Number < Count; Number++) {
        if (Wanted == RelationAll || Wanted == BaseRelationships[Relations[Number].Kind]) {
            Add(Records, &Relations[Number]);
        }
    }
    HalFree(Relations);
    return TRUE;
}

BOOL GetLogicalProcessorInformation(PSYSTEM_LOGICAL_PROCESSOR_INFORMATION Buffer, PDWORD ReturnedLength)
{
    BASE_RECORDS Records = {.Buffer = (PUCHAR)Buffer};
    if (ReturnedLength == NULL) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    Records.Room = Buffer != NULL ? *ReturnedLength : 0;
    return BaseAddRelations(&Records, RelationAll, BaseAddRecord) && BaseFinishRecords(&Records, ReturnedLength);
}

BOOL GetLogicalProcessorInformationEx(LOGICAL_PROCESSOR_RELATIONSHIP RelationshipType,
                                      PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Buffer, PDWORD ReturnedLength)
{
    BASE_RECORDS Records = {.Buffer = (PUCHAR)Buffer};
    if (ReturnedLength == NULL || ((ULONG)RelationshipType > RelationGroup && RelationshipType != RelationAll)) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    Records.Room = Buffer != NULL ? *ReturnedLength : 0;
    if (RelationshipType != RelationGroup && !BaseAddRelations(&Records, RelationshipType, BaseAddRecordEx)) {
        return FALSE;
    }
    if (RelationshipType == RelationGroup || RelationshipType == RelationAll) {
        BaseAddGroups(&Records);
    }
    return BaseFinishRecords(&Records, ReturnedLength);
}

BOOL GetNumaHighestNodeNumber(PULONG HighestNodeNumber)
{
    PHAL_RELATION Relations;
    ULONG Count;
    if (HighestNodeNumber == NULL ||
        !HalQueryTopology(KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS), &Relations, &Count)) {
        return BaseBoolStatus(HighestNodeNumber == NULL ? STATUS_ACCESS_VIOLATION : STATUS_NO_MEMORY);
    }
    *HighestNodeNumber = 0;
    for (ULONG Number = 0; Number < Count; Number++) {
        if (Relations[Number].Kind == HalNode && Relations[Number].Number > *HighestNodeNumber) {
            *HighestNodeNumber = Relations[Number].Number;
        }
    }
    HalFree(Relations);
    return TRUE;
}

VOID FlushProcessWriteBuffers(VOID)
{
    HalFlushWriteBuffers();
}

/* Registers. */

BOOL GetThreadContext(HANDLE hThread, LPCONTEXT lpContext)
{
    return BaseBoolStatus(NtGetContextThread(hThread, lpContext));
}

BOOL SetThreadContext(HANDLE hThread, const CONTEXT *lpContext)
{
    return BaseBoolStatus(NtSetContextThread(hThread, (PCONTEXT)lpContext));
}
