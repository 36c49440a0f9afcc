/* What happens when a process ends with objects and threads: the program starts itself and checks the exit status. */
#include <interlock/win32.h>
#include "sanitizers.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ob/obp.h"

static HANDLE first, last;
static int must_be_freed;

/* Blocks of packets that are not freed yet: large, and aligned to a line of the cache. */
static PVOID volatile packet_blocks[256];

PVOID __real_HalAllocate(SIZE_T size, SIZE_T alignment);
PVOID __wrap_HalAllocate(SIZE_T size, SIZE_T alignment);
VOID __real_HalFree(PVOID memory);
VOID __wrap_HalFree(PVOID memory);

PVOID __wrap_HalAllocate(SIZE_T size, SIZE_T alignment)
{
    PVOID memory = __real_HalAllocate(size, alignment);

    for (ULONG i = 0; memory != NULL && size > 1024 && alignment == KI_CACHE_LINE && i < ARRAYSIZE(packet_blocks); i++) {
        if (InterlockedCompareExchangePointer(&packet_blocks[i], memory, NULL) == NULL) {
            break;
        }
    }
    return memory;
}

VOID __wrap_HalFree(PVOID memory)
{
    for (ULONG i = 0; memory != NULL && i < ARRAYSIZE(packet_blocks); i++) {
        InterlockedCompareExchangePointer(&packet_blocks[i], NULL, memory);
    }
    __real_HalFree(memory);
}

static ULONG count_packet_blocks(void)
{
    ULONG count = 0;

    for (ULONG i = 0; i < ARRAYSIZE(packet_blocks); i++) {
        count += packet_blocks[i] != NULL;
    }
    return count;
}

/* After the library's destructors. */
static __attribute__((destructor(KI_END_WORLDS))) void find_tables(void)
{
    if (must_be_freed && count_packet_blocks() != 0) {
        _exit(18);
    }
    for (ULONG i = 0; must_be_freed && i < OBP_ROOT; i++) {
        if (ObpRoot[i] != NULL) {
            _exit(11);
        }
    }
}

/* Handlers and destructors of the program run before the library closes handles. */
static void use_handles_late(void)
{
    if (!SetEvent(first) || WaitForSingleObject(first, 0) != WAIT_OBJECT_0 || !ReleaseSemaphore(last, 1, NULL)) {
        _exit(3);
    }
}

static __attribute__((destructor)) void use_handles_later(void)
{
    if (first != NULL) {
        use_handles_late();
    }
}

/* More than a leaf of the handle table, names, a protected handle, posted packets, an owned mutex. */
static void open_many_handles(void)
{
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);

    first = CreateEventA(NULL, TRUE, FALSE, "first");
    for (ULONG i = 0; i < 1000; i++) {
        CHAR name[32];
        snprintf(name, sizeof(name), i % 3 == 0 ? "Local\\name%u" : "name%u", i);
        last = CreateSemaphoreA(NULL, 0, 10, i % 2 == 0 ? name : NULL);
        PostQueuedCompletionStatus(port, i, 0, NULL);
    }
    CreateMutexA(NULL, TRUE, "owned");
    if (!SetHandleInformation(first, HANDLE_FLAG_PROTECT_FROM_CLOSE, HANDLE_FLAG_PROTECT_FROM_CLOSE) || last == NULL) {
        _exit(4);
    }
}

static void *use_handles_on(void *unused)
{
    (void)unused;
    for (;;) {
        if (!SetEvent(first) || !ReleaseSemaphore(last, 1, NULL) || WaitForSingleObject(last, INFINITE) != WAIT_OBJECT_0) {
            _exit(5);
        }
    }
    return NULL;
}

static void end_with_handles(void)
{
    open_many_handles();
    atexit(use_handles_late);
}

/* A thread that continues while the process ends finds its handles open. */
static void end_beside_a_thread(void)
{
    pthread_t thread;

    open_many_handles();
    if (pthread_create(&thread, NULL, use_handles_on, NULL) != 0) {
        _exit(6);
    }
    usleep(1000);
}

/* The same in a program whose threads are called like those of the library. */
static void end_beside_a_namesake(void)
{
    prctl(PR_SET_NAME, "interlock-clock");
    end_beside_a_thread();
}

/* A child that ends leaves its parent's objects alone, the shared ones too. */
static void end_after_a_child(void)
{
    int status = 0;
    pid_t child;

    open_many_handles();
    child = fork();
    if (child == 0) {
        exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        _exit(7);
    }
    use_handles_late();
    for (ULONG i = 0; i < 1000; i += 2) {
        CHAR name[32];
        snprintf(name, sizeof(name), "name%u", i);
        HANDLE again = OpenSemaphoreA(SEMAPHORE_ALL_ACCESS, FALSE, name);
        if (again == NULL || !CloseHandle(again)) {
            _exit(8);
        }
    }
}

