/* program.c: the program's environment, standard handles and console events. */
#include <interlock/io.h>

#include "../hal/hal.h"
#include "../ke/ki.h"
#include "../ke/ownthread.h"
#include "../nt/ntp.h"
#include "base.h"

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
        RtlSetLastWin32Error(Length == 0 ? ERROR_SUCCESS : ERROR_ENVVAR_NOT_FOUND);
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
        RtlSetLastWin32Error(ERROR_ENVVAR_NOT_FOUND);
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
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
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
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
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
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
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

/*
 * Standard handles, reading and writing them, and console events.
 *
 * A standard handle is created at its first use: a descriptor object for 0, 1 or 2.
 *
 * Console events. A thread of the library's own waits for signals (hal/console.c) and starts a thread for each event, as
 * Windows does: a handler that blocks does not delay the next event. Handlers are a list, last one first; the thread of
 * an event calls the handlers of a copy, so handlers may add and remove.
 */

/* Standard handles. */

#define BASE_NOT_MADE ((HANDLE)(LONG_PTR)-4096)

static HANDLE volatile BaseStandard[3] = {BASE_NOT_MADE, BASE_NOT_MADE, BASE_NOT_MADE};

/* NULL: there is no such handle. */
static HANDLE volatile *BaseStandardPlace(DWORD Number)
{
    ULONG Index = STD_INPUT_HANDLE - Number;
    if (Index >= RTL_NUMBER_OF(BaseStandard)) {
        RtlSetLastWin32Error(ERROR_INVALID_HANDLE);
        return NULL;
    }
    return &BaseStandard[Index];
}

static HANDLE BaseMakeStandard(ULONG Number)
{
    HANDLE Handle = NULL;
    ULONG Events = Number == 0 ? IO_DESCRIPTOR_READABLE : IO_DESCRIPTOR_WRITABLE;
    if (HalQueryDescriptorKind((LONG)Number) == HalUnknownFile) {
        return NULL;
    }
    return BaseBoolStatus(IoCreateDescriptorObject(&Handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, (int)Number, Events))
               ? Handle
               : INVALID_HANDLE_VALUE;
}

