#include <windows.h>
#include <interlock/io.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static DWORD WINAPI CleanUp(LPVOID done)
{
    return SetEvent((HANDLE)done) ? 0 : 1;
}

int main(void)
{
    HANDLE waits[3]; /* an event, a pipe, a child */
    DWORD which, count = 3;
    char text[16];
    int ends[2], status;
    pid_t child = pipe(ends) == 0 ? fork() : -1;
    if (child == 0) {
        return write(ends[1], "hello", 5) == 5 && pause();
    }
    waits[0] = CreateEventA(NULL, FALSE, FALSE, NULL);
    IoCreateDescriptorObject(&waits[1], SYNCHRONIZE, NULL, ends[0], IO_DESCRIPTOR_READABLE);
    waits[2] = OpenProcess(SYNCHRONIZE, FALSE, (DWORD)child);
    do {
        which = WaitForMultipleObjects(count, waits, FALSE, INFINITE);
        if (which == 1) {
            printf("the pipe says: %.*s\n", (int)read(ends[0], text, sizeof(text)), text);
            kill(child, SIGTERM);
        } else if (which == 2) {
            waitpid(child, &status, 0);
            printf("signal %d ended the child\n", WTERMSIG(status));
            QueueUserWorkItem(CleanUp, waits[0], 0);
            count = 2; /* an exited process stays signaled */
        }
    } while (which == 1 || which == 2);
    if (which != 0 && child > 0) {
        kill(child, SIGKILL); /* something has failed: it waits forever */
    }
    for (int i = 0; i < 3; i++) {
        CloseHandle(waits[i]);
    }
    puts(which == 0 ? "a pool thread cleaned up" : "failed");
    return which != 0;
}
