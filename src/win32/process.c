/*
 * process.c: creating, opening and ending processes, their scheduling, and the topology of the machine.
 *
 * Command lines are split by the rules of the C runtime on Windows. The first argument ends at a blank or, if it begins
 * with a quotation mark, at the next one. In the others a quotation mark toggles the meaning of blanks; 2n backslashes
 * before one are n backslashes and the mark counts, 2n+1 are n backslashes and a mark that belongs to the text; two
 * marks in a row inside a quoted part are one mark of the text. Other backslashes are literal.
 */
#include <interlock/io.h>
#include <interlock/ke.h>

#include "../hal/hal.h"
#include "../ke/ki.h"
#include "../nt/ntp.h"
#include "base.h"

#define BASE_REFUSED_FLAGS (DEBUG_PROCESS | DEBUG_ONLY_THIS_PROCESS)

/* Splitting. */

typedef struct _BASE_SPLIT {
    PCSTR Rest;
    PSTR Text;                       /* where the next character goes */
    PSTR *Next;                      /* where the next argument goes */
} BASE_SPLIT, *PBASE_SPLIT;

static BOOLEAN BaseIsBlank(CHAR Character)
{
    return Character == ' ' || Character == '\t';
}

static VOID BaseSkipBlanks(PBASE_SPLIT Split)
{
    while (BaseIsBlank(*Split->Rest)) {
        Split->Rest += 1;
    }
}

static VOID BaseTakeProgram(PBASE_SPLIT Split)
{
    BOOLEAN Quoted = *Split->Rest == '"';
    *Split->Next++ = Split->Text;
    Split->Rest += Quoted;
    while (*Split->Rest != '\0' && (Quoted ? *Split->Rest != '"' : !BaseIsBlank(*Split->Rest))) {
        *Split->Text++ = *Split->Rest++;
    }
    if (Quoted && *Split->Rest == '"') {
        Split->Rest += 1;
    }
    *Split->Text++ = '\0';
}

/* Backslashes, and the quotation mark after them if it belongs to the text. */
static VOID BaseTakeBackslashes(PBASE_SPLIT Split)
{
    SIZE_T Count = 0;
    while (Split->Rest[Count] == '\\') {
        Count += 1;
    }
    Split->Rest += Count;
    BOOLEAN Mark = *Split->Rest == '"';
    for (SIZE_T Written = 0; Written < (Mark ? Count / 2 : Count); Written += 1) {
        *Split->Text++ = '\\';
    }
    if (Mark && Count % 2 != 0) {
        *Split->Text++ = *Split->Rest++;
    }
}

static VOID BaseTakeArgument(PBASE_SPLIT Split)
{
    BOOLEAN Quoted = FALSE;
    *Split->Next++ = Split->Text;
    while (*Split->Rest != '\0' && (Quoted || !BaseIsBlank(*Split->Rest))) {
        if (*Split->Rest == '\\') {
            BaseTakeBackslashes(Split);
        } else if (*Split->Rest != '"') {
            *Split->Text++ = *Split->Rest++;
        } else if (Quoted && Split->Rest[1] == '"') {
            *Split->Text++ = '"';
            Split->Rest += 2;
        } else {
            Quoted = !Quoted;
            Split->Rest += 1;
        }
    }
    *Split->Text++ = '\0';
}

/* No argument is longer than its text, and each uses up at least one character of the line. */
PSTR *BaseSplitCommandLine(PCSTR CommandLine)
{
    SIZE_T Length = strlen(CommandLine);
    SIZE_T Most = Length / 2 + 2;
    PSTR *Arguments = HalAllocate((Most + 1) * sizeof(*Arguments) + Length + Most + 1, sizeof(*Arguments));
    BASE_SPLIT Split = {CommandLine, (PSTR)(Arguments + Most + 1), Arguments};
    if (Arguments == NULL) {
        return NULL;
    }
    BaseSkipBlanks(&Split);
    BaseTakeProgram(&Split);
    for (BaseSkipBlanks(&Split); *Split.Rest != '\0'; BaseSkipBlanks(&Split)) {
        BaseTakeArgument(&Split);
    }
    return Arguments;
}

