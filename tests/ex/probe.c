/* Addresses of users, local time, the resolution of the clock, whose thread and process it is, and other small things for drivers. */
#include <interlock/exception.h>
#include <interlock/io.h>
#include <interlock/nt.h>
#include <interlock/ps.h>
#include <interlock/rtl.h>

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

static PVOID routine(PCWSTR name)
{
    UNICODE_STRING text;
    RtlInitUnicodeString(&text, name);
    return MmGetSystemRoutineAddress(&text);
}

static void test_routines_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(routine(u"KeSetEvent"), KeSetEvent);
    assert_ptr_equal(routine(u"ZwClose"), ZwClose);
    assert_null(routine(u"KeNoSuchRoutine"));
    assert_null(routine(u""));
    assert_null(routine(u"KeSetEv\u00e9nt"));
    assert_null(routine(u"KeSetEven\u0174")); /* its low byte is a t */
    assert_null(routine(u"malloc"));
    assert_null(routine(u"cmocka_unit_test"));
}

static void test_valid_addresses(void **state)
{
    int here = 0;
    (void)state;
    assert_true(MmIsAddressValid(&here));
    assert_true(MmIsAddressValid((PVOID)(ULONG_PTR)"a constant"));
    assert_false(MmIsAddressValid(NULL));
    assert_false(MmIsAddressValid((PVOID)8));
}

static void test_stack_limits(void **state)
{
    ULONG_PTR low, high, here = (ULONG_PTR)__builtin_frame_address(0); /* a variable may be elsewhere under a sanitizer */
    (void)state;
    IoGetStackLimits(&low, &high);
    assert_true(here > low && here < high);
    assert_true(IoGetRemainingStackSize() > 4096 && IoGetRemainingStackSize() < high - low);
    assert_true(IoWithinStackLimits(here, sizeof(low)));
    assert_false(IoWithinStackLimits(here, high - low));
    assert_false(IoWithinStackLimits(low - 1, 1));
}

/* A device's registers; the buffer forms go through them in order. */
static void test_registers(void **state)
{
    ULONG registers[4] = {1, 2, 3, 4}, values[4] = {0}, wanted[4] = {5, 6, 7, 8};
    ULONG64 wide = 0;
    UCHAR narrow = 0;
    (void)state;
    READ_REGISTER_BUFFER_ULONG(registers, values, 4);
    assert_memory_equal(values, registers, sizeof(values));
    WRITE_REGISTER_BUFFER_ULONG(registers, wanted, 4);
    assert_memory_equal(registers, wanted, sizeof(wanted));
    WRITE_REGISTER_ULONG64(&wide, 0x123456789abcdef0);
    assert_int_equal(READ_REGISTER_ULONG64(&wide), 0x123456789abcdef0);
    WRITE_REGISTER_UCHAR(&narrow, 0xff);
    assert_int_equal(READ_REGISTER_UCHAR(&narrow), 0xff);
}

/* References with tags are references. */
static void test_tagged_references(void **state)
{
    PETHREAD thread = PsGetCurrentThread();
    HANDLE handle;
    PVOID object;
    (void)state;
    LONG_PTR references = ObReferenceObject(thread);
    assert_int_equal(ObReferenceObjectWithTag(thread, 0x54616721), references + 1);
    assert_int_equal(ObDereferenceObjectWithTag(thread, 0x54616721), references);
    ObDereferenceObject(thread);
    assert_int_equal(ObReferenceObjectByPointerWithTag(thread, 0, *PsThreadType, KernelMode, 0x54616721), STATUS_SUCCESS);
    ObDereferenceObjectDeferDeleteWithTag(thread, 0x54616721);
    assert_int_equal(ObOpenObjectByPointer(thread, OBJ_KERNEL_HANDLE, NULL, THREAD_ALL_ACCESS, *PsThreadType, KernelMode, &handle),
                     STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandleWithTag(handle, 0, *PsThreadType, KernelMode, 0x54616721, &object, NULL),
                     STATUS_SUCCESS);
    assert_ptr_equal(object, thread);
    ObDereferenceObjectWithTag(object, 0x54616721);
    ZwClose(handle);
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
        cmocka_unit_test(test_routines_by_name),
        cmocka_unit_test(test_valid_addresses),
        cmocka_unit_test(test_stack_limits),
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_tagged_references),
    };
    setenv("TZ", "Asia/Kolkata", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
