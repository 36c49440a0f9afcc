/*
 * traced.c: a program whose waits and contended acquires are known, one by one: nothing is signaled or released before
 * the blocked thread is seen to wait. The arguments are scenarios, run one after the other. It prints its objects and
 * threads, one per line.
 */
#include <ntddk.h>
#include <windows.h>

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "trace/tracep.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOAD(variable) __atomic_load_n(&(variable), __ATOMIC_ACQUIRE)
#define STORE(variable, value) __atomic_store_n(&(variable), value, __ATOMIC_RELEASE)
#define ROUNDS 5
#define SHORT_THREADS 10000
#define THREADS_AT_A_TIME 8

static KEVENT first, second, third;
static KMUTANT mutant;
static SRWLOCK srw = SRWLOCK_INIT;
static CRITICAL_SECTION section;
static FAST_MUTEX fast_mutex;
static KGUARDED_MUTEX guarded_mutex;
static EX_PUSH_LOCK push_lock;
static ERESOURCE resource;
static RTL_RESOURCE rtl_resource;
static volatile LONG step;
static DWORD worker_id;

static void say(const char *name, const volatile void *address)
{
    printf("%s %p\n", name, (const void *)(uintptr_t)address);
}

static volatile LONG begun;

static void await_waiting(DWORD id)
{
    PKTHREAD thread;

    while ((thread = KiLookupThreadById(id)) == NULL || LOAD(thread->State) != Waiting)
        usleep(100);
}

static void await_step(LONG wanted)
{
    while (LOAD(step) != wanted)
        usleep(100);
}

static LPTHREAD_START_ROUTINE routine_to_begin;

static DWORD WINAPI begin(void *context)
{
    LPTHREAD_START_ROUTINE routine = routine_to_begin;

    STORE(begun, 1);
    return routine(context);
}

/* When it returns, the thread is in the wait of its routine. */
static HANDLE start(LPTHREAD_START_ROUTINE routine, void *context, const WCHAR *name)
{
    HANDLE thread;

    routine_to_begin = routine;
    STORE(begun, 0);
    thread = CreateThread(NULL, 0, begin, context, CREATE_SUSPENDED, &worker_id);

    STORE(step, 0);
    SetThreadDescription(thread, name);
    printf("worker %u\n", worker_id);
    ResumeThread(thread);
    while (!LOAD(begun))
        usleep(100);
    return thread;
}

static void join(HANDLE thread)
{
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}

static void expect(NTSTATUS found, NTSTATUS wanted)
{
    if (found != wanted) {
        fprintf(stderr, "traced: status %#x instead of %#x\n", (unsigned)found, (unsigned)wanted);
        _exit(99);
    }
}

/* Waits, each ended in another way. */

static DWORD WINAPI wait_in_all_ways(void *context)
{
    PVOID both[] = {&first, &second};
    LARGE_INTEGER soon = {.QuadPart = -10000};

    (void)context;
    expect(KeWaitForSingleObject(&first, Executive, KernelMode, FALSE, NULL), STATUS_WAIT_0);
    STORE(step, 1);
    expect(KeWaitForMultipleObjects(2, both, WaitAny, UserRequest, UserMode, FALSE, NULL, NULL), STATUS_WAIT_1);
    STORE(step, 2);
    expect(KeWaitForMultipleObjects(2, both, WaitAll, Executive, KernelMode, FALSE, NULL, NULL), STATUS_WAIT_0);
    expect(KeWaitForSingleObject(&third, Executive, KernelMode, FALSE, &soon), STATUS_TIMEOUT);
    STORE(step, 4);
    expect(KeWaitForSingleObject(&third, Executive, UserMode, TRUE, NULL), STATUS_ALERTED);
    KeDelayExecutionThread(KernelMode, FALSE, &soon);
    STORE(step, 5);
    expect(KeWaitForSingleObject(&mutant, WrMutex, KernelMode, FALSE, NULL), STATUS_ABANDONED_WAIT_0);
    KeReleaseMutant(&mutant, 0, FALSE, FALSE);
    return 0;
}

static DWORD WINAPI abandon(void *context)
{
    (void)context;
    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    STORE(step, -1);
    await_step(6);
    return 0;
}

static void waits(void)
{
    DWORD owner_id;
    HANDLE thread, owner = CreateThread(NULL, 0, abandon, NULL, 0, &owner_id);

    await_step(-1);
    printf("owner %u\n", owner_id);
    say("first", &first);
    say("second", &second);
    say("third", &third);
    say("mutant", &mutant);
    thread = start(wait_in_all_ways, NULL, u"worker");
    await_waiting(worker_id);
    KeSetEvent(&first, 0, FALSE);
    await_step(1);
    await_waiting(worker_id);
    KeSetEvent(&second, 0, FALSE);
    await_step(2);
    await_waiting(worker_id);
    KeSetEvent(&first, 0, FALSE);
    KeSetEvent(&second, 0, FALSE);
    await_step(4);
    await_waiting(worker_id);
    KeAlertThread(KiLookupThreadById(worker_id), UserMode);
    await_step(5);
    await_waiting(worker_id);
    STORE(step, 6);
    join(owner);
    join(thread);
}

