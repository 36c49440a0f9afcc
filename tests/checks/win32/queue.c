/* A bounded queue with a worker pool, as such programs are written for Windows. Exits with 0 if all work was done. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <tchar.h>

#define WORKERS 4
#define ITEMS 1000
#define SLOTS 8

typedef struct _QUEUE {
    CRITICAL_SECTION Lock;
    HANDLE hFree;
    HANDLE hUsed;
    LONG Items[SLOTS];
    ULONG Head, Tail;
} QUEUE, *PQUEUE;

static QUEUE g_Queue;
static volatile LONG g_Sum;
static volatile LONG64 g_Sum64;
static DWORD g_dwTls;
static __declspec(thread) int t_Count;
__declspec(align(64)) static volatile LONG g_Workers;

static __declspec(noinline) void Fatal(LPCTSTR pszWhat)
{
    DWORD dwError = GetLastError();
    LPTSTR pszText = NULL;
    FormatMessage(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_ALLOCATE_BUFFER, NULL,
                  dwError, MAKELANGID(LANG_NEUTRAL, SUBLANG_DEFAULT), (LPTSTR)&pszText, 0, NULL);
    _ftprintf(stderr, _T("%s: error %u: %s"), pszWhat, dwError, pszText != NULL ? pszText : _T("?\n"));
    LocalFree(pszText);
    exit(1);
}

static void Put(PQUEUE pQueue, LONG lItem)
{
    if (WaitForSingleObject(pQueue->hFree, INFINITE) != WAIT_OBJECT_0)
        Fatal(TEXT("wait for a free slot"));
    EnterCriticalSection(&pQueue->Lock);
    pQueue->Items[pQueue->Tail++ % SLOTS] = lItem;
    LeaveCriticalSection(&pQueue->Lock);
    if (!ReleaseSemaphore(pQueue->hUsed, 1, NULL))
        Fatal(TEXT("release"));
}

static LONG Get(PQUEUE pQueue)
{
    LONG lItem;
    WaitForSingleObject(pQueue->hUsed, INFINITE);
    EnterCriticalSection(&pQueue->Lock);
    lItem = pQueue->Items[pQueue->Head++ % SLOTS];
    LeaveCriticalSection(&pQueue->Lock);
    ReleaseSemaphore(pQueue->hFree, 1, NULL);
    return lItem;
}

static DWORD WINAPI Worker(LPVOID lpParameter)
{
    PQUEUE pQueue = (PQUEUE)lpParameter;
    LONG lItem;
    TlsSetValue(g_dwTls, lpParameter);
    InterlockedIncrement(&g_Workers);
    while ((lItem = Get(pQueue)) != 0) {
        InterlockedExchangeAdd(&g_Sum, lItem);
        InterlockedExchangeAdd64(&g_Sum64, (__int64)lItem);
        t_Count++;
    }
    return TlsGetValue(g_dwTls) == lpParameter ? (DWORD)t_Count : (DWORD)-1;
}

static unsigned __stdcall CrtWorker(void *pArgument)
{
    return Worker(pArgument);
}

int _tmain(void)
{
    HANDLE hThreads[WORKERS];
    HANDLE hMutex = CreateMutex(NULL, TRUE, TEXT("Local\\QueueSample"));
    SYSTEM_INFO si;
    TCHAR szName[64];
    DWORD i, dwCount, dwTotal = 0;

    if (hMutex == NULL || GetLastError() == ERROR_ALREADY_EXISTS)
        Fatal(TEXT("CreateMutex"));
    _stprintf_s(szName, ARRAYSIZE(szName), _T("%s-%u"), _T("QueueSample"), 7u);
    if (_tcscmp(szName, _T("QueueSample-7")) != 0 || _tcslen(szName) != 13 || lstrlen(szName) != 13)
        return 2;
    GetSystemInfo(&si);
    if (si.dwNumberOfProcessors < 1 || max(1, 2) != 2 || min(1, 2) != 1)
        return 3;
    ZeroMemory(&g_Queue, sizeof(g_Queue));
    InitializeCriticalSectionAndSpinCount(&g_Queue.Lock, 4000);
    g_Queue.hFree = CreateSemaphore(NULL, SLOTS, SLOTS, NULL);
    g_Queue.hUsed = CreateSemaphore(NULL, 0, SLOTS, NULL);
    g_dwTls = TlsAlloc();
    for (i = 0; i < WORKERS; i++) {
        hThreads[i] = i % 2 == 0 ? CreateThread(NULL, 0, Worker, &g_Queue, 0, NULL)
                                 : (HANDLE)_beginthreadex(NULL, 0, CrtWorker, &g_Queue, 0, NULL);
        if (hThreads[i] == NULL)
            Fatal(TEXT("CreateThread"));
    }
    for (i = 1; i <= ITEMS; i++)
        Put(&g_Queue, (LONG)i);
    for (i = 0; i < WORKERS; i++)
        Put(&g_Queue, 0);
    if (WaitForMultipleObjects(WORKERS, hThreads, TRUE, 60000) != WAIT_OBJECT_0)
        Fatal(TEXT("WaitForMultipleObjects"));
    for (i = 0; i < WORKERS; i++) {
        if (!GetExitCodeThread(hThreads[i], &dwCount))
            Fatal(TEXT("GetExitCodeThread"));
        dwTotal += dwCount;
        CloseHandle(hThreads[i]);
    }
    TlsFree(g_dwTls);
    DeleteCriticalSection(&g_Queue.Lock);
    CloseHandle(g_Queue.hFree);
    CloseHandle(g_Queue.hUsed);
    ReleaseMutex(hMutex);
    CloseHandle(hMutex);
    _tprintf(_T("%d workers did %u items, sum %d\n"), (int)g_Workers, dwTotal, (int)g_Sum);
    return dwTotal == ITEMS && g_Sum == ITEMS * (ITEMS + 1) / 2 && g_Sum64 == g_Sum && g_Workers == WORKERS ? 0 : 4;
}
