/* System services: nothing is half done without memory; signal and wait; exits that other threads observe. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

static LARGE_INTEGER soon = {.QuadPart = -10000};
static HANDLE event, port, reserve;

/* A handle table, the directory and other one-time allocations. */
static void setup(void)
{
    LabAssert(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE) == STATUS_SUCCESS);
    LabAssert(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1) == STATUS_SUCCESS);
}

static void close_if_made(NTSTATUS status, HANDLE handle)
{
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INSUFFICIENT_RESOURCES || status == STATUS_NO_MEMORY);
    if (status == STATUS_SUCCESS)
        LabAssert(NtClose(handle) == STATUS_SUCCESS);
}

static void creator(void)
{
    static WCHAR text[] = u"\\BaseNamedObjects\\lab";
    UNICODE_STRING name = {.Length = sizeof(text) - sizeof(WCHAR), .MaximumLength = sizeof(text), .Buffer = text};
    OBJECT_ATTRIBUTES named = {.Length = sizeof(named), .ObjectName = &name};
    HANDLE handle;
    NTSTATUS status;
    switch (LabChoose(8)) {
    case 0:
        status = NtCreateEvent(&handle, EVENT_ALL_ACCESS, &named, NotificationEvent, FALSE);
        break;
    case 1:
        status = NtCreateMutant(&handle, MUTANT_ALL_ACCESS, NULL, TRUE);
        break;
    case 2:
        status = NtCreateTimer(&handle, TIMER_ALL_ACCESS, NULL, NotificationTimer);
        break;
    case 3:
        status = NtCreateIoCompletion(&handle, IO_COMPLETION_ALL_ACCESS, NULL, 0);
        break;
    case 4:
        status = NtCreateKeyedEvent(&handle, KEYEDEVENT_ALL_ACCESS, NULL, 0);
        break;
    case 5:
        status = NtCreateWaitCompletionPacket(&handle, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL);
        break;
    case 6:
        status = NtAllocateReserveObject(&handle, NULL, MemoryReserveIoCompletion);
        break;
    default:
        status = NtDuplicateObject(NtCurrentProcess(), event, NtCurrentProcess(), &handle, 0, 0, DUPLICATE_SAME_ACCESS);
        break;
    }
    close_if_made(status, handle);
}

static void setup_name(void)
{
    static WCHAR text[] = u"\\BaseNamedObjects\\lab";
    UNICODE_STRING name = {.Length = sizeof(text) - sizeof(WCHAR), .MaximumLength = sizeof(text), .Buffer = text};
    OBJECT_ATTRIBUTES named = {.Length = sizeof(named), .ObjectName = &name};
    HANDLE handle;
    setup();
    LabAssert(NtCreateEvent(&handle, EVENT_ALL_ACCESS, &named, NotificationEvent, FALSE) == STATUS_SUCCESS);
    NtClose(handle);
}
LAB_SCENARIO(service_no_memory, .Setup = setup_name, .Threads = {creator}, .AllocationFailures = 2,
             .Flags = LAB_CHECK_LEAKS);

/* A packet without memory was not posted; with a reserve it always is. */
static int posted, taken;

static void setup_reserve(void)
{
    setup();
    LabAssert(NtAllocateReserveObject(&reserve, NULL, MemoryReserveIoCompletion) == STATUS_SUCCESS);
}

static void poster(void)
{
    NTSTATUS status = NtSetIoCompletion(port, ULongToPtr(1), NULL, STATUS_SUCCESS, 0);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INSUFFICIENT_RESOURCES);
    posted += status == STATUS_SUCCESS;
    LabAssert(NtSetIoCompletionEx(port, reserve, ULongToPtr(2), NULL, STATUS_SUCCESS, 0) == STATUS_SUCCESS);
    posted += 1;
}

static void remover(void)
{
    PVOID key, context;
    IO_STATUS_BLOCK block;
    taken = NtRemoveIoCompletion(port, &key, &context, &block, &soon) == STATUS_SUCCESS;
}

