#include "objecttest.h"

#include <stdio.h>
#include <stdlib.h>

static HANDLE base;

static NTSTATUS create_event(const WCHAR *name, HANDLE root, ULONG flags, HANDLE *handle)
{
    *handle = NULL;
    return NtCreateEvent(handle, EVENT_ALL_ACCESS, NAMED(name, root, flags), NotificationEvent, FALSE);
}

static NTSTATUS open_event(const WCHAR *name, HANDLE root, ULONG flags, HANDLE *handle)
{
    *handle = NULL;
    return NtOpenEvent(handle, EVENT_ALL_ACCESS, NAMED(name, root, flags));
}

static HANDLE make_directory(const WCHAR *name, HANDLE root, ULONG flags)
{
    HANDLE directory;

    assert_int_equal(NtCreateDirectoryObject(&directory, DIRECTORY_ALL_ACCESS, NAMED(name, root, flags)), 0);
    return directory;
}

static HANDLE make_event(const WCHAR *name, HANDLE root, ULONG flags)
{
    HANDLE event;

    assert_int_equal(create_event(name, root, flags, &event), STATUS_SUCCESS);
    return event;
}

static void what_is_there_from_the_beginning(void **state)
{
    static const WCHAR *const directories[] = {u"\\",         u"\\BaseNamedObjects",   u"\\KernelObjects",
                                               u"\\Sessions", u"\\Sessions\\BNOLINKS"};
    HANDLE event = make_event(u"there", base, 0), opened;
    static const WCHAR *const ways[] = {u"Global\\there", u"Local\\there", u"Session\\0\\there", u"Local\\Global\\there"};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(directories); i++) {
        HANDLE directory = open_directory(directories[i]);

        assert_true(i == 0 || (basic_information(directory).Attributes & OBJ_PERMANENT));
        close_handle(directory);
    }
    for (size_t i = 0; i < ARRAYSIZE(ways); i++) {
        assert_int_equal(open_event(ways[i], base, 0, &opened), STATUS_SUCCESS);
        assert_int_equal(NtCompareObjects(event, opened), STATUS_SUCCESS);
        close_handle(opened);
    }
    assert_int_equal(open_event(u"Session\\1\\there", base, 0, &opened), STATUS_OBJECT_PATH_NOT_FOUND);
    close_handle(event);
}

/* What a path leads to; relative ones begin at \BaseNamedObjects, where there are an event "e" and a directory "d". */
static void paths_and_their_statuses(void **state)
{
    static const struct {
        const WCHAR *name;
        int relative;
        NTSTATUS created, opened, opened_as_directory;
    } rows[] = {
        {u"x", 0, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_PATH_SYNTAX_BAD},
        {u"", 0, STATUS_SUCCESS, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_PATH_SYNTAX_BAD},
        {NULL, 0, STATUS_SUCCESS, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_PATH_SYNTAX_BAD},
        {u"\\", 0, STATUS_OBJECT_NAME_COLLISION, STATUS_OBJECT_TYPE_MISMATCH, STATUS_SUCCESS},
        {u"\\\\", 0, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID},
        {u"\\\\x", 0, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID},
        {u"\\nowhere\\x", 0, STATUS_OBJECT_PATH_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND},
        {u"\\BaseNamedObjects\\", 0, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID,
         STATUS_OBJECT_NAME_INVALID},
        {u"\\BaseNamedObjects\\e", 0, STATUS_OBJECT_NAME_COLLISION, STATUS_SUCCESS, STATUS_OBJECT_TYPE_MISMATCH},
        {u"\\BaseNamedObjects\\x", 0, STATUS_SUCCESS, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_NAME_NOT_FOUND},
        {NULL, 1, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID},
        {u"", 1, STATUS_SUCCESS, STATUS_OBJECT_TYPE_MISMATCH, STATUS_SUCCESS},
        {u"\\x", 1, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_PATH_SYNTAX_BAD},
        {u"\\", 1, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_PATH_SYNTAX_BAD, STATUS_OBJECT_PATH_SYNTAX_BAD},
        {u"e", 1, STATUS_OBJECT_NAME_COLLISION, STATUS_SUCCESS, STATUS_OBJECT_TYPE_MISMATCH},
        {u"e\\x", 1, STATUS_OBJECT_TYPE_MISMATCH, STATUS_OBJECT_TYPE_MISMATCH, STATUS_OBJECT_TYPE_MISMATCH},
        {u"d", 1, STATUS_OBJECT_NAME_COLLISION, STATUS_OBJECT_TYPE_MISMATCH, STATUS_SUCCESS},
        {u"d\\x", 1, STATUS_SUCCESS, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_NAME_NOT_FOUND},
        {u"d\\", 1, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID},
        {u"d\\\\x", 1, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_INVALID},
        {u"x\\\\y", 1, STATUS_OBJECT_PATH_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND},
        {u"d\\x\\y", 1, STATUS_OBJECT_PATH_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND},
        {u"a name / with: other * characters?", 1, STATUS_SUCCESS, STATUS_OBJECT_NAME_NOT_FOUND,
         STATUS_OBJECT_NAME_NOT_FOUND},
    };
    HANDLE event = make_event(u"e", base, 0), directory = make_directory(u"d", base, 0);
    ULONG objects = objects_of("Event"), handles = handles_of("Event");

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        HANDLE root = rows[i].relative ? base : NULL, handle;

        assert_int_equal(open_event(rows[i].name, root, 0, &handle), rows[i].opened);
        if (handle)
            close_handle(handle);
        handle = NULL;
        assert_int_equal(NtOpenDirectoryObject(&handle, DIRECTORY_QUERY, NAMED(rows[i].name, root, 0)),
                         rows[i].opened_as_directory);
        if (handle)
            close_handle(handle);
        assert_int_equal(create_event(rows[i].name, root, 0, &handle), rows[i].created);
        if (handle)
            close_handle(handle);
        assert_int_equal(objects_of("Event"), objects);
        assert_int_equal(handles_of("Event"), handles);
    }
    close_handle(event);
    close_handle(directory);
}

