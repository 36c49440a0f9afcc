/* Histories of dispatcher objects, lists and locks against their sequential models; gates; many objects. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ex/exp.h"

static LARGE_INTEGER now, soon = {.QuadPart = -10000};

/* Events: set, reset, poll. */
enum { SET, RESET, WAIT };

static KEVENT event;

static void notification(void)
{
    KeInitializeEvent(&event, NotificationEvent, FALSE);
}

static void synchronization(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
}

static void recorded_setter(void)
{
    unsigned operation = LabBegin(SET, 0);
    LabEnd(operation, KeSetEvent(&event, IO_NO_INCREMENT, FALSE));
}

static void recorded_resetter(void)
{
    recorded_setter();
    unsigned operation = LabBegin(RESET, 0);
    LabEnd(operation, KeResetEvent(&event));
}

static void record_wait(PLARGE_INTEGER timeout)
{
    unsigned operation = LabBegin(WAIT, 0);
    LabEnd(operation, KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, timeout) == STATUS_SUCCESS);
}

static void recorded_waiter(void)
{
    record_wait(&soon);
    record_wait(&now);
}

static void recorded_poller(void)
{
    record_wait(&now);
    unsigned operation = LabBegin(RESET, 0);
    LabEnd(operation, KeResetEvent(&event));
}

static void is_a_notification_event(void)
{
    LabCheckLinearizable(&LabModelNotificationEvent);
}

static void is_a_synchronization_event(void)
{
    LabCheckLinearizable(&LabModelSynchronizationEvent);
}
LAB_SCENARIO(event_history_notification, .Setup = notification, .Threads = {recorded_resetter, recorded_poller},
             .Finish = is_a_notification_event);
LAB_SCENARIO(event_history_synchronization, .Setup = synchronization, .Threads = {recorded_resetter, recorded_waiter},
             .Finish = is_a_synchronization_event);
LAB_SCENARIO(event_history_three, .Setup = synchronization,
             .Threads = {recorded_resetter, recorded_waiter, recorded_setter}, .Finish = is_a_synchronization_event,
             .Flags = LAB_LARGE);

/* Mutants: recursion, abandonment by a thread that exits as the owner. */
enum { ACQUIRE, RELEASE, END };

static KMUTANT mutant;

static void setup_mutant(void)
{
    KeInitializeMutant(&mutant, FALSE);
}

static BOOLEAN record_acquire(PLARGE_INTEGER timeout)
{
    unsigned operation = LabBegin(ACQUIRE, 0);
    NTSTATUS status = KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_ABANDONED || status == STATUS_TIMEOUT);
    LabEnd(operation, status == STATUS_TIMEOUT ? 2 : status == STATUS_ABANDONED);
    return status != STATUS_TIMEOUT;
}

static void record_release(void)
{
    unsigned operation = LabBegin(RELEASE, 0);
    LabEnd(operation, KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE));
}

static void recorded_owner(void)
{
    if (record_acquire(NULL) && record_acquire(&now)) {
        record_release();
        record_release();
    }
}

static void recorded_trier(void)
{
    if (record_acquire(&soon))
        record_release();
}

static void recorded_ending_owner(void)
{
    record_acquire(&soon);
    LabBegin(END, 0);
    LabExitThread();
}

static void is_a_mutant(void)
{
    LabAssert(KeReadStateMutant(&mutant) == 1);
    LabCheckLinearizable(&LabModelMutant);
}
LAB_SCENARIO(mutant_history, .Setup = setup_mutant, .Threads = {recorded_owner, recorded_trier}, .Finish = is_a_mutant,
             .Flags = LAB_LARGE);
LAB_SCENARIO(mutant_history_abandoned, .Setup = setup_mutant, .Threads = {recorded_ending_owner, recorded_owner},
             .Finish = is_a_mutant, .Flags = LAB_LARGE);
LAB_SCENARIO(mutant_history_three, .Setup = setup_mutant,
             .Threads = {recorded_ending_owner, recorded_owner, recorded_trier}, .Finish = is_a_mutant,
             .Flags = LAB_LARGE);

