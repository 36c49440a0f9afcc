#include "objecttest.h"

#include <stdlib.h>

static HANDLE base;

static HANDLE make_link(const WCHAR *name, HANDLE root, const WCHAR *target)
{
    UNICODE_STRING string = counted(target);
    HANDLE link;

    assert_int_equal(NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, NAMED(name, root, 0), &string), 0);
    return link;
}

static HANDLE make_event(const WCHAR *name)
{
    HANDLE event;

    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NAMED(name, base, 0), NotificationEvent, FALSE), 0);
    return event;
}

static NTSTATUS open_event(const WCHAR *name, ULONG flags, HANDLE *handle)
{
    *handle = NULL;
    return NtOpenEvent(handle, EVENT_ALL_ACCESS, NAMED(name, base, flags));
}

static NTSTATUS create_event(const WCHAR *name, ULONG flags, HANDLE *handle)
{
    *handle = NULL;
    return NtCreateEvent(handle, EVENT_ALL_ACCESS, NAMED(name, base, flags), NotificationEvent, FALSE);
}

static void creating_checks_its_target(void **state)
{
    UNICODE_STRING target = counted(u"\\x");
    HANDLE link;

    (void)state;
    assert_int_equal(NtCreateSymbolicLinkObject(NULL, SYMBOLIC_LINK_ALL_ACCESS, NULL, &target), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, NULL, NULL), STATUS_ACCESS_VIOLATION);
    target.Length = 0;
    assert_int_equal(NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, NULL, &target),
                     STATUS_INVALID_PARAMETER);
    target.Length = 3;
    assert_int_equal(NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, NULL, &target),
                     STATUS_INVALID_PARAMETER);
    target.Length = 6;
    assert_int_equal(NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, NULL, &target),
                     STATUS_INVALID_PARAMETER);
    target.Length = 4;
    target.Buffer = NULL;
    assert_int_equal(NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, NULL, &target),
                     STATUS_ACCESS_VIOLATION);
    target = counted(u"\\x");
    assert_int_equal(NtCreateSymbolicLinkObject(&link, 0x8000, NULL, &target), STATUS_ACCESS_DENIED);
    assert_int_equal(NtCreateSymbolicLinkObject(&link, SYMBOLIC_LINK_ALL_ACCESS, NULL, &target), STATUS_SUCCESS);
    close_handle(link);
}

