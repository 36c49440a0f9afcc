/* semaphore.c: KSEMAPHORE. */
#include "wait.h"

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit)
{
    KiInitializeHeader(&Semaphore->Header, SemaphoreObject, sizeof(KSEMAPHORE), Count);
    Semaphore->Limit = Limit;
}

/* FALSE: the count would pass the limit, or fall. */
FORCEINLINE BOOLEAN KiAdjustCount(PDISPATCHER_HEADER Header, ULONG64 *Word, LONG Adjustment)
{
    LONG Adjusted;
    if (Adjustment < 0 || __builtin_add_overflow(KI_STATE(*Word), Adjustment, &Adjusted) ||
        Adjusted > CONTAINING_RECORD(Header, KSEMAPHORE, Header)->Limit) {
        return FALSE;
    }
    *Word = KiWithState(*Word, Adjusted);
    return TRUE;
}

static BOOLEAN KiUpdateCount(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    return KiAdjustCount(Header, Word, *(PLONG)Context);
}

/* TRUE: nobody waits, and it is decided. A count that is refused gets a compare-exchange, too, which changes nothing. */
FORCEINLINE BOOLEAN KiTryRelease(PDISPATCHER_HEADER Header, LONG Adjustment, BOOLEAN *Accepted, PLONG Previous)
{
    ULONG64 Word = KiReadHeader(Header);
    while (!(Word & (KI_LOCKED | KI_WAITERS))) {
        ULONG64 New = Word;
        *Accepted = KiAdjustCount(Header, &New, Adjustment);
        *Previous = KI_STATE(Word);
        if (KiCompareExchangeHeader(Header, &Word, New)) {
            return TRUE;
        }
    }
    return FALSE;
}

NTSTATUS KiReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait,
                            PLONG PreviousCount)
{
    BOOLEAN Accepted;
    if (!KiTryRelease(&Semaphore->Header, Adjustment, &Accepted, PreviousCount)) {
        KI_SIGNAL Signal = {.Update = KiUpdateCount, .Context = &Adjustment, .Increment = Increment};
        Accepted = KiSignal(&Semaphore->Header, &Signal, PreviousCount);
    }
    if (!Accepted) {
        return STATUS_SEMAPHORE_LIMIT_EXCEEDED;
    }
    if (Wait) {
        KiSetWaitNext(KiCurrentThread());
    }
    return STATUS_SUCCESS;
}

LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait)
{
    LONG Previous;
    NTSTATUS Status = KiReleaseSemaphore(Semaphore, Increment, Adjustment, Wait, &Previous);
    if (!NT_SUCCESS(Status)) {
        KiRaiseStatus(Status);
    }
    return Previous;
}

LONG KeReadStateSemaphore(PRKSEMAPHORE Semaphore)
{
    return KI_STATE(KiReadSettledHeader(&Semaphore->Header));
}
