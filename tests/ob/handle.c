#include "support.h"

#include <interlock/nt.h>
#include <interlock/ob.h>
#include <interlock/ps.h>

#include <pthread.h>
#include <stdlib.h>

#include "ob/obp.h"

static PKEVENT create_event(void)
{
    PKEVENT event = ObpCreateObject(*ExEventObjectType, sizeof(KEVENT));

    assert_non_null(event);
    KeInitializeEvent(event, NotificationEvent, FALSE);
    return event;
}

static HANDLE open_handle(PVOID object, ULONG attributes, ACCESS_MASK access)
{
    HANDLE handle;

    assert_int_equal(ObOpenObjectByPointer(object, attributes, NULL, access, NULL, KernelMode, &handle), 0);
    return handle;
}

static NTSTATUS lookup(HANDLE handle, ACCESS_MASK access, POBJECT_TYPE type, KPROCESSOR_MODE mode)
{
    PVOID object;
    NTSTATUS status = ObReferenceObjectByHandle(handle, access, type, mode, &object, NULL);

    if (NT_SUCCESS(status))
        ObDereferenceObject(object);
    else
        assert_null(object);
    return status;
}

static void handles_have_the_form_of_windows(void **state)
{
    PKEVENT event = create_event();
    HANDLE handles[300];

    (void)state;
    for (int i = 0; i < 300; i++) {
        handles[i] = open_handle(event, 0, EVENT_ALL_ACCESS);
        assert_int_not_equal((uintptr_t)handles[i], 0);
        assert_int_equal((uintptr_t)handles[i] & 3, 0);
        assert_int_equal((uintptr_t)handles[i] >> 32, 0);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(handles[i], handles[j]);
    }
    for (int i = 0; i < 300; i++) {
        for (uintptr_t tag = 0; tag < 4; tag++)
            assert_int_equal(lookup((char *)handles[i] + tag, 0, NULL, UserMode), STATUS_SUCCESS);
        assert_int_equal(ZwClose((char *)handles[i] + i % 4), STATUS_SUCCESS);
    }
    ObDereferenceObject(event);
}

static void refused_handles(void **state)
{
    static const intptr_t rows[] = {0, 1, 3, -3, -4, -5, -6, -7, INT32_MIN, 0x03fffffc, 0x04000000,
                                    0x7ffffffc, 0xfffffffc, INT64_C(0x100000004), INT64_MIN, INT64_MAX};

    (void)state;
    KiVerifierEnabled = FALSE;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        assert_int_equal(lookup((HANDLE)rows[i], 0, NULL, KernelMode), STATUS_INVALID_HANDLE);
        assert_int_equal(ZwClose((HANDLE)rows[i]), STATUS_INVALID_HANDLE);
    }
    assert_int_equal(ZwClose(NtCurrentProcess()), STATUS_INVALID_HANDLE);
    assert_int_equal(ZwClose(NtCurrentThread()), STATUS_INVALID_HANDLE);
}

