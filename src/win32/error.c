/*
 * error.c: the last error of a thread, the texts of errors, exceptions and error modes. A text is the error's name in words.
 */
#include <ctype.h>

#include "../hal/hal.h"
#include "base.h"

#define BASE_LONGEST_TEXT 128
#define BASE_WIN32_HRESULT 0x80070000u

ULONG BaseSetLastNTError(NTSTATUS Status)
{
    ULONG Error = RtlNtStatusToDosError(Status);
    RtlSetLastWin32Error(Error);
    return Error;
}

BOOL BaseBoolStatus(NTSTATUS Status)
{
    if (NT_SUCCESS(Status)) {
        return TRUE;
    }
    BaseSetLastNTError(Status);
    return FALSE;
}

DWORD GetLastError(VOID)
{
    return RtlGetLastWin32Error();
}

VOID SetLastError(DWORD dwErrCode)
{
    RtlSetLastWin32Error(dwErrCode);
}

VOID SetLastErrorEx(DWORD dwErrCode, DWORD dwType)
{
    UNREFERENCED_PARAMETER(dwType);
    RtlSetLastWin32Error(dwErrCode);
}

VOID RestoreLastError(DWORD dwErrCode)
{
    RtlSetLastWin32Error(dwErrCode);
}

/* Texts. */

typedef struct _BASE_ERROR_NAME {
    ULONG Error;
    PCSTR Name;
} BASE_ERROR_NAME;

#define BASE_NAME(Name) {ERROR_##Name, #Name}

