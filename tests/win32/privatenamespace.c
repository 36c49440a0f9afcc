/* privatenamespace.c: boundary descriptors and private namespaces, across processes. */
#include "actors.h"

#include <namespaceapi.h>

static SID everyone = {SID_REVISION, 1, {{0, 0, 0, 0, 0, 1}}, {0}};
static SID low_level = {SID_REVISION, 1, {{0, 0, 0, 0, 0, 16}}, {4096}};

static HANDLE boundary(const char *name, bool with_sid)
{
    HANDLE descriptor = CreateBoundaryDescriptorA(name, 0);

    REQUIRE(descriptor != NULL);
    REQUIRE(!with_sid || AddSIDToBoundaryDescriptor(&descriptor, &everyone));
    return descriptor;
}

/* Roles. */

/* open BOUNDARY WITH-SID EVENT: opens the namespace by another prefix and sets an event in it. 0, or an error. */
static int open_namespace(int argc, char **argv)
{
    HANDLE space = OpenPrivateNamespaceA(boundary(argv[1], argv[2][0] == '1'), "theirs");
    char name[64];

    (void)argc;
    if (space == NULL)
        return (int)GetLastError();
    snprintf(name, sizeof(name), "theirs\\%s", argv[3]);
    HANDLE event = OpenEventA(EVENT_MODIFY_STATE, FALSE, name);
    return event != NULL && SetEvent(event) ? 0 : (int)GetLastError();
}

static int create_namespace(int argc, char **argv)
{
    (void)argc;
    return CreatePrivateNamespaceA(NULL, boundary(argv[1], true), "mine") != NULL ? 0 : (int)GetLastError();
}

static const actor_entry roles[] = {{"open", open_namespace}, {"create", create_namespace}, {NULL, NULL}};

/* Cases. */

static void a_namespace_is_found_by_its_boundary(void **state)
{
    HANDLE descriptor = boundary("the boundary", true);
    HANDLE space = CreatePrivateNamespaceA(NULL, descriptor, "mine");
    HANDLE event;

    (void)state;
    assert_non_null(space);
    event = CreateEventA(NULL, TRUE, FALSE, "mine\\an event");
    assert_non_null(event);
    assert_null(OpenEventA(SYNCHRONIZE, FALSE, "an event"));
    assert_int_equal(GetLastError(), ERROR_FILE_NOT_FOUND);
    assert_int_equal(end_actor(start_actor("open \"the boundary\" 1 \"an event\"")), 0);
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    assert_int_equal(end_actor(start_actor("open \"the boundary\" 0 \"an event\"")), ERROR_PATH_NOT_FOUND);
    assert_int_equal(end_actor(start_actor("open \"another one\" 1 \"an event\"")), ERROR_PATH_NOT_FOUND);
    assert_int_equal(end_actor(start_actor("create \"the boundary\"")), ERROR_ALREADY_EXISTS);
    assert_int_equal(end_actor(start_actor("create \"another one\"")), 0);
    await_one_handle(space);
    assert_true(ClosePrivateNamespace(space, 0));
    assert_int_equal(end_actor(start_actor("open \"the boundary\" 1 \"an event\"")), ERROR_PATH_NOT_FOUND);
    assert_true(SetEvent(event)); /* its objects stay */
    assert_null(OpenEventA(SYNCHRONIZE, FALSE, "mine\\an event"));
    assert_int_equal(GetLastError(), ERROR_PATH_NOT_FOUND);
    CloseHandle(event);
    DeleteBoundaryDescriptor(descriptor);
}

