/* userlocks.c: scenes of user mode: its locks, and the ends of threads. */
#include "program.h"

#include "ke/wait.h"

#include <pthread.h>

static CRITICAL_SECTION section, inner;
static RTL_RESOURCE rtl_resource;
static SRWLOCK srw = SRWLOCK_INIT;
static CONDITION_VARIABLE condition = CONDITION_VARIABLE_INIT;

/* An SRW lock, which does not record its owner, against a critical section. */

static DWORD WINAPI srw_then_section(void *context)
{
    (void)context;
    AcquireSRWLockExclusive(&srw);
    meet(0);
    EnterCriticalSection(&section);
    return 0;
}

static DWORD WINAPI section_then_srw(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    meet(1);
    AcquireSRWLockExclusive(&srw);
    return 0;
}

void srw_against_section(void)
{
    InitializeCriticalSection(&section);
    say("srw", &srw);
    say("section", &section);
    make(srw_then_section, "alice");
    make(section_then_srw, "bob");
}

/* The same, but the SRW lock was taken after a wait, so its owner was recorded. */

void contended_srw(void)
{
    AcquireSRWLockExclusive(&srw);
    srw_against_section();
    while (LOAD(srw.Ptr) == (PVOID)1) /* until alice waits */
        Sleep(1);
    ReleaseSRWLockExclusive(&srw);
}

/*
 * A sleep on a condition variable that ends while its lock is held: alice holds one section and is woken, but bob holds
 * the lock of the condition variable and waits for that section.
 */

static DWORD WINAPI sleep_on_condition(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    EnterCriticalSection(&inner);
    SetEvent(go[0]);
    SleepConditionVariableCS(&condition, &inner, INFINITE);
    return 0;
}

static DWORD WINAPI wake_and_enter(void *context)
{
    (void)context;
    WaitForSingleObject(go[0], INFINITE);
    EnterCriticalSection(&inner);
    WakeConditionVariable(&condition);
    EnterCriticalSection(&section);
    return 0;
}

void condition_cycle(void)
{
    InitializeCriticalSection(&section);
    InitializeCriticalSection(&inner);
    say("outer", &section);
    say("inner", &inner);
    make(sleep_on_condition, "alice");
    make(wake_and_enter, "bob");
}

/* The waker of a condition variable is unknown: it would be bob, who waits for what the sleeper holds. */

static DWORD WINAPI enter_section_of_sleeper(void *context)
{
    (void)context;
    WaitForSingleObject(go[0], INFINITE);
    EnterCriticalSection(&section);
    WakeConditionVariable(&condition);
    return 0;
}

void condition_chain(void)
{
    InitializeCriticalSection(&section);
    InitializeCriticalSection(&inner);
    say("outer", &section);
    say("condition", &condition);
    make(sleep_on_condition, "alice");
    make(enter_section_of_sleeper, "bob");
}

/* A critical section of a thread that has ended. */

static DWORD WINAPI enter_and_end(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    return 0;
}

static DWORD WINAPI enter(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    return 0;
}

static HANDLE make_orphan(void)
{
    InitializeCriticalSection(&section);
    say("section", &section);
    WaitForSingleObject(make(enter_and_end, "dead"), INFINITE);
    return make(enter, "waiter");
}

void orphan(void)
{
    make_orphan();
}

/* And a thread that waits for the end of that waiter. */

static HANDLE waiter;

static DWORD WINAPI join_waiter(void *context)
{
    (void)context;
    WaitForSingleObject(waiter, INFINITE);
    return 0;
}

void orphan_behind(void)
{
    waiter = make_orphan();
    make(join_waiter, "behind");
}

/* A resource of user mode against a critical section. */

static DWORD WINAPI section_then_resource(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    meet(0);
    RtlAcquireResourceShared(&rtl_resource, TRUE);
    return 0;
}

static DWORD WINAPI resource_then_section(void *context)
{
    (void)context;
    RtlAcquireResourceExclusive(&rtl_resource, TRUE);
    meet(1);
    EnterCriticalSection(&section);
    return 0;
}

void rtl_resource_against_section(void)
{
    InitializeCriticalSection(&section);
    RtlInitializeResource(&rtl_resource);
    say("section", &section);
    say("resource", &rtl_resource);
    make(section_then_resource, "alice");
    make(resource_then_section, "bob");
}

/* A thread waits for the end of one that waits for its lock. */

static DWORD WINAPI join_holding(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    WaitForSingleObject(make(enter, "child"), INFINITE);
    return 0;
}

void join_deadlock(void)
{
    InitializeCriticalSection(&section);
    say("section", &section);
    make(join_holding, "parent");
    while (LOAD(threads_made) < 2)
        Sleep(1);
}

/* A process whose main thread has ended. */
void without_main(void)
{
    InitializeCriticalSection(&section);
    EnterCriticalSection(&section);
    make(enter, "alice");
    puts("ready");
    pthread_exit(NULL);
}

/* bob has the section and waits for the SRW lock of a thread that waits for none, carol waits for the section: she has
   never touched the lock. */

static DWORD WINAPI own_srw_and_sleep(void *context)
{
    (void)context;
    AcquireSRWLockExclusive(&srw);
    SetEvent(go[0]);
    WaitForSingleObject(started, INFINITE);
    ReleaseSRWLockExclusive(&srw);
    return 0;
}

static DWORD WINAPI section_then_srw_of_sleeper(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    AcquireSRWLockExclusive(&srw);
    ReleaseSRWLockExclusive(&srw);
    LeaveCriticalSection(&section);
    return 0;
}

static DWORD WINAPI section_alone(void *context)
{
    (void)context;
    EnterCriticalSection(&section);
    LeaveCriticalSection(&section);
    return 0;
}

void innocent(void)
{
    InitializeCriticalSection(&section);
    say("srw", &srw);
    say("section", &section);
    started = CreateEventA(NULL, TRUE, FALSE, NULL);
    make(own_srw_and_sleep, "alice");
    WaitForSingleObject(go[0], INFINITE);
    make(section_then_srw_of_sleeper, "bob");
    while (LOAD(srw.Ptr) == (PVOID)1) /* until he waits */
        Sleep(1);
    make(section_alone, "carol");
}

/* A section that was handed to a thread which has not run since: it is the owner, and still in its wait. */

static CRITICAL_SECTION handed_section;

static DWORD WINAPI receiver(void *context)
{
    (void)context;
    EnterCriticalSection(&handed_section);
    return 0;
}

void handed_over(void)
{
    PETHREAD thread;

    InitializeCriticalSectionEx(&handed_section, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    EnterCriticalSection(&handed_section);
    make(receiver, "receiver");
    make(receiver, "next");
    PsLookupThreadByThreadId((HANDLE)(ULONG_PTR)id_of_last_thread, &thread);
    /* two that wait are counted before they wait */
    while (LOAD(handed_section.LockCount) > -10 || LOAD(((PKTHREAD)thread)->State) != Waiting)
        Sleep(1);
    STORE(handed_section.OwningThread, (HANDLE)(ULONG_PTR)id_of_last_thread);
}
