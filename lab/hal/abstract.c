/*
 * abstract.c: proven waits as single steps (--abstract).
 *
 * A pushlock, a resource or a barrier waits through the wait engine, whose tens of steps multiply the states of everything above
 * it. With --abstract a call into the engine on an event or a semaphore, or for an alert by thread id, is one step. It has the
 * effect for callers that the engine's own scenarios show. The object's state stays where it is, in the header's word or in the
 * thread's WaitRegister, and the step is a read-modify-write of that word.
 *
 *     signal            SignalState as documented; ends the waits of as many sleepers as it has signals for, the oldest first
 *     wait              consumes, or is queued behind the other sleepers; then the thread is blocked until a signal ends its wait
 *     return            a step that accesses nothing
 *     timeout           a choice, as everywhere, while no signal has ended the wait
 *
 * Why that loses nothing for the callers:
 * 1. The engine is linearizable: each call takes effect at one moment. Histories of events, semaphores and alerts are compared with
 *    these semantics (lab/models, `crowd_history_*`), and the grid's rows of them are explored without --abstract. docs/proof.md names,
 *    for each row that was explored in this way, the rows that it rests on and how far those were explored: no row of the engine
 *    itself may run with --abstract (scripts/prooftable.py).
 * 2. Order. The engine changes the word only by read-modify-writes, with acquire when it locks the header and release when it unlocks
 *    it, or both in one compare-exchange; and the thread that ends a wait publishes to the waiter (WakeWord). So the step acquires and
 *    releases the word, and a thread whose wait was ended reads that change with acquire: no edge that the engine does not make. An
 *    alert only releases, and a wait for one only acquires. Nothing is sequentially consistent.
 * 3. Under c11 a step reads the newest value of the word. So does the engine: a read-modify-write comes right after the one it
 *    reads.
 * 4. Inline paths of the library that test the word before they call the engine stay as they are. They consume or signal by a
 *    compare-exchange of the same word, and leave it to the engine where KI_WAITERS is set, as it is here while there are sleepers.
 *
 * What is not explored, and left to the rows of the engine:
 * 5. The inside of the calls, and their accesses to other memory: a signal that still uses a wait block, an object or a thread after
 *    the wait has ended.
 * 6. A waiter's KTHREAD looks like that of a running thread to others (State, the wait block list), and no priority is boosted.
 * 7. What interrupts a wait: alerts, APCs, suspension, the end of the thread. A program that does this, or that uses these objects in
 *    another way (waits for several, event pairs, notifications, pulses, a signal with Wait), gets the verdict `unsupported`.
 *
 * The calls are wrapped by the linker (--wrap), so src has no hooks. A call is only abstracted while a schedule runs.
 */
#include "labhal.h"

#include "ke/ki.h"
#include "ke/wait.h"

#include <stdio.h>

/* Restored before each schedule and part of the states, as all data of the program. Zero: the thread does not sleep here. */
typedef struct _LABHAL_SLEEPER {
    volatile VOID *Word;
    ULONG Ahead; /* a bit for each thread that was queued at the same word before, and still is */
} LABHAL_SLEEPER;

static LABHAL_SLEEPER LabhalSleepers[MAX_THREADS];

/* A change of a word: the request and its outcome. */
typedef struct _LABHAL_CHANGE {
    volatile VOID *Word;
    LONG Adjustment; /* of a semaphore */
    BOOLEAN Poll, TimedOut;
    LONG Previous; /* state */
    ULONG Ended;   /* the sleepers whose waits end */
    NTSTATUS Status;
} LABHAL_CHANGE;

static inline BOOLEAN LabhalIsAbstract(VOID)
{
    return lab != NULL && lab->options.abstract && lab_sched_active();
}

static VOID LabhalRefuse(PCSTR Call, uintptr_t Pc)
{
    lab_sched_fail(VERDICT_UNSUPPORTED, Pc, "%s: not with --abstract", Call);
}

/* Sleepers. */

static ULONG LabhalSleepersOf(const volatile VOID *Word)
{
    ULONG Found = 0;

    for (ULONG Number = 0; Number < lab->run.thread_count; Number += 1) {
        Found |= (ULONG)(LabhalSleepers[Number].Word == Word) << Number;
    }
    return Found;
}

