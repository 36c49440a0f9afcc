/*
 * held.c: a program whose holds are known, one by one: no lock is released before its waiters are seen to wait. The
 * arguments are scenarios. It prints the addresses of its locks and the ids of its threads, one per line.
 */
#include <ntddk.h>
#include <windows.h>

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "ke/ki.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOAD(variable) __atomic_load_n(&(variable), __ATOMIC_ACQUIRE)
#define STORE(variable, value) __atomic_store_n(&(variable), value, __ATOMIC_RELEASE)
#define ROUNDS 5
#define SHARERS 3
#define END __asm__ volatile("") /* the call before it has a frame to return to */

static CRITICAL_SECTION section;
static SRWLOCK srw = SRWLOCK_INIT;
static KMUTANT mutant;
static ERESOURCE resource;
static RTL_RESOURCE rtl_resource;
static volatile LONG rounds = ROUNDS, long_rounds = 2; /* volatile: unrolled, each round would have its own stack */

static void say(const char *name, const volatile void *address)
{
    printf("%s %p\n", name, (const void *)(uintptr_t)address);
}

static void await_value(volatile LONG *value, LONG wanted)
{
    while (LOAD(*value) != wanted)
        usleep(100);
}

/* A thread is about to perform one operation in which it waits. */
typedef struct waiter {
    HANDLE thread;
    DWORD id;
    void (*acquire)(void);
    void (*release)(void);
    volatile LONG begun;
} waiter;

static DWORD WINAPI wait_and_release(void *context)
{
    waiter *w = context;

    STORE(w->begun, 1);
    w->acquire();
    w->release();
    return 0;
}

static void await_waiting(const waiter *w)
{
    PKTHREAD thread;

    while ((thread = KiLookupThreadById(w->id)) == NULL || LOAD(thread->State) != Waiting)
        usleep(100);
}

static waiter start(void (*acquire)(void), void (*release)(void))
{
    static waiter waiters[64];
    static unsigned used;
    waiter *w = &waiters[used++ % 64];

    *w = (waiter){.acquire = acquire, .release = release};
    w->thread = CreateThread(NULL, 0, wait_and_release, w, 0, &w->id);
    await_value(&w->begun, 1);
    await_waiting(w);
    return *w;
}

static void join(waiter w)
{
    WaitForSingleObject(w.thread, INFINITE);
    CloseHandle(w.thread);
}

#define OPERATION(name, ...)                                                                                           \
    static __attribute__((noinline)) void name(void)                                                                   \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        END;                                                                                                           \
    }

OPERATION(enter_section, EnterCriticalSection(&section))
OPERATION(leave_section, LeaveCriticalSection(&section))
OPERATION(own_srw, AcquireSRWLockExclusive(&srw))
OPERATION(disown_srw, ReleaseSRWLockExclusive(&srw))
OPERATION(share_srw, AcquireSRWLockShared(&srw))
OPERATION(unshare_srw, ReleaseSRWLockShared(&srw))
OPERATION(convert_srw, RtlConvertSRWLockExclusiveToShared((PRTL_SRWLOCK)&srw))
OPERATION(own_mutant, KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL))
OPERATION(disown_mutant, KeReleaseMutant(&mutant, 0, FALSE, FALSE))
OPERATION(own_resource, KeEnterCriticalRegion(); ExAcquireResourceExclusiveLite(&resource, TRUE))
OPERATION(share_resource, KeEnterCriticalRegion(); ExAcquireResourceSharedLite(&resource, TRUE))
OPERATION(release_resource, ExReleaseResourceLite(&resource); KeLeaveCriticalRegion())
OPERATION(convert_resource, ExConvertExclusiveToSharedLite(&resource))
OPERATION(own_rtl_resource, RtlAcquireResourceExclusive(&rtl_resource, TRUE))
OPERATION(share_rtl_resource, RtlAcquireResourceShared(&rtl_resource, TRUE))
OPERATION(release_rtl_resource, RtlReleaseResource(&rtl_resource))

/* Two that hold the same lock: one for longer than all holds of the other together. */

