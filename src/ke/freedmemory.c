/* freedmemory.c: what is in use in memory that is freed. Theory in freedmemory.h. */
#include "freedmemory.h"

#include "lockorder.h"
#include "wait.h"

#include "../hal/machine.h"

KI_VERIFY_FREED *KiVerifyFreedList[KiFreedLists];

static PKAPC KiFindQueuedApc(PKTHREAD Current, PKTHREAD Thread, PVOID Base, PVOID End)
{
    PKAPC Found = NULL;
    KiEnterDispatcher(Current);
    KiAcquireLock(&Thread->ApcQueueLock);
    for (ULONG Mode = KernelMode; Mode < MaximumMode; Mode += 1) {
        PLIST_ENTRY Head = &Thread->ApcState.ApcListHead[Mode];
        for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Found == NULL; Entry = Entry->Flink) {
            PKAPC Apc = CONTAINING_RECORD(Entry, KAPC, ApcListEntry);
            Found = KiIsInMemory(Apc, Base, End) ? Apc : NULL;
        }
    }
    KiReleaseLock(&Thread->ApcQueueLock);
    KiExitDispatcher(Current);
    return Found;
}

/* A wait that uses the thread's own blocks: an array of the caller may be gone. The thread cannot begin another wait for
   an object in this memory, so what the blocks say of a wait that lasts is true. */
static PVOID KiFindWaitedObject(PKTHREAD Thread, PVOID Base, PVOID End)
{
    /* relaxed, all: see above */
    if (__atomic_load_n(&Thread->State, __ATOMIC_RELAXED) != Waiting ||
        __atomic_load_n(&Thread->WaitBlockList, __ATOMIC_RELAXED) != Thread->WaitBlock) {
        return NULL;
    }
    ULONG Count = __atomic_load_n(&Thread->WaitBlockCount, __ATOMIC_RELAXED);
    for (ULONG Index = 0; Index < Count && Index < THREAD_WAIT_OBJECTS; Index++) {
        PKWAIT_BLOCK Block = &Thread->WaitBlock[Index];
        PVOID Object = __atomic_load_n(&Block->Object, __ATOMIC_RELAXED);
        if (KiIsInMemory(Object, Base, End) && __atomic_load_n(&Block->WaitType, __ATOMIC_RELAXED) != KI_HINT_BLOCK &&
            __atomic_load_n(&Block->BlockState, __ATOMIC_RELAXED) == WaitBlockActive &&
            (__atomic_load_n(&Thread->WaitRegister, __ATOMIC_ACQUIRE) & KI_WAIT_ACTIVE)) {
            return Object;
        }
    }
    return NULL;
}

static VOID KiVerifyFreedByThreads(PVOID Base, PVOID End)
{
    PKTHREAD Current = KiCurrentThread();
    PKTHREAD Thread;
    for (ULONG Number = 0; (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
        if (__atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) != KiSlotUsed) {
            continue;
        }
        PKAPC Apc = KiFindQueuedApc(Current, Thread, Base, End);
        if (Apc != NULL) {
            KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_FREED_QUEUED_APC, (ULONG_PTR)Apc, (ULONG_PTR)Base,
                         (ULONG_PTR)End);
        }
        PVOID Object = KiFindWaitedObject(Thread, Base, End);
        if (Object != NULL) {
            KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_FREED_WAITED_OBJECT, (ULONG_PTR)Object,
                         (ULONG_PTR)Thread, (ULONG_PTR)Base);
        }
    }
}

VOID KiVerifyFreedMemory(PVOID Base, SIZE_T Size)
{
    PVOID End = (PUCHAR)Base + Size;
    PKDPC Dpc = NULL;
    PKTIMER Timer = KiFindSetTimer(Base, End, &Dpc);
    if (Timer != NULL) {
        KeBugCheckEx(TIMER_OR_DPC_INVALID, 0, (ULONG_PTR)Timer, (ULONG_PTR)Base, (ULONG_PTR)End);
    }
    Dpc = Dpc != NULL ? Dpc : KiFindQueuedDpc(Base, End);
    if (Dpc != NULL) {
        KeBugCheckEx(TIMER_OR_DPC_INVALID, 1, (ULONG_PTR)Dpc, (ULONG_PTR)Base, (ULONG_PTR)End);
    }
    KiVerifyFreedByThreads(Base, End);
    for (ULONG List = 0; List < KiFreedLists; List++) {
        if (KiVerifyFreedList[List] != NULL) {
            KiVerifyFreedList[List](Base, End);
        }
    }
    PVOID Lock = KiOrderForgetRange(Base, Size);
    if (Lock != NULL) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_FREED_HELD_LOCK, (ULONG_PTR)Lock, (ULONG_PTR)Base, Size);
    }
}

/* The host frees the stack of every thread but the first. */
VOID KiVerifyStackAtExit(PKTHREAD Thread)
{
    ULONG_PTR Low;
    ULONG_PTR High;
    if (Thread != HalCurrentThread || Thread->ThreadId == HalCurrentProcessId() || Thread->IsIdleThread) {
        return;
    }
    HalQueryStackLimits(&Low, &High);
    KiVerifyFreedMemory((PVOID)Low, High - Low);
}
