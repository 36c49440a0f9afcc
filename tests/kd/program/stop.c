/*
 * stop.c: a program that crashes, for `interlock explain`.
 *
 * usage: kd-stop CODE [PARAMETER...]   bugchecks with a code of the program's choice
 *        kd-stop resource              releases a resource that another thread holds, which is a bugcheck of the library
 *        kd-stop segv                  writes to the null page while it holds a lock that another thread waits for
 */
#include "program.h"

#include "ke/wait.h"

static CRITICAL_SECTION ledger;
static ERESOURCE table;
static HANDLE table_held;

static DWORD WINAPI waiter(void *context)
{
    (void)context;
    EnterCriticalSection(&ledger);
    return 0;
}

static DWORD WINAPI crasher(void *context)
{
    struct account {
        char filler[16];
        volatile int balance;
    } *volatile account = NULL;
    PETHREAD thread;

    (void)context;
    EnterCriticalSection(&ledger);
    make(waiter, "waiter");
    PsLookupThreadByThreadId((HANDLE)(ULONG_PTR)id_of_last_thread, &thread);
    /* one that waits is counted before it waits */
    while (LOAD(ledger.LockCount) > -6 || LOAD(((PKTHREAD)thread)->State) != Waiting)
        Sleep(1);
    account->balance = 1;
    return 0;
}

static DWORD WINAPI holder(void *context)
{
    (void)context;
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(&table, TRUE);
    SetEvent(table_held);
    Sleep(INFINITE);
    return 0;
}

static DWORD WINAPI releaser(void *context)
{
    (void)context;
    WaitForSingleObject(table_held, INFINITE);
    KeEnterCriticalRegion();
    ExReleaseResourceLite(&table);
    return 0;
}

int main(int argc, char **argv)
{
    ULONG_PTR parameter[4] = {0};

    if (argc < 2)
        return 2;
    prepare();
    InitializeCriticalSection(&ledger);
    ExInitializeResourceLite(&table);
    table_held = CreateEventA(NULL, TRUE, FALSE, NULL);
    if (strcmp(argv[1], "segv") == 0)
        WaitForSingleObject(make(crasher, "crasher"), INFINITE);
    if (strcmp(argv[1], "resource") == 0) {
        make(holder, "holder");
        WaitForSingleObject(make(releaser, "releaser"), INFINITE);
    }
    for (int i = 2; i < argc && i < 6; i++)
        parameter[i - 2] = strtoull(argv[i], NULL, 0);
    KeBugCheckEx((ULONG)strtoul(argv[1], NULL, 0), parameter[0], parameter[1], parameter[2], parameter[3]);
}
