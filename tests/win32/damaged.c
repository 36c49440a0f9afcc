/* damaged.c: rubbish in the file of the world, by handle: every call says so, and every wait ends. */
#include "actors.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "wo/wop.h"

/* The file of this session's world. */
static int open_world(void)
{
    char pattern[300];
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/interlock*", getenv("XDG_RUNTIME_DIR"));
    REQUIRE(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    int file = open(found.gl_pathv[0], O_RDWR);
    REQUIRE(file >= 0);
    globfree(&found);
    return file;
}

static HANDLE event, semaphore, mutex, timer, keyed, local;

static void open_everything(void)
{
    static WCHAR path[] = u"\\BaseNamedObjects\\keyed";
    UNICODE_STRING name = {sizeof(path) - sizeof(WCHAR), sizeof(path), path};
    OBJECT_ATTRIBUTES attributes;

    InitializeObjectAttributes(&attributes, &name, OBJ_OPENIF, NULL, NULL);
    REQUIRE((event = CreateEventA(NULL, FALSE, TRUE, "event")) != NULL);
    REQUIRE((semaphore = CreateSemaphoreA(NULL, 1, 5, "semaphore")) != NULL);
    REQUIRE((mutex = CreateMutexA(NULL, TRUE, "mutex")) != NULL);
    REQUIRE((timer = CreateWaitableTimerA(NULL, TRUE, "timer")) != NULL);
    REQUIRE(NtCreateKeyedEvent(&keyed, KEYEDEVENT_ALL_ACCESS, &attributes, 0) == STATUS_SUCCESS);
    REQUIRE((local = CreateEventA(NULL, TRUE, TRUE, NULL)) != NULL);
}

#define CORRUPT(call) REQUIRE((call) == STATUS_FILE_CORRUPT_ERROR)

/* Objects that were signaled, free or owned. */
static void expect_that_every_call_fails(void)
{
    EVENT_BASIC_INFORMATION event_information;
    SEMAPHORE_BASIC_INFORMATION semaphore_information;
    MUTANT_BASIC_INFORMATION mutant_information;
    TIMER_BASIC_INFORMATION timer_information;
    LARGE_INTEGER soon = {.QuadPart = -10}, none = {.QuadPart = 0};
    HANDLE both[] = {event, local}, first[] = {local, event}, all[] = {event, semaphore};
    LONG previous = 77;

    CORRUPT(NtSetEvent(event, &previous));
    CORRUPT(NtResetEvent(event, &previous));
    CORRUPT(NtPulseEvent(event, &previous));
    CORRUPT(NtClearEvent(event));
    CORRUPT(NtSetEventBoostPriority(event));
    REQUIRE(previous == 77);
    CORRUPT(NtQueryEvent(event, EventBasicInformation, &event_information, sizeof(event_information), NULL));
    CORRUPT(NtReleaseSemaphore(semaphore, 1, &previous));
    CORRUPT(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &semaphore_information, sizeof(semaphore_information), NULL));
    CORRUPT(NtReleaseMutant(mutex, &previous));
    CORRUPT(NtQueryMutant(mutex, MutantBasicInformation, &mutant_information, sizeof(mutant_information), NULL));
    CORRUPT(NtSetTimer(timer, &soon, NULL, NULL, FALSE, 0, NULL));
    CORRUPT(NtCancelTimer(timer, NULL));
    CORRUPT(NtQueryTimer(timer, TimerBasicInformation, &timer_information, sizeof(timer_information), NULL));
    CORRUPT(NtWaitForKeyedEvent(keyed, (PVOID)2, FALSE, NULL));
    CORRUPT(NtReleaseKeyedEvent(keyed, (PVOID)2, FALSE, NULL));
    CORRUPT(NtWaitForSingleObject(event, FALSE, &none));
    CORRUPT(NtWaitForSingleObject(semaphore, FALSE, NULL));
    CORRUPT(NtWaitForSingleObject(mutex, FALSE, NULL));
    CORRUPT(NtWaitForSingleObject(timer, FALSE, NULL));
    CORRUPT(NtWaitForMultipleObjects(2, both, WaitAny, FALSE, NULL));
    REQUIRE(NtWaitForMultipleObjects(2, first, WaitAny, FALSE, NULL) == STATUS_WAIT_0);
    CORRUPT(NtWaitForMultipleObjects(2, both, WaitAll, FALSE, NULL));
    CORRUPT(NtWaitForMultipleObjects(2, all, WaitAll, FALSE, NULL));
    CORRUPT(NtSignalAndWaitForSingleObject(event, local, FALSE, NULL));
    CORRUPT(NtSignalAndWaitForSingleObject(local, event, FALSE, NULL));
    REQUIRE(!SetEvent(event) && GetLastError() == ERROR_FILE_CORRUPT);
    REQUIRE(WaitForSingleObject(event, 0) == WAIT_FAILED && GetLastError() == ERROR_FILE_CORRUPT);
    REQUIRE(CreateEventA(NULL, FALSE, FALSE, "another") == NULL && GetLastError() == ERROR_FILE_CORRUPT);
    REQUIRE(OpenEventA(SYNCHRONIZE, FALSE, "event") == NULL && GetLastError() == ERROR_FILE_CORRUPT);
    REQUIRE(SetEvent(local) && CloseHandle(event) && CloseHandle(mutex));
}

