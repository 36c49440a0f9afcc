#include "support.h"

#include <interlock/ps.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ke/ki.h"

/* In the child a failed check ends the process with the line it is on. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "child: line %d: %s\n", __LINE__, #condition);                                             \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void in_child(void (*function)(void *), void *argument)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        alarm(60 * test_slowdown());
        function(argument);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static NTSTATUS wait_ms(PVOID object, LONG milliseconds)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000LL * milliseconds};

    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &timeout);
}

static VOID set_event(PVOID event)
{
    KeSetEvent(event, 0, FALSE);
}

/* What a child uses: threads, waits, timers, handles. */
static void use_everything(void *argument)
{
    LARGE_INTEGER soon = {.QuadPart = -10000};
    KEVENT event;
    KTIMER timer;
    HANDLE handle;
    PVOID thread;

    (void)argument;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    CHECK(wait_ms(&event, 1) == STATUS_TIMEOUT);
    CHECK(NT_SUCCESS(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, set_event, &event)));
    CHECK(NT_SUCCESS(ObReferenceObjectByHandle(handle, SYNCHRONIZE, *PsThreadType, KernelMode, &thread, NULL)));
    CHECK(ZwClose(handle) == STATUS_SUCCESS);
    CHECK(wait_ms(&event, 30000) == STATUS_SUCCESS);
    CHECK(wait_ms(thread, 30000) == STATUS_SUCCESS);
    ObDereferenceObject(thread);
    KeInitializeTimer(&timer);
    KeSetTimer(&timer, soon, NULL);
    CHECK(wait_ms(&timer, 30000) == STATUS_SUCCESS);
}

static void check_identity(void *parent)
{
    PKTHREAD thread = KeGetCurrentThread();

    CHECK(thread == parent);
    CHECK(thread->ThreadId == (ULONG)getpid());
    CHECK((pid_t)(uintptr_t)PsGetCurrentProcessId() == getpid());
    CHECK(KiLookupThreadById((ULONG)getpid()) == thread);
    CHECK(KiLookupThreadById((ULONG)getppid()) == NULL);
    use_everything(NULL);
    in_child(use_everything, NULL);
}

static void the_child_is_itself(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();

    (void)state;
    in_child(check_identity, thread);
    assert_int_equal(thread->ThreadId, gettid());
    assert_int_equal((uintptr_t)PsGetCurrentProcessId(), getpid());
    assert_ptr_equal(KiLookupThreadById((ULONG)gettid()), thread);
}

static void fork_unadopted(void *argument)
{
    (void)argument;
    in_child(use_everything, NULL);
}

static void *run_unadopted(void *argument)
{
    fork_unadopted(argument);
    return NULL;
}

