/* recorded.c: a program that waits three times, so that a recording has something. usage: recorded [fork | signals | daemon] */
#include <ntddk.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

#define FIRST_NUMBER 3
#define NUMBERS 1024

/* Puts a file of its own under every number that is in use. FALSE: it did not get the first number for it. */
static int take_all_numbers(void)
{
    int own = open("own", O_RDWR | O_CREAT | O_APPEND, 0600);
    if (own != FIRST_NUMBER) {
        return 0;
    }
    for (int number = FIRST_NUMBER + 1; number < NUMBERS; number++) {
        if (fcntl(number, F_GETFD) >= 0) {
            dup2(own, number);
        }
    }
    return 1;
}

/* Whether a number that was in use is free. */
static int has_lost_numbers(const char used[NUMBERS])
{
    for (int number = FIRST_NUMBER; number < NUMBERS; number++) {
        if (used[number] && fcntl(number, F_GETFD) < 0) {
            return 1;
        }
    }
    return 0;
}

static int be_a_daemon(void)
{
    static char used[NUMBERS];
    int status = 1;
    if (!take_all_numbers()) {
        return 3;
    }
    for (int number = FIRST_NUMBER; number < NUMBERS; number++) {
        used[number] = fcntl(number, F_GETFD) >= 0;
    }
    if (fork() == 0) {
        wait_three_times();
        exit(has_lost_numbers(used));
    }
    wait(&status);
    return status != 0 || has_lost_numbers(used) ? 4 : 0;
}

int main(int argc, char **argv)
{
    wait_three_times();
    if (argc > 1 && strcmp(argv[1], "daemon") == 0) {
        int result = be_a_daemon();
        if (result != 0) {
            return result;
        }
    }
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
