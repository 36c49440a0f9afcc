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
    *Word = KiWithState(*Word, Adjusted);
    return TRUE;
}

/* A refused release also needs its compare-exchange, so that the count it reports was current. */
NTSTATUS KiReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait,
                            PLONG PreviousCount)
{
    ULONG64 Word = KiReadHeader(&Semaphore->Header);
    BOOLEAN Accepted;
    ULONG64 New;
    do {
        if (Word & (KI_LOCKED | KI_WAITERS)) {
            PKI_OUTSIDE Outside = KiOutsideOf(&Semaphore->Header);
            if (Outside != NULL) {
                NTSTATUS Status = KiOutsideOperations->ReleaseSemaphore(Outside, Adjustment, PreviousCount);
                return KiSetWaitNextIf(Wait, Status);
            }
            KI_SIGNAL Signal = {.Update = KiUpdateCount, .Context = &Adjustment, .Increment = Increment};
            Accepted = KiSignal(&Semaphore->Header, &Signal, PreviousCount);
            break;
        }
        New = Word;
        Accepted = KiUpdateCount(&Semaphore->Header, &New, &Adjustment);
        *PreviousCount = KI_STATE(Word);
    } while (!KiCompareExchangeHeader(&Semaphore->Header, &Word, New));
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
