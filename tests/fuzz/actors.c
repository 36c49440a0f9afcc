/* actors.c: the threads that make the calls, and how a step ends. */
#include "fuzz.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ke/wait.h"

typedef struct actor {
    HANDLE handle;
    PKTHREAD thread; /* referenced */
    HANDLE id;
    sem_t started, go;
    call made;
    bool ended;
    bool outstanding; /* a call was given to it and has not returned yet */
    int done;
    uint64_t apcs_run;
} actor;

static actor actors[CALLERS];
static sem_t moved;
static unsigned moves;
static bool somebody_ends; /* in this step: the effects of its end continue after its thread is signaled */

PKTHREAD thread_of(unsigned number)
{
    return actors[number].thread;
}

HANDLE id_of(unsigned number)
{
    return actors[number].id;
}

static void say_moved(void)
{
    __atomic_add_fetch(&moves, 1, __ATOMIC_SEQ_CST);
    sem_post(&moved);
}

static NTSTATUS NTAPI actor_main(PVOID argument)
{
    actor *self = argument;

    sem_post(&self->started);
    for (;;) {
        while (sem_wait(&self->go) != 0) {
        }
        self->made.operation->perform(&self->made);
        if (self->made.ends_thread)
            return STATUS_SUCCESS;
        __atomic_store_n(&self->done, 1, __ATOMIC_RELEASE);
        say_moved();
    }
}

void start_actor(unsigned number)
{
    actor *self = &actors[number];
    THREAD_BASIC_INFORMATION information;
    PVOID body;

    memset(self, 0, sizeof(*self));
    sem_init(&self->started, 0, 0);
    sem_init(&self->go, 0, 0);
    NTSTATUS status = NtCreateThreadEx(&self->handle, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), actor_main, self, 0,
                                       0, 256 * 1024, 256 * 1024, NULL);
    if (!NT_SUCCESS(status))
        mismatch("no thread: %08x", (unsigned)status);
    ObReferenceObjectByHandle(self->handle, 0, NULL, KernelMode, &body, NULL);
    self->thread = body;
    NtQueryInformationThread(self->handle, ThreadBasicInformation, &information, sizeof(information), NULL);
    self->id = information.ClientId.UniqueThread;
    things.handles[A0 + number] = self->handle;
    things.bodies[A0 + number] = body;
    while (sem_wait(&self->started) != 0) { /* an earlier APC would run at once */
    }
}

void refresh_actor(unsigned number)
{
    actors[number].apcs_run = 0;
}

void forget_actor(unsigned number)
{
    actor *self = &actors[number];

    NtClose(self->handle);
    ObDereferenceObject(self->thread);
    self->thread = NULL;
}

static void actor_apc(PVOID argument, PVOID number, PVOID unused)
{
    actor *self = argument;

    (void)unused;
    self->apcs_run = add_apc(self->apcs_run, (unsigned)(uintptr_t)number);
}

void queue_apc(unsigned number, unsigned apc, NTSTATUS *status)
{
    *status = NtQueueApcThread(actors[number].handle, actor_apc, &actors[number], (PVOID)(uintptr_t)apc, NULL);
}

/*
 * Waiting for the predicted state. A thread that returns from a call, or is about to sleep in the host, reports that;
 * then the driver checks again.
 */

static BOOLEAN (*host_wait)(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline);

static BOOLEAN say_and_wait(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    say_moved();
    return host_wait(address, expected, deadline);
}

void watch_actors(void)
{
    if (host_wait != NULL)
        return;
    sem_init(&moved, 0, 0);
    host_wait = HalDispatch.Wait;
    HalDispatch.Wait = say_and_wait; /* before the clock thread exists, which uses it too */
    start_clock();
}

static ULONG register_of(PKTHREAD thread)
{
    return __atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE);
}

static bool is_in_wait(PKTHREAD thread, KWAIT_STATE state)
{
    ULONG found = register_of(thread);

    return (found & KI_WAIT_ACTIVE) && (found & KI_WAIT_STATE_MASK) == (ULONG)state;
}

/* Only the thread itself waits for its SuspendEvent. */
static bool is_suspended(PKTHREAD thread)
{
    UCHAR type = __atomic_load_n(&thread->SuspendEvent.Header.Type, __ATOMIC_ACQUIRE);

    return is_in_wait(thread, WaitSuspended) || ((type & KOBJECT_WAITERS_BIT) && is_in_wait(thread, WaitCommitted));
}

static bool is_done(unsigned number)
{
    return __atomic_load_n(&actors[number].done, __ATOMIC_ACQUIRE) != 0;
}

/* Returned, without a call, or asleep. A pending suspension or termination comes from outside. */
static bool is_at_rest(unsigned number)
{
    const actor *self = &actors[number];

    if (self->thread == NULL || !model.actors[number].alive)
        return true;
    if (model.actors[number].times_out)
        return is_done(number);
    if (model.actors[number].suspended != 0)
        return is_suspended(self->thread);
    return !self->outstanding || is_done(number) || is_in_wait(self->thread, WaitCommitted);
}

/*
 * Then no thread can wake another: a wake takes effect in the register of the woken thread before the waking call
 * returns. Two checks without a move in between are equivalent to one: a thread that wakes up and sleeps again has
 * moved.
 */
static bool is_everybody_at_rest(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (!is_at_rest(i))
            return false;
    return true;
}

