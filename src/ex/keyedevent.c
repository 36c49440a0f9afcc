/*
 * keyedevent.c: keyed events: two threads rendezvous at a key, one that waits and one that releases.
 *
 * 1. A wait ends with success exactly when a release does: each is paired with one of the other side. The second thread
 *    finds the first in the waiter hash, removes it, wakes it, and does not block; the first one blocks, so a release
 *    without a waiter is not lost.
 * 2. The oldest of the other side is paired first.
 * 3. Only threads of the same process that name the same keyed event and the same key are paired.
 * 4. A timeout, an alert or a user APC that races with a pairing loses: a thread that was removed from the hash has
 *    been paired, waits for its wakeup, and returns success. An alert that ended its sleep is restored.
 * 5. Nothing is allocated, so neither side can fail for lack of memory.
 * 6. An odd key is refused before anything else is checked. Every even one is legal, also NULL.
 *
 * A count of releases in the object would keep a release from blocking, and fail 1: a thread that gave up in between
 * would leave a release for an unrelated waiter.
 */
#include "exp.h"

#include "../ke/wait.h"
#include "waiterhash.h"

enum { ExpKeyedWait, ExpKeyedRelease };

typedef struct _EXP_KEYED_WAITER {
    EXP_WAITER Waiter;
    KEVENT Paired;
} EXP_KEYED_WAITER, *PEXP_KEYED_WAITER;

EX_KEYED_EVENT ExpCritSecOutOfMemoryEvent = {
    .Signaled = {
        .Header = {
            .Type = EventNotificationObject,
            .Size = sizeof(KEVENT) / sizeof(LONG),
            .SignalState = 1,
            .WaitListHead = {&ExpCritSecOutOfMemoryEvent.Signaled.Header.WaitListHead,
                             &ExpCritSecOutOfMemoryEvent.Signaled.Header.WaitListHead},
        },
    },
};

VOID ExpInitializeKeyedEvent(PEX_KEYED_EVENT KeyedEvent)
{
    KeInitializeEvent(&KeyedEvent->Signaled, NotificationEvent, TRUE);
}

/* TRUE: a thread of the other side was waiting and has been woken. FALSE: Self is in the hash. */
static BOOLEAN ExpPairOrWait(PEXP_KEYED_WAITER Self, PKTHREAD Thread)
{
    EXP_WAIT_KEY Other = Self->Waiter.Key;
    Other.Kind = Self->Waiter.Key.Kind == ExpKeyedWait ? ExpKeyedRelease : ExpKeyedWait;
    PEXP_WAITER_BUCKET Bucket = ExpLockWaiters(&Other, Thread);
    PEXP_WAITER Found = ExpTakeFirstWaiter(Bucket, &Other);
    if (Found == NULL) {
        ExpInsertWaiter(Bucket, &Self->Waiter);
    }
    ExpUnlockWaiters(Bucket, Thread);
    if (Found != NULL) {
        KeSetEvent(&CONTAINING_RECORD(Found, EXP_KEYED_WAITER, Waiter)->Paired, EVENT_INCREMENT, FALSE);
    }
    return Found != NULL;
}

static NTSTATUS ExpAwaitPairing(PEXP_KEYED_WAITER Self, PKTHREAD Thread, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                PLARGE_INTEGER Timeout)
{
    NTSTATUS Status = KiWaitForSingleObject(&Self->Paired, WrKeyedEvent, WaitMode, Alertable, Timeout);
    if (Status == STATUS_SUCCESS || ExpTakeWaiter(&Self->Waiter, Thread)) {
        return Status;
    }
    KPROCESSOR_MODE Alerted = KiModeOfTakenAlert(Thread);
    KeWaitForSingleObject(&Self->Paired, WrKeyedEvent, KernelMode, FALSE, NULL);
    if (Status == STATUS_ALERTED) {
        KeAlertThread(Thread, Alerted);
    }
    return STATUS_SUCCESS;
}

static NTSTATUS ExpMeetAtKey(PEX_KEYED_EVENT KeyedEvent, PVOID Key, ULONG Kind, KPROCESSOR_MODE WaitMode,
                             BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    EXP_KEYED_WAITER Self;
    if ((ULONG_PTR)Key & 1) {
        return STATUS_INVALID_PARAMETER_1;
    }
    Self.Waiter.Key = (EXP_WAIT_KEY){
        .Key = Key,
        .Object = KeyedEvent != NULL ? KeyedEvent : &ExpCritSecOutOfMemoryEvent,
        .Process = Thread->Process,
        .Kind = Kind,
    };
    KeInitializeEvent(&Self.Paired, SynchronizationEvent, FALSE);
    if (ExpPairOrWait(&Self, Thread)) {
        return STATUS_SUCCESS;
    }
    return ExpAwaitPairing(&Self, Thread, WaitMode, Alertable, Timeout);
}

NTSTATUS ExpWaitForKeyedEvent(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout)
{
    return ExpMeetAtKey(KeyedEvent, Key, ExpKeyedWait, WaitMode, Alertable, Timeout);
}

NTSTATUS ExpReleaseKeyedEvent(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout)
{
    return ExpMeetAtKey(KeyedEvent, Key, ExpKeyedRelease, WaitMode, Alertable, Timeout);
}
