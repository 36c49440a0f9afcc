/* Alerts by thread id, by the numbers in src/ke/apc.c and the rules of include/interlock/nt.h. */
#include "../ke/waittest.h"
#include "../support/heap.h"

#include "ps/psp.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HINT ((PVOID)(ULONG_PTR)0x12345671)

typedef struct sleeper {
    actor actor;
    PLARGE_INTEGER timeout;
    NTSTATUS status;
} sleeper;

static void sleep_until_alerted(void *argument)
{
    sleeper *s = argument;
    allocations_left = 0;
    s->status = NtWaitForAlertByThreadId(HINT, s->timeout);
    allocations_left = -1;
}

static void start_sleeper(sleeper *s, PLARGE_INTEGER timeout)
{
    memset(s, 0, sizeof(*s));
    s->timeout = timeout;
    start_actor(&s->actor);
}

static void begin(sleeper *s)
{
    tell(&s->actor, sleep_until_alerted, s);
    await(is_committed(s->actor.thread));
}

static NTSTATUS result(sleeper *s)
{
    await(is_idle(&s->actor));
    return s->status;
}

static HANDLE id_of(PKTHREAD thread)
{
    return PsGetThreadId((PETHREAD)thread);
}

static NTSTATUS alert(sleeper *s)
{
    return NtAlertThreadByThreadId(id_of(s->actor.thread));
}

static HANDLE own_id(void)
{
    return PsGetCurrentThreadId();
}

static NTSTATUS look(void)
{
    return NtWaitForAlertByThreadId(NULL, NO_TIME);
}

/* 1 */
static void an_alert_is_kept_and_two_are_one(void **state)
{
    (void)state;
    assert_int_equal(look(), STATUS_TIMEOUT);
    assert_int_equal(NtAlertThreadByThreadId(own_id()), STATUS_SUCCESS);
    assert_int_equal(NtWaitForAlertByThreadId(HINT, NULL), STATUS_ALERTED);
    assert_int_equal(look(), STATUS_TIMEOUT);
    assert_int_equal(NtAlertThreadByThreadId(own_id()), STATUS_SUCCESS);
    assert_int_equal(NtAlertThreadByThreadId(own_id()), STATUS_SUCCESS);
    assert_int_equal(look(), STATUS_ALERTED);
    assert_int_equal(look(), STATUS_TIMEOUT);
}

static void a_waiter_is_alerted(void **state)
{
    sleeper s;
    (void)state;
    start_sleeper(&s, NULL);
    for (int round = 0; round < 3; round += 1) {
        begin(&s);
        assert_int_equal(alert(&s), STATUS_SUCCESS);
        assert_int_equal(result(&s), STATUS_ALERTED);
    }
    s.timeout = NO_TIME;
    run_on(&s.actor, sleep_until_alerted, &s);
    assert_int_equal(s.status, STATUS_TIMEOUT);
    end_actor(&s.actor);
    assert_int_equal(allocations_refused, 0);
}

/* 4 */
static void the_wait_shows_its_hint(void **state)
{
    LARGE_INTEGER timeout = relative(1000 * SECOND);
    sleeper s;
    (void)state;
    start_sleeper(&s, &timeout);
    begin(&s);
    PKTHREAD thread = s.actor.thread;
    assert_int_equal(thread->WaitReason, WrAlertByThreadId);
    assert_int_equal(thread->WaitMode, UserMode);
    assert_false(thread->Alertable);
    assert_int_equal(thread->WaitBlockCount, 1);
    assert_int_equal(thread->WaitBlockList[0].WaitType, KI_HINT_BLOCK);
    assert_ptr_equal(thread->WaitBlockList[0].Object, HINT);
    assert_ptr_equal(thread->WaitBlockList[0].Thread, thread);
    assert_int_equal(alert(&s), STATUS_SUCCESS);
    assert_int_equal(result(&s), STATUS_ALERTED);
    end_actor(&s.actor);
}

/* 3 */
static volatile ULONG host_waits;
static HAL_DISPATCH host;

static BOOLEAN count_wait(volatile ULONG *address, ULONG expected, const HAL_DEADLINE *deadline)
{
    host_waits += 1;
    return host.Wait(address, expected, deadline);
}

