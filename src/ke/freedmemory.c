/* freedmemory.c: what is in use in memory that is freed. Theory in freedmemory.h. */
#include "freedmemory.h"

#include "lockorder.h"
#include "wait.h"

#include "../hal/machine.h"

KI_FIND_FREED *KiFindFreed[KiFreedLists];

#define KI_NEAR_STACK (16 * 1024 * 1024) /* around the end of a thread: more than most stacks */
#define KI_LEFT_FRAMES (64 * 1024)       /* more than most routines have used */

/* The bugcheck to raise. Code 0: none. */
typedef struct _KI_IN_USE {
    ULONG Code;
    ULONG_PTR Parameter[4];
} KI_IN_USE, *PKI_IN_USE;

static PKAPC KiFindQueuedApc(PKTHREAD Thread, PVOID Base, PVOID End)
{
    PKAPC Found = NULL;
    KiAcquireLock(&Thread->ApcQueueLock);
    for (ULONG Mode = KernelMode; Mode < MaximumMode; Mode += 1) {
        PLIST_ENTRY Head = &Thread->ApcState.ApcListHead[Mode];
        for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Found == NULL; Entry = Entry->Flink) {
            PKAPC Apc = CONTAINING_RECORD(Entry, KAPC, ApcListEntry);
            Found = KiIsInMemory(Apc, Base, End) ? Apc : NULL;
        }
    }
    KiReleaseLock(&Thread->ApcQueueLock);
    return Found;
}

/* Checks only waits that use the thread's own blocks: a caller's array may no longer exist. The thread cannot begin
   another wait for an object in this memory, so the blocks of a wait that continues are accurate. The thread may write
   them for another wait while they are read; rereading the register detects that. */
static __attribute__((no_sanitize_thread)) PVOID KiFindWaitedObject(PKTHREAD Thread, PVOID Base, PVOID End)
{
    /* acquire: pairs with the commit of the wait, before which the thread has written the rest */
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_ACQUIRE);
    if (!(Register & KI_WAIT_ACTIVE) || (Register & KI_WAIT_STATE_MASK) != WaitCommitted ||
        Thread->WaitBlockList != Thread->WaitBlock) {
        return NULL;
    }
    for (ULONG Index = 0; Index < Thread->WaitBlockCount && Index < THREAD_WAIT_OBJECTS; Index++) {
        PKWAIT_BLOCK Block = &Thread->WaitBlock[Index];
        if (KiIsInMemory(Block->Object, Base, End) && Block->WaitType != KI_HINT_BLOCK &&
            __atomic_load_n(&Thread->WaitRegister, __ATOMIC_ACQUIRE) == Register) {
            return Block->Object;
        }
    }
    return NULL;
}

/* A slot that is freed meanwhile stays unchanged until another thread takes it, which the lock prevents. */
static PKAPC KiFindQueuedApcInSlot(PKTHREAD Current, PKTHREAD Thread, PVOID Base, PVOID End)
{
    PKAPC Apc = NULL;
    KiEnterDispatcher(Current);
    KiAcquireLock(&KiSlotInitializationLock);
    /* acquire: pairs with the store in KiAllocateThread */
    if (__atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_ACQUIRE) == KiSlotUsed) {
        Apc = KiFindQueuedApc(Thread, Base, End);
    }
    KiReleaseLock(&KiSlotInitializationLock);
    KiExitDispatcher(Current);
    return Apc;
}

static BOOLEAN KiFindByThreads(PVOID Base, PVOID End, PKI_IN_USE InUse)
{
    PKTHREAD Current = KiCurrentThread();
    PKTHREAD Thread;
    for (ULONG Number = 0; (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
        if (__atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) != KiSlotUsed) {
            continue;
        }
        PKAPC Apc = KiFindQueuedApcInSlot(Current, Thread, Base, End);
        if (Apc != NULL) {
            *InUse = (KI_IN_USE){DRIVER_VERIFIER_DETECTED_VIOLATION,
                                 {KI_FREED_QUEUED_APC, (ULONG_PTR)Apc, (ULONG_PTR)Base, (ULONG_PTR)End}};
            return TRUE;
        }
        PVOID Object = KiFindWaitedObject(Thread, Base, End);
        if (Object != NULL) {
            *InUse = (KI_IN_USE){DRIVER_VERIFIER_DETECTED_VIOLATION,
                                 {KI_FREED_WAITED_OBJECT, (ULONG_PTR)Object, (ULONG_PTR)Thread, (ULONG_PTR)Base}};
            return TRUE;
        }
    }
    return FALSE;
}

