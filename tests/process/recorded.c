/* recorded.c: a program that waits three times, so that a recording has something. usage: recorded [fork | signals] */
#include <ntddk.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 8

static void wait_three_times(void)
{
    LARGE_INTEGER soon = {.QuadPart = -10000};
    KEVENT never;
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    for (int i = 0; i < 3; i++) {
        KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, &soon);
    }
}

int main(int argc, char **argv)
{
    wait_three_times();
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        for (int i = 0; i < CHILDREN; i++) {
            if (fork() == 0) {
                wait_three_times();
                return 0;
            }
        }
        while (wait(NULL) > 0) {
        }
    }
    /* The program's own signals are as they were. */
    if (argc > 1 && strcmp(argv[1], "signals") == 0) {
        sigset_t mask;
        struct sigaction action;
        sigemptyset(&mask);
        sigprocmask(SIG_BLOCK, NULL, &mask);
        sigaction(SIGXFSZ, NULL, &action);
        if (sigismember(&mask, SIGXFSZ) || sigismember(&mask, SIGPIPE) || action.sa_handler != SIG_DFL) {
            return 2;
        }
    }
    puts("the program's own output");
    fflush(stdout);
    return 0;
}
