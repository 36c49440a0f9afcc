/* interrupt.c: what drivers of devices use: simulated interrupts (theory in irql.h) and device queues. */
#include "irql.h"
#include "park.h"
#include "spinlock.h"
#include "verifier.h"

#define KI_ISR_CHANGED_IRQL 0x111
#define KI_NO_VECTOR KI_MAXIMUM_VECTOR
#define KI_NAPS_BEFORE_REPEAT 128 /* about 100 ms */

typedef enum _KI_REQUEST_STATE {
    KiRequestPending,
    KiRequestUnclaimed,
    KiRequestClaimed
} KI_REQUEST_STATE;

typedef struct _KI_INTERRUPT_REQUEST {
    struct _KI_INTERRUPT_REQUEST *Next;
    ULONG Vector;
    volatile ULONG State; /* KI_REQUEST_STATE */
} KI_INTERRUPT_REQUEST, *PKI_INTERRUPT_REQUEST;

/* The lock is held while the chain runs, at the vector's level, and while it changes. */
typedef struct _KI_VECTOR {
    KI_LOCK Lock;
    volatile UCHAR Irql;
    LIST_ENTRY Chain;
} KI_VECTOR, *PKI_VECTOR;

static KI_VECTOR KiVectorTable[KI_MAXIMUM_VECTOR];

VOID KiInitializeInterrupts(VOID)
{
    for (ULONG Vector = 0; Vector < KI_MAXIMUM_VECTOR; Vector++) {
        InitializeListHead(&KiVectorTable[Vector].Chain);
    }
}

/* Connecting. */

NTSTATUS KiConnectInterrupt(PKINTERRUPT Interrupt)
{
    PKI_VECTOR Vector = &KiVectorTable[Interrupt->Vector];
    PKTHREAD Thread = KiEnterLocked(&Vector->Lock);
    PKINTERRUPT First = CONTAINING_RECORD(Vector->Chain.Flink, KINTERRUPT, InterruptListEntry);
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if (IsListEmpty(&Vector->Chain) || (First->ShareVector && Interrupt->ShareVector &&
                                        First->Mode == Interrupt->Mode && First->Irql == Interrupt->Irql)) {
        /* relaxed: only a thread that has the connected interrupt requests this vector */
        __atomic_store_n(&Vector->Irql, Interrupt->Irql, __ATOMIC_RELAXED);
        InsertTailList(&Vector->Chain, &Interrupt->InterruptListEntry);
        Status = STATUS_SUCCESS;
    }
    KiExitLocked(&Vector->Lock, Thread);
    return Status;
}

VOID KiDisconnectInterrupt(PKINTERRUPT Interrupt)
{
    PKI_VECTOR Vector = &KiVectorTable[Interrupt->Vector];
    PKTHREAD Thread = KiEnterLocked(&Vector->Lock);
    RemoveEntryList(&Interrupt->InterruptListEntry);
    KiExitLocked(&Vector->Lock, Thread);
}

/* Synchronizing with the service routine. */

KIRQL KeAcquireInterruptSpinLock(PKINTERRUPT Interrupt)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL OldIrql = KiRaiseIrql(Thread, Interrupt->SynchronizeIrql);
    KiAcquireSpinLock(Thread, Interrupt->ActualLock);
    return OldIrql;
}

VOID KeReleaseInterruptSpinLock(PKINTERRUPT Interrupt, KIRQL OldIrql)
{
    PKTHREAD Thread = KiCurrentThread();
    KiReleaseSpinLock(Thread, Interrupt->ActualLock);
    KiLowerIrql(Thread, OldIrql);
}

BOOLEAN KeSynchronizeExecution(PKINTERRUPT Interrupt, PKSYNCHRONIZE_ROUTINE SynchronizeRoutine,
                               PVOID SynchronizeContext)
{
    KIRQL OldIrql = KeAcquireInterruptSpinLock(Interrupt);
    BOOLEAN Result = SynchronizeRoutine(SynchronizeContext);
    KeReleaseInterruptSpinLock(Interrupt, OldIrql);
    return Result;
}

/* Running a chain, on the processor's owner and below the vector's level. */

