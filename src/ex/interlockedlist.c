/*
 * interlockedlist.c: list operations and additions under a spinlock, at any level.
 *
 * They run with interrupts off, that is at HIGH_LEVEL, so that an interrupt routine may use them on the same list. The
 * lock is tried with interrupts off at once; when that fails they are let in again while it is busy, and the whole
 * starts over. The Ke routines leave interrupts on while they hold a spinlock: a lock used with both would deadlock on
 * its own processor, so a lock used here must not be used there.
 */
#include "exp.h"

#include "../ke/spinlock.h"

static VOID ExpAwaitFree(PKTHREAD Thread, PKSPIN_LOCK Lock)
{
    ULONG Spins = 0;
    KSPIN_LOCK Word;
    /* relaxed: a look before the compare-exchange, which has the acquire */
    while ((Word = __atomic_load_n(Lock, __ATOMIC_RELAXED)) != 0) {
        if (KiVerifierEnabled && KiSpinLockOwner(Word) == Thread) {
            KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)Lock, (ULONG_PTR)Thread, (ULONG_PTR)Thread, 0);
        }
        KiSpin(Thread, &Spins);
    }
}

static KIRQL ExpLock(PKTHREAD Thread, PKSPIN_LOCK Lock)
{
    for (;;) {
        KIRQL OldIrql = KiRaiseIrql(Thread, HIGH_LEVEL);
        if (KiTrySpinLock(Thread, Lock)) {
            return OldIrql;
        }
        KiLowerIrql(Thread, OldIrql);
        ExpAwaitFree(Thread, Lock);
    }
}

static VOID ExpUnlock(PKTHREAD Thread, PKSPIN_LOCK Lock, KIRQL OldIrql)
{
    KiReleaseSpinLock(Thread, Lock);
    KiLowerIrql(Thread, OldIrql);
}

PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLock(Thread, Lock);
    PLIST_ENTRY First = ListHead->Flink;
    InsertHeadList(ListHead, ListEntry);
    ExpUnlock(Thread, Lock, OldIrql);
    return First == ListHead ? NULL : First;
}

PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLock(Thread, Lock);
    PLIST_ENTRY Last = ListHead->Blink;
    InsertTailList(ListHead, ListEntry);
    ExpUnlock(Thread, Lock, OldIrql);
    return Last == ListHead ? NULL : Last;
}

PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLock(Thread, Lock);
    PLIST_ENTRY First = IsListEmpty(ListHead) ? NULL : RemoveHeadList(ListHead);
    ExpUnlock(Thread, Lock, OldIrql);
    return First;
}

PSINGLE_LIST_ENTRY ExInterlockedPushEntryList(PSINGLE_LIST_ENTRY ListHead, PSINGLE_LIST_ENTRY ListEntry,
                                              PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLock(Thread, Lock);
    PSINGLE_LIST_ENTRY First = ListHead->Next;
    PushEntryList(ListHead, ListEntry);
    ExpUnlock(Thread, Lock, OldIrql);
    return First;
}

PSINGLE_LIST_ENTRY ExInterlockedPopEntryList(PSINGLE_LIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLock(Thread, Lock);
    PSINGLE_LIST_ENTRY First = PopEntryList(ListHead);
    ExpUnlock(Thread, Lock, OldIrql);
    return First;
}

ULONG ExInterlockedAddUlong(PULONG Addend, ULONG Increment, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLock(Thread, Lock);
    ULONG Before = *Addend;
    *Addend = Before + Increment;
    ExpUnlock(Thread, Lock, OldIrql);
    return Before;
}

LARGE_INTEGER ExInterlockedAddLargeInteger(PLARGE_INTEGER Addend, LARGE_INTEGER Increment, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLock(Thread, Lock);
    LARGE_INTEGER Before = *Addend;
    Addend->QuadPart = (LONGLONG)((ULONGLONG)Before.QuadPart + (ULONGLONG)Increment.QuadPart);
    ExpUnlock(Thread, Lock, OldIrql);
    return Before;
}