static void type_comes_before_access(void **state)
{
    static const struct {
        ACCESS_MASK granted, desired;
        int type; /* 0: any, 1: the right one, 2: another */
        KPROCESSOR_MODE mode;
        NTSTATUS expected;
    } rows[] = {
        {SYNCHRONIZE, SYNCHRONIZE, 1, UserMode, STATUS_SUCCESS},
        {SYNCHRONIZE, 0, 0, UserMode, STATUS_SUCCESS},
        {SYNCHRONIZE, EVENT_MODIFY_STATE, 1, UserMode, STATUS_ACCESS_DENIED},
        {SYNCHRONIZE, SYNCHRONIZE | EVENT_MODIFY_STATE, 1, UserMode, STATUS_ACCESS_DENIED},
        {SYNCHRONIZE, EVENT_MODIFY_STATE, 1, KernelMode, STATUS_SUCCESS},
        {SYNCHRONIZE, EVENT_MODIFY_STATE, 2, UserMode, STATUS_OBJECT_TYPE_MISMATCH},
        {SYNCHRONIZE, SYNCHRONIZE, 2, KernelMode, STATUS_OBJECT_TYPE_MISMATCH},
        {0, SYNCHRONIZE, 0, UserMode, STATUS_ACCESS_DENIED},
        {GENERIC_ALL, EVENT_ALL_ACCESS, 1, UserMode, STATUS_SUCCESS},
        {MAXIMUM_ALLOWED, EVENT_ALL_ACCESS, 1, UserMode, STATUS_SUCCESS},
        {GENERIC_READ, EVENT_QUERY_STATE, 1, UserMode, STATUS_SUCCESS},
        {GENERIC_READ, EVENT_MODIFY_STATE, 1, UserMode, STATUS_ACCESS_DENIED},
        {GENERIC_WRITE, EVENT_MODIFY_STATE, 1, UserMode, STATUS_SUCCESS},
        {GENERIC_EXECUTE, SYNCHRONIZE, 1, UserMode, STATUS_SUCCESS},
    };
    PKEVENT event = create_event();

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        POBJECT_TYPE types[] = {NULL, *ExEventObjectType, *PsThreadType};
        HANDLE handle = open_handle(event, 0, rows[i].granted);

        assert_int_equal(lookup(handle, rows[i].desired, types[rows[i].type], rows[i].mode), rows[i].expected);
        assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    }
    ObDereferenceObject(event);
}

static void opening_checks(void **state)
{
    PKEVENT event = create_event();
    HANDLE handle;

    (void)state;
    assert_int_equal(ObOpenObjectByPointer(event, 1, NULL, 0, NULL, KernelMode, &handle), STATUS_INVALID_PARAMETER);
    assert_int_equal(ObOpenObjectByPointer(event, 0, NULL, 0, *PsThreadType, KernelMode, &handle),
                     STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(ObOpenObjectByPointer(event, 0, NULL, 0, NULL, UserMode, &handle), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(ObOpenObjectByPointer(event, 0, NULL, 0x8000, *ExEventObjectType, UserMode, &handle),
                     STATUS_ACCESS_DENIED);
    assert_int_equal(
        ObOpenObjectByPointer(event, OBJ_FORCE_ACCESS_CHECK, NULL, 0x8000, *ExEventObjectType, KernelMode, &handle),
        STATUS_ACCESS_DENIED);
    assert_int_equal(ObDereferenceObject(event), 0);
}

static void attributes(void **state)
{
    PKEVENT event = create_event();
    HANDLE handle = open_handle(event, OBJ_INHERIT, SYNCHRONIZE | EVENT_MODIFY_STATE);
    OBJECT_HANDLE_INFORMATION information;
    PVOID object;

    (void)state;
    KiVerifierEnabled = FALSE;
    assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, UserMode, &object, &information), STATUS_SUCCESS);
    assert_ptr_equal(object, event);
    assert_int_equal(information.HandleAttributes, OBJ_INHERIT);
    assert_int_equal(information.GrantedAccess, SYNCHRONIZE | EVENT_MODIFY_STATE);
    ObDereferenceObject(object);

    assert_int_equal(ObpSetHandleAttributes(handle, FALSE, TRUE), STATUS_SUCCESS);
    assert_int_equal(ZwClose(handle), STATUS_HANDLE_NOT_CLOSABLE);
    assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, UserMode, &object, &information), STATUS_SUCCESS);
    assert_int_equal(information.HandleAttributes, 0);
    ObDereferenceObject(object);
    assert_int_equal(ObpSetHandleAttributes(handle, FALSE, FALSE), STATUS_SUCCESS);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    assert_int_equal(ObpSetHandleAttributes(handle, FALSE, TRUE), STATUS_INVALID_HANDLE);
    assert_int_equal(ObDereferenceObject(event), 0);
}

