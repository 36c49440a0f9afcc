/*
 * One mutex, three processes. The owner is killed; exactly one of the others gets WAIT_ABANDONED, at once. Finally no
 * process has a handle, and the name no longer exists.
 */
#include <windows.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static void own_and_wait(int ready)
{
    HANDLE mutex = CreateMutexA(NULL, TRUE, "tour");

    expect(mutex != NULL && write(ready, "", 1) == 1);
    Sleep(INFINITE);
}

/* The exit code: 1 if the wait reported the abandonment, otherwise 0. */
static void wait_for_it(int ready)
{
    HANDLE mutex = OpenMutexA(SYNCHRONIZE | MUTEX_MODIFY_STATE, FALSE, "tour");
    DWORD result;

    expect(mutex != NULL && write(ready, "", 1) == 1);
    result = WaitForSingleObject(mutex, INFINITE);
    expect(result == WAIT_OBJECT_0 || result == WAIT_ABANDONED);
    expect(ReleaseMutex(mutex));
    exit(result == WAIT_ABANDONED);
}

static int exit_code_of(pid_t process)
{
    int status = 0;

    expect(waitpid(process, &status, 0) == process && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void)
{
    int ready[2], told = 0;
    char byte;
    pid_t owner, waiters[2];

    expect(pipe(ready) == 0);
    owner = fork();
    if (owner == 0)
        own_and_wait(ready[1]);
    expect(read(ready[0], &byte, 1) == 1);
    printf("  one process owns the mutex \"tour\"; two others open it by name, and wait\n");
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        waiters[i] = fork();
        if (waiters[i] == 0)
            wait_for_it(ready[1]);
        expect(read(ready[0], &byte, 1) == 1); /* it has a handle: the name stays */
    }
    usleep(100000); /* so that both wait; harmless if they do not wait yet */
    expect(kill(owner, SIGKILL) == 0);
    printf("  kill -9 of the owner\n");
    for (int i = 0; i < 2; i++)
        told += exit_code_of(waiters[i]);
    waitpid(owner, NULL, 0);
    printf("  both got it; waits that returned WAIT_ABANDONED: %d\n", told);
    expect(told == 1);
    expect(OpenMutexA(SYNCHRONIZE, FALSE, "tour") == NULL && GetLastError() == ERROR_FILE_NOT_FOUND);
    printf("  no process has a handle any more: the name is gone\n");
    return 0;
}