/* By timers, DPCs, threads, and the lists of layers above; not by the lock order. */
static BOOLEAN KiFindInUse(PVOID Base, PVOID End, PKI_IN_USE InUse)
{
    PKDPC Dpc = NULL;
    PVOID Found = KiFindSetTimer(Base, End, &Dpc);
    if (Found != NULL) {
        *InUse = (KI_IN_USE){TIMER_OR_DPC_INVALID, {0, (ULONG_PTR)Found, (ULONG_PTR)Base, (ULONG_PTR)End}};
        return TRUE;
    }
    Dpc = Dpc != NULL ? Dpc : KiFindQueuedDpc(Base, End);
    if (Dpc != NULL) {
        *InUse = (KI_IN_USE){TIMER_OR_DPC_INVALID, {1, (ULONG_PTR)Dpc, (ULONG_PTR)Base, (ULONG_PTR)End}};
        return TRUE;
    }
    if (KiFindFreed[KiFreedWorkItems] != NULL && (Found = KiFindFreed[KiFreedWorkItems](Base, End)) != NULL) {
        *InUse = (KI_IN_USE){WORKER_INVALID, {0, (ULONG_PTR)Found, (ULONG_PTR)Base, (ULONG_PTR)End}};
        return TRUE;
    }
    if (KiFindFreed[KiFreedResources] != NULL && (Found = KiFindFreed[KiFreedResources](Base, End)) != NULL) {
        *InUse = (KI_IN_USE){DRIVER_VERIFIER_DETECTED_VIOLATION,
                             {KI_FREED_RESOURCE, (ULONG_PTR)Found, (ULONG_PTR)Base, (ULONG_PTR)End - (ULONG_PTR)Base}};
        return TRUE;
    }
    return KiFindByThreads(Base, End, InUse);
}

static DECLSPEC_NORETURN VOID KiStopInUse(const KI_IN_USE *InUse)
{
    KeBugCheckEx(InUse->Code, InUse->Parameter[0], InUse->Parameter[1], InUse->Parameter[2], InUse->Parameter[3]);
}

static VOID KiVerifyFreed(PVOID Base, SIZE_T Size, BOOLEAN Abandons)
{
    KI_IN_USE InUse;
    if (KiFindInUse(Base, (PUCHAR)Base + Size, &InUse)) {
        KiStopInUse(&InUse);
    }
    PVOID Lock = KiOrderForgetRange(Base, Size, Abandons);
    if (Lock != NULL) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_FREED_HELD_LOCK, (ULONG_PTR)Lock, (ULONG_PTR)Base, Size);
    }
}

VOID KiNoteNewMemory(PVOID Base, SIZE_T Size)
{
    (VOID)KiOrderForgetRange(Base, Size, TRUE);
}

VOID KiVerifyFreedMemory(PVOID Base, SIZE_T Size)
{
    KiVerifyFreed(Base, Size, FALSE);
}

VOID KiVerifyFreedObject(PVOID Base, SIZE_T Size)
{
    KiVerifyFreed(Base, Size, TRUE);
}

/* The search itself runs in these frames, and overwrites what was in them: only addresses count. Locks are not searched for,
   as at the end of a thread: callback.c has those that the routine holds. The end of a fiber's stack is unknown. */
VOID KiVerifyLeftFrames(PVOID Caller)
{
    ULONG_PTR End = (ULONG_PTR)Caller;
    ULONG_PTR Low;
    ULONG_PTR High;
    KI_IN_USE InUse;
    if (!KiFindInUse((PVOID)(End - KI_LEFT_FRAMES), (PVOID)End, &InUse)) {
        return;
    }
    HalQueryStackLimits(&Low, &High);
    if (End > Low && End <= High &&
        KiFindInUse((PVOID)(End - Low > KI_LEFT_FRAMES ? End - KI_LEFT_FRAMES : Low), (PVOID)End, &InUse)) {
        KiStopInUse(&InUse);
    }
}

/* The host frees the stack of every thread but the first. Querying the limits allocates memory, so it is done only if
   something nearby is in use. Locks in the stack are not searched for: those of frames that returned are free, or were
   reported with the thread. */
VOID KiVerifyStackAtExit(PKTHREAD Thread)
{
    ULONG_PTR Frame = (ULONG_PTR)__builtin_frame_address(0);
    ULONG_PTR Low;
    ULONG_PTR High;
    KI_IN_USE InUse;
    if (Thread != HalCurrentThread || Thread->ThreadId == HalCurrentProcessId() || Thread->IsIdleThread ||
        !KiFindInUse((PVOID)(Frame - KI_NEAR_STACK), (PVOID)(Frame + KI_NEAR_STACK), &InUse)) {
        return;
    }
    HalQueryStackLimits(&Low, &High);
    if (KiFindInUse((PVOID)Low, (PVOID)High, &InUse)) {
        KiStopInUse(&InUse);
    }
}
