/*
 * thread.c: the table of threads, the lookup by id, how a thread starts and ends, and its stack and registers.
 *
 * Slots come from a list of free ones, or from the end of the table if the list is empty. The head of the list is one
 * word, changed by compare-exchange:
 *
 *      63                             32 31                              0
 *     +---------------------------------+---------------------------------+
 *     |             sequence            |     number of a slot + 1, or 0  |
 *     +---------------------------------+---------------------------------+
 *
 * 1. Slots are never returned to the host, so the link of a slot that another thread has just taken may be read.
 * 2. The sequence grows with every change, so a head that was taken and put back in between does not compare equal.
 * 3. No lock: a host interrupt, or a fork by another thread, may occur between any two instructions. At worst it leaves
 *    a slot that is neither free nor used, and a forked child rebuilds the list.
 * 4. A reused slot is cleared word by word with atomic stores: a reader with a stale pointer may be reading its state,
 *    its registers or its id.
 */
#include "lockorder.h"
#include "verifier.h"
#include "wait.h"

#include "../hal/hal.h"
#include "../trace/trace.h"

static KI_THREAD_SLOT KiFirstThreadChunk[KI_THREAD_CHUNK];
KI_THREAD_SLOT *volatile KiThreadChunk[KI_THREAD_CHUNKS] = {KiFirstThreadChunk};
volatile ULONG KiThreadSlotsUsed;
volatile ULONG64 KiFreeThreadSlots;

KI_THREAD_OBJECT_ROUTINES KiThreadObjectRoutines;

KI_PROCESS_SLOT KiInitialProcessSlot = {
    .Pcb = {
        .Header = {
            .Type = ProcessObject,
            .Size = sizeof(KPROCESS) / sizeof(LONG),
            .WaitListHead = {&KiInitialProcess.Header.WaitListHead, &KiInitialProcess.Header.WaitListHead},
        },
        .BasePriority = KI_NORMAL_PRIORITY,
        .ExitStatus = STATUS_PENDING,
    },
};

static KI_THREAD_SLOT *KiSlotFromNumber(ULONG Number)
{
    /* acquire: pairs with the release in KiTakeNewSlot */
    KI_THREAD_SLOT *Chunk = __atomic_load_n(&KiThreadChunk[Number / KI_THREAD_CHUNK], __ATOMIC_ACQUIRE);
    return &Chunk[Number % KI_THREAD_CHUNK];
}

PKTHREAD KiThreadFromNumber(ULONG Slot)
{
    if (Slot >= __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE)) {
        return NULL;
    }
    return &KiSlotFromNumber(Slot)->Tcb;
}

/*
 * From an id to its thread: a table of buckets, each one cache line of eight words. A word has the id in its lower half,
 * the number of the thread's slot plus 1 in its upper half; 0 is empty. An id may be in any word of its bucket, so a
 * lookup reads one line and takes no lock.
 *
 * 1. A word is written by the thread whose id it holds (0 to its id), and by the thread that frees its slot (back to 0).
 * 2. The same id may be in a bucket twice: the host reuses an id while the thread that had it before is still
 *    referenced. A lookup prefers the one that has not ended.
 * 3. A thread that finds its bucket full is counted in KiCidOverflow. Only while that is not 0 does a lookup that finds
 *    nothing in the bucket search every slot. The host counts ids up, so this takes more threads than the table has
 *    words, or eight whose ids are multiples of its size apart.
 */
#define KI_CID_WAYS 8
#define KI_CID_BUCKETS 8192

typedef struct _KI_CID_BUCKET {
    volatile ULONG64 Word[KI_CID_WAYS] DECLSPEC_ALIGN(KI_CACHE_LINE);
} KI_CID_BUCKET;

C_ASSERT(sizeof(KI_CID_BUCKET) == KI_CACHE_LINE);

static KI_CID_BUCKET KiCidTable[KI_CID_BUCKETS];
static volatile ULONG KiCidOverflow;

static ULONG64 KiCidWord(PKTHREAD Thread, ULONG ThreadId)
{
    return (ULONG64)(KiSlotOfThread(Thread)->Number + 1) << 32 | ThreadId;
}