static void all_are_there(void)
{
    IO_COMPLETION_BASIC_INFORMATION information = {0};
    NtQueryIoCompletion(port, IoCompletionBasicInformation, &information, sizeof(information), NULL);
    LabAssert(taken + information.Depth == posted && posted >= 1);
}
LAB_SCENARIO(port_no_memory, .Setup = setup_reserve, .Threads = {poster, remover}, .Finish = all_are_there,
             .AllocationFailures = 1);

/* The reserve is one packet: a second post before its removal is refused, a later one is not. */
static int refused;

static void reserve_poster(void)
{
    NTSTATUS status = NtSetIoCompletionEx(port, reserve, ULongToPtr(2), NULL, STATUS_SUCCESS, 0);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_PARAMETER_2);
    __atomic_fetch_add(status == STATUS_SUCCESS ? &posted : &refused, 1, __ATOMIC_RELAXED);
}

static void none_was_lost(void)
{
    LabAssert(posted + refused == 2);
    all_are_there();
}
LAB_SCENARIO(port_reserve, .Setup = setup_reserve, .Threads = {reserve_poster, reserve_poster, remover},
             .Finish = none_was_lost, .Flags = LAB_LARGE);

/* A removal that an APC interrupts has taken nothing. */
static HANDLE id_of_first(void)
{
    return ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread());
}

static VOID routine(PVOID argument1, PVOID argument2, PVOID argument3)
{
    UNREFERENCED_PARAMETER(argument2);
    UNREFERENCED_PARAMETER(argument3);
    *(int *)argument1 += 1;
}

static int apcs;
static NTSTATUS removed;

static void alertable_remover(void)
{
    FILE_IO_COMPLETION_INFORMATION found;
    ULONG count = 0;
    removed = NtRemoveIoCompletionEx(port, &found, 1, &count, NULL, TRUE);
    LabAssert(removed == STATUS_SUCCESS || removed == STATUS_USER_APC);
    taken = removed == STATUS_SUCCESS;
    LabAssert(apcs == !taken);
}

static void queue_apc(void)
{
    OBJECT_ATTRIBUTES attributes = {.Length = sizeof(attributes)};
    CLIENT_ID id = {.UniqueThread = id_of_first()};
    HANDLE thread;
    if (NtOpenThread(&thread, THREAD_SET_CONTEXT, &attributes, &id) == STATUS_SUCCESS) {
        NtQueueApcThread(thread, routine, &apcs, NULL, NULL);
        NtClose(thread);
    }
}

static void post_one(void)
{
    posted = NtSetIoCompletion(port, ULongToPtr(1), NULL, STATUS_SUCCESS, 0) == STATUS_SUCCESS;
}
LAB_SCENARIO(port_apc, .Setup = setup, .Threads = {alertable_remover, queue_apc, post_one}, .Finish = all_are_there,
             .Flags = LAB_LARGE | LAB_RUN_EXIT);

/* Signal and wait: the two threads alternate, and neither signal is lost. */
static HANDLE other;
static int turn;

static void setup_turns(void)
{
    setup();
    LabAssert(NtCreateEvent(&other, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE) == STATUS_SUCCESS);
}

