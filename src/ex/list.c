/*
 * list.c: interlocked lists: SLISTs, and lists under a spinlock.
 *
 * The header of an SLIST is one 16-byte word, changed by compare-exchange only:
 *
 *     127                                      68 67  64 63                              16 15         0
 *     +------------------------------------------+------+----------------------------------+-----------+
 *     |          address of the first entry      |   0  |             Sequence             |   Depth   |
 *     +------------------------------------------+------+----------------------------------+-----------+
 *
 * 1. Every push adds 1 to Sequence. So while Sequence is unchanged, entries have only been removed, and the entry that
 *    is first now has been in the list all the time.
 * 2. The link of an entry does not change while the entry is in the list.
 * 3. A pop reads Sequence, and after that the first entry and that entry's link. If the compare-exchange then finds the
 *    header unchanged, the link was read while the entry was in the list (1), and is valid (2). Otherwise the value is
 *    arbitrary: the memory may have been reused or unmapped.
 * 4. Therefore HalReadPointerOrFault reads the link. If that fails, the header has changed, and the pop retries. If the
 *    header has not changed, the program has unmapped an entry that is in the list: then the fault is the program's.
 * 5. A push depends on nothing but the header. So it may guess what the header holds: a right guess saves waiting for
 *    the load, and a wrong one fetches the cache line for writing, which the next try needs anyway. A pop must not guess:
 *    the list may have been reinitialized since, and then 1 does not hold.
 * 6. Depth counts modulo 65536 and never touches Sequence.
 *
 * The halves of the header are read one after the other, so the pair may never have existed. A pop may also read a Sequence
 * that is older than the entry it finds. Both only make the compare-exchange fail.
 */
#include "exp.h"

#include "../ke/lockorder.h"
#include "../ke/park.h"
#include "../ke/spinlock.h"

#define EXP_SLIST_ALIGNMENT 16
#define EXP_SLIST_DEPTH ((ULONG64)0xffff)
#define EXP_SLIST_SEQUENCE ((ULONG64)0x10000)

FORCEINLINE VOID ExpRequireAligned(ULONG_PTR Addresses)
{
    if (__builtin_expect((Addresses & (EXP_SLIST_ALIGNMENT - 1)) != 0, 0)) {
        ExRaiseDatatypeMisalignment();
    }
}

FORCEINLINE SLIST_HEADER ExpReadSList(const SLIST_HEADER *ListHead)
{
    SLIST_HEADER Header;
    /* acquire: the order of 3. It pairs with the push that made this Sequence, and so with all earlier pushes: their
       links are visible. relaxed: the compare-exchange detects an entry of a later push. */
    Header.Alignment = __atomic_load_n(&ListHead->Alignment, __ATOMIC_ACQUIRE);
    Header.Region = __atomic_load_n(&ListHead->Region, __ATOMIC_RELAXED);
    return Header;
}

/* On failure *Header is what the list's header holds now. */
FORCEINLINE BOOLEAN ExpReplaceSList(PSLIST_HEADER ListHead, PSLIST_HEADER Header, ULONG64 Alignment, PSLIST_ENTRY First)
{
    return InterlockedCompareExchange128((LONG64 volatile *)ListHead, (LONG64)(ULONG_PTR)First, (LONG64)Alignment,
                                         (LONG64 *)Header);
}

FORCEINLINE PSLIST_ENTRY ExpFirstEntry(const SLIST_HEADER *Header)
{
    return (PSLIST_ENTRY)(ULONG_PTR)Header->Region;
}

FORCEINLINE ULONG64 ExpChangeDepth(ULONG64 Alignment, ULONG Change)
{
    return (Alignment & ~EXP_SLIST_DEPTH) | ((Alignment + Change) & EXP_SLIST_DEPTH);
}

/* What this thread left in a list's header last. */
typedef struct _EXP_SLIST_GUESS {
    PSLIST_HEADER ListHead;
    ULONG64 Alignment;
    PSLIST_ENTRY First;
} EXP_SLIST_GUESS;

static __thread EXP_SLIST_GUESS ExpSListGuess __attribute__((tls_model("initial-exec")));

FORCEINLINE BOOLEAN ExpReplaceAndRemember(PSLIST_HEADER ListHead, PSLIST_HEADER Header, ULONG64 Alignment,
                                          PSLIST_ENTRY First)
{
    if (!ExpReplaceSList(ListHead, Header, Alignment, First)) {
        return FALSE;
    }
    ExpSListGuess.ListHead = ListHead;
    ExpSListGuess.Alignment = Alignment;
    ExpSListGuess.First = First;
    return TRUE;
}

FORCEINLINE SLIST_HEADER ExpGuessSList(const SLIST_HEADER *ListHead)
{
    SLIST_HEADER Header;
    if (ExpSListGuess.ListHead != ListHead) {
        return ExpReadSList(ListHead);
    }
    Header.Alignment = ExpSListGuess.Alignment;
    Header.Region = (ULONG_PTR)ExpSListGuess.First;
    return Header;
}