/* The block is a sequence of strings that an empty one ends. */
PSTR *BaseSplitEnvironment(PCSTR Block)
{
    SIZE_T Count = 0;
    SIZE_T Length = 0;
    while (Block[Length] != '\0') {
        Length += strlen(Block + Length) + 1;
        Count += 1;
    }
    PSTR *Strings = HalAllocate((Count + 1) * sizeof(*Strings) + Length + 1, sizeof(*Strings));
    if (Strings == NULL) {
        return NULL;
    }
    PSTR Text = memcpy(Strings + Count + 1, Block, Length + 1);
    for (SIZE_T Index = 0; Index < Count; Index += 1) {
        Strings[Index] = Text;
        Text += strlen(Text) + 1;
    }
    return Strings;
}

/* Creating. */

/* The arguments of CreateProcess, in UTF-8, and their converted forms. */
typedef struct _BASE_CREATE {
    PCSTR Application;
    PCSTR CommandLine;
    PCSTR Directory;
    PCSTR Environment;               /* a block of strings */
    ULONG Flags;
    ULONG StartFlags;
    HANDLE Standard[3];
    BOOLEAN Inherit;                 /* the new process's handles */
    BOOLEAN InheritHandles;          /* those of this process, by the new one: */
    LPPROC_THREAD_ATTRIBUTE_LIST AttributeList;
    PSTR Path;
    PSTR *Arguments;
    PSTR *Variables;
} BASE_CREATE, *PBASE_CREATE;

/* An application without a folder is in the current directory; only a command line is searched in the path. */
static NTSTATUS BaseFindPath(PBASE_CREATE Create)
{
    PCSTR Name = Create->Application != NULL ? Create->Application : Create->Arguments[0];
    PCSTR Prefix = Create->Application != NULL && strchr(Name, '/') == NULL ? "./" : "";
    SIZE_T Size = strlen(Prefix) + strlen(Name) + 1;
    Create->Path = HalAllocate(Size, 1);
    if (Create->Path == NULL) {
        return STATUS_NO_MEMORY;
    }
    strcpy(Create->Path, Prefix);
    strcat(Create->Path, Name);
    return Name[0] != '\0' ? STATUS_SUCCESS : STATUS_OBJECT_NAME_NOT_FOUND;
}

static NTSTATUS BaseTakeApart(PBASE_CREATE Create)
{
    PCSTR Line = Create->CommandLine;
    if (Line == NULL && Create->Application == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Line != NULL) {
        Create->Arguments = BaseSplitCommandLine(Line);
    } else {
        Create->Arguments = HalAllocate(2 * sizeof(PSTR), sizeof(PSTR));
        if (Create->Arguments != NULL) {
            Create->Arguments[0] = (PSTR)Create->Application;
        }
    }
    if (Create->Environment != NULL) {
        Create->Variables = BaseSplitEnvironment(Create->Environment);
    }
    if (Create->Arguments == NULL || (Create->Environment != NULL && Create->Variables == NULL)) {
        return STATUS_NO_MEMORY;
    }
    return BaseFindPath(Create);
}

/* Standard handles are descriptors of the host that IoCreateDescriptorObject has wrapped. */
static NTSTATUS BaseRedirect(PBASE_CREATE Create, HAL_SPAWN *Spawn)
{
    NTSTATUS Status = STATUS_SUCCESS;
    for (ULONG Number = 0; Number < 3; Number += 1) {
        Spawn->Standard[Number] = -1;
        if ((Create->StartFlags & STARTF_USESTDHANDLES) && Create->Standard[Number] != NULL && NT_SUCCESS(Status)) {
            int Descriptor = -1;
            Status = IoQueryDescriptorObject(Create->Standard[Number], NULL, &Descriptor);
            Spawn->Standard[Number] = Descriptor;
        }
    }
    return Status;
}