static ULONG LabhalOldestOf(ULONG Sleepers)
{
    ULONG Number = 0;

    while (!(Sleepers >> Number & 1) || (LabhalSleepers[Number].Ahead & Sleepers) != 0) {
        Number += 1;
    }
    return Number;
}

static VOID LabhalRemoveSleeper(ULONG Number)
{
    LabhalSleepers[Number] = (LABHAL_SLEEPER){0};
    for (ULONG Other = 0; Other < lab->run.thread_count; Other += 1) {
        if (LabhalSleepers[Other].Word != NULL) {
            LabhalSleepers[Other].Ahead &= ~(1u << Number);
        }
    }
}

/* A sleeper can run when a signal has ended its wait: then it is no longer blocked. */
static bool LabhalIsAwake(const lab_thread *Thread)
{
    UNREFERENCED_PARAMETER(Thread);
    return true;
}

void LabhalDescribeWord(const lab_thread *Thread, const char *What, char *Buffer, size_t Size)
{
    char Symbol[64], Changes[64];

    lab_report_symbol(Thread->op.address, Symbol, sizeof(Symbol));
    lab_report_changes(Thread->op.address, Thread->number, Changes, sizeof(Changes));
    snprintf(Buffer, Size, "waits for %s %s%s", What, Symbol, Changes);
}

static void LabhalDescribeSleep(const lab_thread *Thread, char *Buffer, size_t Size)
{
    LabhalDescribeWord(Thread, "a signal of", Buffer, Size);
}

static const lab_gate LabhalGate = {LabhalIsAwake, LabhalDescribeSleep};

/* Steps. */

static lab_thread *LabhalAnnounce(const LABHAL_CHANGE *Change, size_t Size, BOOLEAN ReadsClock, uintptr_t Pc)
{
    lab_thread *Thread = lab->current;

    lab_step_announce(Thread, OP_CALL, (uintptr_t)Change->Word, Pc);
    lab_step_access(Thread, lab_cell_find((uintptr_t)Change->Word, Size), true);
    if (ReadsClock) {
        lab_step_access(Thread, lab_cell_pseudo(PSEUDO_CLOCK), false);
    }
    Thread->operand = 0;
    Thread->desired = 0;
    lab_sched_point(Thread);
    return Thread;
}

/* For the verdict: what was abstracted. */
static ULONG LabhalKindOf(const LABHAL_CHANGE *Change, size_t Size)
{
    if (Size != sizeof(ULONG64)) {
        return ABSTRACT_ALERTS;
    }
    return KI_TYPE(*(volatile ULONG64 *)Change->Word) == SemaphoreObject ? ABSTRACT_SEMAPHORES : ABSTRACT_EVENTS;
}

/* The announced step. The waits that it ends read the change. */
static VOID LabhalMake(lab_thread *Thread, LABHAL_CHANGE *Change, size_t Size, int Order,
                       u128 (*Function)(u128 Old, void *Change), PCSTR Call, uintptr_t Pc)
{
    uint32_t Cell = Thread->op.access[0].cell;

    lab->abstracted |= LabhalKindOf(Change, Size);
    lab_atomic_change(Thread, (uintptr_t)Change->Word, Size, Order, Function, Change, Pc);
    if (Change->TimedOut) {
        lab_report_event(OP_TIMEOUT, (uintptr_t)Change->Word, Size, 0, 0, 0, false, Pc);
    } else {
        lab_report_call(Call, (uintptr_t)Change->Word, 0, false, Pc);
    }
    for (ULONG Number = 0; Number < lab->run.thread_count; Number += 1) {
        lab_thread *Sleeper = &lab->run.threads[Number];

        if (!(Change->Ended >> Number & 1)) {
            continue;
        }
        if (Sleeper->deadline != 0) {
            lab_dpor_instead((uint8_t)Number);
        }
        LabhalRemoveSleeper(Number);
        lab_atomic_acquire(Sleeper, Cell);
        lab_block_wake(Sleeper);
    }
}

