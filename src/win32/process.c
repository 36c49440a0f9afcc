/* process.c: creating, opening and ending processes. */
#include <interlock/io.h>
#include <interlock/win32/process.h>

#include "../ps/psp.h"
#include "commandline.h"

#define BASE_REFUSED_FLAGS (DEBUG_PROCESS | DEBUG_ONLY_THIS_PROCESS)

/* What CreateProcess was given, in UTF-8, and what has been made of it. */
typedef struct _BASE_CREATE {
    PCSTR Application;
    PCSTR CommandLine;
    PCSTR Directory;
    PCSTR Environment;               /* a block of strings */
    ULONG Flags;
    ULONG StartFlags;
    HANDLE Standard[3];
    BOOLEAN Inherit;                 /* the handles of the new process */
    PSTR Path;
    PSTR *Arguments;
    PSTR *Variables;
} BASE_CREATE, *PBASE_CREATE;

/* An application without a folder is one of the current directory; only the command line is looked up. */
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

/* Standard handles are descriptors of the host: those that IoCreateDescriptorObject made handles of. */
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
    HAL_SPAWN Spawn;
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
    Status = PspCreateProcess(&Spawn, Create->Inherit ? OBJ_INHERIT : 0, PROCESS_ALL_ACCESS, &Information->hProcess,
                              &Information->hThread, &ClientId);
    if (NT_SUCCESS(Status)) {
        Information->dwProcessId = HandleToULong(ClientId.UniqueProcess);
        Information->dwThreadId = HandleToULong(ClientId.UniqueThread);
    }
    return Status;
}

static BOOL BaseCreateProcess(PBASE_CREATE Create, LPPROCESS_INFORMATION Information)
{
    NTSTATUS Status = STATUS_NOT_SUPPORTED;
    if (!(Create->Flags & BASE_REFUSED_FLAGS)) {
        Status = BaseSpawn(Create, Information);
    }
    HalFree(Create->Path);
    HalFree(Create->Arguments);
    HalFree(Create->Variables);
    return BaseBoolStatus(Status);
}

static BOOLEAN BaseInherits(LPSECURITY_ATTRIBUTES Attributes)
{
    return Attributes != NULL && Attributes->bInheritHandle;
}

/* NULL when there is no memory. Length with whatever ends the text. */
static PSTR BaseNarrow(LPCWSTR Text, SIZE_T Length)
{
    SIZE_T Size = BaseWideToUtf8(Text, Length, NULL, 0, NULL);
    PSTR Narrow = HalAllocate(Size, 1);
    if (Narrow != NULL) {
        BaseWideToUtf8(Text, Length, Narrow, Size, NULL);
    }
    return Narrow;
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

/* FALSE: there is no memory. Where there is no text, there is none to convert. */
static BOOLEAN BaseNarrowInto(PSTR *Narrow, PCSTR *Result, LPCWSTR Text, SIZE_T (*SizeOf)(LPCWSTR))
{
    if (Text == NULL) {
        return TRUE;
    }
    *Result = *Narrow = BaseNarrow(Text, SizeOf(Text));
    return *Narrow != NULL;
}

/* The environment of either function may be of either kind. */
static BOOL BaseCreateWithEnvironment(PBASE_CREATE Create, LPVOID Environment, LPPROCESS_INFORMATION Information)
{
    PSTR Narrow = NULL;
    BOOL Created;
    if (!(Create->Flags & CREATE_UNICODE_ENVIRONMENT)) {
        Create->Environment = Environment;
    } else if (!BaseNarrowInto(&Narrow, &Create->Environment, Environment, BaseSizeOfBlock)) {
        return BaseBoolStatus(STATUS_NO_MEMORY);
    }
    Created = BaseCreateProcess(Create, Information);
    HalFree(Narrow);
    return Created;
}

BOOL CreateProcessA(LPCSTR lpApplicationName, LPSTR lpCommandLine, LPSECURITY_ATTRIBUTES lpProcessAttributes,
                    LPSECURITY_ATTRIBUTES lpThreadAttributes, BOOL bInheritHandles, DWORD dwCreationFlags,
                    LPVOID lpEnvironment, LPCSTR lpCurrentDirectory, LPSTARTUPINFOA lpStartupInfo,
                    LPPROCESS_INFORMATION lpProcessInformation)
{
    UNREFERENCED_PARAMETER(lpThreadAttributes);
    UNREFERENCED_PARAMETER(bInheritHandles);
    if (lpStartupInfo == NULL || lpProcessInformation == NULL) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BASE_CREATE Create = {
        .Application = lpApplicationName,
        .CommandLine = lpCommandLine,
        .Directory = lpCurrentDirectory,
        .Flags = dwCreationFlags,
        .StartFlags = lpStartupInfo->dwFlags,
        .Standard = {lpStartupInfo->hStdInput, lpStartupInfo->hStdOutput, lpStartupInfo->hStdError},
        .Inherit = BaseInherits(lpProcessAttributes),
    };
    return BaseCreateWithEnvironment(&Create, lpEnvironment, lpProcessInformation);
}

BOOL CreateProcessW(LPCWSTR lpApplicationName, LPWSTR lpCommandLine, LPSECURITY_ATTRIBUTES lpProcessAttributes,
                    LPSECURITY_ATTRIBUTES lpThreadAttributes, BOOL bInheritHandles, DWORD dwCreationFlags,
                    LPVOID lpEnvironment, LPCWSTR lpCurrentDirectory, LPSTARTUPINFOW lpStartupInfo,
                    LPPROCESS_INFORMATION lpProcessInformation)
{
    PSTR Texts[3] = {NULL, NULL, NULL};
    BOOL Created;
    UNREFERENCED_PARAMETER(lpThreadAttributes);
    UNREFERENCED_PARAMETER(bInheritHandles);
    if (lpStartupInfo == NULL || lpProcessInformation == NULL) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BASE_CREATE Create = {
        .Flags = dwCreationFlags,
        .StartFlags = lpStartupInfo->dwFlags,
        .Standard = {lpStartupInfo->hStdInput, lpStartupInfo->hStdOutput, lpStartupInfo->hStdError},
        .Inherit = BaseInherits(lpProcessAttributes),
    };
    if (BaseNarrowInto(&Texts[0], &Create.Application, lpApplicationName, BaseSizeOfString) &&
        BaseNarrowInto(&Texts[1], &Create.CommandLine, lpCommandLine, BaseSizeOfString) &&
        BaseNarrowInto(&Texts[2], &Create.Directory, lpCurrentDirectory, BaseSizeOfString)) {
        Created = BaseCreateWithEnvironment(&Create, lpEnvironment, lpProcessInformation);
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

/* The id is known also of a process whose exit status is not. */
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
