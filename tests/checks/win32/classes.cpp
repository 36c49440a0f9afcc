// Locks, events and threads in classes, as such programs are written for Windows. Exits with 0 if it worked.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#define NOMINMAX
#include <windows.h>
#include <synchapi.h>
#include <tchar.h>

class CLock
{
public:
    CLock() { InitializeCriticalSection(&m_cs); }
    ~CLock() { DeleteCriticalSection(&m_cs); }
    void Lock() { EnterCriticalSection(&m_cs); }
    void Unlock() { LeaveCriticalSection(&m_cs); }

private:
    CRITICAL_SECTION m_cs;
    CLock(const CLock &);
    CLock &operator=(const CLock &);
};

class CSharedTable
{
public:
    CSharedTable() { InitializeSRWLock(&m_lock); }
    void Set(int key, int value)
    {
        AcquireSRWLockExclusive(&m_lock);
        m_table[key] = value;
        ReleaseSRWLockExclusive(&m_lock);
    }
    int Sum()
    {
        int sum = 0;
        AcquireSRWLockShared(&m_lock);
        for (std::map<int, int>::const_iterator it = m_table.begin(); it != m_table.end(); ++it)
            sum += it->second;
        ReleaseSRWLockShared(&m_lock);
        return sum;
    }

private:
    SRWLOCK m_lock;
    std::map<int, int> m_table;
};

class CHandle
{
public:
    explicit CHandle(HANDLE h = NULL) : m_h(h) {}
    ~CHandle()
    {
        if (m_h != NULL && m_h != INVALID_HANDLE_VALUE)
            ::CloseHandle(m_h);
    }
    operator HANDLE() const { return m_h; }

private:
    HANDLE m_h;
};

struct Context {
    CSharedTable table;
    CLock lock;
    CONDITION_VARIABLE changed;
    SRWLOCK changedLock;
    int arrived;
    HANDLE go;
    std::vector<int> order;
};

static INIT_ONCE g_once = INIT_ONCE_STATIC_INIT;
static int g_initialized;
static __declspec(thread) int t_id;

static BOOL CALLBACK InitOnce(PINIT_ONCE, PVOID, PVOID *)
{
    g_initialized++;
    return TRUE;
}

static DWORD WINAPI ThreadProc(LPVOID parameter)
{
    Context *context = static_cast<Context *>(parameter);
    InitOnceExecuteOnce(&g_once, InitOnce, NULL, NULL);
    if (::WaitForSingleObject(context->go, INFINITE) != WAIT_OBJECT_0)
        return ::GetLastError();
    t_id = (int)GetCurrentThreadId();
    context->table.Set(t_id, 1);
    context->lock.Lock();
    context->order.push_back(t_id);
    context->lock.Unlock();
    AcquireSRWLockExclusive(&context->changedLock);
    context->arrived++;
    ReleaseSRWLockExclusive(&context->changedLock);
    WakeAllConditionVariable(&context->changed);
    return 0;
}

static VOID CALLBACK Work(PTP_CALLBACK_INSTANCE, PVOID parameter, PTP_WORK)
{
    InterlockedIncrement(static_cast<volatile LONG *>(parameter));
}

int main()
{
    const int threads = 8;
    Context context;
    volatile LONG worked = 0;
    LARGE_INTEGER frequency, start, end;

    context.arrived = 0;
    InitializeConditionVariable(&context.changed);
    InitializeSRWLock(&context.changedLock);
    CHandle go(CreateEvent(NULL, TRUE, FALSE, _T("ClassesSample")));
    CHandle same(OpenEvent(EVENT_MODIFY_STATE, FALSE, _T("ClassesSample")));
    if (go == NULL || same == NULL)
        return 1;
    context.go = go;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&start);
    std::vector<HANDLE> handles;
    for (int i = 0; i < threads; i++)
        handles.push_back(CreateThread(NULL, 0, ThreadProc, &context, 0, NULL));
    SetEvent(same);
    AcquireSRWLockExclusive(&context.changedLock);
    while (context.arrived < threads)
        SleepConditionVariableSRW(&context.changed, &context.changedLock, INFINITE, 0);
    ReleaseSRWLockExclusive(&context.changedLock);
    if (WaitForMultipleObjects((DWORD)handles.size(), &handles[0], TRUE, INFINITE) != WAIT_OBJECT_0)
        return 2;
    std::for_each(handles.begin(), handles.end(), CloseHandle);
    QueryPerformanceCounter(&end);

    PTP_WORK work = CreateThreadpoolWork(Work, const_cast<LONG *>(&worked), NULL);
    if (work == NULL)
        return 3;
    for (int i = 0; i < 10; i++)
        SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);

    std::sort(context.order.begin(), context.order.end());
    return context.table.Sum() == threads && std::unique(context.order.begin(), context.order.end()) ==
           context.order.end() && g_initialized == 1 && worked == 10 && end.QuadPart >= start.QuadPart &&
           std::max(1, 2) == 2 ? 0 : 4;
}
