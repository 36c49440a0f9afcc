/*
 * criticalsection.c: critical sections, and their debug information.
 *
 * LockCount is the lock:
 *
 *      31                              2   1   0
 *     +---------------------------------+---+---+
 *     |           ~ waiters             | N | F |
 *     +---------------------------------+---+---+
 *
 *     F, free        it has no owner
 *     N, none woken  clear: one waiter was woken and has not retried yet; it is not counted among the waiters
 *     waiters        threads that sleep or are about to sleep
 *
 * So -1 is free, -2 is held, and n waiters subtract 4n. Entering clears F and leaving sets it. Leaving with waiters and
 * N set also removes one of them from the count, clears N and wakes a waiter. A waiter that sees N clear answers the
 * wake: it sets N again, in the same compare-exchange that takes the section, or that counts it as a waiter again when
 * a running thread was faster. So with N set all waiters are counted, with N clear all but one.
 *
 * Requirements, each with a test of that number in tests/rtl/criticalsection.c, 1, 2 and 5 also as races in
 * tests/stress/criticalsections.c:
 *  1. Exclusion. The owner may enter again, and has to leave as often.
 *  2. No lost wakeup: when the section is free and has waiters, a wake is in progress (N is clear), and a waiter
 *     answers it. That waiter need not be the one that was woken, which then finds N set and keeps sleeping. The proofs are below.
 *  3. The fields have the values of Windows 10 at every moment.
 *  4. Entering and leaving neither allocate nor fail. The event of the compatibility form is created before the first wait;
 *     without one this section waits on its address from then on.
 *  5. After the compare-exchange that leaves it the leaver does not access the section: the next owner may free it. An
 *     address is only a key to search waiters by; and a waiter that uses an event does not return before the event was
 *     set.
 *  6. A running thread may barge past sleepers; the section is never handed off, so barging has no bound. It stays low
 *     because a thread that overtakes others yields every KI_TURN times, or in a crowd by the clock (ke/fairness.h), and
 *     a thread sleeps only after it has yielded a few times in vain, except in a crowd.
 *  7. A wait that lasts longer than the timeout is reported and continues. The second time STATUS_POSSIBLE_DEADLOCK is
 *     raised, and the thread no longer waits.
 *  8. In a forked child the waiters that stayed behind do not count, nor does a wake for one of them: the first thread
 *     of the child that waits or would wake forgets them. The forking thread still owns what it owned: by the id that it
 *     had before the fork, until it enters again.
 *  9. Leaving a free section changes nothing. Free build: leaving the section of another thread makes it free, as on
 *     Windows. Verifier: both, entering an uninitialized section, and deleting one that is held are bugchecks.
 *
 * LockSemaphore says how the waiters of this section wait, which is decided for the first one: NULL, undecided;
 * an event's handle; or -1, by address. Its high half is the fork depth (the -1 becomes -2, -3, and so on): if that is
 * not KiForkDepth, the waiters that LockCount counts stayed behind in a parent.
 *
 * Why no wakeup is lost, by address. A waiter sleeps only on a value with N set: a new waiter that counted itself while
 * N was clear does not sleep, it answers. The waiter is in the hash when it compares LockCount with that value, and the
 * wake follows the compare-exchange that clears N. Let N be cleared, which happens only while a thread waits. Until N
 * is set again no thread falls asleep, so every sleeper is in the hash already. Either there is one, and the wake
 * removes it; or all waiters are awake. A waiter that a wake removed reads LockCount and answers. One that is awake for
 * another reason answers too, or it times out and gives up, which the last one may not do (RtlpStopWaiting). So N is
 * set again. How often LockCount changed between a waiter's read and its sleep does not matter: only N of the value
 * that it sleeps on was used, and the next thread that clears N wakes.
 *   Rejected: a new waiter sleeps on a value with N clear, because another waiter has been woken. That waiter may have
 *   entered, left and sent its wake before the new one is in the hash; a second new waiter restores the value, and both
 *   sleep on it with N clear forever.
 *
 * By event. Each time N is cleared the event is set once, and only a waiter whose wait the event ended answers; until
 * it does N is not cleared again. So two signals never coincide, and none is left over when N is set. A new waiter that
 * finds N clear waits for the event like the others: answering before the event is set would break requirement 5. A
 * waiter that times out leaves the signal to the others; the last one keeps waiting.
 *
 * In a forked child both hold from the moment at which the waiters of the parent are forgotten: the hash is empty, N
 * is set, no waiter is counted, the event is reset, and no thread of the child has sent a wake before.
 */
