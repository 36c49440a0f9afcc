/*
 * interlockedlist.c: list operations and additions under a spinlock, at any level.
 *
 * They run with interrupts off (at HIGH_LEVEL), so that an interrupt routine may use them on the same list. A thread
 * tries the lock with interrupts off; if it is busy, it enables interrupts and starts over. The Ke routines leave
 * interrupts on while they hold a spinlock: a lock used by both would deadlock on its own processor, so a lock used
 * here must not be used there.
 */
#include "exp.h"

#include "../ke/lockorder.h"
#include "../ke/park.h"
#include "../ke/spinlock.h"

static inline BOOLEAN ExpIsListLockFree(PVOID Lock)
{
    /* relaxed: the compare-exchange has the acquire */
    KSPIN_LOCK Word = __atomic_load_n((PKSPIN_LOCK)Lock, __ATOMIC_RELAXED);
    if (KiVerifierEnabled && Word != 0 && KiSpinLockOwner(Word) == HalCurrentThread) {
        KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)Lock, (ULONG_PTR)HalCurrentThread, (ULONG_PTR)HalCurrentThread,
                     0);
    }
    return Word == 0;
}

/* The level at which the caller may be interrupted is the one before the raise. */
static DECLSPEC_NOINLINE VOID ExpVerifyListLock(PKTHREAD Thread, PKSPIN_LOCK Lock)
{
    KiOrderCheck(Thread, Lock, KiOrderSpinLock, KiOrderExclusive);
}

static KIRQL ExpLockList(PKTHREAD Thread, PKSPIN_LOCK Lock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpVerifyListLock(Thread, Lock);
    }
    for (;;) {
        KIRQL OldIrql = KiRaiseIrql(Thread, HIGH_LEVEL);
        if (KiTrySpinLock(Thread, Lock)) {
            return OldIrql;
        }
        KiLowerIrql(Thread, OldIrql);
        KiParkUntil(Thread, KiParkForSpinLock, ExpIsListLockFree, Lock);
    }
}

static VOID ExpUnlockList(PKTHREAD Thread, PKSPIN_LOCK Lock, KIRQL OldIrql)
{
    KiReleaseSpinLock(Thread, Lock);
    KiLowerIrql(Thread, OldIrql);
}

PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLockList(Thread, Lock);
    PLIST_ENTRY First = ListHead->Flink;
    InsertHeadList(ListHead, ListEntry);
    ExpUnlockList(Thread, Lock, OldIrql);
    return First == ListHead ? NULL : First;
}

PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLockList(Thread, Lock);
    PLIST_ENTRY Last = ListHead->Blink;
    InsertTailList(ListHead, ListEntry);
    ExpUnlockList(Thread, Lock, OldIrql);
    return Last == ListHead ? NULL : Last;
}

PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLockList(Thread, Lock);
    PLIST_ENTRY First = IsListEmpty(ListHead) ? NULL : RemoveHeadList(ListHead);
    ExpUnlockList(Thread, Lock, OldIrql);
    return First;
}

PSINGLE_LIST_ENTRY ExInterlockedPushEntryList(PSINGLE_LIST_ENTRY ListHead, PSINGLE_LIST_ENTRY ListEntry,
                                              PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLockList(Thread, Lock);
    PSINGLE_LIST_ENTRY First = ListHead->Next;
    PushEntryList(ListHead, ListEntry);
    ExpUnlockList(Thread, Lock, OldIrql);
    return First;
}

PSINGLE_LIST_ENTRY ExInterlockedPopEntryList(PSINGLE_LIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLockList(Thread, Lock);
    PSINGLE_LIST_ENTRY First = PopEntryList(ListHead);
    ExpUnlockList(Thread, Lock, OldIrql);
    return First;
}

ULONG ExInterlockedAddUlong(PULONG Addend, ULONG Increment, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLockList(Thread, Lock);
    ULONG Before = *Addend;
    *Addend = Before + Increment;
    ExpUnlockList(Thread, Lock, OldIrql);
    return Before;
}

LARGE_INTEGER ExInterlockedAddLargeInteger(PLARGE_INTEGER Addend, LARGE_INTEGER Increment, PKSPIN_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = ExpLockList(Thread, Lock);
    LARGE_INTEGER Before = *Addend;
    Addend->QuadPart = (LONGLONG)((ULONGLONG)Before.QuadPart + (ULONGLONG)Increment.QuadPart);
    ExpUnlockList(Thread, Lock, OldIrql);
    return Before;
}