/* The last sleeper has left. */
static u128 LabhalLeave(u128 Old, void *Context)
{
    LABHAL_CHANGE *Change = Context;
    ULONG64 Word = (ULONG64)Old;

    return LabhalSleepersOf(Change->Word) == 0 ? Word & ~KI_WAITERS : Word;
}

static u128 LabhalKeep(u128 Old, void *Context)
{
    UNREFERENCED_PARAMETER(Context);
    return Old;
}

/* STATUS_SUCCESS: a signal has ended the wait. */
static NTSTATUS LabhalSleep(lab_thread *Thread, LABHAL_CHANGE *Change, size_t Size, int Order,
                            u128 (*Leave)(u128 Old, void *Change), uint64_t Deadline, PCSTR Call, uintptr_t Pc)
{
    LabhalSleepers[Thread->number] = (LABHAL_SLEEPER){Change->Word, LabhalSleepersOf(Change->Word)};
    Thread->expected = 0;
    Thread->gate = &LabhalGate;
    bool Woken = lab_block_sleep(Thread, (uintptr_t)Change->Word, Thread->op.access[0].cell, Deadline, Pc);
    Thread->gate = NULL;
    if (Woken) {
        return STATUS_SUCCESS;
    }
    LabhalRemoveSleeper(Thread->number);
    Change->TimedOut = TRUE;
    LabhalMake(Thread, Change, Size, Order, Leave, Call, Pc);
    return STATUS_TIMEOUT;
}

/* Interrupt time; 0: never. */
static uint64_t LabhalDeadlineOf(const LARGE_INTEGER *Timeout)
{
    if (Timeout == NULL) {
        return 0;
    }
    return Timeout->QuadPart < 0 ? LabhalDeadline(HalInterruptTime, lab->run.now + (0 - (ULONGLONG)Timeout->QuadPart))
                                 : LabhalDeadline(HalSystemTime, (ULONGLONG)Timeout->QuadPart);
}

/* Change->Status: STATUS_PENDING, and the thread sleeps; otherwise what the wait returns at once. */
static NTSTATUS LabhalWaitFor(LABHAL_CHANGE *Change, size_t Size, int Order, u128 (*Begin)(u128 Old, void *Change),
                              u128 (*Leave)(u128 Old, void *Change), const LARGE_INTEGER *Timeout, PCSTR Call, uintptr_t Pc)
{
    Change->Poll = Timeout != NULL && Timeout->QuadPart == 0;
    lab_thread *Thread = LabhalAnnounce(Change, Size, Timeout != NULL && !Change->Poll, Pc);
    uint64_t Deadline = Change->Poll ? 0 : LabhalDeadlineOf(Timeout);

    LabhalMake(Thread, Change, Size, Order, Begin, Call, Pc);
    NTSTATUS Status = Change->Status == STATUS_PENDING
                          ? LabhalSleep(Thread, Change, Size, Order, Leave, Deadline, Call, Pc)
                          : Change->Status;
    lab_cycle_sweep();
    return Status;
}

/* Events and semaphores. */

static ULONG64 LabhalReadWord(PVOID Object)
{
    return *KiHeaderWord(Object); /* its type and its lock, which do not change */
}

/* Not an object that processes share: its header is always locked. */
static BOOLEAN LabhalIsAbstracted(PVOID Object)
{
    const ULONG64 Types = (ULONG64)1 << EventNotificationObject | (ULONG64)1 << EventSynchronizationObject |
                          (ULONG64)1 << SemaphoreObject;
    ULONG64 Word = LabhalReadWord(Object);

    return KiIsOfTypes(Word, Types) && !(Word & KI_LOCKED);
}

static BOOLEAN LabhalIsWithinLimit(const LABHAL_CHANGE *Change)
{
    PRKSEMAPHORE Semaphore = CONTAINING_RECORD(Change->Word, KSEMAPHORE, Header);

    return Change->Adjustment >= 0 && Change->Adjustment <= Semaphore->Limit - Change->Previous;
}

