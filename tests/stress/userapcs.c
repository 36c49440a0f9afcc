/* User APCs from many threads to threads that wait, exit and are terminated: each runs once, is refused or is run down.
   */
#include "support.h"

#include <interlock/nt.h>

#include "ke/wait.h"
#include "ps/psp.h"

static volatile ULONG run, accepted, stop;
static HANDLE current;
static EX_PUSH_LOCK lock;

static VOID count(PVOID a, PVOID b, PVOID c)
{
    assert_ptr_equal(a, (PVOID)1);
    assert_ptr_equal(b, (PVOID)2);
    assert_ptr_equal(c, (PVOID)3);
    __atomic_fetch_add(&run, 1, __ATOMIC_RELAXED);
}

/* Exits only when it has found nothing queued after it was told to stop. */
static NTSTATUS receive(PVOID argument)
{
    LARGE_INTEGER moment = {.QuadPart = -1000};
    volatile ULONG *last = argument;

    while (!__atomic_load_n(last, __ATOMIC_ACQUIRE))
        NtDelayExecution(TRUE, &moment);
    while (NtDelayExecution(TRUE, &moment) == STATUS_USER_APC) {
    }
    return 0;
}

static void send(unsigned index)
{
    (void)index;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        KeEnterCriticalRegion();
        ExAcquirePushLockShared(&lock);
        if (current != NULL &&
            NT_SUCCESS(NtQueueApcThread(current, count, (PVOID)1, (PVOID)2, (PVOID)3)))
            __atomic_fetch_add(&accepted, 1, __ATOMIC_RELAXED);
        ExReleasePushLockShared(&lock);
        KeLeaveCriticalRegion();
        HalDispatch.Yield();
    }
}

static void publish(HANDLE thread)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    current = thread;
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
}

static void join(HANDLE thread)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};

    assert_int_equal(NtWaitForSingleObject(thread, FALSE, &timeout), STATUS_SUCCESS);
    assert_int_equal(ObCloseHandle(thread, UserMode), 0);
}

/* A receiver that exits by itself has run every APC that was accepted; one that is terminated, some of them. */
static void replace_receivers(void)
{
    test_random random;

    random_seed(&random, 9);
    for (unsigned long round = test_rounds(300); round > 0; round--) {
        volatile ULONG last = 0;
        ULONG before = run;
        BOOLEAN end = random_below(&random, 2) != 0;
        HANDLE thread;

        __atomic_store_n(&accepted, 0, __ATOMIC_RELAXED);
        assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), receive, (PVOID)&last,
                                          random_below(&random, 2), 0, 0x40000, 0, NULL),
                         STATUS_SUCCESS);
        publish(thread);
        for (uint32_t i = random_below(&random, 20); i > 0; i--)
            HalDispatch.Yield();
        NtResumeThread(thread, NULL);
        if (end) {
            assert_int_equal(NtTerminateThread(thread, 1), 0);
            publish(NULL);
        } else {
            publish(NULL);
            __atomic_store_n(&last, 1, __ATOMIC_RELEASE);
        }
        join(thread);
        if (end)
            assert_true(run - before <= accepted);
        else
            assert_int_equal(run - before, accepted);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static void take_part(void *argument, unsigned index)
{
    (void)argument;
    if (index == 0)
        replace_receivers();
    else
        send(index);
}

static void every_apc_runs_once_or_not_at_all(void **state)
{
    (void)state;
    run_threads(3, 200, take_part, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_apc_runs_once_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
