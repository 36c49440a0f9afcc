/* services.c: system services and runtime functions, found by name as programs that use them do. */
#include "report.h"

typedef LONG Status;

#define SERVICE(name, arguments)                                                                                       \
    typedef Status(NTAPI *name##Type) arguments;                                                                       \
    static name##Type name##Service

SERVICE(NtCreateEvent, (HANDLE *, ULONG, PVOID, ULONG, BOOLEAN));
SERVICE(NtSetEvent, (HANDLE, LONG *));
SERVICE(NtResetEvent, (HANDLE, LONG *));
SERVICE(NtPulseEvent, (HANDLE, LONG *));
SERVICE(NtClearEvent, (HANDLE));
SERVICE(NtQueryEvent, (HANDLE, ULONG, PVOID, ULONG, ULONG *));
SERVICE(NtCreateMutant, (HANDLE *, ULONG, PVOID, BOOLEAN));
SERVICE(NtReleaseMutant, (HANDLE, LONG *));
SERVICE(NtQueryMutant, (HANDLE, ULONG, PVOID, ULONG, ULONG *));
SERVICE(NtCreateSemaphore, (HANDLE *, ULONG, PVOID, LONG, LONG));
SERVICE(NtReleaseSemaphore, (HANDLE, LONG, LONG *));
SERVICE(NtQuerySemaphore, (HANDLE, ULONG, PVOID, ULONG, ULONG *));
SERVICE(NtCreateKeyedEvent, (HANDLE *, ULONG, PVOID, ULONG));
SERVICE(NtWaitForKeyedEvent, (HANDLE, PVOID, BOOLEAN, LARGE_INTEGER *));
SERVICE(NtReleaseKeyedEvent, (HANDLE, PVOID, BOOLEAN, LARGE_INTEGER *));
SERVICE(NtWaitForSingleObject, (HANDLE, BOOLEAN, LARGE_INTEGER *));
SERVICE(NtWaitForMultipleObjects, (ULONG, HANDLE *, ULONG, BOOLEAN, LARGE_INTEGER *));
SERVICE(NtSignalAndWaitForSingleObject, (HANDLE, HANDLE, BOOLEAN, LARGE_INTEGER *));
SERVICE(NtCreateIoCompletion, (HANDLE *, ULONG, PVOID, ULONG));
SERVICE(NtSetIoCompletion, (HANDLE, ULONG_PTR, ULONG_PTR, Status, ULONG_PTR));
SERVICE(NtQueryIoCompletion, (HANDLE, ULONG, PVOID, ULONG, ULONG *));
SERVICE(NtAlertThreadByThreadId, (HANDLE));
SERVICE(NtWaitForAlertByThreadId, (PVOID, LARGE_INTEGER *));
SERVICE(NtTestAlert, (void));
SERVICE(NtAlertThread, (HANDLE));
SERVICE(NtClose, (HANDLE));

#define FIND(name) name##Service = (name##Type)(void (*)(void))GetProcAddress(ntdll, #name)

#define SHOW_STATUS(expression) printf("%s = 0x%08x\n", #expression, (unsigned)(expression))

static BOOL FindServices(void)
{
    HMODULE ntdll = GetModuleHandleA("ntdll.dll");
    FIND(NtCreateEvent);
    FIND(NtSetEvent);
    FIND(NtResetEvent);
    FIND(NtPulseEvent);
    FIND(NtClearEvent);
    FIND(NtQueryEvent);
    FIND(NtCreateMutant);
    FIND(NtReleaseMutant);
    FIND(NtQueryMutant);
    FIND(NtCreateSemaphore);
    FIND(NtReleaseSemaphore);
    FIND(NtQuerySemaphore);
    FIND(NtCreateKeyedEvent);
    FIND(NtWaitForKeyedEvent);
    FIND(NtReleaseKeyedEvent);
    FIND(NtWaitForSingleObject);
    FIND(NtWaitForMultipleObjects);
    FIND(NtSignalAndWaitForSingleObject);
    FIND(NtCreateIoCompletion);
    FIND(NtSetIoCompletion);
    FIND(NtQueryIoCompletion);
    FIND(NtAlertThreadByThreadId);
    FIND(NtWaitForAlertByThreadId);
    FIND(NtTestAlert);
    FIND(NtAlertThread);
    FIND(NtClose);
    SHOW_TRUTH(GetProcAddress(ntdll, "NtNoSuchService") == NULL);
    SHOW_TRUTH(GetModuleHandleA("no such module") == NULL);
    return NtCloseService != NULL && NtWaitForAlertByThreadIdService != NULL;
}

static LARGE_INTEGER now;

static void Events(void)
{
    HANDLE event = NULL;
    LONG previous = 99, information[2] = {99, 99};
    SHOW_STATUS(NtCreateEventService(&event, EVENT_ALL_ACCESS, NULL, 2, FALSE));
    SHOW_STATUS(NtCreateEventService(&event, EVENT_ALL_ACCESS, NULL, 1, FALSE));
    SHOW_STATUS(NtSetEventService(event, &previous));
    SHOW(previous);
    SHOW_STATUS(NtSetEventService(event, &previous));
    SHOW(previous);
    SHOW_STATUS(NtQueryEventService(event, 0, information, sizeof(information), NULL));
    SHOW(information[0]);
    SHOW(information[1]);
    SHOW_STATUS(NtQueryEventService(event, 0, information, 4, NULL));
    SHOW_STATUS(NtQueryEventService(event, 1, information, sizeof(information), NULL));
    SHOW_STATUS(NtResetEventService(event, &previous));
    SHOW(previous);
    SHOW_STATUS(NtPulseEventService(event, &previous));
    SHOW(previous);
    SHOW_STATUS(NtClearEventService(event));
    SHOW_STATUS(NtWaitForSingleObjectService(event, FALSE, &now));
    SHOW_STATUS(NtReleaseMutantService(event, NULL));
    SHOW_STATUS(NtReleaseSemaphoreService(event, 1, NULL));
    SHOW_STATUS(NtCloseService(event));
    SHOW_STATUS(NtCloseService(event));
    SHOW_STATUS(NtSetEventService(event, NULL));
}

static void Mutants(void)
{
    HANDLE mutant = NULL;
    LONG previous = 99;
    struct {
        LONG CurrentCount;
        BOOLEAN OwnedByCaller;
        BOOLEAN AbandonedState;
    } information;
    SHOW_STATUS(NtCreateMutantService(&mutant, 0x1f0001, NULL, TRUE));
    SHOW_STATUS(NtWaitForSingleObjectService(mutant, FALSE, NULL));
    SHOW_STATUS(NtQueryMutantService(mutant, 0, &information, sizeof(information), NULL));
    SHOW(information.CurrentCount);
    SHOW(information.OwnedByCaller);
    SHOW(information.AbandonedState);
    SHOW_STATUS(NtReleaseMutantService(mutant, &previous));
    SHOW(previous);
    SHOW_STATUS(NtReleaseMutantService(mutant, &previous));
    SHOW(previous);
    SHOW_STATUS(NtReleaseMutantService(mutant, &previous));
    SHOW_STATUS(NtCloseService(mutant));
}

static void Semaphores(void)
{
    HANDLE semaphore = NULL;
    LONG previous = 99, information[2];
    SHOW_STATUS(NtCreateSemaphoreService(&semaphore, 0x1f0003, NULL, 2, 1));
    SHOW_STATUS(NtCreateSemaphoreService(&semaphore, 0x1f0003, NULL, 0, 0));
    SHOW_STATUS(NtCreateSemaphoreService(&semaphore, 0x1f0003, NULL, 0, 2));
    SHOW_STATUS(NtReleaseSemaphoreService(semaphore, 2, &previous));
    SHOW(previous);
    SHOW_STATUS(NtReleaseSemaphoreService(semaphore, 1, &previous));
    SHOW(previous);
    SHOW_STATUS(NtQuerySemaphoreService(semaphore, 0, information, sizeof(information), NULL));
    SHOW(information[0]);
    SHOW(information[1]);
    SHOW_STATUS(NtCloseService(semaphore));
}

static void KeyedEvents(void)
{
    HANDLE keyed = NULL;
    SHOW_STATUS(NtCreateKeyedEventService(&keyed, 0xf0003, NULL, 1));
    SHOW_STATUS(NtCreateKeyedEventService(&keyed, 0xf0003, NULL, 0));
    SHOW_STATUS(NtWaitForKeyedEventService(keyed, (PVOID)(ULONG_PTR)1, FALSE, &now));
    SHOW_STATUS(NtWaitForKeyedEventService(keyed, (PVOID)(ULONG_PTR)2, FALSE, &now));
    SHOW_STATUS(NtReleaseKeyedEventService(keyed, (PVOID)(ULONG_PTR)2, FALSE, &now));
    SHOW_STATUS(NtWaitForKeyedEventService(keyed, NULL, FALSE, &now));
    SHOW_STATUS(NtWaitForKeyedEventService(NULL, (PVOID)(ULONG_PTR)2, FALSE, &now));
    SHOW_STATUS(NtWaitForSingleObjectService(keyed, FALSE, &now));
    SHOW_STATUS(NtCloseService(keyed));
}

static void Waits(void)
{
    HANDLE handles[2];
    NtCreateEventService(&handles[0], EVENT_ALL_ACCESS, NULL, 1, TRUE);
    handles[1] = NULL;
    SHOW_STATUS(NtWaitForMultipleObjectsService(0, handles, 1, FALSE, &now));
    SHOW_STATUS(NtWaitForMultipleObjectsService(65, handles, 1, FALSE, &now));
    SHOW_STATUS(NtWaitForMultipleObjectsService(2, handles, 1, FALSE, &now));
    SHOW_STATUS(NtWaitForMultipleObjectsService(1, handles, 1, FALSE, &now));
    SHOW_STATUS(NtWaitForSingleObjectService(handles[0], FALSE, &now));
    SHOW_STATUS(NtSignalAndWaitForSingleObjectService(handles[0], handles[0], FALSE, &now));
    NtCloseService(handles[0]);
}

static void Ports(void)
{
    HANDLE port = NULL;
    LONG depth = 99;
    SHOW_STATUS(NtCreateIoCompletionService(&port, 0x1f0003, NULL, 0));
    SHOW_STATUS(NtSetIoCompletionService(port, 1, 2, 0, 3));
    SHOW_STATUS(NtQueryIoCompletionService(port, 0, &depth, sizeof(depth), NULL));
    SHOW(depth);
    SHOW_STATUS(NtQueryIoCompletionService(port, 0, &depth, 1, NULL));
    SHOW_STATUS(NtCloseService(port));
}

static void Alerts(void)
{
    LARGE_INTEGER soon;
    HANDLE self = (HANDLE)(ULONG_PTR)GetCurrentThreadId();
    soon.QuadPart = -10000;
    SHOW_STATUS(NtAlertThreadByThreadIdService(NULL));
    SHOW_STATUS(NtAlertThreadByThreadIdService((HANDLE)(ULONG_PTR)0x7ffffffc));
    SHOW_STATUS(NtAlertThreadByThreadIdService(self));
    SHOW_STATUS(NtAlertThreadByThreadIdService(self));
    SHOW_STATUS(NtWaitForAlertByThreadIdService(NULL, NULL));
    SHOW_STATUS(NtWaitForAlertByThreadIdService(NULL, &soon));
    SHOW_STATUS(NtTestAlertService());
}

int main(void)
{
    if (!FindServices()) {
        printf("not found\n");
        return 1;
    }
    Events();
    Mutants();
    Semaphores();
    KeyedEvents();
    Waits();
    Ports();
    Alerts();
    return 0;
}