static void pseudo_handles(void **state)
{
    static const struct {
        intptr_t handle;
        int type; /* 0: any, 1: process, 2: thread, 3: event */
        NTSTATUS expected;
    } rows[] = {
        {-1, 0, STATUS_SUCCESS}, {-1, 1, STATUS_SUCCESS}, {-1, 2, STATUS_OBJECT_TYPE_MISMATCH},
        {-2, 0, STATUS_SUCCESS}, {-2, 2, STATUS_SUCCESS}, {-2, 1, STATUS_OBJECT_TYPE_MISMATCH},
        {-2, 3, STATUS_OBJECT_TYPE_MISMATCH},
    };
    POBJECT_TYPE types[] = {NULL, *PsProcessType, *PsThreadType, *ExEventObjectType};
    OBJECT_HANDLE_INFORMATION information;
    PVOID object;

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++)
        assert_int_equal(lookup((HANDLE)rows[i].handle, SYNCHRONIZE, types[rows[i].type], UserMode), rows[i].expected);
    assert_int_equal(ObReferenceObjectByHandle(NtCurrentThread(), 0, NULL, UserMode, &object, &information), 0);
    assert_ptr_equal(object, PsGetCurrentThread());
    assert_int_equal(information.GrantedAccess, THREAD_ALL_ACCESS);
    ObDereferenceObject(object);
    assert_int_equal(ObReferenceObjectByHandle(NtCurrentProcess(), 0, NULL, UserMode, &object, &information), 0);
    assert_ptr_equal(object, PsInitialSystemProcess);
    assert_int_equal(information.GrantedAccess, PROCESS_ALL_ACCESS);
    ObDereferenceObject(object);
}

static void closed_handles_stay_invalid(void **state)
{
    PKEVENT event = create_event();
    HANDLE stale[100];

    (void)state;
    KiVerifierEnabled = FALSE;
    for (int i = 0; i < 100; i++) {
        stale[i] = open_handle(event, 0, SYNCHRONIZE);
        assert_int_equal(ZwClose(stale[i]), STATUS_SUCCESS);
        for (int j = 0; j <= i; j++) {
            assert_int_equal(lookup(stale[j], 0, NULL, KernelMode), STATUS_INVALID_HANDLE);
            assert_int_equal(ZwClose(stale[j]), STATUS_INVALID_HANDLE);
        }
    }
    ObDereferenceObject(event);
}

static void entries_are_used_again(void **state)
{
    PKEVENT event = create_event();
    uintptr_t highest = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        HANDLE handle = open_handle(event, 0, SYNCHRONIZE);

        if ((uintptr_t)handle > highest)
            highest = (uintptr_t)handle;
        assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    }
    assert_true(highest < 4 * 2000);
    ObDereferenceObject(event);
}

/* More lookups without a dereference than an entry holds references in advance. */
static void references_do_not_run_out(void **state)
{
    enum { LOOKUPS = 200000 };
    PKEVENT event = create_event();
    HANDLE handle = open_handle(event, 0, SYNCHRONIZE);
    PVOID object;

    (void)state;
    for (int i = 0; i < LOOKUPS; i++) {
        assert_int_equal(ObReferenceObjectByHandle(handle, SYNCHRONIZE, NULL, UserMode, &object, NULL), 0);
        assert_ptr_equal(object, event);
    }
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    assert_int_equal(ObpHeaderOf(event)->PointerCount, LOOKUPS + 1);
    ObpDereferenceObjectEx(event, LOOKUPS);
    assert_int_equal(ObDereferenceObject(event), 0);
}

static void many_handles_at_once(void **state)
{
    enum { COUNT = 140000 };
    PKEVENT event = create_event();
    HANDLE *handles = malloc(COUNT * sizeof(*handles));

    (void)state;
    for (int i = 0; i < COUNT; i++)
        handles[i] = open_handle(event, 0, SYNCHRONIZE);
    for (int i = 0; i < COUNT; i += 97)
        assert_int_equal(lookup(handles[i], SYNCHRONIZE, *ExEventObjectType, UserMode), STATUS_SUCCESS);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(ZwClose(handles[i]), STATUS_SUCCESS);
    free(handles);
    assert_int_equal(ObDereferenceObject(event), 0);
}

static void close_stale_with_verifier(void *argument)
{
    KiVerifierEnabled = TRUE;
    ZwClose(argument);
}

