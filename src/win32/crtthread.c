/* crtthread.c: the thread functions of the C runtime: CreateThread by other names and with other habits. */
#include <interlock/win32/crtthread.h>

#include <interlock/win32/handle.h>
#include <interlock/win32/thread.h>

#include "base.h"

#include "local.h"

/* What the C runtime reports for an error of the system. */
static uintptr_t BaseFailThread(uintptr_t Result)
{
    switch (RtlGetLastWin32Error()) {
    case ERROR_INVALID_PARAMETER:
        HalSetError(HalErrorInvalid);
        break;
    case ERROR_ACCESS_DENIED:
        HalSetError(HalErrorAccess);
        break;
    case ERROR_NOT_ENOUGH_MEMORY:
        HalSetError(HalErrorMemory);
        break;
    default:
        HalSetError(HalErrorAgain);
        break;
    }
    return Result;
}

uintptr_t _beginthreadex(void *_Security, unsigned _StackSize, _beginthreadex_proc_type _StartAddress, void *_ArgList,
                         unsigned _InitFlag, unsigned *_ThrdAddr)
{
    HANDLE Thread =
        CreateThread(_Security, _StackSize, (LPTHREAD_START_ROUTINE)_StartAddress, _ArgList, _InitFlag, _ThrdAddr);
    return Thread != NULL ? (uintptr_t)Thread : BaseFailThread(0);
}

void _endthreadex(unsigned _Retval)
{
    ExitThread(_Retval);
}

/*
 * _beginthread: the handle belongs to the thread, which closes it when it ends, so it is made suspended until it knows
 * its handle. A caller who uses the handle later than that is on its own, as the documentation says.
 */
typedef struct _BASE_CRT_START {
    _beginthread_proc_type Start;
    void *Argument;
    HANDLE Thread;
} BASE_CRT_START, *PBASE_CRT_START;

static DWORD BaseRunCrtThread(LPVOID Parameter)
{
    BASE_CRT_START Start = *(PBASE_CRT_START)Parameter;
    HalFree(Parameter);
    BaseCurrentThread()->CrtThreadHandle = Start.Thread;
    Start.Start(Start.Argument);
    _endthread();
}

uintptr_t _beginthread(_beginthread_proc_type _StartAddress, unsigned _StackSize, void *_ArgList)
{
    PBASE_CRT_START Start;
    HANDLE Thread;
    if (_StartAddress == NULL) {
        HalSetError(HalErrorInvalid);
        return (uintptr_t)-1;
    }
    Start = HalAllocate(sizeof(*Start), MEMORY_ALLOCATION_ALIGNMENT);
    if (Start == NULL) {
        HalSetError(HalErrorMemory);
        return (uintptr_t)-1;
    }
    Start->Start = _StartAddress;
    Start->Argument = _ArgList;
    Thread = CreateThread(NULL, _StackSize, BaseRunCrtThread, Start, CREATE_SUSPENDED, NULL);
    if (Thread == NULL) {
        HalFree(Start);
        return BaseFailThread((uintptr_t)-1);
    }
    Start->Thread = Thread;
    ResumeThread(Thread);
    return (uintptr_t)Thread;
}

void _endthread(void)
{
    HANDLE Thread = BaseCurrentThread()->CrtThreadHandle;
    if (Thread != NULL) {
        BaseCurrentThread()->CrtThreadHandle = NULL;
        CloseHandle(Thread);
    }
    ExitThread(0);
}
