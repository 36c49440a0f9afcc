/* Addresses of users, local time, the resolution of the clock, whose thread and process it is. */
#include <interlock/exception.h>
#include <interlock/nt.h>
#include <interlock/ps.h>

#include "support.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096u

static NTSTATUS probe(int write, void *address, SIZE_T length, ULONG alignment)
{
    NTSTATUS status = STATUS_SUCCESS;
    __try {
        if (write) {
            ProbeForWrite(address, length, alignment);
        } else {
            ProbeForRead(address, length, alignment);
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        status = GetExceptionCode();
    }
    return status;
}

static void test_probes(void **state)
{
    char local[64] __attribute__((aligned(16)));
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ), 0);
    for (int write = 0; write < 2; write += 1) {
        assert_int_equal(probe(write, local, sizeof(local), 1), STATUS_SUCCESS);
        assert_int_equal(probe(write, local + 8, 8, 8), STATUS_SUCCESS);
        assert_int_equal(probe(write, local + 4, 8, 8), STATUS_DATATYPE_MISALIGNMENT);
        assert_int_equal(probe(write, local + 1, 0, 8), STATUS_SUCCESS);
        assert_int_equal(probe(write, (void *)0xffff800000000000, 8, 1), STATUS_ACCESS_VIOLATION);
        assert_int_equal(probe(write, (void *)~0xfull, 0x20, 1), STATUS_ACCESS_VIOLATION);
        assert_int_equal(probe(write, local, MAXSIZE_T, 1), STATUS_ACCESS_VIOLATION);
        assert_int_equal(probe(write, (void *)(ULONG_PTR)MM_USER_PROBE_ADDRESS, 1, 1), STATUS_ACCESS_VIOLATION);
        assert_int_equal(probe(write, pages, PAGE, 1), STATUS_SUCCESS);
    }
    assert_int_equal(probe(0, pages, 3 * PAGE, 1), STATUS_SUCCESS);
    assert_int_equal(probe(1, pages, PAGE + 1, 1), STATUS_ACCESS_VIOLATION);
    assert_int_equal(probe(1, pages + PAGE, 1, 1), STATUS_ACCESS_VIOLATION);
    assert_int_equal(probe(1, pages + 2 * PAGE, PAGE, 1), STATUS_SUCCESS);
    assert_int_equal(munmap(pages, 3 * PAGE), 0);
    assert_int_equal(probe(1, NULL, 1, 1), STATUS_ACCESS_VIOLATION);
}

static void test_local_time(void **state)
{
    LARGE_INTEGER system = {.QuadPart = 132000000000000000}, local, back;
    time_t now = time(NULL);
    struct tm fields;
    (void)state;
    localtime_r(&now, &fields);
    ExSystemTimeToLocalTime(&system, &local);
    assert_int_equal(local.QuadPart - system.QuadPart, fields.tm_gmtoff * 10000000ll);
    ExLocalTimeToSystemTime(&local, &back);
    assert_int_equal(back.QuadPart, system.QuadPart);
}

static void test_resolution(void **state)
{
    ULONG coarsest, finest, current, actual;
    (void)state;
    ExQueryTimerResolution(&coarsest, &finest, &current);
    assert_int_equal(current, coarsest);
    assert_int_equal(ExSetTimerResolution(20000, TRUE), 20000);
    assert_int_equal(ExSetTimerResolution(1, TRUE), finest);
    assert_int_equal(NtSetTimerResolution(10000, TRUE, &actual), STATUS_SUCCESS);
    assert_int_equal(actual, finest);
    assert_int_equal(ExSetTimerResolution(0, FALSE), finest);
    assert_int_equal(ExSetTimerResolution(0, FALSE), 10000);
    assert_int_equal(ExSetTimerResolution(0, FALSE), 10000);
    assert_int_equal(NtSetTimerResolution(0, FALSE, &actual), STATUS_SUCCESS);
    assert_int_equal(actual, coarsest);
    assert_int_equal(NtSetTimerResolution(0, FALSE, &actual), STATUS_TIMER_RESOLUTION_NOT_SET);
}

static VOID system_thread(PVOID context)
{
    *(PBOOLEAN)context = IoIsSystemThread(PsGetCurrentThread());
}

static void test_threads_and_processes(void **state)
{
    BOOLEAN is_system = FALSE;
    HANDLE handle;
    (void)state;
    assert_false(IoIsSystemThread(PsGetCurrentThread()));
    assert_ptr_equal(PsGetThreadProcess(PsGetCurrentThread()), PsGetCurrentProcess());
    assert_ptr_equal(IoThreadToProcess(PsGetCurrentThread()), IoGetCurrentProcess());
    assert_int_equal(ExGetPreviousMode(), KernelMode);
    assert_int_equal(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, system_thread, &is_system),
                     STATUS_SUCCESS);
    assert_int_equal(ZwWaitForSingleObject(handle, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    assert_true(is_system);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_local_time),
        cmocka_unit_test(test_resolution),
        cmocka_unit_test(test_threads_and_processes),
    };
    setenv("TZ", "Asia/Kolkata", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