static BOOLEAN KiCallServiceRoutine(PKTHREAD Thread, PKINTERRUPT Interrupt)
{
    BOOLEAN Claimed;
    KI_CALLBACK Callback;
    KiSetIrql(Thread, Interrupt->SynchronizeIrql);
    KiAcquireSpinLock(Thread, Interrupt->ActualLock);
    __atomic_fetch_add(&Interrupt->ServiceCount, 1, __ATOMIC_RELAXED);
    KiBeginCallback(Thread, &Callback);
    Claimed = Interrupt->ServiceRoutine(Interrupt, Interrupt->ServiceContext);
    if (Thread->Irql != Interrupt->SynchronizeIrql) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_ISR_CHANGED_IRQL, (ULONG_PTR)Interrupt->ServiceRoutine,
                     Interrupt->SynchronizeIrql, Thread->Irql);
    }
    KiEndCallback(Thread, &Callback, KiCallbackService, (PVOID)Interrupt->ServiceRoutine);
    KiReleaseSpinLock(Thread, Interrupt->ActualLock);
    KiSetIrql(Thread, Interrupt->Irql);
    return Claimed;
}

static BOOLEAN KiDispatchVector(PKTHREAD Thread, PKPRCB Prcb, ULONG Number)
{
    PKI_VECTOR Vector = &KiVectorTable[Number];
    KAFFINITY Processor = Prcb->Group == 0 ? (KAFFINITY)1 << Prcb->GroupIndex : 0;
    PVOID ExceptionList = Thread->ExceptionList;
    KIRQL OldIrql = Thread->Irql;
    BOOLEAN Claimed = FALSE;
    Thread->ExceptionList = NULL;
    Prcb->InterruptCount += 1;
    KiEnterDispatcher(Thread);
    Thread->ServiceRoutines += 1;
    KiSetIrql(Thread, Vector->Irql);
    KiAcquireLock(&Vector->Lock);
    for (PLIST_ENTRY Entry = Vector->Chain.Flink; Entry != &Vector->Chain; Entry = Entry->Flink) {
        PKINTERRUPT Interrupt = CONTAINING_RECORD(Entry, KINTERRUPT, InterruptListEntry);
        if ((Interrupt->ProcessorEnableMask & Processor) != 0) {
            Claimed |= KiCallServiceRoutine(Thread, Interrupt);
        }
        /* A level-sensitive interrupt stays asserted until its device is served: the first claim ends the chain. */
        if (Claimed && Interrupt->Mode == LevelSensitive) {
            break;
        }
    }
    KiReleaseLock(&Vector->Lock);
    KiSetIrql(Thread, OldIrql);
    Thread->ServiceRoutines -= 1;
    KiExitDispatcher(Thread);
    Thread->ExceptionList = ExceptionList;
    return Claimed;
}

/* Finding what is pending. The lists change at HIGH_LEVEL only: an interrupt in between would use them, too. */

static KIRQL KiVectorIrql(ULONG Vector)
{
    return __atomic_load_n(&KiVectorTable[Vector].Irql, __ATOMIC_RELAXED);
}

static VOID KiCollectRequests(PKPRCB Prcb)
{
    /* acquire: pairs with the release in KiFireAndWait */
    PKI_INTERRUPT_REQUEST Newest = __atomic_exchange_n(&Prcb->InterruptQueue, NULL, __ATOMIC_ACQUIRE);
    PKI_INTERRUPT_REQUEST Oldest = NULL;
    PKI_INTERRUPT_REQUEST *Tail = &Prcb->InterruptList;
    while (Newest != NULL) {
        PKI_INTERRUPT_REQUEST Next = Newest->Next;
        Newest->Next = Oldest;
        Oldest = Newest;
        Newest = Next;
    }
    while (*Tail != NULL) {
        Tail = &(*Tail)->Next;
    }
    *Tail = Oldest;
}

/* The link to the oldest request of the highest level, or NULL. */
static PKI_INTERRUPT_REQUEST *KiHighestRequest(PKPRCB Prcb)
{
    PKI_INTERRUPT_REQUEST *Highest = NULL;
    for (PKI_INTERRUPT_REQUEST *Link = &Prcb->InterruptList; *Link != NULL; Link = &(*Link)->Next) {
        if (Highest == NULL || KiVectorIrql((*Link)->Vector) > KiVectorIrql((*Highest)->Vector)) {
            Highest = Link;
        }
    }
    return Highest;
}

