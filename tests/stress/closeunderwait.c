/*
 * Handles are closed while other threads wait by them, duplicate them, or close them too. A waiter references the
 * object, so its wait is unaffected; only a completion port reports to its removers that it is gone. Nothing leaks.
 */
#include "stress.h"

#include <windows.h>

#include <interlock/io.h>
#include <interlock/nt.h>

#include <unistd.h>

#define WAITERS 3
#define LONG_TIME 60000

static ULONG handle_count(void)
{
    ULONG count = 0;

    require(NtQueryInformationProcess(GetCurrentProcess(), ProcessHandleCount, &count, sizeof(count), NULL) == 0);
    return count;
}

/* One object of each kind: how to create it, and how to signal it when no handle is left. */
typedef struct subject {
    HANDLE handle;
    HANDLE aid;     /* another object that brings the signal */
    int ends[2];
} subject;

typedef struct wait_kind {
    const char *name;
    void (*make)(subject *s);
    void (*signal)(subject *s);   /* after the handle was closed; may close aid */
    DWORD first, others;          /* result of the first waiter released, and of the others */
} wait_kind;

static void make_event(subject *s)
{
    s->handle = CreateEventA(NULL, TRUE, FALSE, NULL);
    require(DuplicateHandle(GetCurrentProcess(), s->handle, GetCurrentProcess(), &s->aid, 0, FALSE,
                            DUPLICATE_SAME_ACCESS));
}

static void signal_event(subject *s)
{
    require(SetEvent(s->aid));
    require(CloseHandle(s->aid));
}

static void make_semaphore(subject *s)
{
    s->handle = CreateSemaphoreA(NULL, 0, WAITERS, NULL);
    require(DuplicateHandle(GetCurrentProcess(), s->handle, GetCurrentProcess(), &s->aid, SEMAPHORE_MODIFY_STATE, FALSE,
                            0));
}

static void signal_semaphore(subject *s)
{
    require(ReleaseSemaphore(s->aid, WAITERS, NULL));
    require(CloseHandle(s->aid));
}

static void make_timer(subject *s)
{
    LARGE_INTEGER due = in_microseconds(300);

    s->handle = CreateWaitableTimerA(NULL, TRUE, NULL);
    require(SetWaitableTimer(s->handle, &due, 0, NULL, NULL, FALSE));
}

static void signal_nothing(subject *s)
{
    (void)s;
}

/* An APC that arrives before the thread has begun would run before its routine, and the sleep would never end. */
static void sleep_until_told(subject *s)
{
    require(write(s->ends[1], "x", 1) == 1);
    require(SleepEx(INFINITE, TRUE) == WAIT_IO_COMPLETION);
}

static void start_sleeper(subject *s, LPTHREAD_START_ROUTINE routine)
{
    char byte;

    require(pipe(s->ends) == 0);
    s->aid = CreateThread(NULL, 0x40000, routine, s, 0, NULL);
    require(read(s->ends[0], &byte, 1) == 1);
    close(s->ends[0]);
    close(s->ends[1]);
}

/* A mutex whose owner exits without releasing it, when no handle is left. */
static DWORD WINAPI own_until_told(LPVOID argument)
{
    subject *s = argument;

    require(WaitForSingleObject(s->handle, INFINITE) == WAIT_OBJECT_0);
    sleep_until_told(s);
    return 0;
}

static VOID CALLBACK go_on(ULONG_PTR argument)
{
    (void)argument;
}

static void make_mutex(subject *s)
{
    s->handle = CreateMutexA(NULL, FALSE, NULL);
    start_sleeper(s, own_until_told);
}

static void tell_thread(subject *s)
{
    require(QueueUserAPC(go_on, s->aid, 0));
    require(CloseHandle(s->aid));
}

static DWORD WINAPI only_sleep(LPVOID argument)
{
    sleep_until_told(argument);
    return 0;
}

static void make_thread(subject *s)
{
    start_sleeper(s, only_sleep);
    require(DuplicateHandle(GetCurrentProcess(), s->aid, GetCurrentProcess(), &s->handle, SYNCHRONIZE, FALSE, 0));
}

