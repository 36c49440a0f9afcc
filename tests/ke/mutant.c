/* KMUTANT and KMUTEX. */
#include "waittest.h"

#include <interlock/ps.h>

#define LOWEST_COUNT ((LONG)0x80000000)

static void acquire(void *mutant)
{
    NTSTATUS status = wait_for(mutant, NULL);
    check(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
}

static void release(void *mutant)
{
    KeReleaseMutant(mutant, MUTANT_INCREMENT, FALSE, FALSE);
}

static void release_as_mutex(void *mutant)
{
    KeReleaseMutex(mutant, FALSE);
}

/* Free 1, owned 0, entered again -1, -2, ...; a release returns the count before it. */
static void test_counts(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    (void)state;
    for (ULONG mutex = 0; mutex < 2; mutex += 1) {
        KMUTANT mutant;
        if (mutex) {
            KeInitializeMutex(&mutant, 0);
        } else {
            KeInitializeMutant(&mutant, FALSE);
        }
        assert_null(mutant.OwnerThread);
        for (LONG count = 1; count > -5; count -= 1) {
            assert_int_equal(KeReadStateMutant(&mutant), count);
            assert_int_equal(KeReadStateMutex(&mutant), count);
            acquire(&mutant);
            assert_ptr_equal(mutant.OwnerThread, self);
        }
        for (LONG count = -5; count <= 0; count += 1) {
            LONG previous = mutex ? KeReleaseMutex(&mutant, FALSE) : KeReleaseMutant(&mutant, 0, FALSE, FALSE);
            assert_int_equal(previous, count);
            assert_int_equal(KeReadStateMutant(&mutant), count == 0 ? 1 : count + 1);
        }
        assert_int_equal(KeReadStateMutant(&mutant), 1);
        assert_null(mutant.OwnerThread);
        assert_true(IsListEmpty(&self->MutantListHead));
    }
}

static void test_initial_owner(void **state)
{
    KMUTANT mutant;
    actor other = {0};
    (void)state;
    start_actor(&other);
    KeInitializeMutant(&mutant, TRUE);
    assert_int_equal(KeReadStateMutant(&mutant), 0);
    assert_ptr_equal(mutant.OwnerThread, KeGetCurrentThread());
    assert_true(poll_object(&mutant));
    assert_int_equal(KeReleaseMutant(&mutant, 0, FALSE, FALSE), -1);
    assert_int_equal(KeReleaseMutant(&mutant, 0, FALSE, FALSE), 0);
    run_on(&other, acquire, &mutant);
    assert_false(poll_object(&mutant));
    run_on(&other, release, &mutant);
    end_actor(&other);
}

static void acquire_by_wait_for_any(void *mutant)
{
    KEVENT event;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    perform(&(wait_call){.count = 2, .object = {&event, mutant}});
}

static void acquire_by_wait_for_all(void *mutant)
{
    KEVENT event;
    KeInitializeEvent(&event, SynchronizationEvent, TRUE);
    perform(&(wait_call){.count = 2, .object = {&event, mutant}, .all = TRUE});
}

static void acquire_alertably(void *mutant)
{
    perform(&(wait_call){.count = 1, .object = {mutant}, .alertable = TRUE});
}

static void acquire_by_poll(void *mutant)
{
    wait_for(mutant, NO_TIME);
}

/* The count cannot go below -0x80000000: the acquire that would raises. */
static void test_limit(void **state)
{
    void (*const acquires[])(void *) = {acquire, acquire_by_wait_for_any, acquire_by_wait_for_all, acquire_alertably,
                                        acquire_by_poll};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(acquires); i += 1) {
        KMUTANT mutant;
        KeInitializeMutant(&mutant, TRUE);
        mutant.Header.SignalState = LOWEST_COUNT + 1;
        assert_int_equal(raised_by(acquires[i], &mutant), STATUS_SUCCESS);
        assert_int_equal(KeReadStateMutant(&mutant), LOWEST_COUNT);
        assert_int_equal(raised_by(acquires[i], &mutant), STATUS_MUTANT_LIMIT_EXCEEDED);
        assert_int_equal(KeReadStateMutant(&mutant), LOWEST_COUNT);
        assert_int_equal(KeReleaseMutant(&mutant, 0, FALSE, FALSE), LOWEST_COUNT);
        mutant.Header.SignalState = 0;
        assert_int_equal(KeReleaseMutant(&mutant, 0, FALSE, FALSE), 0);
        assert_true(IsListEmpty(&KeGetCurrentThread()->MutantListHead));
    }
}

