/* common.c: what the scenes share. */
#include "program.h"

HANDLE go[2], started;
DWORD id_of_last_thread;
int threads_made;

void say(const char *name, const volatile void *address)
{
    printf("%s %p\n", name, (const void *)(uintptr_t)address);
}

HANDLE make(LPTHREAD_START_ROUTINE routine, const char *name)
{
    WCHAR wide[32] = {0};
    HANDLE thread = CreateThread(NULL, 0, routine, NULL, CREATE_SUSPENDED, &id_of_last_thread);

    for (size_t i = 0; name[i] != '\0'; i++)
        wide[i] = (unsigned char)name[i];
    SetThreadDescription(thread, wide);
    printf("%s %u\n", name, id_of_last_thread);
    STORE(threads_made, threads_made + 1);
    ResumeThread(thread);
    return thread;
}

/* Both have their first one before either acquires its second. */
void meet(int self)
{
    SetEvent(go[self]);
    WaitForSingleObject(go[1 - self], INFINITE);
}

void never_runs(PKDPC dpc, void *context, void *argument1, void *argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
}

/* Reads commands from standard input. */

void obey(void)
{
    char line[64];

    while (fgets(line, sizeof(line), stdin) != NULL)
        if (strcmp(line, "start\n") == 0)
            SetEvent(started);
}

void prepare(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    go[0] = CreateEventA(NULL, TRUE, FALSE, NULL);
    go[1] = CreateEventA(NULL, TRUE, FALSE, NULL);
}