static void make_process(subject *s)
{
    STARTUPINFOA startup = {.cb = sizeof(startup), .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION process;
    char command[] = "/bin/cat";

    require(pipe(s->ends) == 0);
    require(IoCreateDescriptorObject(&startup.hStdInput, IO_DESCRIPTOR_ALL_ACCESS, NULL, s->ends[0],
                                     IO_DESCRIPTOR_READABLE) == 0);
    require(SetHandleInformation(startup.hStdInput, 0, 0));
    require(CreateProcessA(NULL, command, NULL, NULL, FALSE, CREATE_SUSPENDED, NULL, NULL, &startup, &process));
    require(CloseHandle(startup.hStdInput));
    close(s->ends[0]);
    s->handle = process.hProcess;
    s->aid = process.hThread;
}

static void end_process(subject *s)
{
    require(TerminateProcess(s->aid, 3));
    require(CloseHandle(s->aid));
    close(s->ends[1]);
}

static void make_descriptor(subject *s)
{
    require(pipe(s->ends) == 0);
    require(IoCreateDescriptorObject(&s->handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, s->ends[0], IO_DESCRIPTOR_READABLE) ==
            0);
}

static void signal_descriptor(subject *s)
{
    require(write(s->ends[1], "x", 1) == 1);
    close(s->ends[0]);
    close(s->ends[1]);
}

static void make_port(subject *s)
{
    s->handle = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
}

static const wait_kind kinds[] = {
    {"event", make_event, signal_event, WAIT_OBJECT_0, WAIT_OBJECT_0},
    {"semaphore", make_semaphore, signal_semaphore, WAIT_OBJECT_0, WAIT_OBJECT_0},
    {"timer", make_timer, signal_nothing, WAIT_OBJECT_0, WAIT_OBJECT_0},
    {"mutex", make_mutex, tell_thread, WAIT_ABANDONED_0, WAIT_OBJECT_0},
    {"thread", make_thread, tell_thread, WAIT_OBJECT_0, WAIT_OBJECT_0},
    {"process", make_process, end_process, WAIT_OBJECT_0, WAIT_OBJECT_0},
    {"descriptor", make_descriptor, signal_descriptor, WAIT_OBJECT_0, WAIT_OBJECT_0},
    {"port", make_port, signal_nothing, WAIT_OBJECT_0, WAIT_OBJECT_0},
};

static struct {
    const wait_kind *kind;
    subject subject;
    HANDLE never;            /* an event that is never set */
    volatile LONG firsts, others;
} scene;

/* With one handle, with several, and the same with a timeout that does not expire. */
static DWORD WINAPI wait_for_subject(LPVOID argument)
{
    unsigned index = (unsigned)(ULONG_PTR)argument;
    HANDLE both[2] = {scene.never, scene.subject.handle};
    DWORD result = index == 0 ? WaitForSingleObject(both[1], INFINITE)
                              : WaitForMultipleObjects(2, both, FALSE, index == 1 ? INFINITE : LONG_TIME);

    if (index != 0)
        result -= 1;
    require(result == scene.kind->first || result == scene.kind->others);
    InterlockedIncrement(result == scene.kind->first ? &scene.firsts : &scene.others);
    return 0; /* a mutex that it owns becomes abandoned, for the next waiter */
}

static int is_alive(HANDLE thread)
{
    THREAD_BASIC_INFORMATION basic;

    require(NtQueryInformationThread(thread, ThreadBasicInformation, &basic, sizeof(basic), NULL) == 0);
    return basic.ExitStatus == STATUS_PENDING;
}

static void close_under_waiters(const wait_kind *kind)
{
    HANDLE waiters[WAITERS];

    scene.kind = kind;
    scene.firsts = scene.others = 0;
    kind->make(&scene.subject);
    require(scene.subject.handle != NULL);
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i] = CreateThread(NULL, 0x40000, wait_for_subject, (LPVOID)(ULONG_PTR)i, 0, NULL);
        require(waiters[i] != NULL);
    }
    /* Until all have looked up the handle: a later wait would find it closed. */
    for (unsigned i = 0; i < WAITERS; i++) {
        PVOID thread;

        require(ObReferenceObjectByHandle(waiters[i], 0, *PsThreadType, KernelMode, &thread, NULL) == 0);
        await(is_in_user_request(thread) || !is_alive(waiters[i]));
        ObDereferenceObject(thread);
    }
    require(CloseHandle(scene.subject.handle));
    kind->signal(&scene.subject);
    require(WaitForMultipleObjects(WAITERS, waiters, TRUE, INFINITE) == WAIT_OBJECT_0);
    for (unsigned i = 0; i < WAITERS; i++)
        require(CloseHandle(waiters[i]));
    require(scene.firsts + scene.others == WAITERS && scene.firsts >= 1);
}

static void a_waiter_keeps_its_object(void **state)
{
    ULONG handles;

    (void)state;
    scene.never = CreateEventA(NULL, TRUE, FALSE, NULL);
    handles = handle_count();
    watchdog_start(HANG_SECONDS);
    for (unsigned long i = test_rounds(60); i > 0; i--)
        for (unsigned k = 0; k < ARRAYSIZE(kinds); k++)
            close_under_waiters(&kinds[k]);
    watchdog_stop();
    assert_int_equal(handle_count(), handles);
    assert_true(CloseHandle(scene.never));
}