static void a_pending_alert_does_not_sleep(void **state)
{
    LARGE_INTEGER short_time = relative(MILLISECOND);
    (void)state;
    host = HalDispatch;
    HalDispatch.Wait = count_wait;
    for (int round = 0; round < 10; round += 1) {
        NtAlertThreadByThreadId(own_id());
        assert_int_equal(NtWaitForAlertByThreadId(HINT, NULL), STATUS_ALERTED);
    }
    assert_int_equal(look(), STATUS_TIMEOUT);
    assert_int_equal(host_waits, 0);
    assert_int_equal(NtWaitForAlertByThreadId(HINT, &short_time), STATUS_TIMEOUT);
    assert_int_not_equal(host_waits, 0);
    HalDispatch = host;
}

static void timeouts(void **state)
{
    LARGE_INTEGER rows[] = {relative(5 * MILLISECOND), absolute(5 * MILLISECOND), absolute(-SECOND),
                            {.QuadPart = 1}, {.QuadPart = 0}};
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i += 1) {
        assert_int_equal(NtWaitForAlertByThreadId(HINT, &rows[i]), STATUS_TIMEOUT);
    }
    LARGE_INTEGER due = absolute(20 * MILLISECOND);
    assert_int_equal(NtWaitForAlertByThreadId(HINT, &due), STATUS_TIMEOUT);
    assert_true(HalDispatch.QuerySystemTime() >= (ULONGLONG)due.QuadPart);
}

/* Ids. */

static void ids_that_nobody_has(void **state)
{
    static const ULONG_PTR rows[] = {0, 0x7fffffff, 0xffffffff, 0x100000000, ~(ULONG_PTR)0};
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i += 1) {
        assert_int_equal(NtAlertThreadByThreadId((HANDLE)rows[i]), STATUS_INVALID_CID);
    }
    assert_int_equal(NtAlertThreadByThreadId((HANDLE)((ULONG_PTR)own_id() + 0x100000000)), STATUS_INVALID_CID);
    assert_int_equal(look(), STATUS_TIMEOUT);
}

static VOID return_at_once(PVOID context)
{
    UNREFERENCED_PARAMETER(context);
}

static void a_thread_that_has_ended(void **state)
{
    CLIENT_ID id = {0};
    HANDLE handle;
    PVOID thread;
    NTSTATUS status;
    (void)state;
    assert_int_equal(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, &id, return_at_once, NULL), 0);
    assert_int_equal(ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, *PsThreadType, KernelMode, &thread, NULL), 0);
    assert_int_equal(wait_for(thread, NULL), STATUS_SUCCESS);
    ObDereferenceObject(thread);
    assert_int_equal(NtAlertThreadByThreadId(id.UniqueThread), STATUS_SUCCESS);
    assert_int_equal(NtAlertThreadByThreadId(id.UniqueThread), STATUS_SUCCESS);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    /* the thread drops its own reference shortly after it is signaled */
    await((status = NtAlertThreadByThreadId(id.UniqueThread)) != STATUS_SUCCESS);
    assert_int_equal(status, STATUS_INVALID_CID);
}

static void a_thread_of_another_process(void **state)
{
    int pipes[2];
    int status;
    char end;
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        close(pipes[1]);
        _exit(read(pipes[0], &end, 1) == 0 ? 0 : 1);
    }
    assert_int_equal(NtAlertThreadByThreadId((HANDLE)(ULONG_PTR)child), STATUS_ACCESS_DENIED);
    assert_int_equal(NtAlertThreadByThreadId((HANDLE)1), STATUS_ACCESS_DENIED);
    close(pipes[1]);
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(NtAlertThreadByThreadId((HANDLE)(ULONG_PTR)child), STATUS_INVALID_CID);
}

/* In a child the ids of the parent's threads belong to another process, and no alert is lost. */
static void after_a_fork(void **state)
{
    sleeper s;
    int status;
    (void)state;
    start_sleeper(&s, NULL);
    begin(&s);
    HANDLE theirs = id_of(s.actor.thread);
    HANDLE ours = own_id();
    pid_t child = fork();
    if (child == 0) {
        BOOLEAN fine = NtAlertThreadByThreadId(theirs) == STATUS_ACCESS_DENIED &&
                       NtAlertThreadByThreadId(ours) == STATUS_ACCESS_DENIED && look() == STATUS_TIMEOUT &&
                       NtAlertThreadByThreadId(own_id()) == STATUS_SUCCESS && look() == STATUS_ALERTED;
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_committed(s.actor.thread));
    assert_int_equal(alert(&s), STATUS_SUCCESS);
    assert_int_equal(result(&s), STATUS_ALERTED);
    end_actor(&s.actor);
}

/* A thread of this process that has never called the library cannot have a pending alert. */
static struct {
    volatile pid_t id;
    sem_t end;
} stranger;

