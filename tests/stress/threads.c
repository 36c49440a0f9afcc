#include "support.h"

#include <interlock/ps.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ob/obp.h"

enum { THREADS = 4 };

/* Handles. Every object is opened once, so a closed handle must never lead to its object again. */

struct thing {
    KEVENT event;
    ULONG64 serial;
    ULONG64 check; /* ~serial while the object lives */
};

static volatile LONG64 last_serial;
static volatile LONG things;

static VOID delete_thing(PVOID object)
{
    struct thing *thing = object;

    thing->check = 0;
    InterlockedDecrement(&things);
}

static OBJECT_TYPE thing_type = {
    .Name = "Thing",
    .ValidAccessMask = EVENT_ALL_ACCESS,
    .DeleteProcedure = delete_thing,
};

static HANDLE open_thing(ULONG64 *serial)
{
    struct thing *thing = ObpCreateObject(&thing_type, sizeof(*thing));
    HANDLE handle;

    assert_non_null(thing);
    InterlockedIncrement(&things);
    thing->serial = *serial = (ULONG64)InterlockedIncrement64(&last_serial);
    thing->check = ~thing->serial;
    assert_int_equal(ObOpenObjectByPointer(thing, 0, NULL, (ACCESS_MASK)(thing->serial & 3) | SYNCHRONIZE, &thing_type,
                                           UserMode, &handle),
                     STATUS_SUCCESS);
    ObDereferenceObject(thing);
    return handle;
}

static NTSTATUS look_up(HANDLE handle, ULONG64 *serial)
{
    OBJECT_HANDLE_INFORMATION information;
    PVOID object;
    NTSTATUS status = ObReferenceObjectByHandle(handle, SYNCHRONIZE, &thing_type, UserMode, &object, &information);

    if (NT_SUCCESS(status)) {
        struct thing *thing = object;

        assert_int_equal(thing->check, ~thing->serial);
        assert_int_equal(information.GrantedAccess & 3, thing->serial & 3);
        *serial = thing->serial;
        ObDereferenceObject(object);
    }
    return status;
}

struct storm {
    unsigned long rounds;
    HANDLE volatile shared[8];
};

