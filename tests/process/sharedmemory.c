/*
 * sharedmemory.c: an event or an SRW lock in memory shared by two processes, which Interlock does not support: one
 * waits, the other one signals or releases. It ends in a bugcheck that names the rule. usage: sharedmemory signal |
 * wait | release | sibling
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

int main(int argc, char **argv)
{
    PKEVENT event = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (event == MAP_FAILED || argc != 2) {
        return 1;
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
