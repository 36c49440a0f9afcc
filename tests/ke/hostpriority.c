/*
 * The library's requests to the host for a thread: in the program's order, and never for a host thread that may have
 * ended, whose id may be reused. The functions of hal are replaced by the linker (--wrap).
 */
#include "waittest.h"

#include <interlock/nt.h>

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ke/ki.h"
#include "ke/ownthread.h"

#define PATIENCE 2000 /* yields in which another thread could break the rule */

/* The simulated host, and what happens inside its next call. */
static struct {
    volatile LONG priority;
    volatile ULONG calls;
    void (*volatile inside)(ULONG thread_id);
} host;

BOOLEAN __wrap_HalSetThreadPriority(ULONG ThreadId, LONG NtPriority);
VOID __wrap_HalSetThreadName(ULONG ThreadId, PCSTR Name);
VOID __wrap_HalQueryThreadTimes(ULONG ThreadId, PULONGLONG KernelTime, PULONGLONG UserTime);

static void call_host(ULONG thread_id)
{
    void (*inside)(ULONG) = __atomic_exchange_n(&host.inside, NULL, __ATOMIC_ACQ_REL);
    if (inside != NULL) {
        inside(thread_id);
    }
    __atomic_add_fetch(&host.calls, 1, __ATOMIC_ACQ_REL);
}

BOOLEAN __wrap_HalSetThreadPriority(ULONG ThreadId, LONG NtPriority)
{
    call_host(ThreadId);
    __atomic_store_n(&host.priority, NtPriority, __ATOMIC_RELEASE);
    return TRUE;
}

VOID __wrap_HalSetThreadName(ULONG ThreadId, PCSTR Name)
{
    (void)Name;
    call_host(ThreadId);
}

VOID __wrap_HalQueryThreadTimes(ULONG ThreadId, PULONGLONG KernelTime, PULONGLONG UserTime)
{
    if (ThreadId != HalCurrentThreadId()) {
        call_host(ThreadId);
    }
    *KernelTime = *UserTime = 0;
}

static BOOLEAN is_alive(ULONG thread_id)
{
    return syscall(SYS_tgkill, getpid(), (pid_t)thread_id, 0) == 0 || errno != ESRCH;
}

/* Two threads set it concurrently: the first one is still in the host's call when the second one starts. */

static struct {
    KEVENT begin;
    volatile ULONG second_stored;
    PKTHREAD thread;
} setters;

static void let_the_second_go_first(ULONG thread_id)
{
    ULONG before = __atomic_load_n(&host.calls, __ATOMIC_ACQUIRE);
    (void)thread_id;
    KeSetEvent(&setters.begin, 0, FALSE);
    await(__atomic_load_n(&setters.thread->Priority, __ATOMIC_RELAXED) == 12);
    for (ULONG i = 0; i < PATIENCE && __atomic_load_n(&host.calls, __ATOMIC_ACQUIRE) == before; i += 1) {
        HalDispatch.Yield();
    }
}

static void set_priority_second(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    KeWaitForSingleObject(&setters.begin, Executive, KernelMode, FALSE, NULL);
    KeSetPriorityThread(setters.thread, 12);
}

static void set_base_priority_second(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    KeWaitForSingleObject(&setters.begin, Executive, KernelMode, FALSE, NULL);
    KeSetBasePriorityThread(setters.thread, 4);
}

static void test_the_last_one_wins(void **state)
{
    test_thread_function *const second[] = {set_priority_second, set_base_priority_second};
    (void)state;
    setters.thread = KeGetCurrentThread();
    for (ULONG i = 0; i < ARRAYSIZE(second); i += 1) {
        KeInitializeEvent(&setters.begin, SynchronizationEvent, FALSE);
        test_threads *threads = start_threads(1, second[i], NULL);
        __atomic_store_n(&host.inside, let_the_second_go_first, __ATOMIC_RELEASE);
        KeSetPriorityThread(setters.thread, 10);
        join_threads(threads, 60);
        assert_int_equal(setters.thread->Priority, 12);
        assert_int_equal(host.priority, 12);
        KeSetBasePriorityThread(setters.thread, 0);
        assert_int_equal(host.priority, 8);
    }
}

static void set_at_random(void *argument, unsigned index)
{
    test_random random;
    (void)argument;
    random_seed(&random, index + 1);
    for (unsigned long round = test_rounds(20000); round != 0; round -= 1) {
        KPRIORITY priority = 1 + (KPRIORITY)random_below(&random, 15);
        if (random_below(&random, 2)) {
            KeSetPriorityThread(setters.thread, priority);
        } else {
            KeSetBasePriorityThread(setters.thread, priority - 8);
        }
    }
}

