/*
 * process.c: creating, opening and ending processes.
 *
 * Command lines are split by the rules of the C runtime on Windows. The first argument ends at a blank or, if it begins
 * with a quotation mark, at the next one. In the others a quotation mark toggles the meaning of blanks; 2n backslashes
 * before one are n backslashes and the mark counts, 2n+1 are n backslashes and a mark that belongs to the text; two
 * marks in a row inside a quoted part are one mark of the text. Other backslashes are literal.
 */
#include "base.h"

#include <interlock/io.h>
#include <interlock/win32/thread.h>

#include "../nt/ntp.h"

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

/* The arguments of CreateProcess, in UTF-8, and what they become. */
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

/* A list of handles makes sense only if handles are inherited at all. */
static NTSTATUS BaseChooseHeirlooms(PBASE_CREATE Create, NTP_HEIRLOOMS *Heirlooms)
{
    BOOLEAN Listed = BaseFindHandleList(Create->AttributeList, &Heirlooms->List, &Heirlooms->Count);
    if (Listed && Heirlooms->List == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    return Listed && !Create->InheritHandles ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}

static NTSTATUS BaseSpawn(PBASE_CREATE Create, LPPROCESS_INFORMATION Information)
{
    CLIENT_ID ClientId;
    HAL_SPAWN Spawn = {0};
    NTP_HEIRLOOMS Heirlooms = {NULL, 0};
    NTSTATUS Status = BaseChooseHeirlooms(Create, &Heirlooms);
    if (NT_SUCCESS(Status)) {
        Status = BaseTakeApart(Create);
    }
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