static u128 LabhalSignal(u128 Old, void *Context)
{
    LABHAL_CHANGE *Change = Context;
    ULONG64 Word = (ULONG64)Old;
    ULONG Sleepers = LabhalSleepersOf(Change->Word);

    Change->Previous = KI_STATE(Word);
    if (KI_TYPE(Word) == SemaphoreObject && !LabhalIsWithinLimit(Change)) {
        Change->Status = STATUS_SEMAPHORE_LIMIT_EXCEEDED;
        return Old;
    }
    Word = KiWithState(Word, KI_TYPE(Word) == SemaphoreObject ? KI_STATE(Word) + Change->Adjustment : 1);
    while (KI_STATE(Word) > 0 && Sleepers != 0) {
        ULONG Oldest = LabhalOldestOf(Sleepers);

        Sleepers &= ~(1u << Oldest);
        Change->Ended |= 1u << Oldest;
        Word = KiConsumed(Word);
    }
    return Sleepers == 0 ? Word & ~KI_WAITERS : Word;
}

static u128 LabhalBeginWait(u128 Old, void *Context)
{
    LABHAL_CHANGE *Change = Context;
    ULONG64 Word = (ULONG64)Old;

    if (KI_STATE(Word) > 0) {
        Change->Status = STATUS_SUCCESS;
        return KiConsumed(Word);
    }
    Change->Status = Change->Poll ? STATUS_TIMEOUT : STATUS_PENDING;
    return Change->Poll ? Word : Word | KI_WAITERS;
}

/* Returns its previous state. */
static __attribute__((noinline)) LONG LabhalSignalObject(PVOID Object, LONG Adjustment, BOOLEAN Wait, NTSTATUS *Status, PCSTR Call,
                                                         uintptr_t Pc)
{
    LABHAL_CHANGE Change = {.Word = KiHeaderWord(Object), .Adjustment = Adjustment};

    if (Wait) {
        LabhalRefuse("a signal with Wait", Pc);
    }
    LabhalMake(LabhalAnnounce(&Change, sizeof(ULONG64), FALSE, Pc), &Change, sizeof(ULONG64), __ATOMIC_ACQ_REL, LabhalSignal,
               Call, Pc);
    *Status = Change.Status;
    lab_cycle_sweep();
    return Change.Previous;
}

static __attribute__((noinline)) NTSTATUS LabhalWaitForObject(PVOID Object, PLARGE_INTEGER Timeout, PCSTR Call, uintptr_t Pc)
{
    LABHAL_CHANGE Change = {.Word = KiHeaderWord(Object)};

    if (KeGetCurrentThread()->WaitNext != 0) {
        LabhalRefuse("a wait after a signal with Wait, or with the verifier", Pc);
    }
    return LabhalWaitFor(&Change, sizeof(ULONG64), __ATOMIC_ACQ_REL, LabhalBeginWait, LabhalLeave, Timeout, Call, Pc);
}

static __attribute__((noinline)) LONG LabhalSetEvent(PRKEVENT Event, BOOLEAN Wait, PCSTR Call, uintptr_t Pc)
{
    NTSTATUS Status;

    return LabhalSignalObject(Event, 0, Wait, &Status, Call, Pc);
}

static __attribute__((noinline)) NTSTATUS LabhalTryReleaseSemaphore(PRKSEMAPHORE Semaphore, LONG Adjustment, BOOLEAN Wait,
                                                                    PLONG Previous, uintptr_t Pc)
{
    NTSTATUS Status;

    *Previous = LabhalSignalObject(Semaphore, Adjustment, Wait, &Status, "KeReleaseSemaphore", Pc);
    return Status;
}

static __attribute__((noinline)) LONG LabhalReleaseSemaphore(PRKSEMAPHORE Semaphore, LONG Adjustment, BOOLEAN Wait, uintptr_t Pc)
{
    LONG Previous;
    NTSTATUS Status = LabhalTryReleaseSemaphore(Semaphore, Adjustment, Wait, &Previous, Pc);

    if (!NT_SUCCESS(Status)) {
        KiRaiseStatus(Status);
    }
    return Previous;
}

