/* Handles: a lookup against a close, two closes, a duplicate. A thread that got the object may use it. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

#include "ob/obp.h"

static HANDLE event, copy;
static int closed;

static void setup(void)
{
    LabAssert(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE) == STATUS_SUCCESS);
}

static void user(void)
{
    LONG before = -1;
    NTSTATUS status = NtSetEvent(event, &before);
    LabAssert(status == STATUS_INVALID_HANDLE || (status == STATUS_SUCCESS && (before == 0 || before == 1)));
}

static void closer(void)
{
    NTSTATUS status = NtClose(event);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
    __atomic_fetch_add(&closed, status == STATUS_SUCCESS, __ATOMIC_RELAXED);
}

static void closed_once(void)
{
    LabAssert(closed == 1 && NtClose(event) == STATUS_INVALID_HANDLE);
}
LAB_SCENARIO(handle_use_against_close, .Setup = setup, .Threads = {user, closer}, .Finish = closed_once);
LAB_SCENARIO(handle_use_against_close_c11, .Setup = setup, .Threads = {user, closer}, .Finish = closed_once,
             .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(handle_two_closes, .Setup = setup, .Threads = {closer, closer, user}, .Finish = closed_once);

/* A referenced object outlives its handle. */
static void keeper(void)
{
    PVOID object;
    NTSTATUS status = ObReferenceObjectByHandle(event, EVENT_MODIFY_STATE, *ExEventObjectType, UserMode, &object, NULL);
    if (status == STATUS_SUCCESS) {
        LabAssert(KeSetEvent(object, IO_NO_INCREMENT, FALSE) == 0);
        LabAssert(KeReadStateEvent(object) == 1);
        ObDereferenceObject(object);
    } else {
        LabAssert(status == STATUS_INVALID_HANDLE);
    }
}
LAB_SCENARIO(handle_reference_against_close, .Setup = setup, .Threads = {keeper, closer}, .Finish = closed_once);

/* A duplicate keeps the object, or is too late. And another object reuses the slot at once. */
static void duplicator(void *unused)
{
    UNREFERENCED_PARAMETER(unused);
    NTSTATUS status =
        NtDuplicateObject(NtCurrentProcess(), event, NtCurrentProcess(), &copy, 0, 0, DUPLICATE_SAME_ACCESS);
    if (status == STATUS_SUCCESS) {
        LabAssert(NtSetEvent(copy, NULL) == STATUS_SUCCESS);
        LabAssert(NtClose(copy) == STATUS_SUCCESS);
    } else {
        LabAssert(status == STATUS_INVALID_HANDLE);
    }
}

static void replacer(void *unused)
{
    HANDLE other;
    UNREFERENCED_PARAMETER(unused);
    LabAssert(NtClose(event) == STATUS_SUCCESS);
    LabAssert(NtCreateEvent(&other, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE) == STATUS_SUCCESS);
    LabAssert(NtClose(other) == STATUS_SUCCESS);
}

/* The handle table is allocated for the first handle and stays. */
static void setup_table(void)
{
    setup();
    NtClose(event);
}

/* The event belongs to this schedule, so a leak of it is reported. */
static void duplicate_against_close(void)
{
    setup();
    unsigned first = LabSpawn(duplicator, NULL);
    unsigned second = LabSpawn(replacer, NULL);
    LabJoin(first);
    LabJoin(second);
}
LAB_SCENARIO(handle_duplicate_against_close, .Setup = setup_table, .Threads = {duplicate_against_close},
             .Flags = LAB_CHECK_LEAKS);

/* A wait references its object. */
static void waiter(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = NtWaitForSingleObject(event, FALSE, &timeout);
    LabAssert(status == STATUS_TIMEOUT || status == STATUS_INVALID_HANDLE);
}
LAB_SCENARIO(handle_wait_against_close, .Setup = setup, .Threads = {waiter, closer}, .Finish = closed_once);

/* Handles that are borrowed, not referenced: a closer waits for the borrower. */
static void make_borrowable(HANDLE handle)
{
    __atomic_fetch_or(&ObpEntryOfHandle(handle)->Object, OBP_BORROWABLE, __ATOMIC_RELAXED);
}

static void setup_borrowable(void)
{
    setup();
    make_borrowable(event);
}

static void setup_borrowable_set(void)
{
    LabAssert(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, TRUE) == STATUS_SUCCESS);
    make_borrowable(event);
}

static void poller(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    NTSTATUS status = NtWaitForSingleObject(event, FALSE, &now);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT || status == STATUS_INVALID_HANDLE);
}

/* The tag bits of a handle are ignored. */
static void closer_by_tagged(void)
{
    LabAssert(NtClose((char *)event + 3) == STATUS_SUCCESS);
    closed = 1;
}
LAB_SCENARIO(handle_borrowed_against_close, .Setup = setup_borrowable, .Threads = {user, closer_by_tagged},
             .Finish = closed_once);
LAB_SCENARIO(handle_borrowed_against_close_tso, .Setup = setup_borrowable, .Threads = {user, closer},
             .Finish = closed_once, .Model = "tso");