static void storm_handles(void *argument, unsigned index)
{
    struct storm *storm = argument;
    test_random random;
    ULONG64 own, found;

    random_seed(&random, index + 1);
    for (unsigned long round = 0; round < storm->rounds; round++) {
        HANDLE volatile *place = &storm->shared[random_below(&random, 8)];
        HANDLE handle = open_thing(&own);

        assert_int_equal(look_up(handle, &found), STATUS_SUCCESS);
        assert_int_equal(found, own);
        if (random_below(&random, 4) == 0)
            handle = InterlockedExchangePointer((PVOID volatile *)place, handle);
        else if (look_up(handle, &found) != STATUS_SUCCESS || found != own)
            fail_msg("a live handle was not found");
        for (unsigned i = 0; i < 4; i++) {
            HANDLE other = InterlockedCompareExchangePointer((PVOID volatile *)&storm->shared[i * 2], NULL, NULL);
            NTSTATUS status = look_up(other, &found);

            assert_true(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
        }
        if (handle == NULL)
            continue;
        assert_int_equal(look_up(handle, &own), STATUS_SUCCESS);
        assert_int_equal(ObCloseHandle(handle, UserMode), STATUS_SUCCESS);
        if (look_up(handle, &found) == STATUS_SUCCESS)
            assert_int_not_equal(found, own);
    }
}

static void handle_storm(void **state)
{
    struct storm storm = {.rounds = test_rounds(100000)};

    (void)state;
    run_threads(THREADS, 240, storm_handles, &storm);
    for (unsigned i = 0; i < 8; i++) {
        if (storm.shared[i] != NULL)
            assert_int_equal(ObCloseHandle(storm.shared[i], UserMode), STATUS_SUCCESS);
    }
    assert_int_equal(things, 0);
    assert_int_equal(thing_type.TotalNumberOfHandles, 0);
}

struct one_handle {
    HANDLE handle;
    ULONG64 serial;
    unsigned long rounds;
};

static void keep_references(void *argument, unsigned index)
{
    struct one_handle *one = argument;
    PVOID object = NULL;

    (void)index;
    for (unsigned long i = 0; i < one->rounds; i++) {
        assert_int_equal(ObReferenceObjectByHandle(one->handle, SYNCHRONIZE, &thing_type, UserMode, &object, NULL), 0);
        assert_int_equal(((struct thing *)object)->serial, one->serial);
    }
    if (object != NULL)
        ObpDereferenceObjectEx(object, (LONG_PTR)one->rounds);
}

/* The references that a handle holds in advance run out repeatedly. */
static void many_references_through_one_handle(void **state)
{
    struct one_handle one = {.rounds = test_rounds(400000)};

    (void)state;
    one.handle = open_thing(&one.serial);
    run_threads(THREADS, 120, keep_references, &one);
    assert_int_equal(ObCloseHandle(one.handle, UserMode), STATUS_SUCCESS);
    assert_int_equal(things, 0);
}

/* Ids of threads that start and exit. */

struct ids {
    unsigned long rounds;
    HANDLE volatile id[THREADS];
    volatile LONG running;
};

static VOID publish_id(PVOID context)
{
    InterlockedExchangePointer(context, PsGetCurrentThreadId());
}

static void race_for_ids(void *argument, unsigned index)
{
    struct ids *ids = argument;
    PETHREAD thread;

    if (index < 2) {
        for (unsigned long round = 0; round < ids->rounds; round++) {
            HANDLE handle;
            CLIENT_ID id;

            assert_int_equal(PsCreateSystemThread(&handle, SYNCHRONIZE, NULL, NULL, &id, publish_id,
                                                  (PVOID)&ids->id[index]),
                             STATUS_SUCCESS);
            assert_int_equal(PsLookupThreadByThreadId(id.UniqueThread, &thread), STATUS_SUCCESS);
            assert_ptr_equal(PsGetThreadId(thread), id.UniqueThread);
            ZwClose(handle);
            assert_int_equal(KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
            assert_int_equal(PsGetThreadExitStatus(thread), STATUS_SUCCESS);
            ObDereferenceObject(thread);
        }
        InterlockedDecrement(&ids->running);
        return;
    }
    while (InterlockedCompareExchange(&ids->running, 0, 0) != 0) {
        HANDLE id = InterlockedCompareExchangePointer((PVOID volatile *)&ids->id[index % 2], NULL, NULL);

        if (NT_SUCCESS(PsLookupThreadByThreadId(id, &thread))) {
            assert_ptr_equal(PsGetThreadId(thread), id);
            PsGetThreadExitStatus(thread);
            KeQueryPriorityThread((PKTHREAD)thread);
            ObDereferenceObject(thread);
        }
    }
}

static void ids_come_and_go(void **state)
{
    struct ids ids = {.rounds = test_rounds(5000), .running = 2};
    ULONG before = KiThreadSlotsUsed;

    (void)state;
    run_threads(THREADS, 240, race_for_ids, &ids);
    assert_true(KiThreadSlotsUsed - before <= 16 + ids.rounds / 4); /* not all have dropped theirs */
}

/* Forks while others work. A sanitizer's runtime may be forked while another thread holds its locks: there the child
   allocates nothing and creates no thread. */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "child: line %d: %s\n", __LINE__, #condition);                                             \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

struct work {
    KEVENT ping, pong;
    KMUTANT mutant;
    KSEMAPHORE semaphore;
    volatile LONG stop;
    unsigned long rounds;
};

static NTSTATUS wait_ms(PVOID object, LONG milliseconds)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000LL * milliseconds};

    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &timeout);
}

static VOID end_at_once(PVOID context)
{
    (void)context;
}

