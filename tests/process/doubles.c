/*
 * doubles.c: doubles for functions of the library. The code under test calls them, the library itself does not.
 *
 * Linked with the shared library, a double has the function's own name, and finds the original behind it. With
 * RENAMED_DOUBLES it has another name, by which the code under test was compiled to call it: that works with the static
 * library too.
 */
#include <windows.h>

#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef RENAMED_DOUBLES
#define DOUBLE(Name) Double##Name
#define ORIGINAL(Name) Name
#else
#define DOUBLE(Name) Name
#define ORIGINAL(Name) ((__typeof__(&Name))dlsym(RTLD_NEXT, #Name))
#endif

static struct {
    int set, waits, pool, nt_set, enters;
} calls;
static int no_memory, no_signal;

LONG DOUBLE(KeSetEvent)(PRKEVENT event, KPRIORITY increment, BOOLEAN wait);
LONG DOUBLE(KeSetEvent)(PRKEVENT event, KPRIORITY increment, BOOLEAN wait)
{
    calls.set++;
    return no_signal ? 0 : ORIGINAL(KeSetEvent)(event, increment, wait);
}

NTSTATUS DOUBLE(KeWaitForSingleObject)(PVOID object, KWAIT_REASON reason, KPROCESSOR_MODE mode, BOOLEAN alertable,
                                       PLARGE_INTEGER timeout);
NTSTATUS DOUBLE(KeWaitForSingleObject)(PVOID object, KWAIT_REASON reason, KPROCESSOR_MODE mode, BOOLEAN alertable,
                                       PLARGE_INTEGER timeout)
{
    calls.waits++;
    return no_signal ? STATUS_TIMEOUT : ORIGINAL(KeWaitForSingleObject)(object, reason, mode, alertable, timeout);
}

PVOID DOUBLE(ExAllocatePoolWithTag)(POOL_TYPE type, SIZE_T size, ULONG tag);
PVOID DOUBLE(ExAllocatePoolWithTag)(POOL_TYPE type, SIZE_T size, ULONG tag)
{
    calls.pool++;
    return no_memory ? NULL : ORIGINAL(ExAllocatePoolWithTag)(type, size, tag);
}

NTSTATUS DOUBLE(NtSetEvent)(HANDLE event, PLONG previous);
NTSTATUS DOUBLE(NtSetEvent)(HANDLE event, PLONG previous)
{
    calls.nt_set++;
    return no_signal ? STATUS_UNSUCCESSFUL : ORIGINAL(NtSetEvent)(event, previous);
}

NTSTATUS DOUBLE(RtlEnterCriticalSection)(PRTL_CRITICAL_SECTION section);
NTSTATUS DOUBLE(RtlEnterCriticalSection)(PRTL_CRITICAL_SECTION section)
{
    calls.enters++;
    return ORIGINAL(RtlEnterCriticalSection)(section);
}

static void expect(int condition, const char *what)
{
    static int number;
    printf("%s %d - %s\n", condition ? "ok" : "not ok", ++number, what);
    if (!condition) {
        printf("1..%d\n", number);
        exit(1);
    }
}

static VOID CALLBACK signal(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)work;
    SetEvent(context);
}

/* By functions of the library that call those above. */
static void use_the_library(void)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL);
    RTL_RESOURCE resource;
    PTP_WORK work = CreateThreadpoolWork(signal, event, NULL);
    expect(SetEvent(event) && WaitForSingleObject(event, 0) == WAIT_OBJECT_0, "the library's SetEvent sets the event");
    SubmitThreadpoolWork(work);
    expect(WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0, "so does a callback of the pool");
    CloseThreadpoolWork(work);
    RtlInitializeResource(&resource);
    expect(RtlAcquireResourceExclusive(&resource, TRUE), "a resource of the library's, which has a critical section");
    RtlReleaseResource(&resource);
    RtlDeleteResource(&resource);
    CloseHandle(event);
}

int main(void)
{
    RTL_CRITICAL_SECTION section;
    HANDLE handle = CreateEventA(NULL, TRUE, FALSE, NULL);
    KEVENT event;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    RtlInitializeCriticalSection(&section);
    memset(&calls, 0, sizeof(calls));
    expect(driver_finish(&event) == DRIVER_DONE && driver_notify(handle, &section) == DRIVER_DONE,
           "doubles that call the originals");
    expect(calls.set == 1 && calls.waits == 1 && calls.pool == 1 && calls.nt_set == 1 && calls.enters == 1,
           "the code under test has called each double once, the library none");
    no_signal = 1;
    expect(driver_finish(&event) == DRIVER_NOT_SIGNALED && driver_notify(handle, &section) == DRIVER_NOT_SIGNALED,
           "doubles that fail");
    no_memory = 1;
    expect(driver_finish(&event) == DRIVER_NO_MEMORY, "no memory");
    memset(&calls, 0, sizeof(calls));
    use_the_library();
    expect(calls.set == 0 && calls.waits == 0 && calls.pool == 0 && calls.nt_set == 0 && calls.enters == 0,
           "the library called none of them");
    /* Variables of the library are the same for both, although a program may have the copy. */
    expect(ObGetObjectType(PsGetCurrentThread()) == *PsThreadType, "exported variables");
    RtlDeleteCriticalSection(&section);
    CloseHandle(handle);
    puts("1..9");
    return 0;
}
