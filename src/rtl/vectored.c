/*
 * vectored.c: the handlers of the whole process.
 *
 * 1. A handler is called without the lock, so that it may register, remove and raise. Whoever calls it has counted
 *    itself in Users before, and goes on from it afterwards.
 * 2. A handler that is removed is not called any more; it leaves its list and is freed when nobody uses it.
 * 3. The lock is held in a dispatcher section only, so a forked child never finds it held.
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

typedef struct _RTLP_HANDLER_LIST {
    LIST_ENTRY ListHead;
} RTLP_HANDLER_LIST, *PRTLP_HANDLER_LIST;

static KI_LOCK RtlpHandlerLock;
static RTLP_HANDLER_LIST RtlpExceptionHandlers = {{&RtlpExceptionHandlers.ListHead, &RtlpExceptionHandlers.ListHead}};
static RTLP_HANDLER_LIST RtlpContinueHandlers = {{&RtlpContinueHandlers.ListHead, &RtlpContinueHandlers.ListHead}};
static PRTLP_UNHANDLED_EXCEPTION_FILTER volatile RtlpUnhandledFilter;

static VOID RtlpLockHandlers(VOID)
{
    KiEnterDispatcher(KiCurrentThread());
    KiAcquireLock(&RtlpHandlerLock);
}

static VOID RtlpUnlockHandlers(VOID)
{
    KiReleaseLock(&RtlpHandlerLock);
    KiExitDispatcher(KiCurrentThread());
}

/* Under the lock. Returns the handler if it is to be freed. */
static PRTLP_HANDLER RtlpUnlinkIfUnused(PRTLP_HANDLER Handler)
{
    if (!Handler->Removed || Handler->Users != 0) {
        return NULL;
    }
    RemoveEntryList(&Handler->ListEntry);
    return Handler;
}

/* The first handler behind Previous (NULL: of all) that is to be called, or NULL. Lets go of Previous. */
static PRTLP_HANDLER RtlpNextHandler(PRTLP_HANDLER_LIST List, PRTLP_HANDLER Previous)
{
    PRTLP_HANDLER Unused = NULL;
    PRTLP_HANDLER Next = NULL;
    PLIST_ENTRY Entry;
    RtlpLockHandlers();
    Entry = Previous != NULL ? Previous->ListEntry.Flink : List->ListHead.Flink;
    while (Entry != &List->ListHead && CONTAINING_RECORD(Entry, RTLP_HANDLER, ListEntry)->Removed) {
        Entry = Entry->Flink;
    }
    if (Entry != &List->ListHead) {
        Next = CONTAINING_RECORD(Entry, RTLP_HANDLER, ListEntry);
        Next->Users++;
    }
    if (Previous != NULL) {
        Previous->Users--;
        Unused = RtlpUnlinkIfUnused(Previous);
    }
    RtlpUnlockHandlers();
    HalFree(Unused);
    return Next;
}

static VOID RtlpReleaseHandler(PRTLP_HANDLER Handler)
{
    PRTLP_HANDLER Unused;
    RtlpLockHandlers();
    Handler->Users--;
    Unused = RtlpUnlinkIfUnused(Handler);
    RtlpUnlockHandlers();
    HalFree(Unused);
}

/* Asks one after the other until one continues. */
static LONG RtlpCallHandlers(PRTLP_HANDLER_LIST List, PEXCEPTION_POINTERS Exception)
{
    PRTLP_HANDLER Handler = RtlpNextHandler(List, NULL);
    while (Handler != NULL) {
        if (Handler->Routine(Exception) == EXCEPTION_CONTINUE_EXECUTION) {
            RtlpReleaseHandler(Handler);
            return EXCEPTION_CONTINUE_EXECUTION;
        }
        Handler = RtlpNextHandler(List, Handler);
    }
    return EXCEPTION_CONTINUE_SEARCH;
}

static LONG RtlpContinueIf(LONG Disposition, PEXCEPTION_POINTERS Exception)
{
    if (Disposition == EXCEPTION_CONTINUE_EXECUTION) {
        RtlpCallHandlers(&RtlpContinueHandlers, Exception);
    }
    return Disposition;
}

static LONG RtlpFirstChance(PEXCEPTION_POINTERS Exception)
{
    return RtlpContinueIf(RtlpCallHandlers(&RtlpExceptionHandlers, Exception), Exception);
}

/* The handler that a filter asks for is the one around the program, which ends it. */
static LONG RtlpLastChance(PEXCEPTION_POINTERS Exception)
{
    LONG Disposition = RtlUnhandledExceptionFilter(Exception);
    if (Disposition == EXCEPTION_EXECUTE_HANDLER) {
        KTRACE_FINISH(TRUE);
        HalExitProcess((ULONG)Exception->ExceptionRecord->ExceptionCode, TRUE);
    }
    return RtlpContinueIf(Disposition, Exception);
}

static VOID RtlpHookExceptions(VOID)
{
    /* release: pairs with the acquire of whoever raises; the lists were there before */
    __atomic_store_n(&KiFirstChanceRoutine, RtlpFirstChance, __ATOMIC_RELEASE);
    __atomic_store_n(&KiLastChanceRoutine, RtlpLastChance, __ATOMIC_RELEASE);
}

static PVOID RtlpAddHandler(PRTLP_HANDLER_LIST List, ULONG First, PVECTORED_EXCEPTION_HANDLER Routine)
{
    PRTLP_HANDLER Handler = HalAllocate(sizeof(*Handler), MEMORY_ALLOCATION_ALIGNMENT);
    if (Handler == NULL) {
        return NULL;
    }
    Handler->Routine = Routine;
    RtlpLockHandlers();
    if (First != 0) {
        InsertHeadList(&List->ListHead, &Handler->ListEntry);
    } else {
        InsertTailList(&List->ListHead, &Handler->ListEntry);
    }
    RtlpUnlockHandlers();
    RtlpHookExceptions();
    return Handler;
}

static PRTLP_HANDLER RtlpFindHandler(PRTLP_HANDLER_LIST List, PVOID Handle)
{
    PLIST_ENTRY Entry;
    for (Entry = List->ListHead.Flink; Entry != &List->ListHead; Entry = Entry->Flink) {
        PRTLP_HANDLER Handler = CONTAINING_RECORD(Entry, RTLP_HANDLER, ListEntry);
        if (Handler == Handle && !Handler->Removed) {
            return Handler;
        }
    }
    return NULL;
}

static ULONG RtlpRemoveHandler(PRTLP_HANDLER_LIST List, PVOID Handle)
{
    PRTLP_HANDLER Unused = NULL;
    PRTLP_HANDLER Handler;
    RtlpLockHandlers();
    Handler = RtlpFindHandler(List, Handle);
    if (Handler != NULL) {
        Handler->Removed = TRUE;
        Unused = RtlpUnlinkIfUnused(Handler);
    }
    RtlpUnlockHandlers();
    HalFree(Unused);
    return Handler != NULL;
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
    /* acq_rel: whoever calls a filter sees what was done before it was set */
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