/* A wait at DISPATCH_LEVEL is a bugcheck, which the engine makes. */
static BOOLEAN LabhalMayWait(PVOID Object, PLARGE_INTEGER Timeout)
{
    return LabhalIsAbstract() && LabhalIsAbstracted(Object) &&
           (KeGetCurrentIrql() < DISPATCH_LEVEL || (Timeout != NULL && Timeout->QuadPart == 0));
}

/* Alerts by thread id. */

static u128 LabhalAlert(u128 Old, void *Context)
{
    LABHAL_CHANGE *Change = Context;

    Change->Ended = LabhalSleepersOf(Change->Word);
    return Change->Ended != 0 ? Old : Old | KI_WAIT_ALERT_BY_ID_PENDING;
}

static u128 LabhalTakeAlert(u128 Old, void *Context)
{
    LABHAL_CHANGE *Change = Context;

    if (Old & KI_WAIT_ALERT_BY_ID_PENDING) {
        Change->Status = STATUS_ALERTED;
        return Old & ~(u128)KI_WAIT_ALERT_BY_ID_PENDING;
    }
    Change->Status = Change->Poll ? STATUS_TIMEOUT : STATUS_PENDING;
    return Old;
}

static __attribute__((noinline)) VOID LabhalAlertById(PKTHREAD Thread, uintptr_t Pc)
{
    LABHAL_CHANGE Change = {.Word = &Thread->WaitRegister};

    LabhalMake(LabhalAnnounce(&Change, sizeof(Thread->WaitRegister), FALSE, Pc), &Change, sizeof(Thread->WaitRegister),
               __ATOMIC_RELEASE, LabhalAlert, "KeAlertThreadById", Pc);
    lab_cycle_sweep();
}

static __attribute__((noinline)) NTSTATUS LabhalWaitForAlert(PLARGE_INTEGER Timeout, PCSTR Call, uintptr_t Pc)
{
    PKTHREAD Thread = KeGetCurrentThread();
    LABHAL_CHANGE Change = {.Word = &Thread->WaitRegister};
    NTSTATUS Status = LabhalWaitFor(&Change, sizeof(Thread->WaitRegister), __ATOMIC_ACQUIRE, LabhalTakeAlert, LabhalKeep,
                                    Timeout, Call, Pc);

    return Status == STATUS_SUCCESS ? STATUS_ALERTED : Status;
}

/*
 * The wrappers. Without --abstract they only jump to the function, so they leave nothing on the stack.
 */
#define LABHAL_WRAPPED(Type, Name, ...) \
    Type __real_##Name(__VA_ARGS__);    \
    Type __wrap_##Name(__VA_ARGS__);    \
    Type __wrap_##Name(__VA_ARGS__)

LABHAL_WRAPPED(LONG, KeSetEvent, PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    if (!LabhalIsAbstract() || !LabhalIsAbstracted(Event)) {
        return __real_KeSetEvent(Event, Increment, Wait);
    }
    return LabhalSetEvent(Event, Wait, "KeSetEvent", LABHAL_CALLER);
}

LABHAL_WRAPPED(VOID, KeSetEventBoostPriority, PRKEVENT Event, PKTHREAD *Thread)
{
    if (!LabhalIsAbstract() || !LabhalIsAbstracted(Event)) {
        __real_KeSetEventBoostPriority(Event, Thread);
    } else if (Thread != NULL) {
        LabhalRefuse("KeSetEventBoostPriority that asks for the thread", LABHAL_CALLER);
    } else {
        LabhalSetEvent(Event, FALSE, "KeSetEventBoostPriority", LABHAL_CALLER);
    }
}

LABHAL_WRAPPED(LONG, KeReleaseSemaphore, PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait)
{
    if (!LabhalIsAbstract() || !LabhalIsAbstracted(Semaphore)) {
        return __real_KeReleaseSemaphore(Semaphore, Increment, Adjustment, Wait);
    }
    return LabhalReleaseSemaphore(Semaphore, Adjustment, Wait, LABHAL_CALLER);
}

