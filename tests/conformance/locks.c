/* locks.c: critical sections, slim reader/writer locks, condition variables, one-time initialisation. */
#include "report.h"

static CRITICAL_SECTION section;

static DWORD WINAPI TrySection(LPVOID parameter)
{
    (void)parameter;
    return TryEnterCriticalSection(&section) ? 1 : 0;
}

static DWORD ResultOf(LPTHREAD_START_ROUTINE routine, LPVOID parameter)
{
    HANDLE thread = StartThread(routine, parameter);
    DWORD code = 99;
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    CloseHandle(thread);
    return code;
}

static void CriticalSections(void)
{
    InitializeCriticalSection(&section);
    SHOW(section.LockCount);
    SHOW(section.RecursionCount);
    SHOW(section.OwningThread == NULL);
    EnterCriticalSection(&section);
    SHOW(section.RecursionCount);
    SHOW((DWORD)(ULONG_PTR)section.OwningThread == GetCurrentThreadId());
    SHOW(TryEnterCriticalSection(&section));
    SHOW(section.RecursionCount);
    SHOW(ResultOf(TrySection, NULL));
    LeaveCriticalSection(&section);
    LeaveCriticalSection(&section);
    SHOW(section.LockCount);
    SHOW(section.OwningThread == NULL);
    DeleteCriticalSection(&section);
    SHOW(InitializeCriticalSectionAndSpinCount(&section, 100));
    SHOW(SetCriticalSectionSpinCount(&section, 200) & 0xffffff);
    SHOW(SetCriticalSectionSpinCount(&section, 0) & 0xffffff);
    DeleteCriticalSection(&section);
}

static SRWLOCK lock = SRWLOCK_INIT;

static DWORD WINAPI TryShared(LPVOID parameter)
{
    BOOL got = TryAcquireSRWLockShared(&lock);
    (void)parameter;
    if (got) {
        ReleaseSRWLockShared(&lock);
    }
    return got ? 1 : 0;
}

static DWORD WINAPI TryExclusive(LPVOID parameter)
{
    BOOL got = TryAcquireSRWLockExclusive(&lock);
    (void)parameter;
    if (got) {
        ReleaseSRWLockExclusive(&lock);
    }
    return got ? 1 : 0;
}

static void SlimLocks(void)
{
    SHOW(TryAcquireSRWLockExclusive(&lock) != 0);
    SHOW(TryAcquireSRWLockExclusive(&lock) != 0);
    SHOW(TryAcquireSRWLockShared(&lock) != 0);
    SHOW(ResultOf(TryShared, NULL));
    ReleaseSRWLockExclusive(&lock);
    SHOW(lock.Ptr == NULL);
    AcquireSRWLockShared(&lock);
    SHOW(ResultOf(TryShared, NULL));
    SHOW(ResultOf(TryExclusive, NULL));
    AcquireSRWLockShared(&lock);
    ReleaseSRWLockShared(&lock);
    ReleaseSRWLockShared(&lock);
    SHOW(lock.Ptr == NULL);
    SHOW(ResultOf(TryExclusive, NULL));
}

static CONDITION_VARIABLE variable = CONDITION_VARIABLE_INIT;

static void ConditionVariables(void)
{
    InitializeCriticalSection(&section);
    EnterCriticalSection(&section);
    WakeConditionVariable(&variable);
    SHOW(SleepConditionVariableCS(&variable, &section, 10));
    SHOW(section.RecursionCount);
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);
    AcquireSRWLockShared(&lock);
    SHOW(SleepConditionVariableSRW(&variable, &lock, 10, CONDITION_VARIABLE_LOCKMODE_SHARED));
    SHOW(ResultOf(TryShared, NULL));
    SHOW(ResultOf(TryExclusive, NULL));
    ReleaseSRWLockShared(&lock);
    AcquireSRWLockExclusive(&lock);
    SHOW(SleepConditionVariableSRW(&variable, &lock, 0, 0));
    ReleaseSRWLockExclusive(&lock);
    WakeAllConditionVariable(&variable);
}

static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
static LONG calls;

static BOOL CALLBACK FailFirst(PINIT_ONCE initOnce, PVOID parameter, PVOID *context)
{
    (void)initOnce;
    *context = (PVOID)(ULONG_PTR)0x40;
    return ++calls > 1 || parameter != NULL;
}

static void RunOnce(void)
{
    PVOID context = NULL;
    BOOL pending = 99;
    INIT_ONCE other = INIT_ONCE_STATIC_INIT;
    SHOW(InitOnceBeginInitialize(&once, INIT_ONCE_CHECK_ONLY, &pending, &context));
    SHOW(InitOnceExecuteOnce(&once, FailFirst, NULL, &context));
    SHOW(InitOnceExecuteOnce(&once, FailFirst, NULL, &context));
    SHOW(calls);
    SHOW((ULONG_PTR)context);
    SHOW(InitOnceExecuteOnce(&once, FailFirst, NULL, &context));
    SHOW(calls);
    SHOW(InitOnceBeginInitialize(&once, INIT_ONCE_CHECK_ONLY, &pending, &context));
    SHOW(pending);
    SHOW(InitOnceBeginInitialize(&other, INIT_ONCE_ASYNC, &pending, &context));
    SHOW(pending);
    SHOW((ULONG_PTR)other.Ptr);
    SHOW(InitOnceBeginInitialize(&other, 0, &pending, &context));
    SHOW(InitOnceComplete(&other, 0, (PVOID)(ULONG_PTR)0x100));
    SHOW(InitOnceComplete(&other, INIT_ONCE_ASYNC, (PVOID)(ULONG_PTR)0x101));
    SHOW(InitOnceComplete(&other, INIT_ONCE_ASYNC, (PVOID)(ULONG_PTR)0x100));
    SHOW(InitOnceComplete(&other, INIT_ONCE_ASYNC, (PVOID)(ULONG_PTR)0x200));
    SHOW((ULONG_PTR)other.Ptr);
    SHOW(InitOnceBeginInitialize(&other, INIT_ONCE_CHECK_ONLY | INIT_ONCE_ASYNC, &pending, &context));
    InitOnceInitialize(&other);
    SHOW(InitOnceBeginInitialize(&other, 0, &pending, &context));
    SHOW((ULONG_PTR)other.Ptr);
    SHOW(InitOnceComplete(&other, INIT_ONCE_INIT_FAILED, NULL));
    SHOW((ULONG_PTR)other.Ptr);
    SHOW(InitOnceComplete(&other, 0, NULL));
}

static PVOID *given;

static BOOL CALLBACK Leave(PINIT_ONCE unused, PVOID parameter, PVOID *context)
{
    (void)unused;
    (void)parameter;
    given = context;
    return TRUE;
}

/* The callback gets the caller's own pointer. */
static void RunOnceWithContext(void)
{
    INIT_ONCE mine = INIT_ONCE_STATIC_INIT, without = INIT_ONCE_STATIC_INIT;
    PVOID context = (PVOID)(ULONG_PTR)0x80;
    SHOW(InitOnceExecuteOnce(&mine, Leave, NULL, &context));
    SHOW_TRUTH(given == &context);
    context = NULL;
    SHOW(InitOnceExecuteOnce(&mine, Leave, NULL, &context));
    SHOW((ULONG_PTR)context);
    SHOW(InitOnceExecuteOnce(&without, Leave, NULL, NULL));
    SHOW_TRUTH(given == NULL);
}

int main(void)
{
    CriticalSections();
    SlimLocks();
    ConditionVariables();
    RunOnce();
    RunOnceWithContext();
    return 0;
}
