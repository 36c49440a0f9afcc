/*
 * session.c: the session thread of a world, and forks.
 *
 * The thread sleeps on the GuardWord of its process. Everything that concerns the process as a whole changes that word: a
 * change in the ring, a request of another process, a notification that was granted, the end of a ward. The thread
 * reads the word, does all pending work, and sleeps while the word is unchanged: so nothing that arrives meanwhile is
 * lost.
 *
 * Wards. The host's watch of a process (io/watch.h, reached through WoSetWatcher) is opened first. Then the thread
 * checks whether the process lives, so a death is found either now or by the watch. A child that was forked and then
 * calls exec does not end, and no watch reports it: while one of the wards is such a child, the thread checks it a few
 * more times, at intervals that grow from 1 ms to several seconds; the lookup of a name checks as well.
 */
#include "session.h"

#include "../ke/park.h"

#define WO_FIRST_LOOK 10000ull       /* a millisecond */
#define WO_LAST_LOOK (4096 * WO_FIRST_LOOK)
#define WO_BIRTH_MILLISECONDS 2000

static const WO_WATCHER *WopWatcher;

VOID WoSetWatcher(const WO_WATCHER *Watcher)
{
    WopWatcher = Watcher;
}

static BOOLEAN WopIsWard(const WO_LISTED *Listed, ULONG Count, ULONG64 Key)
{
    BOOLEAN Found = FALSE;
    for (ULONG Number = 0; Number < Count; Number += 1) {
        Found |= Listed[Number].Key == Key;
    }
    return Found;
}

static PWO_WARD WopFindWard(PWO_PLACE Place, ULONG64 Key)
{
    PWO_WARD Found = NULL;
    for (ULONG Number = 0; Number < WO_WARDS; Number += 1) {
        if (Place->Ward[Number].Key == Key) {
            Found = &Place->Ward[Number];
        }
    }
    return Found;
}

/* FALSE: the host refuses a watch now. */
static BOOLEAN WopWatch(PWO_PLACE Place, ULONG64 Key)
{
    PWO_WARD Ward = WopFindWard(Place, Key);
    if (Ward == NULL) {
        Ward = WopFindWard(Place, 0);
        Ward->Key = Key;
    }
    if (Ward->Watch == NULL && WopWatcher != NULL) {
        Ward->Watch = WopWatcher->Open((ULONG)(Key & ((1ull << HAL_PROCESS_ID_BITS) - 1)));
    }
    return Ward->Watch != NULL;
}

/* Until both predecessors live. Returns whether another check is due soon: one may call exec, or has no watch. */
static BOOLEAN WopGuard(PWO_PLACE Place)
{
    WO_LISTED Wards[WO_WARDS];
    BOOLEAN Dead, Soon;
    do {
        ULONG Count = WopListWards(&Place->View, Wards);
        Dead = FALSE;
        Soon = FALSE;
        for (ULONG Number = 0; Number < WO_WARDS; Number += 1) {
            PWO_WARD Ward = &Place->Ward[Number];
            if (!WopIsWard(Wards, Count, Ward->Key)) {
                if (Ward->Watch != NULL) {
                    WopWatcher->Close(Ward->Watch);
                }
                *Ward = (WO_WARD){.Key = 0};
            }
        }
        for (ULONG Number = 0; Number < Count; Number += 1) {
            Soon |= !WopWatch(Place, Wards[Number].Key) || (Wards[Number].Flags & WO_FORKED) != 0;
            if (!HalIsProcessAlive(Wards[Number].Key)) {
                WopCleanProcess(&Place->View, Wards[Number].Index, Wards[Number].Key);
                Dead = TRUE;
            }
        }
    } while (Dead && !WoIsPoisoned(&Place->View));
    return Soon;
}

/* Timer: when the next timer with a notification is due, which ends the sleep; 0: there is none. */
static VOID WopSleep(volatile ULONG *Word, ULONG Seen, BOOLEAN Soon, ULONGLONG *Interval, ULONGLONG Timer)
{
    HAL_DEADLINE Deadline = {Timer != 0 ? HalInterruptTime : HalNoDeadline, Timer};
    ULONGLONG Look = HalDispatch.QueryInterruptTime() + *Interval;
    if (Soon && *Interval <= WO_LAST_LOOK && (Timer == 0 || Look < Timer)) {
        Deadline = (HAL_DEADLINE){HalInterruptTime, Look};
        *Interval *= 2;
    }
    if (KiSleepShared(Word, Seen, &Deadline)) {
        *Interval = WO_FIRST_LOOK;
    }
}

static VOID WopRunSession(PVOID Context)
{
    PWO_PLACE Place = Context;
    PWO_VIEW View = &Place->View;
    ULONGLONG Interval = WO_FIRST_LOOK;
    KiCurrentThread();
    while (!WoIsPoisoned(View)) {
        PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
        if (Self == NULL) {
            break;
        }
        /* seq_cst: pairs with WopWakeSession */
        ULONG Seen = __atomic_load_n(&Self->GuardWord, __ATOMIC_SEQ_CST);
        BOOLEAN Soon = WopGuard(Place);
        WopServeRequests(View);
        WopDeliverNotifications(View);
        ULONGLONG Timer = WopNextNotification(View);
        if (!WoIsPoisoned(View)) {
            WopSleep(&Self->GuardWord, Seen, Soon, &Interval, Timer);
        }
    }
    WopDeliverNotifications(View); /* of waits that the poison ends */
    for (;;) {
        static volatile ULONG Never;
        KiSleepWhile(&Never, 0);
    }
}