#include "criticalsection.h"
#include "rtlp.h"

#include "../ke/debugdata.h"
#include "../ke/fairness.h"
#include "../ke/lockorder.h"
#include "../ke/park.h"
#include "../ob/obp.h"
#include "../trace/trace.h"

#define RTLP_UNLOCKED (-1)
#define RTLP_LOCKED (-2)
#define RTLP_SPIN_MASK 0x00FFFFFF
#define RTLP_DEFAULT_SPIN 2000

#define RTLP_NOT_INITIALIZED 0x1002
#define RTLP_LEFT_BY_OTHER 0x1004
#define RTLP_LEFT_FREE 0x1007
#define RTLP_DELETED_HELD 0x100B

BOOLEAN RtlpForceCSToUseEvents;
BOOLEAN RtlpEarlyEventCreation;

static VOID RtlpReadSettings(VOID)
{
    RtlpForceCSToUseEvents = KiReadSetting("INTERLOCK_FORCE_CS_EVENTS", 0, 1, 0) != 0;
    RtlpTimeout = RTLP_SECOND * KiReadSetting("INTERLOCK_CRITICAL_SECTION_TIMEOUT", 0, MAXLONG, RTLP_DEFAULT_TIMEOUT);
}
KI_INITIALIZER(KiInitializeRuntime, RtlpReadSettings);

/* The owner. */

BOOLEAN RtlpIsThreadId(PKTHREAD Thread, ULONG ThreadId)
{
    if (ThreadId == Thread->ThreadId) {
        return TRUE;
    }
    return ThreadId != 0 && ThreadId == Thread->ThreadIdBeforeFork && KiLookupThreadById(ThreadId) == NULL;
}

FORCEINLINE VOID RtlpSetOwner(PRTL_CRITICAL_SECTION CriticalSection, ULONG ThreadId, LONG RecursionCount)
{
    /* relaxed: see RtlpReadOwner */
    __atomic_store_n(&CriticalSection->OwningThread, ULongToHandle(ThreadId), __ATOMIC_RELAXED);
    CriticalSection->RecursionCount = RecursionCount;
}

/* The lock. */

FORCEINLINE BOOLEAN RtlpTryTake(PRTL_CRITICAL_SECTION CriticalSection)
{
    /* acquire: pairs with the release of the last owner */
    return (__atomic_fetch_and(&CriticalSection->LockCount, ~RTLP_FREE, __ATOMIC_ACQUIRE) & RTLP_FREE) != 0;
}

