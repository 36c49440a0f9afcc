/*
 * sharedmemory.c: an object or a lock in memory shared by two processes, which Interlock does not support: one waits, the
 * other one signals or releases. It ends in a bugcheck that names the rule.
 * usage: sharedmemory signal | wait | release | sibling | queue | mutex | resource | once
 */
#include <ntddk.h>
#include <windows.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void begin_child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(60); /* should the parent have ended before */
}

/* The process that releases is the parent of the one that waits. */
static void release_with_foreign_waiter(PSRWLOCK lock)
{
    AcquireSRWLockExclusive(lock);
    if (fork() == 0) {
        begin_child();
        AcquireSRWLockExclusive(lock);
        _exit(0);
    }
    while (!(*(volatile ULONG_PTR *)lock & 2)) {
        usleep(1000);
    }
    ReleaseSRWLockExclusive(lock);
}

/* The same for a sibling of it: returns in a child whose bugcheck the parent waits for. */
static int release_as_sibling(PSRWLOCK lock)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        begin_child();
        AcquireSRWLockExclusive(lock);
        while (!(*(volatile ULONG_PTR *)lock & 2)) {
            usleep(1000);
        }
        ReleaseSRWLockExclusive(lock);
        _exit(0);
    }
    while (!(*(volatile ULONG_PTR *)lock & 1)) {
        usleep(1000);
    }
    if (fork() == 0) {
        begin_child();
        AcquireSRWLockExclusive(lock);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return 0;
}

/* What the parent holds, the child waits for; the parent sees that it does, and releases. */
static union {
    KQUEUE queue;
    FAST_MUTEX mutex;
    ERESOURCE resource;
    INIT_ONCE once;
} *volatile shared;

static void make_queue(void)
{
    KeInitializeQueue(&shared->queue, 1);
}

static void remove_entry(void)
{
    KeRemoveQueue(&shared->queue, KernelMode, NULL);
}

static BOOLEAN queue_has_waiter(void)
{
    return *(PLIST_ENTRY volatile *)&shared->queue.Header.WaitListHead.Flink != &shared->queue.Header.WaitListHead;
}

static void insert_entry(void)
{
    static LIST_ENTRY entry;
    KeInsertQueue(&shared->queue, &entry);
}

static void own_mutex(void)
{
    ExInitializeFastMutex(&shared->mutex);
    ExAcquireFastMutex(&shared->mutex);
}

static void acquire_mutex(void)
{
    ExAcquireFastMutex(&shared->mutex);
}

static BOOLEAN mutex_has_waiter(void)
{
    return *(volatile LONG *)&shared->mutex.Count < 0;
}

static void release_mutex(void)
{
    ExReleaseFastMutex(&shared->mutex);
}

/* Held as something else than the thread, which has the same address in both processes. */
#define OWNER ((ERESOURCE_THREAD)0x7777777777777773)

static void own_resource(void)
{
    ExInitializeResourceLite(&shared->resource);
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&shared->resource, TRUE);
    ExSetResourceOwnerPointer(&shared->resource, (PVOID)OWNER);
}

static void acquire_resource(void)
{
    ExAcquireResourceExclusiveLite(&shared->resource, TRUE);
}

static BOOLEAN resource_has_waiter(void)
{
    return ExGetExclusiveWaiterCount(&shared->resource) != 0;
}

static void release_resource(void)
{
    ExReleaseResourceForThreadLite(&shared->resource, OWNER);
}

static void begin_once(void)
{
    BOOL pending;
    InitOnceBeginInitialize(&shared->once, 0, &pending, NULL);
}

static BOOLEAN once_has_waiter(void)
{
    return *(PVOID volatile *)&shared->once.Ptr > (PVOID)3;
}

static void complete_once(void)
{
    InitOnceComplete(&shared->once, 0, NULL);
}

static const struct {
    const char *name;
    void (*hold)(void);
    void (*wait)(void);
    BOOLEAN (*has_waiter)(void);
    void (*release)(void);
} held[] = {
    {"queue", make_queue, remove_entry, queue_has_waiter, insert_entry},
    {"mutex", own_mutex, acquire_mutex, mutex_has_waiter, release_mutex},
    {"resource", own_resource, acquire_resource, resource_has_waiter, release_resource},
    {"once", begin_once, begin_once, once_has_waiter, complete_once},
};

static BOOLEAN release_what_a_child_waits_for(const char *name)
{
    for (unsigned i = 0; i < RTL_NUMBER_OF(held); i++) {
        if (strcmp(held[i].name, name) == 0) {
            held[i].hold();
            if (fork() == 0) {
                begin_child();
                held[i].wait();
                _exit(0);
            }
            while (!held[i].has_waiter()) {
                usleep(1000);
            }
            held[i].release();
            return TRUE;
        }
    }
    return FALSE;
}

int main(int argc, char **argv)
{
    PKEVENT event = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (event == MAP_FAILED || argc != 2) {
        return 1;
    }
    shared = (PVOID)event;
    if (release_what_a_child_waits_for(argv[1])) {
        puts("it went on");
        return 0;
    }
    if (strcmp(argv[1], "release") == 0) {
        release_with_foreign_waiter((PSRWLOCK)(PVOID)event);
        puts("it went on");
        return 0;
    }
    if (strcmp(argv[1], "sibling") == 0) {
        return release_as_sibling((PSRWLOCK)(PVOID)event);
    }
    KeInitializeEvent(event, SynchronizationEvent, FALSE);
    if (fork() == 0) {
        begin_child();
        KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL);
        _exit(0);
    }
    /* The child's wait block is on the list when the list is no longer empty. */
    while (*(PLIST_ENTRY volatile *)&event->Header.WaitListHead.Flink == &event->Header.WaitListHead) {
        usleep(1000);
    }
    if (strcmp(argv[1], "signal") == 0) {
        KeSetEvent(event, 0, FALSE);
    } else {
        KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL);
    }
    puts("it went on");
    return 0;
}