static ULONG now_in_milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (ULONG)(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static __attribute__((noinline)) void hold_shortly(void)
{
    enter_section();
    waiter w = start(enter_section, leave_section);
    LeaveCriticalSection(&section);
    join(w);
}

static __attribute__((noinline)) void hold_long(ULONG milliseconds)
{
    enter_section();
    waiter w = start(enter_section, leave_section);
    usleep(milliseconds * 1000);
    LeaveCriticalSection(&section);
    join(w);
}

static void order(void)
{
    ULONG begin = now_in_milliseconds();

    say("section", &section);
    for (LONG i = 0; i < rounds; i++)
        hold_shortly();
    for (LONG i = 0; i < long_rounds; i++)
        hold_long(now_in_milliseconds() - begin + 20);
}

/* Several waiters: their waits add up. */
static void crowd(void)
{
    waiter waiters[SHARERS];

    say("section", &section);
    enter_section();
    for (int i = 0; i < SHARERS; i++)
        waiters[i] = start(enter_section, leave_section);
    usleep(5000);
    leave_section();
    for (int i = 0; i < SHARERS; i++)
        join(waiters[i]);
}

/* Sharers that block an exclusive waiter, and release one after the other. */

static volatile LONG sharing, turn;
static void (*share)(void), (*unshare)(void);

static DWORD WINAPI share_until_told(void *context)
{
    share();
    __atomic_fetch_add(&sharing, 1, __ATOMIC_ACQ_REL);
    await_value(&turn, (LONG)(intptr_t)context);
    unshare();
    __atomic_fetch_add(&turn, 1, __ATOMIC_ACQ_REL);
    return 0;
}

static void share_against(void (*how)(void), void (*and)(void), void (*own)(void), void (*disown)(void))
{
    HANDLE threads[SHARERS];

    share = how;
    unshare = and;
    STORE(sharing, 0);
    STORE(turn, 0);
    for (intptr_t i = 0; i < SHARERS; i++)
        threads[i] = CreateThread(NULL, 0, share_until_told, (void *)(i + 1), 0, NULL);
    await_value(&sharing, SHARERS);
    waiter w = start(own, disown);
    STORE(turn, 1);
    join(w);
    for (int i = 0; i < SHARERS; i++) {
        WaitForSingleObject(threads[i], INFINITE);
        CloseHandle(threads[i]);
    }
}

static void sharers(void)
{
    say("srw", &srw);
    say("resource", &resource);
    say("rtl_resource", &rtl_resource);
    share_against(share_srw, unshare_srw, own_srw, disown_srw);
    share_against(share_resource, release_resource, own_resource, release_resource);
    share_against(share_rtl_resource, release_rtl_resource, own_rtl_resource, release_rtl_resource);
}

/* A hold ends with the last release. */
static void recursion(void)
{
    static const struct {
        void (*acquire)(void), (*release)(void);
    } locks[] = {
        {enter_section, leave_section},
        {own_mutant, disown_mutant},
        {own_resource, release_resource},
        {own_rtl_resource, release_rtl_resource},
    };

    say("section", &section);
    say("mutant", &mutant);
    say("resource", &resource);
    say("rtl_resource", &rtl_resource);
    for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++) {
        for (LONG n = 0; n < rounds; n++)
            locks[i].acquire();
        waiter w = start(locks[i].acquire, locks[i].release);
        for (LONG n = 0; n < rounds; n++)
            locks[i].release();
        join(w);
    }
}

/* A holder that ends. */

static volatile LONG owned, dies;

static DWORD WINAPI own_and_die(void *context)
{
    (void)context;
    own_mutant();
    STORE(owned, 1);
    await_value(&dies, 1);
    return 0;
}

static void dead(void)
{
    DWORD id;
    HANDLE holder = CreateThread(NULL, 0, own_and_die, NULL, 0, &id);

    say("mutant", &mutant);
    printf("holder %u\n", id);
    await_value(&owned, 1);
    waiter w = start(own_mutant, disown_mutant);
    STORE(dies, 1);
    join(w);
    WaitForSingleObject(holder, INFINITE);
    CloseHandle(holder);
}

/* A release by another thread than the one that acquired. */

