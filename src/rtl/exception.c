/*
 * exception.c: raising exceptions and statuses, ending at once, and the vectored handlers of the process.
 *
 * 1. A handler is called without the lock, so it may register, remove and raise. Its caller counts itself in Users
 *    first, so the handler stays linked and the caller can continue with the next one.
 * 2. A removed handler is no longer called. It is unlinked and freed when its last user is done.
 * 3. The lock is held in dispatcher sections only, so a forked child never finds it held.
 */
#include <interlock/rtl.h>

#include "../ke/ki.h"
#include "../trace/trace.h"

typedef struct _RTLP_HANDLER {
    LIST_ENTRY ListEntry;
    PVECTORED_EXCEPTION_HANDLER Routine;
    ULONG Users;
    BOOLEAN Removed;
} RTLP_HANDLER, *PRTLP_HANDLER;

static KI_LOCK RtlpHandlerLock;
static LIST_ENTRY RtlpExceptionHandlers = {&RtlpExceptionHandlers, &RtlpExceptionHandlers};
static LIST_ENTRY RtlpContinueHandlers = {&RtlpContinueHandlers, &RtlpContinueHandlers};
static PRTLP_UNHANDLED_EXCEPTION_FILTER volatile RtlpUnhandledFilter;

VOID RtlRaiseStatus(NTSTATUS Status)
{
    KiRaiseStatus(Status);
}

VOID RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord)
{
    EXCEPTION_RECORD Record = *ExceptionRecord;
    if (Record.NumberParameters > EXCEPTION_MAXIMUM_PARAMETERS) {
        Record.NumberParameters = EXCEPTION_MAXIMUM_PARAMETERS; /* the record has room for no more */
    }
    Record.ExceptionAddress = __builtin_return_address(0);
    KiRaiseException(&Record);
}

VOID RtlFailFast(ULONG Code)
{
    KeBugCheckEx(KERNEL_SECURITY_CHECK_FAILURE, Code, 0, 0, 0);
}

/* Under the lock. Returns the handler if the caller must free it, or NULL. */
static PRTLP_HANDLER RtlpUnlinkIfUnused(PRTLP_HANDLER Handler)
{
    if (!Handler->Removed || Handler->Users != 0) {
        return NULL;
    }
    RemoveEntryList(&Handler->ListEntry);
    return Handler;
}

/* Releases Previous, and returns the handler after it (Previous is NULL: the first) for use, or NULL. Last: none. */
static PRTLP_HANDLER RtlpNextHandler(PLIST_ENTRY Head, PRTLP_HANDLER Previous, BOOLEAN Last)
{
    PRTLP_HANDLER Unused = NULL;
    PRTLP_HANDLER Next = NULL;
    PKTHREAD Thread = KiEnterLocked(&RtlpHandlerLock);
    PLIST_ENTRY Entry = Previous != NULL ? Previous->ListEntry.Flink : Head->Flink;
    while (!Last && Next == NULL && Entry != Head) {
        PRTLP_HANDLER Handler = CONTAINING_RECORD(Entry, RTLP_HANDLER, ListEntry);
        Next = Handler->Removed ? NULL : Handler;
        Entry = Entry->Flink;
    }
    if (Next != NULL) {
        Next->Users++;
    }
    if (Previous != NULL) {
        Previous->Users--;
        Unused = RtlpUnlinkIfUnused(Previous);
    }
    KiExitLocked(&RtlpHandlerLock, Thread);
    HalFree(Unused);
    return Next;
}

/* Calls the handlers in turn until one continues execution. */
static LONG RtlpCallHandlers(PLIST_ENTRY Head, PEXCEPTION_POINTERS Exception)
{
    LONG Disposition = EXCEPTION_CONTINUE_SEARCH;
    PRTLP_HANDLER Handler = RtlpNextHandler(Head, NULL, FALSE);
    while (Handler != NULL) {
        BOOLEAN Continue = Handler->Routine(Exception) == EXCEPTION_CONTINUE_EXECUTION;
        Disposition = Continue ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
        Handler = RtlpNextHandler(Head, Handler, Continue);
    }
    return Disposition;
}

static LONG RtlpFirstChance(PEXCEPTION_POINTERS Exception)
{
    LONG Disposition = RtlpCallHandlers(&RtlpExceptionHandlers, Exception);
    if (Disposition == EXCEPTION_CONTINUE_EXECUTION) {
        RtlpCallHandlers(&RtlpContinueHandlers, Exception);
    }
    return Disposition;
}

