/*
 * Repair after an owner of the lock that was killed, and a repairer that is killed as well. Waits are begun before the threads
 * run, so that the schedules are those of the repair.
 */
#include "world.h"

static const HAL_DEADLINE never = {HalNoDeadline, 0};
static WO_INDEX object, other;
static int killed;

/* The next owner of the lock repairs. */
static void lock_after(ULONG process)
{
    killed |= LabAwaitProcess(process);
    LabAssert(WopLock(&view[0]));
    LabAssert(view[0].World->Phase == WoPhaseIdle && view[0].World->Intention == WoNoIntention);
    WopUnlock(&view[0]);
}

static void begin_wait(ULONG number, WO_INDEX index)
{
    LabAssert(WoBeginWait(&view[number], waiter[number], &index, 1, WoWaitAny) == STATUS_PENDING);
}

static int is_granted(ULONG number)
{
    NTSTATUS status;
    return WoIsGranted(&view[number], waiter[number], &status);
}

/* Continues a wait that was begun: sleeps until it is granted, and expires timers. */
static NTSTATUS await_grant(ULONG number)
{
    PWO_VIEW own = &view[number];
    volatile ULONG *word = WoWakeWord(own, waiter[number]);
    for (;;) {
        HAL_DEADLINE due = never;
        NTSTATUS status;
        ULONG seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (WoIsGranted(own, waiter[number], &status))
            return status == STATUS_FILE_CORRUPT_ERROR ? status : WoEndWait(own, waiter[number]);
        WoNextDue(own, waiter[number], &due);
        if (__atomic_compare_exchange_n(word, &seen, seen | WO_ASLEEP, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
            !HalWaitShared(word, seen | WO_ASLEEP, &due))
            WoExpireTimers(own, waiter[number]);
    }
}

/* One transaction after another: what is committed stays, what is canceled does not come back. */
static struct amounts {
    WO_RECORD Record;
    ULONG64 amount;
} *amounts;
static int committed, counted;

static void setup_amounts(void)
{
    make_views();
    LabAssert(WopLock(&view[0]));
    WopBegin(&view[0]);
    object = WopAllocate(&view[0], WoTicketRecord, sizeof(*amounts));
    WopCommit(&view[0]);
    WopUnlock(&view[0]);
    amounts = WopRecord(&view[0], object, WoTicketRecord);
}

static void change_amounts(void)
{
    PWO_VIEW own = become(1);
    LabAssert(WopLock(own));
    WopBegin(own);
    WopEdit(own, &amounts->amount, 1);
    WopEdit(own, &amounts->amount, 2);
    WopCancel(own);
    LabAssert(amounts->amount == 0);
    WopUnlock(own);
    LabAssert(WopLock(own));
    own->World->Permanents += 1; /* without a transaction: nothing of an older one may be undone */
    counted = 1;
    WopBegin(own);
    WopEdit(own, &amounts->amount, 3);
    WopCommit(own);
    committed = 1;
    own->World->Permanents += 1;
    counted = 2;
    WopUnlock(own);
    LabLeaveProcess();
}

static void repair_once(void)
{
    lock_after(1);
}

static void committed_and_no_more(void)
{
    LabAssert(amounts->amount == 3 || (!committed && amounts->amount == 0));
    LabAssert(view[0].World->Permanents >= (ULONG)counted);
}
LAB_SCENARIO(world_transactions_killed, .Setup = setup_amounts, .Threads = {change_amounts, repair_once},
             .Finish = committed_and_no_more, .Kills = 1);

/* Chains of transactions (each grants one wait here): an operation happens whole or not at all. */

static void setup_semaphore(void)
{
    make_waiters();
    object = make_object(WoSemaphore, 0, 5);
    begin_wait(0, object);
    begin_wait(3, object);
}

static void release_two(void)
{
    LONG previous;
    LabAssert(WoReleaseSemaphore(become(1), object, 2, &previous) == STATUS_SUCCESS);
    LabLeaveProcess();
}

static void both_or_none(void)
{
    LabAssert(is_granted(0) == is_granted(3));
    LabAssert(is_granted(0) || killed);
    LabAssert(state_of(object) == 0);
}
LAB_SCENARIO(world_release_of_two_killed, .Setup = setup_semaphore, .Threads = {release_two, repair_once},
             .Finish = both_or_none, .Kills = 1);

/* The repairer is killed, too. */
static void repair_and_die(void)
{
    PWO_VIEW own = become(2);
    killed |= LabAwaitProcess(1);
    LabAssert(WopLock(own));
    WopUnlock(own);
    LabLeaveProcess();
}

static void repair_again(void)
{
    lock_after(2);
}
LAB_SCENARIO(world_repairer_killed, .Setup = setup_semaphore, .Threads = {release_two, repair_and_die, repair_again},
             .Finish = both_or_none, .Kills = 2);

/* The wakes belong to it. */
static void sleep_for_one(void)
{
    LabAssert(await_grant(0) == STATUS_WAIT_0);
}

static void repair_and_release(void)
{
    LONG previous;
    lock_after(1);
    if (killed && !is_granted(3))
        LabAssert(WoReleaseSemaphore(&view[0], object, 2, &previous) == STATUS_SUCCESS);
}

static void all_were_served(void)
{
    LabAssert(is_granted(3) && state_of(object) == 0);
}
LAB_SCENARIO(world_wakes_killed, .Setup = setup_semaphore, .Threads = {release_two, sleep_for_one, repair_and_release},
             .Finish = all_were_served, .Kills = 1);

static void setup_notification_event(void)
{
    make_waiters();
    object = make_object(WoNotificationEvent, 0, 0);
    begin_wait(0, object);
    begin_wait(3, object);
}

static void pulse(void)
{
    LONG previous;
    LabAssert(WoPulseEvent(become(1), object, &previous) == STATUS_SUCCESS);
    LabLeaveProcess();
}
LAB_SCENARIO(world_pulse_killed, .Setup = setup_notification_event, .Threads = {pulse, repair_once}, .Finish = both_or_none,
             .Kills = 1);

/* Setting a timer wakes its waiters, which sleep until the old due time. */
static void setup_timer(void)
{
    make_waiters();
    object = make_object(WoNotificationTimer, 0, 0);
    begin_wait(0, object);
}

static void set_timer(PWO_VIEW own)
{
    WO_TIMER_SETTING soon = {.DueTime = HalDispatch.QueryInterruptTime() + 10};
    ULONG64 arming;
    BOOLEAN previous;
    LabAssert(WoSetTimer(own, object, &soon, &arming, &previous) == STATUS_SUCCESS);
}

static void set_timer_and_die(void)
{
    set_timer(become(1));
    LabLeaveProcess();
}

static void repair_and_set(void)
{
    lock_after(1);
    if (killed && WoIsArmed(&view[0], object, 0))
        set_timer(&view[0]);
}

static void timer_is_signaled(void)
{
    LabAssert(state_of(object) == 1);
}
LAB_SCENARIO(world_timer_setter_killed, .Setup = setup_timer, .Threads = {set_timer_and_die, sleep_for_one, repair_and_set},
             .Finish = timer_is_signaled, .Kills = 1);

/* A wait that is being granted cannot be ended by its own process. If the granter dies, the thread begins again: what its
   process had to say must not be lost. */
static int refused;

static void setup_event(void)
{
    make_waiters();
    object = make_object(WoSynchronizationEvent, 0, 0);
    begin_wait(0, object);
}

static void set_and_die(void)
{
    LONG previous;
    LabAssert(WoSetEvent(become(1), object, &previous) == STATUS_SUCCESS);
    LabLeaveProcess();
}

static void end_locally(void)
{
    if (WoClaimLocally(&view[0], waiter[0]))
        WopWake(&view[0], WopAt(&view[0], waiter[0]), TRUE);
    else
        refused = 1;
    lock_after(1);
}

/* Until the wait is granted or has to be begun again. */
static void wait_or_retry(void)
{
    volatile ULONG *word = WoWakeWord(&view[0], waiter[0]);
    NTSTATUS status;
    for (;;) {
        ULONG seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        status = WoCheckWait(&view[0], waiter[0]);
        if (status != STATUS_PENDING)
            break;
        if (__atomic_compare_exchange_n(word, &seen, seen | WO_ASLEEP, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            HalWaitShared(word, seen | WO_ASLEEP, &never);
    }
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_RETRY);
    LabAssert(WoEndWait(&view[0], waiter[0]) == (status == STATUS_WAIT_0 ? STATUS_WAIT_0 : STATUS_PENDING));
}

/* A wait that its own process has ended, now or before, is passed over. */
static int claimed;

static void setup_two_for_event(void)
{
    setup_event();
    begin_wait(3, object);
}

static void setup_ended_and_waiting(void)
{
    setup_two_for_event();
    LabAssert(WoClaimLocally(&view[0], waiter[0]));
    claimed = 1;
}

static void claim_locally(void)
{
    claimed = WoClaimLocally(&view[0], waiter[0]);
}

static void set_alone(void)
{
    LONG previous;
    LabAssert(WoSetEvent(&view[1], object, &previous) == STATUS_SUCCESS);
}

static void one_has_it(void)
{
    LabAssert(is_granted(0) == !claimed && is_granted(3) == claimed);
    LabAssert(WoEndWait(&view[0], waiter[0]) == (claimed ? STATUS_PENDING : STATUS_WAIT_0));
    LabAssert(state_of(object) == 0);
}
LAB_SCENARIO(world_ended_wait_is_passed_over, .Setup = setup_ended_and_waiting, .Threads = {set_alone}, .Finish = one_has_it);
LAB_SCENARIO(world_claim_against_claim, .Setup = setup_two_for_event, .Threads = {set_alone, claim_locally},
             .Finish = one_has_it);

static void signal_is_not_lost(void)
{
    LabAssert(state_of(object) == 0 || state_of(object) == 1);
    LabAssert(((PWO_OBJECT)WopAt(&view[0], object))->WaitersWord == 0);
}
LAB_SCENARIO(world_granter_killed, .Setup = setup_event, .Threads = {set_and_die, end_locally, wait_or_retry},
             .Finish = signal_is_not_lost, .Kills = 1);

/* Cleaning up after a dead process, by one that is killed. */

/* Process 1 is dead: it owned a mutant, and waited for an event, between two others that wait for both. */
static void begin_wait_for_both(ULONG number)
{
    WO_INDEX both[] = {object, other};
    LabAssert(WoBeginWait(&view[number], waiter[number], both, 2, WoWaitAny) == STATUS_PENDING);
}

static void setup_mutant(void)
{
    make_waiters();
    object = make_object(WoMutant, 1, 0);
    other = make_object(WoNotificationEvent, 0, 0);
    LabAssert(WoTryWait(&view[1], waiter[1], &object, 1, WaitAny) == STATUS_SUCCESS);
    begin_wait_for_both(0);
    begin_wait(1, other);
    begin_wait_for_both(3);
}

static void end_waiter_and_die(void)
{
    PWO_VIEW own = become(2);
    LabAssert(WopLock(own));
    WopEndWaiter(own, waiter[1]);
    WopUnlock(own);
    LabLeaveProcess();
}

static void end_waiter_again(void)
{
    lock_after(2);
    LabAssert(WopLock(&view[0]));
    WopEndWaiter(&view[0], waiter[1]);
    WopUnlock(&view[0]);
}

static void first_heir_was_told(void)
{
    NTSTATUS status;
    WO_STATE state;
    LabAssert(WoIsGranted(&view[0], waiter[0], &status) && status == STATUS_ABANDONED_WAIT_0);
    LabAssert(!is_granted(3));
    LabAssert(WoQueryState(&view[0], object, &state) == STATUS_SUCCESS && state.Owner == waiter[0] && !state.Abandoned);
    PWO_OBJECT event = WopAt(&view[0], other);
    PWO_BLOCK last = &((PWO_WAITER)WopAt(&view[0], waiter[3]))->Block[1];
    LabAssert(event->Waiters.First == waiter[3] * WO_BLOCKS + 1 && event->Waiters.Last == event->Waiters.First);
    LabAssert(last->Next == 0 && last->Previous == 0 && last->Linked);
}
LAB_SCENARIO(world_cleaner_of_mutants_killed, .Setup = setup_mutant, .Threads = {end_waiter_and_die, end_waiter_again},
             .Finish = first_heir_was_told, .Kills = 1);

/* A wait is unlinked from between two others, one of which ends before the next cleaner comes. */
static void setup_row(void)
{
    make_waiters();
    other = make_object(WoNotificationEvent, 0, 0);
    begin_wait(0, other);
    begin_wait(1, other);
    begin_wait(3, other);
}

static void end_neighbour_first(void)
{
    lock_after(2);
    LabAssert(WoEndWait(&view[0], waiter[0]) == STATUS_PENDING);
    LabAssert(WopLock(&view[0]));
    WopEndWaiter(&view[0], waiter[1]);
    WopUnlock(&view[0]);
}

static void third_still_waits(void)
{
    PWO_OBJECT event = WopAt(&view[0], other);
    PWO_BLOCK last = ((PWO_WAITER)WopAt(&view[0], waiter[3]))->Block;
    LabAssert(!WoIsPoisoned(&view[0]));
    LabAssert(event->Waiters.First == waiter[3] * WO_BLOCKS && event->Waiters.Last == event->Waiters.First);
    LabAssert(last->Next == 0 && last->Previous == 0 && last->Linked);
}
LAB_SCENARIO(world_unlinker_killed, .Setup = setup_row, .Threads = {end_waiter_and_die, end_neighbour_first},
             .Finish = third_still_waits, .Kills = 1);

/* Process 1 is dead and owned three mutants. The heir of the first takes it into its own list while others clean up. */
static WO_INDEX mutants[3], own_mutant;

static void setup_three(void)
{
    make_waiters();
    own_mutant = make_object(WoMutant, 1, 0);
    LabAssert(WoTryWait(&view[0], waiter[0], &own_mutant, 1, WaitAny) == STATUS_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        mutants[i] = make_object(WoMutant, 1, 0);
        LabAssert(WoTryWait(&view[1], waiter[1], &mutants[i], 1, WaitAny) == STATUS_SUCCESS);
    }
    WoDereferenceObject(&view[0], mutants[1]); /* nobody but its owner knows it */
    begin_wait(0, mutants[2]);
}

static void inherit(void)
{
    LabAssert(await_grant(0) == STATUS_ABANDONED_WAIT_0);
}

static void all_are_abandoned(void)
{
    WO_STATE state;
    LabAssert(!WoIsPoisoned(&view[0]));
    LabAssert(WoQueryState(&view[0], mutants[0], &state) == STATUS_SUCCESS && state.Owner == 0 && state.Abandoned);
    LabAssert(WoQueryState(&view[0], mutants[2], &state) == STATUS_SUCCESS && state.Owner == waiter[0]);
    LabAssert(WoQueryState(&view[0], own_mutant, &state) == STATUS_SUCCESS && state.Owner == waiter[0]);
    LabAssert(!WopIsRecord(&view[0], mutants[1], WoObjectRecord) && view[0].World->Objects == 3);
}
LAB_SCENARIO(world_cleaner_of_three_killed, .Setup = setup_three, .Threads = {end_waiter_and_die, end_waiter_again, inherit},
             .Finish = all_are_abandoned, .Kills = 1);

/* A process that was given the mutant, and was killed before it had noticed. Its record may outlive the objects of its wait. */
static void setup_granted(void)
{
    LONG previous;
    make_waiters();
    object = make_object(WoMutant, 1, 0);
    other = make_object(WoNotificationEvent, 0, 0);
    LabAssert(WoTryWait(&view[2], waiter[2], &object, 1, WaitAny) == STATUS_SUCCESS);
    begin_wait_for_both(1);
    begin_wait(0, object);
    LabAssert(WoReleaseMutant(&view[2], object, waiter[2], FALSE, &previous) == STATUS_SUCCESS);
    LabAssert(is_granted(1) && !is_granted(0));
}

static void end_granted(void)
{
    LabAssert(WopLock(&view[0]));
    WopEndWaiter(&view[0], waiter[1]);
    WopUnlock(&view[0]);
    WoDereferenceObject(&view[0], other);
    LabAssert(WopLock(&view[0]));
    WopEndWaiter(&view[0], waiter[1]);
    WopUnlock(&view[0]);
}

static void heir_was_told(void)
{
    NTSTATUS status;
    LabAssert(!WoIsPoisoned(&view[0]));
    LabAssert(WoIsGranted(&view[0], waiter[0], &status) && status == STATUS_ABANDONED_WAIT_0);
}
LAB_SCENARIO(world_granted_owner_killed, .Setup = setup_granted, .Threads = {end_granted}, .Finish = heir_was_told);

/* All that a process can have: it makes that itself, or leaves it to the cleaner. */
static ULONG64 used;
static ULONG records[4];

static void count_records(ULONG64 *bytes, ULONG counts[4])
{
    const WO_WORLD *world = view[0].World;
    *bytes = world->Used;
    counts[0] = world->Processes, counts[1] = world->Waiters, counts[2] = world->Objects, counts[3] = world->Names;
}

static void enter(ULONG process)
{
    LabAssert(WopLock(&view[process]));
    LabAssert(WopEnterRing(&view[process]) == STATUS_SUCCESS);
    WopUnlock(&view[process]);
}

static NTSTATUS create_name(PWO_VIEW own, WO_INDEX directory, WCHAR letter, const WO_NEW *new, WO_INDEX *index)
{
    UNICODE_STRING name = {sizeof(letter), sizeof(letter), &letter};
    return WoCreateName(own, &(WO_LOOKUP){directory, &name, TRUE}, new, 1, index);
}

static void live(ULONG process)
{
    PWO_VIEW own = &view[process];
    WO_INDEX self, directory, mutant, event, semaphore, unnamed;
    CHAR ticket[WO_TICKET_LENGTH];
    LONG previous;
    enter(process);
    LabAssert(WoCreateWaiter(own, 77, &self) == STATUS_SUCCESS);
    LabAssert(create_name(own, 0, 'd', &(WO_NEW){.Type = WoDirectory}, &directory) == STATUS_SUCCESS);
    LabAssert(create_name(own, directory, 'm', &(WO_NEW){.Type = WoMutant, .Owner = self}, &mutant) == STATUS_SUCCESS);
    LabAssert(create_name(own, 0, 'e', &(WO_NEW){.Type = WoSynchronizationEvent}, &event) == STATUS_SUCCESS);
    LabAssert(create_name(own, 0, 'E', &(WO_NEW){.Type = WoSynchronizationEvent}, &event) == STATUS_OBJECT_NAME_EXISTS);
    LabAssert(WoSetEvent(own, event, &previous) == STATUS_SUCCESS);
    LabAssert(WoTryWait(own, self, &event, 1, WaitAny) == STATUS_WAIT_0);
    LabAssert(WoChangeHandles(own, event, -1) == STATUS_SUCCESS);
    LabAssert(WoCreateObject(own, &(WO_NEW){.Type = WoSemaphore, .Limit = 1}, &semaphore) == STATUS_SUCCESS);
    LabAssert(WoCreateObject(own, &(WO_NEW){.Type = WoMutant, .Owner = self}, &unnamed) == STATUS_SUCCESS);
    WoDereferenceObject(own, unnamed); /* its owner keeps it */
    WO_INHERITED handles[] = {{4, event, 1, 0}, {8, semaphore, 1, 0}};
    LabAssert(WoPrepareChild(own, handles, 2, ticket) == STATUS_SUCCESS);
    LabAssert(WoBeginWait(own, self, &semaphore, 1, WoWaitAny) == STATUS_PENDING);
}

static void setup_world(void)
{
    make_views();
    enter(0);
    enter(2);
    count_records(&used, records);
}

/* Process 1 is dead, with all that it had. */
static ULONG guard_word[PROCESSES];

static ULONG read_guard_word(ULONG process)
{
    return ((PWO_PROCESS)WopAt(&view[0], view[process].Self))->GuardWord;
}

static void setup_dead(void)
{
    setup_world();
    live(1);
    guard_word[0] = read_guard_word(0);
    guard_word[2] = read_guard_word(2);
}

static void clean_by(PWO_VIEW own)
{
    WO_INDEX dead = view[1].Self;
    if (dead != 0)
        WopCleanProcess(own, dead, view[1].Key);
}

static void clean_and_die(void)
{
    clean_by(become(2));
    LabLeaveProcess();
}

static void clean_the_rest(void)
{
    lock_after(2);
    clean_by(&view[0]);
}

static void nothing_is_left(void)
{
    ULONG64 bytes;
    ULONG counts[4];
    count_records(&bytes, counts);
    LabAssert(!WoIsPoisoned(&view[0]));
    LabAssert(bytes == used);
    for (unsigned i = 0; i < 4; i++)
        LabAssert(counts[i] == records[i]);
    /* two processes, in a ring */
    PWO_PROCESS self = WopAt(&view[0], view[0].Self), next = WopAt(&view[0], self->Next);
    LabAssert(WopIsRecord(&view[0], view[0].World->AnyProcess, WoProcessRecord));
    LabAssert(next != self && next->Next == view[0].Self && self->Previous == self->Next && next->Previous == view[0].Self);
}

/* Each has other wards now, and is woken to look. */
static void guards_were_woken(void)
{
    nothing_is_left();
    LabAssert(read_guard_word(0) != guard_word[0] && read_guard_word(2) != guard_word[2]);
}
LAB_SCENARIO(world_cleaner_killed, .Setup = setup_dead, .Threads = {clean_and_die, clean_the_rest}, .Finish = guards_were_woken,
             .Kills = 1);

/* Killed while it makes all that. Its record is in the ring, or nothing of it is. */
static void live_and_die(void)
{
    become(1);
    live(1);
    LabLeaveProcess();
}

static void find_and_clean(void)
{
    WO_LISTED others[WO_WARDS];
    lock_after(1);
    ULONG count = WopListWards(&view[0], others);
    for (ULONG number = 0; number < count; number++)
        if (others[number].Key == view[1].Key)
            WopCleanProcess(&view[0], others[number].Index, others[number].Key);
}
LAB_SCENARIO(world_life_killed, .Setup = setup_world, .Threads = {live_and_die, find_and_clean}, .Finish = nothing_is_left,
             .Kills = 1);

/* A fork: the parent prepares, the child makes what was prepared its own. Either is killed. */
static WO_INDEX prepared;
static ULONG64 nonce;

static void setup_parent(void)
{
    make_views();
    enter(0);
    enter(3);
    count_records(&used, records);
    enter(1);
    LabAssert(create_name(&view[1], 0, 'p', &(WO_NEW){.Type = WoSemaphore, .Limit = 1}, &object) == STATUS_SUCCESS);
}

static void prepare_and_die(void)
{
    PWO_VIEW own = become(1);
    LabAssert(WopLock(own));
    prepared = WopPrepareCopy(own, &nonce);
    LabAssert(prepared != 0);
    WopUnlock(own);
    LabLeaveProcess();
}

static void become_child_and_die(void)
{
    LabAwaitProcess(1);
    PWO_VIEW own = become(2);
    if (prepared == 0)
        return LabLeaveProcess();
    LabAssert(WopLock(own));
    LabAssert(WopClaimPrepared(own, prepared, nonce, 0));
    WopUnlock(own);
    LabLeaveProcess();
}

static void clean_both(void)
{
    WO_LISTED others[WO_WARDS];
    ULONG count, found;
    LabAwaitProcess(1);
    lock_after(2);
    do {
        count = WopListWards(&view[0], others);
        found = 0;
        for (ULONG number = 0; number < count; number++)
            if (others[number].Key == view[1].Key || others[number].Key == view[2].Key) {
                WopCleanProcess(&view[0], others[number].Index, others[number].Key);
                found++;
            }
    } while (found != 0);
}
LAB_SCENARIO(world_fork_killed, .Setup = setup_parent, .Threads = {prepare_and_die, become_child_and_die, clean_both},
             .Finish = nothing_is_left, .Kills = 1);