static void verifier_stops_at_bad_closes(void **state)
{
    PKEVENT event = create_event();
    HANDLE handle = open_handle(event, 0, SYNCHRONIZE);

    (void)state;
    assert_int_equal(ObpSetHandleAttributes(handle, FALSE, TRUE), STATUS_SUCCESS);
    expect_bugcheck(INVALID_KERNEL_HANDLE, close_stale_with_verifier, handle);
    assert_int_equal(ObpSetHandleAttributes(handle, FALSE, FALSE), STATUS_SUCCESS);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    expect_bugcheck(INVALID_KERNEL_HANDLE, close_stale_with_verifier, handle);
    ObDereferenceObject(event);
}

static BOOLEAN is_borrowable(HANDLE handle)
{
    return (ObpEntryOfHandle(handle)->Object & OBP_BORROWABLE) != 0;
}

static void use_often(HANDLE handle)
{
    for (int i = 0; i < 0x8000; i++)
        assert_int_equal(lookup(handle, 0, NULL, KernelMode), STATUS_SUCCESS);
}

/* Borrowing (obp.h): a handle that is used often gives the same results as one that is not. */
static void borrowed_handles(void **state)
{
    PKEVENT event = create_event();
    LARGE_INTEGER now = {.QuadPart = 0};
    HANDLE all, query, semaphore;
    LONG previous = -1;

    (void)state;
    all = open_handle(event, 0, EVENT_ALL_ACCESS);
    query = open_handle(event, 0, EVENT_QUERY_STATE);
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 2, 2), STATUS_SUCCESS);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(is_borrowable(all), round);
        assert_int_equal(NtSetEvent(all, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 0);
        assert_int_equal(NtSetEvent((char *)all + 2, &previous), STATUS_SUCCESS);
        assert_int_equal(previous, 1);
        assert_int_equal(NtWaitForSingleObject(all, FALSE, &now), STATUS_SUCCESS);
        assert_int_equal(NtClearEvent(all), STATUS_SUCCESS);
        assert_int_equal(NtWaitForSingleObject(all, FALSE, &now), STATUS_TIMEOUT);
        assert_int_equal(NtSetEvent(query, &previous), STATUS_ACCESS_DENIED);
        assert_int_equal(NtWaitForSingleObject(query, FALSE, &now), STATUS_ACCESS_DENIED);
        assert_int_equal(ZwSetEvent(query, NULL), STATUS_SUCCESS);
        assert_int_equal(ZwWaitForSingleObject(query, FALSE, &now), STATUS_SUCCESS);
        assert_int_equal(NtClearEvent(all), STATUS_SUCCESS);
        assert_int_equal(NtSetEvent(semaphore, &previous), STATUS_OBJECT_TYPE_MISMATCH);
        assert_int_equal(NtWaitForSingleObject(semaphore, FALSE, &now), STATUS_SUCCESS);
        assert_int_equal(ObpThread(KeGetCurrentThread())->BorrowedHandle, 0);
        assert_int_equal(KeGetCurrentThread()->DispatcherDepth, 0);
        if (round == 0) {
            use_often(all);
            use_often(query);
            use_often(semaphore);
        }
    }
    assert_int_equal(NtWaitForSingleObject(semaphore, FALSE, &now), STATUS_TIMEOUT);
    assert_int_equal(NtClose(all), STATUS_SUCCESS);
    assert_int_equal(NtSetEvent(all, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtWaitForSingleObject(all, FALSE, &now), STATUS_INVALID_HANDLE);
    assert_int_equal(NtClose(query), STATUS_SUCCESS);
    assert_int_equal(NtClose(semaphore), STATUS_SUCCESS);
    assert_int_equal(ObDereferenceObject(event), 0);
}

static void *take_and_end(void *handle)
{
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, NULL), STATUS_SUCCESS);
    return NULL;
}

static void use_mutant(HANDLE mutant)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    LONG previous = 7;
    pthread_t thread;

    assert_int_equal(NtReleaseMutant(mutant, &previous), STATUS_MUTANT_NOT_OWNED);
    assert_int_equal(previous, 7);
    assert_int_equal(NtWaitForSingleObject(mutant, FALSE, &now), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(mutant, FALSE, &now), STATUS_SUCCESS);
    assert_int_equal(NtReleaseMutant(mutant, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, -1);
    assert_int_equal(NtReleaseMutant(mutant, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 0);
    assert_int_equal(pthread_create(&thread, NULL, take_and_end, mutant), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(NtWaitForSingleObject(mutant, FALSE, &now), STATUS_ABANDONED_WAIT_0);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(mutant, FALSE, &now), STATUS_SUCCESS);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_SUCCESS);
}

