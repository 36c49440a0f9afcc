/* Names, references and handles in a world, across processes. */
#include "processes.h"

#include <uchar.h>

#define SYNCHRONIZATION {.Type = WoSynchronizationEvent}

static PWO_VIEW view;

static UNICODE_STRING text(const char16_t *characters)
{
    USHORT length = 0;
    while (characters[length] != 0)
        length++;
    return (UNICODE_STRING){(USHORT)(length * 2), (USHORT)(length * 2 + 2), (PWSTR)(uintptr_t)characters};
}

static NTSTATUS create_in(WO_INDEX directory_index, const char16_t *name, const WO_NEW *new, ULONG handles,
                          WO_INDEX *object)
{
    UNICODE_STRING string = text(name);
    WO_LOOKUP lookup = {directory_index, &string, TRUE};
    return WoCreateName(view, &lookup, new, handles, object);
}

static NTSTATUS create(const char16_t *name, WO_INDEX *object)
{
    return create_in(0, name, &(WO_NEW)SYNCHRONIZATION, 1, object);
}

static NTSTATUS find_in(WO_INDEX directory_index, const char16_t *name, BOOLEAN insensitive, WO_INDEX *object)
{
    UNICODE_STRING string = text(name);
    WO_LOOKUP lookup = {directory_index, &string, insensitive};
    return WoFindName(view, &lookup, 1, object);
}

static NTSTATUS find(const char16_t *name, WO_INDEX *object)
{
    return find_in(0, name, TRUE, object);
}

static void drop(WO_INDEX object, LONG handles)
{
    assert_int_equal(WoChangeHandles(view, object, -handles), STATUS_SUCCESS);
    WoDereferenceObject(view, object);
}

static ULONG64 used(void)
{
    return __atomic_load_n(&view->World->Used, __ATOMIC_RELAXED);
}