LABHAL_WRAPPED(NTSTATUS, KiReleaseSemaphore, PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait,
               PLONG PreviousCount)
{
    if (!LabhalIsAbstract() || !LabhalIsAbstracted(Semaphore)) {
        return __real_KiReleaseSemaphore(Semaphore, Increment, Adjustment, Wait, PreviousCount);
    }
    return LabhalTryReleaseSemaphore(Semaphore, Adjustment, Wait, PreviousCount, LABHAL_CALLER);
}

LABHAL_WRAPPED(NTSTATUS, KeWaitForSingleObject, PVOID Object, KWAIT_REASON Reason, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
               PLARGE_INTEGER Timeout)
{
    if (!LabhalMayWait(Object, Timeout)) {
        return __real_KeWaitForSingleObject(Object, Reason, Mode, Alertable, Timeout);
    }
    return LabhalWaitForObject(Object, Timeout, "KeWaitForSingleObject", LABHAL_CALLER);
}

LABHAL_WRAPPED(NTSTATUS, KiWaitForSingleObjectSlow, PVOID Object, KWAIT_REASON Reason, KPROCESSOR_MODE Mode, BOOLEAN Alertable,
               PLARGE_INTEGER Timeout)
{
    if (!LabhalMayWait(Object, Timeout)) {
        return __real_KiWaitForSingleObjectSlow(Object, Reason, Mode, Alertable, Timeout);
    }
    return LabhalWaitForObject(Object, Timeout, "KiWaitForSingleObject", LABHAL_CALLER);
}

LABHAL_WRAPPED(NTSTATUS, KiSleepUntilSignaled, PVOID Object, KWAIT_REASON Reason, PLARGE_INTEGER Timeout)
{
    if (!LabhalMayWait(Object, Timeout)) {
        return __real_KiSleepUntilSignaled(Object, Reason, Timeout);
    }
    return LabhalWaitForObject(Object, Timeout, "KiSleepUntilSignaled", LABHAL_CALLER);
}

LABHAL_WRAPPED(VOID, KeAlertThreadById, PKTHREAD Thread)
{
    if (!LabhalIsAbstract()) {
        __real_KeAlertThreadById(Thread);
    } else {
        LabhalAlertById(Thread, LABHAL_CALLER);
    }
}

LABHAL_WRAPPED(NTSTATUS, KiWaitForAlertById, PVOID Hint, PLARGE_INTEGER Timeout, BOOLEAN Spins)
{
    if (!LabhalIsAbstract()) {
        return __real_KiWaitForAlertById(Hint, Timeout, Spins);
    }
    return LabhalWaitForAlert(Timeout, "KiWaitForAlertById", LABHAL_CALLER);
}

LABHAL_WRAPPED(NTSTATUS, KeWaitForAlertByThreadId, PVOID Hint, PLARGE_INTEGER Timeout)
{
    if (!LabhalIsAbstract()) {
        return __real_KeWaitForAlertByThreadId(Hint, Timeout);
    }
    return LabhalWaitForAlert(Timeout, "KeWaitForAlertByThreadId", LABHAL_CALLER);
}

/* Calls that are not abstracted must not use objects that are. */

VOID LabhalCheckSleep(uintptr_t Pc)
{
    PKTHREAD Thread = LabhalIsAbstract() ? KeGetCurrentThread() : NULL;

    if (Thread == NULL || Thread->State != Waiting) {
        return;
    }
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        if (LabhalIsAbstracted(Thread->WaitBlockList[Index].Object)) {
            LabhalRefuse("a wait of the engine for an object whose signals are single steps", Pc);
        }
    }
}

static VOID LabhalRefuseObjects(ULONG Count, PVOID Object[], PCSTR Call, uintptr_t Pc)
{
    for (ULONG Index = 0; LabhalIsAbstract() && Index < Count; Index += 1) {
        if (LabhalIsAbstracted(Object[Index])) {
            LabhalRefuse(Call, Pc);
        }
    }
}

