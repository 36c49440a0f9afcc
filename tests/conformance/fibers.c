/* fibers.c: fibers and their storage, priority classes, affinity, console handlers. */
#include "report.h"

static LPVOID home, first;
static DWORD slot;

static void WINAPI CountCallback(PVOID value)
{
    printf("callback for %u\n", (unsigned)(ULONG_PTR)value);
    fflush(stdout);
}

static VOID WINAPI RunFirst(LPVOID parameter)
{
    for (;;) {
        SHOW_TRUTH(parameter == (PVOID)5 && GetFiberData() == parameter && GetCurrentFiber() == first);
        SHOW(IsThreadAFiber());
        SHOW_TRUTH(FlsGetValue(slot) == NULL);
        FlsSetValue(slot, (PVOID)50);
        SwitchToFiber(home);
        SHOW_TRUTH(FlsGetValue(slot) == (PVOID)50);
        FlsSetValue(slot, (PVOID)51);
        SwitchToFiber(home);
    }
}

static void Switching(void)
{
    SHOW(IsThreadAFiber());
    SHOW(ConvertFiberToThread());
    slot = FlsAlloc(CountCallback);
    FlsSetValue(slot, (PVOID)7);
    home = ConvertThreadToFiber((PVOID)9);
    SHOW_TRUTH(home != NULL && GetCurrentFiber() == home && GetFiberData() == (PVOID)9);
    SHOW_TRUTH(ConvertThreadToFiber(NULL) == NULL);
    SHOW_TRUTH(FlsGetValue(slot) == (PVOID)7);
    first = CreateFiber(0, RunFirst, (PVOID)5);
    SwitchToFiber(first);
    SHOW_TRUTH(FlsGetValue(slot) == (PVOID)7);
    SwitchToFiber(first);
    DeleteFiber(first);
    SHOW(ConvertFiberToThread());
    SHOW(IsThreadAFiber());
    SHOW_TRUTH(FlsGetValue(slot) == (PVOID)7);
    SHOW(FlsFree(slot));
}

static VOID WINAPI Return(LPVOID parameter)
{
    (void)parameter;
    FlsSetValue(slot, (PVOID)60);
}

static VOID WINAPI ExitWithNine(LPVOID parameter)
{
    (void)parameter;
    ExitThread(9);
}

static VOID WINAPI DeleteItself(LPVOID parameter)
{
    (void)parameter;
    FlsSetValue(slot, (PVOID)61);
    DeleteFiber(GetCurrentFiber());
}

static DWORD WINAPI EndOnFiber(LPVOID routine)
{
    LPVOID fiber;
    ConvertThreadToFiber(NULL);
    fiber = CreateFiber(0, (LPFIBER_START_ROUTINE)routine, NULL);
    SwitchToFiber(fiber);
    return 77;
}

static void Ends(void)
{
    static LPFIBER_START_ROUTINE const routines[] = {Return, ExitWithNine, DeleteItself};
    int i;
    slot = FlsAlloc(CountCallback);
    for (i = 0; i < 3; i++) {
        DWORD code = 0;
        HANDLE thread = CreateThread(NULL, 0, EndOnFiber, (LPVOID)routines[i], 0, NULL);
        WaitForSingleObject(thread, 60000);
        GetExitCodeThread(thread, &code);
        if (i != 2) {
            printf("exit code %u\n", (unsigned)code);
        }
        fflush(stdout);
        CloseHandle(thread);
    }
    FlsFree(slot);
}

static void Classes(void)
{
    static const DWORD classes[] = {IDLE_PRIORITY_CLASS, BELOW_NORMAL_PRIORITY_CLASS, ABOVE_NORMAL_PRIORITY_CLASS,
                                    HIGH_PRIORITY_CLASS, NORMAL_PRIORITY_CLASS};
    HANDLE self = GetCurrentProcess();
    DWORD_PTR process = 0, system = 0;
    BOOL disabled = 5;
    int i;
    SHOW(GetPriorityClass(self));
    for (i = 0; i < 5; i++) {
        SHOW(SetPriorityClass(self, classes[i]));
        SHOW(GetPriorityClass(self));
    }
    SHOW(SetPriorityClass(self, 0));
    SHOW(GetPriorityClass(NULL));
    SHOW(GetProcessAffinityMask(self, &process, &system));
    SHOW_TRUTH(process != 0 && (process & ~system) == 0);
    SHOW(SetProcessAffinityMask(self, 0));
    SHOW(SetProcessAffinityMask(self, process));
    SHOW(GetProcessAffinityMask(NULL, &process, &system));
    SHOW(GetProcessPriorityBoost(self, &disabled));
    SHOW(disabled);
}

static BOOL WINAPI Handler(DWORD type)
{
    (void)type;
    return TRUE;
}

static void Others(void)
{
    DWORD old = 99, length = 0;
    char path[8] = "";
    SHOW(SetConsoleCtrlHandler(Handler, FALSE));
    SHOW(SetConsoleCtrlHandler(Handler, TRUE));
    SHOW(SetConsoleCtrlHandler(Handler, FALSE));
    SHOW(SetThreadErrorMode(SEM_FAILCRITICALERRORS, &old));
    SHOW(GetThreadErrorMode());
    SHOW(SetThreadErrorMode(0x4000, &old));
    SHOW(SetThreadErrorMode(0, NULL));
    SHOW_TRUTH(GetStdHandle(5) == INVALID_HANDLE_VALUE);
    SHOW(GetLogicalProcessorInformation(NULL, &length));
    SHOW(GetLogicalProcessorInformation(NULL, NULL));
    SHOW(GetModuleFileNameA(NULL, path, 4));
    SHOW(lstrlenA(path));
    SHOW_TRUTH(CreateMemoryResourceNotification((MEMORY_RESOURCE_NOTIFICATION_TYPE)2) == NULL);
    SHOW(WriteFile(NULL, "x", 1, &length, NULL));
}

int main(void)
{
    Switching();
    Ends();
    Classes();
    Others();
    return 0;
}