/* statuses */
static int statuses(int argc, char **argv)
{
    ULONG state = WoDamaged;

    (void)argc;
    (void)argv;
    open_everything();
    int file = open_world();
    REQUIRE(pwrite(file, &state, sizeof(state), FIELD_OFFSET(WO_WORLD, State)) == sizeof(state));
    close(file);
    expect_that_every_call_fails();
    return 0;
}

static volatile LONG ended;

static DWORD WINAPI wait_for_ever(void *handle)
{
    if (WaitForSingleObject(handle, INFINITE) == WAIT_FAILED && GetLastError() == ERROR_FILE_CORRUPT)
        InterlockedIncrement(&ended);
    return 0;
}

/* waits: threads sleep, and every record is overwritten, their own too: the next call finds out and wakes them. */
static int waits(int argc, char **argv)
{
    static unsigned char rubbish[65536];
    HANDLE threads[4], never[4];
    struct stat status;

    (void)argc;
    (void)argv;
    open_everything();
    never[0] = CreateEventA(NULL, FALSE, FALSE, "never");
    never[1] = CreateSemaphoreA(NULL, 0, 1, "never more");
    never[2] = CreateWaitableTimerA(NULL, FALSE, "never again");
    never[3] = mutex;
    for (unsigned i = 0; i < 4; i++)
        REQUIRE((threads[i] = CreateThread(NULL, 0, wait_for_ever, never[i], 0, NULL)) != NULL);
    int file = open_world();
    WO_WORLD *world = mmap(NULL, sizeof(*world), PROT_READ, MAP_SHARED, file, 0);
    REQUIRE(world != MAP_FAILED && fstat(file, &status) == 0);
    while (__atomic_load_n(&world->WaitNumber, __ATOMIC_ACQUIRE) < 4)
        Sleep(1);
    memset(rubbish, 0xa5, sizeof(rubbish));
    for (off_t at = WO_FIRST_RECORD * WO_UNIT; at < status.st_size; at += (off_t)sizeof(rubbish)) {
        off_t left = status.st_size - at;
        size_t size = left < (off_t)sizeof(rubbish) ? (size_t)left : sizeof(rubbish);
        REQUIRE(pwrite(file, rubbish, size, at) == (ssize_t)size);
    }
    REQUIRE(!SetEvent(event) && GetLastError() == ERROR_FILE_CORRUPT);
    REQUIRE(WaitForMultipleObjects(4, threads, TRUE, INFINITE) == WAIT_OBJECT_0);
    REQUIRE(ended == 4);
    munmap(world, sizeof(*world));
    return 0;
}

static const actor_entry roles[] = {{"statuses", statuses}, {"waits", waits}, {NULL, NULL}};

static void every_call_has_a_status(void **state)
{
    (void)state;
    assert_int_equal(end_actor(start_actor("statuses")), 0);
}

static void every_wait_ends(void **state)
{
    (void)state;
    assert_int_equal(end_actor(start_actor("waits")), 0);
}

static char directory[] = "/dev/shm/interlock-damaged-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    return setenv("XDG_RUNTIME_DIR", directory, 1); /* the actors' too */
}

static int remove_directory(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command);
}

int main(int argc, char **argv)
{
    int role = play_role(argc, argv, roles);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_has_a_status),
        cmocka_unit_test(every_wait_ends),
    };
    return role >= 0 ? role : cmocka_run_group_tests(tests, make_directory, remove_directory);
}