static ULONG KiHighestBit(PKPRCB Prcb)
{
    ULONG Highest = KI_NO_VECTOR;
    for (ULONG Word = 0; Word < KI_MAXIMUM_VECTOR / 64; Word++) {
        /* relaxed: the flag in the Owner word, which was read with acquire, announces the bits */
        for (ULONG64 Bits = __atomic_load_n(&Prcb->InterruptRequest[Word], __ATOMIC_RELAXED); Bits != 0;
             Bits &= Bits - 1) {
            ULONG Vector = Word * 64 + (ULONG)__builtin_ctzll(Bits);
            if (Highest == KI_NO_VECTOR || KiVectorIrql(Vector) > KiVectorIrql(Highest)) {
                Highest = Vector;
            }
        }
    }
    return Highest;
}

typedef struct _KI_PENDING {
    ULONG Vector;                  /* KI_NO_VECTOR: nothing that may run now */
    PKI_INTERRUPT_REQUEST Request; /* NULL: no thread waits for it */
    BOOLEAN Left;                  /* something is pending that may not run yet */
} KI_PENDING, *PKI_PENDING;

/* At HIGH_LEVEL. Takes out what runs next on a processor whose level is Irql. */
static KI_PENDING KiTakePending(PKPRCB Prcb, KIRQL Irql)
{
    KI_PENDING Pending = {KI_NO_VECTOR, NULL, FALSE};
    PKI_INTERRUPT_REQUEST *Link;
    ULONG Bit;
    KiCollectRequests(Prcb);
    Link = KiHighestRequest(Prcb);
    Bit = KiHighestBit(Prcb);
    if (Bit != KI_NO_VECTOR && (Link == NULL || KiVectorIrql(Bit) > KiVectorIrql((*Link)->Vector))) {
        Link = NULL;
        Pending.Vector = Bit;
    } else if (Link != NULL) {
        Pending.Vector = (*Link)->Vector;
    } else {
        return Pending;
    }
    if (KiVectorIrql(Pending.Vector) <= Irql) {
        Pending.Vector = KI_NO_VECTOR;
        Pending.Left = TRUE;
    } else if (Link != NULL) {
        Pending.Request = *Link;
        *Link = (*Link)->Next;
    } else {
        __atomic_fetch_and(&Prcb->InterruptRequest[Bit / 64], ~(1ULL << Bit % 64), __ATOMIC_RELAXED);
    }
    return Pending;
}

BOOLEAN KiServiceDevices(PKTHREAD Thread, PKPRCB Prcb)
{
    KIRQL Irql = Thread->Irql;
    KI_PENDING Pending;
    for (;;) {
        BOOLEAN Claimed;
        KiSetIrql(Thread, HIGH_LEVEL);
        Pending = KiTakePending(Prcb, Irql);
        KiSetIrql(Thread, Irql);
        if (Pending.Vector == KI_NO_VECTOR) {
            return Pending.Left;
        }
        Claimed = KiDispatchVector(Thread, Prcb, Pending.Vector);
        if (Pending.Request != NULL) {
            /* release: pairs with the acquire in KiAwaitRequest. The request is on that thread's stack, and may be
               invalid after the store. */
            __atomic_store_n(&Pending.Request->State, Claimed ? KiRequestClaimed : KiRequestUnclaimed, __ATOMIC_RELEASE);
            HalDispatch.Wake(&Pending.Request->State, 1);
        }
    }
}

/* Firing. */

static inline BOOLEAN KiIsRequestServed(ULONG State, PVOID Deadline)
{
    UNREFERENCED_PARAMETER(Deadline);
    return State != KiRequestPending;
}

/* The request is repeated now and then: the host may lose an interrupt. */
static BOOLEAN KiAwaitRequest(PKTHREAD Thread, PKPRCB Prcb, PKI_INTERRUPT_REQUEST Request)
{
    KI_PATIENCE Patience;
    ULONG State;
    KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
    /* acquire: pairs with the release in KiServiceDevices */
    while ((State = __atomic_load_n(&Request->State, __ATOMIC_ACQUIRE)) == KiRequestPending) {
        BOOLEAN Late;
        if (Thread->Irql >= DISPATCH_LEVEL) {
            KiStayAwake(&Patience, Thread, KiParkForSpinLock);
            Late = Patience.Naps != 0 && Patience.Naps % KI_NAPS_BEFORE_REPEAT == 0;
        } else {
            HAL_DEADLINE Deadline = {HalInterruptTime, HalDispatch.QueryInterruptTime() + KI_TIME_BEFORE_REPEAT};
            Late = !KiParkOnWord(Thread, KiParkAsleep, &Request->State, 0, KiIsRequestServed, KiContextIsDeadline,
                                 &Deadline);
        }
        if (Late) {
            KiRequestInterrupt(Thread, Prcb);
        }
    }
    return State == KiRequestClaimed;
}

