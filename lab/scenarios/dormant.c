/*
 * Waits that watch one of their objects and are dormant on the others: whatever the others do meanwhile, the signal
 * that completes a wait finds it. dispatch.h has the theory.
 */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/wait.h"

static KEVENT first, second, third, token;
static PKTHREAD waiting[2];
static int completed, ready;

static void setup(void)
{
    KeInitializeEvent(&first, NotificationEvent, FALSE);
    KeInitializeEvent(&second, NotificationEvent, FALSE);
    KeInitializeEvent(&third, NotificationEvent, FALSE);
    KeInitializeEvent(&token, SynchronizationEvent, FALSE);
}

static NTSTATUS wait_all(ULONG count, PVOID *objects, PLARGE_INTEGER timeout)
{
    return KeWaitForMultipleObjects(count, objects, WaitAll, Executive, KernelMode, FALSE, timeout, NULL);
}

static void say_waiting(int number)
{
    __atomic_store_n(&waiting[number], KeGetCurrentThread(), __ATOMIC_RELEASE);
}

/* Until the blocks of the other thread's wait are linked. */
static void await_wait(int number)
{
    PKTHREAD thread;
    while ((thread = __atomic_load_n(&waiting[number], __ATOMIC_ACQUIRE)) == NULL)
        ;
    while ((__atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE) & (KI_WAIT_ACTIVE | KI_WAIT_STATE_MASK)) !=
           (KI_WAIT_ACTIVE | WaitCommitted))
        ;
}

static void set(PRKEVENT event)
{
    KeSetEvent(event, IO_NO_INCREMENT, FALSE);
}

static void wait_for_two(void)
{
    LabAssert(wait_all(2, (PVOID[]){&first, &second}, NULL) == STATUS_WAIT_0);
}

static void wait_for_two_crossed(void)
{
    LabAssert(wait_all(2, (PVOID[]){&second, &first}, NULL) == STATUS_WAIT_0);
}

static void wait_for_three(void)
{
    LabAssert(wait_all(3, (PVOID[]){&second, &third, &first}, NULL) == STATUS_WAIT_0);
}

/* The watch moves away and back. */
static void set_first_twice(void)
{
    set(&first);
    KeResetEvent(&first);
    set(&first);
}

static void set_second_twice(void)
{
    set(&second);
    KeResetEvent(&second);
    set(&second);
}

static void set_second(void)
{
    set(&second);
}

static void set_third(void)
{
    set(&third);
}
LAB_SCENARIO(dormant_moves, .Setup = setup, .Threads = {wait_for_two, set_first_twice, set_second});
LAB_SCENARIO(dormant_moves_both, .Setup = setup, .Threads = {wait_for_two, set_first_twice, set_second_twice});
LAB_SCENARIO(dormant_three, .Setup = setup, .Threads = {wait_for_three, set_first_twice, set_second, set_third});
LAB_SCENARIO(dormant_two_waits, .Setup = setup,
             .Threads = {wait_for_two, wait_for_two_crossed, set_first_twice, set_second_twice}, .Flags = LAB_LARGE);

/* A pulse that finds the other object signaled completes the wait, whichever object it watched. */
static void wait_for_two_and_say_so(void)
{
    say_waiting(0);
    wait_for_two();
}

static void set_second_then_pulse_first(void)
{
    await_wait(0);
    set(&second);
    KePulseEvent(&first, IO_NO_INCREMENT, FALSE);
}