/* EXCEPTION_EXECUTE_HANDLER means the outermost handler, which ends the process. */
static LONG RtlpLastChance(PEXCEPTION_POINTERS Exception)
{
    LONG Disposition = RtlUnhandledExceptionFilter(Exception);
    if (Disposition == EXCEPTION_EXECUTE_HANDLER) {
        KTRACE_FINISH(TRUE);
        HalExitProcess((ULONG)Exception->ExceptionRecord->ExceptionCode, TRUE);
    }
    if (Disposition == EXCEPTION_CONTINUE_EXECUTION) {
        RtlpCallHandlers(&RtlpContinueHandlers, Exception);
    }
    return Disposition;
}

static VOID RtlpHookExceptions(VOID)
{
    /* release: pairs with the acquire of a thread that raises, which then finds the lists initialized */
    __atomic_store_n(&KiFirstChanceRoutine, RtlpFirstChance, __ATOMIC_RELEASE);
    __atomic_store_n(&KiLastChanceRoutine, RtlpLastChance, __ATOMIC_RELEASE);
}

static PVOID RtlpAddHandler(PLIST_ENTRY Head, ULONG First, PVECTORED_EXCEPTION_HANDLER Routine)
{
    PRTLP_HANDLER Handler = HalAllocate(sizeof(*Handler), MEMORY_ALLOCATION_ALIGNMENT);
    if (Handler == NULL) {
        return NULL;
    }
    Handler->Routine = Routine;
    PKTHREAD Thread = KiEnterLocked(&RtlpHandlerLock);
    if (First != 0) {
        InsertHeadList(Head, &Handler->ListEntry);
    } else {
        InsertTailList(Head, &Handler->ListEntry);
    }
    KiExitLocked(&RtlpHandlerLock, Thread);
    RtlpHookExceptions();
    return Handler;
}

static ULONG RtlpRemoveHandler(PLIST_ENTRY Head, PVOID Handle)
{
    PRTLP_HANDLER Unused = NULL;
    BOOLEAN Found = FALSE;
    PKTHREAD Thread = KiEnterLocked(&RtlpHandlerLock);
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && !Found; Entry = Entry->Flink) {
        PRTLP_HANDLER Handler = CONTAINING_RECORD(Entry, RTLP_HANDLER, ListEntry);
        Found = Handler == Handle && !Handler->Removed;
    }
    if (Found) {
        ((PRTLP_HANDLER)Handle)->Removed = TRUE;
        Unused = RtlpUnlinkIfUnused(Handle);
    }
    KiExitLocked(&RtlpHandlerLock, Thread);
    HalFree(Unused);
    return Found;
}

PVOID RtlAddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler)
{
    return RtlpAddHandler(&RtlpExceptionHandlers, First, Handler);
}

ULONG RtlRemoveVectoredExceptionHandler(PVOID Handle)
{
    return RtlpRemoveHandler(&RtlpExceptionHandlers, Handle);
}

PVOID RtlAddVectoredContinueHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler)
{
    return RtlpAddHandler(&RtlpContinueHandlers, First, Handler);
}

ULONG RtlRemoveVectoredContinueHandler(PVOID Handle)
{
    return RtlpRemoveHandler(&RtlpContinueHandlers, Handle);
}

PRTLP_UNHANDLED_EXCEPTION_FILTER RtlSetUnhandledExceptionFilter(PRTLP_UNHANDLED_EXCEPTION_FILTER Filter)
{
    /* acq_rel: a thread that calls the filter sees what was done before it was set */
    PRTLP_UNHANDLED_EXCEPTION_FILTER Old = __atomic_exchange_n(&RtlpUnhandledFilter, Filter, __ATOMIC_ACQ_REL);
    RtlpHookExceptions();
    return Old;
}

LONG RtlUnhandledExceptionFilter(PEXCEPTION_POINTERS ExceptionInfo)
{
    /* acquire: pairs with the exchange that set it */
    PRTLP_UNHANDLED_EXCEPTION_FILTER Filter = __atomic_load_n(&RtlpUnhandledFilter, __ATOMIC_ACQUIRE);
    return Filter != NULL ? Filter(ExceptionInfo) : EXCEPTION_CONTINUE_SEARCH;
}
