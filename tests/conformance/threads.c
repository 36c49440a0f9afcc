/* threads.c: creating, suspending, ending and querying threads; thread-local and fiber-local storage. */
#include "report.h"

static LONG ran;

static DWORD WINAPI Run(LPVOID parameter)
{
    InterlockedIncrement(&ran);
    return (DWORD)(ULONG_PTR)parameter;
}

static void Lives(void)
{
    DWORD code = 0, id = 0;
    HANDLE thread = CreateThread(NULL, 0, Run, (LPVOID)(ULONG_PTR)42, CREATE_SUSPENDED, &id);
    SHOW(GetExitCodeThread(thread, &code));
    SHOW(code);
    SHOW(WaitForSingleObject(thread, 20));
    SHOW(ran);
    SHOW(GetThreadId(thread) == id);
    SHOW(SuspendThread(thread));
    SHOW(ResumeThread(thread));
    SHOW(ResumeThread(thread));
    SHOW(WaitForSingleObject(thread, 60000));
    SHOW(ran);
    SHOW(GetExitCodeThread(thread, &code));
    SHOW(code);
    SHOW(ResumeThread(thread));
    SHOW(SuspendThread(thread));
    SHOW(TerminateThread(thread, 1));
    SHOW(WaitForSingleObject(thread, 0));
    CloseHandle(thread);
    SHOW(ResumeThread(NULL));
    SHOW(SuspendThread(NULL));
    SHOW_TRUTH(OpenThread(THREAD_ALL_ACCESS, FALSE, 0) == NULL);
    SHOW_TRUTH(OpenThread(THREAD_ALL_ACCESS, FALSE, 0x7ffffffc) == NULL);
}

static void TooManySuspensions(void)
{
    HANDLE thread = CreateThread(NULL, 0, Run, NULL, CREATE_SUSPENDED, NULL);
    int i;
    for (i = 0; i < 126; i++) {
        SuspendThread(thread);
    }
    SHOW(SuspendThread(thread));
    for (i = 0; i < 126; i++) {
        ResumeThread(thread);
    }
    SHOW(ResumeThread(thread));
    JoinThread(thread);
}

static DWORD WINAPI HoldForever(LPVOID parameter)
{
    HANDLE *handles = (HANDLE *)parameter;
    WaitForSingleObject(handles[0], INFINITE);
    SetEvent(handles[1]);
    Sleep(INFINITE);
    return 0;
}

static void Terminated(void)
{
    HANDLE handles[2], thread;
    DWORD code = 0;
    handles[0] = CreateMutexW(NULL, FALSE, NULL);
    handles[1] = CreateEventW(NULL, FALSE, FALSE, NULL);
    thread = StartThread(HoldForever, handles);
    WaitForSingleObject(handles[1], INFINITE);
    SHOW(WaitForSingleObject(handles[0], 0));
    SHOW(TerminateThread(thread, 77));
    SHOW(WaitForSingleObject(thread, 60000));
    SHOW(GetExitCodeThread(thread, &code));
    SHOW(code);
    SHOW(WaitForSingleObject(handles[0], 60000));
    SHOW(ReleaseMutex(handles[0]));
    CloseHandle(thread);
    CloseHandle(handles[0]);
    CloseHandle(handles[1]);
}

static DWORD WINAPI ExitEarly(LPVOID parameter)
{
    (void)parameter;
    ExitThread(5);
    return 6;
}

static void Exit(void)
{
    HANDLE thread = StartThread(ExitEarly, NULL);
    DWORD code = 0;
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    SHOW(code);
    CloseHandle(thread);
}

static void Priorities(void)
{
    HANDLE thread = CreateThread(NULL, 0, Run, NULL, CREATE_SUSPENDED, NULL);
    SHOW(GetThreadPriority(thread));
    SHOW(SetThreadPriority(thread, THREAD_PRIORITY_BELOW_NORMAL));
    SHOW(GetThreadPriority(thread));
    SHOW(SetThreadPriority(thread, THREAD_PRIORITY_IDLE));
    SHOW(GetThreadPriority(thread));
    SHOW(SetThreadPriority(thread, 7));
    ResumeThread(thread);
    JoinThread(thread);
}

static DWORD slot;

static DWORD WINAPI LookAtSlot(LPVOID parameter)
{
    (void)parameter;
    return (DWORD)(ULONG_PTR)TlsGetValue(slot);
}

static LONG destroyed;

static VOID WINAPI Destroy(PVOID value)
{
    InterlockedExchangeAdd(&destroyed, (LONG)(LONG_PTR)value);
}

static DWORD WINAPI SetFiberLocal(LPVOID parameter)
{
    FlsSetValue((DWORD)(ULONG_PTR)parameter, (PVOID)(ULONG_PTR)3);
    return 0;
}

static void Local(void)
{
    DWORD code = 99, fiber;
    HANDLE thread;
    slot = TlsAlloc();
    SHOW(TlsGetValue(slot) == NULL);
    SHOW(TlsSetValue(slot, (LPVOID)(ULONG_PTR)12));
    SHOW((ULONG_PTR)TlsGetValue(slot));
    thread = StartThread(LookAtSlot, NULL);
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    CloseHandle(thread);
    SHOW(code);
    SHOW(TlsFree(slot));
    SHOW(TlsFree(0x10000));
    SHOW(TlsSetValue(0x10000, NULL));
    SHOW(TlsGetValue(0x10000) == NULL);
    fiber = FlsAlloc(Destroy);
    SHOW(FlsSetValue(fiber, (PVOID)(ULONG_PTR)4));
    SHOW((ULONG_PTR)FlsGetValue(fiber));
    OnOtherThread(SetFiberLocal, (LPVOID)(ULONG_PTR)fiber);
    SHOW(destroyed);
    SHOW(FlsFree(fiber));
    SHOW(destroyed);
    SHOW(FlsFree(0x10000));
}

/* Processors that do not exist, and indexes that were not allocated. */
static void Generous(void)
{
    DWORD index = FlsAlloc(NULL);
    SHOW_TRUTH(SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)-1) != 0);
    SHOW_TRUTH(SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)1 << 63 | 1) != 0);
    SHOW_TRUTH(SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)1 << 63) != 0);
    SHOW_TRUTH(SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)-1) == 1);
    FlsFree(index);
    SHOW(FlsSetValue(index, (PVOID)1));
    SHOW(FlsSetValue(0, (PVOID)1));
    SHOW_TRUTH(TlsAlloc() != 0);
}

int main(void)
{
    Lives();
    TooManySuspensions();
    Terminated();
    Exit();
    Priorities();
    Local();
    Generous();
    return 0;
}
