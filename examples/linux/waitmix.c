/*
 * waitmix.c: one wait for an event, a child process and a file descriptor.
 *
 * What Linux programs need a self-pipe, a signal handler and an epoll set for is one call here.
 */
#include <windows.h>

#include <interlock/descriptor.h>

#include <stdio.h>
#include <unistd.h>

static DWORD WINAPI SetLater(LPVOID event)
{
    Sleep(30);
    SetEvent((HANDLE)event);
    return 0;
}

int main(void)
{
    static const char *const what[] = {"the event was set", "the child has ended", "the pipe has data"};
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION child;
    char commandLine[] = "sh -c \"sleep 0.2; exit 3\"";
    HANDLE waits[3], thread;
    DWORD code = 0;
    int ends[2];

    waits[0] = CreateEventA(NULL, FALSE, FALSE, NULL);
    if (!CreateProcessA(NULL, commandLine, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &child) || pipe(ends) != 0 ||
        IoCreateDescriptorObject(&waits[2], IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0], IO_DESCRIPTOR_READABLE) != 0) {
        fprintf(stderr, "cannot set up: error %u\n", (unsigned)GetLastError());
        return 1;
    }
    waits[1] = child.hProcess;
    thread = CreateThread(NULL, 0, SetLater, waits[0], 0, NULL);
    for (int round = 0; round < 3; round++) {
        DWORD which;
        if (round == 2 && write(ends[1], "x", 1) != 1) {
            return 1;
        }
        which = WaitForMultipleObjects(3, waits, FALSE, 60000);
        if (which >= 3) {
            return 1;
        }
        printf("%s\n", what[which]);
        if (which == 1) {
            GetExitCodeProcess(child.hProcess, &code);
            printf("  its exit code is %u\n", (unsigned)code);
            waits[1] = waits[0]; /* an ended process stays signaled */
        }
    }
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    CloseHandle(child.hProcess);
    CloseHandle(child.hThread);
    CloseHandle(waits[0]);
    CloseHandle(waits[2]);
    close(ends[0]);
    close(ends[1]);
    return code == 3 ? 0 : 1;
}