/* Removers of a port that is closed, and posters that may come too late. */

static struct {
    HANDLE volatile port;
    unsigned long posted, removed, told, round;
} closing;

static void remove_until_closed(void)
{
    DWORD bytes;
    ULONG_PTR key;
    LPOVERLAPPED overlapped;

    while (GetQueuedCompletionStatus(closing.port, &bytes, &key, &overlapped, INFINITE))
        add(&closing.removed, 1);
    require(GetLastError() == ERROR_ABANDONED_WAIT_0 || GetLastError() == ERROR_INVALID_HANDLE);
    add(&closing.told, 1);
}

static void close_ports(void *argument, unsigned index)
{
    unsigned long rounds = *(unsigned long *)argument;

    for (unsigned long i = 1; i <= rounds; i++) {
        if (index == 0) {
            closing.port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
            require(closing.port != NULL);
            store(&closing.round, i);
            for (unsigned n = 0; n < i % 8; n++)
                require(PostQueuedCompletionStatus(closing.port, 0, 0, NULL));
            require(CloseHandle(closing.port));
            await(load(&closing.told) == i * WAITERS);
        } else {
            await(load(&closing.round) >= i);
            remove_until_closed();
            await(load(&closing.told) >= i * WAITERS || load(&closing.round) > i);
        }
    }
}

static void removers_of_a_closed_port_are_told(void **state)
{
    unsigned long rounds = test_rounds(3000);
    ULONG handles = handle_count();

    (void)state;
    run_threads(WAITERS + 1, HANG_SECONDS, close_ports, &rounds);
    assert_int_equal(closing.told, rounds * WAITERS);
    assert_int_equal(handle_count(), handles);
}

/* All threads wait by, signal, duplicate and close handles of a few slots, including handles that are closed already or
   have been reused for another object. */
#define SLOTS 12

static HANDLE volatile slots[SLOTS];

static HANDLE make_any(test_random *random)
{
    LARGE_INTEGER due = in_microseconds(random_below(random, 500));
    HANDLE handle;

    switch (random_below(random, 6)) {
    case 0:
        return CreateEventA(NULL, FALSE, FALSE, NULL);
    case 1:
        return CreateSemaphoreA(NULL, 1, 3, NULL);
    case 2:
        return CreateMutexA(NULL, FALSE, NULL);
    case 3:
        return CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    case 4:
        return CreateThread(NULL, 0x40000, (LPTHREAD_START_ROUTINE)(PVOID)GetCurrentThreadId, NULL, 0, NULL);
    default:
        handle = CreateWaitableTimerA(NULL, random_below(random, 2) != 0, NULL);
        require(SetWaitableTimer(handle, &due, (LONG)random_below(random, 2), NULL, NULL, FALSE));
        return handle;
    }
}

static void signal_any(HANDLE handle)
{
    if (!SetEvent(handle) && !ReleaseSemaphore(handle, 1, NULL) && !PostQueuedCompletionStatus(handle, 0, 0, NULL))
        CancelWaitableTimer(handle);
}

static void wait_any(test_random *random)
{
    HANDLE some[4];
    ULONG count = 1 + random_below(random, 4);
    BOOL all = random_below(random, 3) == 0;
    DWORD result;

    for (ULONG i = 0; i < count; i++)
        some[i] = __atomic_load_n(&slots[random_below(random, SLOTS)], __ATOMIC_RELAXED);
    result = WaitForMultipleObjects(count, some, all, random_below(random, 2));
    if (result == WAIT_FAILED) /* closed, empty, or the same handle twice */
        require(GetLastError() == ERROR_INVALID_HANDLE || GetLastError() == ERROR_INVALID_PARAMETER);
    else
        require(result == WAIT_TIMEOUT || result < WAIT_OBJECT_0 + count ||
                (result >= WAIT_ABANDONED_0 && result < WAIT_ABANDONED_0 + count));
    for (ULONG i = 0; i < count; i++) /* not those that were reused for another object: they are not owned */
        ReleaseMutex(some[i]);
}

static void remove_any(HANDLE handle)
{
    DWORD bytes;
    ULONG_PTR key;
    LPOVERLAPPED overlapped;

    GetQueuedCompletionStatus(handle, &bytes, &key, &overlapped, 1);
}

static void replace(HANDLE volatile *slot, HANDLE fresh)
{
    HANDLE old = __atomic_exchange_n(slot, fresh, __ATOMIC_SEQ_CST);

    if (old != NULL)
        require(CloseHandle(old));
}