/* A wait for any that an earlier object satisfies does not touch the mutant. */
static void test_limit_is_not_looked_at_in_vain(void **state)
{
    KMUTANT mutant;
    KEVENT event;
    (void)state;
    KeInitializeMutant(&mutant, TRUE);
    KeInitializeEvent(&event, NotificationEvent, TRUE);
    mutant.Header.SignalState = LOWEST_COUNT;
    for (ULONG alertable = 0; alertable < 2; alertable += 1) {
        wait_call call = {.count = 2, .object = {&event, &mutant}, .alertable = (BOOLEAN)alertable};
        volatile NTSTATUS status = STATUS_UNSUCCESSFUL;
        __try {
            status = perform(&call);
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            status = GetExceptionCode();
        }
        assert_int_equal(status, STATUS_WAIT_0);
    }
    mutant.Header.SignalState = 0;
    release(&mutant);
}

static void test_release_by_a_stranger(void **state)
{
    void (*const releases[])(void *) = {release, release_as_mutex};
    KMUTANT mutant;
    actor owner = {0};
    (void)state;
    start_actor(&owner);
    KeInitializeMutant(&mutant, FALSE);
    for (ULONG i = 0; i < ARRAYSIZE(releases); i += 1) {
        assert_int_equal(raised_by(releases[i], &mutant), STATUS_MUTANT_NOT_OWNED);
        assert_int_equal(KeReadStateMutant(&mutant), 1);
    }
    run_on(&owner, acquire, &mutant);
    for (ULONG i = 0; i < ARRAYSIZE(releases); i += 1) {
        assert_int_equal(raised_by(releases[i], &mutant), STATUS_MUTANT_NOT_OWNED);
        assert_int_equal(KeReadStateMutant(&mutant), 0);
        assert_ptr_equal(mutant.OwnerThread, owner.thread);
    }
    run_on(&owner, release, &mutant);
    end_actor(&owner);
}

/* Abandonment. */

#define MUTANTS 3

typedef struct abandoner {
    KMUTANT mutants[MUTANTS];
    ULONG times;
} abandoner;

static void acquire_several_times(void *argument)
{
    abandoner *a = argument;
    for (ULONG i = 0; i < MUTANTS; i += 1) {
        for (ULONG time = 0; time <= i * a->times; time += 1) {
            acquire(&a->mutants[i]);
        }
    }
}

static void end_foreign_thread(abandoner *a)
{
    actor owner = {0};
    start_actor(&owner);
    run_on(&owner, acquire_several_times, a);
    for (ULONG i = 0; i < MUTANTS; i += 1) {
        check(KeReadStateMutant(&a->mutants[i]) == -(LONG)(i * a->times));
    }
    end_actor(&owner);
}

static void acquire_and_terminate(void *argument)
{
    acquire_several_times(argument);
    PsTerminateSystemThread(STATUS_SUCCESS);
}

static void create_and_await(PKSTART_ROUTINE routine, PVOID context)
{
    HANDLE handle;
    PVOID thread;
    check(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, routine, context) == STATUS_SUCCESS);
    check(ObReferenceObjectByHandle(handle, SYNCHRONIZE, *PsThreadType, KernelMode, &thread, NULL) == STATUS_SUCCESS);
    check(wait_for(thread, NULL) == STATUS_SUCCESS);
    ObDereferenceObject(thread);
    check(ZwClose(handle) == STATUS_SUCCESS);
}

static void end_created_thread(abandoner *a)
{
    create_and_await(acquire_and_terminate, a);
}

static void return_from_created_thread(abandoner *a)
{
    create_and_await(acquire_several_times, a);
}

static void (*const endings[])(abandoner *a) = {end_foreign_thread, end_created_thread, return_from_created_thread};