static void a_thread_that_never_called_in_forks(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, run_unadopted, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

struct others {
    KMUTANT mutant;
    KEVENT owned;
    KEVENT first, second;
    KEVENT synchronization;
    KSEMAPHORE end;
    KQUEUE queue;
    PKTHREAD threads[4];
};

static void be_another(void *argument, unsigned index)
{
    struct others *others = argument;
    PVOID both[] = {&others->first, &others->second};

    others->threads[index] = KeGetCurrentThread();
    ObReferenceObject(others->threads[index]);
    switch (index) {
    case 0:
        KeWaitForSingleObject(&others->mutant, Executive, KernelMode, FALSE, NULL);
        KeSetEvent(&others->owned, 0, FALSE);
        KeWaitForSingleObject(&others->end, Executive, KernelMode, FALSE, NULL);
        KeReleaseMutant(&others->mutant, 0, FALSE, FALSE);
        break;
    case 1:
        KeWaitForSingleObject(&others->synchronization, Executive, UserMode, TRUE, NULL);
        break;
    case 2:
        KeWaitForMultipleObjects(2, both, WaitAll, Executive, KernelMode, FALSE, NULL, NULL);
        break;
    default:
        KeRemoveQueue(&others->queue, KernelMode, NULL);
        break;
    }
}

static bool has_waiters(PVOID object)
{
    return (__atomic_load_n(&((PDISPATCHER_HEADER)object)->Type, __ATOMIC_ACQUIRE) & KOBJECT_WAITERS_BIT) != 0;
}

static void check_without_others(void *argument)
{
    struct others *others = argument;
    LIST_ENTRY entry;
    LARGE_INTEGER zero = {.QuadPart = 0};

    for (int i = 0; i < 4; i++) {
        CHECK(others->threads[i]->State == Terminated);
        CHECK(wait_ms(others->threads[i], 0) == STATUS_SUCCESS);
        ObDereferenceObject(others->threads[i]);
    }
    CHECK(!has_waiters(&others->synchronization) && !has_waiters(&others->first) && !has_waiters(&others->second));
    CHECK(!has_waiters(&others->queue) && !has_waiters(&others->end));
    CHECK(wait_ms(&others->mutant, 0) == STATUS_ABANDONED);
    KeReleaseMutant(&others->mutant, 0, FALSE, FALSE);
    KeSetEvent(&others->synchronization, 0, FALSE);
    CHECK(KeReadStateEvent(&others->synchronization) == 1);
    KeSetEvent(&others->first, 0, FALSE);
    KeSetEvent(&others->second, 0, FALSE);
    CHECK(KeReadStateEvent(&others->first) == 1 && KeReadStateEvent(&others->second) == 1);
    KeInsertQueue(&others->queue, &entry);
    CHECK(KeRemoveQueue(&others->queue, KernelMode, &zero) == &entry);
    use_everything(NULL);
}

static void threads_that_stay_behind_have_ended(void **state)
{
    struct others others;
    LIST_ENTRY entry;
    test_threads *threads;

    (void)state;
    KeInitializeMutant(&others.mutant, FALSE);
    KeInitializeEvent(&others.owned, NotificationEvent, FALSE);
    KeInitializeEvent(&others.first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&others.second, SynchronizationEvent, FALSE);
    KeInitializeEvent(&others.synchronization, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&others.end, 0, 1);
    KeInitializeQueue(&others.queue, 1);
    threads = start_threads(4, be_another, &others);
    watchdog_start(60);
    assert_int_equal(wait_ms(&others.owned, 30000), STATUS_SUCCESS);
    while (!has_waiters(&others.synchronization) || !has_waiters(&others.first) || !has_waiters(&others.second) ||
           !has_waiters(&others.queue) || !has_waiters(&others.end))
        HalDispatch.Yield();
    in_child(check_without_others, &others);
    watchdog_stop();

    KeReleaseSemaphore(&others.end, 0, 1, FALSE);
    KeSetEvent(&others.synchronization, 0, FALSE);
    KeSetEvent(&others.first, 0, FALSE);
    KeSetEvent(&others.second, 0, FALSE);
    KeInsertQueue(&others.queue, &entry);
    join_threads(threads, 60);
    for (int i = 0; i < 4; i++)
        ObDereferenceObject(others.threads[i]);
    assert_int_equal(wait_ms(&others.mutant, 0), STATUS_SUCCESS);
    KeReleaseMutant(&others.mutant, 0, FALSE, FALSE);
}

static void prepare_calls_in(void)
{
    KEVENT event;

    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeSetEvent(&event, 0, FALSE);
    wait_ms(&event, 0);
    wait_ms(&event, 1);
    KeQueryPriorityThread(KeGetCurrentThread());
}

static void fork_handlers_of_the_program_may_call_in(void **state)
{
    (void)state;
    /* after the library's own: runs first before the fork, last after it */
    assert_int_equal(pthread_atfork(prepare_calls_in, prepare_calls_in, prepare_calls_in), 0);
    in_child(use_everything, NULL);
}

struct entering {
    PKTHREAD volatile thread;
    volatile LONG entered;
};

static void enter_section(void *argument, unsigned index)
{
    struct entering *entering = argument;
    PKTHREAD thread = KeGetCurrentThread();

    (void)index;
    __atomic_store_n(&entering->thread, thread, __ATOMIC_RELEASE);
    KiEnterDispatcher(thread);
    __atomic_store_n(&entering->entered, (LONG)thread->DispatcherDepth, __ATOMIC_RELEASE);
    KiEnterDispatcher(thread);
    KiExitDispatcher(thread);
    KiExitDispatcher(thread);
}

static void sections_wait_for_the_fork(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    struct entering entering = {0};
    test_threads *threads;

    (void)state;
    KiForkPrepare();
    threads = start_threads(1, enter_section, &entering);
    while (__atomic_load_n(&entering.thread, __ATOMIC_ACQUIRE) == NULL)
        HalDispatch.Yield();
    /* The forker itself passes. */
    KiEnterDispatcher(thread);
    KiEnterDispatcher(thread);
    assert_int_equal(thread->DispatcherDepth, 2);
    KiExitDispatcher(thread);
    KiExitDispatcher(thread);
    usleep(20000);
    assert_int_equal(__atomic_load_n(&entering.entered, __ATOMIC_ACQUIRE), 0);
    KiForkParent(TRUE);
    KiForkParentLate();
    join_threads(threads, 20);
    assert_int_equal(entering.entered, 1);
    assert_int_equal(KiForkPending, 0);
}

struct inside {
    volatile ULONG entered;
    volatile ULONG leaves;
};

static void leave_section_late(void *argument, unsigned index)
{
    struct inside *inside = argument;
    PKTHREAD thread = KeGetCurrentThread();

    (void)index;
    KiEnterDispatcher(thread);
    __atomic_store_n(&inside->entered, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&KiForkPending, __ATOMIC_ACQUIRE) == 0)
        HalDispatch.Yield();
    usleep(20000);
    __atomic_store_n(&inside->leaves, 1, __ATOMIC_RELEASE);
    KiExitDispatcher(thread);
}

