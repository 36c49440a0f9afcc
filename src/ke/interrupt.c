/* interrupt.c: simulated device interrupts. Theory in interrupt.h. */
#include "interrupt.h"

#include "dpc.h"
#include "spinlock.h"

#define KI_ISR_CHANGED_IRQL 0x111
#define KI_NO_VECTOR KI_MAXIMUM_VECTOR

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

static PKINTERRUPT KiFirstInterrupt(PKI_VECTOR Vector)
{
    return CONTAINING_RECORD(Vector->Chain.Flink, KINTERRUPT, InterruptListEntry);
}

static BOOLEAN KiMayShare(PKI_VECTOR Vector, PKINTERRUPT Interrupt)
{
    PKINTERRUPT First = KiFirstInterrupt(Vector);
    return First->ShareVector && Interrupt->ShareVector && First->Mode == Interrupt->Mode &&
           First->Irql == Interrupt->Irql;
}

NTSTATUS KiConnectInterrupt(PKINTERRUPT Interrupt)
{
    PKTHREAD Thread = KiCurrentThread();
    PKI_VECTOR Vector = &KiVectorTable[Interrupt->Vector];
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Vector->Lock);
    if (IsListEmpty(&Vector->Chain) || KiMayShare(Vector, Interrupt)) {
        /* relaxed: a request for this vector comes from somebody who has the connected interrupt */
        __atomic_store_n(&Vector->Irql, Interrupt->Irql, __ATOMIC_RELAXED);
        InsertTailList(&Vector->Chain, &Interrupt->InterruptListEntry);
        Status = STATUS_SUCCESS;
    }
    KiReleaseLock(&Vector->Lock);
    KiExitDispatcher(Thread);
    return Status;
}

VOID KiDisconnectInterrupt(PKINTERRUPT Interrupt)
{
    PKTHREAD Thread = KiCurrentThread();
    PKI_VECTOR Vector = &KiVectorTable[Interrupt->Vector];
    KiEnterDispatcher(Thread);
    KiAcquireLock(&Vector->Lock);
    RemoveEntryList(&Interrupt->InterruptListEntry);
    KiReleaseLock(&Vector->Lock);
    KiExitDispatcher(Thread);
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

/* Running a chain, on the owner of the processor and below the vector's level. */

static BOOLEAN KiCallServiceRoutine(PKTHREAD Thread, PKINTERRUPT Interrupt)
{
    BOOLEAN Claimed;
    KiSetIrql(Thread, Interrupt->SynchronizeIrql);
    KiAcquireSpinLock(Thread, Interrupt->ActualLock);
    __atomic_fetch_add(&Interrupt->ServiceCount, 1, __ATOMIC_RELAXED);
    Claimed = Interrupt->ServiceRoutine(Interrupt, Interrupt->ServiceContext);
    if (Thread->Irql != Interrupt->SynchronizeIrql) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_ISR_CHANGED_IRQL, (ULONG_PTR)Interrupt->ServiceRoutine,
                     Interrupt->SynchronizeIrql, Thread->Irql);
    }
    KiReleaseSpinLock(Thread, Interrupt->ActualLock);
    KiSetIrql(Thread, Interrupt->Irql);
    return Claimed;
}

/* A level-sensitive interrupt stays asserted until its device is served, so the first claim is enough. */
static BOOLEAN KiRunChain(PKTHREAD Thread, PKPRCB Prcb, PKI_VECTOR Vector)
{
    KAFFINITY Processor = Prcb->Group == 0 ? (KAFFINITY)1 << Prcb->GroupIndex : 0;
    BOOLEAN Claimed = FALSE;
    for (PLIST_ENTRY Entry = Vector->Chain.Flink; Entry != &Vector->Chain; Entry = Entry->Flink) {
        PKINTERRUPT Interrupt = CONTAINING_RECORD(Entry, KINTERRUPT, InterruptListEntry);
        if ((Interrupt->ProcessorEnableMask & Processor) != 0) {
            Claimed |= KiCallServiceRoutine(Thread, Interrupt);
        }
        if (Claimed && Interrupt->Mode == LevelSensitive) {
            break;
        }
    }
    return Claimed;
}

static BOOLEAN KiDispatchVector(PKTHREAD Thread, PKPRCB Prcb, ULONG Number)
{
    PKI_VECTOR Vector = &KiVectorTable[Number];
    PVOID ExceptionList = Thread->ExceptionList;
    KIRQL OldIrql = Thread->Irql;
    BOOLEAN Claimed;
    Thread->ExceptionList = NULL;
    Prcb->InterruptCount += 1;
    KiEnterDispatcher(Thread);
    KiSetIrql(Thread, Vector->Irql);
    KiAcquireLock(&Vector->Lock);
    Claimed = KiRunChain(Thread, Prcb, Vector);
    KiReleaseLock(&Vector->Lock);
    KiSetIrql(Thread, OldIrql);
    KiExitDispatcher(Thread);
    Thread->ExceptionList = ExceptionList;
    return Claimed;
}