static void shuffle(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = test_rounds(6000); i > 0; i--) {
        HANDLE volatile *slot = &slots[random_below(&random, SLOTS)];
        HANDLE handle = __atomic_load_n(slot, __ATOMIC_RELAXED), copy = NULL;

        switch (random_below(&random, 8)) {
        case 0:
            replace(slot, make_any(&random));
            break;
        case 1:
            if (DuplicateHandle(GetCurrentProcess(), handle, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS))
                replace(&slots[random_below(&random, SLOTS)], copy);
            break;
        case 2:
            remove_any(handle);
            break;
        case 3:
        case 4:
            signal_any(handle);
            break;
        default:
            wait_any(&random);
            break;
        }
    }
}

static void handles_of_everybody(void **state)
{
    ULONG handles = handle_count();

    (void)state;
    run_threads(5, HANG_SECONDS, shuffle, NULL);
    for (int i = 0; i < SLOTS; i++)
        replace(&slots[i], NULL);
    assert_int_equal(handle_count(), handles);
}

/* Names: while any thread has an object of that name open, all others get this object, or an error if it is of another
   kind. */

static HANDLE create_named(unsigned kind, LPCSTR name)
{
    switch (kind) {
    case 0:
        return CreateEventA(NULL, FALSE, FALSE, name);
    case 1:
        return CreateSemaphoreA(NULL, 0, 5, name);
    case 2:
        return CreateMutexA(NULL, FALSE, name);
    default:
        return CreateWaitableTimerA(NULL, FALSE, name);
    }
}

static HANDLE open_named(unsigned kind, LPCSTR name)
{
    switch (kind) {
    case 0:
        return OpenEventA(EVENT_ALL_ACCESS, FALSE, name);
    case 1:
        return OpenSemaphoreA(SEMAPHORE_ALL_ACCESS, FALSE, name);
    case 2:
        return OpenMutexA(MUTEX_ALL_ACCESS, FALSE, name);
    default:
        return OpenWaitableTimerA(TIMER_ALL_ACCESS, FALSE, name);
    }
}

static void use_name(test_random *random)
{
    static LPCSTR const names[] = {"storm one", "Local\\storm two", "Global\\storm three"};
    LPCSTR name = names[random_below(random, ARRAYSIZE(names))];
    unsigned kind = random_below(random, 4);
    HANDLE first, second;

    SetLastError(0);
    first = random_below(random, 2) ? create_named(kind, name) : open_named(kind, name);
    if (first == NULL) {
        require(GetLastError() == ERROR_INVALID_HANDLE || GetLastError() == ERROR_FILE_NOT_FOUND);
        return;
    }
    require(GetLastError() == 0 || GetLastError() == ERROR_ALREADY_EXISTS);
    WaitForSingleObject(first, 0);
    ReleaseMutex(first);
    second = open_named(kind, name);
    require(second != NULL);
    require(CompareObjectHandles(first, second));
    require(open_named((kind + 1) % 4, name) == NULL && GetLastError() == ERROR_INVALID_HANDLE);
    require(CloseHandle(first));
    require(CloseHandle(second));
}

static void use_names(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index + 70);
    for (unsigned long i = test_rounds(8000); i > 0; i--)
        use_name(&random);
}

static void names_of_everybody(void **state)
{
    ULONG handles;

    (void)state;
    handles = handle_count();
    run_threads(4, HANG_SECONDS, use_names, NULL);
    assert_int_equal(handle_count(), handles);
}

/* A thread that opens a process concurrently with others gets the same object. */

static struct {
    HANDLE opened[WAITERS];
    unsigned long arrived, compared;
} openers;

static void open_together(void *argument, unsigned index)
{
    unsigned long rounds = *(unsigned long *)argument;

    for (unsigned long i = 1; i <= rounds; i++) {
        openers.opened[index] = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)getppid());
        require(openers.opened[index] != NULL);
        add(&openers.arrived, 1);
        await(load(&openers.arrived) >= i * WAITERS);
        for (unsigned other = 0; other < WAITERS; other++)
            require(CompareObjectHandles(openers.opened[index], openers.opened[other]));
        add(&openers.compared, 1);
        await(load(&openers.compared) >= i * WAITERS);
        require(CloseHandle(openers.opened[index]));
    }
}

static void a_process_is_one_object(void **state)
{
    unsigned long rounds = test_rounds(2000);
    ULONG handles = handle_count();

    (void)state;
    run_threads(WAITERS, HANG_SECONDS, open_together, &rounds);
    assert_int_equal(handle_count(), handles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiter_keeps_its_object),
        cmocka_unit_test(removers_of_a_closed_port_are_told),
        cmocka_unit_test(handles_of_everybody),
        cmocka_unit_test(names_of_everybody),
        cmocka_unit_test(a_process_is_one_object),
    };

    return cmocka_run_group_tests_name("stress/closeunderwait", tests, NULL, NULL);
}