/* Sorted. */
static const BASE_ERROR_NAME BaseErrorNames[] = {
    BASE_NAME(SUCCESS),
    BASE_NAME(INVALID_FUNCTION),
    BASE_NAME(FILE_NOT_FOUND),
    BASE_NAME(PATH_NOT_FOUND),
    BASE_NAME(TOO_MANY_OPEN_FILES),
    BASE_NAME(ACCESS_DENIED),
    BASE_NAME(INVALID_HANDLE),
    BASE_NAME(ARENA_TRASHED),
    BASE_NAME(NOT_ENOUGH_MEMORY),
    BASE_NAME(INVALID_BLOCK),
    BASE_NAME(BAD_ENVIRONMENT),
    BASE_NAME(BAD_FORMAT),
    BASE_NAME(INVALID_ACCESS),
    BASE_NAME(INVALID_DATA),
    BASE_NAME(OUTOFMEMORY),
    BASE_NAME(INVALID_DRIVE),
    BASE_NAME(NOT_SAME_DEVICE),
    BASE_NAME(NO_MORE_FILES),
    BASE_NAME(WRITE_PROTECT),
    BASE_NAME(NOT_READY),
    BASE_NAME(BAD_COMMAND),
    BASE_NAME(CRC),
    BASE_NAME(BAD_LENGTH),
    BASE_NAME(WRITE_FAULT),
    BASE_NAME(READ_FAULT),
    BASE_NAME(GEN_FAILURE),
    BASE_NAME(SHARING_VIOLATION),
    BASE_NAME(LOCK_VIOLATION),
    BASE_NAME(HANDLE_EOF),
    BASE_NAME(NOT_SUPPORTED),
    BASE_NAME(DUP_NAME),
    BASE_NAME(TOO_MANY_CMDS),
    BASE_NAME(UNEXP_NET_ERR),
    BASE_NAME(NETNAME_DELETED),
    BASE_NAME(FILE_EXISTS),
    BASE_NAME(INVALID_PARAMETER),
    BASE_NAME(NO_PROC_SLOTS),
    BASE_NAME(TOO_MANY_SEMAPHORES),
    BASE_NAME(EXCL_SEM_ALREADY_OWNED),
    BASE_NAME(SEM_IS_SET),
    BASE_NAME(TOO_MANY_SEM_REQUESTS),
    BASE_NAME(BROKEN_PIPE),
    BASE_NAME(BUFFER_OVERFLOW),
    BASE_NAME(DISK_FULL),
    BASE_NAME(CALL_NOT_IMPLEMENTED),
    BASE_NAME(SEM_TIMEOUT),
    BASE_NAME(INSUFFICIENT_BUFFER),
    BASE_NAME(INVALID_NAME),
    BASE_NAME(INVALID_LEVEL),
    BASE_NAME(MOD_NOT_FOUND),
    BASE_NAME(PROC_NOT_FOUND),
    BASE_NAME(WAIT_NO_CHILDREN),
    BASE_NAME(NEGATIVE_SEEK),
    BASE_NAME(DIR_NOT_EMPTY),
    BASE_NAME(SIGNAL_REFUSED),
    BASE_NAME(NOT_LOCKED),
    BASE_NAME(BAD_ARGUMENTS),
    BASE_NAME(BAD_PATHNAME),
    BASE_NAME(SIGNAL_PENDING),
    BASE_NAME(MAX_THRDS_REACHED),
    BASE_NAME(LOCK_FAILED),
    BASE_NAME(BUSY),
    BASE_NAME(INVALID_ORDINAL),
    BASE_NAME(ALREADY_EXISTS),
    BASE_NAME(SEM_NOT_FOUND),
    BASE_NAME(BAD_EXE_FORMAT),
    BASE_NAME(ENVVAR_NOT_FOUND),
    BASE_NAME(NO_SIGNAL_SENT),
    BASE_NAME(FILENAME_EXCED_RANGE),
    BASE_NAME(THREAD_1_INACTIVE),
    BASE_NAME(LOCKED),
    BASE_NAME(NESTING_NOT_ALLOWED),
    BASE_NAME(BAD_PIPE),
    BASE_NAME(PIPE_BUSY),
    BASE_NAME(NO_DATA),
    BASE_NAME(PIPE_NOT_CONNECTED),
    BASE_NAME(MORE_DATA),
    BASE_NAME(NO_WORK_DONE),
    BASE_NAME(NO_MORE_ITEMS),
    BASE_NAME(DIRECTORY),
    BASE_NAME(NOT_OWNER),
    BASE_NAME(TOO_MANY_POSTS),
    BASE_NAME(PARTIAL_COPY),
    BASE_NAME(INVALID_LOCK_RANGE),
    BASE_NAME(MR_MID_NOT_FOUND),
    BASE_NAME(OPERATION_IN_PROGRESS),
    BASE_NAME(THREAD_MODE_ALREADY_BACKGROUND),
    BASE_NAME(THREAD_MODE_NOT_BACKGROUND),
    BASE_NAME(PROCESS_MODE_ALREADY_BACKGROUND),
    BASE_NAME(PROCESS_MODE_NOT_BACKGROUND),
    BASE_NAME(NO_SUCH_DEVICE),
    BASE_NAME(INVALID_ADDRESS),
    BASE_NAME(ARITHMETIC_OVERFLOW),
    BASE_NAME(PIPE_CONNECTED),
    BASE_NAME(PIPE_LISTENING),
    BASE_NAME(VERIFIER_STOP),
    BASE_NAME(TIMER_NOT_CANCELED),
    BASE_NAME(UNWIND),
    BASE_NAME(BAD_STACK),
    BASE_NAME(INVALID_UNWIND_TARGET),
    BASE_NAME(INVALID_PORT_ATTRIBUTES),
    BASE_NAME(PORT_MESSAGE_TOO_LONG),
    BASE_NAME(INVALID_QUOTA_LOWER),
    BASE_NAME(DEVICE_ALREADY_ATTACHED),
    BASE_NAME(INSTRUCTION_MISALIGNMENT),
    BASE_NAME(CANT_WAIT),
    BASE_NAME(CANT_TERMINATE_SELF),
    BASE_NAME(BAD_FUNCTION_TABLE),
    BASE_NAME(TOO_MANY_THREADS),
    BASE_NAME(THREAD_NOT_IN_PROCESS),
    BASE_NAME(PAGEFILE_QUOTA_EXCEEDED),
    BASE_NAME(SYNCHRONIZATION_REQUIRED),
    BASE_NAME(NET_OPEN_FAILED),
    BASE_NAME(CONTROL_C_EXIT),
    BASE_NAME(UNHANDLED_EXCEPTION),
    BASE_NAME(APP_INIT_FAILURE),
    BASE_NAME(NO_EVENT_PAIR),
    BASE_NAME(ILLEGAL_CHARACTER),
    BASE_NAME(UNDEFINED_CHARACTER),
    BASE_NAME(MUTANT_LIMIT_EXCEEDED),
    BASE_NAME(DEBUG_ATTACH_FAILED),
    BASE_NAME(SYSTEM_PROCESS_TERMINATED),
    BASE_NAME(DATA_NOT_ACCEPTED),
    BASE_NAME(DRIVER_CANCEL_TIMEOUT),
    BASE_NAME(REPLY_MESSAGE_MISMATCH),
    BASE_NAME(STACK_OVERFLOW_READ),
    BASE_NAME(FOUND_OUT_OF_SCOPE),
    BASE_NAME(TIMER_RESOLUTION_NOT_SET),
    BASE_NAME(NO_CALLBACK_ACTIVE),
    BASE_NAME(VALIDATE_CONTINUE),
    BASE_NAME(NO_MORE_MATCHES),
    BASE_NAME(FLOAT_MULTIPLE_FAULTS),
    BASE_NAME(FLOAT_MULTIPLE_TRAPS),
    BASE_NAME(NOINTERFACE),
    BASE_NAME(COMMITMENT_MINIMUM),
    BASE_NAME(SYSTEM_SHUTDOWN),
    BASE_NAME(PORT_NOT_SET),
    BASE_NAME(ASSERTION_FAILURE),
    BASE_NAME(HANDLES_CLOSED),
    BASE_NAME(STOPPED_ON_SYMLINK),
    BASE_NAME(LONGJUMP),
    BASE_NAME(UNWIND_CONSOLIDATE),
    BASE_NAME(DBG_EXCEPTION_NOT_HANDLED),
    BASE_NAME(DBG_REPLY_LATER),
    BASE_NAME(DBG_TERMINATE_THREAD),
    BASE_NAME(DBG_TERMINATE_PROCESS),
    BASE_NAME(DBG_CONTROL_C),
    BASE_NAME(DBG_PRINTEXCEPTION_C),
    BASE_NAME(DBG_RIPEXCEPTION),
    BASE_NAME(DBG_CONTROL_BREAK),
    BASE_NAME(DBG_COMMAND_EXCEPTION),
    BASE_NAME(OBJECT_NAME_EXISTS),
    BASE_NAME(THREAD_WAS_SUSPENDED),
    BASE_NAME(RECEIVE_PARTIAL),
    BASE_NAME(EVENT_DONE),
    BASE_NAME(EVENT_PENDING),
    BASE_NAME(FATAL_APP_EXIT),
    BASE_NAME(PREDEFINED_HANDLE),
    BASE_NAME(WAS_UNLOCKED),
    BASE_NAME(WAS_LOCKED),
    BASE_NAME(ALREADY_WIN32),
    BASE_NAME(NO_YIELD_PERFORMED),
    BASE_NAME(TIMER_RESUME_IGNORED),
    BASE_NAME(WAIT_1),
    BASE_NAME(WAIT_2),
    BASE_NAME(WAIT_3),
    BASE_NAME(WAIT_63),
    BASE_NAME(ABANDONED_WAIT_0),
    BASE_NAME(ABANDONED_WAIT_63),
    BASE_NAME(USER_APC),
    BASE_NAME(KERNEL_APC),
    BASE_NAME(ALERTED),
    BASE_NAME(ELEVATION_REQUIRED),
    BASE_NAME(REPARSE),
    BASE_NAME(NOTIFY_CLEANUP),
    BASE_NAME(CRASH_DUMP),
    BASE_NAME(REPARSE_OBJECT),
    BASE_NAME(NOTHING_TO_TERMINATE),
    BASE_NAME(PROCESS_NOT_IN_JOB),
    BASE_NAME(PROCESS_IN_JOB),
    BASE_NAME(INTERRUPT_VECTOR_ALREADY_CONNECTED),
    BASE_NAME(INTERRUPT_STILL_CONNECTED),
    BASE_NAME(DBG_EXCEPTION_HANDLED),
    BASE_NAME(DBG_CONTINUE),
    BASE_NAME(CALLBACK_POP_STACK),
    BASE_NAME(NOT_CAPABLE),
    BASE_NAME(REQUEST_OUT_OF_SEQUENCE),
    BASE_NAME(OPERATION_ABORTED),
    BASE_NAME(IO_INCOMPLETE),
    BASE_NAME(IO_PENDING),
    BASE_NAME(NOACCESS),
    BASE_NAME(SWAPERROR),
    BASE_NAME(STACK_OVERFLOW),
    BASE_NAME(INVALID_MESSAGE),
    BASE_NAME(CAN_NOT_COMPLETE),
    BASE_NAME(INVALID_FLAGS),
    BASE_NAME(NO_TOKEN),
    BASE_NAME(KEY_DELETED),
    BASE_NAME(NOTIFY_ENUM_DIR),
    BASE_NAME(SERVICE_NOT_ACTIVE),
    BASE_NAME(NO_UNICODE_TRANSLATION),
    BASE_NAME(DLL_INIT_FAILED),
    BASE_NAME(SHUTDOWN_IN_PROGRESS),
    BASE_NAME(IO_DEVICE),
    BASE_NAME(COUNTER_TIMEOUT),
    BASE_NAME(NOT_ENOUGH_SERVER_MEMORY),
    BASE_NAME(POSSIBLE_DEADLOCK),
    BASE_NAME(MAPPED_ALIGNMENT),
    BASE_NAME(OLD_WIN_VERSION),
    BASE_NAME(DEVICE_NOT_CONNECTED),
    BASE_NAME(NOT_FOUND),
    BASE_NAME(NO_MATCH),
    BASE_NAME(CANCELLED),
    BASE_NAME(CONNECTION_REFUSED),
    BASE_NAME(GRACEFUL_DISCONNECT),
    BASE_NAME(CONNECTION_INVALID),
    BASE_NAME(CONNECTION_ACTIVE),
    BASE_NAME(REQUEST_ABORTED),
    BASE_NAME(CONNECTION_ABORTED),
    BASE_NAME(RETRY),
    BASE_NAME(ALREADY_REGISTERED),
    BASE_NAME(ALREADY_INITIALIZED),
    BASE_NAME(ALREADY_FIBER),
    BASE_NAME(ALREADY_THREAD),
    BASE_NAME(STACK_BUFFER_OVERRUN),
    BASE_NAME(PARAMETER_QUOTA_EXCEEDED),
    BASE_NAME(DEBUGGER_INACTIVE),
    BASE_NAME(INVALID_CRUNTIME_PARAMETER),
    BASE_NAME(IMPLEMENTATION_LIMIT),
    BASE_NAME(PROCESS_IS_PROTECTED),
    BASE_NAME(NOT_ALL_ASSIGNED),
    BASE_NAME(SOME_NOT_MAPPED),
    BASE_NAME(UNKNOWN_REVISION),
    BASE_NAME(REVISION_MISMATCH),
    BASE_NAME(INVALID_OWNER),
    BASE_NAME(NO_IMPERSONATION_TOKEN),
    BASE_NAME(NO_SUCH_PRIVILEGE),
    BASE_NAME(PRIVILEGE_NOT_HELD),
    BASE_NAME(INVALID_ACL),
    BASE_NAME(INVALID_SID),
    BASE_NAME(INVALID_SECURITY_DESCR),
    BASE_NAME(BAD_IMPERSONATION_LEVEL),
    BASE_NAME(CANT_OPEN_ANONYMOUS),
    BASE_NAME(NO_SECURITY_ON_OBJECT),
    BASE_NAME(INTERNAL_ERROR),
    BASE_NAME(GENERIC_NOT_MAPPED),
    BASE_NAME(CANNOT_IMPERSONATE),
    BASE_NAME(TOKEN_ALREADY_IN_USE),
    BASE_NAME(FILE_CORRUPT),
    BASE_NAME(INVALID_INDEX),
    BASE_NAME(INVALID_THREAD_ID),
    BASE_NAME(NO_SYSTEM_RESOURCES),
    BASE_NAME(WORKING_SET_QUOTA),
    BASE_NAME(PAGEFILE_QUOTA),
    BASE_NAME(COMMITMENT_LIMIT),
    BASE_NAME(TIMEOUT),
    BASE_NAME(SYMLINK_CLASS_DISABLED),
    BASE_NAME(THREAD_ALREADY_IN_TASK),
    BASE_NAME(DEVICE_REMOVED),
    BASE_NAME(FAIL_FAST_EXCEPTION),
    BASE_NAME(NOT_SAME_OBJECT),
    BASE_NAME(INVALID_USER_BUFFER),
    BASE_NAME(INVALID_PRIORITY),
    BASE_NAME(RESOURCE_TYPE_NOT_FOUND),
    BASE_NAME(NOT_ENOUGH_QUOTA),
    BASE_NAME(ACTIVE_CONNECTIONS),
    BASE_NAME(INVALID_OPERATION),
    BASE_NAME(REPARSE_POINT_ENCOUNTERED),
    BASE_NAME(RESOURCE_NOT_FOUND),
    BASE_NAME(INVALID_STATE),
};