/* Finding what is pending. The lists are changed at HIGH_LEVEL: an interrupt in between would look at them too. */

static KIRQL KiVectorIrql(ULONG Vector)
{
    return __atomic_load_n(&KiVectorTable[Vector].Irql, __ATOMIC_RELAXED);
}

static VOID KiCollectRequests(PKPRCB Prcb)
{
    /* acquire: pairs with the release in KiPushRequest */
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
        /* relaxed: the flag in the Owner word, which was read with acquire, tells of the bits */
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
    PKI_INTERRUPT_REQUEST Request; /* NULL: nobody waits for it */
    BOOLEAN Left;                  /* something that may not */
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

/* The request is on the other thread's stack: it may be gone after the store. */
static VOID KiCompleteRequest(PKI_INTERRUPT_REQUEST Request, BOOLEAN Claimed)
{
    __atomic_store_n(&Request->State, Claimed ? KiRequestClaimed : KiRequestUnclaimed, __ATOMIC_RELEASE);
    HalDispatch.Wake(&Request->State, 1);
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
            KiCompleteRequest(Pending.Request, Claimed);
        }
    }
}

/* Firing. */

static VOID KiPushRequest(PKPRCB Prcb, PKI_INTERRUPT_REQUEST Request)
{
    Request->Next = __atomic_load_n(&Prcb->InterruptQueue, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in KiCollectRequests */
    while (!__atomic_compare_exchange_n(&Prcb->InterruptQueue, &Request->Next, Request, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

static HAL_DEADLINE KiTimeOfRepeat(VOID)
{
    return (HAL_DEADLINE){.Clock = HalInterruptTime,
                          .Time = HalDispatch.QueryInterruptTime() + KI_TIME_BEFORE_REPEAT};
}

/* FALSE: it is time to ask again. The host's wait may end earlier, as often as it likes. */
static BOOLEAN KiPauseForRequest(PKTHREAD Thread, PKI_INTERRUPT_REQUEST Request, const HAL_DEADLINE *Repeat,
                                 PULONG Spins)
{
    if (Thread->Irql >= DISPATCH_LEVEL) {
        KiSpin(Thread, Spins);
        return *Spins % KI_SPINS_BEFORE_REPEAT != 0;
    }
    return HalDispatch.Wait(&Request->State, KiRequestPending, Repeat);
}

static BOOLEAN KiAwaitRequest(PKTHREAD Thread, PKPRCB Prcb, PKI_INTERRUPT_REQUEST Request)
{
    HAL_DEADLINE Repeat = KiTimeOfRepeat();
    ULONG Spins = 0;
    ULONG State;
    /* acquire: pairs with the release in KiCompleteRequest */
    while ((State = __atomic_load_n(&Request->State, __ATOMIC_ACQUIRE)) == KiRequestPending) {
        if (!KiPauseForRequest(Thread, Request, &Repeat, &Spins)) {
            KiRequestInterrupt(Thread, Prcb);
            Repeat = KiTimeOfRepeat();
        }
    }
    return State == KiRequestClaimed;
}

static VOID KiFireAndForget(PKTHREAD Thread, PKPRCB Prcb, ULONG Vector)
{
    __atomic_fetch_or(&Prcb->InterruptRequest[Vector / 64], 1ULL << Vector % 64, __ATOMIC_RELAXED);
    if (!KiRequestInterrupt(Thread, Prcb)) {
        KiProvideOwner(Thread, Prcb);
    }
}

static VOID KiServeOrphanedProcessor(PKTHREAD Thread, PKPRCB Prcb)
{
    PKPRCB Own = Thread->Prcb;
    if (KiTakeBesideOwn(Thread, Prcb)) {
        Thread->Prcb = Prcb;
        KiServiceInterrupts(Thread, Prcb);
        Thread->Prcb = Own;
        KiPollInterrupts(Thread);
    }
}

static BOOLEAN KiFireAndWait(PKTHREAD Thread, PKPRCB Prcb, ULONG Vector)
{
    KI_INTERRUPT_REQUEST Request = {.Vector = Vector, .State = KiRequestPending};
    KiPushRequest(Prcb, &Request);
    if (!KiRequestInterrupt(Thread, Prcb)) {
        if (Thread->Irql < DISPATCH_LEVEL) {
            KiProvideOwner(Thread, Prcb);
        } else {
            KiServeOrphanedProcessor(Thread, Prcb);
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
        KiFireAndForget(Thread, Prcb, Vector);
        return FALSE;
    }
    if (Irql >= DISPATCH_LEVEL ? Thread->Prcb == Prcb : KiTryRaiseOnProcessor(Thread, Prcb)) {
        Claimed = KiDispatchVector(Thread, Prcb, Vector);
        KiLowerIrql(Thread, Irql);
        return Claimed;
    }
    return KiFireAndWait(Thread, Prcb, Vector);
}

/* A survivor below DISPATCH_LEVEL holds no spinlock, and nobody else is there. */
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
