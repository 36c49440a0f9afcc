/* vectored.c: raising and handling exceptions, and debugger output. */
#include <interlock/win32/base.h>

#include "../hal/hal.h"
#include "base.h"

#define BASE_RESERVED_CODE_BIT 0x10000000u
#define BASE_DEBUG_BYTES 960

static volatile UINT BaseErrorMode;

VOID RaiseException(DWORD dwExceptionCode, DWORD dwExceptionFlags, DWORD nNumberOfArguments,
                    const ULONG_PTR *lpArguments)
{
    EXCEPTION_RECORD Record = {
        .ExceptionCode = (NTSTATUS)(dwExceptionCode & ~BASE_RESERVED_CODE_BIT),
        .ExceptionFlags = dwExceptionFlags & EXCEPTION_NONCONTINUABLE,
    };
    if (lpArguments != NULL) {
        Record.NumberParameters =
            nNumberOfArguments < EXCEPTION_MAXIMUM_PARAMETERS ? nNumberOfArguments : EXCEPTION_MAXIMUM_PARAMETERS;
        memcpy(Record.ExceptionInformation, lpArguments, Record.NumberParameters * sizeof(*lpArguments));
    }
    RtlRaiseException(&Record);
}

PVOID AddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler)
{
    return RtlAddVectoredExceptionHandler(First, Handler);
}

ULONG RemoveVectoredExceptionHandler(PVOID Handle)
{
    return RtlRemoveVectoredExceptionHandler(Handle);
}

PVOID AddVectoredContinueHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler)
{
    return RtlAddVectoredContinueHandler(First, Handler);
}

ULONG RemoveVectoredContinueHandler(PVOID Handle)
{
    return RtlRemoveVectoredContinueHandler(Handle);
}

LPTOP_LEVEL_EXCEPTION_FILTER SetUnhandledExceptionFilter(LPTOP_LEVEL_EXCEPTION_FILTER lpTopLevelExceptionFilter)
{
    return RtlSetUnhandledExceptionFilter(lpTopLevelExceptionFilter);
}

LONG UnhandledExceptionFilter(struct _EXCEPTION_POINTERS *ExceptionInfo)
{
    return RtlUnhandledExceptionFilter(ExceptionInfo);
}

UINT GetErrorMode(VOID)
{
    /* relaxed: the mode publishes nothing */
    return __atomic_load_n(&BaseErrorMode, __ATOMIC_RELAXED);
}

UINT SetErrorMode(UINT uMode)
{
    /* relaxed: as above */
    return __atomic_exchange_n(&BaseErrorMode, uMode, __ATOMIC_RELAXED);
}

BOOL IsDebuggerPresent(VOID)
{
    return HalIsDebuggerPresent();
}

VOID DebugBreak(VOID)
{
    if (HalIsDebuggerPresent()) {
        HalBreakIntoDebugger();
    } else {
        RaiseException(EXCEPTION_BREAKPOINT, 0, 0, NULL);
    }
}

/* To stderr, in pieces that HalPrint does not truncate. */
VOID OutputDebugStringA(LPCSTR lpOutputString)
{
    SIZE_T Left = lpOutputString != NULL ? strlen(lpOutputString) : 0;
    while (Left != 0) {
        SIZE_T Piece = Left < BASE_DEBUG_BYTES ? Left : BASE_DEBUG_BYTES;
        HalPrint("%.*s", (int)Piece, lpOutputString);
        lpOutputString += Piece;
        Left -= Piece;
    }
}

VOID OutputDebugStringW(LPCWSTR lpOutputString)
{
    CHAR Text[BASE_DEBUG_BYTES];
    SIZE_T Left = (SIZE_T)lstrlenW(lpOutputString);
    while (Left != 0) {
        SIZE_T Most = sizeof(Text) / 3 - 1;
        SIZE_T Piece = Left <= Most ? Left : Most;
        /* Does not split a surrogate pair. */
        Piece += Piece < Left && (lpOutputString[Piece - 1] & 0xFC00) == 0xD800;
        Text[ExpWideToUtf8(lpOutputString, Piece, Text, sizeof(Text) - 1, NULL)] = 0;
        OutputDebugStringA(Text);
        lpOutputString += Piece;
        Left -= Piece;
    }
}