static void work_on(struct work *work, unsigned index)
{
    ULONG64 serial, found;
    HANDLE handle;

    switch (index % 4) {
    case 0:
        KeSetEvent(&work->ping, 1, FALSE);
        wait_ms(&work->pong, 1);
        break;
    case 1:
        wait_ms(&work->ping, 1);
        KeSetEvent(&work->pong, 1, FALSE);
        break;
    case 2:
        KeWaitForSingleObject(&work->mutant, Executive, KernelMode, FALSE, NULL);
        KeSetBasePriorityThread(KeGetCurrentThread(), (LONG)(work->rounds % 3));
        KeReleaseMutant(&work->mutant, 1, FALSE, FALSE);
        wait_ms(&work->semaphore, 0);
        KeReleaseSemaphore(&work->semaphore, 1, 1, FALSE);
        break;
    default:
        handle = open_thing(&serial);
        look_up(handle, &found);
        ObCloseHandle(handle, UserMode);
        if (NT_SUCCESS(PsCreateSystemThread(&handle, SYNCHRONIZE, NULL, NULL, NULL, end_at_once, NULL)))
            ZwClose(handle);
        break;
    }
}

static VOID set_event(PVOID event)
{
    KeSetEvent(event, 0, FALSE);
}

static void use_handles_and_threads(void)
{
    KEVENT event;
    HANDLE handle;
    PVOID thread;
    ULONG64 serial, found;

    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    handle = open_thing(&serial);
    CHECK(look_up(handle, &found) == STATUS_SUCCESS && found == serial);
    CHECK(ObCloseHandle(handle, UserMode) == STATUS_SUCCESS);
    CHECK(NT_SUCCESS(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, set_event, &event)));
    CHECK(NT_SUCCESS(ObReferenceObjectByHandle(handle, SYNCHRONIZE, *PsThreadType, KernelMode, &thread, NULL)));
    CHECK(ZwClose(handle) == STATUS_SUCCESS);
    CHECK(wait_ms(&event, 20000) == STATUS_SUCCESS);
    CHECK(wait_ms(thread, 20000) == STATUS_SUCCESS);
    ObDereferenceObject(thread);
}

static _Noreturn void be_the_child(struct work *work)
{
    NTSTATUS status;

    alarm(60 * test_slowdown());
    CHECK(KeGetCurrentThread()->ThreadId == (ULONG)getpid());
    status = wait_ms(&work->mutant, 20000);
    CHECK(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
    KeReleaseMutant(&work->mutant, 1, FALSE, FALSE);
    KeSetEvent(&work->ping, 1, FALSE);
    CHECK(wait_ms(&work->ping, 0) == STATUS_SUCCESS);
    CHECK(wait_ms(&work->ping, 1) == STATUS_TIMEOUT);
    if (!SANITIZED)
        use_handles_and_threads();
    _exit(0);
}

static void fork_repeatedly(struct work *work)
{
    for (unsigned long round = 0; round < work->rounds; round++) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0)
            be_the_child(work);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void work_or_fork(void *argument, unsigned index)
{
    struct work *work = argument;

    if (index < 2) {
        fork_repeatedly(work);
        InterlockedIncrement(&work->stop);
        return;
    }
    while (InterlockedCompareExchange(&work->stop, 0, 0) != 2)
        work_on(work, index);
}

static void fork_storm(void **state)
{
    struct work work = {.rounds = test_rounds(300)};

    (void)state;
    KeInitializeEvent(&work.ping, SynchronizationEvent, FALSE);
    KeInitializeEvent(&work.pong, SynchronizationEvent, FALSE);
    KeInitializeMutant(&work.mutant, FALSE);
    KeInitializeSemaphore(&work.semaphore, 4, 100);
    run_threads(2 + 8, 240, work_or_fork, &work);
    assert_int_equal(things, 0);
    assert_int_equal(wait_ms(&work.mutant, 0), STATUS_SUCCESS);
    KeReleaseMutant(&work.mutant, 0, FALSE, FALSE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(handle_storm),
        cmocka_unit_test(many_references_through_one_handle),
        cmocka_unit_test(ids_come_and_go),
        cmocka_unit_test(fork_storm),
    };

    return cmocka_run_group_tests_name("stress/threads", tests, NULL, NULL);
}