/* On failure *Old is the current value. acq_rel: entering pairs with leaving, and a leaver sees LockSemaphore. */
FORCEINLINE BOOLEAN RtlpChangeLockCount(PRTL_CRITICAL_SECTION CriticalSection, LONG *Old, LONG New)
{
    return __atomic_compare_exchange_n(&CriticalSection->LockCount, Old, New, FALSE, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* Spins for the section's SpinCount in addition to the policy's cycles, unless the SpinCount is 0; then yields a few times. */
static BOOLEAN RtlpTakeAwake(PKTHREAD Thread, PRTL_CRITICAL_SECTION CriticalSection)
{
    ULONG SpinCount = *RtlpSpinCountOf(CriticalSection) & RTLP_SPIN_MASK;
    KI_PARK_USE Use = KiLockUse(Thread);
    KI_PATIENCE Patience;
    KiBeginLockPatience(&Patience, Thread, Use, TRUE);
    if (SpinCount == 0) {
        Patience.Spins = 0;
    } else if (Patience.Spins != 0) {
        Patience.Spins += HalSpinsForCycles(SpinCount);
    }
    while (KiStayAwake(&Patience, Thread, Use)) {
        if (Patience.Spins != 0) {
            KiTimeLook(Thread, &Patience, (volatile ULONG *)&CriticalSection->LockCount);
        }
        /* relaxed: a hint; the fetch_and has the acquire */
        if ((__atomic_load_n(&CriticalSection->LockCount, __ATOMIC_RELAXED) & RTLP_FREE) &&
            RtlpTryTake(CriticalSection)) {
            return TRUE;
        }
    }
    return FALSE;
}

/* How the waiters of a section wait. */

static LONG_PTR RtlpReadLockSemaphore(PRTL_CRITICAL_SECTION CriticalSection)
{
    /* acquire: with the new fork depth comes a LockCount without the waiters of the parent */
    return (LONG_PTR)__atomic_load_n(&CriticalSection->LockSemaphore, __ATOMIC_ACQUIRE);
}

static ULONG RtlpForksBefore(LONG_PTR LockSemaphore)
{
    return LockSemaphore < 0 ? (ULONG)~LockSemaphore : (ULONG)(LockSemaphore >> 32);
}

/* NULL: by address. */
static HANDLE RtlpEventOf(LONG_PTR LockSemaphore)
{
    return LockSemaphore < 0 ? NULL : ULongToHandle(LockSemaphore);
}

static LONG_PTR RtlpLockSemaphoreOf(HANDLE Event)
{
    return Event != NULL ? (LONG_PTR)((ULONG_PTR)KiForkDepth << 32 | HandleToULong(Event)) : ~(LONG_PTR)KiForkDepth;
}

/* On failure *Event is NULL. */
static NTSTATUS RtlpCreateEvent(PHANDLE Event)
{
    NTSTATUS Status = NtCreateEvent(Event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    if (!NT_SUCCESS(Status)) {
        *Event = NULL;
    }
    return Status;
}

/* The first decision stands. */
static LONG_PTR RtlpDecideLockSemaphore(PRTL_CRITICAL_SECTION CriticalSection)
{
    HANDLE Event = NULL;
    HANDLE Decided = NULL;
    if (RtlpForceCSToUseEvents) {
        RtlpCreateEvent(&Event);
    }
    HANDLE Own = (HANDLE)RtlpLockSemaphoreOf(Event);
    if (__atomic_compare_exchange_n(&CriticalSection->LockSemaphore, &Decided, Own, FALSE, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return (LONG_PTR)Own;
    }
    if (Event != NULL) {
        NtClose(Event);
    }
    return (LONG_PTR)Decided;
}

/* Requirement 8. The event may be signaled for a waiter that stayed behind; no thread of this process has set it yet. */
static LONG_PTR RtlpForgetWaitersOfParent(PRTL_CRITICAL_SECTION CriticalSection)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterDispatcher(Thread);
    KiAcquireLock(&RtlCriticalSectionLock);
    LONG_PTR LockSemaphore = RtlpReadLockSemaphore(CriticalSection);
    if (RtlpForksBefore(LockSemaphore) != KiForkDepth) {
        LONG Old = RtlpReadLockCount(CriticalSection);
        while (!RtlpChangeLockCount(CriticalSection, &Old, Old & RTLP_FREE ? RTLP_UNLOCKED : RTLP_LOCKED)) {
        }
        HANDLE Event = RtlpEventOf(LockSemaphore);
        if (Event != NULL) {
            NtResetEvent(Event, NULL);
        }
        LockSemaphore = RtlpLockSemaphoreOf(Event);
        /* release: pairs with RtlpReadLockSemaphore */
        __atomic_store_n(&CriticalSection->LockSemaphore, (HANDLE)LockSemaphore, __ATOMIC_RELEASE);
    }
    KiReleaseLock(&RtlCriticalSectionLock);
    KiExitDispatcher(Thread);
    return LockSemaphore;
}

/*
 * For a waiter, and for a leaver that sees waiters: the event, or NULL: by address. If the leaver's waiters turn out to
 * be those of a parent, its compare-exchange fails, or there is another waiter to wake by then.
 */
static HANDLE RtlpAgreeHowToWait(PRTL_CRITICAL_SECTION CriticalSection)
{
    LONG_PTR LockSemaphore = RtlpReadLockSemaphore(CriticalSection);
    if (LockSemaphore == 0) {
        LockSemaphore = RtlpDecideLockSemaphore(CriticalSection);
    }
    if (RtlpForksBefore(LockSemaphore) != KiForkDepth) {
        LockSemaphore = RtlpForgetWaitersOfParent(CriticalSection);
    }
    return RtlpEventOf(LockSemaphore);
}

/* Waiting. */

/*
 * TRUE: the section is taken. FALSE: the thread is one of the waiters and sleeps on *LockCount. Waits: it is already a
 * waiter, and may take the section only in answer to a wake.
 */
static BOOLEAN RtlpTakeOrWait(PRTL_CRITICAL_SECTION CriticalSection, BOOLEAN Waits, LONG *LockCount)
{
    LONG Old = RtlpReadLockCount(CriticalSection);
    LONG New;
    do {
        if (Waits && (Old & RTLP_NONE_WOKEN)) {
            *LockCount = Old;
            return FALSE;
        }
        New = (Old & RTLP_FREE ? Old - RTLP_FREE : Old - RTLP_ONE_WAITER) + (Waits ? RTLP_NONE_WOKEN : 0);
    } while (!RtlpChangeLockCount(CriticalSection, &Old, New));
    *LockCount = New;
    return (Old & RTLP_FREE) != 0;
}

/* The thread stops waiting. FALSE: it is the last waiter and was woken. */
static BOOLEAN RtlpStopWaiting(PRTL_CRITICAL_SECTION CriticalSection)
{
    LONG Old = RtlpReadLockCount(CriticalSection);
    do {
        if (RtlpWaitersOf(Old) == 0) {
            return FALSE;
        }
    } while (!RtlpChangeLockCount(CriticalSection, &Old, Old + RTLP_ONE_WAITER));
    return TRUE;
}

/* FALSE: the timeout passed. */
static BOOLEAN RtlpSleep(PRTL_CRITICAL_SECTION CriticalSection, HANDLE Event, LONG LockCount)
{
    PKTHREAD Thread = KiCurrentThread();
    LARGE_INTEGER Timeout;
    PLARGE_INTEGER Limit = RtlpDeadlockTimeout(&Timeout);
    PVOID Previous = KiNoteLockWaitedFor(Thread, CriticalSection);
    NTSTATUS Status = Event != NULL
                          ? NtWaitForSingleObject(Event, FALSE, Limit)
                          : RtlpWaitOnAddress(&CriticalSection->LockCount, &LockCount, sizeof(LockCount), Limit);
    KiNoteLockWaitedFor(Thread, Previous);
    if (!NT_SUCCESS(Status)) { /* the program has closed a handle of the library */
        RtlRaiseStatus(Status);
    }
    return Status != STATUS_TIMEOUT;
}

/* Requirement 7. FALSE: the thread waits again; otherwise it waits no longer. */
static BOOLEAN RtlpWaitedTooLong(PRTL_CRITICAL_SECTION CriticalSection, ULONG Times)
{
    LONG LockCount = RtlpReadLockCount(CriticalSection);
    RTLP_LONG_WAIT Wait = {
        .Function = "RtlEnterCriticalSection",
        .Lock = CriticalSection,
        .Owner = RtlpReadOwner(CriticalSection),
        .Count = LockCount,
        .Waiters = RtlpWaitersOf(LockCount),
        .DebugInfo = CriticalSection->DebugInfo,
    };
    RtlpReportPossibleDeadlock(&Wait);
    return Times > 1 && RtlpStopWaiting(CriticalSection);
}

/* FALSE: it has given up. */
static BOOLEAN RtlpWaitToEnter(PRTL_CRITICAL_SECTION CriticalSection)
{
    HANDLE Event = RtlpAgreeHowToWait(CriticalSection);
    BOOLEAN Waits = FALSE;
    ULONG TimedOut = 0;
    LONG LockCount;
    while (!RtlpTakeOrWait(CriticalSection, Waits, &LockCount)) {
        if (!Waits) {
            RtlpCountContention(CriticalSection->DebugInfo);
            KTRACE_COUNT(RtlpWaitCountOf(CriticalSection));
            Waits = TRUE;
        }
        if (Event == NULL && !(LockCount & RTLP_NONE_WOKEN)) {
            continue; /* requirement 2: the thread answers the wake itself */
        }
        while (!RtlpSleep(CriticalSection, Event, LockCount)) {
            TimedOut += 1;
            if (RtlpWaitedTooLong(CriticalSection, TimedOut)) {
                return FALSE;
            }
        }
    }
    return TRUE;
}

/* Entering and leaving. */

static BOOLEAN RtlpEnterAgain(PRTL_CRITICAL_SECTION CriticalSection, PKTHREAD Thread)
{
    if (!RtlpIsThreadId(Thread, RtlpReadOwner(CriticalSection))) {
        return FALSE;
    }
    RtlpSetOwner(CriticalSection, Thread->ThreadId, CriticalSection->RecursionCount + 1);
    return TRUE;
}

/* The verifier. */

static DECLSPEC_NORETURN VOID RtlpViolation(ULONG_PTR Kind, PRTL_CRITICAL_SECTION CriticalSection, ULONG Thread)
{
    KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, Kind, (ULONG_PTR)CriticalSection, RtlpReadOwner(CriticalSection),
                 Thread);
}

static VOID RtlpVerifyEnter(PRTL_CRITICAL_SECTION CriticalSection)
{
    if (KiVerifierEnabled && CriticalSection->DebugInfo == NULL) {
        RtlpViolation(RTLP_NOT_INITIALIZED, CriticalSection, 0);
    }
}

/* The slow paths. */

static DECLSPEC_NOINLINE NTSTATUS RtlpEnterSlow(PRTL_CRITICAL_SECTION CriticalSection)
{
    PKTHREAD Thread = KiCurrentThread();
    RtlpVerifyEnter(CriticalSection);
    if (RtlpEnterAgain(CriticalSection, Thread)) {
        return STATUS_SUCCESS;
    }
    if (KiVerifierEnabled) {
        KiOrderCheckAndHold(Thread, CriticalSection, KiOrderCriticalSection, KiOrderExclusive,
                            __builtin_return_address(0));
    }
    if (!RtlpTryTake(CriticalSection)) {
        KiCountContention(Thread);
        KTRACE_CONTENTION_BEGIN(CriticalSection, KiLockCriticalSection, TRUE, RtlpReadOwner(CriticalSection));
        if (!RtlpTakeAwake(Thread, CriticalSection) && !RtlpWaitToEnter(CriticalSection)) {
            KTRACE_CONTENTION_GIVEN_UP();
            RtlRaiseStatus(STATUS_POSSIBLE_DEADLOCK);
        }
        KTRACE_CONTENTION_END(CriticalSection, KiLockCriticalSection, TRUE);
    }
    RtlpSetOwner(CriticalSection, Thread->ThreadId, 1);
    return STATUS_SUCCESS;
}

static DECLSPEC_NOINLINE LOGICAL RtlpTryEnterSlow(PRTL_CRITICAL_SECTION CriticalSection)
{
    PKTHREAD Thread = KiCurrentThread();
    RtlpVerifyEnter(CriticalSection);
    if (RtlpEnterAgain(CriticalSection, Thread)) {
        return TRUE;
    }
    if (!RtlpTryTake(CriticalSection)) {
        return FALSE;
    }
    RtlpSetOwner(CriticalSection, Thread->ThreadId, 1);
    if (KiVerifierEnabled) {
        KiOrderHold(Thread, CriticalSection, KiOrderCriticalSection, KiOrderExclusive, __builtin_return_address(0));
    }
    return TRUE;
}

/* Old: what LockCount was last. */
static DECLSPEC_NOINLINE NTSTATUS RtlpLeaveContended(PRTL_CRITICAL_SECTION CriticalSection, LONG Old)
{
    BOOLEAN Yields = KiCountPass(KiCurrentThread(), CriticalSection);
    HANDLE Event = NULL;
    BOOLEAN Wakes;
    LONG New;
    KTRACE_RELEASING(CriticalSection, KiLockCriticalSection, TRUE, KiCurrentThread());
    do {
        Wakes = RtlpWaitersOf(Old) != 0 && (Old & RTLP_NONE_WOKEN);
        New = Wakes ? Old + RTLP_FREE - RTLP_NONE_WOKEN + RTLP_ONE_WAITER : Old | RTLP_FREE;
        if (Wakes) {
            Event = RtlpAgreeHowToWait(CriticalSection);
        }
    } while (!RtlpChangeLockCount(CriticalSection, &Old, New));
    if (Wakes && Event != NULL) {
        NtSetEvent(Event, NULL);
    } else if (Wakes) {
        RtlWakeAddressSingle(&CriticalSection->LockCount);
    }
    KTRACE_RELEASED(TRUE);
    KiEndPass(KiCurrentThread(), Yields, TRUE);
    return STATUS_SUCCESS;
}

/* RecursionCount is not 1: the owner has entered it several times, or it is free. */
static DECLSPEC_NOINLINE NTSTATUS RtlpLeaveOnce(PRTL_CRITICAL_SECTION CriticalSection)
{
    if (CriticalSection->RecursionCount <= 0) {
        return STATUS_RESOURCE_NOT_OWNED;
    }
    CriticalSection->RecursionCount -= 1;
    return STATUS_SUCCESS;
}

static DECLSPEC_NOINLINE NTSTATUS RtlpLeaveVerified(PRTL_CRITICAL_SECTION CriticalSection)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Owner = RtlpReadOwner(CriticalSection);
    if (Owner == 0) {
        RtlpViolation(RTLP_LEFT_FREE, CriticalSection, 0);
    }
    if (!RtlpIsThreadId(Thread, Owner)) {
        RtlpViolation(RTLP_LEFT_BY_OTHER, CriticalSection, Thread->ThreadId);
    }
    if (CriticalSection->RecursionCount != 1) {
        return RtlpLeaveOnce(CriticalSection);
    }
    KiOrderRelease(Thread, CriticalSection);
    RtlpSetOwner(CriticalSection, 0, 0);
    return RtlpLeaveContended(CriticalSection, RtlpReadLockCount(CriticalSection));
}

/* The public functions. */

/* Out of line, so that the constants of the first entry stay in its instructions. */
static DECLSPEC_NOINLINE NTSTATUS RtlpEnterOwned(PRTL_CRITICAL_SECTION CriticalSection)
{
    CriticalSection->RecursionCount += 1;
    return STATUS_SUCCESS;
}

NTSTATUS RtlEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    PKTHREAD Thread = HalCurrentThread;
    if (__builtin_expect(Thread == NULL || KiVerifierEnabled, FALSE)) {
        return RtlpEnterSlow(CriticalSection);
    }
    ULONG ThreadId = Thread->ThreadId;
    /* The owner enters again without a locked instruction. The line is transferred once, because it is fetched for
     * writing. */
    HalPrefetchForWrite(&CriticalSection->LockCount);
    if (__builtin_expect(RtlpReadOwner(CriticalSection) == ThreadId, FALSE)) {
        return RtlpEnterOwned(CriticalSection);
    }
    if (__builtin_expect(!RtlpTryTake(CriticalSection), FALSE)) {
        return RtlpEnterSlow(CriticalSection);
    }
    RtlpSetOwner(CriticalSection, ThreadId, 1);
    return STATUS_SUCCESS;
}

