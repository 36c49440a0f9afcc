/* ports.c: completion ports. */
#include "report.h"

static HANDLE port;

static void Empty(void)
{
    DWORD bytes = 1;
    ULONG_PTR key = 2;
    LPOVERLAPPED overlapped = (LPOVERLAPPED)(ULONG_PTR)3;
    SHOW(GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, 0));
    SHOW(overlapped == NULL);
    SHOW(GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, 5));
    SHOW(WaitForSingleObject(port, 0));
}

static void FirstInFirstOut(void)
{
    DWORD bytes = 0, i;
    ULONG_PTR key = 0;
    LPOVERLAPPED overlapped = NULL;
    for (i = 1; i <= 3; i++) {
        SHOW(PostQueuedCompletionStatus(port, i * 10, i, (LPOVERLAPPED)(ULONG_PTR)(i * 100)));
    }
    SHOW(WaitForSingleObject(port, 0));
    for (i = 1; i <= 3; i++) {
        SHOW(GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, INFINITE));
        SHOW(bytes);
        SHOW(key);
        SHOW((ULONG_PTR)overlapped);
    }
    SHOW(WaitForSingleObject(port, 0));
}

static void Several(void)
{
    OVERLAPPED_ENTRY entries[4];
    ULONG removed = 99, i;
    for (i = 0; i < 3; i++) {
        PostQueuedCompletionStatus(port, i, i + 1, NULL);
    }
    SHOW(GetQueuedCompletionStatusEx(port, entries, 4, &removed, 0, FALSE));
    SHOW(removed);
    SHOW(entries[2].lpCompletionKey);
    SHOW(entries[2].dwNumberOfBytesTransferred);
    SHOW(GetQueuedCompletionStatusEx(port, entries, 4, &removed, 0, FALSE));
    SHOW(GetQueuedCompletionStatusEx(port, entries, 0, &removed, 0, FALSE));
}

static VOID CALLBACK Nothing(ULONG_PTR value)
{
    (void)value;
}

static void Alerted(void)
{
    OVERLAPPED_ENTRY entries[1];
    ULONG removed = 99;
    QueueUserAPC(Nothing, GetCurrentThread(), 0);
    SHOW(GetQueuedCompletionStatusEx(port, entries, 1, &removed, INFINITE, TRUE));
}

static void Wrong(void)
{
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    DWORD bytes;
    ULONG_PTR key;
    LPOVERLAPPED overlapped;
    SHOW(PostQueuedCompletionStatus(NULL, 0, 0, NULL));
    SHOW(PostQueuedCompletionStatus(event, 0, 0, NULL));
    SHOW(GetQueuedCompletionStatus(event, &bytes, &key, &overlapped, 0));
    SHOW_TRUTH(CreateIoCompletionPort(INVALID_HANDLE_VALUE, port, 0, 0) == NULL);
    SHOW_TRUTH(CreateIoCompletionPort(NULL, NULL, 0, 0) == NULL);
    CloseHandle(event);
}

static DWORD WINAPI Remove(LPVOID parameter)
{
    DWORD bytes, error;
    ULONG_PTR key;
    LPOVERLAPPED overlapped;
    SetEvent((HANDLE)parameter);
    error = GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, 2000) ? 0 : GetLastError();
    return error;
}

static void Closed(void)
{
    HANDLE begun = CreateEventW(NULL, FALSE, FALSE, NULL), thread = StartThread(Remove, begun);
    DWORD code = 0;
    WaitForSingleObject(begun, INFINITE);
    Sleep(50);
    SHOW(CloseHandle(port));
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    SHOW(code);
    CloseHandle(thread);
    CloseHandle(begun);
}

static void CALLBACK Count(ULONG_PTR counter)
{
    *(int *)counter += 1;
}

/* By now the thread has taken packets from the port. */
static void PacketBeforeApc(void)
{
    OVERLAPPED_ENTRY entries[2];
    ULONG removed = 0;
    int calls = 0;
    PostQueuedCompletionStatus(port, 1, 2, NULL);
    QueueUserAPC(Count, GetCurrentThread(), (ULONG_PTR)&calls);
    SHOW(GetQueuedCompletionStatusEx(port, entries, 2, &removed, INFINITE, TRUE));
    SHOW(removed);
    SHOW(calls);
    SHOW(SleepEx(0, TRUE));
    SHOW(calls);
}

int main(void)
{
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    Empty();
    FirstInFirstOut();
    Several();
    Alerted();
    PacketBeforeApc();
    Wrong();
    Closed();
    return 0;
}