static NTSTATUS BaseSpawn(PBASE_CREATE Create, LPPROCESS_INFORMATION Information)
{
    CLIENT_ID ClientId;
    HAL_SPAWN Spawn = {0};
    NTP_HEIRLOOMS Heirlooms = {NULL, 0};
    BOOLEAN Listed = BaseFindHandleList(Create->AttributeList, &Heirlooms.List, &Heirlooms.Count);
    if (Listed && Heirlooms.List == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Listed && !Create->InheritHandles) { /* a list makes sense only if handles are inherited at all */
        return STATUS_INVALID_PARAMETER;
    }
    NTSTATUS Status = BaseTakeApart(Create);
    if (NT_SUCCESS(Status)) {
        Status = BaseRedirect(Create, &Spawn);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Spawn.Path = Create->Path;
    Spawn.Arguments = Create->Arguments;
    Spawn.Environment = Create->Variables;
    Spawn.Directory = Create->Directory;
    Spawn.Stopped = (Create->Flags & CREATE_SUSPENDED) != 0;
    Status = NtpCreateUserProcess(&Spawn, Create->InheritHandles ? &Heirlooms : NULL, Create->Inherit ? OBJ_INHERIT : 0,
                                  &Information->hProcess, &Information->hThread, &ClientId);
    if (NT_SUCCESS(Status)) {
        Information->dwProcessId = HandleToULong(ClientId.UniqueProcess);
        Information->dwThreadId = HandleToULong(ClientId.UniqueThread);
    }
    return Status;
}

static SIZE_T BaseSizeOfString(LPCWSTR Text)
{
    SIZE_T Length = 0;
    while (Text[Length] != 0) {
        Length += 1;
    }
    return Length + 1;
}

static SIZE_T BaseSizeOfBlock(LPCWSTR Block)
{
    SIZE_T Length = 0;
    while (Block[Length] != 0) {
        Length += BaseSizeOfString(Block + Length);
    }
    return Length + 1;
}

/* FALSE: no memory. A NULL text stays NULL. */
static BOOLEAN BaseNarrowInto(PSTR *Narrow, PCSTR *Result, LPCWSTR Text, SIZE_T (*SizeOf)(LPCWSTR))
{
    if (Text == NULL) {
        return TRUE;
    }
    SIZE_T Length = SizeOf(Text);
    SIZE_T Size = ExpWideToUtf8(Text, Length, NULL, 0, NULL);
    *Result = *Narrow = HalAllocate(Size, 1);
    if (*Narrow != NULL) {
        ExpWideToUtf8(Text, Length, *Narrow, Size, NULL);
    }
    return *Narrow != NULL;
}

/* Either form takes either kind of environment. */
static BOOL BaseCreateProcess(PBASE_CREATE Create, LPVOID Environment, LPPROCESS_INFORMATION Information)
{
    PSTR Narrow = NULL;
    NTSTATUS Status = STATUS_NO_MEMORY;
    if (!(Create->Flags & CREATE_UNICODE_ENVIRONMENT)) {
        Create->Environment = Environment;
    } else if (!BaseNarrowInto(&Narrow, &Create->Environment, Environment, BaseSizeOfBlock)) {
        return BaseBoolStatus(Status);
    }
    Status = Create->Flags & BASE_REFUSED_FLAGS ? STATUS_NOT_SUPPORTED : BaseSpawn(Create, Information);
    HalFree(Create->Path);
    HalFree(Create->Arguments);
    HalFree(Create->Variables);
    HalFree(Narrow);
    return BaseBoolStatus(Status);
}

BOOL CreateProcessA(LPCSTR lpApplicationName, LPSTR lpCommandLine, LPSECURITY_ATTRIBUTES lpProcessAttributes,
                    LPSECURITY_ATTRIBUTES lpThreadAttributes, BOOL bInheritHandles, DWORD dwCreationFlags,
                    LPVOID lpEnvironment, LPCSTR lpCurrentDirectory, LPSTARTUPINFOA lpStartupInfo,
                    LPPROCESS_INFORMATION lpProcessInformation)
{
    LPSTARTUPINFOEXA Extended = dwCreationFlags & EXTENDED_STARTUPINFO_PRESENT ? (LPSTARTUPINFOEXA)lpStartupInfo : NULL;
    UNREFERENCED_PARAMETER(lpThreadAttributes);
    if (lpStartupInfo == NULL || lpProcessInformation == NULL ||
        (Extended != NULL && lpStartupInfo->cb != sizeof(*Extended))) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BASE_CREATE Create = {
        .Application = lpApplicationName,
        .CommandLine = lpCommandLine,
        .Directory = lpCurrentDirectory,
        .Flags = dwCreationFlags,
        .StartFlags = lpStartupInfo->dwFlags,
        .Standard = {lpStartupInfo->hStdInput, lpStartupInfo->hStdOutput, lpStartupInfo->hStdError},
        .Inherit = lpProcessAttributes != NULL && lpProcessAttributes->bInheritHandle,
        .InheritHandles = bInheritHandles != FALSE,
        .AttributeList = Extended != NULL ? Extended->lpAttributeList : NULL,
    };
    return BaseCreateProcess(&Create, lpEnvironment, lpProcessInformation);
}

BOOL CreateProcessW(LPCWSTR lpApplicationName, LPWSTR lpCommandLine, LPSECURITY_ATTRIBUTES lpProcessAttributes,
                    LPSECURITY_ATTRIBUTES lpThreadAttributes, BOOL bInheritHandles, DWORD dwCreationFlags,
                    LPVOID lpEnvironment, LPCWSTR lpCurrentDirectory, LPSTARTUPINFOW lpStartupInfo,
                    LPPROCESS_INFORMATION lpProcessInformation)
{
    PSTR Texts[3] = {NULL, NULL, NULL};
    BOOL Created;
    LPSTARTUPINFOEXW Extended = dwCreationFlags & EXTENDED_STARTUPINFO_PRESENT ? (LPSTARTUPINFOEXW)lpStartupInfo : NULL;
    UNREFERENCED_PARAMETER(lpThreadAttributes);
    if (lpStartupInfo == NULL || lpProcessInformation == NULL ||
        (Extended != NULL && lpStartupInfo->cb != sizeof(*Extended))) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BASE_CREATE Create = {
        .Flags = dwCreationFlags,
        .StartFlags = lpStartupInfo->dwFlags,
        .Standard = {lpStartupInfo->hStdInput, lpStartupInfo->hStdOutput, lpStartupInfo->hStdError},
        .Inherit = lpProcessAttributes != NULL && lpProcessAttributes->bInheritHandle,
        .InheritHandles = bInheritHandles != FALSE,
        .AttributeList = Extended != NULL ? Extended->lpAttributeList : NULL,
    };
    if (BaseNarrowInto(&Texts[0], &Create.Application, lpApplicationName, BaseSizeOfString) &&
        BaseNarrowInto(&Texts[1], &Create.CommandLine, lpCommandLine, BaseSizeOfString) &&
        BaseNarrowInto(&Texts[2], &Create.Directory, lpCurrentDirectory, BaseSizeOfString)) {
        Created = BaseCreateProcess(&Create, lpEnvironment, lpProcessInformation);
    } else {
        Created = BaseBoolStatus(STATUS_NO_MEMORY);
    }
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(Texts); Index += 1) {
        HalFree(Texts[Index]);
    }
    return Created;
}

