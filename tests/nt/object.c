#include "objecttest.h"

#include <stdio.h>
#include <unistd.h>

#include <sys/wait.h>

static HANDLE create_event(ACCESS_MASK access, ULONG flags)
{
    HANDLE event;

    assert_int_equal(NtCreateEvent(&event, access, NAMED(NULL, NULL, flags), NotificationEvent, FALSE), 0);
    return event;
}

static NTSTATUS duplicate(HANDLE source, HANDLE *target, ACCESS_MASK access, ULONG attributes, ULONG options)
{
    return NtDuplicateObject(NtCurrentProcess(), source, NtCurrentProcess(), target, access, attributes, options);
}

static OBJECT_HANDLE_FLAG_INFORMATION flags_of(HANDLE handle)
{
    OBJECT_HANDLE_FLAG_INFORMATION flags = {77, 77};
    ULONG length = 0;

    assert_int_equal(NtQueryObject(handle, ObjectHandleFlagInformation, &flags, sizeof(flags), &length), 0);
    assert_int_equal(length, sizeof(flags));
    return flags;
}

static void set_flags(HANDLE handle, BOOLEAN inherit, BOOLEAN protect)
{
    OBJECT_HANDLE_FLAG_INFORMATION flags = {inherit, protect};

    assert_int_equal(NtSetInformationObject(handle, ObjectHandleFlagInformation, &flags, sizeof(flags)), 0);
}

static void closing(void **state)
{
    HANDLE event = create_event(EVENT_ALL_ACCESS, 0);

    (void)state;
    close_handle((char *)event + 3);
    assert_int_equal(NtClose(event), STATUS_INVALID_HANDLE);
    assert_int_equal(NtClose(NULL), STATUS_INVALID_HANDLE);
    for (intptr_t pseudo = -1; pseudo >= -6; pseudo--)
        assert_int_equal(NtClose((HANDLE)pseudo), STATUS_SUCCESS);
    assert_int_equal(NtClose((HANDLE)(intptr_t)-7), STATUS_INVALID_HANDLE);
}

static void flags_of_a_handle(void **state)
{
    HANDLE event = create_event(EVENT_ALL_ACCESS, OBJ_INHERIT);
    OBJECT_HANDLE_FLAG_INFORMATION flags = {FALSE, FALSE};

    (void)state;
    assert_int_equal(flags_of(event).Inherit, TRUE);
    assert_int_equal(flags_of(event).ProtectFromClose, FALSE);
    assert_int_equal(basic_information(event).Attributes, OBJ_INHERIT);
    set_flags(event, FALSE, TRUE);
    assert_int_equal(flags_of(event).Inherit, FALSE);
    assert_int_equal(flags_of(event).ProtectFromClose, TRUE);
    assert_int_equal(basic_information(event).Attributes, OBJ_PROTECT_CLOSE);
    assert_int_equal(NtClose(event), STATUS_HANDLE_NOT_CLOSABLE);
    assert_int_equal(NtSetEvent(event, NULL), STATUS_SUCCESS);
    assert_int_equal(duplicate(event, NULL, 0, 0, DUPLICATE_CLOSE_SOURCE | DUPLICATE_SAME_ACCESS), STATUS_SUCCESS);
    assert_int_equal(NtSetEvent(event, NULL), STATUS_SUCCESS);
    set_flags(event, FALSE, FALSE);
    assert_int_equal(NtSetInformationObject(event, ObjectHandleFlagInformation, &flags, 1), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtSetInformationObject(event, ObjectHandleFlagInformation, &flags, 3), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtSetInformationObject(event, ObjectHandleFlagInformation, NULL, 2), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtSetInformationObject(event, ObjectBasicInformation, &flags, 2), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtSetInformationObject(NULL, ObjectHandleFlagInformation, &flags, 2), STATUS_INVALID_HANDLE);
    assert_int_equal(NtSetInformationObject(NtCurrentProcess(), ObjectHandleFlagInformation, &flags, 2),
                     STATUS_INVALID_HANDLE);
    assert_int_equal(flags_of(NtCurrentThread()).Inherit, FALSE);
    close_handle(event);
}