static ULONG_PTR owner_pointer[2] __attribute__((aligned(16)));

static __attribute__((noinline)) DWORD WINAPI release_for_owner_pointer(void *context)
{
    (void)context;
    KeEnterCriticalRegion();
    ExReleaseResourceForThreadLite(&resource, (ERESOURCE_THREAD)owner_pointer | 3);
    KeLeaveCriticalRegion();
    return 0;
}

static void pointer(void)
{
    DWORD id;

    say("resource", &resource);
    own_resource();
    ExSetResourceOwnerPointer(&resource, (PVOID)((ULONG_PTR)owner_pointer | 3));
    KeLeaveCriticalRegion();
    waiter w = start(own_resource, release_resource);
    HANDLE other = CreateThread(NULL, 0, release_for_owner_pointer, NULL, 0, &id);
    printf("releaser %u\n", id);
    join(w);
    WaitForSingleObject(other, INFINITE);
    CloseHandle(other);
}

/* An owner that becomes a sharer admits waiting sharers. */
static void convert(void)
{
    waiter w;

    say("srw", &srw);
    say("resource", &resource);
    own_srw();
    w = start(share_srw, unshare_srw);
    convert_srw();
    join(w);
    unshare_srw();
    own_resource();
    w = start(share_resource, release_resource);
    convert_resource();
    join(w);
    release_resource();
}

/* Waiters that do not get the lock: one gives up, one is terminated. */

static void try_mutant(void)
{
    LARGE_INTEGER soon = {.QuadPart = -100 * 10000};

    KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, &soon);
}

static void nothing(void)
{
}

static void leave(void)
{
    waiter w;

    say("mutant", &mutant);
    say("section", &section);
    own_mutant();
    w = start(try_mutant, nothing);
    join(w);
    disown_mutant();
    enter_section();
    w = start(enter_section, leave_section);
    TerminateThread(w.thread, 1);
    join(w);
    usleep(1000);
}

/* An abandoned wait for a section: STATUS_POSSIBLE_DEADLOCK. */

static void enter_or_give_up(void)
{
    __try {
        enter_section();
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        printf("raised %#x\n", (unsigned)GetExceptionCode());
    }
}

static void given_up(void)
{
    say("section", &section);
    enter_section();
    waiter w = start(enter_or_give_up, nothing);
    join(w);
    leave_section();
}

/* A child, forked while a thread waits for a section, becomes another program. */
static void forks(void)
{
    pid_t child;

    say("section", &section);
    enter_section();
    waiter w = start(enter_section, leave_section);
    child = fork();
    if (child == 0) {
        execlp("true", "true", NULL);
        _exit(98);
    }
    waitpid(child, NULL, 0);
    leave_section();
    join(w);
}

/* Until standard input ends. */

static DWORD WINAPI be_busy(void *context)
{
    (void)context;
    for (;;) {
        enter_section();
        usleep(500);
        leave_section();
    }
    return 0;
}

static void busy(void)
{
    say("section", &section);
    for (int i = 0; i < SHARERS; i++)
        CreateThread(NULL, 0, be_busy, NULL, 0, NULL);
    puts("ready");
    while (getchar() != EOF)
        ;
    _exit(0);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"order", order}, {"crowd", crowd},     {"sharers", sharers}, {"recursion", recursion}, {"dead", dead},
    {"pointer", pointer}, {"convert", convert}, {"leave", leave},     {"forks", forks},     {"given-up", given_up},     {"busy", busy},
};

int main(int argc, char **argv)
{
    int found = 0;

    setlinebuf(stdout);
    printf("process %d\n", getpid());
    InitializeCriticalSection(&section);
    KeInitializeMutant(&mutant, FALSE);
    ExInitializeResourceLite(&resource);
    RtlInitializeResource(&rtl_resource);
    for (int i = 1; i < argc; i++) {
        for (size_t n = 0; n < sizeof(scenarios) / sizeof(scenarios[0]); n++) {
            if (strcmp(argv[i], scenarios[n].name) == 0) {
                scenarios[n].run();
                found++;
            }
        }
    }
    return found == argc - 1 ? 0 : 97;
}