static void pulse_first(void)
{
    KePulseEvent(&first, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(dormant_pulse, .Setup = setup,
             .Threads = {wait_for_two_and_say_so, set_second_then_pulse_first, pulse_first});

/* All or nothing, even if the timeout expires while the watch moves. */
static void wait_for_token_in_time(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = wait_all(2, (PVOID[]){&first, &token}, &timeout);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_TIMEOUT);
    completed = status == STATUS_WAIT_0;
}

static void set_token(void)
{
    set(&token);
}

static void token_was_taken_or_not(void)
{
    LabAssert(KeReadStateEvent(&token) == !completed);
    LabAssert(IsListEmpty(&first.Header.WaitListHead) && IsListEmpty(&token.Header.WaitListHead));
}
LAB_SCENARIO(dormant_timeout, .Setup = setup, .Threads = {wait_for_token_in_time, set_first_twice, set_token},
             .Finish = token_was_taken_or_not);

/* The older wait gets the token, even if it was dormant on its list when the younger one arrived. */
static void older(void)
{
    say_waiting(0);
    LabAssert(wait_all(3, (PVOID[]){&first, &token, &second}, NULL) == STATUS_WAIT_0);
    __atomic_store_n(&completed, 1, __ATOMIC_RELAXED);
    set(&token);
}

static void younger(void)
{
    await_wait(0);
    say_waiting(1);
    LabAssert(KeWaitForSingleObject(&token, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(__atomic_load_n(&completed, __ATOMIC_RELAXED) == 1);
}

/* The second of the two gives the token. */
static void give_token_when_ready(void)
{
    if (__atomic_add_fetch(&ready, 1, __ATOMIC_ACQ_REL) == 2)
        set(&token);
}

static void prepare_first(void)
{
    await_wait(1);
    set(&first);
    give_token_when_ready();
}

static void prepare_second(void)
{
    await_wait(1);
    set(&second);
    give_token_when_ready();
}
LAB_SCENARIO(dormant_age, .Setup = setup, .Threads = {older, younger, prepare_first, prepare_second});

/* And no wait that was dormant gets it before an even older one. */
static void eldest(void)
{
    say_waiting(0);
    LabAssert(KeWaitForSingleObject(&token, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(__atomic_load_n(&completed, __ATOMIC_RELAXED) == 0);
    set(&token);
}

static void next_in_age(void)
{
    await_wait(0);
    say_waiting(1);
    LabAssert(wait_all(2, (PVOID[]){&token, &first}, NULL) == STATUS_WAIT_0);
    __atomic_store_n(&completed, 1, __ATOMIC_RELAXED);
}

static void set_first_then_token(void)
{
    await_wait(1);
    set(&first);
    set(&token);
}
LAB_SCENARIO(dormant_age_behind, .Setup = setup, .Threads = {eldest, next_in_age, set_first_then_token});

/* Two waits for one token: the one that does not get it watches the token, and gets the next. */
static void wait_for_first_and_token(void)
{
    LabAssert(wait_all(2, (PVOID[]){&token, &first}, NULL) == STATUS_WAIT_0);
    LabAssert(__atomic_fetch_add(&completed, 1, __ATOMIC_RELAXED) == 0);
    __atomic_fetch_sub(&completed, 1, __ATOMIC_RELAXED);
    set(&token);
}

static void set_token_then_first(void)
{
    set(&token);
    set(&first);
}

static void token_is_left(void)
{
    LabAssert(KeReadStateEvent(&token) == 1);
}
LAB_SCENARIO(dormant_one_token, .Setup = setup,
             .Threads = {wait_for_first_and_token, wait_for_first_and_token, set_token_then_first},
             .Finish = token_is_left);

/* A suspension unlinks the blocks, and resuming links them again, while the objects become signaled. */
static void suspend_and_resume(void)
{
    PKTHREAD thread;
    while ((thread = __atomic_load_n(&waiting[0], __ATOMIC_ACQUIRE)) == NULL)
        ;
    KeSuspendThread(thread);
    KeResumeThread(thread);
}
LAB_SCENARIO(dormant_suspended, .Setup = setup,
             .Threads = {wait_for_two_and_say_so, set_first_twice, suspend_and_resume, set_second}, .Flags = LAB_LARGE);

/* A queue at its limit: a thread that waits for the queue itself is released by an entry that no dequeuer may take. */
static KQUEUE queue;
static LIST_ENTRY entries[3];

static void setup_queue(void)
{
    setup();
    KeInitializeQueue(&queue, 1);
}

/* Counts for the queue from its first entry on, and removes the second when the others have seen it. */
static void worker(void)
{
    KeInsertQueue(&queue, &entries[0]);
    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entries[0]);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    KeInsertQueue(&queue, &entries[1]);
    KeWaitForSingleObject(&token, Executive, KernelMode, FALSE, NULL);
}

static void await_worker(void)
{
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == 0)
        ;
}

static void dequeuer(void)
{
    await_worker();
    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entries[1]);
}

/* The entry stays in the queue until the worker blocks, which waits for this. */
static void plain_waiter(void)
{
    await_worker();
    LabAssert(KeWaitForSingleObject(&queue, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    set(&first);
}

static void worker_that_awaits_the_waiter(void)
{
    KeInsertQueue(&queue, &entries[0]);
    LabAssert(KeRemoveQueue(&queue, KernelMode, NULL) == &entries[0]);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    KeInsertQueue(&queue, &entries[1]);
    while (KeReadStateEvent(&first) == 0)
        ;
    KeWaitForSingleObject(&token, Executive, KernelMode, FALSE, NULL);
}

static void dequeuer_that_ends(void)
{
    dequeuer();
    set(&token);
}

static void queue_is_empty(void)
{
    LabAssert(IsListEmpty(&queue.Header.WaitListHead) && KeReadStateQueue(&queue) == 0);
}
LAB_SCENARIO(queue_at_limit_plain, .Setup = setup_queue,
             .Threads = {worker_that_awaits_the_waiter, dequeuer_that_ends, plain_waiter}, .Finish = queue_is_empty);
LAB_SCENARIO(queue_at_limit, .Setup = setup_queue, .Threads = {worker, dequeuer_that_ends}, .Finish = queue_is_empty);

/* The same for a wait for the queue and another object. */
static void wait_for_queue_and_second(void)
{
    await_worker();
    LabAssert(wait_all(2, (PVOID[]){&queue, &second}, NULL) == STATUS_WAIT_0);
    set(&first);
}
LAB_SCENARIO(queue_at_limit_all, .Setup = setup_queue,
             .Threads = {worker_that_awaits_the_waiter, dequeuer_that_ends, wait_for_queue_and_second, set_second},
             .Flags = LAB_LARGE);