static void duplicating(void **state)
{
    HANDLE event = create_event(EVENT_MODIFY_STATE | SYNCHRONIZE, OBJ_INHERIT), other;

    (void)state;
    assert_int_equal(duplicate(event, &other, 0, 0, DUPLICATE_SAME_ACCESS), STATUS_SUCCESS);
    assert_ptr_not_equal(event, other);
    assert_int_equal(NtCompareObjects(event, other), STATUS_SUCCESS);
    assert_int_equal(basic_information(other).GrantedAccess, EVENT_MODIFY_STATE | SYNCHRONIZE);
    assert_int_equal(basic_information(other).Attributes, 0);
    assert_int_equal(basic_information(other).HandleCount, 2);
    close_handle(other);
    assert_int_equal(duplicate(event, &other, EVENT_QUERY_STATE, OBJ_INHERIT | OBJ_PROTECT_CLOSE, 0), STATUS_SUCCESS);
    assert_int_equal(basic_information(other).GrantedAccess, EVENT_QUERY_STATE);
    assert_int_equal(basic_information(other).Attributes, OBJ_INHERIT | OBJ_PROTECT_CLOSE);
    set_flags(other, FALSE, FALSE);
    close_handle(other);
    assert_int_equal(duplicate(event, &other, GENERIC_ALL, 0, DUPLICATE_SAME_ATTRIBUTES), STATUS_SUCCESS);
    assert_int_equal(basic_information(other).GrantedAccess, EVENT_ALL_ACCESS);
    assert_int_equal(basic_information(other).Attributes, OBJ_INHERIT);
    close_handle(other);
    assert_int_equal(duplicate(event, &other, 0x8000, 0, 0), STATUS_ACCESS_DENIED);
    assert_int_equal(duplicate(event, &other, ACCESS_SYSTEM_SECURITY, 0, 0), STATUS_PRIVILEGE_NOT_HELD);
    assert_int_equal(basic_information(event).HandleCount, 1);
    close_handle(event);
    assert_int_equal(duplicate(event, &other, 0, 0, DUPLICATE_SAME_ACCESS), STATUS_INVALID_HANDLE);
    assert_int_equal(duplicate((HANDLE)(intptr_t)-3, &other, 0, 0, DUPLICATE_SAME_ACCESS), STATUS_INVALID_HANDLE);
}

