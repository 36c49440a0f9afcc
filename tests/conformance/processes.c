/* processes.c: what processes share: names, inherited and duplicated handles, abandoned mutexes. The program starts itself. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

static const char *program;

static HANDLE Value(const char *text)
{
    return (HANDLE)(ULONG_PTR)strtoul(text, NULL, 16);
}

/* The child. Its exit code is the result. */
static int Child(int argc, char **argv)
{
    const char *role = argv[1], *argument = argc > 2 ? argv[2] : "";
    HANDLE object;
    if (strcmp(role, "create event") == 0) {
        object = CreateEventA(NULL, TRUE, FALSE, argument);
        return object == NULL ? (int)GetLastError() : GetLastError() == ERROR_ALREADY_EXISTS ? 183 : 0;
    }
    if (strcmp(role, "open event") == 0) {
        object = OpenEventA(EVENT_MODIFY_STATE, FALSE, argument);
        return object == NULL ? (int)GetLastError() : SetEvent(object) ? 0 : 99;
    }
    if (strcmp(role, "set") == 0) {
        return SetEvent(Value(argument)) ? 0 : (int)GetLastError();
    }
    if (strcmp(role, "flags") == 0) {
        DWORD flags;
        return GetHandleInformation(Value(argument), &flags) ? (int)flags : (int)GetLastError() + 100;
    }
    if (strcmp(role, "release") == 0) {
        object = OpenSemaphoreA(SEMAPHORE_MODIFY_STATE, FALSE, argument);
        return object != NULL && ReleaseSemaphore(object, 2, NULL) ? 0 : (int)GetLastError();
    }
    if (strcmp(role, "own") == 0) {
        object = OpenMutexA(SYNCHRONIZE, FALSE, argument);
        return object != NULL ? (int)WaitForSingleObject(object, INFINITE) : (int)GetLastError();
    }
    if (strcmp(role, "release mutex") == 0) {
        object = OpenMutexA(SYNCHRONIZE, FALSE, argument);
        return object != NULL && !ReleaseMutex(object) ? (int)GetLastError() & 0xff : 99;
    }
    if (strcmp(role, "hold") == 0) {
        object = OpenEventA(EVENT_MODIFY_STATE, FALSE, argument);
        CreateEventA(NULL, TRUE, FALSE, "interlock held");
        SetEvent(object);
        Sleep(INFINITE);
    }
    return 98;
}

typedef struct Options {
    BOOL inherit;
    const HANDLE *list;
    SIZE_T count;
} Options;

static PROCESS_INFORMATION Start(const char *role, const char *argument, Options options)
{
    union {
        LPPROC_THREAD_ATTRIBUTE_LIST list;
        char room[1024];
    } attributes;
    STARTUPINFOEXA startup;
    PROCESS_INFORMATION child;
    SIZE_T size = sizeof(attributes);
    char line[1024];
    memset(&startup, 0, sizeof(startup));
    memset(&child, 0, sizeof(child));
    startup.StartupInfo.cb = options.list != NULL ? sizeof(startup) : sizeof(startup.StartupInfo);
    snprintf(line, sizeof(line), "\"%s\" \"%s\" \"%s\"", program, role, argument);
    if (options.list != NULL) {
        startup.lpAttributeList = (LPPROC_THREAD_ATTRIBUTE_LIST)&attributes;
        InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &size);
        UpdateProcThreadAttribute(startup.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, (PVOID)options.list,
                                  options.count * sizeof(HANDLE), NULL, NULL);
    }
    if (!CreateProcessA(NULL, line, NULL, NULL, options.inherit, options.list != NULL ? EXTENDED_STARTUPINFO_PRESENT : 0,
                        NULL, NULL, &startup.StartupInfo, &child)) {
        child.hProcess = NULL;
    }
    return child;
}

static int End(PROCESS_INFORMATION child)
{
    DWORD code = 97;
    if (child.hProcess == NULL) {
        return -(int)GetLastError();
    }
    WaitForSingleObject(child.hProcess, 60000);
    GetExitCodeProcess(child.hProcess, &code);
    CloseHandle(child.hProcess);
    CloseHandle(child.hThread);
    SetLastError(UNTOUCHED);
    return (int)code;
}

static int Run(const char *role, const char *argument)
{
    Options none = {FALSE, NULL, 0};
    return End(Start(role, argument, none));
}

static int RunHeir(const char *role, HANDLE handle, const HANDLE *list, SIZE_T count)
{
    Options options = {TRUE, list, count};
    char argument[32];
    snprintf(argument, sizeof(argument), "%lx", (unsigned long)(ULONG_PTR)handle);
    return End(Start(role, argument, options));
}

static void Names(void)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "interlock shared");
    SHOW(Run("create event", "interlock shared"));
    SHOW(Run("open event", "Local\\interlock shared"));
    SHOW(WaitForSingleObject(event, 0));
    SHOW(Run("open event", "interlock nothing"));
    SHOW(Run("release", "interlock shared"));
    CloseHandle(event);
    SHOW(Run("open event", "interlock shared"));
    SHOW(Run("create event", "interlock shared"));
}