LOGICAL RtlTryEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    PKTHREAD Thread = HalCurrentThread;
    if (__builtin_expect(Thread == NULL || KiVerifierEnabled || !RtlpTryTake(CriticalSection), FALSE)) {
        return RtlpTryEnterSlow(CriticalSection);
    }
    RtlpSetOwner(CriticalSection, Thread->ThreadId, 1);
    return TRUE;
}

NTSTATUS RtlLeaveCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    LONG Old = RTLP_LOCKED;
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        return RtlpLeaveVerified(CriticalSection);
    }
    if (__builtin_expect(CriticalSection->RecursionCount != 1, FALSE)) {
        return RtlpLeaveOnce(CriticalSection);
    }
    RtlpSetOwner(CriticalSection, 0, 0);
    if (__builtin_expect(!RtlpChangeLockCount(CriticalSection, &Old, RTLP_UNLOCKED), FALSE)) {
        return RtlpLeaveContended(CriticalSection, Old);
    }
    return STATUS_SUCCESS;
}

/* Debug information: the list of sections that have it, contention, long waits, sections that an ended thread owns. */

LIST_ENTRY RtlCriticalSectionList = {&RtlCriticalSectionList, &RtlCriticalSectionList};
KD_REGISTER_ROOT(RtlCriticalSectionList);
KI_LOCK RtlCriticalSectionLock;
volatile LONGLONG RtlpTimeout = RTLP_DEFAULT_TIMEOUT * RTLP_SECOND;
volatile ULONG RtlpPossibleDeadlocks;