static void querying_the_target(void **state)
{
    HANDLE link = make_link(u"lk", base, u"\\target"), limited, event = make_event(u"");
    WCHAR text[16] = u"##############";
    UNICODE_STRING string = {0, 0, text};
    ULONG length = 0;
    ULARGE_INTEGER before;

    (void)state;
    string.MaximumLength = 14;
    assert_int_equal(NtQuerySymbolicLinkObject(link, &string, NULL), STATUS_SUCCESS);
    assert_true(text_equal(&string, u"\\target"));
    assert_int_equal(text[7], u'#');
    string.Length = 0;
    string.MaximumLength = 12;
    assert_int_equal(NtQuerySymbolicLinkObject(link, &string, NULL), STATUS_BUFFER_TOO_SMALL);
    string.MaximumLength = 14;
    assert_int_equal(NtQuerySymbolicLinkObject(link, &string, &length), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(length, 16);
    assert_int_equal(string.Length, 0);
    string.MaximumLength = 16;
    assert_int_equal(NtQuerySymbolicLinkObject(link, &string, &length), STATUS_SUCCESS);
    assert_int_equal(string.Length, 14);
    assert_int_equal(text[7], 0);
    assert_int_equal(NtQuerySymbolicLinkObject(link, NULL, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQuerySymbolicLinkObject(event, &string, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtQuerySymbolicLinkObject(NULL, &string, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtOpenSymbolicLinkObject(&limited, READ_CONTROL, NAMED(u"lk", base, 0)), STATUS_SUCCESS);
    assert_int_equal(NtQuerySymbolicLinkObject(limited, &string, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(ZwQuerySymbolicLinkObject(limited, &string, NULL), STATUS_SUCCESS);
    before.QuadPart = (ULONGLONG)basic_information(link).CreationTime.QuadPart;
    assert_true(before.QuadPart != 0);
    close_handle(limited);
    close_handle(event);
    close_handle(link);
}

static void links_lead_on(void **state)
{
    HANDLE directory, event, opened, other, link = make_link(u"lk", base, u"\\BaseNamedObjects\\sub");

    (void)state;
    assert_int_equal(open_event(u"lk\\e", 0, &opened), STATUS_OBJECT_PATH_NOT_FOUND);
    assert_int_equal(NtCreateDirectoryObject(&directory, DIRECTORY_ALL_ACCESS, NAMED(u"sub", base, 0)), 0);
    assert_int_equal(open_event(u"lk\\e", 0, &opened), STATUS_OBJECT_NAME_NOT_FOUND);
    event = make_event(u"lk\\e");
    assert_int_equal(open_event(u"sub\\e", 0, &opened), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(event, opened), STATUS_SUCCESS);
    close_handle(opened);
    assert_int_equal(create_event(u"lk\\e", 0, &opened), STATUS_OBJECT_NAME_COLLISION);
    assert_int_equal(create_event(u"lk\\e", OBJ_OPENIF, &opened), STATUS_OBJECT_NAME_EXISTS);
    close_handle(opened);
    assert_int_equal(open_event(u"LK\\E", OBJ_CASE_INSENSITIVE, &opened), STATUS_SUCCESS);
    close_handle(opened);
    assert_int_equal(open_event(u"lk", 0, &opened), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(open_event(u"lk\\", 0, &opened), STATUS_OBJECT_NAME_INVALID);
    assert_int_equal(open_event(u"lk\\e", OBJ_DONT_REPARSE, &opened), STATUS_REPARSE_POINT_ENCOUNTERED);
    assert_int_equal(open_event(u"sub\\e", OBJ_DONT_REPARSE, &opened), STATUS_SUCCESS);
    close_handle(opened);
    assert_int_equal(NtOpenDirectoryObject(&other, DIRECTORY_QUERY, NAMED(u"lk", base, 0)), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(directory, other), STATUS_SUCCESS);
    close_handle(other);
    close_handle(event);
    close_handle(directory);
    close_handle(link);
}

static void a_link_itself(void **state)
{
    HANDLE link = make_link(u"lk", base, u"\\BaseNamedObjects\\e"), opened, event = make_event(u"e"), other;
    UNICODE_STRING target = counted(u"\\other");

    (void)state;
    assert_int_equal(NtOpenSymbolicLinkObject(&opened, SYMBOLIC_LINK_QUERY, NAMED(u"lk", base, 0)), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(link, opened), STATUS_SUCCESS);
    close_handle(opened);
    assert_int_equal(ZwOpenSymbolicLinkObject(&opened, SYMBOLIC_LINK_QUERY, NAMED(u"lk", base, OBJ_DONT_REPARSE)),
                     STATUS_SUCCESS);
    close_handle(opened);
    assert_int_equal(NtOpenSymbolicLinkObject(&opened, SYMBOLIC_LINK_QUERY, NAMED(u"e", base, 0)),
                     STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtCreateSymbolicLinkObject(&opened, SYMBOLIC_LINK_ALL_ACCESS, NAMED(u"lk", base, 0), &target),
                     STATUS_OBJECT_NAME_COLLISION);
    assert_int_equal(
        ZwCreateSymbolicLinkObject(&opened, SYMBOLIC_LINK_ALL_ACCESS, NAMED(u"lk", base, OBJ_OPENIF), &target),
        STATUS_OBJECT_NAME_EXISTS);
    assert_int_equal(NtCompareObjects(link, opened), STATUS_SUCCESS);
    close_handle(opened);
    /* a link at the end of a path is followed for every other type */
    assert_int_equal(open_event(u"lk", 0, &opened), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(event, opened), STATUS_SUCCESS);
    close_handle(opened);
    close_handle(event);
    assert_int_equal(open_event(u"lk", 0, &opened), STATUS_OBJECT_NAME_NOT_FOUND);
    event = make_event(u"lk");
    assert_int_equal(open_event(u"e", 0, &other), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(event, other), STATUS_SUCCESS);
    close_handle(other);
    close_handle(event);
    close_handle(link);
}

static void loops_end(void **state)
{
    HANDLE self = make_link(u"self", base, u"\\BaseNamedObjects\\self");
    HANDLE ping = make_link(u"ping", base, u"\\BaseNamedObjects\\pong");
    HANDLE pong = make_link(u"pong", base, u"\\BaseNamedObjects\\ping");
    HANDLE grow = make_link(u"grow", base, u"\\BaseNamedObjects\\grow\\and\\grow");
    HANDLE relative = make_link(u"relative", base, u"somewhere");
    ULONG objects = objects_of("Event");
    HANDLE handle;

    (void)state;
    assert_int_equal(open_event(u"self", 0, &handle), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(open_event(u"self\\x", 0, &handle), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(create_event(u"self", 0, &handle), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(create_event(u"ping\\x", 0, &handle), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(open_event(u"grow", 0, &handle), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(open_event(u"relative\\x", 0, &handle), STATUS_OBJECT_PATH_SYNTAX_BAD);
    assert_int_equal(objects_of("Event"), objects);
    close_handle(self);
    close_handle(ping);
    close_handle(pong);
    close_handle(grow);
    close_handle(relative);
}

static void chains_of_links(void **state)
{
    enum { LENGTH = 33 };
    HANDLE links[LENGTH], event = make_event(u"end"), opened;
    WCHAR names[LENGTH + 1][24];

    (void)state;
    for (int i = 0; i <= LENGTH; i++) {
        memcpy(names[i], u"\\BaseNamedObjects\\l??", 21 * sizeof(WCHAR));
        names[i][19] = (WCHAR)(u'0' + i / 10);
        names[i][20] = (WCHAR)(u'0' + i % 10);
        names[i][21] = 0;
    }
    for (int i = 0; i < LENGTH; i++)
        links[i] = make_link(names[i], NULL, i ? names[i - 1] : u"\\BaseNamedObjects\\end");
    assert_int_equal(NtOpenEvent(&opened, EVENT_ALL_ACCESS, NAMED(names[31], NULL, 0)), STATUS_SUCCESS);
    close_handle(opened);
    assert_int_equal(NtOpenEvent(&opened, EVENT_ALL_ACCESS, NAMED(names[32], NULL, 0)), STATUS_OBJECT_NAME_NOT_FOUND);
    for (int i = 0; i < LENGTH; i++)
        close_handle(links[i]);
    close_handle(event);
}

static void a_path_that_grows_too_long(void **state)
{
    WCHAR *text = calloc(20001, sizeof(WCHAR)), *path = calloc(20001, sizeof(WCHAR));
    HANDLE link, handle;

    (void)state;
    for (int i = 0; i < 20000; i++)
        text[i] = path[i] = u'x';
    memcpy(text, u"\\BaseNamedObjects\\", 18 * sizeof(WCHAR));
    memcpy(path, u"lk\\", 3 * sizeof(WCHAR));
    link = make_link(u"lk", base, text);
    assert_int_equal(open_event(path, 0, &handle), STATUS_NAME_TOO_LONG);
    assert_int_equal(create_event(path, 0, &handle), STATUS_NAME_TOO_LONG);
    close_handle(link);
    free(text);
    free(path);
}

static int setup(void **state)
{
    (void)state;
    base = open_directory(u"\\BaseNamedObjects");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close_handle(base);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_checks_its_target),
        cmocka_unit_test(querying_the_target),
        cmocka_unit_test(links_lead_on),
        cmocka_unit_test(a_link_itself),
        cmocka_unit_test(loops_end),
        cmocka_unit_test(chains_of_links),
        cmocka_unit_test(a_path_that_grows_too_long),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
