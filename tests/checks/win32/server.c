/* A server as programs for Windows have it: workers around a completion port, one structure per operation. */
#include <windows.h>
#include <process.h>

#define WORKERS 4
#define REQUESTS 400
#define OP_READ 1
#define OP_WRITE 2

typedef struct _PER_IO {
    OVERLAPPED Overlapped;
    int Operation;
    DWORD Sequence;
} PER_IO, *PPER_IO;

typedef struct _PER_CONNECTION {
    int Id;
    volatile LONG Reads, Writes;
    LONGLONG Bytes;
    CRITICAL_SECTION Lock;
} PER_CONNECTION;

static HANDLE port;
static volatile LONG completed;
static HANDLE allDone;

static unsigned int __stdcall ServerWorker(void *context)
{
    (void)context;
    for (;;) {
        DWORD bytes;
        ULONG_PTR key;
        LPOVERLAPPED overlapped;
        BOOL ok = GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, INFINITE);
        if (!ok && overlapped == NULL)
            return GetLastError();
        if (key == 0)
            return 0;
        PER_CONNECTION *connection = (PER_CONNECTION *)key;
        PPER_IO io = CONTAINING_RECORD(overlapped, PER_IO, Overlapped);
        switch (io->Operation) {
        case OP_READ:
            InterlockedIncrement(&connection->Reads);
            io->Operation = OP_WRITE;
            PostQueuedCompletionStatus(port, bytes * 2, key, &io->Overlapped);
            break;
        case OP_WRITE:
            InterlockedIncrement(&connection->Writes);
            EnterCriticalSection(&connection->Lock);
            connection->Bytes += bytes;
            LeaveCriticalSection(&connection->Lock);
            HeapFree(GetProcessHeap(), 0, io);
            if (InterlockedIncrement(&completed) == REQUESTS)
                SetEvent(allDone);
            break;
        default:
            DebugBreak();
        }
    }
}

int main(void)
{
    PER_CONNECTION connections[3];
    HANDLE threads[WORKERS];
    SYSTEM_INFO info;
    int i;
    GetSystemInfo(&info);
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    allDone = CreateEvent(NULL, TRUE, FALSE, NULL);
    for (i = 0; i < 3; i++) {
        ZeroMemory(&connections[i], sizeof(connections[i]));
        connections[i].Id = i;
        InitializeCriticalSection(&connections[i].Lock);
    }
    for (i = 0; i < WORKERS; i++)
        threads[i] = (HANDLE)_beginthreadex(NULL, 0, ServerWorker, NULL, 0, NULL);
    for (i = 0; i < REQUESTS; i++) {
        PPER_IO io = (PPER_IO)HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, sizeof(*io));
        io->Operation = OP_READ;
        io->Sequence = i;
        PostQueuedCompletionStatus(port, 10, (ULONG_PTR)&connections[i % 3], &io->Overlapped);
    }
    WaitForSingleObject(allDone, INFINITE);
    for (i = 0; i < WORKERS; i++)
        PostQueuedCompletionStatus(port, 0, 0, NULL);
    WaitForMultipleObjects(WORKERS, threads, TRUE, INFINITE);
    for (i = 0; i < 3; i++) {
        LONG expected = REQUESTS / 3 + (i < REQUESTS % 3);
        if (connections[i].Reads != expected || connections[i].Writes != expected || connections[i].Bytes != 20 * expected)
            return 1;
        DeleteCriticalSection(&connections[i].Lock);
    }
    for (i = 0; i < WORKERS; i++)
        CloseHandle(threads[i]);
    CloseHandle(allDone);
    CloseHandle(port);
    return info.dwNumberOfProcessors > 0 ? 0 : 2;
}
