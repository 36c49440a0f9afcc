/*
 * Names that appear and disappear. While any thread has a handle to a named object, the name leads to that object only;
 * otherwise the name is free.
 */
#include "../nt/objecttest.h"

enum { THREADS = 4, NAMES = 3 };

static HANDLE base;
static const WCHAR *const names[NAMES] = {u"one", u"two", u"Global\\three"};

static HANDLE create_or_open(const WCHAR *name, int *created)
{
    HANDLE event = NULL;
    NTSTATUS status =
        NtCreateEvent(&event, EVENT_ALL_ACCESS, NAMED(name, base, OBJ_OPENIF), NotificationEvent, FALSE);

    assert_true(status == STATUS_SUCCESS || status == STATUS_OBJECT_NAME_EXISTS);
    *created = status == STATUS_SUCCESS;
    return event;
}

static void same_name_same_object(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(20000);
    test_random random;

    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = 0; i < rounds; i++) {
        const WCHAR *name = names[random_below(&random, NAMES)];
        HANDLE first, second;
        int created;

        if (random_below(&random, 4) == 0) {
            NTSTATUS status = NtOpenEvent(&first, EVENT_ALL_ACCESS, NAMED(name, base, 0));

            assert_true(status == STATUS_SUCCESS || status == STATUS_OBJECT_NAME_NOT_FOUND);
            if (status)
                continue;
        } else {
            first = create_or_open(name, &created);
        }
        assert_int_equal(NtOpenEvent(&second, EVENT_ALL_ACCESS, NAMED(name, base, OBJ_CASE_INSENSITIVE)), 0);
        assert_int_equal(NtCompareObjects(first, second), STATUS_SUCCESS);
        assert_int_equal(NtSetEvent(second, NULL), STATUS_SUCCESS);
        if (random_below(&random, 2)) {
            close_handle(first);
            assert_int_equal(NtSetEvent(second, NULL), STATUS_SUCCESS);
            close_handle(second);
        } else {
            close_handle(second);
            close_handle(first);
        }
    }
}

static void a_name_leads_to_one_object(void **state)
{
    ULONG objects = objects_of("Event"), handles = handles_of("Event");

    (void)state;
    run_threads(THREADS, 300, same_name_same_object, NULL);
    assert_int_equal(objects_of("Event"), objects);
    assert_int_equal(handles_of("Event"), handles);
}

/* Exactly one of the threads that create without OBJ_OPENIF succeeds, and the others see its object. */
static volatile LONG owners;

static void create_exclusively(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(20000);

    (void)argument;
    (void)index;
    for (unsigned long i = 0; i < rounds; i++) {
        HANDLE event;
        NTSTATUS status = NtCreateEvent(&event, EVENT_ALL_ACCESS, NAMED(u"only", base, 0), NotificationEvent, FALSE);

        if (status == STATUS_OBJECT_NAME_COLLISION)
            continue;
        assert_int_equal(status, STATUS_SUCCESS);
        assert_int_equal(__atomic_add_fetch(&owners, 1, __ATOMIC_SEQ_CST), 1);
        assert_int_equal(__atomic_sub_fetch(&owners, 1, __ATOMIC_SEQ_CST), 0);
        close_handle(event);
    }
}

static void of_many_creators_one_succeeds(void **state)
{
    ULONG objects = objects_of("Event");

    (void)state;
    run_threads(THREADS, 300, create_exclusively, NULL);
    assert_int_equal(objects_of("Event"), objects);
}

/* Directories, links and permanence change during lookups. */
static void move_things(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(5000);
    UNICODE_STRING target = counted(u"\\BaseNamedObjects\\moving");
    test_random random;

    (void)argument;
    random_seed(&random, index + 100);
    for (unsigned long i = 0; i < rounds; i++) {
        HANDLE directory = NULL, link = NULL, event = NULL, found = NULL;
        NTSTATUS status;

        status = NtCreateDirectoryObject(&directory, DIRECTORY_ALL_ACCESS, NAMED(u"moving", base, OBJ_OPENIF));
        assert_true(NT_SUCCESS(status));
        status = NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, NAMED(u"lk", base, OBJ_OPENIF), &target);
        assert_true(NT_SUCCESS(status));
        status = NtCreateEvent(&event, EVENT_ALL_ACCESS, NAMED(u"lk\\e", base, OBJ_OPENIF), NotificationEvent, FALSE);
        assert_true(NT_SUCCESS(status));
        if (random_below(&random, 4) == 0)
            assert_int_equal(NtMakePermanentObject(event), STATUS_SUCCESS);
        assert_int_equal(NtOpenEvent(&found, EVENT_ALL_ACCESS, NAMED(u"moving\\e", base, 0)), STATUS_SUCCESS);
        assert_int_equal(NtCompareObjects(event, found), STATUS_SUCCESS);
        assert_int_equal(NtMakeTemporaryObject(found), STATUS_SUCCESS);
        close_handle(found);
        close_handle(event);
        close_handle(link);
        close_handle(directory);
    }
}

static void directories_and_links_come_and_go(void **state)
{
    ULONG objects = objects_of("Event"), directories = objects_of("Directory"), links = objects_of("SymbolicLink");

    (void)state;
    run_threads(THREADS, 300, move_things, NULL);
    assert_int_equal(objects_of("Event"), objects);
    assert_int_equal(objects_of("Directory"), directories);
    assert_int_equal(objects_of("SymbolicLink"), links);
}

static int setup(void **state)
{
    (void)state;
    base = open_directory(u"\\BaseNamedObjects");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_leads_to_one_object),
        cmocka_unit_test(of_many_creators_one_succeeds),
        cmocka_unit_test(directories_and_links_come_and_go),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