static NTSTATUS RtlpCreateDebugInfo(PRTL_CRITICAL_SECTION CriticalSection, ULONG Flags)
{
    PRTL_CRITICAL_SECTION_DEBUG DebugInfo = HalAllocate(sizeof(*DebugInfo), __alignof__(*DebugInfo));
    if (DebugInfo == NULL) {
        return STATUS_NO_MEMORY;
    }
    DebugInfo->Type = Flags & RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE ? RTL_RESOURCE_TYPE : RTL_CRITSECT_TYPE;
    DebugInfo->Flags = Flags & RTL_CRITICAL_SECTION_FLAG_STATIC_INIT ? RTL_CRITICAL_SECTION_DEBUG_FLAG_STATIC_INIT : 0;
    DebugInfo->CriticalSection = CriticalSection;
    CriticalSection->DebugInfo = DebugInfo;
    PKTHREAD Thread = KiEnterLocked(&RtlCriticalSectionLock);
    InsertTailList(&RtlCriticalSectionList, &DebugInfo->ProcessLocksList);
    KiExitLocked(&RtlCriticalSectionLock, Thread);
    return STATUS_SUCCESS;
}

static BOOLEAN RtlpIsDebugInfo(PRTL_CRITICAL_SECTION_DEBUG DebugInfo)
{
    return DebugInfo != NULL && DebugInfo != RTLP_NO_DEBUG_INFO;
}

