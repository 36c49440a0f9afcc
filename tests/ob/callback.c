/* Callback objects: names, order, the end of a registration while its routine runs. Names of objects. */
#include <interlock/ob.h>

#include "support.h"

#include <string.h>

#define THREADS 4

static PCALLBACK_OBJECT create(BOOLEAN multiple)
{
    PCALLBACK_OBJECT callback;
    OBJECT_ATTRIBUTES attributes;
    InitializeObjectAttributes(&attributes, NULL, 0, NULL, NULL);
    assert_int_equal(ExCreateCallback(&callback, &attributes, TRUE, multiple), STATUS_SUCCESS);
    return callback;
}

static char order[16];

static VOID append(PVOID context, PVOID argument1, PVOID argument2)
{
    assert_ptr_equal(argument1, order);
    assert_ptr_equal(argument2, NULL);
    strcat(order, context);
}

static void called_in_order(void **state)
{
    PCALLBACK_OBJECT callback = create(TRUE);
    PVOID first, second, third;
    (void)state;
    ExNotifyCallback(callback, NULL, NULL);
    first = ExRegisterCallback(callback, append, (PVOID)(ULONG_PTR)"a");
    second = ExRegisterCallback(callback, append, (PVOID)(ULONG_PTR)"b");
    third = ExRegisterCallback(callback, append, (PVOID)(ULONG_PTR)"c");
    ExNotifyCallback(callback, order, NULL);
    ExUnregisterCallback(second);
    ExNotifyCallback(callback, order, NULL);
    assert_string_equal(order, "abcac");
    ExUnregisterCallback(first);
    ExUnregisterCallback(third);
    ExNotifyCallback(callback, NULL, NULL);
    ObDereferenceObject(callback);
}

static void one_routine(void **state)
{
    PCALLBACK_OBJECT callback = create(FALSE);
    PVOID registration = ExRegisterCallback(callback, append, (PVOID)(ULONG_PTR)"a");
    (void)state;
    assert_non_null(registration);
    assert_null(ExRegisterCallback(callback, append, (PVOID)(ULONG_PTR)"b"));
    ExUnregisterCallback(registration);
    registration = ExRegisterCallback(callback, append, (PVOID)(ULONG_PTR)"b");
    assert_non_null(registration);
    ExUnregisterCallback(registration);
    ObDereferenceObject(callback);
}