HANDLE OpenProcess(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwProcessId)
{
    CLIENT_ID ClientId = {ULongToHandle(dwProcessId), NULL};
    OBJECT_ATTRIBUTES Attributes;
    HANDLE Handle = NULL;
    InitializeObjectAttributes(&Attributes, NULL, bInheritHandle ? OBJ_INHERIT : 0, NULL, NULL);
    return BaseBoolStatus(NtOpenProcess(&Handle, dwDesiredAccess, &Attributes, &ClientId)) ? Handle : NULL;
}

static NTSTATUS BaseQueryProcess(HANDLE Process, PPROCESS_BASIC_INFORMATION Information)
{
    return NtQueryInformationProcess(Process, ProcessBasicInformation, Information, sizeof(*Information), NULL);
}

BOOL GetExitCodeProcess(HANDLE hProcess, LPDWORD lpExitCode)
{
    PROCESS_BASIC_INFORMATION Information;
    NTSTATUS Status = lpExitCode != NULL ? BaseQueryProcess(hProcess, &Information) : STATUS_ACCESS_VIOLATION;
    if (NT_SUCCESS(Status)) {
        *lpExitCode = (DWORD)Information.ExitStatus;
    }
    return BaseBoolStatus(Status);
}

BOOL TerminateProcess(HANDLE hProcess, UINT uExitCode)
{
    return BaseBoolStatus(hProcess != NULL ? NtTerminateProcess(hProcess, (NTSTATUS)uExitCode) : STATUS_INVALID_HANDLE);
}

/* The id is known even if the exit status is not. */
DWORD GetProcessId(HANDLE Process)
{
    PROCESS_BASIC_INFORMATION Information;
    NTSTATUS Status = BaseQueryProcess(Process, &Information);
    if (!NT_SUCCESS(Status) && Status != STATUS_NOT_SUPPORTED) {
        BaseSetLastNTError(Status);
        return 0;
    }
    return (DWORD)Information.UniqueProcessId;
}

DECLSPEC_NORETURN VOID ExitProcess(UINT uExitCode)
{
    HalExitProcess(uExitCode, FALSE);
}

/* Attribute lists of CreateProcess. The one attribute is the list of handles that a child inherits. */

/* The program allocates the list, with room for Count attributes. */
typedef struct _PROC_THREAD_ATTRIBUTE_LIST {
    ULONG Count;
    ULONG Used;
    struct {
        ULONG_PTR Attribute;
        PVOID Value;
        SIZE_T Size;
    } Entry[];
} BASE_ATTRIBUTE_LIST, *PBASE_ATTRIBUTE_LIST;

