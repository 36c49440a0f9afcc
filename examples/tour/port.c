/* A part of a program for Windows, for interlock port to read. It is not compiled here: two of its calls need Windows. */
#include <windows.h>
#include <stdio.h>

static DWORD WINAPI Watch(LPVOID stop)
{
    HKEY key;
    HANDLE changed = CreateEvent(NULL, FALSE, FALSE, NULL);
    HANDLE waits[2] = {(HANDLE)stop, changed};

    RegOpenKeyEx(HKEY_CURRENT_USER, TEXT("Software\\Watch"), 0, KEY_NOTIFY, &key);
    for (;;) {
        RegNotifyChangeKeyValue(key, TRUE, REG_NOTIFY_CHANGE_LAST_SET, changed, TRUE);
        if (WaitForMultipleObjects(2, waits, FALSE, INFINITE) == WAIT_OBJECT_0) {
            break;
        }
        printf("changed, seen by thread %lu\n", GetCurrentThreadId());
    }
    CloseHandle(changed);
    return 0;
}

int main(void)
{
    HANDLE stop = CreateEvent(NULL, TRUE, FALSE, NULL);
    HANDLE thread = CreateThread(NULL, 0, Watch, stop, 0, NULL);

    Sleep(10000);
    SetEvent(stop);
    WaitForSingleObject(thread, INFINITE);
    return 0;
}