/* Interlocked lists, with flush. */
enum { PUSH, POP, FLUSH, DEPTH };

static SLIST_HEADER list DECLSPEC_ALIGN(16);
static SLIST_ENTRY entries[4] DECLSPEC_ALIGN(16);

static intptr_t number_of(PSLIST_ENTRY entry)
{
    return entry != NULL ? entry - entries : 0;
}

static void record_push(int number)
{
    unsigned operation = LabBegin(PUSH, number);
    LabEnd(operation, number_of(InterlockedPushEntrySList(&list, &entries[number])));
}

static void recorded_pusher(void)
{
    record_push(1);
    record_push(2);
}

static void recorded_popper(void)
{
    unsigned operation = LabBegin(POP, 0);
    PSLIST_ENTRY entry = InterlockedPopEntrySList(&list);
    LabEnd(operation, number_of(entry));
    if (entry != NULL)
        record_push((int)number_of(entry));
    operation = LabBegin(DEPTH, 0);
    LabEnd(operation, QueryDepthSList(&list));
}

/* Pushes the first entry back: its former successor no longer follows it. */
static void recorded_flusher(void)
{
    intptr_t all = 0;
    unsigned operation = LabBegin(FLUSH, 0), shift = 0;
    for (PSLIST_ENTRY entry = InterlockedFlushSList(&list); entry != NULL; entry = entry->Next, shift += 4)
        all |= number_of(entry) << shift;
    LabEnd(operation, all);
    if (all != 0)
        record_push(all & 15);
}

static void is_a_list(void)
{
    LabCheckLinearizable(&LabModelList);
}
LAB_SCENARIO(slist_history_flush, .Threads = {recorded_pusher, recorded_flusher, recorded_popper}, .Finish = is_a_list);

/* Keyed events: two of each, two keys. Threads that pair do so at the same time. */
static EX_KEYED_EVENT keyed;
static int keys[2] DECLSPEC_ALIGN(2);

enum { WAIT_ARRIVES, WAIT_LEAVES, RELEASE_ARRIVES, RELEASE_LEAVES };

static void setup_keyed(void)
{
    ExpInitializeKeyedEvent(&keyed);
}