/* An owner that ends: count 1 whatever the recursion, Abandoned, and the next wait reports it, once. */
static void test_abandoned_before_the_wait(void **state)
{
    (void)state;
    for (ULONG e = 0; e < ARRAYSIZE(endings); e += 1) {
        abandoner a = {.times = 2};
        for (ULONG i = 0; i < MUTANTS; i += 1) {
            KeInitializeMutant(&a.mutants[i], FALSE);
        }
        endings[e](&a);
        for (ULONG i = 0; i < MUTANTS; i += 1) {
            PKMUTANT mutant = &a.mutants[i];
            assert_int_equal(KeReadStateMutant(mutant), 1);
            assert_true(mutant->Abandoned);
            assert_null(mutant->OwnerThread);
            assert_int_equal(wait_for(mutant, i % 2 ? NULL : NO_TIME), STATUS_ABANDONED);
            assert_false(mutant->Abandoned);
            assert_int_equal(wait_for(mutant, NULL), STATUS_SUCCESS);
            assert_int_equal(KeReleaseMutant(mutant, 0, FALSE, FALSE), -1);
            assert_int_equal(KeReleaseMutant(mutant, 0, FALSE, FALSE), 0);
            assert_int_equal(wait_for(mutant, NULL), STATUS_SUCCESS);
            release(mutant);
        }
    }
}

/* The waiter gets it. */
static void test_abandoned_under_the_wait(void **state)
{
    waiter w[2];
    actor owner = {0};
    KMUTANT mutant;
    (void)state;
    start_waiters(w, 2);
    start_actor(&owner);
    KeInitializeMutant(&mutant, FALSE);
    run_on(&owner, acquire, &mutant);
    run_on(&owner, acquire, &mutant);
    begin_wait_for(&w[0], &mutant);
    begin_wait_for(&w[1], &mutant);
    end_actor(&owner);
    assert_int_equal(end_wait(&w[0]), STATUS_ABANDONED);
    assert_true(still_waits(&w[1]));
    assert_false(mutant.Abandoned);
    assert_int_equal(KeReadStateMutant(&mutant), 0);
    assert_ptr_equal(mutant.OwnerThread, w[0].actor.thread);
    run_on(&w[0].actor, release, &mutant);
    assert_int_equal(end_wait(&w[1]), STATUS_SUCCESS);
    run_on(&w[1].actor, release, &mutant);
    end_waiters(w, 2);
}

/* KeReleaseMutant can abandon in its owner's name. */
static void test_release_as_abandoned(void **state)
{
    KMUTANT mutant;
    (void)state;
    KeInitializeMutant(&mutant, TRUE);
    acquire(&mutant);
    assert_int_equal(KeReleaseMutant(&mutant, 0, TRUE, FALSE), -1);
    assert_int_equal(KeReadStateMutant(&mutant), 1);
    assert_int_equal(wait_for(&mutant, NULL), STATUS_ABANDONED);
    release(&mutant);
    assert_int_equal(wait_for(&mutant, NULL), STATUS_SUCCESS);
    release(&mutant);
}

/* Handed off in the order of arrival; a later thread cannot take it in between. */
static void test_hand_over(void **state)
{
    waiter w[4];
    KMUTANT mutant;
    (void)state;
    start_waiters(w, 4);
    KeInitializeMutant(&mutant, TRUE);
    for (ULONG i = 0; i < 4; i += 1) {
        begin_wait_for(&w[i], &mutant);
    }
    assert_int_equal(KeReleaseMutant(&mutant, 0, FALSE, FALSE), 0);
    for (ULONG i = 0; i < 4; i += 1) {
        assert_ptr_equal(mutant.OwnerThread, w[i].actor.thread);
        assert_int_equal(KeReadStateMutant(&mutant), 0);
        assert_false(poll_object(&mutant));
        assert_int_equal(end_wait(&w[i]), STATUS_SUCCESS);
        assert_int_equal(count_waiting(w, 4), 3 - i);
        run_on(&w[i].actor, release, &mutant);
    }
    assert_int_equal(KeReadStateMutant(&mutant), 1);
    end_waiters(w, 4);
}

/* A mutex disables normal kernel APCs, from its first acquire to its last release; a mutant does not. */

static void read_disable(void *argument)
{
    *(SHORT *)argument = KeGetCurrentThread()->KernelApcDisable;
}

static SHORT disable_of(waiter *w)
{
    SHORT disable;
    run_on(&w->actor, read_disable, &disable);
    return disable;
}

