/* producer.c: one instance at a time. It starts consumers (consumer.cpp), kills one of them, and all the work is done. */
#include <windows.h>
#include <stdio.h>
#include <string.h>

#define JOBS 300
#define CONSUMERS 3

static HANDLE Start(const char *program, const char *argument)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION process;
    char line[1024];
    snprintf(line, sizeof(line), "\"%s\" %s", program, argument);
    if (!CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &process)) {
        printf("%s does not start: error %u\n", program, (unsigned)GetLastError());
        ExitProcess(1);
    }
    CloseHandle(process.hThread);
    return process.hProcess;
}

/* Does another process with this mutex already run? The mutex disappears with its process, however that ends. */
static HANDLE BeTheOnlyInstance(void)
{
    HANDLE mutex = CreateMutexA(NULL, TRUE, "the only producer");
    if (mutex != NULL && GetLastError() == ERROR_ALREADY_EXISTS) {
        printf("another instance runs\n");
        ExitProcess(3);
    }
    return mutex;
}

int main(int argc, char **argv)
{
    HANDLE instance = BeTheOnlyInstance(), consumers[CONSUMERS];
    HANDLE jobs = CreateSemaphoreA(NULL, 0, JOBS, "jobs"), done = CreateSemaphoreA(NULL, 0, JOBS, "jobs done");
    HANDLE taken = CreateEventA(NULL, TRUE, FALSE, "a job was taken");
    int count = 0;
    if (argc < 2) {
        printf("usage: producer CONSUMER\n");
        return 2;
    }
    consumers[0] = Start(argv[1], "sleepy"); /* takes a job, and never finishes it */
    ReleaseSemaphore(jobs, 1, NULL);
    WaitForSingleObject(taken, INFINITE);
    TerminateProcess(consumers[0], 1);
    WaitForSingleObject(consumers[0], INFINITE);
    printf("one consumer was killed at work\n");
    for (int i = 1; i < CONSUMERS; i++) {
        consumers[i] = Start(argv[1], "diligent");
    }
    ReleaseSemaphore(jobs, JOBS - 1, NULL);
    while (count < JOBS - 1 && WaitForSingleObject(done, 60000) == WAIT_OBJECT_0) {
        count += 1;
    }
    ReleaseSemaphore(jobs, 1, NULL); /* the one that was lost */
    count += WaitForSingleObject(done, 60000) == WAIT_OBJECT_0;
    for (int i = 1; i < CONSUMERS; i++) {
        TerminateProcess(consumers[i], 0);
        WaitForSingleObject(consumers[i], INFINITE);
    }
    printf("%d of %d jobs done\n", count, JOBS);
    CloseHandle(instance);
    return count != JOBS;
}