static void duplicating_and_closing(void **state)
{
    HANDLE event = create_event(EVENT_ALL_ACCESS, 0), other;

    (void)state;
    assert_int_equal(duplicate(event, &other, 0, 0, DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE), STATUS_SUCCESS);
    assert_int_equal(NtSetEvent(event, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(basic_information(other).HandleCount, 1);
    event = other;
    assert_int_equal(duplicate(event, &other, 0x8000, 0, DUPLICATE_CLOSE_SOURCE), STATUS_ACCESS_DENIED);
    assert_int_equal(NtSetEvent(event, NULL), STATUS_INVALID_HANDLE);
    event = create_event(EVENT_ALL_ACCESS, 0);
    assert_int_equal(duplicate(event, NULL, 0, 0, DUPLICATE_SAME_ACCESS), STATUS_SUCCESS);
    assert_int_equal(basic_information(event).HandleCount, 1);
    assert_int_equal(NtDuplicateObject(NtCurrentProcess(), event, NULL, NULL, 0, 0, DUPLICATE_CLOSE_SOURCE), 0);
    assert_int_equal(NtSetEvent(event, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtDuplicateObject(NtCurrentProcess(), event, NULL, NULL, 0, 0, DUPLICATE_CLOSE_SOURCE),
                     STATUS_INVALID_HANDLE);
}

static void pseudo_handles_become_real(void **state)
{
    HANDLE process, thread, both;

    (void)state;
    assert_int_equal(duplicate(NtCurrentProcess(), &process, 0, 0, DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE), 0);
    assert_int_equal(duplicate(NtCurrentThread(), &thread, SYNCHRONIZE, 0, 0), STATUS_SUCCESS);
    assert_true((intptr_t)process > 0 && (intptr_t)thread > 0);
    assert_int_equal(basic_information(process).GrantedAccess, PROCESS_ALL_ACCESS);
    assert_int_equal(basic_information(thread).GrantedAccess, SYNCHRONIZE);
    assert_int_equal(NtCompareObjects(process, NtCurrentProcess()), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(thread, NtCurrentThread()), STATUS_SUCCESS);
    assert_int_equal(NtCompareObjects(thread, process), STATUS_NOT_SAME_OBJECT);
    assert_int_equal(NtCompareObjects(thread, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtCompareObjects(NULL, thread), STATUS_INVALID_HANDLE);
    /* the real one does as a process too */
    assert_int_equal(NtDuplicateObject(process, thread, process, &both, 0, 0, DUPLICATE_SAME_ACCESS), STATUS_SUCCESS);
    close_handle(both);
    assert_int_equal(NtDuplicateObject(thread, thread, process, &both, 0, 0, 2), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtDuplicateObject(process, thread, thread, &both, 0, 0, 2), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtDuplicateObject(process, thread, NULL, &both, 0, 0, 2), STATUS_INVALID_HANDLE);
    assert_int_equal(NtDuplicateObject(NULL, thread, process, &both, 0, 0, 2), STATUS_INVALID_HANDLE);
    close_handle(process);
    assert_int_equal(duplicate(NtCurrentProcess(), &process, SYNCHRONIZE, 0, 0), STATUS_SUCCESS);
    assert_int_equal(NtDuplicateObject(process, thread, process, &both, 0, 0, 2), STATUS_ACCESS_DENIED);
    assert_int_equal(ZwDuplicateObject(process, thread, process, &both, 0, 0, 2), STATUS_SUCCESS);
    close_handle(both);
    close_handle(process);
    close_handle(thread);
}

static void basic_information_of_an_object(void **state)
{
    OBJECT_BASIC_INFORMATION information[2];
    HANDLE event, other;
    ULONG length = 77;

    (void)state;
    assert_int_equal(NtCreateEvent(&event, SYNCHRONIZE, NAMED(u"\\BaseNamedObjects\\info", NULL, 0), 0, 0), 0);
    assert_int_equal(duplicate(event, &other, 0, 0, DUPLICATE_SAME_ACCESS), STATUS_SUCCESS);
    assert_int_equal(NtQueryObject(event, ObjectBasicInformation, information, sizeof(*information), &length), 0);
    assert_int_equal(length, 56);
    assert_int_equal(information->GrantedAccess, SYNCHRONIZE);
    assert_int_equal(information->HandleCount, 2);
    assert_true(information->PointerCount >= 2);
    assert_int_equal(information->NameInfoSize, 16 + 2 * 23);
    assert_int_equal(information->TypeInfoSize, 104 + 12);
    assert_int_equal(information->CreationTime.QuadPart, 0);
    assert_int_equal(NtQueryObject(event, ObjectBasicInformation, information, 55, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryObject(event, ObjectBasicInformation, information, 57, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryObject(event, ObjectBasicInformation, NULL, 56, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(NtQueryObject(event, (OBJECT_INFORMATION_CLASS)99, information, 56, NULL),
                     STATUS_INVALID_INFO_CLASS);
    assert_int_equal(NtQueryObject(NULL, (OBJECT_INFORMATION_CLASS)99, information, 56, NULL), STATUS_INVALID_HANDLE);
    close_handle(event);
    close_handle(other);
    event = create_event(EVENT_ALL_ACCESS, 0);
    assert_int_equal(basic_information(event).NameInfoSize, 0);
    close_handle(event);
}

static void names_of_objects(void **state)
{
    WCHAR buffer[60];
    POBJECT_NAME_INFORMATION name = (PVOID)buffer;
    HANDLE event, unnamed = create_event(EVENT_ALL_ACCESS, 0), root;
    ULONG length = 77;

    (void)state;
    assert_int_equal(NtCreateEvent(&event, 0, NAMED(u"\\BaseNamedObjects\\Global\\NaMe", NULL, 0), 0, 0), 0);
    assert_int_equal(NtQueryObject(event, ObjectNameInformation, NULL, 0, &length), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(length, 16 + 2 * 23);
    for (ULONG room = 1; room < length; room++)
        assert_int_equal(NtQueryObject(event, ObjectNameInformation, buffer, room, NULL), STATUS_INFO_LENGTH_MISMATCH);
    memset(buffer, 0xee, sizeof(buffer));
    assert_int_equal(NtQueryObject(event, ObjectNameInformation, buffer, length, &length), STATUS_SUCCESS);
    assert_true(text_equal(&name->Name, u"\\BaseNamedObjects\\NaMe"));
    assert_int_equal(name->Name.MaximumLength, name->Name.Length + 2);
    assert_int_equal(name->Name.Buffer[22], 0);
    assert_int_equal(buffer[8 + 23], 0xeeee);
    close_handle(event);

    assert_int_equal(NtQueryObject(unnamed, ObjectNameInformation, buffer, 15, &length), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(length, 16);
    assert_int_equal(NtQueryObject(unnamed, ObjectNameInformation, buffer, 16, &length), STATUS_SUCCESS);
    assert_int_equal(length, 16);
    assert_int_equal(name->Name.Length, 0);
    assert_null(name->Name.Buffer);
    close_handle(unnamed);

    root = open_directory(u"\\");
    assert_int_equal(ZwQueryObject(root, ObjectNameInformation, buffer, sizeof(buffer), &length), STATUS_SUCCESS);
    assert_true(text_equal(&name->Name, u"\\"));
    assert_int_equal(NtQueryObject(root, ObjectNameInformation, buffer, 19, &length), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(length, 20);
    close_handle(root);
}

static void types_of_objects(void **state)
{
    char buffer[200] __attribute__((aligned(8)));
    POBJECT_TYPE_INFORMATION type = (PVOID)buffer;
    HANDLE event = create_event(EVENT_ALL_ACCESS, 0), second;
    ULONG length, objects, handles;

    (void)state;
    assert_int_equal(NtQueryObject(event, ObjectTypeInformation, buffer, 0, &length), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(length, 116);
    assert_int_equal(NtQueryObject(event, ObjectTypeInformation, buffer, 115, &length), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryObject(event, ObjectTypeInformation, buffer, 116, &length), STATUS_SUCCESS);
    assert_true(text_equal(&type->TypeName, u"Event"));
    assert_int_equal(type->ValidAccessMask, EVENT_ALL_ACCESS);
    assert_int_equal(type->GenericMapping.GenericRead, READ_CONTROL | EVENT_QUERY_STATE);
    assert_int_equal(type->InvalidAttributes, OBJ_OPENLINK);
    assert_true(type->TypeIndex >= 2);
    objects = type->TotalNumberOfObjects;
    handles = type->TotalNumberOfHandles;
    second = create_event(EVENT_ALL_ACCESS, 0);
    assert_int_equal(NtQueryObject(event, ObjectTypeInformation, buffer, sizeof(buffer), &length), STATUS_SUCCESS);
    assert_int_equal(type->TotalNumberOfObjects, objects + 1);
    assert_int_equal(type->TotalNumberOfHandles, handles + 1);
    assert_true(type->HighWaterNumberOfObjects >= objects + 1);
    assert_true(type->HighWaterNumberOfHandles >= handles + 1);
    close_handle(second);
    close_handle(event);
    assert_int_equal(NtQueryObject(NtCurrentThread(), ObjectTypeInformation, buffer, sizeof(buffer), &length), 0);
    assert_true(text_equal(&type->TypeName, u"Thread"));
}

/* A type is known when its file is linked. */
static const void *const linked[] = {NtCreateEventPair, NtCreateKeyedEvent, NtCreateMutant, NtCreateSemaphore,
                                     NtCreateTimer};

static void all_types(void **state)
{
    static const WCHAR *const expected[] = {u"Directory", u"Event",     u"EventPair",    u"KeyedEvent", u"Mutant",
                                            u"Process",   u"Semaphore", u"SymbolicLink", u"Thread",     u"Timer"};
    static char buffer[16384] __attribute__((aligned(8)));
    POBJECT_TYPES_INFORMATION types = (PVOID)buffer;
    ULONG needed = 0, found = 0, indices[256] = {0};
    size_t offset = 8;

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(linked); i++)
        assert_non_null(*(const void *const volatile *)&linked[i]);
    assert_int_equal(NtQueryObject(NULL, ObjectTypesInformation, buffer, 4, &needed), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(NtQueryObject(NULL, ObjectTypesInformation, buffer, needed - 1, NULL), STATUS_INFO_LENGTH_MISMATCH);
    memset(buffer, 0xee, sizeof(buffer));
    assert_int_equal(NtQueryObject(NULL, ObjectTypesInformation, buffer, needed, &needed), STATUS_SUCCESS);
    for (ULONG i = 0; i < types->NumberOfTypes; i++) {
        POBJECT_TYPE_INFORMATION type = (PVOID)(buffer + offset);

        for (size_t e = 0; e < ARRAYSIZE(expected); e++)
            found += text_equal(&type->TypeName, expected[e]);
        assert_int_equal(indices[type->TypeIndex]++, 0);
        offset += sizeof(*type) + type->TypeName.MaximumLength;
        assert_true(offset <= needed);
        offset = (offset + 7) & ~(size_t)7;
    }
    assert_int_equal(found, ARRAYSIZE(expected));
    assert_int_equal((unsigned char)buffer[needed], 0xee);
}

static void count_of_fork(int expected, const char *what, long got)
{
    if (got != expected) {
        dprintf(2, "%s: %ld, expected %d\n", what, got, expected);
        _exit(1);
    }
}

/* The child has its own handles; the named object is the same one. */
static void a_forked_child_has_its_own_handles(void **state)
{
    HANDLE event, opened;
    LONG previous;
    int status;
    pid_t child;

    (void)state;
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\forked", NULL, 0), 0, 0), 0);
    child = fork();
    if (child == 0) {
        count_of_fork(0, "open", NtOpenEvent(&opened, EVENT_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\forked", NULL, 0)));
        count_of_fork(0, "same", NtCompareObjects(event, opened));
        count_of_fork(0, "set", NtSetEvent(opened, &previous));
        count_of_fork(0, "close", NtClose(event));
        count_of_fork(0, "close", NtClose(opened));
        count_of_fork(0, "again", NtOpenEvent(&opened, EVENT_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\forked", NULL, 0)));
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(NtSetEvent(event, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 1);
    assert_int_equal(NtOpenEvent(&opened, EVENT_ALL_ACCESS, NAMED(u"\\BaseNamedObjects\\forked", NULL, 0)), 0);
    close_handle(opened);
    close_handle(event);
}

static void wait_for_event(void *argument, unsigned index)
{
    HANDLE *handles = argument;

    (void)index;
    assert_int_equal(NtSignalAndWaitForSingleObject(handles[1], handles[0], FALSE, NULL), STATUS_SUCCESS);
}

/* A waiter keeps the object, not its name or its handle: it continues when a thread with a pointer signals. */
static void closing_under_a_waiter(void **state)
{
    HANDLE handles[2] = {create_event(EVENT_ALL_ACCESS, 0), create_event(EVENT_ALL_ACCESS, 0)};
    ULONG objects = objects_of("Event");
    test_threads *threads;
    PVOID object;

    (void)state;
    assert_int_equal(ObReferenceObjectByHandle(handles[0], 0, NULL, UserMode, &object, NULL), STATUS_SUCCESS);
    threads = start_threads(1, wait_for_event, handles);
    assert_int_equal(NtWaitForSingleObject(handles[1], FALSE, NULL), STATUS_SUCCESS);
    close_handle(handles[0]);
    assert_int_equal(objects_of("Event"), objects);
    KeSetEvent(object, 0, FALSE);
    join_threads(threads, 60);
    ObDereferenceObject(object);
    close_handle(handles[1]);
    assert_int_equal(objects_of("Event"), objects - 2);
}

/* Rights that the documentation grants together. */
static void rights_that_imply_others(void **state)
{
    static const struct {
        ACCESS_MASK desired, granted;
    } threads[] = {
        {THREAD_QUERY_INFORMATION, THREAD_QUERY_INFORMATION | THREAD_QUERY_LIMITED_INFORMATION},
        {THREAD_SET_INFORMATION, THREAD_SET_INFORMATION | THREAD_SET_LIMITED_INFORMATION},
        {THREAD_SUSPEND_RESUME, THREAD_SUSPEND_RESUME},
        {GENERIC_READ, 0x20848},
        {GENERIC_WRITE, 0x20437},
        {GENERIC_EXECUTE, 0x121800},
    }, processes[] = {
        {PROCESS_QUERY_INFORMATION, PROCESS_QUERY_INFORMATION | PROCESS_QUERY_LIMITED_INFORMATION},
        {PROCESS_SET_INFORMATION, PROCESS_SET_INFORMATION | PROCESS_SET_LIMITED_INFORMATION},
        {GENERIC_READ, 0x21410},
        {GENERIC_WRITE, 0x22bea},
        {GENERIC_EXECUTE, 0x121001},
    };
    OBJECT_ATTRIBUTES attributes = {.Length = sizeof(attributes)};
    CLIENT_ID thread = {NULL, PsGetCurrentThreadId()}, process = {PsGetCurrentProcessId(), NULL};
    HANDLE handle;

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(threads); i++) {
        assert_int_equal(NtOpenThread(&handle, threads[i].desired, &attributes, &thread), STATUS_SUCCESS);
        assert_int_equal(basic_information(handle).GrantedAccess, threads[i].granted);
        close_handle(handle);
    }
    for (size_t i = 0; i < ARRAYSIZE(processes); i++) {
        assert_int_equal(NtOpenProcess(&handle, processes[i].desired, &attributes, &process), STATUS_SUCCESS);
        assert_int_equal(basic_information(handle).GrantedAccess, processes[i].granted);
        close_handle(handle);
    }
    handle = (HANDLE)0x55;
    assert_int_equal(NtOpenProcess(&handle, 0, &attributes, &process), STATUS_ACCESS_DENIED);
    assert_null(handle);
}

static void generic_rights_of_types(void **state)
{
    static const struct {
        const char *name;
        GENERIC_MAPPING mapping;
    } rows[] = {
        {"Process", {0x20410, 0x20bea, 0x121001, 0x1fffff}},
        {"Thread", {0x20048, 0x20437, 0x121800, 0x1fffff}},
        {"IoCompletionReserve", {0x20001, 0x20002, 0x20000, 0xf0003}},
    };

    HANDLE reserve;

    (void)state;
    assert_int_equal(NtAllocateReserveObject(&reserve, NULL, MemoryReserveIoCompletion), STATUS_SUCCESS);
    close_handle(reserve);
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        POBJECT_TYPE type = __atomic_load_n(&ObpFirstType, __ATOMIC_ACQUIRE);

        while (type != NULL && strcmp(type->Name, rows[i].name) != 0)
            type = type->NextType;
        assert_non_null(type);
        assert_memory_equal(&type->GenericMapping, &rows[i].mapping, sizeof(GENERIC_MAPPING));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing),
        cmocka_unit_test(flags_of_a_handle),
        cmocka_unit_test(duplicating),
        cmocka_unit_test(duplicating_and_closing),
        cmocka_unit_test(pseudo_handles_become_real),
        cmocka_unit_test(basic_information_of_an_object),
        cmocka_unit_test(names_of_objects),
        cmocka_unit_test(types_of_objects),
        cmocka_unit_test(all_types),
        cmocka_unit_test(a_forked_child_has_its_own_handles),
        cmocka_unit_test(closing_under_a_waiter),
        cmocka_unit_test(rights_that_imply_others),
        cmocka_unit_test(generic_rights_of_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
