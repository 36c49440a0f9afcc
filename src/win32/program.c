/* program.c: the environment, the stack, error modes. */
#include <interlock/win32/base.h>

#include "../hal/environment.h"
#include "local.h"

#define BASE_ERROR_MODES                                                                                               \
    (SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOALIGNMENTFAULTEXCEPT | SEM_NOOPENFILEERRORBOX)

/* The environment. */

static PSTR BaseNarrow(LPCWSTR Text)
{
    SIZE_T Length = InterlockWcslen(Text) + 1;
    SIZE_T Size = ExpWideToUtf8(Text, Length, NULL, 0, NULL);
    PSTR Narrow = HalAllocate(Size, 1);
    if (Narrow != NULL) {
        ExpWideToUtf8(Text, Length, Narrow, Size, NULL);
    }
    return Narrow;
}

/* The result for a value of that length: the length, or the size that the buffer needs. */
static DWORD BaseVariableLength(SIZE_T Length, DWORD Room)
{
    return Length < Room ? (DWORD)Length : (DWORD)(Length + 1);
}

/* An empty value has length 0, too: the last error says that it exists. */
static VOID BaseNoteVariable(SIZE_T Length)
{
    if (Length == HAL_NO_VARIABLE || Length == 0) {
        BaseSetLastError(Length == 0 ? ERROR_SUCCESS : ERROR_ENVVAR_NOT_FOUND);
    }
}

DWORD GetEnvironmentVariableA(LPCSTR lpName, LPSTR lpBuffer, DWORD nSize)
{
    SIZE_T Length = lpName != NULL ? HalQueryVariable(lpName, lpBuffer, nSize) : HAL_NO_VARIABLE;
    BaseNoteVariable(Length);
    return Length != HAL_NO_VARIABLE ? BaseVariableLength(Length, nSize) : 0;
}

/* Returns a copy for HalFree; NULL: there is none, or no memory. */
static PSTR BaseCopyVariable(PCSTR Name, PSIZE_T Length)
{
    PSTR Value = NULL;
    SIZE_T Room = 0;
    while ((*Length = HalQueryVariable(Name, Value, Room)) != HAL_NO_VARIABLE && *Length >= Room) {
        HalFree(Value);
        Room = *Length + 1;
        Value = HalAllocate(Room, 1);
        if (Value == NULL) {
            return NULL;
        }
    }
    return Value;
}

DWORD GetEnvironmentVariableW(LPCWSTR lpName, LPWSTR lpBuffer, DWORD nSize)
{
    PSTR Name = lpName != NULL ? BaseNarrow(lpName) : NULL;
    SIZE_T Length = HAL_NO_VARIABLE;
    SIZE_T Wide = 0;
    PSTR Value = Name != NULL ? BaseCopyVariable(Name, &Length) : NULL;
    BaseNoteVariable(Length);
    if (Length != HAL_NO_VARIABLE && Value != NULL) {
        Wide = ExpUtf8ToWide(Value, Length, NULL, 0, NULL);
        if (Wide < nSize) {
            ExpUtf8ToWide(Value, Length + 1, lpBuffer, nSize, NULL);
        }
    }
    HalFree(Value);
    HalFree(Name);
    return Length != HAL_NO_VARIABLE ? BaseVariableLength(Wide, nSize) : 0;
}

BOOL SetEnvironmentVariableA(LPCSTR lpName, LPCSTR lpValue)
{
    if (lpName != NULL && (lpName[0] == 0 || strchr(lpName, '=') != NULL)) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    if (lpName == NULL || (lpValue == NULL && HalQueryVariable(lpName, NULL, 0) == HAL_NO_VARIABLE)) {
        BaseSetLastError(ERROR_ENVVAR_NOT_FOUND);
        return FALSE;
    }
    return BaseBoolStatus(HalSetVariable(lpName, lpValue) ? STATUS_SUCCESS : STATUS_NO_MEMORY);
}

BOOL SetEnvironmentVariableW(LPCWSTR lpName, LPCWSTR lpValue)
{
    PSTR Name = lpName != NULL ? BaseNarrow(lpName) : NULL;
    PSTR Value = lpValue != NULL ? BaseNarrow(lpValue) : NULL;
    BOOL Set = FALSE;
    if ((lpName != NULL && Name == NULL) || (lpValue != NULL && Value == NULL)) {
        BaseSetLastError(ERROR_NOT_ENOUGH_MEMORY);
    } else {
        Set = SetEnvironmentVariableA(Name, Value);
    }
    HalFree(Name);
    HalFree(Value);
    return Set;
}

LPCH GetEnvironmentStringsA(VOID)
{
    SIZE_T Size;
    PSTR Block = HalCopyVariables(&Size);
    if (Block == NULL) {
        BaseSetLastError(ERROR_NOT_ENOUGH_MEMORY);
    }
    return Block;
}

LPWCH GetEnvironmentStringsW(VOID)
{
    SIZE_T Size;
    PSTR Block = HalCopyVariables(&Size);
    SIZE_T Wide = Block != NULL ? ExpUtf8ToWide(Block, Size, NULL, 0, NULL) : 0;
    LPWCH Result = Block != NULL ? HalAllocate(Wide * sizeof(WCHAR), sizeof(WCHAR)) : NULL;
    if (Result != NULL) {
        ExpUtf8ToWide(Block, Size, Result, Wide, NULL);
    } else {
        BaseSetLastError(ERROR_NOT_ENOUGH_MEMORY);
    }
    HalFree(Block);
    return Result;
}

BOOL FreeEnvironmentStringsA(LPCH penv)
{
    HalFree(penv);
    return TRUE;
}

BOOL FreeEnvironmentStringsW(LPWCH penv)
{
    HalFree(penv);
    return TRUE;
}

/* The stack. */

DECLSPEC_NOINLINE USHORT RtlCaptureStackBackTrace(ULONG FramesToSkip, ULONG FramesToCapture, PVOID *BackTrace,
                                                  PULONG BackTraceHash)
{
    ULONG Hash = 0;
    ULONG Room = FramesToCapture < MAXUSHORT ? FramesToCapture : MAXUSHORT;
    ULONG Count = Room != 0 && FramesToSkip < MAXUSHORT ? HalCaptureStack(FramesToSkip + 1, (PULONG64)BackTrace, Room) : 0;
    C_ASSERT(sizeof(*BackTrace) == sizeof(ULONG64));
    Count = Count < Room ? Count : Room;
    for (ULONG Frame = 0; Frame < Count; Frame++) {
        Hash += (ULONG)(ULONG_PTR)BackTrace[Frame];
    }
    if (BackTraceHash != NULL) {
        *BackTraceHash = Hash;
    }
    return (USHORT)Count;
}

/* Error modes. */

DWORD GetThreadErrorMode(VOID)
{
    return BaseCurrentThread()->ErrorMode;
}

BOOL SetThreadErrorMode(DWORD dwNewMode, LPDWORD lpOldMode)
{
    PBASE_THREAD Own = BaseCurrentThread();
    if ((dwNewMode & ~(DWORD)BASE_ERROR_MODES) != 0) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    if (lpOldMode != NULL) {
        *lpOldMode = Own->ErrorMode;
    }
    Own->ErrorMode = dwNewMode;
    return TRUE;
}
