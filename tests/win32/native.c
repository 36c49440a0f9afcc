/* native.c: what winternl.h declares besides the objects: the time, the enumeration of threads, the TEB, strings,
   fiber-local storage. */
#include "ob/obp.h"
#include "support.h"

#include <windows.h>
#include <winternl.h>

static void the_time(void **state)
{
    LARGE_INTEGER before, now, after;

    (void)state;
    GetSystemTimeAsFileTime((LPFILETIME)&before);
    assert_int_equal(NtQuerySystemTime(&now), STATUS_SUCCESS);
    GetSystemTimeAsFileTime((LPFILETIME)&after);
    assert_true(before.QuadPart <= now.QuadPart && now.QuadPart <= after.QuadPart);
    assert_int_equal(NtQuerySystemTime(NULL), STATUS_ACCESS_VIOLATION);
}

static void the_resolution_of_the_clock(void **state)
{
    ULONG coarsest, finest, current;

    (void)state;
    assert_int_equal(NtQueryTimerResolution(&coarsest, &finest, &current), STATUS_SUCCESS);
    assert_true(coarsest >= current && current >= finest && finest > 0);
    assert_int_equal(NtSetTimerResolution(10000, TRUE, &current), STATUS_SUCCESS);
    assert_int_equal(current, 10000);
    assert_int_equal(NtQueryTimerResolution(&coarsest, &finest, &current), STATUS_SUCCESS);
    assert_int_equal(current, 10000);
    assert_int_equal(NtSetTimerResolution(1, TRUE, &current), STATUS_SUCCESS);
    assert_int_equal(current, finest);
    assert_int_equal(NtSetTimerResolution(0, FALSE, &current), STATUS_SUCCESS);
    assert_int_equal(current, coarsest);
    assert_int_equal(NtSetTimerResolution(0, FALSE, &current), STATUS_TIMER_RESOLUTION_NOT_SET);
    assert_int_equal(NtSetTimerResolution(10000, TRUE, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryTimerResolution(NULL, &finest, &current), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryTimerResolution(&coarsest, NULL, &current), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryTimerResolution(&coarsest, &finest, NULL), STATUS_ACCESS_VIOLATION);
}

static DWORD WINAPI wait_for(LPVOID event)
{
    return WaitForSingleObject(event, INFINITE);
}

static int threads_found(const DWORD *ids, int wanted)
{
    HANDLE thread = NULL, next = NULL;
    NTSTATUS status;
    int found = 0;

    while ((status = NtGetNextThread(GetCurrentProcess(), thread, THREAD_QUERY_LIMITED_INFORMATION, 0, 0, &next)) ==
           STATUS_SUCCESS) {
        for (int i = 0; i < wanted; i++)
            found += GetThreadId(next) == ids[i];
        if (thread != NULL)
            CloseHandle(thread);
        thread = next;
    }
    CloseHandle(thread);
    assert_int_equal(status, STATUS_NO_MORE_ENTRIES);
    assert_null(next);
    return found;
}

static void threads_one_by_one(void **state)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL), threads[3], next;
    DWORD ids[4] = {[3] = GetCurrentThreadId()};
    ULONG before = __atomic_load_n(&(*PsThreadType)->TotalNumberOfObjects, __ATOMIC_RELAXED);

    (void)state;
    for (int i = 0; i < 3; i++)
        threads[i] = CreateThread(NULL, 0, wait_for, event, 0, &ids[i]);
    assert_int_equal(threads_found(ids, 4), 4); /* each of them, and once */
    SetEvent(event);
    WaitForMultipleObjects(3, threads, TRUE, INFINITE);
    assert_int_equal(threads_found(ids, 3), 0);
    for (int i = 0; i < 3; i++)
        CloseHandle(threads[i]);
    watchdog_start(60);
    while (__atomic_load_n(&(*PsThreadType)->TotalNumberOfObjects, __ATOMIC_RELAXED) > before)
        Sleep(1); /* the search keeps no thread */
    watchdog_stop();
    assert_int_equal(NtGetNextThread(event, NULL, SYNCHRONIZE, 0, 0, &next), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtGetNextThread(GetCurrentProcess(), event, SYNCHRONIZE, 0, 0, &next),
                     STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtGetNextThread(GetCurrentProcess(), NULL, SYNCHRONIZE, 0, 1, &next), STATUS_INVALID_PARAMETER);
    assert_int_equal(NtGetNextThread(GetCurrentProcess(), NULL, SYNCHRONIZE, 0, 0, NULL), STATUS_ACCESS_VIOLATION);
    CloseHandle(event);
}

