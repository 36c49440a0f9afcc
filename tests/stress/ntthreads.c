/* Several threads create threads, open them by id, suspend, resume, name and query them, and leave them. */
#include "support.h"

#include <interlock/nt.h>

#include "ke/wait.h"
#include "ps/psp.h"

#define SLOTS 16

static struct {
    volatile ULONG id;
    volatile ULONG started, finished;
} people[SLOTS];

static volatile ULONG stop;

static NTSTATUS live(PVOID argument)
{
    LARGE_INTEGER moment = {.QuadPart = -500};
    ULONG slot = (ULONG)(ULONG_PTR)argument;

    __atomic_store_n(&people[slot].id, HandleToULong(PsGetCurrentThreadId()), __ATOMIC_RELAXED);
    __atomic_fetch_add(&people[slot].started, 1, __ATOMIC_RELAXED);
    NtDelayExecution((slot & 1) != 0, &moment);
    __atomic_fetch_add(&people[slot].finished, 1, __ATOMIC_RELAXED);
    return (NTSTATUS)slot;
}

static void join(HANDLE thread, NTSTATUS status)
{
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};
    THREAD_BASIC_INFORMATION basic;

    assert_int_equal(NtWaitForSingleObject(thread, FALSE, &timeout), STATUS_SUCCESS);
    assert_int_equal(NtQueryInformationThread(thread, ThreadBasicInformation, &basic, sizeof(basic), NULL), 0);
    assert_int_equal(basic.ExitStatus, status);
}

/* A thread that suspends also resumes; a thread that several have suspended runs after the last resume. */
static void make(unsigned index)
{
    test_random random;

    random_seed(&random, index + 1);
    for (unsigned long round = test_rounds(400); round > 0; round--) {
        ULONG slot = index * (SLOTS / 2) + random_below(&random, SLOTS / 2);
        BOOLEAN suspended = random_below(&random, 2) != 0;
        ULONG count = 0;
        HANDLE thread;

        assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), live,
                                          (PVOID)(ULONG_PTR)slot, suspended, 0, 0x40000, 0, NULL),
                         STATUS_SUCCESS);
        if (suspended) {
            assert_int_equal(NtResumeThread(thread, &count), 0);
            assert_true(count >= 1);
        }
        join(thread, (NTSTATUS)slot);
        assert_int_equal(ObCloseHandle(thread, UserMode), 0);
    }
}

static void disturb(HANDLE thread, test_random *random)
{
    static WCHAR text[] = u"somebody";
    THREAD_NAME_INFORMATION name = {{8, 8, text}};
    KERNEL_USER_TIMES times;
    NTSTATUS status;
    UCHAR buffer[64];

    switch (random_below(random, 5)) {
    case 0:
        status = NtSuspendThread(thread, NULL);
        assert_true(status == STATUS_SUCCESS || status == STATUS_THREAD_IS_TERMINATING);
        if (NT_SUCCESS(status))
            assert_int_equal(NtResumeThread(thread, NULL), 0);
        break;
    case 1:
        assert_int_equal(NtSetInformationThread(thread, ThreadNameInformation, &name, sizeof(name)), 0);
        break;
    case 2:
        status = NtQueryInformationThread(thread, ThreadNameInformation, buffer, sizeof(buffer), NULL);
        assert_int_equal(status, 0);
        break;
    case 3:
        assert_int_equal(NtQueryInformationThread(thread, ThreadTimes, &times, sizeof(times), NULL), 0);
        break;
    default:
        assert_int_equal(NtAlertThread(thread), 0);
    }
}

static void meddle(unsigned index)
{
    OBJECT_ATTRIBUTES attributes = {.Length = sizeof(attributes)};
    test_random random;

    random_seed(&random, index + 1);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        CLIENT_ID id = {NULL, ULongToHandle(__atomic_load_n(&people[random_below(&random, SLOTS)].id,
                                                            __ATOMIC_RELAXED))};
        HANDLE thread;

        if (NT_SUCCESS(NtOpenThread(&thread, THREAD_ALL_ACCESS, &attributes, &id))) {
            disturb(thread, &random);
            assert_int_equal(ObCloseHandle(thread, UserMode), 0);
        }
    }
}

static volatile ULONG makers = 2;

static void take_part(void *argument, unsigned index)
{
    (void)argument;
    if (index >= 2) {
        meddle(index);
        return;
    }
    make(index);
    if (__atomic_sub_fetch(&makers, 1, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static void threads_come_and_go(void **state)
{
    (void)state;
    run_threads(4, 200, take_part, NULL);
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(people[i].started, people[i].finished);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