static volatile LONG rounds = ROUNDS; /* volatile: unrolled, each round would have a stack of its own */

/* Contended acquires of every kind, ROUNDS times each, by one function each. */

typedef struct lock_kind {
    const char *name;
    const volatile void *address;
    void (*acquire)(void);
    void (*release)(void);
    void (*contend)(void);
    void (*give_back)(void);
} lock_kind;

#define END __asm__ volatile("") /* the call before it has a frame to return to */

#define CONTENDER(name)                                                                                                \
    static __attribute__((noinline)) void contend_##name(void)                                                         \
    {                                                                                                                  \
        acquire_##name();                                                                                              \
        __asm__ volatile("");                                                                                          \
    }

static inline void acquire_srw(void) { AcquireSRWLockExclusive(&srw); }
static __attribute__((noinline)) void release_srw(void) { ReleaseSRWLockExclusive(&srw); END; }
static inline void acquire_srw_shared(void) { AcquireSRWLockShared(&srw); }
static __attribute__((noinline)) void release_srw_shared(void) { ReleaseSRWLockShared(&srw); END; }
static inline void acquire_section(void) { EnterCriticalSection(&section); }
static __attribute__((noinline)) void release_section(void) { LeaveCriticalSection(&section); END; }
static inline void acquire_fast_mutex(void) { ExAcquireFastMutex(&fast_mutex); }
static __attribute__((noinline)) void release_fast_mutex(void) { ExReleaseFastMutex(&fast_mutex); END; }
static inline void acquire_guarded_mutex(void) { KeAcquireGuardedMutex(&guarded_mutex); }
static __attribute__((noinline)) void release_guarded_mutex(void) { KeReleaseGuardedMutex(&guarded_mutex); END; }
static inline void acquire_push_lock(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&push_lock);
}
static __attribute__((noinline)) void release_push_lock(void)
{
    ExReleasePushLockExclusive(&push_lock);
    KeLeaveCriticalRegion();
}
static inline void acquire_resource(void)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&resource, TRUE);
}
static __attribute__((noinline)) void release_resource(void)
{
    ExReleaseResourceLite(&resource);
    KeLeaveCriticalRegion();
}
static inline void acquire_mutant(void) { KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL); }
static __attribute__((noinline)) void release_mutant(void) { KeReleaseMutant(&mutant, 0, FALSE, FALSE); END; }
static inline void acquire_rtl_resource(void) { RtlAcquireResourceExclusive(&rtl_resource, TRUE); }
static __attribute__((noinline)) void release_rtl_resource(void) { RtlReleaseResource(&rtl_resource); END; }

CONTENDER(srw)
CONTENDER(srw_shared)
CONTENDER(section)
CONTENDER(fast_mutex)
CONTENDER(guarded_mutex)
CONTENDER(push_lock)
CONTENDER(resource)
CONTENDER(mutant)
CONTENDER(rtl_resource)

static const lock_kind kinds[] = {
    {"srw", &srw, acquire_srw, release_srw, contend_srw, release_srw},
    {"srw_shared", &srw, acquire_srw, release_srw, contend_srw_shared, release_srw_shared},
    {"fast_mutex", &fast_mutex, acquire_fast_mutex, release_fast_mutex, contend_fast_mutex, release_fast_mutex},
    {"guarded_mutex", &guarded_mutex, acquire_guarded_mutex, release_guarded_mutex, contend_guarded_mutex,
     release_guarded_mutex},
    {"push_lock", &push_lock, acquire_push_lock, release_push_lock, contend_push_lock, release_push_lock},
    {"resource", &resource, acquire_resource, release_resource, contend_resource, release_resource},
    {"rtl_resource", &rtl_resource, acquire_rtl_resource, release_rtl_resource, contend_rtl_resource, release_rtl_resource},
    {"mutant", &mutant, acquire_mutant, release_mutant, contend_mutant, release_mutant},
    {"section", &section, acquire_section, release_section, contend_section, release_section},
};

static volatile LONG held;

static DWORD WINAPI contend(void *context)
{
    const lock_kind *kind = context;

    for (LONG round = 1; round <= rounds; round++) {
        while (LOAD(held) != round)
            usleep(100);
        kind->contend();
        kind->give_back();
        STORE(step, round);
    }
    return 0;
}

