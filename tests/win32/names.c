#include "objects.h"

static void one_namespace(void **state)
{
    static const char *const forms[] = {"shared", "Local\\shared", "Global\\shared", "Session\\0\\shared"};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(forms); i++) {
        HANDLE first = created(CreateEventA(NULL, TRUE, FALSE, forms[i]), ERROR_SUCCESS);

        for (size_t j = 0; j < ARRAYSIZE(forms); j++)
            close_all(created(CreateEventA(NULL, TRUE, FALSE, forms[j]), ERROR_ALREADY_EXISTS), NULL);
        close_all(first, NULL);
    }
}

static void names_have_case(void **state)
{
    HANDLE lower = created(CreateEventA(NULL, TRUE, FALSE, "case"), ERROR_SUCCESS);
    HANDLE upper = created(CreateEventA(NULL, TRUE, FALSE, "CASE"), ERROR_SUCCESS);

    (void)state;
    close_all(lower, upper);
    assert_fails(CreateEventA(NULL, TRUE, FALSE, "global\\case"), ERROR_PATH_NOT_FOUND);
}

static void another_type(void **state)
{
    HANDLE event = created(CreateEventA(NULL, TRUE, FALSE, "thing"), ERROR_SUCCESS);

    (void)state;
    assert_fails(CreateMutexA(NULL, TRUE, "thing"), ERROR_INVALID_HANDLE);
    assert_fails(CreateSemaphoreA(NULL, 0, 1, "thing"), ERROR_INVALID_HANDLE);
    assert_fails(CreateWaitableTimerA(NULL, TRUE, "thing"), ERROR_INVALID_HANDLE);
    assert_fails(OpenMutexA(SYNCHRONIZE, FALSE, "thing"), ERROR_INVALID_HANDLE);
    assert_fails(OpenSemaphoreA(SYNCHRONIZE, FALSE, "thing"), ERROR_INVALID_HANDLE);
    assert_fails(OpenWaitableTimerA(SYNCHRONIZE, FALSE, "thing"), ERROR_INVALID_HANDLE);
    close_all(event, NULL);
    close_all(created(CreateMutexA(NULL, TRUE, "thing"), ERROR_SUCCESS), NULL);
}

static void paths(void **state)
{
    (void)state;
    assert_fails(CreateEventA(NULL, TRUE, FALSE, "nowhere\\event"), ERROR_PATH_NOT_FOUND);
    assert_fails(OpenEventA(SYNCHRONIZE, FALSE, "nowhere\\event"), ERROR_PATH_NOT_FOUND);
    assert_fails(CreateMutexA(NULL, TRUE, "Local\\nowhere\\mutex"), ERROR_PATH_NOT_FOUND);
    assert_fails(CreateMutexA(NULL, TRUE, "Session\\9\\mutex"), ERROR_PATH_NOT_FOUND);
    assert_fails(CreateEventA(NULL, TRUE, FALSE, "Global\\"), ERROR_INVALID_NAME);
    assert_fails(CreateEventA(NULL, TRUE, FALSE, "Global\\\\event"), ERROR_INVALID_NAME);
    assert_fails(CreateEventA(NULL, TRUE, FALSE, "\\event"), ERROR_BAD_PATHNAME);
    assert_fails(OpenEventA(SYNCHRONIZE, FALSE, "\\event"), ERROR_BAD_PATHNAME);
}

static void links_are_no_objects(void **state)
{
    (void)state;
    assert_fails(OpenEventA(SYNCHRONIZE, FALSE, "Global"), ERROR_INVALID_HANDLE);
    assert_fails(CreateEventA(NULL, TRUE, FALSE, "Local"), ERROR_INVALID_HANDLE);
}

static void no_name(void **state)
{
    HANDLE first = created(CreateEventA(NULL, TRUE, FALSE, ""), ERROR_SUCCESS);
    HANDLE second = created(CreateEventW(NULL, TRUE, FALSE, u""), ERROR_SUCCESS);

    (void)state;
    assert_true(SetEvent(first));
    assert_unsignaled(second);
    close_all(first, second);
    assert_fails(OpenEventA(SYNCHRONIZE, FALSE, NULL), ERROR_INVALID_PARAMETER);
    assert_fails(OpenEventW(SYNCHRONIZE, FALSE, NULL), ERROR_INVALID_PARAMETER);
    assert_fails(OpenEventA(SYNCHRONIZE, FALSE, ""), ERROR_INVALID_HANDLE);
}