static VOID RtlpDeleteDebugInfo(PRTL_CRITICAL_SECTION_DEBUG DebugInfo)
{
    if (RtlpIsDebugInfo(DebugInfo)) {
        PKTHREAD Thread = KiEnterLocked(&RtlCriticalSectionLock);
        RemoveEntryList(&DebugInfo->ProcessLocksList);
        KiExitLocked(&RtlCriticalSectionLock, Thread);
        HalFree(DebugInfo);
    }
}

VOID RtlpCountContention(PRTL_CRITICAL_SECTION_DEBUG DebugInfo)
{
    if (RtlpIsDebugInfo(DebugInfo)) {
        /* relaxed: statistics */
        __atomic_add_fetch(&DebugInfo->EntryCount, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&DebugInfo->ContentionCount, 1, __ATOMIC_RELAXED);
    }
}

ULONG RtlpContentionCount(PRTL_CRITICAL_SECTION_DEBUG DebugInfo)
{
    /* relaxed: statistics */
    return RtlpIsDebugInfo(DebugInfo) ? __atomic_load_n(&DebugInfo->ContentionCount, __ATOMIC_RELAXED) : 0;
}

/* Long waits. */

static LONGLONG RtlpReadTimeout(VOID)
{
    /* relaxed: a setting */
    return __atomic_load_n(&RtlpTimeout, __ATOMIC_RELAXED);
}