static BOOLEAN KiFireAndWait(PKTHREAD Thread, PKPRCB Prcb, ULONG Vector)
{
    KI_INTERRUPT_REQUEST Request = {.Vector = Vector, .State = KiRequestPending};
    PKPRCB Own = Thread->Prcb;
    Request.Next = __atomic_load_n(&Prcb->InterruptQueue, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiCollectRequests */
    while (!__atomic_compare_exchange_n(&Prcb->InterruptQueue, &Request.Next, &Request, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    if (!KiRequestInterrupt(Thread, Prcb)) {
        if (Thread->Irql < DISPATCH_LEVEL) {
            KiProvideOwner(Thread, Prcb);
        } else if (KiTakeBesideOwn(Thread, Prcb)) {
            Thread->Prcb = Prcb;
            KiServiceInterrupts(Thread, Prcb);
            Thread->Prcb = Own;
            KiPollInterrupts(Thread);
        }
    }
    return KiAwaitRequest(Thread, Prcb, &Request);
}

BOOLEAN KeFireInterrupt(PKINTERRUPT Interrupt, ULONG Processor)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Vector = Interrupt->Vector;
    KIRQL Irql = Thread->Irql;
    BOOLEAN Claimed;
    PKPRCB Prcb;
    if (Processor >= MAXIMUM_PROC_PER_GROUP || (Interrupt->ProcessorEnableMask >> Processor & 1) == 0) {
        return FALSE;
    }
    Prcb = KiProcessorBlock[Processor];
    if (Irql >= Interrupt->Irql) {
        __atomic_fetch_or(&Prcb->InterruptRequest[Vector / 64], 1ULL << Vector % 64, __ATOMIC_RELAXED);
        if (!KiRequestInterrupt(Thread, Prcb)) {
            KiProvideOwner(Thread, Prcb);
        }
        return FALSE;
    }
    if (Irql >= DISPATCH_LEVEL ? Thread->Prcb == Prcb : KiTryRaiseOnProcessor(Thread, Prcb)) {
        Claimed = KiDispatchVector(Thread, Prcb, Vector);
        KiLowerIrql(Thread, Irql);
        return Claimed;
    }
    return KiFireAndWait(Thread, Prcb, Vector);
}

/* In a forked child. Below DISPATCH_LEVEL the survivor holds no spinlock, and there is no other thread. */
VOID KiResetInterrupts(PKTHREAD Survivor)
{
    if (Survivor->Irql >= DISPATCH_LEVEL) {
        return;
    }
    for (ULONG Vector = 0; Vector < KI_MAXIMUM_VECTOR; Vector++) {
        PLIST_ENTRY Chain = &KiVectorTable[Vector].Chain;
        for (PLIST_ENTRY Entry = Chain->Flink; Entry != Chain; Entry = Entry->Flink) {
            CONTAINING_RECORD(Entry, KINTERRUPT, InterruptListEntry)->SpinLock = 0;
        }
    }
}

/*
 * Device queues.
 *
 * 1. Busy: a thread serves the device. An entry that finds the queue busy is linked; one that does not makes it busy
 *    and is not linked, since its inserter serves it.
 * 2. The server removes the next entry when it has finished one. The queue stops being busy when a remove finds no entry,
 *    in the same step: no entry is left in a queue without a server.
 * 3. Entries are in ascending order of their keys if all were inserted by key. A remove by key continues upwards from
 *    the key and starts over at the lowest key, like an elevator.
 * 4. An entry's Inserted changes under the lock of the queue only.
 */

VOID KeInitializeDeviceQueue(PKDEVICE_QUEUE DeviceQueue)
{
    memset(DeviceQueue, 0, sizeof(*DeviceQueue));
    DeviceQueue->Type = DeviceQueueObject;
    DeviceQueue->Size = sizeof(*DeviceQueue);
    InitializeListHead(&DeviceQueue->DeviceListHead);
    KeInitializeSpinLock(&DeviceQueue->Lock);
}

static PKDEVICE_QUEUE_ENTRY KiDeviceEntryOf(PLIST_ENTRY Entry)
{
    return CONTAINING_RECORD(Entry, KDEVICE_QUEUE_ENTRY, DeviceListEntry);
}

/* The first entry with a key of at least SortKey, or the list's head. */
static PLIST_ENTRY KiFindKey(PKDEVICE_QUEUE DeviceQueue, ULONG64 SortKey)
{
    PLIST_ENTRY Entry = DeviceQueue->DeviceListHead.Flink;
    while (Entry != &DeviceQueue->DeviceListHead && KiDeviceEntryOf(Entry)->SortKey < SortKey) {
        Entry = Entry->Flink;
    }
    return Entry;
}

/* NULL: behind all of them. */
static BOOLEAN KiInsertDeviceEntry(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY Entry, const ULONG *SortKey)
{
    KIRQL OldIrql;
    KeAcquireSpinLock(&DeviceQueue->Lock, &OldIrql);
    BOOLEAN Busy = DeviceQueue->Busy;
    if (Busy) {
        Entry->SortKey = SortKey != NULL ? *SortKey : 0;
        PLIST_ENTRY Next = SortKey != NULL ? KiFindKey(DeviceQueue, (ULONG64)*SortKey + 1) : &DeviceQueue->DeviceListHead;
        InsertTailList(Next, &Entry->DeviceListEntry);
    }
    DeviceQueue->Busy = TRUE;
    Entry->Inserted = Busy;
    KeReleaseSpinLock(&DeviceQueue->Lock, OldIrql);
    return Busy;
}

BOOLEAN KeInsertDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry)
{
    return KiInsertDeviceEntry(DeviceQueue, DeviceQueueEntry, NULL);
}

BOOLEAN KeInsertByKeyDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry, ULONG SortKey)
{
    return KiInsertDeviceEntry(DeviceQueue, DeviceQueueEntry, &SortKey);
}