static void long_names(void **state)
{
    char name[MAX_PATH * 2 + 3];
    WCHAR wide[MAX_PATH + 2];

    (void)state;
    memset(name, 'x', sizeof(name));
    for (size_t i = 0; i < ARRAYSIZE(wide); i++)
        wide[i] = 'x';
    name[MAX_PATH] = 0;
    wide[MAX_PATH] = 0;
    close_all(created(CreateEventA(NULL, TRUE, FALSE, name), ERROR_SUCCESS), NULL);
    close_all(created(CreateEventW(NULL, TRUE, FALSE, wide), ERROR_SUCCESS), NULL);
    name[MAX_PATH] = 'x';
    name[MAX_PATH + 1] = 0;
    wide[MAX_PATH] = 'x';
    wide[MAX_PATH + 1] = 0;
    assert_fails(CreateEventA(NULL, TRUE, FALSE, name), ERROR_FILENAME_EXCED_RANGE);
    assert_fails(CreateEventW(NULL, TRUE, FALSE, wide), ERROR_FILENAME_EXCED_RANGE);
    assert_fails(OpenEventA(SYNCHRONIZE, FALSE, name), ERROR_FILENAME_EXCED_RANGE);
    assert_fails(OpenMutexW(SYNCHRONIZE, FALSE, wide), ERROR_FILENAME_EXCED_RANGE);
    /* Characters count, not bytes. */
    for (size_t i = 0; i < MAX_PATH; i++)
        memcpy(name + 2 * i, "\xC3\xA9", 2);
    name[2 * MAX_PATH] = 0;
    close_all(created(CreateSemaphoreA(NULL, 0, 1, name), ERROR_SUCCESS), NULL);
}

static void narrow_names_are_utf8(void **state)
{
    HANDLE narrow = created(CreateEventA(NULL, TRUE, FALSE, "\xC3\xA9\xF0\x9D\x84\x9E"), ERROR_SUCCESS);
    HANDLE wide = created(OpenEventW(EVENT_ALL_ACCESS, FALSE, u"\u00E9\U0001D11E"), 0xABCD);

    (void)state;
    assert_true(SetEvent(wide));
    assert_signaled(narrow);
    close_all(narrow, wide);
}

static void directories_of_the_program(void **state)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(u"\\BaseNamedObjects\\mine");
    OBJECT_ATTRIBUTES attributes = RTL_INIT_OBJECT_ATTRIBUTES(&name, 0);
    HANDLE directory, event;

    (void)state;
    assert_int_equal(NtCreateDirectoryObject(&directory, DIRECTORY_ALL_ACCESS, &attributes), STATUS_SUCCESS);
    event = created(CreateEventA(NULL, TRUE, FALSE, "mine\\event"), ERROR_SUCCESS);
    close_all(created(OpenEventA(SYNCHRONIZE, FALSE, "Global\\mine\\event"), 0xABCD), event);
    close_all(directory, NULL);
    assert_fails(CreateEventA(NULL, TRUE, FALSE, "mine\\event"), ERROR_PATH_NOT_FOUND);
}

static void inherited(void **state)
{
    SECURITY_ATTRIBUTES security = {sizeof(security), NULL, TRUE};
    HANDLE created_so = created(CreateEventA(&security, TRUE, FALSE, "inherited"), ERROR_SUCCESS);
    HANDLE opened_so = created(OpenEventA(SYNCHRONIZE, TRUE, "inherited"), 0xABCD);
    HANDLE plain = created(OpenEventA(SYNCHRONIZE, FALSE, "inherited"), 0xABCD);
    OBJECT_HANDLE_FLAG_INFORMATION flags;

    (void)state;
    assert_int_equal(NtQueryObject(created_so, ObjectHandleFlagInformation, &flags, sizeof(flags), NULL), 0);
    assert_true(flags.Inherit);
    assert_int_equal(NtQueryObject(opened_so, ObjectHandleFlagInformation, &flags, sizeof(flags), NULL), 0);
    assert_true(flags.Inherit);
    assert_int_equal(NtQueryObject(plain, ObjectHandleFlagInformation, &flags, sizeof(flags), NULL), 0);
    assert_false(flags.Inherit);
    close_all(created_so, opened_so);
    close_all(plain, NULL);
}

static volatile LONG creators;

/* Of all threads that create one name at once exactly one creates the object. */
static void create_together(void *argument, unsigned index)
{
    HANDLE *mine = (HANDLE *)argument + index;

    *mine = CreateEventA(NULL, TRUE, FALSE, "together");
    assert_non_null(*mine);
    if (GetLastError() == ERROR_SUCCESS)
        InterlockedIncrement(&creators);
    else
        assert_int_equal(GetLastError(), ERROR_ALREADY_EXISTS);
}

static void one_creator(void **state)
{
    (void)state;
    for (unsigned long i = 0; i < test_rounds(20); i++) {
        HANDLE handles[4];

        creators = 0;
        run_threads(4, 60, create_together, handles);
        assert_int_equal(creators, 1);
        assert_true(SetEvent(handles[0]));
        for (int j = 0; j < 4; j++) {
            assert_signaled(handles[j]);
            close_all(handles[j], NULL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_namespace),
        cmocka_unit_test(names_have_case),
        cmocka_unit_test(another_type),
        cmocka_unit_test(paths),
        cmocka_unit_test(links_are_no_objects),
        cmocka_unit_test(no_name),
        cmocka_unit_test(long_names),
        cmocka_unit_test(narrow_names_are_utf8),
        cmocka_unit_test(directories_of_the_program),
        cmocka_unit_test(inherited),
        cmocka_unit_test(one_creator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