static void named(void **state)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(u"\\Callback\\InterlockTest");
    UNICODE_STRING system = RTL_CONSTANT_STRING(u"\\Callback\\powerstate");
    OBJECT_ATTRIBUTES attributes;
    PCALLBACK_OBJECT first, second;
    (void)state;
    InitializeObjectAttributes(&attributes, &name, OBJ_CASE_INSENSITIVE | OBJ_PERMANENT, NULL, NULL);
    assert_int_equal(ExCreateCallback(&first, &attributes, FALSE, TRUE), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(ExCreateCallback(&first, &attributes, TRUE, TRUE), STATUS_SUCCESS);
    assert_int_equal(ExCreateCallback(&second, &attributes, FALSE, TRUE), STATUS_SUCCESS);
    assert_ptr_equal(first, second);
    ObDereferenceObject(second);
    assert_int_equal(ExCreateCallback(&second, &attributes, TRUE, TRUE), STATUS_SUCCESS);
    assert_ptr_equal(first, second);

    struct {
        OBJECT_NAME_INFORMATION information;
        WCHAR text[64];
    } answer;
    ULONG length;
    assert_int_equal(ObQueryNameString(first, &answer.information, sizeof(answer), &length), STATUS_SUCCESS);
    assert_int_equal(answer.information.Name.Length, name.Length);
    assert_memory_equal(answer.information.Name.Buffer, name.Buffer, name.Length + sizeof(WCHAR));
    assert_int_equal(length, sizeof(OBJECT_NAME_INFORMATION) + name.Length + sizeof(WCHAR));
    assert_int_equal(ObQueryNameString(first, &answer.information, length - 1, &length), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(ObQueryNameString(first, NULL, 0, &length), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(length, sizeof(OBJECT_NAME_INFORMATION) + name.Length + sizeof(WCHAR));

    ObMakeTemporaryObject(first);
    ObDereferenceObject(first);
    ObDereferenceObject(second);
    assert_int_equal(ExCreateCallback(&first, &attributes, FALSE, TRUE), STATUS_OBJECT_NAME_NOT_FOUND);

    InitializeObjectAttributes(&attributes, &system, OBJ_CASE_INSENSITIVE, NULL, NULL);
    assert_int_equal(ExCreateCallback(&first, &attributes, FALSE, TRUE), STATUS_SUCCESS);
    ObDereferenceObject(first);
    InitializeObjectAttributes(&attributes, NULL, 0, NULL, NULL);
    assert_int_equal(ExCreateCallback(&first, &attributes, FALSE, TRUE), STATUS_UNSUCCESSFUL);
    first = create(TRUE);
    assert_int_equal(ObQueryNameString(first, &answer.information, sizeof(answer), &length), STATUS_SUCCESS);
    assert_int_equal(answer.information.Name.Length, 0);
    ObDereferenceObject(first);
}

static KEVENT entered, leave;

static VOID stay(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    KeSetEvent(&entered, IO_NO_INCREMENT, FALSE);
    KeWaitForSingleObject(&leave, Executive, KernelMode, FALSE, NULL);
    __atomic_store_n((volatile ULONG *)context, 1, __ATOMIC_RELEASE);
}

static PCALLBACK_OBJECT the_callback;
static PVOID the_registration;
static volatile ULONG done;

static void notify_or_unregister(void *argument, unsigned index)
{
    (void)argument;
    if (index == 0) {
        ExNotifyCallback(the_callback, NULL, NULL);
    } else if (index == 1) {
        KeWaitForSingleObject(&entered, Executive, KernelMode, FALSE, NULL);
        ExUnregisterCallback(the_registration);
        assert_int_equal(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 1);
    } else {
        KeWaitForSingleObject(&entered, Executive, KernelMode, FALSE, NULL);
        KeSetEvent(&leave, IO_NO_INCREMENT, FALSE);
    }
}

static void unregistering_waits(void **state)
{
    (void)state;
    KeInitializeEvent(&entered, NotificationEvent, FALSE);
    KeInitializeEvent(&leave, NotificationEvent, FALSE);
    the_callback = create(TRUE);
    the_registration = ExRegisterCallback(the_callback, stay, (PVOID)(ULONG_PTR)&done);
    run_threads(3, 60, notify_or_unregister, NULL);
    ObDereferenceObject(the_callback);
}

struct life {
    volatile ULONG alive;
    volatile ULONG calls;
};

static VOID must_live(PVOID context, PVOID argument1, PVOID argument2)
{
    struct life *life = context;
    (void)argument1;
    (void)argument2;
    assert_int_equal(__atomic_load_n(&life->alive, __ATOMIC_ACQUIRE), 1);
    __atomic_fetch_add(&life->calls, 1, __ATOMIC_RELAXED);
}

static void come_and_go(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(2000);
    (void)argument;
    for (unsigned long i = 0; i < rounds; i++) {
        if (index % 2 == 0) {
            struct life life = {.alive = 1};
            PVOID registration = ExRegisterCallback(the_callback, must_live, &life);
            assert_non_null(registration);
            ExNotifyCallback(the_callback, NULL, NULL);
            assert_true(__atomic_load_n(&life.calls, __ATOMIC_RELAXED) >= 1);
            ExUnregisterCallback(registration);
            __atomic_store_n(&life.alive, 0, __ATOMIC_RELEASE);
        } else {
            ExNotifyCallback(the_callback, NULL, NULL);
        }
    }
}

static void come_and_go_together(void **state)
{
    (void)state;
    the_callback = create(TRUE);
    run_threads(THREADS, 120, come_and_go, NULL);
    ObDereferenceObject(the_callback);
}

static void unregister_raised(void *registration)
{
    KfRaiseIrql(DISPATCH_LEVEL);
    ExUnregisterCallback(registration);
}

static VOID at_dispatch_level(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1;
    (void)argument2;
    *(PKIRQL)context = KeGetCurrentIrql();
}

static void levels(void **state)
{
    PCALLBACK_OBJECT callback = create(TRUE);
    KIRQL seen = PASSIVE_LEVEL, old;
    PVOID registration = ExRegisterCallback(callback, at_dispatch_level, &seen);
    (void)state;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    ExNotifyCallback(callback, NULL, NULL);
    KeLowerIrql(old);
    assert_int_equal(seen, DISPATCH_LEVEL);
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, unregister_raised, registration);
    ExUnregisterCallback(registration);
    ObDereferenceObject(callback);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(called_in_order),     cmocka_unit_test(one_routine),          cmocka_unit_test(named),
        cmocka_unit_test(unregistering_waits), cmocka_unit_test(come_and_go_together), cmocka_unit_test(levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
