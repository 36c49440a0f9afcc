/*
 * nomemory.c: creating objects while the heap refuses. A call succeeds, or reports that there is no memory and leaves
 * nothing behind: handles and leaks are counted at the end of the run.
 */
#include "soak.h"

static bool is_lack(NTSTATUS status)
{
    return status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES;
}

/* One handle for what succeeded. */
static void keep(NTSTATUS status, HANDLE handle)
{
    heap_gives();
    require(status == STATUS_SUCCESS || is_lack(status));
    if (status == STATUS_SUCCESS)
        require(NtClose(handle) == STATUS_SUCCESS);
}

static void make_kernel_object(test_random *random)
{
    HANDLE handle = NULL;
    NTSTATUS status;

    switch (random_below(random, 7)) {
    case 0:
        status = NtCreateEvent(&handle, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
        break;
    case 1:
        status = NtCreateMutant(&handle, MUTANT_ALL_ACCESS, NULL, one_in(random, 2));
        break;
    case 2:
        status = NtCreateSemaphore(&handle, SEMAPHORE_ALL_ACCESS, NULL, 0, 1);
        break;
    case 3:
        status = NtCreateTimer(&handle, TIMER_ALL_ACCESS, NULL, NotificationTimer);
        break;
    case 4:
        status = NtCreateIoCompletion(&handle, IO_COMPLETION_ALL_ACCESS, NULL, 0);
        break;
    case 5:
        status = NtCreateWaitCompletionPacket(&handle, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL);
        break;
    default:
        status = NtDuplicateObject(NtCurrentProcess(), NtCurrentThread(), NtCurrentProcess(), &handle, 0, 0,
                                   DUPLICATE_SAME_ACCESS);
        break;
    }
    keep(status, handle);
}

static void make_named(test_random *random)
{
    char name[32];
    HANDLE handle;

    snprintf(name, sizeof(name), "soak-refused-%u", (unsigned)random_below(random, 2));
    handle = CreateMutexA(NULL, FALSE, name);
    heap_gives();
    require(handle != NULL || GetLastError() == ERROR_NOT_ENOUGH_MEMORY || GetLastError() == ERROR_NO_SYSTEM_RESOURCES);
    if (handle != NULL)
        require(CloseHandle(handle));
}

static DWORD WINAPI end_at_once(LPVOID argument)
{
    (void)argument;
    return 0;
}

static void make_thread(void)
{
    HANDLE thread = CreateThread(NULL, SMALL_STACK, end_at_once, NULL, 0, NULL);

    heap_gives();
    if (thread == NULL) {
        require(GetLastError() == ERROR_NOT_ENOUGH_MEMORY || GetLastError() == ERROR_NO_SYSTEM_RESOURCES);
        return;
    }
    require(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
    require(CloseHandle(thread));
}

static void make_locks(test_random *random)
{
    PEX_CACHE_AWARE_PUSH_LOCK cache_aware = NULL;
    PEX_PUSH_LOCK_AUTO_EXPAND auto_expand = NULL;
    PEX_RUNDOWN_REF_CACHE_AWARE rundown = NULL;
    PVOID memory = NULL;

    switch (random_below(random, 4)) {
    case 0:
        cache_aware = ExAllocateCacheAwarePushLock();
        break;
    case 1:
        auto_expand = ExAllocateAutoExpandPushLock(0);
        break;
    case 2:
        rundown = ExAllocateCacheAwareRundownProtection(NonPagedPoolNx, POOL_TAG);
        break;
    default:
        memory = ExAllocatePoolWithTag(NonPagedPoolNx, 1 + random_below(random, 10000), POOL_TAG);
        break;
    }
    heap_gives();
    if (cache_aware != NULL)
        ExFreeCacheAwarePushLock(cache_aware);
    if (auto_expand != NULL)
        ExFreeAutoExpandPushLock(auto_expand);
    if (rundown != NULL)
        ExFreeCacheAwareRundownProtection(rundown);
    if (memory != NULL)
        ExFreePoolWithTag(memory, POOL_TAG);
}

static VOID CALLBACK no_work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
}

static void make_pool_objects(test_random *random)
{
    PTP_WORK work = NULL;
    PTP_POOL pool = NULL;
    PTP_CLEANUP_GROUP group = NULL;

    switch (random_below(random, 3)) {
    case 0:
        work = CreateThreadpoolWork(no_work, NULL, NULL);
        break;
    case 1:
        pool = CreateThreadpool(NULL);
        break;
    default:
        group = CreateThreadpoolCleanupGroup();
        break;
    }
    heap_gives();
    if (work != NULL)
        CloseThreadpoolWork(work);
    if (pool != NULL)
        CloseThreadpool(pool);
    if (group != NULL)
        CloseThreadpoolCleanupGroup(group);
}

static void post_packet(void)
{
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
    BOOL posted;

    if (port == NULL) {
        heap_gives();
        return;
    }
    posted = PostQueuedCompletionStatus(port, 0, 0, NULL);
    heap_gives();
    require(posted || GetLastError() == ERROR_NOT_ENOUGH_MEMORY || GetLastError() == ERROR_NO_SYSTEM_RESOURCES);
    require(CloseHandle(port)); /* with the packet in it */
}

static void no_memory_step(test_random *random)
{
    heap_refuses((int)random_below(random, 4));
    switch (random_below(random, 8)) {
    case 0:
        make_named(random);
        break;
    case 1:
        if (one_in(random, 4))
            make_thread();
        break;
    case 2:
        make_locks(random);
        break;
    case 3:
        make_pool_objects(random);
        break;
    case 4:
        post_packet();
        break;
    default:
        make_kernel_object(random);
        break;
    }
    heap_gives();
}

const soak_family no_memory_family = {.name = "no memory", .weight = 4, .step = no_memory_step};