#define BASE_MOST_ATTRIBUTES 64

BOOL InitializeProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, DWORD dwAttributeCount,
                                       DWORD dwFlags, PSIZE_T lpSize)
{
    PBASE_ATTRIBUTE_LIST List = lpAttributeList;
    if (lpSize == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    if (dwFlags != 0 || dwAttributeCount > BASE_MOST_ATTRIBUTES) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    SIZE_T Needed = sizeof(*List) + dwAttributeCount * sizeof(List->Entry[0]);
    BOOLEAN Fits = List != NULL && *lpSize >= Needed;
    *lpSize = Needed;
    if (Fits) {
        *List = (BASE_ATTRIBUTE_LIST){.Count = dwAttributeCount};
    }
    return BaseBoolStatus(Fits ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL);
}

static NTSTATUS BaseCheckAttribute(PBASE_ATTRIBUTE_LIST List, ULONG_PTR Attribute, SIZE_T Size)
{
    if (Attribute != PROC_THREAD_ATTRIBUTE_HANDLE_LIST) {
        return STATUS_NOT_SUPPORTED;
    }
    if (Size == 0 || Size % sizeof(HANDLE) != 0) {
        return STATUS_INFO_LENGTH_MISMATCH;
    }
    if (List->Used == List->Count) {
        return STATUS_UNSUCCESSFUL;
    }
    for (ULONG Index = 0; Index < List->Used; Index++) {
        if (List->Entry[Index].Attribute == Attribute) {
            return STATUS_OBJECT_NAME_EXISTS;
        }
    }
    return STATUS_SUCCESS;
}

/* An attribute that already exists is a failure, although its status is not an error. */
BOOL UpdateProcThreadAttribute(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList, DWORD dwFlags, DWORD_PTR Attribute,
                               PVOID lpValue, SIZE_T cbSize, PVOID lpPreviousValue, PSIZE_T lpReturnSize)
{
    PBASE_ATTRIBUTE_LIST List = lpAttributeList;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if (List == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    if (dwFlags == 0 && lpPreviousValue == NULL && lpReturnSize == NULL) {
        Status = BaseCheckAttribute(List, Attribute, cbSize);
    }
    if (Status != STATUS_SUCCESS) {
        BaseSetLastNTError(Status);
        return FALSE;
    }
    List->Entry[List->Used].Attribute = Attribute;
    List->Entry[List->Used].Value = lpValue;
    List->Entry[List->Used].Size = cbSize;
    List->Used += 1;
    return TRUE;
}

VOID DeleteProcThreadAttributeList(LPPROC_THREAD_ATTRIBUTE_LIST lpAttributeList)
{
    UNREFERENCED_PARAMETER(lpAttributeList); /* the program owns it, and what it points to */
}

BOOLEAN BaseFindHandleList(LPPROC_THREAD_ATTRIBUTE_LIST AttributeList, const HANDLE **List, PULONG Count)
{
    PBASE_ATTRIBUTE_LIST Attributes = AttributeList;
    for (ULONG Index = 0; Attributes != NULL && Index < Attributes->Used; Index++) {
        if (Attributes->Entry[Index].Attribute == PROC_THREAD_ATTRIBUTE_HANDLE_LIST) {
            *List = Attributes->Entry[Index].Value;
            *Count = (ULONG)(Attributes->Entry[Index].Size / sizeof(HANDLE));
            return TRUE;
        }
    }
    return FALSE;
}

/* Affinity, priority class and times of processes; the topology of the machine. */

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
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    NtQueryInformationProcess(Process, ProcessPriorityClass, &Class, sizeof(Class), NULL);
    if (Begin) {
        /* relaxed, both: the word is self-contained */
        if (!__atomic_compare_exchange_n(&ClassBefore, &Before, Class.PriorityClass, FALSE, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED)) {
            RtlSetLastWin32Error(ERROR_PROCESS_MODE_ALREADY_BACKGROUND);
            return FALSE;
        }
        return BaseSetPriorityClass(Process, PROCESS_PRIORITY_CLASS_IDLE);
    }
    Before = __atomic_exchange_n(&ClassBefore, 0, __ATOMIC_RELAXED);
    if (Before == 0) {
        RtlSetLastWin32Error(ERROR_PROCESS_MODE_NOT_BACKGROUND);
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

/* A buffer that is filled with as many records as fit, and the length that all of them need. */
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
        RtlSetLastWin32Error(ERROR_INSUFFICIENT_BUFFER);
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
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
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