static void record_keyed(BOOLEAN release, int key, PLARGE_INTEGER timeout)
{
    unsigned arrival = LabBegin(release ? RELEASE_ARRIVES : WAIT_ARRIVES, key);
    unsigned departure = LabBegin(release ? RELEASE_LEAVES : WAIT_LEAVES, key);
    NTSTATUS status =
        (release ? ExpReleaseKeyedEvent : ExpWaitForKeyedEvent)(&keyed, &keys[key], KernelMode, FALSE, timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    LabEnd(arrival, status == STATUS_SUCCESS);
    LabEnd(departure, status == STATUS_SUCCESS);
}

static void wait_for_first_key(void)
{
    record_keyed(FALSE, 0, &soon);
}

static void wait_for_second_key(void)
{
    record_keyed(FALSE, 1, &soon);
}

static void release_first_key(void)
{
    record_keyed(TRUE, 0, &soon);
}

static void release_both_keys(void)
{
    record_keyed(TRUE, 0, &soon);
    record_keyed(TRUE, 1, &soon);
}

static void is_a_meeting(void)
{
    LabCheckLinearizable(&LabModelKeyedEvent);
}
LAB_SCENARIO(keyed_event_history, .Setup = setup_keyed, .Threads = {wait_for_first_key, release_both_keys},
             .Finish = is_a_meeting, .Flags = LAB_LARGE);
LAB_SCENARIO(keyed_event_history_three, .Setup = setup_keyed,
             .Threads = {wait_for_first_key, wait_for_second_key, release_both_keys}, .Finish = is_a_meeting,
             .Flags = LAB_LARGE);
LAB_SCENARIO(keyed_event_history_four, .Setup = setup_keyed,
             .Threads = {wait_for_first_key, wait_for_first_key, release_both_keys, release_first_key},
             .Finish = is_a_meeting, .Flags = LAB_LARGE);

/* Fast mutexes, with try. */
enum { LOCK, UNLOCK, TRY };

static FAST_MUTEX fast;

static void setup_fast(void)
{
    ExInitializeFastMutex(&fast);
}

static void record_unlock(void)
{
    unsigned operation = LabBegin(UNLOCK, 0);
    ExReleaseFastMutex(&fast);
    LabEnd(operation, 0);
}

static void recorded_locker(void)
{
    unsigned operation = LabBegin(LOCK, 0);
    ExAcquireFastMutex(&fast);
    LabEnd(operation, 1);
    record_unlock();
}

static void recorded_fast_trier(void)
{
    for (int i = 0; i < 2; i++) {
        unsigned operation = LabBegin(TRY, 0);
        BOOLEAN got = ExTryToAcquireFastMutex(&fast);
        LabEnd(operation, got);
        LabAssert(KeGetCurrentIrql() == (got ? APC_LEVEL : PASSIVE_LEVEL));
        if (got)
            record_unlock();
    }
}

static void is_a_mutex(void)
{
    LabAssert(fast.Count == 1);
    LabCheckLinearizable(&LabModelMutex);
}
LAB_SCENARIO(fast_mutex_history, .Setup = setup_fast, .Threads = {recorded_locker, recorded_fast_trier},
             .Finish = is_a_mutex);
LAB_SCENARIO(fast_mutex_history_three, .Setup = setup_fast,
             .Threads = {recorded_locker, recorded_locker, recorded_locker}, .Finish = is_a_mutex, .Flags = LAB_LARGE);

/* A gate admits one thread per signal. */
static KGATE gate;
static int passed;

static void setup_gate(void)
{
    KeInitializeGate(&gate);
}

static void gate_relay(void)
{
    KeWaitForGate(&gate, WrGuardedMutex, KernelMode);
    passed += 1; /* no race: one at a time */
    KeSignalGateBoostPriority(&gate);
}

static void gate_signaler(void)
{
    KeSignalGate(&gate);
}

static void both_passed(void)
{
    LabAssert(passed == 2 && gate.Header.SignalState == 1);
}
LAB_SCENARIO(gate_two, .Setup = setup_gate, .Threads = {gate_relay, gate_relay, gate_signaler}, .Finish = both_passed,
             .Flags = LAB_LARGE);

/* As many objects as a wait can have: the lowest signaled one is taken, and no other is touched. */
static KEVENT many[MAXIMUM_WAIT_OBJECTS];
static PVOID objects[MAXIMUM_WAIT_OBJECTS];
static int found;

static void setup_many(void)
{
    for (int i = 0; i < MAXIMUM_WAIT_OBJECTS; i++) {
        KeInitializeEvent(&many[i], SynchronizationEvent, FALSE);
        objects[i] = &many[i];
    }
}

static void wait_for_many(void)
{
    KWAIT_BLOCK blocks[MAXIMUM_WAIT_OBJECTS];
    NTSTATUS status =
        KeWaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS, objects, WaitAny, Executive, KernelMode, FALSE, NULL, blocks);
    LabAssert(status == STATUS_WAIT_0 + 5 || status == STATUS_WAIT_0 + 63);
    found = status;
}

static void set_last(void)
{
    KeSetEvent(&many[63], IO_NO_INCREMENT, FALSE);
}

static void set_last_and_sixth(void)
{
    set_last();
    KeSetEvent(&many[5], IO_NO_INCREMENT, FALSE);
}

static void other_is_left(void)
{
    for (int i = 0; i < MAXIMUM_WAIT_OBJECTS; i++)
        LabAssert(KeReadStateEvent(&many[i]) == ((i == 5 || i == 63) && i != found));
}
LAB_SCENARIO(wait_any_of_many, .Setup = setup_many, .Threads = {wait_for_many, set_last_and_sixth},
             .Finish = other_is_left);