static PCSTR BaseNameOfError(ULONG Error)
{
    SIZE_T Low = 0;
    SIZE_T High = RTL_NUMBER_OF(BaseErrorNames);
    while (Low < High) {
        SIZE_T Middle = (Low + High) / 2;
        if (BaseErrorNames[Middle].Error < Error) {
            Low = Middle + 1;
        } else {
            High = Middle;
        }
    }
    return Low < RTL_NUMBER_OF(BaseErrorNames) && BaseErrorNames[Low].Error == Error ? BaseErrorNames[Low].Name : NULL;
}

/* FILE_NOT_FOUND: "File not found.". Returns the length, or 0 with the last error set. */
static SIZE_T BaseFormatText(DWORD Flags, ULONG Error, PSTR Text)
{
    PCSTR Name;
    if (!(Flags & FORMAT_MESSAGE_FROM_SYSTEM) || Flags & FORMAT_MESSAGE_FROM_STRING) {
        RtlSetLastWin32Error(Flags & FORMAT_MESSAGE_FROM_STRING ? ERROR_NOT_SUPPORTED : ERROR_INVALID_PARAMETER);
        return 0;
    }
    Name = BaseNameOfError((Error & 0xFFFF0000u) == BASE_WIN32_HRESULT ? Error & 0xFFFF : Error);
    if (Name == NULL) {
        RtlSetLastWin32Error(ERROR_MR_MID_NOT_FOUND);
        return 0;
    }
    SIZE_T Length = 0;
    for (; Name[Length] != 0; Length++) {
        Text[Length] = Name[Length] == '_' ? ' ' : (CHAR)tolower((UCHAR)Name[Length]);
    }
    Text[0] = Name[0];
    strcpy(Text + Length, (Flags & FORMAT_MESSAGE_MAX_WIDTH_MASK) == FORMAT_MESSAGE_MAX_WIDTH_MASK ? ". " : ".\r\n");
    return strlen(Text);
}