static void a_prefix_is_taken_once(void **state)
{
    HANDLE first = boundary("first", true), second = boundary("second", true);
    HANDLE space = CreatePrivateNamespaceW(NULL, first, u"prefix"), other;

    (void)state;
    assert_non_null(space);
    assert_null(CreatePrivateNamespaceW(NULL, second, u"PREFIX"));
    assert_int_equal(GetLastError(), ERROR_DUP_NAME);
    assert_null(OpenPrivateNamespaceW(first, u"prefix"));
    assert_int_equal(GetLastError(), ERROR_DUP_NAME);
    other = OpenPrivateNamespaceW(first, u"once more");
    assert_non_null(other);
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "prefix\\x"), same = OpenEventA(SYNCHRONIZE, FALSE, "once more\\x");
    assert_true(CompareObjectHandles(event, same));
    CloseHandle(event);
    CloseHandle(same);
    assert_true(ClosePrivateNamespace(other, 0));
    assert_true(ClosePrivateNamespace(space, 0));
    assert_false(ClosePrivateNamespace(space, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    DeleteBoundaryDescriptor(first);
    DeleteBoundaryDescriptor(second);
}

static void a_destroyed_namespace_is_found_no_more(void **state)
{
    HANDLE descriptor = boundary("doomed", true);
    HANDLE space = CreatePrivateNamespaceA(NULL, descriptor, "doomed");
    HANDLE other = OpenPrivateNamespaceA(descriptor, "second door");

    (void)state;
    assert_non_null(other);
    assert_false(ClosePrivateNamespace(space, 2));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_true(ClosePrivateNamespace(space, PRIVATE_NAMESPACE_FLAG_DESTROY));
    assert_int_equal(end_actor(start_actor("open doomed 1 x")), ERROR_PATH_NOT_FOUND);
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "second door\\still");
    assert_non_null(event);
    CloseHandle(event);
    assert_true(ClosePrivateNamespace(other, 0));
    DeleteBoundaryDescriptor(descriptor);
}

static void the_order_of_identifiers_does_not_matter(void **state)
{
    SID users = {SID_REVISION, 1, {{0, 0, 0, 0, 0, 5}}, {11}};
    HANDLE first = CreateBoundaryDescriptorW(u"order", 0), second = CreateBoundaryDescriptorW(u"order", 0), space, same;

    (void)state;
    assert_true(AddSIDToBoundaryDescriptor(&first, &everyone));
    assert_true(AddSIDToBoundaryDescriptor(&first, &users));
    assert_true(AddSIDToBoundaryDescriptor(&second, &users));
    assert_true(AddSIDToBoundaryDescriptor(&second, &everyone));
    assert_true(AddSIDToBoundaryDescriptor(&second, &everyone));
    space = CreatePrivateNamespaceA(NULL, first, "one");
    same = OpenPrivateNamespaceA(second, "two");
    assert_non_null(space);
    assert_non_null(same);
    assert_true(CompareObjectHandles(space, same));
    assert_true(AddIntegrityLabelToBoundaryDescriptor(&second, &low_level));
    assert_false(AddIntegrityLabelToBoundaryDescriptor(&second, &low_level));
    assert_null(OpenPrivateNamespaceA(second, "three"));
    assert_int_equal(GetLastError(), ERROR_PATH_NOT_FOUND);
    assert_true(ClosePrivateNamespace(space, 0));
    assert_true(ClosePrivateNamespace(same, 0));
    DeleteBoundaryDescriptor(first);
    DeleteBoundaryDescriptor(second);
}

static void bad_arguments(void **state)
{
    HANDLE descriptor = boundary("bad", false), none = NULL;
    SID unknown = {2, 1, {{0}}, {0}}, long_one = {SID_REVISION, 16, {{0}}, {0}};

    (void)state;
    assert_null(CreateBoundaryDescriptorW(NULL, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(CreateBoundaryDescriptorW(u"x", 4));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(AddSIDToBoundaryDescriptor(&descriptor, &unknown));
    assert_int_equal(GetLastError(), ERROR_INVALID_SID);
    assert_false(AddSIDToBoundaryDescriptor(&descriptor, &long_one));
    assert_int_equal(GetLastError(), ERROR_INVALID_SID);
    assert_false(AddSIDToBoundaryDescriptor(&descriptor, &low_level));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(AddIntegrityLabelToBoundaryDescriptor(&descriptor, &everyone));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(AddSIDToBoundaryDescriptor(&none, &everyone));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(CreatePrivateNamespaceA(NULL, NULL, "x"));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(CreatePrivateNamespaceA(NULL, descriptor, "a\\b"));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_null(CreatePrivateNamespaceA(NULL, descriptor, ""));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    DeleteBoundaryDescriptor(descriptor);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_namespace_is_found_by_its_boundary),
        cmocka_unit_test(a_prefix_is_taken_once),
        cmocka_unit_test(a_destroyed_namespace_is_found_no_more),
        cmocka_unit_test(the_order_of_identifiers_does_not_matter),
        cmocka_unit_test(bad_arguments),
    };
    int code = play_role(argc, argv, roles);

    return code >= 0 ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
