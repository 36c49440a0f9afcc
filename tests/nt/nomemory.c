/* Creating without memory leaves nothing behind, and what exists works without any. */
#include "objecttest.h"

#include <stdlib.h>

#include "../support/heap.h"

#ifdef HEAP_IS_WATCHED_ONLY
static const int can_refuse = 0;
#else
static const int can_refuse = 1;
#endif

static const WCHAR *const path = u"\\BaseNamedObjects\\Local\\Global\\nomemory";

static NTSTATUS create(int kind, ULONG flags, HANDLE *handle)
{
    UNICODE_STRING target = counted(u"\\somewhere");
    POBJECT_ATTRIBUTES attributes = NAMED(path, NULL, flags);

    *handle = NULL;
    switch (kind) {
    case 0:
        return NtCreateEvent(handle, EVENT_ALL_ACCESS, attributes, NotificationEvent, FALSE);
    case 1:
        return NtCreateSemaphore(handle, SEMAPHORE_ALL_ACCESS, attributes, 0, 1);
    case 2:
        return NtCreateMutant(handle, MUTANT_ALL_ACCESS, attributes, TRUE);
    case 3:
        return NtCreateTimer(handle, TIMER_ALL_ACCESS, attributes, NotificationTimer);
    case 4:
        return NtCreateKeyedEvent(handle, KEYEDEVENT_ALL_ACCESS, attributes, 0);
    case 5:
        return NtCreateEventPair(handle, EVENT_PAIR_ALL_ACCESS, attributes);
    case 6:
        return NtCreateDirectoryObject(handle, DIRECTORY_ALL_ACCESS, attributes);
    default:
        return NtCreateSymbolicLinkObject(handle, SYMBOLIC_LINK_ALL_ACCESS, attributes, &target);
    }
}

static const char *const types[] = {"Event",      "Semaphore", "Mutant",    "Timer",
                                    "KeyedEvent", "EventPair", "Directory", "SymbolicLink"};

/* The very first name: the directories and links of the system do not exist yet either. */
static void with_one_more_allocation_each_time(void **state)
{
    unsigned failures = 0;

    (void)state;
    if (!can_refuse)
        skip();
    for (int kind = 0; kind < (int)ARRAYSIZE(types); kind++) {
        ULONG objects = 0;
        NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;
        HANDLE handle = NULL;

        for (int allowed = 0; status == STATUS_INSUFFICIENT_RESOURCES; allowed++) {
            allocations_left = allowed;
            status = create(kind, 0, &handle);
            allocations_left = -1;
            if (kind > 0 && allowed == 0)
                objects = objects_of(types[kind]);
            if (status == STATUS_INSUFFICIENT_RESOURCES) {
                failures++;
                assert_null(handle);
                if (kind > 0)
                    assert_int_equal(objects_of(types[kind]), objects);
            }
        }
        assert_int_equal(status, STATUS_SUCCESS);
        if (kind == 2)
            assert_int_equal(NtReleaseMutant(handle, NULL), STATUS_SUCCESS);
        assert_int_equal(handles_of(types[kind]), 1);
        close_handle(handle);
        assert_int_equal(handles_of(types[kind]), 0);
    }
    assert_true(failures > 20);
    assert_true(IsListEmpty(&((PKTHREAD)KeGetCurrentThread())->MutantListHead));
}

static void a_duplicate_and_an_open(void **state)
{
    HANDLE event, other;

    (void)state;
    if (!can_refuse)
        skip();
    assert_int_equal(create(0, 0, &event), STATUS_SUCCESS);
    for (int allowed = 0;; allowed++) {
        NTSTATUS status;

        allocations_left = allowed;
        status = NtOpenEvent(&other, EVENT_ALL_ACCESS, NAMED(path, NULL, 0));
        allocations_left = -1;
        if (status == STATUS_SUCCESS)
            break;
        assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
        assert_int_equal(basic_information(event).HandleCount, 1);
    }
    close_handle(other);
    close_handle(event);
}

static void nothing_else_allocates(void **state)
{
    HANDLE event, semaphore, mutant, timer, pair, keyed, second;
    LARGE_INTEGER now = {.QuadPart = 0}, far = {.QuadPart = -10000000000};
    EVENT_BASIC_INFORMATION information;
    unsigned refused;

    (void)state;
    NtCreateEvent(&event, EVENT_ALL_ACCESS, NAMED(path, NULL, 0), NotificationEvent, FALSE);
    NtOpenEvent(&second, EVENT_ALL_ACCESS, NAMED(path, NULL, 0));
    NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, 1);
    NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, FALSE);
    NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, NotificationTimer);
    NtCreateEventPair(&pair, EVENT_PAIR_ALL_ACCESS, NULL);
    NtCreateKeyedEvent(&keyed, KEYEDEVENT_ALL_ACCESS, NULL, 0);
    NtSetTimer(timer, &now, NULL, NULL, FALSE, 0, NULL); /* the clock thread starts here */
    NtWaitForSingleObject(timer, FALSE, NULL);
    NtSetTimer(timer, &far, NULL, NULL, FALSE, 0, NULL);
    refused = allocations_refused;
    allocations_left = 0;
    NtSetEvent(event, NULL);
    NtResetEvent(event, NULL);
    NtPulseEvent(event, NULL);
    NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), NULL);
    NtReleaseSemaphore(semaphore, 1, NULL);
    NtReleaseSemaphore(semaphore, 1, NULL);
    NtWaitForSingleObject(semaphore, FALSE, &now);
    NtWaitForSingleObject(mutant, FALSE, &now);
    NtReleaseMutant(mutant, NULL);
    NtReleaseMutant(mutant, NULL);
    NtSetTimer(timer, &far, (PTIMER_APC_ROUTINE)(PVOID)NtClose, NULL, FALSE, 5, NULL);
    NtCancelTimer(timer, NULL);
    NtSetLowEventPair(pair);
    NtWaitLowEventPair(pair);
    NtWaitForKeyedEvent(keyed, NULL, FALSE, &now);
    NtCompareObjects(event, second);
    NtMakePermanentObject(event);
    NtMakeTemporaryObject(event);
    NtClose(event);
    NtClose(second);
    NtClose(mutant);
    allocations_left = -1;
    assert_int_equal(allocations_refused, refused);
    close_handle(semaphore);
    close_handle(timer);
    close_handle(pair);
    close_handle(keyed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_one_more_allocation_each_time),
        cmocka_unit_test(a_duplicate_and_an_open),
        cmocka_unit_test(nothing_else_allocates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
