#include "support.h"

#include <interlock/ob.h>
#include <interlock/ps.h>

#include "ob/obp.h"

static volatile LONG deleted;
static volatile LONG closed;
static LONG_PTR handles_left;

static VOID count_delete(PVOID object)
{
    assert_int_equal(*(int *)object, 42);
    InterlockedIncrement(&deleted);
}

static VOID count_close(PVOID object, ACCESS_MASK granted, LONG_PTR left)
{
    assert_int_equal(*(int *)object, 42);
    assert_int_equal(granted, EVENT_MODIFY_STATE);
    InterlockedIncrement(&closed);
    handles_left = left;
}

static OBJECT_TYPE test_type = {
    .Name = "Test",
    .ValidAccessMask = EVENT_ALL_ACCESS,
    .DeleteProcedure = count_delete,
    .CloseProcedure = count_close,
};

static int *create_object(void)
{
    int *object = ObpCreateObject(&test_type, 100);

    assert_non_null(object);
    *object = 42;
    return object;
}

static void body_is_aligned_and_zero(void **state)
{
    unsigned char *body = ObpCreateObject(&test_type, 100);

    (void)state;
    assert_int_equal((uintptr_t)body % 16, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(body[i], 0);
    assert_ptr_equal(ObGetObjectType(body), &test_type);
    *(int *)body = 42;
    ObDereferenceObject(body);
}

static void last_reference_deletes(void **state)
{
    LONG before = deleted;
    int *object = create_object();

    (void)state;
    assert_int_equal(test_type.TotalNumberOfObjects, 1);
    assert_int_equal(ObReferenceObject(object), 2);
    assert_true(ObReferenceObjectSafe(object));
    assert_int_equal(ObDereferenceObject(object), 2);
    assert_int_equal(ObDereferenceObject(object), 1);
    assert_int_equal(deleted, before);
    ObDereferenceObjectDeferDelete(object);
    assert_int_equal(deleted, before + 1);
    assert_int_equal(test_type.TotalNumberOfObjects, 0);
}

static void handles_keep_the_object_and_tell_the_type(void **state)
{
    LONG deleted_before = deleted, closed_before = closed;
    int *object = create_object();
    HANDLE first, second;

    (void)state;
    assert_int_equal(ObOpenObjectByPointer(object, 0, NULL, EVENT_MODIFY_STATE, &test_type, KernelMode, &first), 0);
    assert_int_equal(ObOpenObjectByPointer(object, 0, NULL, EVENT_MODIFY_STATE, NULL, KernelMode, &second), 0);
    assert_int_equal(test_type.TotalNumberOfHandles, 2);
    ObDereferenceObject(object);
    assert_int_equal(ZwClose(first), STATUS_SUCCESS);
    assert_int_equal(closed, closed_before + 1);
    assert_int_equal(handles_left, 1);
    assert_int_equal(deleted, deleted_before);
    assert_int_equal(ZwClose(second), STATUS_SUCCESS);
    assert_int_equal(closed, closed_before + 2);
    assert_int_equal(handles_left, 0);
    assert_int_equal(deleted, deleted_before + 1);
    assert_int_equal(test_type.TotalNumberOfHandles, 0);
}

static void type_is_checked_by_pointer(void **state)
{
    static const struct {
        BOOLEAN same, other;
        KPROCESSOR_MODE mode;
        NTSTATUS expected;
    } rows[] = {
        {TRUE, FALSE, KernelMode, STATUS_SUCCESS},
        {TRUE, FALSE, UserMode, STATUS_SUCCESS},
        {FALSE, FALSE, KernelMode, STATUS_SUCCESS},
        {FALSE, FALSE, UserMode, STATUS_OBJECT_TYPE_MISMATCH},
        {FALSE, TRUE, KernelMode, STATUS_OBJECT_TYPE_MISMATCH},
        {FALSE, TRUE, UserMode, STATUS_OBJECT_TYPE_MISMATCH},
    };
    int *object = create_object();

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        POBJECT_TYPE type = rows[i].same ? &test_type : rows[i].other ? *PsThreadType : NULL;
        NTSTATUS status = ObReferenceObjectByPointer(object, 0, type, rows[i].mode);

        assert_int_equal(status, rows[i].expected);
        if (NT_SUCCESS(status))
            ObDereferenceObject(object);
    }
    ObDereferenceObject(object);
}

/* Of a type whose memory stays, so that the count can be read again. */
static void dereference_once_too_often(void *argument)
{
    static OBJECT_TYPE type = {.Name = "Kept", .OwnsMemory = TRUE};
    PVOID object = ObpCreateObject(&type, 16);

    (void)argument;
    ObDereferenceObject(object);
    ObDereferenceObject(object);
}

static void dereference_below_zero(void *argument)
{
    (void)argument;
    ObpDereferenceObjectEx(create_object(), 2);
}

static void drop_what_a_handle_counts_on(void *argument)
{
    int *object = create_object();
    HANDLE handle;

    (void)argument;
    ObOpenObjectByPointer(object, 0, NULL, EVENT_MODIFY_STATE, NULL, KernelMode, &handle);
    ObpDereferenceObjectEx(object, ObpHeaderOf(object)->PointerCount);
}

static void reference_from_zero(void *argument)
{
    static struct {
        char room[sizeof(OBJECT_HEADER)];
        char body[16];
    } fake DECLSPEC_ALIGN(16);

    (void)argument;
    ObReferenceObject(fake.body);
}

static void wrong_counts_are_bugchecks(void **state)
{
    (void)state;
    expect_bugcheck(REFERENCE_BY_POINTER, dereference_once_too_often, NULL);
    expect_bugcheck(REFERENCE_BY_POINTER, dereference_below_zero, NULL);
    expect_bugcheck(REFERENCE_BY_POINTER, drop_what_a_handle_counts_on, NULL);
    expect_bugcheck(REFERENCE_BY_POINTER, reference_from_zero, NULL);
}

static void safe_reference_refuses_zero(void **state)
{
    static struct {
        char room[sizeof(OBJECT_HEADER)];
        char body[16];
    } fake DECLSPEC_ALIGN(16);

    (void)state;
    assert_false(ObReferenceObjectSafe(fake.body));
}

struct shared {
    int *object;
    unsigned long rounds;
};

static void count_up_and_down(void *argument, unsigned index)
{
    struct shared *shared = argument;

    (void)index;
    for (unsigned long i = 0; i < shared->rounds; i++) {
        ObReferenceObject(shared->object);
        assert_true(ObReferenceObjectSafe(shared->object));
        ObDereferenceObject(shared->object);
        ObDereferenceObject(shared->object);
    }
    ObDereferenceObject(shared->object);
}

static void the_last_of_many_deletes_once(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct shared shared = {create_object(), test_rounds(500)};
        LONG before = deleted;

        for (int i = 0; i < 3; i++)
            ObReferenceObject(shared.object);
        run_threads(4, 60, count_up_and_down, &shared);
        assert_int_equal(deleted, before + 1);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(body_is_aligned_and_zero),
        cmocka_unit_test(last_reference_deletes),
        cmocka_unit_test(handles_keep_the_object_and_tell_the_type),
        cmocka_unit_test(type_is_checked_by_pointer),
        cmocka_unit_test(wrong_counts_are_bugchecks),
        cmocka_unit_test(safe_reference_refuses_zero),
        cmocka_unit_test(the_last_of_many_deletes_once),
    };

    return cmocka_run_group_tests_name("ob/object", tests, NULL, NULL);
}