static void the_fork_waits_for_sections(void **state)
{
    struct inside inside = {0};
    test_threads *threads = start_threads(1, leave_section_late, &inside);

    (void)state;
    while (__atomic_load_n(&inside.entered, __ATOMIC_ACQUIRE) == 0)
        HalDispatch.Yield();
    KiForkPrepare();
    ULONG left = __atomic_load_n(&inside.leaves, __ATOMIC_ACQUIRE);
    KiForkParent(TRUE);
    KiForkParentLate();
    join_threads(threads, 20);
    assert_int_equal(left, 1);
}

static void fork_second(void *ended, unsigned index)
{
    (void)index;
    KiForkPrepare();
    if (!__atomic_load_n((volatile ULONG *)ended, __ATOMIC_ACQUIRE))
        abort();
    KiForkParent(TRUE);
    KiForkParentLate();
}

static void forks_take_turns(void **state)
{
    volatile ULONG ended = 0;
    test_threads *threads;

    (void)state;
    KiForkPrepare();
    threads = start_threads(1, fork_second, (void *)&ended);
    usleep(20000);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    KiForkParent(TRUE);
    KiForkParentLate();
    join_threads(threads, 20);
    assert_int_equal(KiForkPending, 0);
}

struct waiting {
    KEVENT end;
    PKTHREAD volatile thread;
    KAPC apc;
    volatile ULONG rundowns;
};

static VOID never_run(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)apc;
    (void)routine;
    (void)context;
    (void)argument1;
    (void)argument2;
    abort();
}

static VOID never_called(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)context;
    (void)argument1;
    (void)argument2;
    abort();
}

static VOID count_rundown(PKAPC apc)
{
    CONTAINING_RECORD(apc, struct waiting, apc)->rundowns += 1;
}

