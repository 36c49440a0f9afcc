/*
 * early.c: the library before main and after it: in the first possible constructor and the last destructor, and in
 * atexit functions.
 */
#include <windows.h>

#include <ntifs.h>

#include <interlock/nt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static VOID CALLBACK signal(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    SetEvent(context);
}

static DWORD WINAPI run(LPVOID context)
{
    return *(DWORD *)context;
}

/* An operation of every layer that needs the layer's initialization. */
static void use(const char *when)
{
    static const WCHAR name[] = u"early";
    CRITICAL_SECTION section;
    DWORD code = 17, found = 0;
    HANDLE keyed, named, done = CreateEventA(NULL, TRUE, FALSE, NULL);
    HANDLE thread = CreateThread(NULL, 0, run, &code, 0, NULL);
    KEVENT event;
    KIRQL irql;
    int good = KeQueryActiveProcessorCount(NULL) != 0;
    KeInitializeEvent(&event, SynchronizationEvent, TRUE);
    good &= KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    KeLowerIrql(irql);
    good &= ObGetObjectType(PsGetCurrentThread()) == *PsThreadType;
    InitializeCriticalSection(&section);
    EnterCriticalSection(&section);
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);
    good &= NT_SUCCESS(NtCreateKeyedEvent(&keyed, KEYEDEVENT_ALL_ACCESS, NULL, 0)) && CloseHandle(keyed);
    named = CreateEventW(NULL, FALSE, FALSE, name);
    good &= named != NULL && CloseHandle(named);
    good &= TrySubmitThreadpoolCallback(signal, done, NULL) && WaitForSingleObject(done, INFINITE) == WAIT_OBJECT_0;
    good &= WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && GetExitCodeThread(thread, &found) && found == code;
    CloseHandle(thread);
    CloseHandle(done);
    printf("%s %s\n", good ? "used" : "NOT USED", when);
    failures += !good;
}

static void at_exit(void)
{
    use("at exit");
}

__attribute__((constructor(101))) static void first(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    use("in the first constructor");
    atexit(at_exit);
}

__attribute__((destructor(101))) static void last(void)
{
    use("in the last destructor");
    if (failures != 0) {
        _Exit(1);
    }
}

int main(void)
{
    use("in main");
    return failures != 0;
}