static void test_mutex_disables_apcs(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    KMUTANT mutant, mutex;
    waiter w;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeMutex(&mutex, 0);
    acquire(&mutant);
    assert_false(KeAreApcsDisabled());
    for (ULONG i = 0; i < 3; i += 1) {
        acquire(&mutex);
        assert_int_equal(self->KernelApcDisable, -1);
        assert_true(KeAreApcsDisabled());
        assert_false(KeAreAllApcsDisabled());
    }
    for (ULONG i = 0; i < 2; i += 1) {
        KeReleaseMutex(&mutex, FALSE);
        assert_int_equal(self->KernelApcDisable, -1);
    }
    begin_wait_for(&w, &mutex);
    assert_int_equal(KeReleaseMutex(&mutex, FALSE), 0);
    assert_int_equal(self->KernelApcDisable, 0);
    assert_int_equal(end_wait(&w), STATUS_SUCCESS);
    assert_int_equal(disable_of(&w), -1);
    run_on(&w.actor, acquire, &mutex);
    assert_int_equal(disable_of(&w), -1);
    run_on(&w.actor, release_as_mutex, &mutex);
    assert_int_equal(disable_of(&w), -1);
    run_on(&w.actor, release_as_mutex, &mutex);
    assert_int_equal(disable_of(&w), 0);
    release(&mutant);
    end_waiters(&w, 1);
}

/* By a wait for any or for all as well, and two mutexes count twice. */
static void test_mutexes_in_other_waits(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    KMUTANT mutexes[2];
    KEVENT event;
    (void)state;
    KeInitializeMutex(&mutexes[0], 0);
    KeInitializeMutex(&mutexes[1], 0);
    KeInitializeEvent(&event, NotificationEvent, TRUE);
    wait_call any = {.count = 2, .object = {&mutexes[1], &event}};
    wait_call all = {.count = 3, .object = {&mutexes[1], &event, &mutexes[0]}, .all = TRUE};
    assert_int_equal(perform(&any), STATUS_WAIT_0);
    assert_int_equal(self->KernelApcDisable, -1);
    assert_int_equal(perform(&all), STATUS_WAIT_0);
    assert_int_equal(self->KernelApcDisable, -2);
    assert_int_equal(KeReadStateMutant(&mutexes[1]), -1);
    KeReleaseMutex(&mutexes[0], FALSE);
    assert_int_equal(self->KernelApcDisable, -1);
    KeReleaseMutex(&mutexes[1], FALSE);
    assert_int_equal(self->KernelApcDisable, -1);
    KeReleaseMutex(&mutexes[1], FALSE);
    assert_int_equal(self->KernelApcDisable, 0);
}

/* A mutant acquired by a DPC is marked in its header and is on no thread's list. */

typedef struct dpc_run {
    KMUTANT mutant;
    BOOLEAN listed;
    UCHAR active;
    LONG state, state_after;
    NTSTATUS status;
} dpc_run;

static void acquire_in_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    dpc_run *run = context;
    (void)dpc;
    (void)argument1;
    (void)argument2;
    run->status = wait_for(&run->mutant, NO_TIME);
    run->state = KeReadStateMutant(&run->mutant);
    run->active = run->mutant.Header.DpcActive;
    run->listed = !IsListEmpty(&KeGetCurrentThread()->MutantListHead);
    KeReleaseMutant(&run->mutant, 0, FALSE, FALSE);
    run->state_after = KeReadStateMutant(&run->mutant);
}

static void test_acquired_by_a_dpc(void **state)
{
    dpc_run run = {.status = STATUS_UNSUCCESSFUL};
    KDPC dpc;
    (void)state;
    KeInitializeMutant(&run.mutant, FALSE);
    KeInitializeDpc(&dpc, acquire_in_dpc, &run);
    assert_true(KeInsertQueueDpc(&dpc, NULL, NULL));
    KeFlushQueuedDpcs();
    assert_int_equal(run.status, STATUS_SUCCESS);
    assert_int_equal(run.state, 0);
    assert_int_equal(run.active, 1);
    assert_false(run.listed);
    assert_int_equal(run.state_after, 1);
    assert_int_equal(run.mutant.Header.DpcActive, 0);
    acquire(&run.mutant);
    assert_int_equal(run.mutant.Header.DpcActive, 0);
    release(&run.mutant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_counts),
        WATCHED(test_initial_owner),
        WATCHED(test_limit),
        WATCHED(test_limit_is_not_looked_at_in_vain),
        WATCHED(test_release_by_a_stranger),
        WATCHED(test_abandoned_before_the_wait),
        WATCHED(test_abandoned_under_the_wait),
        WATCHED(test_release_as_abandoned),
        WATCHED(test_hand_over),
        WATCHED(test_mutex_disables_apcs),
        WATCHED(test_mutexes_in_other_waits),
        WATCHED(test_acquired_by_a_dpc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
