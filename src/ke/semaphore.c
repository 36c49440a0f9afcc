/* semaphore.c: KSEMAPHORE. */
#include "wait.h"

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit)
{
    KiInitializeHeader(&Semaphore->Header, SemaphoreObject, sizeof(KSEMAPHORE), Count);
    Semaphore->Limit = Limit;
}

/* FALSE: the count would pass the limit, or fall. */
static BOOLEAN KiAdjustCount(PDISPATCHER_HEADER Header, ULONG64 *Word, PVOID Context)
{
    LONG Count = KI_STATE(*Word);
    LONG Adjusted;
    if (__builtin_add_overflow(Count, *(PLONG)Context, &Adjusted) || Adjusted < Count ||
        Adjusted > CONTAINING_RECORD(Header, KSEMAPHORE, Header)->Limit) {
        return FALSE;
    }
    *Word = KiWithState(*Word, Adjusted);
    return TRUE;
}

NTSTATUS KiReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait,
                            PLONG PreviousCount)
{
    PDISPATCHER_HEADER Header = &Semaphore->Header;
    ULONG64 Word = KiReadHeader(Header);
    LONG Previous = 0;
    BOOLEAN Accepted = FALSE;
    BOOLEAN Done = FALSE;

    while (!Done && !(Word & (KI_LOCKED | KI_WAITERS))) {
        ULONG64 New = Word;
        Accepted = KiAdjustCount(Header, &New, &Adjustment);
        Done = KiCompareExchangeHeader(Header, &Word, New);
        Previous = KI_STATE(Word);
    }
    if (!Done) {
        KI_SIGNAL Signal = {.Update = KiAdjustCount, .Context = &Adjustment, .Increment = Increment};
        Accepted = KiSignal(Header, &Signal, &Previous);
    }
    if (!Accepted) {
        return STATUS_SEMAPHORE_LIMIT_EXCEEDED;
    }
    if (Wait) {
        KiSetWaitNext(KiCurrentThread());
    }
    *PreviousCount = Previous;
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