/* MustBeBusy: FALSE: a queue that is not busy is a valid result, not a bugcheck. */
static PKDEVICE_QUEUE_ENTRY KiRemoveDeviceEntry(PKDEVICE_QUEUE DeviceQueue, ULONG SortKey, BOOLEAN MustBeBusy)
{
    KIRQL OldIrql;
    PKDEVICE_QUEUE_ENTRY Removed = NULL;
    KeAcquireSpinLock(&DeviceQueue->Lock, &OldIrql);
    if (MustBeBusy && !DeviceQueue->Busy) {
        KeReleaseSpinLock(&DeviceQueue->Lock, OldIrql);
        KeBugCheckEx(DEVICE_QUEUE_NOT_BUSY, (ULONG_PTR)DeviceQueue, 0, 0, 0);
    }
    if (!IsListEmpty(&DeviceQueue->DeviceListHead)) {
        PLIST_ENTRY Entry = KiFindKey(DeviceQueue, SortKey);
        Entry = Entry != &DeviceQueue->DeviceListHead ? Entry : DeviceQueue->DeviceListHead.Flink;
        RemoveEntryList(Entry);
        Removed = KiDeviceEntryOf(Entry);
        Removed->Inserted = FALSE;
    } else {
        DeviceQueue->Busy = FALSE;
    }
    KeReleaseSpinLock(&DeviceQueue->Lock, OldIrql);
    return Removed;
}

PKDEVICE_QUEUE_ENTRY KeRemoveDeviceQueue(PKDEVICE_QUEUE DeviceQueue)
{
    return KiRemoveDeviceEntry(DeviceQueue, 0, TRUE);
}

PKDEVICE_QUEUE_ENTRY KeRemoveByKeyDeviceQueue(PKDEVICE_QUEUE DeviceQueue, ULONG SortKey)
{
    return KiRemoveDeviceEntry(DeviceQueue, SortKey, TRUE);
}

PKDEVICE_QUEUE_ENTRY KeRemoveByKeyDeviceQueueIfBusy(PKDEVICE_QUEUE DeviceQueue, ULONG SortKey)
{
    return KiRemoveDeviceEntry(DeviceQueue, SortKey, FALSE);
}

BOOLEAN KeRemoveEntryDeviceQueue(PKDEVICE_QUEUE DeviceQueue, PKDEVICE_QUEUE_ENTRY DeviceQueueEntry)
{
    KIRQL OldIrql;
    KeAcquireSpinLock(&DeviceQueue->Lock, &OldIrql);
    BOOLEAN Inserted = DeviceQueueEntry->Inserted;
    if (Inserted) {
        RemoveEntryList(&DeviceQueueEntry->DeviceListEntry);
        DeviceQueueEntry->Inserted = FALSE;
    }
    KeReleaseSpinLock(&DeviceQueue->Lock, OldIrql);
    return Inserted;
}
