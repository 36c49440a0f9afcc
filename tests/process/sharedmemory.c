/*
 * sharedmemory.c: an event in memory that two processes share, which Interlock does not have: one waits, the other one
 * signals. It ends in a bugcheck that names the rule. usage: sharedmemory signal | wait
 */
#include <ntddk.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    PKEVENT event = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (event == MAP_FAILED || argc != 2) {
        return 1;
    }
    KeInitializeEvent(event, SynchronizationEvent, FALSE);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(60); /* should the parent have ended before */
        KeWaitForSingleObject(event, Executive, KernelMode, FALSE, NULL);
        _exit(0);
    }
    /* The child's wait block is on the list when the list is not empty any more. */
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