static void use_semaphore(HANDLE semaphore)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    LONG previous = 7;

    assert_int_equal(NtReleaseSemaphore(semaphore, 3, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(NtReleaseSemaphore(semaphore, 0, &previous), STATUS_INVALID_PARAMETER);
    assert_int_equal(previous, 7);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, NULL), STATUS_SUCCESS);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 1);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(NtWaitForSingleObject(semaphore, FALSE, &now), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(semaphore, FALSE, &now), STATUS_TIMEOUT);
}

/* The same for mutants and semaphores, local ones and shared ones. */
static void borrowed_mutants_and_semaphores(void **state)
{
    UNICODE_STRING names[] = {RTL_CONSTANT_STRING(u"\\BaseNamedObjects\\borrowed mutant"),
                              RTL_CONSTANT_STRING(u"\\BaseNamedObjects\\borrowed semaphore")};
    OBJECT_ATTRIBUTES named[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        InitializeObjectAttributes(&named[i], &names[i], 0, NULL, NULL);
    for (int shared = 0; shared < 2; shared++) {
        HANDLE mutant, semaphore, refused;

        assert_int_equal(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, shared ? &named[0] : NULL, FALSE), STATUS_SUCCESS);
        assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, shared ? &named[1] : NULL, 0, 2),
                         STATUS_SUCCESS);
        assert_int_equal(NtDuplicateObject(NtCurrentProcess(), semaphore, NtCurrentProcess(), &refused, SYNCHRONIZE, 0, 0),
                         STATUS_SUCCESS);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(is_borrowable(mutant), round);
            use_mutant(mutant);
            use_semaphore(semaphore);
            assert_int_equal(NtReleaseMutant(semaphore, NULL), STATUS_OBJECT_TYPE_MISMATCH);
            assert_int_equal(NtReleaseSemaphore(mutant, 1, NULL), STATUS_OBJECT_TYPE_MISMATCH);
            assert_int_equal(NtReleaseSemaphore(refused, 1, NULL), STATUS_ACCESS_DENIED);
            assert_int_equal(ObpThread(KeGetCurrentThread())->BorrowedHandle, 0);
            assert_int_equal(KeGetCurrentThread()->DispatcherDepth, 0);
            assert_true(IsListEmpty(&KeGetCurrentThread()->MutantListHead));
            if (round == 0) {
                use_often(mutant);
                use_often(semaphore);
                use_often(refused);
            }
        }
        /* closed by its owner: the mutant is freed with the handle */
        assert_int_equal(NtWaitForSingleObject(mutant, FALSE, NULL), STATUS_SUCCESS);
        assert_int_equal(NtClose(mutant), STATUS_SUCCESS);
        assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_INVALID_HANDLE);
        assert_true(IsListEmpty(&KeGetCurrentThread()->MutantListHead));
        assert_int_equal(NtClose(semaphore), STATUS_SUCCESS);
        assert_int_equal(NtClose(refused), STATUS_SUCCESS);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_have_the_form_of_windows),
        cmocka_unit_test(refused_handles),
        cmocka_unit_test(type_comes_before_access),
        cmocka_unit_test(opening_checks),
        cmocka_unit_test(attributes),
        cmocka_unit_test(pseudo_handles),
        cmocka_unit_test(closed_handles_stay_invalid),
        cmocka_unit_test(entries_are_used_again),
        cmocka_unit_test(references_do_not_run_out),
        cmocka_unit_test(borrowed_handles),
        cmocka_unit_test(borrowed_mutants_and_semaphores),
        cmocka_unit_test(many_handles_at_once),
        cmocka_unit_test(verifier_stops_at_bad_closes),
    };

    return cmocka_run_group_tests_name("ob/handle", tests, NULL, NULL);
}