PLARGE_INTEGER RtlpDeadlockTimeout(PLARGE_INTEGER Timeout)
{
    Timeout->QuadPart = -RtlpReadTimeout();
    return Timeout->QuadPart != 0 ? Timeout : NULL;
}

DECLSPEC_NOINLINE VOID RtlpReportPossibleDeadlock(const RTLP_LONG_WAIT *Wait)
{
    /* relaxed: statistics */
    __atomic_add_fetch(&RtlpPossibleDeadlocks, 1, __ATOMIC_RELAXED);
    HalPrint("interlock: possible deadlock: thread %u.%u has waited %lld ms in %s for %p\n", HalCurrentProcessId(),
             HalCurrentThreadId(), RtlpReadTimeout() / RTLP_MILLISECOND, Wait->Function, Wait->Lock);
    HalPrint("  owner: thread %u, count %d (0x%08X), waiters %u, ContentionCount %u%s\n", Wait->Owner, Wait->Count,
             (ULONG)Wait->Count, Wait->Waiters, RtlpContentionCount(Wait->DebugInfo),
             RtlpIsDebugInfo(Wait->DebugInfo) ? "" : " (no debug information)");
    HalPrintStackTrace(__builtin_return_address(0));
}

/* Orphans. */

static ULONG RtlpThreadIdOfHandle(HANDLE Handle)
{
    PVOID Thread;
    ULONG ThreadId = 0;
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, 0, &ObpThreadType, KernelMode, &Thread, NULL);
    if (NT_SUCCESS(Status)) {
        ThreadId = ((PKTHREAD)Thread)->ThreadId;
        ObDereferenceObject(Thread);
    }
    return ThreadId;
}

VOID RtlCheckForOrphanedCriticalSections(HANDLE ThreadHandle)
{
    ULONG ThreadId = RtlpThreadIdOfHandle(ThreadHandle);
    PKTHREAD Thread = KiEnterLocked(&RtlCriticalSectionLock);
    PLIST_ENTRY Head = &RtlCriticalSectionList;
    for (PLIST_ENTRY Entry = Head->Flink; ThreadId != 0 && Entry != Head; Entry = Entry->Flink) {
        PRTL_CRITICAL_SECTION_DEBUG DebugInfo = CONTAINING_RECORD(Entry, RTL_CRITICAL_SECTION_DEBUG, ProcessLocksList);
        if (RtlpReadOwner(DebugInfo->CriticalSection) == ThreadId) {
            HalPrint("interlock: critical section %p belongs to thread %u\n", (PVOID)DebugInfo->CriticalSection,
                     ThreadId);
        }
    }
    KiExitLocked(&RtlCriticalSectionLock, Thread);
}

/* Initializing and deleting. */

static ULONG_PTR RtlpInitialSpinCount(ULONG SpinCount, ULONG Flags)
{
    if (KeNumberProcessors == 1) {
        return 0;
    }
    if (SpinCount == 0) {
        return RTLP_DEFAULT_SPIN | RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN;
    }
    return SpinCount | (Flags & RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN);
}