static ULONG now_in_milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (ULONG)(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static ULONG started;

/* For as long as everything before took together. */
static void become_the_longest(void)
{
    ULONG milliseconds = now_in_milliseconds() - started + 1;

    printf("milliseconds %u\n", milliseconds);
    usleep(milliseconds * 1000);
}

static void hold_and_be_contended(const lock_kind *kind)
{
    HANDLE thread;

    STORE(held, 0);
    say(kind->name, kind->address);
    thread = start(contend, (void *)(uintptr_t)kind, u"contender");
    for (LONG round = 1; round <= ROUNDS; round++) {
        kind->acquire();
        STORE(held, round);
        await_waiting(worker_id);
        if (round == 1 && strcmp(kind->name, "section") == 0)
            become_the_longest();
        kind->release();
        await_step(round);
    }
    join(thread);
}

static void locks(void)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        hold_and_be_contended(&kinds[i]);
}

/* A thread that spins does not wait: it is detected through its recording. Only for a process that is traced. */

static KSPIN_LOCK spin_lock;

static __attribute__((noinline)) void contend_spin_lock(void)
{
    KIRQL irql;

    KeAcquireSpinLock(&spin_lock, &irql);
    KeReleaseSpinLock(&spin_lock, irql);
}

static DWORD WINAPI spin(void *context)
{
    (void)context;
    for (LONG round = 1; round <= rounds; round++) {
        while (LOAD(held) != round)
            usleep(100);
        contend_spin_lock();
        STORE(step, round);
    }
    return 0;
}

static void await_acquiring(DWORD id)
{
    PKTHREAD thread = KiLookupThreadById(id);
    struct _TRACE_TRACK *track;

    while ((track = LOAD(TracepThread(thread)->Track)) == NULL || LOAD(track->Depth) == 0 ||
           LOAD(track->Open[0].Kind) != TraceAcquire)
        usleep(100);
}

static void spins(void)
{
    HANDLE thread;
    KIRQL irql;

    STORE(held, 0);
    say("spin_lock", &spin_lock);
    thread = start(spin, NULL, u"spinner");
    for (LONG round = 1; round <= ROUNDS; round++) {
        KeAcquireSpinLock(&spin_lock, &irql);
        STORE(held, round);
        await_acquiring(worker_id);
        KeReleaseSpinLock(&spin_lock, irql);
        await_step(round);
    }
    join(thread);
}

/* Ends. */

static void block(void)
{
    LARGE_INTEGER soon = {.QuadPart = -10000};

    for (int i = 0; i < 3; i++)
        KeWaitForSingleObject(&third, Executive, KernelMode, FALSE, &soon);
}

static DWORD WINAPI wait_for_ever(void *context)
{
    (void)context;
    KeWaitForSingleObject(&third, UserRequest, UserMode, FALSE, NULL);
    return 0;
}

static HANDLE hang(void)
{
    HANDLE thread = start(wait_for_ever, NULL, u"hangs");

    say("third", &third);
    await_waiting(worker_id);
    return thread;
}

static void terminate(void)
{
    HANDLE thread = hang();

    TerminateThread(thread, 7);
    join(thread);
    block();
}

static void hold_section(void)
{
    say("section", &section);
    EnterCriticalSection(&section);
}

static DWORD WINAPI wait_for_section(void *context)
{
    (void)context;
    contend_section();
    return 0;
}

static void deadlock(void)
{
    hold_section();
    start(wait_for_section, NULL, u"stuck");
    await_waiting(worker_id);
}

static void stay(void)
{
    puts("stays 1");
    for (;;)
        pause();
}

static void forks(void)
{
    int status;
    pid_t child;

    block();
    child = fork();
    if (child == 0) {
        block();
        block();
        exit(0);
    }
    printf("child %d\n", child);
    waitpid(child, &status, 0);
}

/* A child program that uses Interlock too and inherited the setting. */
static void spawns(char *program)
{
    pid_t child;

    block();
    child = fork();
    if (child == 0) {
        execl(program, program, "block", NULL);
        _exit(98);
    }
    printf("child %d\n", child);
    waitpid(child, NULL, 0);
}

/* A child that becomes a program which does not use Interlock. */
static void replaced(void)
{
    pid_t child;

    block();
    child = fork();
    if (child == 0) {
        execlp("true", "true", NULL);
        _exit(98);
    }
    waitpid(child, NULL, 0);
}

static void many(void)
{
    LARGE_INTEGER soon = {.QuadPart = -1};

    prctl(PR_SET_TIMERSLACK, 1);
    for (int i = 0; i < 12500; i++)
        KeWaitForSingleObject(&third, Executive, KernelMode, FALSE, &soon);
}