/* Backs off from the header's cache line, longer each time. */
static SLIST_HEADER ExpBackOffFromSList(const SLIST_HEADER *ListHead, PKI_PATIENCE Patience)
{
    KiStayAwake(Patience, NULL, KiParkForRetry);
    return ExpReadSList(ListHead);
}

VOID InitializeSListHead(PSLIST_HEADER ListHead)
{
    ExpRequireAligned((ULONG_PTR)ListHead);
    /* relaxed: publishing the list to other threads orders it */
    __atomic_store_n(&ListHead->Alignment, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&ListHead->Region, 0, __ATOMIC_RELAXED);
}

/* One try. On failure *Header is what the list's header holds now. */
FORCEINLINE BOOLEAN ExpTryPush(PSLIST_HEADER ListHead, PSLIST_HEADER Header, PSLIST_ENTRY List, PSLIST_ENTRY ListEnd,
                               ULONG Count)
{
    /* relaxed: the compare-exchange is a full barrier */
    __atomic_store_n(&ListEnd->Next, ExpFirstEntry(Header), __ATOMIC_RELAXED);
    return ExpReplaceAndRemember(ListHead, Header, ExpChangeDepth(Header->Alignment + EXP_SLIST_SEQUENCE, Count), List);
}

static DECLSPEC_NOINLINE PSLIST_ENTRY ExpPushContended(PSLIST_HEADER ListHead, SLIST_HEADER Header, PSLIST_ENTRY List,
                                                   PSLIST_ENTRY ListEnd, ULONG Count)
{
    KI_PATIENCE Patience;
    KiBeginPatience(&Patience, NULL, KiParkForRetry);
    while (!ExpTryPush(ListHead, &Header, List, ListEnd, Count)) {
        Header = ExpBackOffFromSList(ListHead, &Patience);
    }
    return ExpFirstEntry(&Header);
}

FORCEINLINE PSLIST_ENTRY ExpPushSList(PSLIST_HEADER ListHead, PSLIST_ENTRY List, PSLIST_ENTRY ListEnd, ULONG Count)
{
    ExpRequireAligned((ULONG_PTR)ListHead | (ULONG_PTR)List);
    SLIST_HEADER Header = ExpGuessSList(ListHead);
    if (__builtin_expect(ExpTryPush(ListHead, &Header, List, ListEnd, Count), 1)) {
        return ExpFirstEntry(&Header);
    }
    return ExpPushContended(ListHead, Header, List, ListEnd, Count);
}

PSLIST_ENTRY InterlockedPushListSListEx(PSLIST_HEADER ListHead, PSLIST_ENTRY List, PSLIST_ENTRY ListEnd, ULONG Count)
{
    return ExpPushSList(ListHead, List, ListEnd, Count);
}

PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry)
{
    return ExpPushSList(ListHead, ListEntry, ListEntry, 1);
}

/* The first entry is unreadable: either another thread removed it, or the fault is the program's own and repeats here.
   The compare-exchange leaves the header as it is; a mere load could return a stale header. */
static SLIST_HEADER ExpRecheckSList(PSLIST_HEADER ListHead, const SLIST_HEADER *Before)
{
    SLIST_HEADER Now = *Before;
    if (ExpReplaceSList(ListHead, &Now, Before->Alignment, ExpFirstEntry(Before))) {
        (VOID)__atomic_load_n((PSLIST_ENTRY volatile *)&ExpFirstEntry(&Now)->Next, __ATOMIC_RELAXED);
    }
    return Now;
}

FORCEINLINE BOOLEAN ExpTryPop(PSLIST_HEADER ListHead, PSLIST_HEADER Header, HAL_READ Next)
{
    return ExpReplaceAndRemember(ListHead, Header, ExpChangeDepth(Header->Alignment, (ULONG)-1), Next.Value);
}

static DECLSPEC_NOINLINE PSLIST_ENTRY ExpPopContended(PSLIST_HEADER ListHead, SLIST_HEADER Header)
{
    KI_PATIENCE Patience;
    PSLIST_ENTRY First;
    KiBeginPatience(&Patience, NULL, KiParkForRetry);
    /* The failure shows that another thread is changing the list at this moment: unlike a push, a pop does not guess. */
    Header = ExpBackOffFromSList(ListHead, &Patience);
    while ((First = ExpFirstEntry(&Header)) != NULL) {
        HAL_READ Next = HalReadPointerOrFault((PVOID volatile *)&First->Next);
        if (!Next.Readable) {
            Header = ExpRecheckSList(ListHead, &Header);
        } else if (ExpTryPop(ListHead, &Header, Next)) {
            break;
        } else {
            Header = ExpBackOffFromSList(ListHead, &Patience);
        }
    }
    return First;
}

PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER ListHead)
{
    ExpRequireAligned((ULONG_PTR)ListHead);
    SLIST_HEADER Header = ExpReadSList(ListHead);
    PSLIST_ENTRY First = ExpFirstEntry(&Header);
    if (First == NULL) {
        return NULL;
    }
    HAL_READ Next = HalReadPointerOrFault((PVOID volatile *)&First->Next);
    if (__builtin_expect(Next.Readable && ExpTryPop(ListHead, &Header, Next), 1)) {
        return First;
    }
    return ExpPopContended(ListHead, Header);
}

PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER ListHead)
{
    KI_PATIENCE Patience;
    ExpRequireAligned((ULONG_PTR)ListHead);
    SLIST_HEADER Header = ExpReadSList(ListHead);
    if (ExpFirstEntry(&Header) == NULL || ExpReplaceSList(ListHead, &Header, Header.Alignment & ~EXP_SLIST_DEPTH, NULL)) {
        return ExpFirstEntry(&Header);
    }
    KiBeginPatience(&Patience, NULL, KiParkForRetry);
    do {
        Header = ExpBackOffFromSList(ListHead, &Patience);
    } while (ExpFirstEntry(&Header) != NULL &&
             !ExpReplaceSList(ListHead, &Header, Header.Alignment & ~EXP_SLIST_DEPTH, NULL));
    return ExpFirstEntry(&Header);
}

USHORT QueryDepthSList(PSLIST_HEADER ListHead)
{
    return (USHORT)__atomic_load_n(&ListHead->Alignment, __ATOMIC_RELAXED);
}

PSLIST_ENTRY RtlFirstEntrySList(const SLIST_HEADER *ListHead)
{
    /* acquire: pairs with the compare-exchange that pushed the entry, so that its content may be read */
    return (PSLIST_ENTRY)(ULONG_PTR)__atomic_load_n(&ListHead->Region, __ATOMIC_ACQUIRE);
}

/* Also macros, which ignore Lock. */
#undef ExInterlockedPushEntrySList
#undef ExInterlockedPopEntrySList

PSLIST_ENTRY ExInterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry, PKSPIN_LOCK Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return InterlockedPushEntrySList(ListHead, ListEntry);
}

PSLIST_ENTRY ExInterlockedPopEntrySList(PSLIST_HEADER ListHead, PKSPIN_LOCK Lock)
{
    UNREFERENCED_PARAMETER(Lock);
    return InterlockedPopEntrySList(ListHead);
}

/*
 * InterlockedCompareExchange128 for machines without such an instruction. The addresses share a few locks, chosen by
 * address. A thread that holds one is neither interrupted nor terminated, and fork waits for it. A load of one half,
 * without the lock, may come between the stores of the two halves: the halves are then of two values, as they may be
 * where the instruction exists and the halves are loaded one after the other.
 */
#ifdef INTERLOCK_EMULATED_CAS128

#define EXP_EXCHANGE_LOCKS 64

typedef struct DECLSPEC_CACHEALIGN _EXP_EXCHANGE_LOCK {
    KI_LOCK Lock;
} EXP_EXCHANGE_LOCK;

static EXP_EXCHANGE_LOCK ExpExchangeLocks[EXP_EXCHANGE_LOCKS];

UCHAR InterlockedCompareExchange128(LONG64 volatile *Destination, LONG64 ExchangeHigh, LONG64 ExchangeLow,
                                    LONG64 *ComparandResult)
{
    /* neighbours, 16 bytes apart, have different locks */
    PKI_LOCK Lock = &ExpExchangeLocks[(ULONG_PTR)Destination / 16 % EXP_EXCHANGE_LOCKS].Lock;
    PKTHREAD Thread = KiEnterLocked(Lock);
    LONG64 Low, High;
    BOOLEAN Equal;

    /* An exchange with itself: a barrier before everything that follows, even if nothing is stored. */
    Low = InterlockedCompareExchange64(&Destination[0], 0, 0);
    High = ReadNoFence64(&Destination[1]); /* no fence: only the owner of the lock writes it */
    Equal = Low == ComparandResult[0] && High == ComparandResult[1];
    if (Equal) {
        WriteRelease64(&Destination[1], ExchangeHigh); /* release: for a load of the half, see ExpReadSList */
        InterlockedExchange64(&Destination[0], ExchangeLow);
    }
    KiExitLocked(Lock, Thread);
    ComparandResult[0] = Low;
    ComparandResult[1] = High;
    return Equal;
}

#endif

/*
 * Lists and additions under a spinlock, at any level.
 *
 * They run with interrupts off (at HIGH_LEVEL), so that an interrupt routine may use them on the same list. A thread
 * tries the lock with interrupts off; if it is busy, it enables interrupts and starts over. The Ke routines leave
 * interrupts on while they hold a spinlock: a lock used by both would deadlock on its own processor, so a lock used
 * here must not be used there.
 */

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

static KIRQL ExpLockList(PKTHREAD Thread, PKSPIN_LOCK Lock)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) { /* before the raise: at this level the caller may be interrupted */
        KiOrderCheck(Thread, Lock, KiOrderSpinLock, KiOrderExclusive);
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