static void *be_stranger(void *argument)
{
    (void)argument;
    __atomic_store_n(&stranger.id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (sem_wait(&stranger.end) != 0) {
    }
    return NULL;
}

static void a_thread_that_never_called_in(void **state)
{
    pthread_t thread;
    (void)state;
    assert_int_equal(sem_init(&stranger.end, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, be_stranger, NULL), 0);
    await(__atomic_load_n(&stranger.id, __ATOMIC_ACQUIRE) != 0);
    assert_int_equal(NtAlertThreadByThreadId((HANDLE)(ULONG_PTR)stranger.id), STATUS_INVALID_CID);
    sem_post(&stranger.end);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void the_other_forms(void **state)
{
    sleeper s[2];
    ULONG_PTR word = 0;
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(s); i += 1) {
        start_sleeper(&s[i], NULL);
        begin(&s[i]);
    }
    assert_int_equal(NtAlertThreadByThreadIdEx(id_of(s[0].actor.thread), NULL), STATUS_SUCCESS);
    assert_int_equal(result(&s[0]), STATUS_ALERTED);
    assert_int_equal(NtAlertThreadByThreadIdEx(NULL, NULL), STATUS_INVALID_CID);
    assert_int_equal(NtAlertThreadByThreadIdEx(own_id(), (PRTL_SRWLOCK)(PVOID)&word), STATUS_SUCCESS);
    assert_int_equal(look(), STATUS_ALERTED);
    assert_int_equal(word, 0);

    begin(&s[0]);
    HANDLE ids[] = {id_of(s[0].actor.thread), id_of(s[1].actor.thread), own_id()};
    assert_int_equal(NtAlertMultipleThreadByThreadId(ids, ARRAYSIZE(ids), NULL, 0), STATUS_SUCCESS);
    assert_int_equal(result(&s[0]), STATUS_ALERTED);
    assert_int_equal(result(&s[1]), STATUS_ALERTED);
    assert_int_equal(look(), STATUS_ALERTED);

    HANDLE mixed[] = {own_id(), (HANDLE)1, NULL}; /* one bad id, and no thread is alerted */
    assert_int_equal(NtAlertMultipleThreadByThreadId(mixed, ARRAYSIZE(mixed), NULL, 0), STATUS_ACCESS_DENIED);
    assert_int_equal(look(), STATUS_TIMEOUT);
    mixed[1] = NULL;
    assert_int_equal(NtAlertMultipleThreadByThreadId(mixed, ARRAYSIZE(mixed), NULL, 0), STATUS_INVALID_CID);
    assert_int_equal(look(), STATUS_TIMEOUT);
    assert_int_equal(NtAlertMultipleThreadByThreadId(NULL, 1, NULL, 0), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtAlertMultipleThreadByThreadId(NULL, 0, NULL, 0), STATUS_SUCCESS);
    for (size_t i = 0; i < ARRAYSIZE(s); i += 1) {
        end_actor(&s[i].actor);
    }
}

/* Together with other waits and interruptions. */

static void it_is_not_alertable(void **state)
{
    sleeper s;
    (void)state;
    start_sleeper(&s, NULL);
    begin(&s);
    KeAlertThread(s.actor.thread, UserMode);
    KeAlertThread(s.actor.thread, KernelMode);
    assert_true(is_committed(s.actor.thread));
    assert_int_equal(alert(&s), STATUS_SUCCESS);
    assert_int_equal(result(&s), STATUS_ALERTED);
    assert_true(s.actor.thread->WaitRegister & KI_WAIT_ALERTED(UserMode));
    end_actor(&s.actor);
}

static void other_waits_do_not_see_it(void **state)
{
    KEVENT event;
    waiter w;
    sleeper s = {.timeout = NO_TIME};
    (void)state;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    start_waiters(&w, 1);
    w.call = (wait_call){.count = 1, .object = {&event}, .alertable = TRUE, .mode = UserMode};
    begin_wait(&w);
    assert_int_equal(NtAlertThreadByThreadId(id_of(w.actor.thread)), STATUS_SUCCESS);
    assert_true(still_waits(&w));
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_WAIT_0);
    run_on(&w.actor, sleep_until_alerted, &s);
    assert_int_equal(s.status, STATUS_ALERTED);
    end_waiters(&w, 1);
}

static volatile ULONG apcs_run;

static VOID count_apc(PKAPC apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *first, PVOID *second)
{
    UNREFERENCED_PARAMETER(apc);
    UNREFERENCED_PARAMETER(normal);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    __atomic_add_fetch(&apcs_run, 1, __ATOMIC_ACQ_REL);
}