NTSTATUS RtlInitializeCriticalSectionEx(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount, ULONG Flags)
{
    NTSTATUS Status = STATUS_SUCCESS;
    if (Flags & RTL_CRITICAL_SECTION_FLAG_RESERVED) {
        return STATUS_INVALID_PARAMETER_3;
    }
    if (SpinCount & RTL_CRITICAL_SECTION_ALL_FLAG_BITS) {
        return STATUS_INVALID_PARAMETER_2;
    }
    *CriticalSection = (RTL_CRITICAL_SECTION){
        .DebugInfo = RTLP_NO_DEBUG_INFO,
        .LockCount = RTLP_UNLOCKED,
        .SpinCount = RtlpInitialSpinCount(SpinCount, Flags),
    };
    if (KiVerifierEnabled) {
        KiOrderInitialize(CriticalSection, KiOrderCriticalSection);
    }
    if (RtlpEarlyEventCreation) {
        HANDLE Event;
        Status = RtlpCreateEvent(&Event);
        if (NT_SUCCESS(Status)) {
            CriticalSection->LockSemaphore = (HANDLE)RtlpLockSemaphoreOf(Event);
        }
    }
    if (NT_SUCCESS(Status) && (Flags & RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO)) {
        Status = RtlpCreateDebugInfo(CriticalSection, Flags);
    }
    if (!NT_SUCCESS(Status)) {
        RtlDeleteCriticalSection(CriticalSection);
    }
    return Status;
}

/* The high bits used to request the event in advance. */
NTSTATUS RtlInitializeCriticalSectionAndSpinCount(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount)
{
    return RtlInitializeCriticalSectionEx(CriticalSection, SpinCount & RTLP_SPIN_MASK, 0);
}

NTSTATUS RtlInitializeCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    return RtlInitializeCriticalSectionEx(CriticalSection, 0, 0);
}

NTSTATUS RtlDeleteCriticalSection(PRTL_CRITICAL_SECTION CriticalSection)
{
    LONG_PTR LockSemaphore = RtlpReadLockSemaphore(CriticalSection);
    HANDLE Event = RtlpEventOf(LockSemaphore);
    if (KiVerifierEnabled && CriticalSection->DebugInfo != NULL) {
        LONG LockCount = RtlpReadLockCount(CriticalSection);
        /* The waiters in a count that a forked child has inherited do not exist. */
        BOOLEAN Inherited = RtlpForksBefore(LockSemaphore) != KiForkDepth;
        if (Inherited ? !(LockCount & RTLP_FREE) : LockCount != RTLP_UNLOCKED) {
            RtlpViolation(RTLP_DELETED_HELD, CriticalSection, 0);
        }
    }
    if (KiVerifierEnabled) {
        KiOrderForget(CriticalSection);
    }
    if (Event != NULL) {
        NtClose(Event);
    }
    RtlpDeleteDebugInfo(CriticalSection->DebugInfo);
    *CriticalSection = (RTL_CRITICAL_SECTION){.LockCount = RTLP_UNLOCKED};
    return STATUS_SUCCESS;
}

ULONG RtlSetCriticalSectionSpinCount(PRTL_CRITICAL_SECTION CriticalSection, ULONG SpinCount)
{
    ULONG Old = *RtlpSpinCountOf(CriticalSection);
    *RtlpSpinCountOf(CriticalSection) = KeNumberProcessors == 1 ? 0 : SpinCount & RTLP_SPIN_MASK;
    return Old;
}

LOGICAL RtlIsCriticalSectionLocked(PRTL_CRITICAL_SECTION CriticalSection)
{
    return !(RtlpReadLockCount(CriticalSection) & RTLP_FREE);
}

LOGICAL RtlIsCriticalSectionLockedByThread(PRTL_CRITICAL_SECTION CriticalSection)
{
    return RtlpIsThreadId(KiCurrentThread(), RtlpReadOwner(CriticalSection));
}

ULONG RtlGetCriticalSectionRecursionCount(PRTL_CRITICAL_SECTION CriticalSection)
{
    return RtlIsCriticalSectionLockedByThread(CriticalSection) ? (ULONG)CriticalSection->RecursionCount : 0;
}

VOID RtlEnableEarlyCriticalSectionEventCreation(VOID)
{
    RtlpEarlyEventCreation = TRUE;
}
