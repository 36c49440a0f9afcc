/* shared.c: scenes of processes that share mutexes. The environment names them: KD_OWN and KD_WANT. */
#include "program.h"

static HANDLE own, want;
static CRITICAL_SECTION inner_section;
static HANDLE entered;

static HANDLE mutex_named(const char *variable)
{
    const char *name = getenv(variable);
    HANDLE mutex = name != NULL ? CreateMutexA(NULL, FALSE, name) : NULL;

    if (mutex == NULL)
        _exit(3);
    return mutex;
}

static void open_mutexes(void)
{
    started = CreateEventA(NULL, TRUE, FALSE, NULL);
    own = mutex_named("KD_OWN");
    want = mutex_named("KD_WANT");
}

/* It owns one, and on request waits for the other. */
static DWORD WINAPI shared_owner(void *context)
{
    (void)context;
    WaitForSingleObject(own, INFINITE);
    SetEvent(go[0]);
    WaitForSingleObject(started, INFINITE);
    WaitForSingleObject(want, INFINITE);
    ReleaseMutex(want);
    ReleaseMutex(own);
    SetEvent(go[1]);
    return 0;
}

void shared_lock(void)
{
    open_mutexes();
    make(shared_owner, "owner");
    WaitForSingleObject(go[0], INFINITE);
}

/* The same, but it waits for either the other or an event of its own: this is not a deadlock. */
static DWORD WINAPI shared_chooser(void *context)
{
    HANDLE objects[2] = {want, entered};

    (void)context;
    WaitForSingleObject(own, INFINITE);
    SetEvent(go[0]);
    WaitForSingleObject(started, INFINITE);
    WaitForMultipleObjects(2, objects, FALSE, INFINITE);
    ReleaseMutex(own);
    return 0;
}

void shared_choice(void)
{
    open_mutexes();
    entered = CreateEventA(NULL, TRUE, FALSE, NULL);
    make(shared_chooser, "owner");
    WaitForSingleObject(go[0], INFINITE);
}

/* The owner waits for a critical section, the owner of which waits for the other mutex. */
static DWORD WINAPI mixed_owner(void *context)
{
    (void)context;
    WaitForSingleObject(own, INFINITE);
    SetEvent(go[0]);
    WaitForSingleObject(started, INFINITE);
    EnterCriticalSection(&inner_section);
    LeaveCriticalSection(&inner_section);
    ReleaseMutex(own);
    return 0;
}

static DWORD WINAPI mixed_inner(void *context)
{
    (void)context;
    EnterCriticalSection(&inner_section);
    SetEvent(entered);
    WaitForSingleObject(started, INFINITE);
    WaitForSingleObject(want, INFINITE);
    ReleaseMutex(want);
    LeaveCriticalSection(&inner_section);
    return 0;
}

void shared_mixed(void)
{
    open_mutexes();
    InitializeCriticalSection(&inner_section);
    say("section", &inner_section);
    entered = CreateEventA(NULL, TRUE, FALSE, NULL);
    make(mixed_owner, "owner");
    make(mixed_inner, "inner");
    WaitForSingleObject(go[0], INFINITE);
    WaitForSingleObject(entered, INFINITE);
}

/* Threads that repeatedly take both mutexes, always in one order, and sometimes both at once. */
static DWORD WINAPI busy_sharer(void *context)
{
    HANDLE both[2] = {own, want};

    (void)context;
    for (unsigned round = 0;; round++) {
        if (round % 4 == 3) {
            WaitForMultipleObjects(2, both, TRUE, INFINITE);
        } else {
            WaitForSingleObject(own, INFINITE);
            if (round % 4 == 2)
                SwitchToThread();
            WaitForSingleObject(want, INFINITE);
        }
        ReleaseMutex(want);
        ReleaseMutex(own);
    }
    return 0;
}

void shared_busy(void)
{
    open_mutexes();
    make(busy_sharer, "first");
    make(busy_sharer, "second");
}