HANDLE GetStdHandle(DWORD nStdHandle)
{
    HANDLE volatile *Place = BaseStandardPlace(nStdHandle);
    HANDLE NotMade = BASE_NOT_MADE;
    HANDLE Handle;
    if (Place == NULL) {
        return INVALID_HANDLE_VALUE;
    }
    /* acquire, release: a thread that finds the handle finds its object */
    Handle = __atomic_load_n(Place, __ATOMIC_ACQUIRE);
    if (Handle != BASE_NOT_MADE) {
        return Handle;
    }
    Handle = BaseMakeStandard((ULONG)(Place - BaseStandard));
    if (Handle != NULL && Handle != INVALID_HANDLE_VALUE &&
        !__atomic_compare_exchange_n(Place, &NotMade, Handle, FALSE, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        CloseHandle(Handle);
        Handle = NotMade;
    }
    return Handle;
}

BOOL SetStdHandle(DWORD nStdHandle, HANDLE hHandle)
{
    HANDLE volatile *Place = BaseStandardPlace(nStdHandle);
    if (Place == NULL) {
        return FALSE;
    }
    __atomic_store_n(Place, hHandle, __ATOMIC_RELEASE);
    return TRUE;
}

/* Files. */

DWORD GetFileType(HANDLE hFile)
{
    static const DWORD Types[] = {
        [HalUnknownFile] = FILE_TYPE_UNKNOWN, [HalDiskFile] = FILE_TYPE_DISK, [HalTerminal] = FILE_TYPE_CHAR,
        [HalCharacterFile] = FILE_TYPE_CHAR,  [HalPipe] = FILE_TYPE_PIPE,
    };
    HAL_DESCRIPTOR_KIND Kind = HalUnknownFile;
    if (BaseBoolStatus(NtpQueryDescriptorKind(hFile, &Kind))) {
        RtlSetLastWin32Error(ERROR_SUCCESS); /* an unknown type is not a failure */
    }
    return Types[Kind];
}

static NTSTATUS BaseCheckTransfer(const VOID *Buffer, DWORD Length, LPDWORD Done, LPOVERLAPPED Overlapped)
{
    if (Overlapped != NULL) {
        return STATUS_NOT_SUPPORTED;
    }
    return Done == NULL || (Buffer == NULL && Length != 0) ? STATUS_ACCESS_VIOLATION : STATUS_SUCCESS;
}

BOOL ReadFile(HANDLE hFile, LPVOID lpBuffer, DWORD nNumberOfBytesToRead, LPDWORD lpNumberOfBytesRead,
              LPOVERLAPPED lpOverlapped)
{
    NTSTATUS Status = BaseCheckTransfer(lpBuffer, nNumberOfBytesToRead, lpNumberOfBytesRead, lpOverlapped);
    if (NT_SUCCESS(Status)) {
        Status = NtpReadDescriptor(hFile, lpBuffer, nNumberOfBytesToRead, lpNumberOfBytesRead);
    }
    return BaseBoolStatus(Status);
}

BOOL WriteFile(HANDLE hFile, LPCVOID lpBuffer, DWORD nNumberOfBytesToWrite, LPDWORD lpNumberOfBytesWritten,
               LPOVERLAPPED lpOverlapped)
{
    NTSTATUS Status = BaseCheckTransfer(lpBuffer, nNumberOfBytesToWrite, lpNumberOfBytesWritten, lpOverlapped);
    if (NT_SUCCESS(Status)) {
        Status = NtpWriteDescriptor(hFile, lpBuffer, nNumberOfBytesToWrite, lpNumberOfBytesWritten);
    }
    return BaseBoolStatus(Status);
}

/* Terminals. */

static BOOL BaseIsConsole(HANDLE Handle)
{
    HAL_DESCRIPTOR_KIND Kind;
    if (NT_SUCCESS(NtpQueryDescriptorKind(Handle, &Kind)) && Kind == HalTerminal) {
        return TRUE;
    }
    RtlSetLastWin32Error(ERROR_INVALID_HANDLE);
    return FALSE;
}

BOOL WriteConsoleA(HANDLE hConsoleOutput, const VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                   LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved)
{
    DWORD Written;
    UNREFERENCED_PARAMETER(lpReserved);
    return BaseIsConsole(hConsoleOutput) &&
           WriteFile(hConsoleOutput, lpBuffer, nNumberOfCharsToWrite,
                     lpNumberOfCharsWritten != NULL ? lpNumberOfCharsWritten : &Written, NULL);
}

BOOL WriteConsoleW(HANDLE hConsoleOutput, const VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                   LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved)
{
    SIZE_T Size;
    PSTR Text;
    DWORD Bytes;
    BOOL Written;
    UNREFERENCED_PARAMETER(lpReserved);
    if (!BaseIsConsole(hConsoleOutput)) {
        return FALSE;
    }
    Size = ExpWideToUtf8(lpBuffer, nNumberOfCharsToWrite, NULL, 0, NULL);
    Text = HalAllocate(Size, 1);
    if (Text == NULL) {
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
        return FALSE;
    }
    ExpWideToUtf8(lpBuffer, nNumberOfCharsToWrite, Text, Size, NULL);
    Written = WriteFile(hConsoleOutput, Text, (DWORD)Size, &Bytes, NULL);
    HalFree(Text);
    if (lpNumberOfCharsWritten != NULL) {
        *lpNumberOfCharsWritten = Written ? nNumberOfCharsToWrite : 0;
    }
    return Written;
}

BOOL GetConsoleMode(HANDLE hConsoleHandle, LPDWORD lpMode)
{
    if (!BaseIsConsole(hConsoleHandle)) {
        return FALSE;
    }
    if (lpMode == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    *lpMode = ENABLE_PROCESSED_INPUT | ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT;
    C_ASSERT((ENABLE_PROCESSED_INPUT | ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT) ==
             (ENABLE_PROCESSED_OUTPUT | ENABLE_WRAP_AT_EOL_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING));
    return TRUE;
}

BOOL SetConsoleMode(HANDLE hConsoleHandle, DWORD dwMode)
{
    UNREFERENCED_PARAMETER(dwMode);
    return BaseIsConsole(hConsoleHandle);
}

/* Console events. */

typedef struct _BASE_CONTROL_HANDLER {
    LIST_ENTRY ListEntry;
    PHANDLER_ROUTINE Routine;
} BASE_CONTROL_HANDLER, *PBASE_CONTROL_HANDLER;

static struct {
    KI_LOCK Lock;
    LIST_ENTRY Handlers;             /* the last one first */
    ULONG Count;
    BOOLEAN IgnoreInterrupt;
} BaseControl = {.Handlers = {&BaseControl.Handlers, &BaseControl.Handlers}};

static const DWORD BaseControlTypes[] = {
    [HalConsoleInterrupt] = CTRL_C_EVENT,
    [HalConsoleBreak] = CTRL_BREAK_EVENT,
    [HalConsoleClose] = CTRL_CLOSE_EVENT,
    [HalConsoleShutdown] = CTRL_SHUTDOWN_EVENT,
};

/* Fills as many as there is room for, and returns how many there are. */
static ULONG BaseCopyHandlers(PHANDLER_ROUTINE *Routines, ULONG Room)
{
    ULONG Count = 0;
    PKTHREAD Thread = KiEnterLocked(&BaseControl.Lock);
    for (PLIST_ENTRY Entry = BaseControl.Handlers.Flink; Entry != &BaseControl.Handlers; Entry = Entry->Flink) {
        if (Count < Room) {
            Routines[Count] = CONTAINING_RECORD(Entry, BASE_CONTROL_HANDLER, ListEntry)->Routine;
        }
        Count += 1;
    }
    KiExitLocked(&BaseControl.Lock, Thread);
    return Count;
}

static BOOLEAN BaseCallHandlers(DWORD Type)
{
    PHANDLER_ROUTINE *Routines = NULL;
    BOOLEAN Handled = FALSE;
    ULONG Room = 0;
    ULONG Count;
    while ((Count = BaseCopyHandlers(Routines, Room)) > Room) {
        HalFree(Routines);
        Routines = HalAllocate(Count * sizeof(*Routines), MEMORY_ALLOCATION_ALIGNMENT);
        if (Routines == NULL) {
            return FALSE;
        }
        Room = Count;
    }
    for (ULONG Number = 0; Number < Count && !Handled; Number++) {
        Handled = Routines[Number](Type) != FALSE;
    }
    HalFree(Routines);
    return Handled;
}

static DWORD BaseDeliverControl(LPVOID Parameter)
{
    HAL_CONSOLE_EVENT Event = (HAL_CONSOLE_EVENT)(ULONG_PTR)Parameter;
    PKTHREAD Thread = KiEnterLocked(&BaseControl.Lock);
    BOOLEAN Ignore = Event == HalConsoleInterrupt && BaseControl.IgnoreInterrupt;
    KiExitLocked(&BaseControl.Lock, Thread);
    if (Ignore) {
        return 0;
    }
    if (!BaseCallHandlers(BaseControlTypes[Event]) || Event == HalConsoleClose || Event == HalConsoleShutdown) {
        HalTakeDefaultAction(Event);
    }
    return 0;
}

static VOID BaseConsoleRoutine(PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    KiBecomeOwnThread(); /* the process may end while it runs */
    for (;;) {
        PVOID Event = (PVOID)(ULONG_PTR)HalAwaitConsoleEvent();
        HANDLE Thread = CreateThread(NULL, 0, BaseDeliverControl, Event, 0, NULL);
        if (Thread != NULL) {
            CloseHandle(Thread);
        } else {
            BaseDeliverControl(Event);
        }
    }
}

static const KI_OWN_KIND BaseConsoleKind = {.Name = "interlock-cons", .Routine = BaseConsoleRoutine};
static KI_OWN_THREAD BaseConsoleThread = {.Kind = &BaseConsoleKind};

/* Signals are watched while there are handlers for them. */
static BOOL BaseWatchConsole(VOID)
{
    PKTHREAD Thread = KiEnterLocked(&BaseControl.Lock);
    BOOLEAN Wanted = BaseControl.Count != 0 || BaseControl.IgnoreInterrupt;
    KiExitLocked(&BaseControl.Lock, Thread);
    return BaseBoolStatus(HalWatchConsole(Wanted) ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED);
}

static BOOL BaseAddHandler(PHANDLER_ROUTINE Routine)
{
    PBASE_CONTROL_HANDLER Handler = HalAllocate(sizeof(*Handler), MEMORY_ALLOCATION_ALIGNMENT);
    if (Handler == NULL) {
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
        return FALSE;
    }
    Handler->Routine = Routine;
    PKTHREAD Thread = KiEnterLocked(&BaseControl.Lock);
    InsertHeadList(&BaseControl.Handlers, &Handler->ListEntry);
    BaseControl.Count += 1;
    KiExitLocked(&BaseControl.Lock, Thread);
    return BaseWatchConsole();
}

/* The one that was added last, if it is there more than once. */
static BOOL BaseRemoveHandler(PHANDLER_ROUTINE Routine)
{
    PBASE_CONTROL_HANDLER Found = NULL;
    PKTHREAD Thread = KiEnterLocked(&BaseControl.Lock);
    for (PLIST_ENTRY Entry = BaseControl.Handlers.Flink; Entry != &BaseControl.Handlers && Found == NULL;
         Entry = Entry->Flink) {
        PBASE_CONTROL_HANDLER Handler = CONTAINING_RECORD(Entry, BASE_CONTROL_HANDLER, ListEntry);
        Found = Handler->Routine == Routine ? Handler : NULL;
    }
    if (Found != NULL) {
        RemoveEntryList(&Found->ListEntry);
        BaseControl.Count -= 1;
    }
    KiExitLocked(&BaseControl.Lock, Thread);
    if (Found == NULL) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    HalFree(Found);
    return BaseWatchConsole();
}

BOOL SetConsoleCtrlHandler(PHANDLER_ROUTINE HandlerRoutine, BOOL Add)
{
    if (Add && !BaseBoolStatus(KiEnsureOwnThread(&BaseConsoleThread))) {
        return FALSE;
    }
    if (HandlerRoutine == NULL) { /* whether Ctrl+C is ignored */
        PKTHREAD Thread = KiEnterLocked(&BaseControl.Lock);
        BaseControl.IgnoreInterrupt = Add != FALSE;
        KiExitLocked(&BaseControl.Lock, Thread);
        return BaseWatchConsole();
    }
    return Add ? BaseAddHandler(HandlerRoutine) : BaseRemoveHandler(HandlerRoutine);
}

BOOL GenerateConsoleCtrlEvent(DWORD dwCtrlEvent, DWORD dwProcessGroupId)
{
    HAL_CONSOLE_EVENT Event = dwCtrlEvent == CTRL_C_EVENT ? HalConsoleInterrupt : HalConsoleBreak;
    if ((dwCtrlEvent != CTRL_C_EVENT && dwCtrlEvent != CTRL_BREAK_EVENT) ||
        !HalSendConsoleEvent(dwProcessGroupId, Event)) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    return TRUE;
}
