/* semaphore.c: KSEMAPHORE. */
#include "wait.h"

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit)
{
    KiInitializeHeader(&Semaphore->Header, SemaphoreObject, sizeof(KSEMAPHORE), Count);
    Semaphore->Limit = Limit;
}

/* FALSE: the count would exceed the limit, or decrease. */
static BOOLEAN KiUpdateCount(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    LONG Adjustment = *(PLONG)Context;
    LONG Adjusted;
    if (Adjustment < 0 || __builtin_add_overflow(KI_STATE(*Word), Adjustment, &Adjusted) ||
        Adjusted > CONTAINING_RECORD(Header, KSEMAPHORE, Header)->Limit) {
        return FALSE;
    }
    *Word += KI_COUNTED(Adjustment);
    return TRUE;
}

/* FALSE: nothing has happened, because the semaphore is locked, has waiters or refuses, or another thread was faster. */
FORCEINLINE BOOLEAN KiTryAddCount(PRKSEMAPHORE Semaphore, ULONG64 Word, LONG Adjustment, PLONG PreviousCount)
{
    ULONG64 New = Word;
    if ((Word & (KI_LOCKED | KI_WAITERS)) || !KiUpdateCount(&Semaphore->Header, &New, &Adjustment) ||
        !KiCompareExchangeHeader(&Semaphore->Header, &Word, New)) {
        return FALSE;
    }
    *PreviousCount = KI_STATE(Word);
    return TRUE;
}

/* The semaphore has waiters, or is locked, or outside. */
static DECLSPEC_NOINLINE NTSTATUS KiReleaseSemaphoreSlow(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment,
                                                         PLONG PreviousCount)
{
    PKI_OUTSIDE Outside = KiOutsideOf(&Semaphore->Header);
    if (Outside != NULL) {
        return KiOutsideOperations->ReleaseSemaphore(Outside, Adjustment, PreviousCount);
    }
    KI_SIGNAL Signal = {.Update = KiUpdateCount, .Context = &Adjustment, .Increment = Increment};
    return KiSignal(&Semaphore->Header, &Signal, PreviousCount) ? STATUS_SUCCESS : STATUS_SEMAPHORE_LIMIT_EXCEEDED;
}

/* A refused release also needs its compare-exchange, so that the count it reports was current. */
NTSTATUS KiReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait,
                            PLONG PreviousCount)
{
    ULONG64 Word = KiReadHeader(&Semaphore->Header);
    NTSTATUS Status;
    ULONG64 New;
    do {
        if (Word & (KI_LOCKED | KI_WAITERS)) {
            Status = KiReleaseSemaphoreSlow(Semaphore, Increment, Adjustment, PreviousCount);
            break;
        }
        New = Word;
        Status = KiUpdateCount(&Semaphore->Header, &New, &Adjustment) ? STATUS_SUCCESS : STATUS_SEMAPHORE_LIMIT_EXCEEDED;
        *PreviousCount = KI_STATE(Word);
    } while (!KiCompareExchangeHeader(&Semaphore->Header, &Word, New));
    return __builtin_expect(Wait, FALSE) ? KiSetWaitNextIf(TRUE, Status) : Status;
}

/* A refused release is left to the slow path, which reports it. */
BOOLEAN KiTryReleaseSemaphoreAtOnce(PRKSEMAPHORE Semaphore, LONG Adjustment, PLONG PreviousCount)
{
    ULONG64 Word = KiReadHeader(&Semaphore->Header);
    if (__builtin_expect((Word & KI_LOCKED) != 0, FALSE)) {
        PKI_OUTSIDE Outside = KiOutsideOf(&Semaphore->Header);
        return Outside != NULL && KiOutsideOperations->TryReleaseSemaphoreAtOnce(Outside, Adjustment, PreviousCount);
    }
    return KiTryAddCount(Semaphore, Word, Adjustment, PreviousCount);
}

static DECLSPEC_NOINLINE LONG KiReleaseSemaphoreOrRaise(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment,
                                                        BOOLEAN Wait)
{
    LONG Previous;
    NTSTATUS Status = KiReleaseSemaphore(Semaphore, Increment, Adjustment, Wait, &Previous);
    if (!NT_SUCCESS(Status)) {
        KiRaiseStatus(Status);
    }
    return Previous;
}

LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait)
{
    LONG Previous;
    return !Wait && KiTryAddCount(Semaphore, KiReadHeader(&Semaphore->Header), Adjustment, &Previous)
               ? Previous
               : KiReleaseSemaphoreOrRaise(Semaphore, Increment, Adjustment, Wait);
}

LONG KeReadStateSemaphore(PRKSEMAPHORE Semaphore)
{
    return KI_STATE(KiReadSettledHeader(&Semaphore->Header));
}
