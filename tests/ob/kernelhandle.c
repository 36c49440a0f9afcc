/* Kernel handles: OBJ_KERNEL_HANDLE opens handles for kernel mode only. */
#include <interlock/nt.h>
#include <interlock/ps.h>

#include "ke/ki.h"
#include "ob/obp.h"
#include "support.h"

#define MANY 2000

static HANDLE create_event(ULONG attributes)
{
    OBJECT_ATTRIBUTES object;
    HANDLE handle;
    InitializeObjectAttributes(&object, NULL, attributes, NULL, NULL);
    assert_int_equal(ZwCreateEvent(&handle, EVENT_ALL_ACCESS, &object, NotificationEvent, TRUE), STATUS_SUCCESS);
    return handle;
}

static void user_mode_cannot_use_it(void **state)
{
    HANDLE handle = create_event(OBJ_KERNEL_HANDLE), copy;
    HANDLE behind = ULongToHandle(ObpIndexOfHandle(handle) << 2);
    OBJECT_HANDLE_FLAG_INFORMATION flags = {TRUE, TRUE};
    PVOID object;
    LONG previous;
    (void)state;
    assert_true((LONG_PTR)handle < 0);
    assert_int_equal((ULONG_PTR)handle & 3, 0);
    for (int i = 0; i < 2; i++) {
        HANDLE tried = i == 0 ? handle : behind;
        assert_int_equal(NtSetEvent(tried, &previous), STATUS_INVALID_HANDLE);
        assert_int_equal(NtWaitForSingleObject(tried, FALSE, NULL), STATUS_INVALID_HANDLE);
        assert_int_equal(NtWaitForMultipleObjects(1, &tried, WaitAny, FALSE, NULL), STATUS_INVALID_HANDLE);
        assert_int_equal(NtSetInformationObject(tried, ObjectHandleFlagInformation, &flags, sizeof(flags)),
                         STATUS_INVALID_HANDLE);
        assert_int_equal(
            NtDuplicateObject(NtCurrentProcess(), tried, NtCurrentProcess(), &copy, 0, 0, DUPLICATE_SAME_ACCESS),
            STATUS_INVALID_HANDLE);
        assert_int_equal(ObReferenceObjectByHandle(tried, 0, NULL, UserMode, &object, NULL), STATUS_INVALID_HANDLE);
        assert_int_equal(NtClose(tried), STATUS_INVALID_HANDLE);
    }
    assert_int_equal(ZwSetEvent(handle, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 1);
    assert_int_equal(ZwWaitForSingleObject(handle, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(handle, EVENT_ALL_ACCESS, *ExEventObjectType, KernelMode, &object, NULL),
                     STATUS_SUCCESS);
    ObDereferenceObject(object);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    KiVerifierEnabled = FALSE;
    assert_int_equal(ZwClose(handle), STATUS_INVALID_HANDLE);
}

static void kernel_mode_can_use_both(void **state)
{
    HANDLE user = create_event(0), kernel;
    LONG previous;
    (void)state;
    assert_true((LONG_PTR)user > 0);
    assert_int_equal(ZwSetEvent(user, &previous), STATUS_SUCCESS);
    assert_int_equal(ZwDuplicateObject(NtCurrentProcess(), user, NtCurrentProcess(), &kernel, 0, OBJ_KERNEL_HANDLE,
                                       DUPLICATE_SAME_ACCESS),
                     STATUS_SUCCESS);
    assert_true((LONG_PTR)kernel < 0);
    assert_int_equal(NtSetEvent(kernel, &previous), STATUS_INVALID_HANDLE);
    assert_int_equal(ZwSetEvent(kernel, &previous), STATUS_SUCCESS);
    assert_int_equal(ZwClose(kernel), STATUS_SUCCESS);
    /* User mode that requests a kernel handle gets a user handle. */
    assert_int_equal(NtDuplicateObject(NtCurrentProcess(), user, NtCurrentProcess(), &kernel, 0, OBJ_KERNEL_HANDLE,
                                       DUPLICATE_SAME_ACCESS),
                     STATUS_SUCCESS);
    assert_true((LONG_PTR)kernel > 0);
    assert_int_equal(NtClose(kernel), STATUS_SUCCESS);
    assert_int_equal(NtClose(user), STATUS_SUCCESS);
}

static void opened_by_pointer(void **state)
{
    HANDLE handle;
    (void)state;
    assert_int_equal(ObOpenObjectByPointer(PsGetCurrentThread(), OBJ_KERNEL_HANDLE, NULL, THREAD_ALL_ACCESS,
                                           *PsThreadType, KernelMode, &handle),
                     STATUS_SUCCESS);
    assert_true((LONG_PTR)handle < 0);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
}

/* The services that take handles of threads and processes. */
static void threads_and_processes(void **state)
{
    CLIENT_ID self = {PsGetCurrentProcessId(), PsGetCurrentThreadId()};
    CLIENT_ID this_process = {PsGetCurrentProcessId(), NULL};
    PROCESS_BASIC_INFORMATION basic;
    OBJECT_ATTRIBUTES object;
    KPRIORITY priority = 9;
    HANDLE handle;
    (void)state;
    InitializeObjectAttributes(&object, NULL, OBJ_KERNEL_HANDLE, NULL, NULL);
    assert_int_equal(ZwOpenThread(&handle, 0, &object, &self), STATUS_SUCCESS);
    assert_true((LONG_PTR)handle < 0);
    assert_int_equal(NtSetInformationThread(handle, ThreadPriority, &priority, sizeof(priority)),
                     STATUS_INVALID_HANDLE);
    assert_int_equal(ZwSetInformationThread(handle, ThreadPriority, &priority, sizeof(priority)), STATUS_SUCCESS);
    assert_int_equal(NtAlertThread(handle), STATUS_INVALID_HANDLE);
    assert_int_equal(ZwAlertThread(handle), STATUS_SUCCESS);
    assert_true(KeTestAlertThread(KernelMode));
    assert_false(KeTestAlertThread(UserMode));
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    assert_int_equal(NtOpenThread(&handle, 0, &object, &self), STATUS_ACCESS_DENIED);
    assert_int_equal(NtOpenThread(&handle, THREAD_ALL_ACCESS, &object, &self), STATUS_SUCCESS);
    assert_true((LONG_PTR)handle > 0);
    assert_int_equal(NtClose(handle), STATUS_SUCCESS);

    assert_int_equal(ZwOpenProcess(&handle, 0, &object, &this_process), STATUS_SUCCESS);
    assert_true((LONG_PTR)handle < 0);
    assert_int_equal(NtQueryInformationProcess(handle, ProcessBasicInformation, &basic, sizeof(basic), NULL),
                     STATUS_INVALID_HANDLE);
    assert_int_equal(ZwQueryInformationProcess(handle, ProcessBasicInformation, &basic, sizeof(basic), NULL),
                     STATUS_SUCCESS);
    assert_int_equal(basic.UniqueProcessId, (ULONG_PTR)PsGetCurrentProcessId());
    assert_int_equal(NtSetInformationProcess(handle, ProcessBasePriority, &basic.BasePriority, sizeof(KPRIORITY)),
                     STATUS_INVALID_HANDLE);
    assert_int_equal(ZwSetInformationProcess(handle, ProcessBasePriority, &basic.BasePriority, sizeof(KPRIORITY)),
                     STATUS_SUCCESS);
    assert_int_equal(ZwSetInformationProcess(handle, ProcessBasePriority, &basic.BasePriority, 1),
                     STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtTerminateProcess(handle, STATUS_SUCCESS), STATUS_INVALID_HANDLE);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    assert_int_equal(NtOpenProcess(&handle, 0, &object, &this_process), STATUS_ACCESS_DENIED);
    KiVerifierEnabled = FALSE;
    assert_int_equal(ZwTerminateProcess((HANDLE)(ULONG_PTR)OBP_KERNEL_HANDLE, STATUS_SUCCESS), STATUS_INVALID_HANDLE);
}

static VOID nothing(PVOID context)
{
    (void)context;
}

static void system_threads(void **state)
{
    HANDLE handle;
    (void)state;
    assert_int_equal(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, nothing, NULL), STATUS_SUCCESS);
    assert_true((LONG_PTR)handle < 0);
    assert_int_equal(ZwWaitForSingleObject(handle, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
}

static void many(void **state)
{
    static HANDLE handles[MANY];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        handles[i] = create_event(i % 2 == 0 ? OBJ_KERNEL_HANDLE : 0);
        assert_int_equal((LONG_PTR)handles[i] < 0, i % 2 == 0);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(ZwSetEvent(handles[i], NULL), STATUS_SUCCESS);
        assert_int_equal(ZwClose(handles[i]), STATUS_SUCCESS);
    }
    KiVerifierEnabled = FALSE;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ZwSetEvent(handles[i], NULL), STATUS_INVALID_HANDLE);
}

static void no_handles(void **state)
{
    (void)state;
    KiVerifierEnabled = FALSE;
    for (ULONG_PTR value = OBP_KERNEL_HANDLE; value < OBP_KERNEL_HANDLE + 4; value++)
        assert_int_equal(ZwSetEvent((HANDLE)value, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(ZwSetEvent((HANDLE)(ULONG_PTR)0xfffffffffffffff0, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(ZwSetEvent((HANDLE)(ULONG_PTR)0x80000004, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(ZwSetEvent((HANDLE)(ULONG_PTR)0x8000000000000004, NULL), STATUS_INVALID_HANDLE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_mode_cannot_use_it),
        cmocka_unit_test(kernel_mode_can_use_both),
        cmocka_unit_test(opened_by_pointer),
        cmocka_unit_test(system_threads),
        cmocka_unit_test(threads_and_processes),
        cmocka_unit_test(many),
        cmocka_unit_test(no_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