static void wait_unalertably(void *argument, unsigned index)
{
    struct waiting *waiting = argument;

    (void)index;
    __atomic_store_n(&waiting->thread, KeGetCurrentThread(), __ATOMIC_RELEASE);
    KeWaitForSingleObject(&waiting->end, Executive, KernelMode, FALSE, NULL);
}

static void check_rundown(void *argument)
{
    struct waiting *waiting = argument;

    CHECK(waiting->rundowns == 1);
}

static void apcs_of_threads_that_stay_behind_are_run_down(void **state)
{
    struct waiting waiting = {0};
    test_threads *threads;

    (void)state;
    KeInitializeEvent(&waiting.end, NotificationEvent, FALSE);
    threads = start_threads(1, wait_unalertably, &waiting);
    while (!has_waiters(&waiting.end))
        HalDispatch.Yield();
    KeInitializeApc(&waiting.apc, waiting.thread, OriginalApcEnvironment, never_run, count_rundown, never_called, UserMode, NULL);
    assert_true(KeInsertQueueApc(&waiting.apc, NULL, NULL, 0));
    in_child(check_rundown, &waiting);
    assert_int_equal(waiting.rundowns, 0);
    KeSetEvent(&waiting.end, 0, FALSE);
    join_threads(threads, 20);
    assert_int_equal(waiting.rundowns, 1);
}

struct uninterrupted {
    PKTHREAD volatile thread;
    volatile ULONG stop;
    KAPC apc;
    volatile ULONG runs;
    volatile ULONG rundowns;
};

static VOID count_run(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    (void)routine;
    (void)context;
    (void)argument1;
    (void)argument2;
    CONTAINING_RECORD(apc, struct uninterrupted, apc)->runs += 1;
}

static VOID count_other_rundown(PKAPC apc)
{
    CONTAINING_RECORD(apc, struct uninterrupted, apc)->rundowns += 1;
}