static void attributes_are_checked(void **state)
{
    UNICODE_STRING name = counted(u"odd");
    OBJECT_ATTRIBUTES attributes;
    HANDLE event = make_event(u"e", base, 0), handle;

    (void)state;
    InitializeObjectAttributes(&attributes, &name, 0, base, NULL);
    name.Length = 5;
    assert_int_equal(NtCreateEvent(&handle, EVENT_ALL_ACCESS, &attributes, 0, 0), STATUS_OBJECT_NAME_INVALID);
    assert_int_equal(NtOpenEvent(&handle, EVENT_ALL_ACCESS, &attributes), STATUS_OBJECT_NAME_INVALID);
    name.Length = 6;
    name.Buffer = NULL;
    assert_int_equal(NtCreateEvent(&handle, EVENT_ALL_ACCESS, &attributes, 0, 0), STATUS_ACCESS_VIOLATION);
    attributes.Length -= 8;
    assert_int_equal(NtCreateEvent(&handle, EVENT_ALL_ACCESS, &attributes, 0, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(create_event(u"x", base, 0x1, &handle), STATUS_INVALID_PARAMETER);
    assert_int_equal(create_event(u"x", base, 0x2000, &handle), STATUS_INVALID_PARAMETER);
    assert_int_equal(create_event(u"x", base, OBJ_OPENLINK, &handle), STATUS_INVALID_PARAMETER);
    assert_int_equal(open_event(u"e", base, OBJ_OPENLINK, &handle), STATUS_INVALID_PARAMETER);
    assert_int_equal(open_event(u"none", base, OBJ_OPENLINK, &handle), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(create_event(u"x", event, 0, &handle), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(open_event(u"x", event, 0, &handle), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(create_event(u"x", (HANDLE)0x7ffffff0, 0, &handle), STATUS_INVALID_HANDLE);
    assert_int_equal(open_event(u"none", base, 0, &handle), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(NtOpenEvent(&handle, 0x8000, NAMED(u"e", base, 0)), STATUS_ACCESS_DENIED);
    assert_int_equal(NtOpenEvent(&handle, ACCESS_SYSTEM_SECURITY, NAMED(u"e", base, 0)), STATUS_PRIVILEGE_NOT_HELD);
    assert_int_equal(NtOpenEvent(&handle, 0x8000, NAMED(u"none", base, 0)), STATUS_OBJECT_NAME_NOT_FOUND);
    close_handle(event);
}

static void existing_names(void **state)
{
    HANDLE event = make_event(u"e", base, 0), handle;

    (void)state;
    assert_int_equal(create_event(u"e", base, 0, &handle), STATUS_OBJECT_NAME_COLLISION);
    assert_int_equal(create_event(u"e", base, OBJ_OPENIF, &handle), STATUS_OBJECT_NAME_EXISTS);
    assert_int_equal(NtCompareObjects(event, handle), STATUS_SUCCESS);
    close_handle(handle);
    assert_int_equal(NtCreateSemaphore(&handle, SEMAPHORE_ALL_ACCESS, NAMED(u"e", base, 0), 0, 1),
                     STATUS_OBJECT_NAME_COLLISION);
    assert_int_equal(NtCreateSemaphore(&handle, SEMAPHORE_ALL_ACCESS, NAMED(u"e", base, OBJ_OPENIF), 0, 1),
                     STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtCreateEvent(&handle, 0x8000, NAMED(u"e", base, OBJ_OPENIF), 0, 0), STATUS_ACCESS_DENIED);
    close_handle(event);
    assert_int_equal(create_event(u"e", base, OBJ_OPENIF, &handle), STATUS_SUCCESS);
    close_handle(handle);
}

static void case_of_names(void **state)
{
    HANDLE lower = make_event(u"straße", base, 0), upper, handle;

    (void)state;
    assert_int_equal(open_event(u"STRAßE", base, 0, &handle), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(open_event(u"STRAßE", base, OBJ_CASE_INSENSITIVE, &handle), STATUS_SUCCESS);
    close_handle(handle);
    assert_int_equal(create_event(u"STRAßE", base, OBJ_CASE_INSENSITIVE, &handle), STATUS_OBJECT_NAME_COLLISION);
    upper = make_event(u"STRAßE", base, 0);
    assert_int_equal(NtCompareObjects(lower, upper), STATUS_NOT_SAME_OBJECT);
    assert_int_equal(open_event(u"straße", base, 0, &handle), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(lower, handle), STATUS_SUCCESS);
    close_handle(handle);
    /* directories and links are found in any case; what is in them is not */
    handle = open_directory(u"\\basenamedOBJECTS");
    close_handle(handle);
    assert_int_equal(open_event(u"\\basenamedobjects\\straße", NULL, 0, &handle), STATUS_OBJECT_PATH_NOT_FOUND);
    assert_int_equal(open_event(u"\\basenamedobjects\\straße", NULL, OBJ_CASE_INSENSITIVE, &handle), STATUS_SUCCESS);
    close_handle(handle);
    close_handle(lower);
    close_handle(upper);
}

static void a_name_goes_with_the_last_handle(void **state)
{
    HANDLE first = make_event(u"e", base, 0), second, third;

    (void)state;
    assert_int_equal(open_event(u"e", base, 0, &second), STATUS_SUCCESS);
    close_handle(first);
    assert_int_equal(open_event(u"e", base, 0, &third), STATUS_SUCCESS);
    close_handle(second);
    close_handle(third);
    assert_int_equal(open_event(u"e", base, 0, &first), STATUS_OBJECT_NAME_NOT_FOUND);
}

static void a_reference_does_not_keep_the_name(void **state)
{
    HANDLE event = make_event(u"e", base, 0), again;
    ULONG objects = objects_of("Event");
    PVOID object;

    (void)state;
    assert_int_equal(ObReferenceObjectByHandle(event, 0, NULL, UserMode, &object, NULL), STATUS_SUCCESS);
    close_handle(event);
    assert_int_equal(objects_of("Event"), objects);
    assert_int_equal(open_event(u"e", base, 0, &again), STATUS_OBJECT_NAME_NOT_FOUND);
    again = make_event(u"e", base, 0);
    assert_int_equal(objects_of("Event"), objects + 1);
    ObDereferenceObject(object);
    close_handle(again);
    assert_int_equal(objects_of("Event"), objects - 1);
}

static void permanent_objects(void **state)
{
    HANDLE event = make_event(u"p", base, OBJ_PERMANENT), limited;

    (void)state;
    assert_int_equal(basic_information(event).Attributes, OBJ_PERMANENT);
    close_handle(event);
    assert_int_equal(open_event(u"p", base, 0, &event), STATUS_SUCCESS);
    assert_int_equal(NtOpenEvent(&limited, EVENT_MODIFY_STATE, NAMED(u"p", base, 0)), STATUS_SUCCESS);
    assert_int_equal(NtMakeTemporaryObject(limited), STATUS_ACCESS_DENIED);
    assert_int_equal(NtMakeTemporaryObject(event), STATUS_SUCCESS);
    assert_int_equal(basic_information(event).Attributes, 0);
    assert_int_equal(NtMakePermanentObject(limited), STATUS_SUCCESS);
    assert_int_equal(basic_information(event).Attributes, OBJ_PERMANENT);
    close_handle(limited);
    close_handle(event);
    assert_int_equal(open_event(u"p", base, 0, &event), STATUS_SUCCESS);
    assert_int_equal(ZwMakeTemporaryObject(event), STATUS_SUCCESS);
    close_handle(event);
    assert_int_equal(open_event(u"p", base, 0, &event), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(NtMakeTemporaryObject(NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtMakePermanentObject(NULL), STATUS_INVALID_HANDLE);
    event = make_event(NULL, NULL, 0);
    assert_int_equal(NtMakePermanentObject(event), STATUS_SUCCESS);
    assert_int_equal(NtMakeTemporaryObject(event), STATUS_SUCCESS);
    close_handle(event);
}

static void a_permanent_object_that_nobody_has_open_goes_at_once(void **state)
{
    ULONG objects = objects_of("Event");
    HANDLE event = make_event(u"p", base, OBJ_PERMANENT);
    PVOID object;

    (void)state;
    assert_int_equal(ObReferenceObjectByHandle(event, 0, NULL, UserMode, &object, NULL), STATUS_SUCCESS);
    close_handle(event);
    ObMakeTemporaryObject(object);
    assert_int_equal(open_event(u"p", base, 0, &event), STATUS_OBJECT_NAME_NOT_FOUND);
    ObDereferenceObject(object);
    assert_int_equal(objects_of("Event"), objects);
}

static void exclusive_objects(void **state)
{
    HANDLE exclusive = make_event(u"x", base, OBJ_EXCLUSIVE), shared = make_event(u"s", base, 0), handle;

    (void)state;
    assert_int_equal(basic_information(exclusive).Attributes, OBJ_EXCLUSIVE);
    assert_int_equal(open_event(u"x", base, OBJ_EXCLUSIVE, &handle), STATUS_SUCCESS);
    close_handle(handle);
    assert_int_equal(open_event(u"x", base, 0, &handle), STATUS_SUCCESS); /* the same process */
    close_handle(handle);
    assert_int_equal(open_event(u"s", base, OBJ_EXCLUSIVE, &handle), STATUS_INVALID_PARAMETER);
    close_handle(exclusive);
    close_handle(shared);
}

static void a_directory_lives_as_long_as_what_is_in_it(void **state)
{
    ULONG directories = objects_of("Directory");
    HANDLE directory = make_directory(u"d", base, 0);
    HANDLE event = make_event(u"e", directory, 0), handle;
    char buffer[200];
    POBJECT_NAME_INFORMATION name = (PVOID)buffer;

    (void)state;
    close_handle(directory);
    assert_int_equal(open_event(u"d\\e", base, 0, &handle), STATUS_OBJECT_PATH_NOT_FOUND);
    assert_int_equal(NtQueryObject(event, ObjectNameInformation, buffer, sizeof(buffer), NULL), STATUS_SUCCESS);
    assert_true(text_equal(&name->Name, u"...\\e"));
    close_handle(event);
    assert_int_equal(objects_of("Directory"), directories);
}

static void nested_directories(void **state)
{
    HANDLE directory[20], event, opened;
    WCHAR path[200] = u"\\BaseNamedObjects";
    size_t length = 17;

    (void)state;
    for (int i = 0; i < 20; i++) {
        directory[i] = make_directory(u"deeper", i ? directory[i - 1] : base, 0);
        memcpy(path + length, u"\\deeper", 14);
        length += 7;
    }
    event = make_event(u"e", directory[19], 0);
    memcpy(path + length, u"\\e", 6);
    assert_int_equal(open_event(path, NULL, 0, &opened), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(event, opened), STATUS_SUCCESS);
    close_handle(opened);
    close_handle(event);
    for (int i = 20; i--;)
        close_handle(directory[i]);
}

static void services_of_directories(void **state)
{
    HANDLE directory, shadow = make_directory(NULL, NULL, 0);

    (void)state;
    assert_int_equal(NtCreateDirectoryObject(NULL, DIRECTORY_ALL_ACCESS, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtCreateDirectoryObject(&directory, 0x8000, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(NtCreateDirectoryObjectEx(&directory, DIRECTORY_ALL_ACCESS, NULL, NULL, 1),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(NtCreateDirectoryObjectEx(&directory, DIRECTORY_ALL_ACCESS, NULL, shadow, 0),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(NtCreateDirectoryObjectEx(&directory, DIRECTORY_ALL_ACCESS, NULL, NULL, 0), STATUS_SUCCESS);
    close_handle(directory);
    close_handle(shadow);
    assert_int_equal(ZwCreateDirectoryObject(&directory, 0x8000 | GENERIC_ALL, NAMED(u"z", base, 0)), STATUS_SUCCESS);
    assert_int_equal(ZwOpenDirectoryObject(&shadow, DIRECTORY_QUERY, NAMED(u"z", base, 0)), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(directory, shadow), STATUS_SUCCESS);
    close_handle(directory);
    close_handle(shadow);
}

/* Listing. */

static POBJECT_DIRECTORY_INFORMATION entries;
static char listing[4096];

static NTSTATUS list(HANDLE directory, ULONG length, BOOLEAN single, BOOLEAN restart, ULONG *context, ULONG *used)
{
    entries = (PVOID)listing;
    memset(listing, 0xee, sizeof(listing));
    *used = 0xdddd;
    return NtQueryDirectoryObject(directory, listing, length, single, restart, context, used);
}

static void check_entry(int index, const WCHAR *name, const WCHAR *type)
{
    assert_true(text_equal(&entries[index].Name, name));
    assert_true(text_equal(&entries[index].TypeName, type));
    assert_int_equal(entries[index].Name.MaximumLength, entries[index].Name.Length + 2);
    assert_int_equal(entries[index].Name.Buffer[entries[index].Name.Length / 2], 0);
    assert_int_equal(entries[index].TypeName.Buffer[entries[index].TypeName.Length / 2], 0);
}

static int is_end(int index)
{
    OBJECT_DIRECTORY_INFORMATION zero = {0};

    return memcmp(&entries[index], &zero, sizeof(zero)) == 0;
}

enum { EVENT_ENTRY = 32 + 4 + 12, SEMAPHORE_ENTRY = 32 + 6 + 20, END = 32 };

static void listing_one_by_one(void **state)
{
    HANDLE directory = make_directory(NULL, NULL, 0);
    HANDLE event = make_event(u"a", directory, 0), semaphore;
    ULONG context = 77, used;

    (void)state;
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NAMED(u"bb", directory, 0), 0, 1), 0);
    assert_int_equal(list(directory, 0, TRUE, TRUE, &context, &used), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(used, EVENT_ENTRY + END);
    assert_int_equal(context, 77);
    assert_int_equal(list(directory, EVENT_ENTRY + END - 1, TRUE, TRUE, &context, &used), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(used, EVENT_ENTRY + END);
    assert_int_equal(context, 77);
    assert_int_equal(list(directory, EVENT_ENTRY + END, TRUE, TRUE, &context, &used), STATUS_SUCCESS);
    assert_int_equal(used, EVENT_ENTRY + END);
    assert_int_equal(context, 1);
    check_entry(0, u"a", u"Event");
    assert_true(is_end(1));
    assert_int_equal(list(directory, sizeof(listing), TRUE, FALSE, &context, &used), STATUS_SUCCESS);
    assert_int_equal(used, SEMAPHORE_ENTRY + END);
    assert_int_equal(context, 2);
    check_entry(0, u"bb", u"Semaphore");
    assert_int_equal(list(directory, sizeof(listing), TRUE, FALSE, &context, &used), STATUS_NO_MORE_ENTRIES);
    assert_int_equal(context, 2);
    assert_int_equal(list(directory, sizeof(listing), TRUE, TRUE, &context, &used), STATUS_SUCCESS);
    check_entry(0, u"a", u"Event");
    context = 1000;
    assert_int_equal(list(directory, sizeof(listing), TRUE, FALSE, &context, &used), STATUS_NO_MORE_ENTRIES);
    close_handle(event);
    close_handle(semaphore);
    close_handle(directory);
}

static void listing_many(void **state)
{
    HANDLE directory = make_directory(NULL, NULL, 0);
    HANDLE event = make_event(u"a", directory, 0), semaphore;
    ULONG context = 0, used;

    (void)state;
    assert_int_equal(list(directory, sizeof(listing), FALSE, TRUE, &context, &used), STATUS_SUCCESS);
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NAMED(u"bb", directory, 0), 0, 1), 0);
    assert_int_equal(list(directory, sizeof(listing), FALSE, TRUE, &context, &used), STATUS_SUCCESS);
    assert_int_equal(used, EVENT_ENTRY + SEMAPHORE_ENTRY + END);
    assert_int_equal(context, 2);
    check_entry(0, u"a", u"Event");
    check_entry(1, u"bb", u"Semaphore");
    assert_true(is_end(2));
    for (int i = 0; i < 2; i++) {
        assert_true((char *)entries[i].Name.Buffer >= listing && (char *)entries[i].Name.Buffer < listing + used);
        assert_true((char *)entries[i].TypeName.Buffer < listing + used);
    }
    assert_int_equal(list(directory, sizeof(listing), FALSE, FALSE, &context, &used), STATUS_NO_MORE_ENTRIES);
    assert_int_equal(list(directory, EVENT_ENTRY + SEMAPHORE_ENTRY + END - 1, FALSE, TRUE, &context, &used),
                     STATUS_MORE_ENTRIES);
    assert_int_equal(context, 1);
    check_entry(0, u"a", u"Event");
    assert_true(is_end(1));
    assert_int_equal(list(directory, SEMAPHORE_ENTRY + END, FALSE, FALSE, &context, &used), STATUS_SUCCESS);
    assert_int_equal(context, 2);
    check_entry(0, u"bb", u"Semaphore");
    assert_int_equal(list(directory, END, FALSE, TRUE, &context, &used), STATUS_MORE_ENTRIES);
    assert_int_equal(context, 0);
    assert_true(is_end(0));
    assert_int_equal(list(directory, 0, FALSE, TRUE, &context, &used), STATUS_MORE_ENTRIES);
    close_handle(event);
    close_handle(semaphore);
    assert_int_equal(list(directory, sizeof(listing), FALSE, TRUE, &context, &used), STATUS_NO_MORE_ENTRIES);
    assert_int_equal(used, END);
    assert_true(is_end(0));
    close_handle(directory);
}

static void listing_checks_its_parameters(void **state)
{
    HANDLE event = make_event(NULL, NULL, 0), limited, unlimited;
    ULONG context = 0;

    (void)state;
    assert_int_equal(NtQueryDirectoryObject(base, listing, 100, TRUE, TRUE, NULL, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryDirectoryObject(base, NULL, 100, TRUE, TRUE, &context, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryDirectoryObject(event, listing, 100, TRUE, TRUE, &context, NULL),
                     STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtQueryDirectoryObject(NULL, listing, 100, TRUE, TRUE, &context, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtCreateDirectoryObject(&limited, DIRECTORY_TRAVERSE, NAMED(u"l", base, 0)), STATUS_SUCCESS);
    assert_int_equal(NtQueryDirectoryObject(limited, listing, 100, TRUE, TRUE, &context, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(ZwQueryDirectoryObject(limited, listing, 100, TRUE, TRUE, &context, NULL), STATUS_NO_MORE_ENTRIES);
    unlimited = open_directory(u"\\BaseNamedObjects\\l");
    assert_int_equal(NtQueryDirectoryObject(unlimited, listing, 100, TRUE, TRUE, &context, NULL),
                     STATUS_NO_MORE_ENTRIES);
    close_handle(limited);
    close_handle(unlimited);
    close_handle(event);
}

enum { MANY = 3000 };

static void a_directory_with_many_names(void **state)
{
    HANDLE directory = make_directory(u"many", base, 0), *events = calloc(MANY, sizeof(HANDLE)), opened;
    unsigned char *seen = calloc(MANY, 1);
    ULONG context = 0, used, total = 0;
    NTSTATUS status;
    WCHAR name[16];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        for (int digit = 0; digit < 4; digit++)
            name[digit] = (WCHAR)(u'A' + (i >> (4 * digit)) % 16);
        name[4] = 0;
        events[i] = make_event(name, directory, 0);
    }
    do {
        status = list(directory, sizeof(listing), FALSE, context == 0, &context, &used);
        assert_true(status == STATUS_MORE_ENTRIES || status == STATUS_SUCCESS);
        for (int e = 0; !is_end(e); e++, total++) {
            int number = 0;

            for (int digit = 4; digit--;)
                number = 16 * number + entries[e].Name.Buffer[digit] - u'A';
            assert_int_equal(seen[number], 0);
            seen[number] = 1;
        }
    } while (status == STATUS_MORE_ENTRIES);
    assert_int_equal(total, MANY);
    for (int i = 0; i < MANY; i += 7) {
        for (int digit = 0; digit < 4; digit++)
            name[digit] = (WCHAR)(u'a' + (i >> (4 * digit)) % 16);
        assert_int_equal(open_event(name, directory, OBJ_CASE_INSENSITIVE, &opened), STATUS_SUCCESS);
        assert_int_equal(NtCompareObjects(opened, events[i]), STATUS_SUCCESS);
        close_handle(opened);
    }
    for (int i = 0; i < MANY; i++)
        close_handle(events[i]);
    assert_int_equal(list(directory, sizeof(listing), FALSE, TRUE, &context, &used), STATUS_NO_MORE_ENTRIES);
    close_handle(directory);
    free(events);
    free(seen);
}

static void the_longest_name(void **state)
{
    WCHAR *text = calloc(32768, sizeof(WCHAR));
    UNICODE_STRING name = {32767 * sizeof(WCHAR) - 2, 0, text};
    OBJECT_ATTRIBUTES attributes;
    HANDLE event, opened, denied;
    char *buffer = malloc(70000);
    ULONG length;

    (void)state;
    for (int i = 0; i < 32767; i++)
        text[i] = u'n';
    InitializeObjectAttributes(&attributes, &name, 0, base, NULL);
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, &attributes, 0, 0), STATUS_SUCCESS);
    assert_int_equal(NtOpenEvent(&opened, EVENT_ALL_ACCESS, &attributes), STATUS_SUCCESS);
    assert_int_equal(NtQueryObject(event, ObjectNameInformation, buffer, 70000, &length), STATUS_NAME_TOO_LONG);
    name.Length += sizeof(WCHAR); /* 65,534 bytes */
    assert_int_equal(NtCreateEvent(&denied, EVENT_ALL_ACCESS, &attributes, 0, 0), STATUS_OBJECT_NAME_INVALID);
    assert_int_equal(NtOpenEvent(&denied, EVENT_ALL_ACCESS, &attributes), STATUS_OBJECT_NAME_INVALID);
    assert_null(denied);
    close_handle(event);
    close_handle(opened);
    free(text);
    free(buffer);
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
        cmocka_unit_test(what_is_there_from_the_beginning),
        cmocka_unit_test(paths_and_their_statuses),
        cmocka_unit_test(attributes_are_checked),
        cmocka_unit_test(existing_names),
        cmocka_unit_test(case_of_names),
        cmocka_unit_test(a_name_goes_with_the_last_handle),
        cmocka_unit_test(a_reference_does_not_keep_the_name),
        cmocka_unit_test(permanent_objects),
        cmocka_unit_test(a_permanent_object_that_nobody_has_open_goes_at_once),
        cmocka_unit_test(exclusive_objects),
        cmocka_unit_test(a_directory_lives_as_long_as_what_is_in_it),
        cmocka_unit_test(nested_directories),
        cmocka_unit_test(services_of_directories),
        cmocka_unit_test(listing_one_by_one),
        cmocka_unit_test(listing_many),
        cmocka_unit_test(listing_checks_its_parameters),
        cmocka_unit_test(a_directory_with_many_names),
        cmocka_unit_test(the_longest_name),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