static void a_kernel_apc_interrupts_it_and_it_goes_on(void **state)
{
    sleeper s;
    KAPC apc;
    (void)state;
    start_sleeper(&s, NULL);
    begin(&s);
    KeInitializeApc(&apc, s.actor.thread, OriginalApcEnvironment, count_apc, NULL, NULL, KernelMode, NULL);
    assert_true(KeInsertQueueApc(&apc, NULL, NULL, 0));
    await(__atomic_load_n(&apcs_run, __ATOMIC_ACQUIRE) == 1);
    await(is_committed(s.actor.thread));
    assert_ptr_equal(s.actor.thread->WaitBlockList[0].Object, HINT);
    assert_int_equal(alert(&s), STATUS_SUCCESS);
    assert_int_equal(result(&s), STATUS_ALERTED);
    end_actor(&s.actor);
}

static void a_suspension_converts_it(void **state)
{
    sleeper s;
    (void)state;
    start_sleeper(&s, NULL);
    begin(&s);
    KeSuspendThread(s.actor.thread);
    assert_int_equal(wait_state(s.actor.thread), WaitSuspended);
    assert_int_equal(alert(&s), STATUS_SUCCESS);
    assert_int_equal(wait_state(s.actor.thread), WaitSuspended);
    KeResumeThread(s.actor.thread);
    assert_int_equal(result(&s), STATUS_ALERTED);

    begin(&s);
    KeSuspendThread(s.actor.thread);
    KeResumeThread(s.actor.thread);
    assert_true(is_committed(s.actor.thread));
    assert_int_equal(alert(&s), STATUS_SUCCESS);
    assert_int_equal(result(&s), STATUS_ALERTED);
    end_actor(&s.actor);
}

/* On a slow machine the deadline may pass before the thread is suspended: then try again. */
static void suspend_in_time(sleeper *s)
{
    for (;;) {
        tell(&s->actor, sleep_until_alerted, s);
        await(is_committed(s->actor.thread) || is_idle(&s->actor));
        KeSuspendThread(s->actor.thread);
        if (wait_state(s->actor.thread) == WaitSuspended) {
            return;
        }
        KeResumeThread(s->actor.thread);
        assert_int_equal(result(s), STATUS_TIMEOUT);
    }
}

static void a_deadline_passes_while_it_is_suspended(void **state)
{
    LARGE_INTEGER timeout = relative(100 * MILLISECOND);
    LARGE_INTEGER longer = relative(150 * MILLISECOND);
    sleeper s;
    (void)state;
    start_sleeper(&s, &timeout);
    suspend_in_time(&s);
    KeDelayExecutionThread(KernelMode, FALSE, &longer);
    assert_int_equal(wait_state(s.actor.thread), WaitSuspended);
    KeResumeThread(s.actor.thread);
    assert_int_equal(result(&s), STATUS_TIMEOUT);
    end_actor(&s.actor);
}

static void wait_at_dispatch_level(void *argument)
{
    (void)argument;
    KfRaiseIrql(DISPATCH_LEVEL);
    KeWaitForAlertByThreadId(HINT, NULL);
}

static void it_must_not_be_called_at_dispatch_level(void **state)
{
    KIRQL old;
    (void)state;
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, wait_at_dispatch_level, NULL);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_int_equal(look(), STATUS_TIMEOUT);
    KeAlertThreadById(KeGetCurrentThread());
    assert_int_equal(look(), STATUS_ALERTED);
    KeLowerIrql(old);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WATCHED(an_alert_is_kept_and_two_are_one),
        WATCHED(a_waiter_is_alerted),
        WATCHED(the_wait_shows_its_hint),
        WATCHED(a_pending_alert_does_not_sleep),
        WATCHED(timeouts),
        WATCHED(ids_that_nobody_has),
        WATCHED(a_thread_that_has_ended),
        WATCHED(a_thread_of_another_process),
        WATCHED(after_a_fork),
        WATCHED(a_thread_that_never_called_in),
        WATCHED(the_other_forms),
        WATCHED(it_is_not_alertable),
        WATCHED(other_waits_do_not_see_it),
        WATCHED(a_kernel_apc_interrupts_it_and_it_goes_on),
        WATCHED(a_suspension_converts_it),
        WATCHED(a_deadline_passes_while_it_is_suspended),
        cmocka_unit_test(it_must_not_be_called_at_dispatch_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
