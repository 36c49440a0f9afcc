/* A thread inside the C library may hold the heap's lock: it is neither suspended nor ended there, and stops later. */
#include <interlock/lab.h>

#include <ntddk.h>

#include "target.h"

static uint32_t heap;
static int go, done;

/* Its interrupt finds nothing to do, or the request. A deferred one may arrive after the thread was resumed. */
static void allocator(void)
{
    announce();
    LabEnterLibc();
    __atomic_store_n(&heap, 1, __ATOMIC_RELAXED);
    HalInterruptThread(HalCurrentThreadId());
    __atomic_store_n(&heap, 0, __ATOMIC_RELEASE);
    LabWakeWord(&heap, 1);
    LabLeaveLibc();
    while (!__atomic_load_n(&go, __ATOMIC_RELAXED))
        ;
    done = 1;
}

static void await_heap(void)
{
    while (__atomic_load_n(&heap, __ATOMIC_ACQUIRE) != 0)
        LabWaitOnWord(&heap, 1);
}

static void suspender(void)
{
    PKTHREAD thread = find_target();
    KeSuspendThread(thread);
    while (!is_stopped(thread))
        ;
    await_heap();
    LabAssert(KeResumeThread(thread) == 1);
    __atomic_store_n(&go, 1, __ATOMIC_RELAXED);
}

static void it_went_on(void)
{
    LabAssert(done);
}
LAB_SCENARIO(suspend_in_heap, .Threads = {allocator, suspender}, .Finish = it_went_on);

static void terminator(void)
{
    PKTHREAD thread = find_target();
    LabAssert(KiTerminateThread(thread, 1) == STATUS_SUCCESS);
    await_heap();
    __atomic_store_n(&go, 1, __ATOMIC_RELAXED);
}

LAB_SCENARIO(terminate_in_heap, .Threads = {allocator, terminator}, .Flags = LAB_PRECISE);
