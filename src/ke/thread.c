/*
 * thread.c: the table of threads, and how a thread begins and ends.
 *
 * Slots are handed out from a list of free ones, and from the end of the table when the list is empty. The head of the
 * list is one word, changed by compare-exchange:
 *
 *      63                             32 31                              0
 *     +---------------------------------+---------------------------------+
 *     |             sequence            |     number of a slot + 1, or 0  |
 *     +---------------------------------+---------------------------------+
 *
 * 1. Slots are never given back to the host, so the link of a slot that somebody else has just taken may be read.
 * 2. The sequence grows with every change, so a head that was taken and put back in between does not compare equal.
 * 3. No lock: a host interrupt, or a fork by another thread, may come between any two instructions. The worst it leaves
 *    behind is a slot that is neither free nor used, and a forked child builds the list anew.
 * 4. A slot that is used again is cleared word by word with atomic stores, because somebody with a stale pointer may be
 *    looking at its state, its registers or its id.
 */
#include "dispatch.h"
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
        .BasePriority = 8,
        .ExitStatus = STATUS_PENDING,
    },
};

static KI_THREAD_SLOT *KiSlotFromNumber(ULONG Number)
{
    /* acquire: pairs with the release in KiEnsureThreadChunk */
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

static KI_THREAD_SLOT *KiPopFreeSlot(VOID)
{
    /* acquire: pairs with the release in KiPushFreeSlot, so the last user's writes come before the next one's */
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

static BOOLEAN KiEnsureThreadChunk(ULONG Index)
{
    KI_THREAD_SLOT *Expected = NULL;
    KI_THREAD_SLOT *Chunk;
    if (__atomic_load_n(&KiThreadChunk[Index], __ATOMIC_RELAXED) != NULL) {
        return TRUE;
    }
    Chunk = HalAllocatePages(KI_THREAD_CHUNK * sizeof(KI_THREAD_SLOT));
    if (Chunk == NULL) {
        return FALSE;
    }
    if (!__atomic_compare_exchange_n(&KiThreadChunk[Index], &Expected, Chunk, FALSE, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED)) {
        HalFreePages(Chunk, KI_THREAD_CHUNK * sizeof(KI_THREAD_SLOT));
    }
    return TRUE;
}

static KI_THREAD_SLOT *KiTakeNewSlot(VOID)
{
    ULONG Number = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_RELAXED);
    KI_THREAD_SLOT *Slot;
    do {
        if (Number == KI_THREAD_CHUNK * KI_THREAD_CHUNKS || !KiEnsureThreadChunk(Number / KI_THREAD_CHUNK)) {
            return NULL;
        }
        /* release: whoever sees the slot counted also sees its chunk; seq_cst: nt/keptport.h */
    } while (!__atomic_compare_exchange_n(&KiThreadSlotsUsed, &Number, Number + 1, FALSE, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    Slot = KiSlotFromNumber(Number);
    Slot->Number = Number;
    return Slot;
}

#define KI_CLEARED_BYTES (FIELD_OFFSET(KI_THREAD_SLOT, ExKept) - FIELD_OFFSET(KI_THREAD_SLOT, Tcb))

static VOID KiClearThread(PKTHREAD Thread)
{
    volatile ULONG64 *Word = (volatile ULONG64 *)(PVOID)Thread;
    for (SIZE_T Index = 0; Index < KI_CLEARED_BYTES / sizeof(*Word); Index++) {
        __atomic_store_n(&Word[Index], 0, __ATOMIC_RELAXED);
    }
}

static VOID KiInitializeAffinity(PKTHREAD Thread)
{
    ULONG Processors = KeQueryActiveProcessorCountEx(0);
    Thread->Affinity.Mask = KeQueryGroupAffinity(0);
    Thread->UserAffinity = Thread->Affinity;
    Thread->IdealProcessor = KiSlotOfThread(Thread)->Number % Processors;
}

static VOID KiInitializeThread(PKTHREAD Thread)
{
    KiClearThread(Thread);
    KiInitializeBareHeader(&Thread->Header, ThreadObject, 0);
    InitializeListHead(&Thread->MutantListHead);
    InitializeListHead(&Thread->ApcState.ApcListHead[KernelMode]);
    Thread->ApcState.LastSpecial = &Thread->ApcState.ApcListHead[KernelMode];
    InitializeListHead(&Thread->ApcState.ApcListHead[UserMode]);
    Thread->ApcState.Process = &KiInitialProcess;
    Thread->Process = &KiInitialProcess;
    Thread->ApcQueueable = TRUE;
    Thread->EnableStackSwap = TRUE;
    __atomic_store_n(&Thread->Priority, KiInitialProcess.BasePriority, __ATOMIC_RELAXED);
    __atomic_store_n(&Thread->BasePriority, KiInitialProcess.BasePriority, __ATOMIC_RELAXED);
    Thread->CreateTime = HalDispatch.QuerySystemTime();
    KiInitializeAffinity(Thread);
    KiInitializeSuspension(Thread);
}

PKTHREAD KiAllocateThread(VOID)
{
    KI_THREAD_SLOT *Slot = KiPopFreeSlot();
    if (Slot == NULL) {
        Slot = KiTakeNewSlot();
    }
    if (Slot == NULL) {
        return NULL;
    }
    KiInitializeThread(&Slot->Tcb);
    if (KiThreadObjectRoutines.Initialize != NULL) {
        KiThreadObjectRoutines.Initialize(&Slot->Tcb);
    }
    __atomic_store_n(&Slot->Use, KiSlotUsed, __ATOMIC_RELAXED);
    return &Slot->Tcb;
}

VOID KiFreeThread(PKTHREAD Thread)
{
    KI_THREAD_SLOT *Slot = KiSlotOfThread(Thread);
    if (Thread->ThreadId != 0) {
        KiRemoveThreadId(Thread, Thread->ThreadId);
        __atomic_store_n(&Thread->ThreadId, 0, __ATOMIC_RELAXED);
    }
    /* relaxed: read by a forked child, which has one thread */
    __atomic_store_n(&Slot->Use, KiSlotFree, __ATOMIC_RELAXED);
    KiPushFreeSlot(Slot);
}

/* Also for a thread that never ran; a fork that comes in between leaves one that has ended alone. */
VOID KiDropThread(PKTHREAD Thread)
{
    __atomic_store_n(&Thread->State, Terminated, __ATOMIC_RELAXED);
    if (KiThreadObjectRoutines.Dereference != NULL) {
        KiThreadObjectRoutines.Dereference(Thread);
    } else {
        KiFreeThread(Thread);
    }
}

/* The thread runs no more; whoever waited for that goes on. */
VOID KiEndThread(PKTHREAD Thread)
{
    /* release: pairs with the acquire load of whoever asks for the exit status */
    __atomic_store_n(&Thread->State, Terminated, __ATOMIC_RELEASE);
    KiSignalObject(&Thread->Header, 1, 0);
    KTRACE_THREAD_END(Thread);
}

/* In a forked child, which has one thread: every slot that is not in use becomes free. */
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
 * Makes Thread the running one unless a signal handler that came in between has adopted the host thread already: the
 * compare-exchange is against the thread itself. Everything a handler may look at is in place before it.
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
    /* release: whoever sees the id finds the thread by it and sees it initialised */
    __atomic_store_n(&Thread->ThreadId, ThreadId, __ATOMIC_RELEASE);
    HalWatchThreadExit(Thread);
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
    Thread->Foreign = TRUE;
    if (!KiStartThread(Thread)) {
        KiDropThread(Thread);
    }
    return HalCurrentThread;
}

static VOID KiCheckLevelAtExit(PKTHREAD Thread)
{
    if (Thread->Irql >= DISPATCH_LEVEL) {
        KeBugCheckEx(IRQL_NOT_LESS_OR_EQUAL, (ULONG_PTR)Thread, Thread->Irql, 0, (ULONG_PTR)KiTerminateCurrentThread);
    }
    if (KiVerifierEnabled && !Thread->Foreign &&
        (Thread->Irql != PASSIVE_LEVEL || Thread->KernelApcDisable != 0 || Thread->SpecialApcDisable != 0)) {
        KeBugCheckEx(KERNEL_APC_PENDING_DURING_EXIT, 0, (ULONG_PTR)(USHORT)Thread->KernelApcDisable, Thread->Irql,
                     (ULONG_PTR)(USHORT)Thread->SpecialApcDisable);
    }
}

/* A mutex of the kernel must not outlive its owner; a mutant of a program is abandoned. */
static VOID KiCheckMutexesAtExit(PKTHREAD Thread)
{
    if (!KiVerifierEnabled || Thread->Foreign) {
        return;
    }
    for (PLIST_ENTRY Entry = Thread->MutantListHead.Flink; Entry != &Thread->MutantListHead; Entry = Entry->Flink) {
        PKMUTANT Mutant = CONTAINING_RECORD(Entry, KMUTANT, MutantListEntry);
        if (Mutant->ApcDisable != 0) {
            KeBugCheckEx(THREAD_TERMINATE_HELD_MUTEX, (ULONG_PTR)Thread, (ULONG_PTR)Mutant, 0, 0);
        }
    }
}

VOID KiTerminateCurrentThread(PKTHREAD Thread)
{
    KiCheckMutexesAtExit(Thread);
    KiCheckLevelAtExit(Thread);
    KiFlushThreadApcs(Thread);
    KiAbandonMutants(Thread);
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
    /* From here on the slot may be given to another thread, so a host interrupt must not find it any more. */
    HalCurrentThread = NULL;
    KiDropThread(Thread);
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