static void find_what_was_created(void *argument)
{
    WO_INDEX first, second, other;
    (void)argument;
    view = attach();
    ULONG64 before = used();
    assert_int_equal(find(u"Name", &first), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(create(u"Name", &first), STATUS_SUCCESS);
    assert_int_equal(create(u"nAmE", &second), STATUS_OBJECT_NAME_EXISTS);
    assert_int_equal(second, first);
    assert_int_equal(WoQueryHandleCount(view, first), 2);
    assert_int_equal(find_in(0, u"name", FALSE, &second), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(find_in(0, u"Name", FALSE, &second), STATUS_SUCCESS);
    assert_int_equal(create(u"\u00dc", &second), STATUS_SUCCESS);
    assert_int_equal(find(u"\u00fc", &other), STATUS_SUCCESS);
    assert_int_equal(other, second);
    assert_int_equal(WoTypeOf(view, second), WoSynchronizationEvent);
    drop(second, 2);
    /* the name goes with the last handle, the object with the reference */
    assert_int_equal(WoChangeHandles(view, first, -3), STATUS_SUCCESS);
    assert_int_equal(find(u"Name", &other), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(WoTypeOf(view, first), WoSynchronizationEvent);
    assert_int_equal(create(u"Name", &other), STATUS_SUCCESS);
    assert_int_not_equal(other, first);
    drop(other, 1);
    WoDereferenceObject(view, first);
    assert_int_equal(used(), before);
    assert_int_equal(view->World->Names, 0);
    assert_int_equal(view->World->Objects, 0);
}

static void bad_names(void *argument)
{
    static WCHAR buffer[32767];
    WO_INDEX object;
    UNICODE_STRING name = {0, 0, buffer};
    WO_LOOKUP lookup = {0, &name, TRUE};
    WO_NEW new = SYNCHRONIZATION;
    (void)argument;
    view = attach();
    ULONG64 before = used();
    for (unsigned i = 0; i < 32767; i++)
        buffer[i] = (WCHAR)('a' + i % 26);
    assert_int_equal(WoCreateName(view, &lookup, &new, 1, &object), STATUS_OBJECT_NAME_INVALID);
    name.Length = 3;
    assert_int_equal(WoCreateName(view, &lookup, &new, 1, &object), STATUS_OBJECT_NAME_INVALID);
    name.Length = 65534;
    assert_int_equal(WoCreateName(view, &lookup, &new, 1, &object), STATUS_OBJECT_NAME_INVALID);
    name.Length = 65532;
    assert_int_equal(WoCreateName(view, &lookup, &new, 1, &object), STATUS_SUCCESS);
    assert_int_equal(WoFindName(view, &lookup, 1, &object), STATUS_SUCCESS);
    ULONG length;
    static WCHAR path[32768];
    assert_int_equal(WoQueryName(view, object, path, 32766, &length), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(length, 32767);
    assert_int_equal(WoQueryName(view, object, path, 32767, &length), STATUS_SUCCESS);
    assert_memory_equal(path + 1, buffer, 65532);
    assert_int_equal(WoCreateName(view, &(WO_LOOKUP){object, &name, TRUE}, &new, 1, &object),
                     STATUS_OBJECT_TYPE_MISMATCH);
    drop(object, 2);
    assert_int_equal(used(), before);
}

static void directories(void *argument)
{
    WO_INDEX outer, inner, object, link;
    WCHAR path[64];
    ULONG length;
    WO_TYPE type;
    UNICODE_STRING target = text(u"\\Somewhere");
    (void)argument;
    view = attach();
    ULONG64 before = used();
    assert_int_equal(create_in(0, u"Outer", &(WO_NEW){.Type = WoDirectory}, 1, &outer), STATUS_SUCCESS);
    assert_int_equal(create_in(outer, u"Inner", &(WO_NEW){.Type = WoDirectory}, 1, &inner), STATUS_SUCCESS);
    assert_int_equal(create_in(inner, u"Event", &(WO_NEW)SYNCHRONIZATION, 1, &object), STATUS_SUCCESS);
    assert_int_equal(find(u"Event", &link), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(create_in(outer, u"Link", &(WO_NEW){.Type = WoSymbolicLink, .Target = &target}, 1, &link),
                     STATUS_SUCCESS);
    assert_int_equal(WoQueryTarget(view, link, path, 5, &length), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(WoQueryTarget(view, link, path, 64, &length), STATUS_SUCCESS);
    assert_int_equal(length, 10);
    assert_memory_equal(path, u"\\Somewhere", 20);
    assert_int_equal(WoQueryName(view, object, path, 64, &length), STATUS_SUCCESS);
    assert_int_equal(length, 18);
    assert_memory_equal(path, u"\\Outer\\Inner\\Event", 36);
    assert_int_equal(WoQueryEntry(view, outer, 0, path, 64, &length, &type), STATUS_SUCCESS);
    assert_memory_equal(path, u"Inner", 10);
    assert_int_equal(type, WoDirectory);
    assert_int_equal(WoQueryEntry(view, outer, 1, path, 64, &length, &type), STATUS_SUCCESS);
    assert_memory_equal(path, u"Link", 8);
    assert_int_equal(WoQueryEntry(view, outer, 2, path, 64, &length, &type), STATUS_NO_MORE_ENTRIES);
    assert_int_equal(WoQueryEntry(view, 0, 0, path, 64, &length, &type), STATUS_SUCCESS);
    assert_int_equal(WoQueryEntry(view, 0, 1, path, 64, &length, &type), STATUS_NO_MORE_ENTRIES);
    /* what is entered in a directory keeps it, without its name */
    drop(inner, 1);
    drop(outer, 1);
    assert_int_equal(find(u"Outer", &outer), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(WoQueryName(view, object, path, 64, &length), STATUS_SUCCESS);
    assert_memory_equal(path, u"...\\Event", 18);
    drop(object, 1);
    drop(link, 1);
    assert_int_equal(used(), before);
}

static void permanent(void *argument)
{
    WO_INDEX object;
    (void)argument;
    view = attach();
    ULONG64 before = used();
    WO_NEW new = {.Type = WoSemaphore, .State = 1, .Limit = 2, .Attributes = OBJ_PERMANENT};
    assert_int_equal(create_in(0, u"Stays", &new, 1, &object), STATUS_SUCCESS);
    assert_int_equal(WoQueryAttributes(view, object), OBJ_PERMANENT);
    drop(object, 1);
    assert_int_equal(find(u"Stays", &object), STATUS_SUCCESS);
    assert_int_equal(WoSetPermanent(view, object, FALSE), STATUS_SUCCESS);
    assert_int_equal(WoSetPermanent(view, object, FALSE), STATUS_SUCCESS);
    drop(object, 1);
    assert_int_equal(find(u"Stays", &object), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(used(), before);
    assert_int_equal(view->World->Permanents, 0);
}

static void leave_something_permanent(void *argument)
{
    WO_INDEX object;
    WO_NEW new = {.Type = WoNotificationEvent, .Attributes = OBJ_PERMANENT};
    (void)argument;
    view = attach();
    assert_int_equal(create_in(0, u"Stays", &new, 1, &object), STATUS_SUCCESS);
}

static void take_it_away(void *argument)
{
    WO_INDEX object;
    (void)argument;
    view = attach();
    assert_int_equal(find(u"Stays", &object), STATUS_SUCCESS);
    assert_int_equal(WoSetPermanent(view, object, FALSE), STATUS_SUCCESS);
}

static void enumerate_many(void *argument)
{
    WCHAR path[64];
    ULONG length;
    WO_TYPE type;
    WO_INDEX objects[500];
    (void)argument;
    view = attach();
    for (unsigned i = 0; i < 500; i++) {
        char16_t name[] = {u'a' + i / 26 % 26, u'a' + i % 26, u'a' + i / 676, 0};
        assert_int_equal(create(name, &objects[i]), STATUS_SUCCESS);
    }
    for (unsigned i = 0; i < 500; i++) {
        char16_t name[] = {u'a' + i / 26 % 26, u'a' + i % 26, u'a' + i / 676, 0};
        assert_int_equal(WoQueryEntry(view, 0, i, path, 64, &length, &type), STATUS_SUCCESS);
        assert_memory_equal(path, name, 6);
    }
    assert_int_equal(WoQueryEntry(view, 0, 500, path, 64, &length, &type), STATUS_NO_MORE_ENTRIES);
    assert_int_equal(WoQueryEntry(view, 0, 10, path, 64, &length, &type), STATUS_SUCCESS);
    drop(objects[10], 1); /* the next call must not use what it remembers */
    assert_int_equal(WoQueryEntry(view, 0, 11, path, 64, &length, &type), STATUS_SUCCESS);
    assert_memory_equal(path, u"ama", 6);
}

#define in_process(name, body)                                                                                         \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        char path[512];                                                                                                \
        (void)state;                                                                                                   \
        run(body, NULL);                                                                                               \
        assert_false(find_world_file(path));                                                                           \
    }

in_process(names_are_found_until_the_last_handle_is_closed, find_what_was_created)
in_process(names_have_1_to_32766_characters, bad_names)
in_process(directories_have_names_in_order, directories)
in_process(a_permanent_object_needs_no_handle, permanent)
in_process(enumerations_survive_changes, enumerate_many)

static void a_permanent_object_outlives_all_processes(void **state)
{
    char path[512];
    (void)state;
    run(leave_something_permanent, NULL);
    assert_true(find_world_file(path));
    run(take_it_away, NULL);
    assert_false(find_world_file(path));
}

typedef struct pair {
    steps there, back;
} pair;

static void create_and_exit(void *argument)
{
    pair *p = argument;
    WO_INDEX object;
    view = attach();
    assert_int_equal(create(u"Shared", &object), STATUS_SUCCESS);
    step(&p->there);
    await_step(&p->back);
}

static void create_and_be_killed(void *argument)
{
    create_and_exit(argument);
    raise(SIGKILL);
}

static void expect_exists(void *argument)
{
    WO_INDEX object;
    (void)argument;
    view = attach();
    assert_int_equal(create(u"Shared", &object), STATUS_OBJECT_NAME_EXISTS);
}

static void expect_new(void *argument)
{
    WO_INDEX object;
    (void)argument;
    view = attach();
    assert_int_equal(create(u"Shared", &object), STATUS_SUCCESS);
}

static void stay(void *argument)
{
    pair *p = argument;
    view = attach();
    step(&p->there);
    await_step(&p->back);
}

/* The successor of a program that has exited or was killed never finds its names, also while a third one is there. */
static void a_name_goes_with_its_process(void **state)
{
    pair p = {make_steps(), make_steps()}, q = {make_steps(), make_steps()};
    (void)state;
    for (unsigned round = 0; round < test_rounds(60); round++) {
        pid_t third = start(stay, &q);
        await_step(&q.there);
        pid_t first = start(round % 2 == 0 ? create_and_exit : create_and_be_killed, &p);
        await_step(&p.there);
        run(expect_exists, NULL);
        step(&p.back);
        await_process(first);
        run(expect_new, NULL);
        step(&q.back);
        assert_int_equal(await_process(third), 0);
    }
    close_steps(&p.there);
    close_steps(&p.back);
    close_steps(&q.there);
    close_steps(&q.back);
}

static void make_and_drop_for_ever(void *argument)
{
    static const char16_t *const names[] = {u"one", u"two", u"three", u"four"};
    test_random random;
    (void)argument;
    view = attach();
    random_seed(&random, (uint64_t)getpid());
    for (;;) {
        WO_INDEX object, directory_index, in;
        NTSTATUS status = create(names[random_below(&random, 4)], &object);
        if (!NT_SUCCESS(status))
            _exit(1);
        if (NT_SUCCESS(create_in(0, u"dir", &(WO_NEW){.Type = WoDirectory}, 1, &directory_index))) {
            if (NT_SUCCESS(create_in(directory_index, names[random_below(&random, 4)], &(WO_NEW)SYNCHRONIZATION, 2, &in)))
                drop(in, 2);
            drop(directory_index, 1);
        }
        drop(object, 1);
    }
}

static void find_an_empty_world(void *argument)
{
    pair *p = argument;
    view = attach();
    ULONG64 mine = used();
    step(&p->there);
    await_step(&p->back);
    while (__atomic_load_n(&view->World->Processes, __ATOMIC_RELAXED) != 1)
        nap(1000 * MICROSECOND);
    assert_true(WopLock(view));
    assert_int_equal(view->World->Names, 0);
    assert_int_equal(view->World->Objects, 0);
    assert_int_equal(view->World->Waiters, 0);
    assert_int_equal(used(), mine);
    for (unsigned i = 0; i < WO_BUCKETS; i++)
        assert_int_equal(view->World->Bucket[i], 0);
    WopUnlock(view);
}

/* The world is as small afterwards as before, wherever a process was killed. */
static void the_killed_leave_nothing(void **state)
{
    pair p = {make_steps(), make_steps()};
    test_random random;
    pid_t children[3] = {0};
    (void)state;
    random_seed(&random, 3);
    pid_t watcher = start(find_an_empty_world, &p);
    await_step(&p.there);
    for (unsigned long round = 0; round < test_rounds(600); round++) {
        unsigned i = random_below(&random, 3);
        if (children[i] != 0)
            kill_process(children[i]);
        children[i] = start(make_and_drop_for_ever, NULL);
        nap((long)random_below(&random, 2000) * MICROSECOND);
    }
    for (unsigned i = 0; i < 3; i++)
        if (children[i] != 0)
            kill_process(children[i]);
    step(&p.back);
    assert_int_equal(await_process(watcher), 0);
    close_steps(&p.there);
    close_steps(&p.back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_until_the_last_handle_is_closed),
        cmocka_unit_test(names_have_1_to_32766_characters),
        cmocka_unit_test(directories_have_names_in_order),
        cmocka_unit_test(a_permanent_object_needs_no_handle),
        cmocka_unit_test(a_permanent_object_outlives_all_processes),
        cmocka_unit_test(enumerations_survive_changes),
        cmocka_unit_test(a_name_goes_with_its_process),
        cmocka_unit_test(the_killed_leave_nothing),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