/* The buffer for a text of Needed bytes: the caller's, or a new one whose address goes there. */
static PVOID BaseMessageBuffer(DWORD Flags, PVOID Buffer, SIZE_T Room, SIZE_T Needed)
{
    PVOID Memory;
    if (Buffer == NULL || (!(Flags & FORMAT_MESSAGE_ALLOCATE_BUFFER) && Room < Needed)) {
        RtlSetLastWin32Error(Buffer == NULL ? ERROR_INVALID_PARAMETER : ERROR_INSUFFICIENT_BUFFER);
        return NULL;
    }
    if (!(Flags & FORMAT_MESSAGE_ALLOCATE_BUFFER)) {
        return Buffer;
    }
    Memory = LocalAlloc(LMEM_FIXED, Room > Needed ? Room : Needed);
    memcpy(Buffer, &Memory, sizeof(Memory));
    return Memory;
}

/* Formats the text and returns the buffer of Count units that it goes to, or NULL with the last error set. */
static PVOID BaseFormatMessage(DWORD Flags, DWORD MessageId, PVOID Buffer, SIZE_T Count, SIZE_T Unit,
                               CHAR Text[BASE_LONGEST_TEXT], SIZE_T *Length)
{
    *Length = BaseFormatText(Flags, MessageId, Text);
    return *Length == 0 ? NULL : BaseMessageBuffer(Flags, Buffer, Count * Unit, (*Length + 1) * Unit);
}