static const KI_OWN_KIND WopSessionKind = {.Name = "interlock-world", .Routine = WopRunSession,
                                           .StackSize = KI_OWN_THREAD_STACK};

static const KI_FORK_HOOKS WopForkHooks = {WoForkPrepare, WoForkParent, WoForkChild};

NTSTATUS WopStartSession(PWO_PLACE Place)
{
    KiSetForkHooks(&WopForkHooks);
    Place->Session.Kind = &WopSessionKind;
    Place->Session.Context = Place;
    return KiEnsureOwnThread(&Place->Session);
}

static BOOLEAN WopIsAttached(PWO_PLACE Place)
{
    return __atomic_load_n(&Place->State, __ATOMIC_ACQUIRE) == WoPlaceAttached &&
           Place->ProcessId == HalCurrentProcessId();
}

VOID WoNoteProcessEnd(VOID)
{
    for (ULONG Number = 0; Number < WO_PLACES; Number += 1) {
        PWO_PLACE Place = &WopPlaces[Number];
        PWO_VIEW View = &Place->View;
        if (WopIsAttached(Place) && WoIsPoisoned(View)) {
            WopPoison(View, "another process has detected it"); /* as in WopLock: it may be the one that has died */
        } else if (WopIsAttached(Place)) {
            PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
            if (Self != NULL) {
                WopWakeSession(Self);
            }
        }
    }
}

/* Forks. */

VOID WoForkPrepare(VOID)
{
    for (ULONG Number = 0; Number < WO_PLACES; Number += 1) {
        PWO_PLACE Place = &WopPlaces[Number];
        if (!WopIsAttached(Place)) {
            continue;
        }
        Place->Prepared = 0;
        Place->HasBirth = FALSE;
        if (WopLock(&Place->View)) {
            Place->Prepared = WopPrepareCopy(&Place->View, &Place->Nonce);
            WopUnlock(&Place->View);
            Place->HasBirth = Place->Prepared != 0 && HalOpenBirth(Place->Birth);
        }
    }
}

/* When the child has its record, or there is no child, the rest of what was prepared is freed. */
VOID WoForkParent(VOID)
{
    for (ULONG Number = 0; Number < WO_PLACES; Number += 1) {
        PWO_PLACE Place = &WopPlaces[Number];
        if (WopIsAttached(Place) && Place->HasBirth) {
            Place->HasBirth = FALSE;
            if (HalAwaitBirth(Place->Birth, WO_BIRTH_MILLISECONDS)) {
                WopDropChild(&Place->View, Place->Prepared, Place->Nonce);
            }
        }
    }
}

static VOID WopForkPlace(PWO_PLACE Place)
{
    PWO_VIEW View = &Place->View;
    View->Key = HalQueryProcessKey(HalCurrentProcessId());
    View->Self = 0;
    Place->ProcessId = HalCurrentProcessId();
    for (ULONG Number = 0; Number < WO_WARDS; Number += 1) {
        Place->Ward[Number] = (WO_WARD){0, NULL}; /* a handful of bytes: the watches are the parent's */
    }
    if (View->Key == 0 || !WopLock(View)) {
        __atomic_store_n(&View->Poisoned, WO_VIEW_POISONED, __ATOMIC_RELEASE);
        return;
    }
    NTSTATUS Status = WopClaimPrepared(View, Place->Prepared, Place->Nonce, WO_FORKED)
                          ? STATUS_SUCCESS : WopEnterRing(View);
    WopUnlock(View);
    if (!NT_SUCCESS(Status)) {
        __atomic_store_n(&View->Poisoned, WO_VIEW_POISONED, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&Place->Forked, 1, __ATOMIC_RELAXED);
}

VOID WoForkChild(VOID)
{
    WopForkThread(KiCurrentThread());
    for (ULONG Number = 0; Number < WO_PLACES; Number += 1) {
        PWO_PLACE Place = &WopPlaces[Number];
        if (Place->State == WoPlaceAttached) {
            WopForkPlace(Place);
            if (Place->HasBirth) {
                HalCloseDescriptor(Place->Birth[0]);
                HalCloseDescriptor(Place->Birth[1]);
                Place->HasBirth = FALSE;
            }
            KiRequestOwnThread(KiCurrentThread(), &Place->Session);
        } else if (Place->State == WoPlaceAttaching) {
            Place->State = WoPlaceUnknown; /* by a thread that stayed in the parent */
        }
    }
}

/* A forked child that uses the world is not about to call exec. */
VOID WopProveUse(PWO_PLACE Place)
{
    PWO_VIEW View = &Place->View;
    /* relaxed, both: the flag in the record is under the lock */
    if (__atomic_load_n(&Place->Forked, __ATOMIC_RELAXED) == 0 ||
        __atomic_exchange_n(&Place->Forked, 0, __ATOMIC_RELAXED) == 0 || !WopLock(View)) {
        return;
    }
    PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
    if (Self != NULL) {
        WopBegin(View);
        WopEditUlong(View, &Self->Flags, Self->Flags & ~WO_FORKED);
        WopCommit(View);
    }
    WopUnlock(View);
}