/* Replaces Old by New in the bucket of ThreadId. FALSE: Old is not there. */
static BOOLEAN KiReplaceCidWord(ULONG ThreadId, ULONG64 Old, ULONG64 New)
{
    KI_CID_BUCKET *Bucket = &KiCidTable[ThreadId % KI_CID_BUCKETS];
    for (ULONG Way = 0; Way < KI_CID_WAYS; Way++) {
        ULONG64 Expected = Old;
        /* release: pairs with the acquire load in KiLookupThreadById, which then sees an initialised thread */
        if (__atomic_load_n(&Bucket->Word[Way], __ATOMIC_RELAXED) == Old &&
            __atomic_compare_exchange_n(&Bucket->Word[Way], &Expected, New, FALSE, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
            return TRUE;
        }
    }
    return FALSE;
}

VOID KiInsertThreadId(PKTHREAD Thread, ULONG ThreadId)
{
    if (!KiReplaceCidWord(ThreadId, 0, KiCidWord(Thread, ThreadId))) {
        /* release: pairs with the acquire load in KiLookupThreadById */
        __atomic_fetch_add(&KiCidOverflow, 1, __ATOMIC_RELEASE);
    }
}

VOID KiRemoveThreadId(PKTHREAD Thread, ULONG ThreadId)
{
    if (!KiReplaceCidWord(ThreadId, KiCidWord(Thread, ThreadId), 0)) {
        __atomic_fetch_sub(&KiCidOverflow, 1, __ATOMIC_RELAXED);
    }
}

/* Also true for a thread that has stopped: the host may reuse its id (stop.c). */
static BOOLEAN KiThreadHasEnded(PKTHREAD Thread)
{
    UCHAR State = __atomic_load_n(&Thread->State, __ATOMIC_RELAXED);
    return State == Terminated || State == Transition;
}

static PKTHREAD KiFindThreadById(ULONG ThreadId)
{
    PKTHREAD Ended = NULL;
    ULONG SlotsUsed = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE);
    for (ULONG Slot = 0; Slot < SlotsUsed; Slot++) {
        PKTHREAD Thread = KiThreadFromNumber(Slot);
        /* acquire: pairs with the release store of the id in KiStartThread */
        if (__atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE) == ThreadId) {
            if (!KiThreadHasEnded(Thread)) {
                return Thread;
            }
            Ended = Thread;
        }
    }
    return Ended;
}

/* A hint: the thread may end, and its slot be reused, before the caller uses it. For certainty, take a reference and
   compare the id again. */
PKTHREAD KiLookupThreadById(ULONG ThreadId)
{
    KI_CID_BUCKET *Bucket = &KiCidTable[ThreadId % KI_CID_BUCKETS];
    PKTHREAD Ended = NULL;
    if (ThreadId == 0) {
        return NULL;
    }
    for (ULONG Way = 0; Way < KI_CID_WAYS; Way++) {
        ULONG64 Word = __atomic_load_n(&Bucket->Word[Way], __ATOMIC_ACQUIRE);
        if ((ULONG)Word == ThreadId) {
            PKTHREAD Thread = KiThreadFromNumber((ULONG)(Word >> 32) - 1);
            if (!KiThreadHasEnded(Thread)) {
                return Thread;
            }
            Ended = Thread;
        }
    }
    if (__atomic_load_n(&KiCidOverflow, __ATOMIC_ACQUIRE) != 0) {
        PKTHREAD Thread = KiFindThreadById(ThreadId);
        return Thread != NULL ? Thread : Ended;
    }
    return Ended;
}

/* Slots. */