static void test_many_setters(void **state)
{
    (void)state;
    setters.thread = KeGetCurrentThread();
    for (unsigned round = 0; round < 5; round += 1) {
        run_threads(3, 60, set_at_random, NULL);
        assert_int_equal(host.priority, setters.thread->Priority);
    }
    KeSetBasePriorityThread(setters.thread, 0);
}

/* A thread ends while another one is in a call of the host for it. */

static struct {
    PKTHREAD thread;
    HANDLE handle;
    KEVENT ready, end;
    void (*end_it)(void);
    BOOLEAN died_inside;
} victim;

static void be_a_victim(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    victim.thread = KeGetCurrentThread();
    ObReferenceObject(victim.thread);
    check(ObOpenObjectByPointer(victim.thread, 0, NULL, THREAD_ALL_ACCESS, NULL, KernelMode, &victim.handle) ==
          STATUS_SUCCESS);
    KeSetEvent(&victim.ready, 0, FALSE);
    KeWaitForSingleObject(&victim.end, Executive, UserMode, FALSE, NULL);
}

static void end_by_return(void)
{
    KeSetEvent(&victim.end, 0, FALSE);
}

static void end_the_victim(ULONG thread_id)
{
    if (!is_alive(thread_id)) {
        victim.died_inside = TRUE;
        return;
    }
    victim.end_it();
    for (ULONG i = 0; i < PATIENCE && !victim.died_inside; i += 1) {
        HalDispatch.Yield();
        victim.died_inside = !is_alive(thread_id);
    }
}

static void set_its_priority(void)
{
    KeSetPriorityThread(victim.thread, 10);
}

static void set_its_name(void)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"victim");
    THREAD_NAME_INFORMATION information = {.ThreadName = name};
    assert_int_equal(NtSetInformationThread(victim.handle, ThreadNameInformation, &information, sizeof(information)),
                     STATUS_SUCCESS);
}

static void query_its_times(void)
{
    KERNEL_USER_TIMES times;
    assert_int_equal(NtQueryInformationThread(victim.handle, ThreadTimes, &times, sizeof(times), NULL), STATUS_SUCCESS);
}

static void test_ending_threads(void **state)
{
    static void (*const uses[])(void) = {set_its_priority, set_its_name, query_its_times};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(uses); i += 1) {
        KeInitializeEvent(&victim.ready, SynchronizationEvent, FALSE);
        KeInitializeEvent(&victim.end, SynchronizationEvent, FALSE);
        victim.end_it = end_by_return;
        victim.died_inside = FALSE;
        test_threads *threads = start_threads(1, be_a_victim, NULL);
        KeWaitForSingleObject(&victim.ready, Executive, KernelMode, FALSE, NULL);
        __atomic_store_n(&host.inside, end_the_victim, __ATOMIC_RELEASE);
        uses[i]();
        join_threads(threads, 60);
        if (victim.died_inside) {
            fail_msg("use %u: the thread ended in the middle of the host's call", (unsigned)i);
        }
        /* One that has ended is left alone. */
        KeWaitForSingleObject(victim.thread, Executive, KernelMode, FALSE, NULL);
        ULONG calls = host.calls;
        uses[i]();
        assert_int_equal(host.calls, calls);
        NtClose(victim.handle);
        ObDereferenceObject(victim.thread);
    }
}

/* Threads of the library's own that start after the process was set. */

static struct {
    volatile KPRIORITY priority;
    volatile LONG host_priority;
    volatile KAFFINITY processors;
    volatile ULONG ran;
} own;

static VOID become_own_thread(PVOID context)
{
    PKTHREAD thread = KiBecomeOwnThread();
    (void)context;
    own.priority = thread->Priority;
    own.host_priority = __atomic_load_n(&host.priority, __ATOMIC_ACQUIRE);
    own.processors = thread->UserAffinity.Mask;
    __atomic_store_n(&own.ran, 1, __ATOMIC_RELEASE);
}

static void test_own_threads_are_not_affected(void **state)
{
    static const KI_OWN_KIND kind = {.Name = "interlock-test", .Routine = become_own_thread};
    (void)state;
    KiSetProcessBasePriority(4);
    assert_true(KiSetProcessAffinity(1));
    assert_int_equal(KiCreateOwnThread(&kind, NULL, 0), STATUS_SUCCESS);
    await(__atomic_load_n(&own.ran, __ATOMIC_ACQUIRE) != 0);
    KiSetProcessBasePriority(KI_NORMAL_PRIORITY);
    assert_true(KiSetProcessAffinity(KeQueryGroupAffinity(0)));
    assert_int_equal(own.priority, KI_NORMAL_PRIORITY);
    assert_int_equal(own.host_priority, KI_NORMAL_PRIORITY);
    assert_int_equal(own.processors, KeQueryGroupAffinity(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_one_wins),
        cmocka_unit_test(test_own_threads_are_not_affected),
        cmocka_unit_test(test_many_setters),
        cmocka_unit_test(test_ending_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