LAB_SCENARIO(handle_borrowed_against_close_c11, .Setup = setup_borrowable, .Threads = {user, closer},
             .Finish = closed_once, .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(handle_borrowed_wait_against_close, .Setup = setup_borrowable_set, .Threads = {poller, closer},
             .Finish = closed_once);
LAB_SCENARIO(handle_borrowed_twice, .Setup = setup_borrowable_set, .Threads = {poller, user, closer},
             .Finish = closed_once);
LAB_SCENARIO(handle_borrowed_blocks, .Setup = setup_borrowable, .Threads = {waiter, closer}, .Finish = closed_once);

/* The entry is opened again at once for another object, with other rights: neither the object nor the rights of one are
   used with those of the other. */
static HANDLE rest;
static PVOID second;

static void setup_two(void)
{
    setup_borrowable();
    LabAssert(NtCreateEvent(&rest, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE) == STATUS_SUCCESS);
    LabAssert(ObReferenceObjectByHandle(rest, 0, NULL, KernelMode, &second, NULL) == STATUS_SUCCESS);
}

static void user_of_either(void)
{
    NTSTATUS status = NtSetEvent(event, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE || status == STATUS_ACCESS_DENIED);
}

static void reopener(void)
{
    LabAssert(NtClose(event) == STATUS_SUCCESS);
    ObpOpenReservedHandle(event, second, 0, EVENT_QUERY_STATE);
    make_borrowable(event);
}

static void second_is_unset(void)
{
    LabAssert(KeReadStateEvent(second) == 0);
}
LAB_SCENARIO(handle_borrowed_opened_again, .Setup = setup_two, .Threads = {user_of_either, reopener},
             .Finish = second_is_unset);
LAB_SCENARIO(handle_borrowed_opened_again_c11, .Setup = setup_two, .Threads = {user_of_either, reopener},
             .Finish = second_is_unset, .Model = "c11", .StaleReads = 2);

/* Mutants and semaphores are borrowed too: a waiter comes while the owner releases, or the handle is closed in between. */
static int inside;
static LONG passes;

static void setup_borrowable_mutant(void)
{
    LabAssert(NtCreateMutant(&event, MUTANT_ALL_ACCESS, NULL, FALSE) == STATUS_SUCCESS);
    make_borrowable(event);
}

static void owner(void)
{
    NTSTATUS status = NtWaitForSingleObject(event, FALSE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
    if (status == STATUS_SUCCESS) {
        LabAssert(__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED) == 1);
        passes += 1;
        __atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
        status = NtReleaseMutant(event, NULL);
        LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
    }
}

static void owner_again(void)
{
    LONG before = 1;
    if (NtWaitForSingleObject(event, FALSE, NULL) == STATUS_SUCCESS) {
        owner();
        NTSTATUS status = NtReleaseMutant(event, &before);
        LabAssert((status == STATUS_SUCCESS && before == 0) || status == STATUS_INVALID_HANDLE);
    }
}

static void free_again(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    LabAssert(passes == 2 && NtWaitForSingleObject(event, FALSE, &now) == STATUS_SUCCESS);
    LabAssert(NtReleaseMutant(event, NULL) == STATUS_SUCCESS);
    LabAssert(NtReleaseMutant(event, NULL) == STATUS_MUTANT_NOT_OWNED);
    LabAssert(NtClose(event) == STATUS_SUCCESS);
}
LAB_SCENARIO(handle_borrowed_mutant, .Setup = setup_borrowable_mutant, .Threads = {owner, owner}, .Finish = free_again);
LAB_SCENARIO(handle_borrowed_mutant_c11, .Setup = setup_borrowable_mutant, .Threads = {owner, owner},
             .Finish = free_again, .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(handle_borrowed_mutant_again, .Setup = setup_borrowable_mutant, .Threads = {owner_again, owner},
             .Finish = free_again);
LAB_SCENARIO(handle_borrowed_mutant_against_close, .Setup = setup_borrowable_mutant, .Threads = {owner, closer},
             .Finish = closed_once);

static void setup_borrowable_semaphore(void)
{
    LabAssert(NtCreateSemaphore(&event, SEMAPHORE_ALL_ACCESS, NULL, 0, 1) == STATUS_SUCCESS);
    make_borrowable(event);
}

static void releaser(void)
{
    LONG before = -1;
    NTSTATUS status = NtReleaseSemaphore(event, 1, &before);
    LabAssert((status == STATUS_SUCCESS && before == 0) || status == STATUS_SEMAPHORE_LIMIT_EXCEEDED ||
              status == STATUS_INVALID_HANDLE);
}

static void taker(void)
{
    LabAssert(NtWaitForSingleObject(event, FALSE, NULL) == STATUS_SUCCESS);
}

static void closed_at_last(void)
{
    LabAssert(NtClose(event) == STATUS_SUCCESS);
}
LAB_SCENARIO(handle_borrowed_semaphore, .Setup = setup_borrowable_semaphore, .Threads = {releaser, taker},
             .Finish = closed_at_last);
LAB_SCENARIO(handle_borrowed_semaphore_twice, .Setup = setup_borrowable_semaphore, .Threads = {releaser, releaser, taker},
             .Finish = closed_at_last);
LAB_SCENARIO(handle_borrowed_semaphore_against_close, .Setup = setup_borrowable_semaphore, .Threads = {releaser, closer},
             .Finish = closed_once);
