/* Suspension by handle: the count, and a suspended thread that is terminated. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

static KEVENT event;
static int here, never;

static void setup(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
}

/* In a wait that is converted, in one that is not, or running; only termination ends it. */
static void victim(void)
{
    LARGE_INTEGER forever = {.QuadPart = -MAXLONGLONG};
    unsigned how = LabChoose(3);

    KeGetCurrentThread();
    __atomic_store_n(&here, 1, __ATOMIC_RELEASE);
    if (how == 0)
        NtDelayExecution(FALSE, &forever);
    else if (how == 1)
        KeWaitForSingleObject(&event, UserRequest, UserMode, FALSE, NULL);
    while (!__atomic_load_n(&never, __ATOMIC_ACQUIRE))
        ;
}

/* The first thread, once it has started. */
static NTSTATUS open_first(HANDLE *thread)
{
    OBJECT_ATTRIBUTES attributes = {.Length = sizeof(attributes)};
    CLIENT_ID id = {.UniqueThread = ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread())};

    while (!__atomic_load_n(&here, __ATOMIC_ACQUIRE))
        ;
    return NtOpenThread(thread, THREAD_ALL_ACCESS, &attributes, &id);
}

static ULONG suspend_count(HANDLE thread)
{
    ULONG count;

    LabAssert(NtQueryInformationThread(thread, ThreadSuspendCount, &count, sizeof(count), NULL) == STATUS_SUCCESS);
    return count;
}

static void terminator(void)
{
    HANDLE thread;
    ULONG before;

    LabAssert(open_first(&thread) == STATUS_SUCCESS);
    LabAssert(NtSuspendThread(thread, &before) == STATUS_SUCCESS && before == 0);
    LabAssert(suspend_count(thread) == 1);
    LabAssert(NtTerminateThread(thread, STATUS_CANCELLED) == STATUS_SUCCESS);
    LabAssert(suspend_count(thread) == 0);
    LabAssert(NtSuspendThread(thread, &before) == STATUS_THREAD_IS_TERMINATING);
    LabAssert(suspend_count(thread) == 0);
    LabAssert(NtWaitForSingleObject(thread, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(NtClose(thread) == STATUS_SUCCESS);
}
LAB_SCENARIO(terminate_suspended, .Setup = setup, .Threads = {victim, terminator}, .Flags = LAB_RUN_EXIT);

/* It exits by itself, and the suspension reaches it before or during the exit. */
static void mortal(void)
{
    KeGetCurrentThread();
    __atomic_store_n(&here, 1, __ATOMIC_RELEASE);
}

/* NULL: too late, it has exited. It may also be about to. */
static HANDLE suspend_first(void)
{
    HANDLE thread;
    NTSTATUS status = open_first(&thread);

    if (status == STATUS_INVALID_CID)
        return NULL;
    LabAssert(status == STATUS_SUCCESS);
    status = NtSuspendThread(thread, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_THREAD_IS_TERMINATING);
    return thread;
}

static void end_and_close(HANDLE thread)
{
    LabAssert(NtTerminateThread(thread, STATUS_CANCELLED) == STATUS_SUCCESS);
    LabAssert(NtWaitForSingleObject(thread, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(NtClose(thread) == STATUS_SUCCESS);
}

static void terminator_of_mortal(void)
{
    HANDLE thread = suspend_first();

    if (thread == NULL)
        return;
    end_and_close(thread);
}
LAB_SCENARIO(terminate_suspended_at_its_end, .Threads = {mortal, terminator_of_mortal}, .Flags = LAB_RUN_EXIT);

/* It calls nothing, so every stop is an interrupt's: none may be lost because another one is being served. */
static void runner(void)
{
    KeGetCurrentThread();
    __atomic_store_n(&here, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&never, __ATOMIC_ACQUIRE))
        ;
}

static void suspender(void)
{
    HANDLE thread = suspend_first();

    if (thread == NULL)
        return;
    NtResumeThread(thread, NULL);
    LabAssert(NtClose(thread) == STATUS_SUCCESS);
}

static void executioner(void)
{
    HANDLE thread;

    LabAssert(open_first(&thread) == STATUS_SUCCESS);
    end_and_close(thread);
}
LAB_SCENARIO(terminate_while_interrupted, .Threads = {runner, executioner, suspender},
             .Flags = LAB_LARGE | LAB_MAY_BLOCK | LAB_RUN_EXIT);

/* It is ended after a service that it was in: what the service has referenced is dereferenced, so closed objects are deleted. */
static HANDLE objects[4], others[4]; /* semaphores, ports, reserve objects, packets that wait */

static void make_objects_of(HANDLE *made)
{
    LabAssert(NtCreateSemaphore(&made[0], SEMAPHORE_ALL_ACCESS, NULL, 0, 1) == STATUS_SUCCESS);
    LabAssert(NtCreateIoCompletion(&made[1], IO_COMPLETION_ALL_ACCESS, NULL, 0) == STATUS_SUCCESS);
    LabAssert(NtAllocateReserveObject(&made[2], NULL, MemoryReserveIoCompletion) == STATUS_SUCCESS);
    LabAssert(NtCreateWaitCompletionPacket(&made[3], WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL) == STATUS_SUCCESS);
}

static void make_objects(void)
{
    make_objects_of(objects);
    make_objects_of(others);
}

#define CALLS 4 /* so many that the request for the end comes within one of them */

static void query_again_and_again(void)
{
    SEMAPHORE_BASIC_INFORMATION information;

    KeGetCurrentThread();
    __atomic_store_n(&here, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < CALLS; i++)
        NtQuerySemaphore(objects[0], SemaphoreBasicInformation, &information, sizeof(information), NULL);
    while (!__atomic_load_n(&never, __ATOMIC_ACQUIRE))
        ;
}

static void post_again_and_again(void)
{
    KeGetCurrentThread();
    __atomic_store_n(&here, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < CALLS; i++)
        NtSetIoCompletionEx(objects[1], objects[2], NULL, NULL, STATUS_SUCCESS, 0);
    while (!__atomic_load_n(&never, __ATOMIC_ACQUIRE))
        ;
}

static void cancel_again_and_again(void)
{
    KeGetCurrentThread();
    __atomic_store_n(&here, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < CALLS; i++)
        NtCancelWaitCompletionPacket(objects[3], FALSE);
    while (!__atomic_load_n(&never, __ATOMIC_ACQUIRE))
        ;
}

static ULONG objects_of_type(HANDLE handle)
{
    struct {
        OBJECT_TYPE_INFORMATION type;
        WCHAR name[32];
    } information;

    LabAssert(NtQueryObject(handle, ObjectTypeInformation, &information, sizeof(information), NULL) == STATUS_SUCCESS);
    return information.type.TotalNumberOfObjects;
}

static void are_deleted(void)
{
    for (int i = 0; i < 4; i++)
        LabAssert(NtClose(objects[i]) == STATUS_SUCCESS);
    for (int i = 0; i < 4; i++)
        LabAssert(objects_of_type(others[i]) == 1);
}
LAB_SCENARIO(terminate_in_query, .Setup = make_objects, .Threads = {query_again_and_again, executioner}, .Finish = are_deleted,
             .Flags = LAB_RUN_EXIT | LAB_PRECISE);
LAB_SCENARIO(terminate_in_post, .Setup = make_objects, .Threads = {post_again_and_again, executioner}, .Finish = are_deleted,
             .Flags = LAB_RUN_EXIT);
LAB_SCENARIO(terminate_in_cancel, .Setup = make_objects, .Threads = {cancel_again_and_again, executioner},
             .Finish = are_deleted, .Flags = LAB_RUN_EXIT);
