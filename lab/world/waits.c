/* Waits for shared objects, with a process killed before any of its stores: the survivors finish, nothing is taken twice. */
#include "world.h"

static WO_INDEX object, other;
static int done, told, inside, killed;

static NTSTATUS wait_for(PWO_VIEW own, WO_INDEX self, const WO_INDEX *objects, ULONG count, WO_WAIT_KIND kind)
{
    static const HAL_DEADLINE none = {HalNoDeadline, 0};
    volatile ULONG *word = WoWakeWord(own, self);
    NTSTATUS status = WoBeginWait(own, self, objects, count, kind);

    if (status != STATUS_PENDING)
        return status;
    for (;;) {
        ULONG seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (WoIsGranted(own, self, &status))
            return WoEndWait(own, self);
        if (__atomic_compare_exchange_n(word, &seen, seen | WO_ASLEEP, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            HalWaitShared(word, seen | WO_ASLEEP, &none);
    }
}

/* The guard. TRUE: process 1 was killed. */
static int clean_up(void)
{
    if (!LabAwaitProcess(1))
        return 0;
    killed = 1;
    LabAssert(WopLock(&view[0]));
    WopEndWaiter(&view[0], waiter[1]);
    WopUnlock(&view[0]);
    return 1;
}

/* The thread that signals is killed: the event is set, or it is not. */
static void setup_event(void)
{
    make_waiters();
    object = make_object(WoSynchronizationEvent, 0, 0);
}

static void set_and_die(void)
{
    LONG previous;
    LabAssert(WoSetEvent(become(1), object, &previous) == STATUS_SUCCESS);
    LabLeaveProcess();
}

static void wait_once(void)
{
    LabAssert(wait_for(&view[0], waiter[0], &object, 1, WoWaitAny) == STATUS_WAIT_0);
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static void set_again(void)
{
    LONG previous;
    if (clean_up())
        LabAssert(WoSetEvent(&view[0], object, &previous) == STATUS_SUCCESS);
}

static void one_was_served(void)
{
    LabAssert(done == 1 && state_of(object) <= killed);
}
LAB_SCENARIO(world_setter_killed, .Setup = setup_event, .Threads = {set_and_die, wait_once, set_again},
             .Finish = one_was_served, .Kills = 1);

/* A waiting thread is killed: either it has consumed the signal, or another waiter gets it. */
static void wait_and_die(void)
{
    wait_for(become(1), waiter[1], &object, 1, WoWaitAny);
    LabLeaveProcess();
}

static void setup_semaphore(void)
{
    make_waiters();
    object = make_object(WoSemaphore, 0, 5);
}

static void release_for_both(void)
{
    LONG previous;
    LabAssert(WoReleaseSemaphore(&view[0], object, 1, &previous) == STATUS_SUCCESS);
    LabAssert(WoReleaseSemaphore(&view[0], object, 1, &previous) == STATUS_SUCCESS);
    clean_up();
}

static void other_was_served(void)
{
    LabAssert(done == 1 && state_of(object) <= killed);
}
LAB_SCENARIO(world_waiter_killed, .Setup = setup_semaphore, .Threads = {wait_and_die, wait_once, release_for_both},
             .Finish = other_was_served, .Kills = 1, .Flags = LAB_LARGE);

/* An owner is killed: exactly one waiter gets STATUS_ABANDONED. */
static void setup_mutant(void)
{
    make_waiters();
    object = make_object(WoMutant, 1, 0);
}

static void use_mutant(PWO_VIEW own, WO_INDEX self)
{
    LONG previous;
    NTSTATUS status = wait_for(own, self, &object, 1, WoWaitAny);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_ABANDONED_WAIT_0);
    LabAssert(status == STATUS_ABANDONED_WAIT_0 || !__atomic_load_n(&inside, __ATOMIC_RELAXED));
    __atomic_fetch_add(&told, status == STATUS_ABANDONED_WAIT_0, __ATOMIC_RELAXED);
    __atomic_store_n(&inside, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&inside, 0, __ATOMIC_RELAXED);
    LabAssert(WoReleaseMutant(own, object, self, FALSE, &previous) == STATUS_SUCCESS);
}

static void own_and_die(void)
{
    LONG previous;
    PWO_VIEW own = become(1);
    LabAssert(wait_for(own, waiter[1], &object, 1, WoWaitAny) >= 0);
    __atomic_store_n(&inside, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&view[1].World->Bucket[0], 1, __ATOMIC_RELAXED); /* a store to shared memory: may be killed here */
    __atomic_store_n(&inside, 0, __ATOMIC_RELAXED);
    WoReleaseMutant(own, object, waiter[1], FALSE, &previous);
    LabLeaveProcess();
}

static void first_heir(void)
{
    use_mutant(&view[0], waiter[0]);
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static void second_heir(void)
{
    use_mutant(&view[0], waiter[3]);
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static void guard(void)
{
    clean_up();
}

static void told_once(void)
{
    LabAssert(state_of(object) == 1);
    LabAssert(told <= killed);
}

static void one_heir_told(void)
{
    LabAssert(done == 1);
    told_once();
}

static void two_heirs_told(void)
{
    LabAssert(done == 2);
    told_once();
}
LAB_SCENARIO(world_owner_killed, .Setup = setup_mutant, .Threads = {own_and_die, first_heir, guard},
             .Finish = one_heir_told, .Kills = 1);
LAB_SCENARIO(world_owner_killed_two_heirs, .Setup = setup_mutant, .Threads = {own_and_die, first_heir, second_heir, guard},
             .Finish = two_heirs_told, .Kills = 1, .Flags = LAB_LARGE);

/* A thread that waits for both of two semaphores is killed: it has taken both or none. */
static void setup_pair(void)
{
    make_waiters();
    object = make_object(WoSemaphore, 0, 5);
    other = make_object(WoSemaphore, 0, 5);
}

static void take_both_and_die(void)
{
    WO_INDEX both[] = {object, other};
    wait_for(become(1), waiter[1], both, 2, WoWaitAll);
    LabLeaveProcess();
}

static void release_both(void)
{
    LONG previous;
    LabAssert(WoReleaseSemaphore(&view[0], object, 1, &previous) == STATUS_SUCCESS);
    LabAssert(WoReleaseSemaphore(&view[0], other, 1, &previous) == STATUS_SUCCESS);
    clean_up();
}

static void both_or_none(void)
{
    LabAssert(state_of(object) == state_of(other) && state_of(object) <= killed);
}
LAB_SCENARIO(world_all_killed, .Setup = setup_pair, .Threads = {take_both_and_die, release_both}, .Finish = both_or_none,
             .Kills = 1);

/* A thread that releases more waits than one is killed: a release is atomic, with its wakes. */
static void release_two_and_die(void)
{
    LONG previous;
    WoReleaseSemaphore(become(1), object, 2, &previous);
    LabLeaveProcess();
}

static void wait_too(void)
{
    LabAssert(wait_for(&view[0], waiter[3], &object, 1, WoWaitAny) == STATUS_WAIT_0);
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static void release_rest(void)
{
    LONG previous;
    if (clean_up())
        WoReleaseSemaphore(&view[0], object, 2, &previous);
}

static void two_were_served(void)
{
    LONG left = state_of(object);
    LabAssert(done == 2 && (left == 0 || (killed && left == 2)));
}
LAB_SCENARIO(world_releaser_killed, .Setup = setup_pair, .Threads = {release_two_and_die, wait_once, wait_too, release_rest},
             .Finish = two_were_served, .Kills = 1, .Flags = LAB_LARGE);

/* A wait that times out while it is being granted by a process that is killed: granted, or not granted and
   consistent. */
static void wait_until_timeout(void)
{
    HAL_DEADLINE soon = {HalInterruptTime, HalDispatch.QueryInterruptTime() + 10};
    volatile ULONG *word = WoWakeWord(&view[0], waiter[0]);
    NTSTATUS status = WoBeginWait(&view[0], waiter[0], &object, 1, WoWaitAny);

    while (status == STATUS_PENDING) {
        ULONG seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (WoIsGranted(&view[0], waiter[0], &status) ||
            (__atomic_compare_exchange_n(word, &seen, seen | WO_ASLEEP, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
             !HalWaitShared(word, seen | WO_ASLEEP, &soon))) {
            status = WoEndWait(&view[0], waiter[0]);
            break;
        }
    }
    done = status != STATUS_PENDING;
}

static void taken_or_left(void)
{
    LONG left = state_of(object);
    LabAssert(done + left == 1 || (killed && done + left == 0));
}
LAB_SCENARIO(world_timeout_against_killed, .Setup = setup_event, .Threads = {set_and_die, wait_until_timeout, guard},
             .Finish = taken_or_left, .Kills = 1);