static void first_player(void)
{
    turn = 1;
    LabAssert(NtSignalAndWaitForSingleObject(event, other, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(turn == 2);
}

static void second_player(void)
{
    LabAssert(NtWaitForSingleObject(event, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(turn == 1);
    turn = 2;
    NtSetEvent(other, NULL);
}
LAB_SCENARIO(signal_and_wait, .Setup = setup_turns, .Threads = {first_player, second_player}, .Flags = LAB_LARGE);

/* A thread that exits: its waiter sees what it did, and a lookup finds it or not. */
static int done;

static VOID *unused;

static NTSTATUS thread_routine(PVOID argument)
{
    *(int *)argument = 1;
    return 7;
}

static void creator_of_thread(void)
{
    HANDLE thread;
    THREAD_BASIC_INFORMATION information;
    NTSTATUS status = NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), (PVOID)thread_routine,
                                       &done, 0, 0, 0, 0, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INSUFFICIENT_RESOURCES || status == STATUS_NO_MEMORY);
    if (status != STATUS_SUCCESS)
        return;
    LabAssert(NtWaitForSingleObject(thread, FALSE, NULL) == STATUS_SUCCESS);
    LabAssert(done == 1);
    LabAssert(NtQueryInformationThread(thread, ThreadBasicInformation, &information, sizeof(information), NULL) ==
              STATUS_SUCCESS);
    LabAssert(information.ExitStatus == 7);
    LabAssert(NtClose(thread) == STATUS_SUCCESS);
}
LAB_SCENARIO(thread_end_is_seen, .Setup = setup, .Threads = {creator_of_thread}, .AllocationFailures = 2);

static void ending_thread(void)
{
    unused = NULL;
    LabExitThread();
}

static void looker(void)
{
    PETHREAD thread;
    if (PsLookupThreadByThreadId(id_of_first(), &thread) == STATUS_SUCCESS) {
        LabAssert(PsGetThreadId(thread) == id_of_first());
        KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, NULL);
        LabAssert(PsIsThreadTerminating(thread));
        ObDereferenceObject(thread);
    }
}
LAB_SCENARIO(thread_lookup_against_end, .Setup = setup, .Threads = {ending_thread, looker});
LAB_SCENARIO(thread_lookups_against_end, .Setup = setup, .Threads = {ending_thread, looker, looker},
             .Flags = LAB_LARGE);

/* User-mode timers: the APC runs in an alertable wait of the thread that set the timer, once, or the timer was
   cancelled. */
static HANDLE timer;

static void setup_timer(void)
{
    setup();
    LabAssert(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, NotificationTimer) == STATUS_SUCCESS);
}

static VOID timer_routine(PVOID context, ULONG low, LONG high)
{
    UNREFERENCED_PARAMETER(low);
    UNREFERENCED_PARAMETER(high);
    *(int *)context += 1;
}

static void set_and_cancel(void)
{
    BOOLEAN state = FALSE;
    LabAssert(NtSetTimer(timer, &soon, timer_routine, &apcs, FALSE, 0, NULL) == STATUS_SUCCESS);
    LabAssert(NtCancelTimer(timer, &state) == STATUS_SUCCESS);
    NtTestAlert();
    LabAssert(apcs == 0); /* cancelling also removes the APC */
}

static void set_and_wait(void)
{
    LabAssert(NtSetTimer(timer, &soon, timer_routine, &apcs, FALSE, 0, NULL) == STATUS_SUCCESS);
    NTSTATUS status = NtWaitForSingleObject(timer, TRUE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_USER_APC);
    NtTestAlert();
    LabAssert(apcs == 1);
}
LAB_SCENARIO(timer_apc_cancelled, .Setup = setup_timer, .Threads = {set_and_cancel});
LAB_SCENARIO(timer_apc, .Setup = setup_timer, .Threads = {set_and_wait});

/* The thread that set it exits: its timers are cancelled, no APC runs, and nothing references the timer any longer. */
static void set_and_end(void)
{
    HANDLE mine;
    LabAssert(NtCreateTimer(&mine, TIMER_ALL_ACCESS, NULL, NotificationTimer) == STATUS_SUCCESS);
    NtSetTimer(mine, &soon, timer_routine, &apcs, FALSE, 0, NULL);
    NtClose(mine);
    LabExitThread();
}

static void no_apc_ran(void)
{
    LabAssert(apcs == 0);
}
LAB_SCENARIO(timer_apc_against_end, .Setup = setup_timer, .Threads = {set_and_end}, .Finish = no_apc_ran,
             .Flags = LAB_CHECK_LEAKS);