static DWORD WINAPI wait_once(void *context)
{
    LARGE_INTEGER soon = {.QuadPart = -1};

    (void)context;
    KeWaitForSingleObject(&third, Executive, KernelMode, FALSE, &soon);
    return 0;
}

static void *run_foreign(void *context)
{
    pthread_setname_np(pthread_self(), "short");
    wait_once(context);
    return NULL;
}

static void threads(void)
{
    for (int i = 0; i < SHORT_THREADS; i += THREADS_AT_A_TIME) {
        pthread_t thread[THREADS_AT_A_TIME];

        for (int t = 0; t < THREADS_AT_A_TIME; t++)
            pthread_create(&thread[t], NULL, run_foreign, NULL);
        for (int t = 0; t < THREADS_AT_A_TIME; t++)
            pthread_join(thread[t], NULL);
    }
}

/* The recording is finished while a thread that is about to leave it queries its name from the host. */

void __real_HalQueryThreadName(ULONG id, PSTR buffer, SIZE_T size);
void __wrap_HalQueryThreadName(ULONG id, PSTR buffer, SIZE_T size);

static volatile LONG ending, asked;

void __wrap_HalQueryThreadName(ULONG id, PSTR buffer, SIZE_T size)
{
    if (LOAD(ending) == (LONG)id) {
        STORE(ending, 0);
        STORE(asked, 1);
        while (LOAD(TraceActive) != 0)
            usleep(100);
    }
    __real_HalQueryThreadName(id, buffer, size);
}

static DWORD WINAPI end_late(void *context)
{
    wait_once(context);
    STORE(ending, (LONG)GetCurrentThreadId());
    return 0;
}

static void late(void)
{
    char path[64];

    start(end_late, NULL, u"late");
    while (!LOAD(asked))
        usleep(100);
    TraceFinish(TRUE);
    snprintf(path, sizeof(path), "/proc/self/task/%u", worker_id);
    while (access(path, F_OK) == 0)
        usleep(100);
}

static void odd_name(void)
{
    pthread_setname_np(pthread_self(), "\"q\\\x01\xff\xc3\xa4\xed\xa0\x80");
    block();
}

static void run(const char *scenario, char *program)
{
    if (strcmp(scenario, "waits") == 0)
        waits();
    else if (strcmp(scenario, "locks") == 0)
        locks();
    else if (strcmp(scenario, "spins") == 0)
        spins();
    else if (strcmp(scenario, "stay") == 0)
        stay();
    else if (strcmp(scenario, "block") == 0)
        block();
    else if (strcmp(scenario, "hang") == 0)
        hang();
    else if (strcmp(scenario, "terminate") == 0)
        terminate();
    else if (strcmp(scenario, "deadlock") == 0)
        deadlock();
    else if (strcmp(scenario, "fork") == 0)
        forks();
    else if (strcmp(scenario, "spawn") == 0)
        spawns(program);
    else if (strcmp(scenario, "replaced") == 0)
        replaced();
    else if (strcmp(scenario, "many") == 0)
        many();
    else if (strcmp(scenario, "threads") == 0)
        threads();
    else if (strcmp(scenario, "late") == 0)
        late();
    else if (strcmp(scenario, "odd") == 0)
        odd_name();
    else if (strcmp(scenario, "chdir") == 0)
        exit(chdir("/") != 0);
    else if (strcmp(scenario, "exit3") == 0)
        exit(3);
    else if (strcmp(scenario, "_exit") == 0)
        _exit(4);
    else if (strcmp(scenario, "abort") == 0)
        abort();
    else if (strcmp(scenario, "kill") == 0)
        kill(getpid(), SIGKILL);
    else if (strcmp(scenario, "segv") == 0)
        raise(SIGSEGV);
    else if (strcmp(scenario, "bugcheck") == 0)
        KeBugCheck(MANUALLY_INITIATED_CRASH);
    else if (strcmp(scenario, "ExitProcess") == 0)
        ExitProcess(5);
    else if (strcmp(scenario, "TerminateProcess") == 0)
        TerminateProcess(GetCurrentProcess(), 6);
    else
        exit(97);
}

int main(int argc, char **argv)
{
    setlinebuf(stdout);
    started = now_in_milliseconds();
    printf("process %d\n", getpid());
    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
    KeInitializeEvent(&third, NotificationEvent, FALSE);
    KeInitializeMutant(&mutant, FALSE);
    InitializeCriticalSection(&section);
    ExInitializeFastMutex(&fast_mutex);
    KeInitializeGuardedMutex(&guarded_mutex);
    ExInitializeResourceLite(&resource);
    RtlInitializeResource(&rtl_resource);
    for (int i = 1; i < argc; i++)
        run(argv[i], argv[0]);
    return 0;
}