static DWORD WINAPI look_at_own_block(LPVOID other)
{
    return NtCurrentTeb() != other && HandleToULong(NtCurrentTeb()->ClientId.UniqueThread) == GetCurrentThreadId();
}

static void the_environment_block(void **state)
{
    PTEB teb = NtCurrentTeb();
    DWORD same = 0;
    HANDLE thread = CreateThread(NULL, 0, look_at_own_block, teb, 0, NULL);

    (void)state;
    assert_ptr_equal(NtCurrentTeb(), teb);
    ULONG_PTR low, high, here = (ULONG_PTR)__builtin_frame_address(0);
    GetCurrentThreadStackLimits(&low, &high);
    assert_true((ULONG_PTR)teb->NtTib.StackLimit == low && (ULONG_PTR)teb->NtTib.StackBase == high);
    assert_true(low < here && here < high);
    assert_ptr_equal(teb->NtTib.Self, teb);
    assert_int_equal(HandleToULong(teb->ClientId.UniqueProcess), GetCurrentProcessId());
    SetLastError(1234);
    assert_int_equal(teb->LastErrorValue, 1234);
    teb->LastErrorValue = 4321;
    assert_int_equal(GetLastError(), 4321);
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &same);
    assert_int_equal(same, 1);
    CloseHandle(thread);
}

static void copies_of_strings(void **state)
{
    UNICODE_STRING text, copy = {0};
    const ULONG terminate = RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE;
    const ULONG allocate = RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING;

    (void)state;
    RtlInitUnicodeString(&text, u"text");
    assert_int_equal(RtlDuplicateUnicodeString(0, &text, &copy), STATUS_SUCCESS);
    assert_true(RtlEqualUnicodeString(&text, &copy, FALSE) && copy.Buffer != text.Buffer);
    assert_int_equal(copy.MaximumLength, 8);
    RtlFreeUnicodeString(&copy);
    assert_true(copy.Buffer == NULL && copy.Length == 0 && copy.MaximumLength == 0);
    RtlFreeUnicodeString(&copy);
    assert_int_equal(RtlDuplicateUnicodeString(terminate, &text, &copy), STATUS_SUCCESS);
    assert_int_equal(copy.MaximumLength, 10);
    assert_int_equal(copy.Buffer[4], 0);
    RtlFreeUnicodeString(&copy);
    assert_int_equal(RtlDuplicateUnicodeString(terminate, &copy, &copy), STATUS_SUCCESS);
    assert_null(copy.Buffer);
    assert_int_equal(RtlDuplicateUnicodeString(terminate | allocate, &copy, &copy), STATUS_SUCCESS);
    assert_non_null(copy.Buffer);
    RtlFreeUnicodeString(&copy);
    assert_int_equal(RtlDuplicateUnicodeString(allocate, &text, &copy), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlDuplicateUnicodeString(4, &text, &copy), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlDuplicateUnicodeString(0, &text, NULL), STATUS_INVALID_PARAMETER);
    text.Length = 65534;
    assert_int_equal(RtlDuplicateUnicodeString(terminate, &text, &copy), STATUS_NAME_TOO_LONG);
}

static void *last_value;

static VOID keep_value(PVOID value)
{
    last_value = value;
}

static void fiber_local_storage(void **state)
{
    ULONG index = 0;
    PVOID value = NULL;

    (void)state;
    SetLastError(77);
    assert_int_equal(RtlFlsAlloc(keep_value, &index), STATUS_SUCCESS);
    assert_int_equal(RtlFlsSetValue(index, &index), STATUS_SUCCESS);
    assert_int_equal(RtlFlsGetValue(index, &value), STATUS_SUCCESS);
    assert_ptr_equal(value, &index);
    assert_ptr_equal(FlsGetValue(index), &index);
    SetLastError(77);
    assert_int_equal(RtlFlsFree(index), STATUS_SUCCESS);
    assert_ptr_equal(last_value, &index);
    assert_int_equal(RtlFlsFree(MAXULONG), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlFlsGetValue(MAXULONG, &value), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlFlsSetValue(MAXULONG, &value), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlFlsAlloc(NULL, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(GetLastError(), 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time),
        cmocka_unit_test(the_resolution_of_the_clock),
        cmocka_unit_test(threads_one_by_one),
        cmocka_unit_test(the_environment_block),
        cmocka_unit_test(copies_of_strings),
        cmocka_unit_test(fiber_local_storage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