static KI_THREAD_SLOT *KiPopFreeSlot(VOID)
{
    /* acquire: pairs with the release in KiPushFreeSlot: the last user's writes come before the next one's */
    ULONG64 Head = __atomic_load_n(&KiFreeThreadSlots, __ATOMIC_ACQUIRE);
    while ((ULONG)Head != 0) {
        KI_THREAD_SLOT *Slot = KiSlotFromNumber((ULONG)Head - 1);
        ULONG64 Next = ((Head >> 32) + 1) << 32 | __atomic_load_n(&Slot->NextFree, __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(&KiFreeThreadSlots, &Head, Next, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            return Slot;
        }
    }
    return NULL;
}

static VOID KiPushFreeSlot(KI_THREAD_SLOT *Slot)
{
    ULONG64 Head = __atomic_load_n(&KiFreeThreadSlots, __ATOMIC_RELAXED);
    ULONG64 New;
    do {
        __atomic_store_n(&Slot->NextFree, (ULONG)Head, __ATOMIC_RELAXED);
        New = ((Head >> 32) + 1) << 32 | (Slot->Number + 1);
    } while (!__atomic_compare_exchange_n(&KiFreeThreadSlots, &Head, New, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* Takes the next slot of the table, with its chunk. NULL: the table is full, or there is no memory. */
static KI_THREAD_SLOT *KiTakeNewSlot(VOID)
{
    ULONG Number = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_RELAXED);
    KI_THREAD_SLOT *Slot;
    do {
        KI_THREAD_SLOT *volatile *Chunk = &KiThreadChunk[Number / KI_THREAD_CHUNK];
        if (Number == KI_THREAD_CHUNK * KI_THREAD_CHUNKS) {
            return NULL;
        }
        if (__atomic_load_n(Chunk, __ATOMIC_RELAXED) == NULL) {
            KI_THREAD_SLOT *None = NULL;
            KI_THREAD_SLOT *Fresh = HalAllocatePages(KI_THREAD_CHUNK * sizeof(KI_THREAD_SLOT));
            if (Fresh == NULL) {
                return NULL;
            }
            /* release: pairs with the acquire in KiSlotFromNumber */
            if (!__atomic_compare_exchange_n(Chunk, &None, Fresh, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
                HalFreePages(Fresh, KI_THREAD_CHUNK * sizeof(KI_THREAD_SLOT));
            }
        }
        /* release: a thread that sees the slot counted also sees its chunk; seq_cst: nt/iocompletion.c */
    } while (!__atomic_compare_exchange_n(&KiThreadSlotsUsed, &Number, Number + 1, FALSE, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    Slot = KiSlotFromNumber(Number);
    Slot->Number = Number;
    return Slot;
}

#define KI_CLEARED_WORDS ((FIELD_OFFSET(KI_THREAD_SLOT, ExKept) - FIELD_OFFSET(KI_THREAD_SLOT, Tcb)) / sizeof(ULONG64))

static VOID KiInitializeThread(PKTHREAD Thread)
{
    volatile ULONG64 *Word = (volatile ULONG64 *)(PVOID)Thread;
    for (SIZE_T Index = 0; Index < KI_CLEARED_WORDS; Index++) {
        __atomic_store_n(&Word[Index], 0, __ATOMIC_RELAXED);
    }
    KiInitializeBareHeader(&Thread->Header, ThreadObject, 0);
    InitializeListHead(&Thread->MutantListHead);
    InitializeListHead(&Thread->ApcState.ApcListHead[KernelMode]);
    Thread->ApcState.LastSpecial = &Thread->ApcState.ApcListHead[KernelMode];
    InitializeListHead(&Thread->ApcState.ApcListHead[UserMode]);
    Thread->ApcState.Process = &KiInitialProcess;
    Thread->Process = &KiInitialProcess;
    Thread->ApcQueueable = TRUE;
    Thread->EnableStackSwap = TRUE;
    Thread->WaitNext = KiVerifierEnabled ? KI_WAIT_NEXT_VERIFIED : 0;
    __atomic_store_n(&Thread->Priority, (SCHAR)KiReadProcessBase(&KiInitialProcess), __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->BasePriority, Thread->Priority, __ATOMIC_RELAXED);
    Thread->CreateTime = HalDispatch.QuerySystemTime();
    Thread->Affinity.Mask = KeQueryGroupAffinity(0);
    Thread->UserAffinity = Thread->Affinity;
    Thread->IdealProcessor = KiSlotOfThread(Thread)->Number % KeQueryActiveProcessorCountEx(0);
    KiInitializeSuspension(Thread);
}

KI_LOCK KiSlotInitializationLock;

PKTHREAD KiAllocateThread(VOID)
{
    KI_THREAD_SLOT *Slot = KiPopFreeSlot();
    if (Slot == NULL) {
        Slot = KiTakeNewSlot();
    }
    if (Slot == NULL) {
        return NULL;
    }
    for (ULONG Round = 0; !KiTryAcquireLock(&KiSlotInitializationLock); Round++) {
        KiBackOff(Round); /* a thread that is being adopted cannot park */
    }
    KiInitializeThread(&Slot->Tcb);
    if (KiThreadObjectRoutines.Initialize != NULL) {
        KiThreadObjectRoutines.Initialize(&Slot->Tcb);
    }
    /* seq_cst: pairs with KiForEachThread; either that finds the thread, or the thread finds the new settings */
    __atomic_store_n(&Slot->Use, KiSlotUsed, __ATOMIC_SEQ_CST);
    KiReleaseLock(&KiSlotInitializationLock);
    return &Slot->Tcb;
}

VOID KiFreeThread(PKTHREAD Thread)
{
    KI_THREAD_SLOT *Slot = KiSlotOfThread(Thread);
    KiOrderDropThread(Thread);
    if (Thread->ThreadId != 0) {
        KiRemoveThreadId(Thread, Thread->ThreadId);
        __atomic_store_n(&Thread->ThreadId, 0, __ATOMIC_RELAXED);
    }
    /* relaxed: read by a forked child, which has one thread */
    __atomic_store_n(&Slot->Use, KiSlotFree, __ATOMIC_RELAXED);
    KiPushFreeSlot(Slot);
}

/* Also for a thread that never ran. A fork in between ignores an ended thread. */
VOID KiDropThread(PKTHREAD Thread)
{
    __atomic_store_n(&Thread->State, Terminated, __ATOMIC_RELAXED);
    if (KiThreadObjectRoutines.Dereference != NULL) {
        KiThreadObjectRoutines.Dereference(Thread);
    } else {
        KiFreeThread(Thread);
    }
}

volatile ULONG KiThreadsEnded;

VOID KiEndThread(PKTHREAD Thread)
{
    /* release: pairs with the acquire of a thread that queries the exit status */
    __atomic_store_n(&Thread->State, Terminated, __ATOMIC_RELEASE);
    /* acq_rel: pairs with itself; the thread with the highest ordinal sees all others as ended */
    Thread->EndOrdinal = __atomic_add_fetch(&KiThreadsEnded, 1, __ATOMIC_ACQ_REL);
    KiSignalObject(&Thread->Header, 1, 0);
    KTRACE_THREAD_END(Thread);
}

/* In a forked child, which has one thread. */
VOID KiRebuildFreeSlots(VOID)
{
    __atomic_store_n(&KiFreeThreadSlots, 0, __ATOMIC_RELAXED);
    for (ULONG Number = KiThreadSlotsUsed; Number-- != 0;) {
        KI_THREAD_SLOT *Slot = KiSlotFromNumber(Number);
        Slot->Number = Number;
        if (__atomic_load_n(&Slot->Use, __ATOMIC_RELAXED) == KiSlotFree) {
            KiPushFreeSlot(Slot);
        }
    }
}

/*
 * Makes Thread the running one, unless a signal handler has adopted the host thread in between: the compare-exchange is
 * against this very thread. Everything that a handler may read is in place before it.
 */
static BOOLEAN KiStartThread(PKTHREAD Thread)
{
    PKTHREAD Adopted = NULL;
    ULONG ThreadId = HalCurrentThreadId();
    __atomic_store_n(&Thread->State, Running, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&HalCurrentThread, &Adopted, Thread, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return FALSE;
    }
    KiInsertThreadId(Thread, ThreadId);
    /* release: a thread that sees the id finds the thread by it, initialized */
    __atomic_store_n(&Thread->ThreadId, ThreadId, __ATOMIC_RELEASE);
    HalWatchThreadExit(Thread);
    KiAdoptProcessSettings(Thread);
    return TRUE;
}

VOID KiStartCurrentThread(PKTHREAD Thread)
{
    if (!KiStartThread(Thread)) {
        KeBugCheckEx(CID_HANDLE_CREATION, (ULONG_PTR)Thread, (ULONG_PTR)HalCurrentThread, 0, 0);
    }
    HalDispatch.Wake(&Thread->ThreadId, 1);
}

PKTHREAD KiAdoptThread(VOID)
{
    PKTHREAD Thread;
    KiInitializeSystem();
    Thread = KiAllocateThread();
    if (Thread == NULL) {
        KeBugCheckEx(CID_HANDLE_CREATION, 0, 0, HalCurrentThreadId(), KI_THREAD_CHUNK * KI_THREAD_CHUNKS);
    }
    __atomic_store_n(&Thread->Foreign, TRUE, __ATOMIC_RELAXED);
    if (!KiStartThread(Thread)) {
        KiDropThread(Thread);
    }
    return HalCurrentThread;
}

/* A mutex of the kernel must not outlive its owner, while a mutant of a program is abandoned. A thread of the host may end
   at any point of a test, so its mutexes are abandoned too. */
static VOID KiCheckThreadAtExit(PKTHREAD Thread)
{
    BOOLEAN Verified = KiVerifierEnabled && !Thread->Foreign;
    for (PLIST_ENTRY Entry = Thread->MutantListHead.Flink; !Thread->Foreign && Entry != &Thread->MutantListHead;
         Entry = Entry->Flink) {
        PKMUTANT Mutant = CONTAINING_RECORD(Entry, KMUTANT, MutantListEntry);
        if (Mutant->ApcDisable & KI_MUTANT_MUTEX) {
            KeBugCheckEx(THREAD_TERMINATE_HELD_MUTEX, (ULONG_PTR)Thread, (ULONG_PTR)Mutant, 0, 0);
        }
    }
    if (Thread->Irql >= DISPATCH_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)Thread, Thread->Irql, 0, (ULONG_PTR)KiTerminateCurrentThread);
    }
    if (Verified && (Thread->Irql != PASSIVE_LEVEL || Thread->KernelApcDisable != 0 || Thread->SpecialApcDisable != 0)) {
        KeBugCheckEx(KERNEL_APC_PENDING_DURING_EXIT, 0, (ULONG_PTR)(USHORT)Thread->KernelApcDisable, Thread->Irql,
                     (ULONG_PTR)(USHORT)Thread->SpecialApcDisable);
    }
}

VOID KiTerminateCurrentThread(PKTHREAD Thread)
{
    KiCheckThreadAtExit(Thread);
    KiFlushThreadApcs(Thread);
    KiAbandonMutants(Thread);
    KiOrderEndThread(Thread);
    if (KiVerifierEnabled) {
        KiVerifyStackAtExit(Thread);
    }
    KiOrderDropThread(Thread);
    KiLeaveQueue(Thread);
    KiEndThread(Thread);
}

VOID KiThreadExit(PKTHREAD Thread)
{
    if (KiThreadObjectRoutines.Exit != NULL) {
        KiThreadObjectRoutines.Exit(Thread, FALSE);
    }
    KiClaimExit(Thread);
    KiRecordTimes(Thread);
    KiTerminateCurrentThread(Thread);
    NTSTATUS ExitStatus = Thread->ExitStatus;
    ULONG EndOrdinal = Thread->EndOrdinal;
    /* From here on the slot may be reused: a host interrupt must not find it. */
    HalCurrentThread = NULL;
    KiDropThread(Thread);
    if (KiThreadObjectRoutines.Ended != NULL) {
        KiThreadObjectRoutines.Ended(EndOrdinal, ExitStatus);
    }
}

PKTHREAD KeGetCurrentThread(VOID)
{
    return KiCurrentThread();
}

BOOLEAN KeSetKernelStackSwapEnable(BOOLEAN Enable)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Previous = Thread->EnableStackSwap;
    Thread->EnableStackSwap = Enable != FALSE;
    return Previous;
}

/*
 * Holding the host's thread. The host reuses the id of a thread that has ended, even for another process. So a caller
 * of the host holds the thread, one caller at a time, and the thread does not end meanwhile:
 *
 *     Present <-> Held        the caller of the host
 *     Present  -> Gone        the thread itself, when it ends
 *
 * Held is never left behind: the holder is in a dispatcher section, where it is neither stopped nor terminated, and
 * which a fork waits for.
 */
typedef enum _KI_HOST_HOLD { KiHostPresent, KiHostHeld, KiHostGone } KI_HOST_HOLD;

/* FALSE: it has ended. acq_rel: one holder's work happens before the next one's, the recorded times before Gone */
static BOOLEAN KiChangeHostHold(PKTHREAD Thread, KI_HOST_HOLD New)
{
    for (ULONG Round = 0;; Round += 1) {
        ULONG Found = KiHostPresent;
        if (__atomic_compare_exchange_n(&Thread->HostHold, &Found, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return TRUE;
        }
        if (Found == KiHostGone) {
            return FALSE;
        }
        KiBackOff(Round);
    }
}

BOOLEAN KiHoldHostThread(PKTHREAD Thread, PULONG ThreadId)
{
    /* acquire: pairs with the release in KiStartThread */
    *ThreadId = __atomic_load_n(&Thread->ThreadId, __ATOMIC_ACQUIRE);
    return *ThreadId != 0 && KiChangeHostHold(Thread, KiHostHeld);
}

VOID KiReleaseHostThread(PKTHREAD Thread)
{
    __atomic_store_n(&Thread->HostHold, KiHostPresent, __ATOMIC_RELEASE);
}

VOID KiForgetHostThread(PKTHREAD Thread)
{
    __atomic_store_n(&Thread->HostHold, KiHostGone, __ATOMIC_RELAXED);
}

VOID KiRecordTimes(PKTHREAD Thread)
{
    Thread->ExitTime = HalDispatch.QuerySystemTime();
    HalQueryThreadTimes(HalCurrentThreadId(), &Thread->KernelTime, &Thread->UserTime);
    KiChangeHostHold(Thread, KiHostGone);
}

/*
 * Calls with a larger stack, floating-point and extended state. Every host thread has a large stack and its
 * own registers, also in signal handlers, where interrupts run. So there is nothing to expand or to save. Only the
 * contract remains: where the call is allowed, and that the thread that saved restores, at the same IRQL.
 */

#define KI_STACK_RESERVE 16384       /* bytes of the host's stack that the library needs below a callout */
#define KI_SAVED         0x46500000u /* a KFLOATING_SAVE that was saved, with the IRQL */

NTSTATUS KeExpandKernelStackAndCalloutEx(PEXPAND_STACK_CALLOUT Callout, PVOID Parameter, SIZE_T Size, BOOLEAN Wait,
                                         PVOID Context)
{
    KIRQL Irql = KiCurrentThread()->Irql;
    ULONG_PTR Here = (ULONG_PTR)__builtin_frame_address(0);
    ULONG_PTR Low, High;
    UNREFERENCED_PARAMETER(Context);
    if (Irql > (Wait ? APC_LEVEL : DISPATCH_LEVEL)) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)Callout, Irql, 0, (ULONG_PTR)__builtin_return_address(0));
    }
    if (Size > MAXIMUM_EXPANSION_SIZE) {
        return STATUS_INVALID_PARAMETER_3;
    }
    HalQueryStackLimits(&Low, &High);
    /* Outside: the stack of a fiber or of a signal, whose size is unknown. */
    if (Here >= Low && Here <= High && Here - Low < Size + KI_STACK_RESERVE) {
        return STATUS_NO_MEMORY;
    }
    Callout(Parameter);
    return STATUS_SUCCESS;
}

NTSTATUS KeExpandKernelStackAndCallout(PEXPAND_STACK_CALLOUT Callout, PVOID Parameter, SIZE_T Size)
{
    return KeExpandKernelStackAndCalloutEx(Callout, Parameter, Size, TRUE, NULL);
}

NTSTATUS KeSaveFloatingPointState(PKFLOATING_SAVE FloatSave)
{
    FloatSave->Dummy = KI_SAVED | KiCurrentThread()->Irql;
    return STATUS_SUCCESS;
}

NTSTATUS KeRestoreFloatingPointState(PKFLOATING_SAVE FloatSave)
{
    ULONG Saved = FloatSave->Dummy;
    FloatSave->Dummy = 0;
    return Saved == (KI_SAVED | KiCurrentThread()->Irql) ? STATUS_SUCCESS : STATUS_UNSUCCESSFUL;
}

NTSTATUS KeSaveExtendedProcessorState(ULONG64 Mask, PXSTATE_SAVE XStateSave)
{
    PKTHREAD Thread = KiCurrentThread();
    *XStateSave = (XSTATE_SAVE){.Thread = Thread, .Level = Thread->Irql, .XStateContext = {.Mask = Mask}};
    return STATUS_SUCCESS;
}

VOID KeRestoreExtendedProcessorState(PXSTATE_SAVE XStateSave)
{
    PKTHREAD Thread = KiCurrentThread();
    if (XStateSave->Thread != Thread || XStateSave->Level != Thread->Irql) {
        KeBugCheckEx(IRQL_UNEXPECTED_VALUE, (ULONG_PTR)Thread->Irql << 16 | (ULONG_PTR)XStateSave->Level << 8, 0,
                     (ULONG_PTR)XStateSave, 0);
    }
    XStateSave->Thread = NULL;
}