#define LABHAL_REFUSED(Type, Name, Parameters, Arguments)   \
    Type __real_##Name Parameters;                          \
    Type __wrap_##Name Parameters;                          \
    Type __wrap_##Name Parameters                           \
    {                                                       \
        if (LabhalIsAbstract()) {                           \
            LabhalRefuse(#Name, LABHAL_CALLER);             \
        }                                                   \
        return __real_##Name Arguments;                     \
    }

LABHAL_REFUSED(LONG, KePulseEvent, (PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait), (Event, Increment, Wait))
LABHAL_REFUSED(LONG, KeSetHighEventPair, (PKEVENT_PAIR EventPair, KPRIORITY Increment, BOOLEAN Wait),
               (EventPair, Increment, Wait))
LABHAL_REFUSED(LONG, KeSetLowEventPair, (PKEVENT_PAIR EventPair, KPRIORITY Increment, BOOLEAN Wait),
               (EventPair, Increment, Wait))
LABHAL_REFUSED(NTSTATUS, KeSetHighWaitLowThread, (PKEVENT_PAIR EventPair, KPROCESSOR_MODE Mode), (EventPair, Mode))
LABHAL_REFUSED(NTSTATUS, KeSetLowWaitHighThread, (PKEVENT_PAIR EventPair, KPROCESSOR_MODE Mode), (EventPair, Mode))
/* Alerts, APCs, and the end of a thread; suspension. */
LABHAL_REFUSED(ULONG, KiInterruptWait, (PKTHREAD Thread, ULONG Pending, KPRIORITY Increment), (Thread, Pending, Increment))
LABHAL_WRAPPED(BOOLEAN, KiBeginSuspend, PKTHREAD Thread)
{
    if (LabhalIsAbstract()) {
        LabhalRefuse("KiBeginSuspend", LABHAL_CALLER);
    }
    if (!__real_KiBeginSuspend(Thread)) {
        return FALSE;
    }
    if (LabhalIsOverLocks()) {
        LabhalSleepForReal(Thread, LABHAL_CALLER);
    }
    return TRUE;
}

#define LABHAL_SEVERAL                                                                                      \
    ULONG Count, PVOID Object[], WAIT_TYPE WaitType, KWAIT_REASON Reason, KPROCESSOR_MODE Mode, BOOLEAN Alertable, \
        PLARGE_INTEGER Timeout, PKWAIT_BLOCK Blocks

LABHAL_WRAPPED(NTSTATUS, KeWaitForMultipleObjects, LABHAL_SEVERAL)
{
    LabhalRefuseObjects(Count, Object, "KeWaitForMultipleObjects", LABHAL_CALLER);
    return __real_KeWaitForMultipleObjects(Count, Object, WaitType, Reason, Mode, Alertable, Timeout, Blocks);
}

LABHAL_WRAPPED(NTSTATUS, KiWaitForMultipleObjects, LABHAL_SEVERAL)
{
    LabhalRefuseObjects(Count, Object, "KiWaitForMultipleObjects", LABHAL_CALLER);
    return __real_KiWaitForMultipleObjects(Count, Object, WaitType, Reason, Mode, Alertable, Timeout, Blocks);
}

LABHAL_WRAPPED(NTSTATUS, KiWaitForManyObjects, LABHAL_SEVERAL, PULONG Index)
{
    LabhalRefuseObjects(Count, Object, "KiWaitForManyObjects", LABHAL_CALLER);
    return __real_KiWaitForManyObjects(Count, Object, WaitType, Reason, Mode, Alertable, Timeout, Blocks, Index);
}

LABHAL_WRAPPED(NTSTATUS, KeWaitForManyObjects, LABHAL_SEVERAL, PULONG Index)
{
    LabhalRefuseObjects(Count, Object, "KeWaitForManyObjects", LABHAL_CALLER);
    return __real_KeWaitForManyObjects(Count, Object, WaitType, Reason, Mode, Alertable, Timeout, Blocks, Index);
}

LABHAL_WRAPPED(NTSTATUS, KeRegisterObjectNotification, PVOID Object, PKQUEUE Queue, PKOBJECT_NOTIFICATION Notification)
{
    LabhalRefuseObjects(1, &Object, "KeRegisterObjectNotification", LABHAL_CALLER);
    return __real_KeRegisterObjectNotification(Object, Queue, Notification);
}