DWORD FormatMessageA(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId, LPSTR lpBuffer,
                     DWORD nSize, va_list *Arguments)
{
    CHAR Text[BASE_LONGEST_TEXT];
    SIZE_T Length;
    PVOID Target = BaseFormatMessage(dwFlags, dwMessageId, lpBuffer, nSize, sizeof(CHAR), Text, &Length);
    UNREFERENCED_PARAMETER(lpSource);
    UNREFERENCED_PARAMETER(dwLanguageId);
    UNREFERENCED_PARAMETER(Arguments);
    if (Target == NULL) {
        return 0;
    }
    memcpy(Target, Text, Length + 1);
    return (DWORD)Length;
}

DWORD FormatMessageW(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId, LPWSTR lpBuffer,
                     DWORD nSize, va_list *Arguments)
{
    CHAR Text[BASE_LONGEST_TEXT];
    SIZE_T Length;
    PVOID Target = BaseFormatMessage(dwFlags, dwMessageId, lpBuffer, nSize, sizeof(WCHAR), Text, &Length);
    UNREFERENCED_PARAMETER(lpSource);
    UNREFERENCED_PARAMETER(dwLanguageId);
    UNREFERENCED_PARAMETER(Arguments);
    if (Target == NULL) {
        return 0;
    }
    ExpUtf8ToWide(Text, Length + 1, Target, Length + 1, NULL);
    return (DWORD)Length;
}

/* Exceptions, error modes, debugger output and stack traces. */

#define BASE_RESERVED_CODE_BIT 0x10000000u
#define BASE_DEBUG_BYTES 960

#define BASE_ERROR_MODES                                                                                               \
    (SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOALIGNMENTFAULTEXCEPT | SEM_NOOPENFILEERRORBOX)

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
