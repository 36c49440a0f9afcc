#include "support.h"

#include <interlock/nt.h>

#include <pthread.h>

#include "ke/dispatch.h"
#include "ps/psp.h"

#define LONGEST 16

/* The calls of the routines for one thread: which of them, on which thread, in which state. */
static struct {
    PETHREAD volatile thread;
    char order[LONGEST];
    ULONG calls;
    BOOLEAN on_itself, signaled, terminated;
} seen;

static void note(PETHREAD thread, BOOLEAN terminated, char who)
{
    if (thread != seen.thread || seen.calls >= LONGEST)
        return;
    seen.order[seen.calls++] = who;
    seen.on_itself = thread == PsGetCurrentThread();
    seen.signaled |= KI_STATE(KiReadHeader(&thread->Tcb.Header)) != 0;
    seen.terminated = terminated;
}

static VOID first(PETHREAD thread, BOOLEAN terminated)
{
    note(thread, terminated, '1');
}

static VOID second(PETHREAD thread, BOOLEAN terminated)
{
    note(thread, terminated, '2');
}

static void watch(PETHREAD thread)
{
    memset(&seen, 0, sizeof(seen));
    seen.thread = thread;
}

static NTSTATUS leave(PVOID argument)
{
    watch(PsGetCurrentThread());
    if (argument == (PVOID)1)
        NtTerminateThread(NtCurrentThread(), 0);
    if (argument == (PVOID)2)
        pthread_exit(NULL);
    return 0;
}

static void *leave_host_thread(void *argument)
{
    leave(argument == (void *)1 ? (PVOID)2 : NULL);
    return NULL;
}

static void join(HANDLE thread)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};

    assert_int_equal(ZwWaitForSingleObject(thread, FALSE, &timeout), STATUS_SUCCESS);
    assert_int_equal(ObCloseHandle(thread, KernelMode), STATUS_SUCCESS);
}

/* In the order of registration, on the thread itself, before it is signaled; all of them once more or not at all. */
static void expect_orderly_end(void)
{
    assert_true(seen.calls >= 2 && seen.calls % 2 == 0);
    for (ULONG i = 0; i < seen.calls; i++)
        assert_int_equal(seen.order[i], i % 2 == 0 ? '1' : '2');
    assert_true(seen.on_itself);
    assert_false(seen.signaled);
    assert_false(seen.terminated);
}

static void every_orderly_end(void **state)
{
    (void)state;
    for (ULONG_PTR how = 0; how < 3; how++) {
        HANDLE thread;
        pthread_t host;

        assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), leave, (PVOID)how, 0, 0,
                                          0, 0, NULL),
                         STATUS_SUCCESS);
        join(thread);
        expect_orderly_end();
        assert_int_equal(pthread_create(&host, NULL, leave_host_thread, (void *)how), 0);
        pthread_join(host, NULL);
        expect_orderly_end();
    }
}

static VOID leave_system_thread(PVOID argument)
{
    watch(PsGetCurrentThread());
    if (argument != NULL)
        PsTerminateSystemThread(STATUS_SUCCESS);
}

static void the_end_of_a_system_thread(void **state)
{
    (void)state;
    for (ULONG_PTR how = 0; how < 2; how++) {
        HANDLE thread;

        assert_int_equal(
            PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, leave_system_thread, (PVOID)how), 0);
        join(thread);
        expect_orderly_end();
    }
}

static NTSTATUS stay(PVOID argument)
{
    watch(PsGetCurrentThread());
    __atomic_store_n((volatile ULONG *)argument, 1, __ATOMIC_RELEASE);
    KeWaitForSingleObject(&PsGetCurrentThread()->Tcb, Executive, UserMode, FALSE, NULL);
    return 0;
}

static void a_thread_that_is_ended(void **state)
{
    volatile ULONG ready = 0;
    HANDLE thread;

    (void)state;
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), stay, (PVOID)&ready, 0, 0, 0,
                                      0, NULL),
                     STATUS_SUCCESS);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == 0)
        HalDispatch.Yield();
    assert_int_equal(NtTerminateThread(thread, 1), STATUS_SUCCESS);
    join(thread);
    assert_int_equal(seen.calls, 2);
    assert_int_equal(seen.order[0], '1');
    assert_false(seen.on_itself);
    assert_false(seen.signaled);
    assert_true(seen.terminated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_orderly_end),
        cmocka_unit_test(the_end_of_a_system_thread),
        cmocka_unit_test(a_thread_that_is_ended),
    };

    PspRegisterThreadExit(first);
    PspRegisterThreadExit(second);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