static void Semaphores(void)
{
    HANDLE semaphore = CreateSemaphoreA(NULL, 0, 3, "interlock semaphore");
    SHOW(Run("release", "interlock semaphore"));
    SHOW(WaitForSingleObject(semaphore, 0));
    SHOW(WaitForSingleObject(semaphore, 0));
    SHOW(WaitForSingleObject(semaphore, 0));
    CloseHandle(semaphore);
}

static void Mutexes(void)
{
    HANDLE mutex = CreateMutexA(NULL, TRUE, "interlock mutex");
    SHOW(Run("release mutex", "interlock mutex"));
    SHOW(ReleaseMutex(mutex));
    SHOW(Run("own", "interlock mutex"));
    SHOW(WaitForSingleObject(mutex, 60000));
    SHOW(ReleaseMutex(mutex));
    SHOW(WaitForSingleObject(mutex, 60000));
    SHOW(ReleaseMutex(mutex));
    CloseHandle(mutex);
}

static void Inheritance(void)
{
    SECURITY_ATTRIBUTES marked = {sizeof(marked), NULL, TRUE};
    HANDLE events[2], plain = CreateEventA(NULL, TRUE, FALSE, NULL);
    events[0] = CreateEventA(&marked, TRUE, FALSE, NULL);
    events[1] = CreateEventA(&marked, TRUE, FALSE, NULL);
    SHOW(RunHeir("set", events[0], NULL, 0));
    SHOW(WaitForSingleObject(events[0], 0));
    SHOW(RunHeir("flags", events[0], NULL, 0));
    SHOW(RunHeir("set", plain, NULL, 0));
    SHOW(RunHeir("set", events[1], events, 1));
    SHOW(RunHeir("set", events[1], events, 2));
    SHOW(WaitForSingleObject(events[1], 0));
    SHOW(SetHandleInformation(events[1], HANDLE_FLAG_INHERIT, 0));
    SHOW(RunHeir("set", events[1], NULL, 0));
    SHOW(SetHandleInformation(plain, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT));
    SHOW(RunHeir("set", plain, NULL, 0));
    CloseHandle(events[0]);
    CloseHandle(events[1]);
    CloseHandle(plain);
}

static void Lists(void)
{
    union {
        LPPROC_THREAD_ATTRIBUTE_LIST pointer;
        char room[1024];
    } memory;
    LPPROC_THREAD_ATTRIBUTE_LIST list = (LPPROC_THREAD_ATTRIBUTE_LIST)&memory;
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);
    SIZE_T size = 0;
    SHOW(InitializeProcThreadAttributeList(NULL, 1, 0, &size));
    size = 1;
    SHOW(InitializeProcThreadAttributeList(list, 1, 0, &size));
    size = sizeof(memory);
    SHOW(InitializeProcThreadAttributeList(list, 1, 0, &size));
    SHOW(UpdateProcThreadAttribute(list, 0, 0xabcd, &event, sizeof(event), NULL, NULL));
    SHOW(UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &event, sizeof(event) / 2, NULL, NULL));
    SHOW(UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &event, sizeof(event), NULL, NULL));
    SHOW(UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &event, sizeof(event), NULL, NULL));
    CloseHandle(event);
}

static void Duplicates(void)
{
    Options none = {FALSE, NULL, 0};
    HANDLE ready = CreateEventA(NULL, FALSE, FALSE, "interlock ready"), event = CreateEventA(NULL, TRUE, FALSE, NULL);
    PROCESS_INFORMATION child = Start("hold", "interlock ready", none);
    HANDLE theirs = NULL, back = NULL;
    SHOW(WaitForSingleObject(ready, 60000));
    SHOW(DuplicateHandle(GetCurrentProcess(), event, child.hProcess, &theirs, 0, FALSE, DUPLICATE_SAME_ACCESS));
    SHOW(DuplicateHandle(child.hProcess, theirs, GetCurrentProcess(), &back, SYNCHRONIZE, FALSE, 0));
    SHOW(SetEvent(event));
    SHOW(WaitForSingleObject(back, 0));
    SHOW(SetEvent(back));
    SHOW(CloseHandle(back));
    SHOW(DuplicateHandle(child.hProcess, theirs, GetCurrentProcess(), &back, 0, FALSE,
                         DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE));
    SHOW(SetEvent(back));
    CloseHandle(back);
    SHOW(DuplicateHandle(child.hProcess, theirs, GetCurrentProcess(), &back, 0, FALSE, DUPLICATE_SAME_ACCESS));
    back = OpenEventA(SYNCHRONIZE, FALSE, "interlock held");
    SHOW_TRUTH(back != NULL);
    CloseHandle(back);
    SHOW(TerminateProcess(child.hProcess, 7));
    SHOW(End(child));
    CloseHandle(event);
    CloseHandle(ready);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1) {
        return Child(argc, argv);
    }
    Names();
    Semaphores();
    Mutexes();
    Inheritance();
    Lists();
    Duplicates();
    return 0;
}