/* Without names, which start a thread of the library's own: then tables stay. */
static void end_with_nothing(void)
{
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);

    must_be_freed = 1;
    for (ULONG i = 0; i < 1000; i++) {
        PostQueuedCompletionStatus(port, i, 0, NULL);
    }
    if (count_packet_blocks() < 2) {
        _exit(19);
    }
    for (ULONG i = 0; i < 1000; i++) {
        if (CreateEventA(NULL, TRUE, FALSE, NULL) == NULL) {
            _exit(4);
        }
    }
}

/* A child that was forked before its parent had a handle ends as any other process does. */
static void end_as_a_child(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        end_with_nothing();
        exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        _exit(12);
    }
}

/* With threads of the library's own. */
static void end_with_own_threads(void)
{
    LARGE_INTEGER due = {.QuadPart = -10000000};
    HANDLE timer = CreateWaitableTimerA(NULL, FALSE, NULL);

    open_many_handles();
    if (!SetWaitableTimer(timer, &due, 1, NULL, NULL, FALSE)) {
        _exit(9);
    }
}

/* A thread that has ended for the library, and for the host never does. */
static pthread_key_t leaving;
static volatile LONG stays;

static void leave(void *rounds)
{
    if (rounds < (void *)PTHREAD_DESTRUCTOR_ITERATIONS) { /* the library's own destructor runs meanwhile */
        pthread_setspecific(leaving, (char *)rounds + 1);
    } else {
        InterlockedExchange(&stays, 1);
        for (;;) {
            pause();
        }
    }
}

static void *use_and_leave(void *event)
{
    SetEvent(event);
    pthread_setspecific(leaving, (void *)1);
    return NULL;
}

static void end_beside_an_ended_thread(void)
{
    pthread_t thread;

    open_many_handles();
    alarm(60);
    if (pthread_key_create(&leaving, leave) != 0 || pthread_create(&thread, NULL, use_and_leave, first) != 0) {
        _exit(13);
    }
    while (!InterlockedCompareExchange(&stays, 0, 0)) {
        usleep(1000);
    }
}

/* A thread that ends the process in the middle of an operation leaves everything as it is. */
static void end_in_the_middle(void)
{
    PKTHREAD thread = KeGetCurrentThread();
    KIRQL irql;

    end_with_nothing();
    must_be_freed = 0;
    KiEnterDispatcher(thread);
    if (KiProcessEndsAlone()) {
        _exit(14);
    }
    KiExitDispatcher(thread);
    thread->HostInterrupts += 1;
    if (KiProcessEndsAlone()) {
        _exit(15);
    }
    thread->HostInterrupts -= 1;
    KeRaiseIrql(APC_LEVEL, &irql);
    if (KiProcessEndsAlone()) {
        _exit(16);
    }
    KeLowerIrql(irql);
    if (!KiProcessEndsAlone()) {
        _exit(17);
    }
}

static const struct {
    const char *name;
    void (*routine)(void);
} ends[] = {
    {"handles", end_with_handles},
    {"thread", end_beside_a_thread},
    {"namesake", end_beside_a_namesake},
    {"child", end_after_a_child},
    {"nothing", end_with_nothing},
    {"daemon", end_as_a_child},
    {"own", end_with_own_threads},
    {"ended", end_beside_an_ended_thread},
    {"middle", end_in_the_middle},
};

#define ROUNDS 20 /* a thread that loses its handles does not always notice */

static void end_once(const char *name)
{
    int status = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "nt-processend", name, (char *)NULL);
        _exit(10);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_process_ends(void **state)
{
    end_once(*state);
}

static void it_ends_beside_an_ended_thread(void **state)
{
#ifdef THREAD_SANITIZER
    skip(); /* its runtime has let go of such a thread, and crashes when the thread calls it */
#endif
    end_once(*state);
}

static void a_forked_child_ends(void **state)
{
#ifdef THREAD_SANITIZER
    skip(); /* its runtime starts a thread in a forked child, so the child does not end alone */
#endif
    end_once(*state);
}

static void it_ends_again_and_again(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        end_once(*state);
    }
}

int main(int count, char **arguments)
{
    for (size_t i = 0; count == 2 && i < RTL_NUMBER_OF(ends); i++) {
        if (strcmp(arguments[1], ends[i].name) == 0) {
            ends[i].routine();
            return 0;
        }
    }
    const struct CMUnitTest tests[] = {
        {"with open handles", a_process_ends, NULL, NULL, (void *)"handles"},
        {"beside a thread that uses them", a_process_ends, NULL, NULL, (void *)"thread"},
        {"beside a thread with a name of ours", it_ends_again_and_again, NULL, NULL, (void *)"namesake"},
        {"after a child that ended first", a_process_ends, NULL, NULL, (void *)"child"},
        {"its tables are freed", a_process_ends, NULL, NULL, (void *)"nothing"},
        {"so are those of a forked child", a_forked_child_ends, NULL, NULL, (void *)"daemon"},
        {"with threads of the library's own", a_process_ends, NULL, NULL, (void *)"own"},
        {"beside a thread that only the host still has", it_ends_beside_an_ended_thread, NULL, NULL, (void *)"ended"},
        {"not in the middle of something", a_forked_child_ends, NULL, NULL, (void *)"middle"},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