static void run_uninterrupted(void *argument, unsigned index)
{
    struct uninterrupted *uninterrupted = argument;
    sigset_t all, before;

    (void)index;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    __atomic_store_n(&uninterrupted->thread, KeGetCurrentThread(), __ATOMIC_RELEASE);
    while (__atomic_load_n(&uninterrupted->stop, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void check_not_run(void *argument)
{
    struct uninterrupted *uninterrupted = argument;

    CHECK(uninterrupted->runs == 0);
    CHECK(uninterrupted->rundowns == 1);
}

/* The thread was about to be interrupted for it. */
static void an_apc_of_a_running_thread_is_not_delivered_in_the_child(void **state)
{
    struct uninterrupted uninterrupted = {0};
    test_threads *threads = start_threads(1, run_uninterrupted, &uninterrupted);

    (void)state;
    while (__atomic_load_n(&uninterrupted.thread, __ATOMIC_ACQUIRE) == NULL)
        HalDispatch.Yield();
    KeInitializeApc(&uninterrupted.apc, uninterrupted.thread, OriginalApcEnvironment, count_run, count_other_rundown, NULL,
                    KernelMode, NULL);
    assert_true(KeInsertQueueApc(&uninterrupted.apc, NULL, NULL, 0));
    in_child(check_not_run, &uninterrupted);
    __atomic_store_n(&uninterrupted.stop, 1, __ATOMIC_RELEASE);
    join_threads(threads, 20);
    assert_int_equal(uninterrupted.runs + uninterrupted.rundowns, 1);
}

static void check_slot_is_free(void *thread)
{
    for (ULONG count = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_ACQUIRE); count != 0; count--) {
        if (KiAllocateThread() == thread)
            return;
    }
    CHECK(!"the slot is lost");
}

/* A thread of the parent had taken it, and was not in use yet. */
static void a_slot_that_was_being_taken_is_free_in_the_child(void **state)
{
    PKTHREAD thread = KiAllocateThread();

    (void)state;
    assert_non_null(thread);
    __atomic_store_n(&KiSlotOfThread(thread)->Use, KiSlotFree, __ATOMIC_RELAXED);
    in_child(check_slot_is_free, thread);
    KiFreeThread(thread);
}

struct forker {
    PKTHREAD volatile thread;
    volatile ULONG suspended;
    volatile ULONG turns;
    volatile ULONG stop;
};

/* It calls nothing afterwards: only an interrupt can stop it. */
static void be_suspended_in_fork(void *argument, unsigned index)
{
    struct forker *forker = argument;
    PKTHREAD thread = KeGetCurrentThread();

    (void)index;
    thread->SpecialApcDisable -= 1;
    __atomic_store_n(&forker->thread, thread, __ATOMIC_RELEASE);
    while (__atomic_load_n(&forker->suspended, __ATOMIC_ACQUIRE) == 0)
        ;
    KiForkPrepare();
    thread->SpecialApcDisable += 1; /* as if the suspension had come while KiForkPrepare waited */
    KiForkParent(FALSE);
    while (__atomic_load_n(&forker->stop, __ATOMIC_ACQUIRE) == 0)
        forker->turns += 1;
}

static bool is_parked(PKTHREAD thread)
{
    return __atomic_load_n(&thread->State, __ATOMIC_ACQUIRE) == Waiting &&
           __atomic_load_n(&thread->WaitReason, __ATOMIC_RELAXED) == Suspended;
}

static void a_suspension_that_came_meanwhile_is_taken_without_a_call(void **state)
{
    struct forker forker = {0};
    test_threads *threads = start_threads(1, be_suspended_in_fork, &forker);

    (void)state;
    while (__atomic_load_n(&forker.thread, __ATOMIC_ACQUIRE) == NULL)
        HalDispatch.Yield();
    assert_int_equal(KeSuspendThread(forker.thread), 0);
    assert_false(is_parked(forker.thread));
    __atomic_store_n(&forker.suspended, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 10000 && !is_parked(forker.thread); i++)
        usleep(1000);
    assert_true(is_parked(forker.thread));
    __atomic_store_n(&forker.stop, 1, __ATOMIC_RELEASE);
    assert_int_equal(KeResumeThread(forker.thread), 1);
    join_threads(threads, 20);
}

/* Builds with the verifier check every section of every test. */

static void allocate_in_section(void)
{
    KiEnterDispatcher(KeGetCurrentThread());
    HalAllocate(16, 8);
}

static void free_in_section(void)
{
    PVOID memory = HalAllocate(16, 8);

    KiEnterDispatcher(KeGetCurrentThread());
    HalFree(memory);
}

static void no_section_uses_the_heap(void **state)
{
    void (*const uses[])(void) = {allocate_in_section, free_in_section};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            uses[i]();
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
#ifdef INTERLOCK_DEBUG
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#else
        assert_int_equal(status, 0);
#endif
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_is_itself),
        cmocka_unit_test(a_thread_that_never_called_in_forks),
        cmocka_unit_test(threads_that_stay_behind_have_ended),
        cmocka_unit_test(sections_wait_for_the_fork),
        cmocka_unit_test(the_fork_waits_for_sections),
        cmocka_unit_test(forks_take_turns),
        cmocka_unit_test(apcs_of_threads_that_stay_behind_are_run_down),
        cmocka_unit_test(an_apc_of_a_running_thread_is_not_delivered_in_the_child),
        cmocka_unit_test(a_slot_that_was_being_taken_is_free_in_the_child),
        cmocka_unit_test(a_suspension_that_came_meanwhile_is_taken_without_a_call),
        cmocka_unit_test(fork_handlers_of_the_program_may_call_in),
        cmocka_unit_test(no_section_uses_the_heap),
    };

    return cmocka_run_group_tests_name("ke/fork", tests, NULL, NULL);
}