/* FALSE: no thread will move any more, or it has taken too long. What has not happened by then never will: check once
 * more. */
static bool await_move(unsigned *seconds)
{
    struct timespec next;
    unsigned before = __atomic_load_n(&moves, __ATOMIC_SEQ_CST);

    if (sem_trywait(&moved) == 0)
        return true;
    if (!somebody_ends && is_everybody_at_rest() && is_everybody_at_rest() &&
        __atomic_load_n(&moves, __ATOMIC_SEQ_CST) == before && sem_trywait(&moved) != 0)
        return false;
    clock_gettime(CLOCK_REALTIME, &next);
    next.tv_sec += 1;
    if (sem_timedwait(&moved, &next) != 0 && errno == ETIMEDOUT)
        *seconds += 1;
    return *seconds < PATIENCE_SECONDS;
}

static bool is_one_waited_for(const model_actor *self, PVOID object)
{
    for (unsigned i = 0; i < self->count; i++)
        if (object == things.bodies[self->objects[i]])
            return true;
    return false;
}

/*
 * It sleeps in the wait that the model predicts. The wait block may be read: a thread that sleeps as modeled stays
 * asleep, and one that does not begins no other wait. (Except the waiter for a resource, which polls.)
 */
static bool is_asleep_as_modeled(unsigned number)
{
    const model_actor *self = &model.actors[number];
    PKTHREAD thread = actors[number].thread;

    if (self->suspended != 0)
        return is_suspended(thread);
    if (!is_in_wait(thread, WaitCommitted))
        return false;
    switch (self->waiting) {
    case FOR_OBJECTS:
        return is_one_waited_for(self, thread->WaitBlockList[0].Object);
    case FOR_QUEUE:
        return thread->WaitReason == WrQueue;
    case FOR_KEY:
        return thread->WaitReason == WrKeyedEvent;
    case FOR_WORD:
        return thread->WaitBlockList[0].Object == (PVOID)&things.words[self->place];
    case FOR_LOCK:
        return self->place == RESOURCE || thread->WaitBlockList[0].Object != &things.conditions[self->place];
    case FOR_CONDITION:
        return thread->WaitBlockList[0].Object == &things.conditions[self->place];
    default:
        return true;
    }
}

static void compare_result(unsigned number, const call *made, uint64_t apcs_run)
{
    const model_actor *self = &model.actors[number];

    if (made->status != self->status || made->value != self->value)
        mismatch("%s of A%u returned %08x, %ld; by the model %08x, %ld", made->operation->name, number,
                 (unsigned)made->status, (long)made->value, (unsigned)self->status, (long)self->value);
    if (apcs_run != self->apcs_run)
        mismatch("A%u did not run the APCs that the model ran", number);
}

static void await_return(unsigned number)
{
    unsigned seconds = 0;
    actor *self = &actors[number];

    while (!is_done(number) && await_move(&seconds)) {
    }
    if (!is_done(number))
        mismatch("%s of A%u does not return", self->made.operation->name, number);
    self->done = 0;
    self->outstanding = false;
    model.actors[number].times_out = false;
    compare_result(number, &self->made, self->apcs_run);
}

/* First: a thread that has returned is no longer asleep. */
static void expect_no_return(unsigned number)
{
    const call *made = &actors[number].made;

    if (is_done(number))
        mismatch("%s of A%u returned %08x, %ld; by the model it waits", made->operation->name, number,
                 (unsigned)made->status, (long)made->value);
}

static void await_sleep(unsigned number)
{
    unsigned seconds = 0;
    bool may_move = true;

    for (;;) {
        expect_no_return(number);
        if (is_asleep_as_modeled(number))
            return;
        if (!may_move)
            mismatch("A%u neither returns nor sleeps as the model says", number);
        may_move = await_move(&seconds);
    }
}

static void await_end(unsigned number)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000000LL * PATIENCE_SECONDS};

    if (KeWaitForSingleObject(actors[number].thread, Executive, KernelMode, FALSE, &timeout) != STATUS_SUCCESS)
        mismatch("A%u does not end", number);
    actors[number].outstanding = false;
}

/* First everything that must happen, which may take time; then that nothing else has happened. */
static void settle(void)
{
    somebody_ends = false;
    for (unsigned i = 0; i < ACTORS; i++) {
        if (actors[i].thread == NULL || model.actors[i].alive || actors[i].ended)
            continue;
        somebody_ends = actors[i].ended = true;
        await_end(i);
    }
    for (unsigned i = 0; i < ACTORS; i++) {
        const model_actor *self = &model.actors[i];

        if (actors[i].thread != NULL && self->alive && actors[i].outstanding && !self->calling && self->suspended == 0)
            await_return(i);
    }
    for (unsigned i = 0; i < ACTORS; i++) {
        const model_actor *self = &model.actors[i];

        if (actors[i].thread != NULL && self->alive && (self->calling || self->suspended != 0))
            await_sleep(i);
    }
}

bool await_another_look(unsigned *seconds)
{
    return somebody_ends && await_move(seconds);
}

void dispatch(call *made)
{
    actor *self = &actors[made->caller];

    if (made->caller == MAIN) {
        made->operation->perform(made);
        compare_result(MAIN, made, 0);
    } else {
        self->made = *made;
        self->outstanding = true;
        sem_post(&self->go);
    }
    settle();
}
