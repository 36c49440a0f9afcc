/* The port that a thread caches from one call to the next serves that handle and that port alone. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

#include "../scenarios/target.h"

#include "nt/ntp.h"
#include "ob/obp.h"

static HANDLE port, other;
static PVOID object;
static int again;
static KAPC apc;

static void setup(void)
{
    LabAssert(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 8) == STATUS_SUCCESS);
    LabAssert(NtCreateIoCompletion(&other, IO_COMPLETION_ALL_ACCESS, NULL, 8) == STATUS_SUCCESS);
}

static NTSTATUS post(HANDLE to)
{
    return NtSetIoCompletion(to, NULL, NULL, STATUS_SUCCESS, 0);
}

static LONG depth(HANDLE of)
{
    IO_COMPLETION_BASIC_INFORMATION information = {0};
    LabAssert(NtQueryIoCompletion(of, IoCompletionBasicInformation, &information, sizeof(information), NULL) ==
              STATUS_SUCCESS);
    return information.Depth;
}

/* The handle is closed and opened again for the same port, with other rights: the new ones count. It reuses its entry
   at once, which takes many handles otherwise. */
static void setup_two_handles(void)
{
    setup();
    LabAssert(ObReferenceObjectByHandle(port, 0, NULL, KernelMode, &object, NULL) == STATUS_SUCCESS);
    LabAssert(NtClose(other) == STATUS_SUCCESS);
    LabAssert(NtDuplicateObject(NtCurrentProcess(), port, NtCurrentProcess(), &other, 0, 0, DUPLICATE_SAME_ACCESS) ==
              STATUS_SUCCESS);
}

static void open_again(void)
{
    LabAssert(NtClose(port) == STATUS_SUCCESS);
    ObpOpenReservedHandle(port, object, 0, IO_COMPLETION_QUERY_STATE);
    __atomic_store_n(&again, 1, __ATOMIC_RELEASE);
}

static void post_before_and_after(void)
{
    NTSTATUS status = post(port);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE || status == STATUS_ACCESS_DENIED);
    while (!__atomic_load_n(&again, __ATOMIC_ACQUIRE))
        ;
    LabAssert(post(port) == STATUS_ACCESS_DENIED);
    LabAssert(depth(port) == (status == STATUS_SUCCESS));
}
LAB_SCENARIO(port_kept_opened_again, .Setup = setup_two_handles, .Threads = {post_before_and_after, open_again});

/* An APC that interrupts a call uses another port. */
static VOID post_to_other(PVOID context, PVOID argument1, PVOID argument2)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
    LabAssert(post(other) == STATUS_SUCCESS);
}

static VOID come_in_between(PKAPC self, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1, PVOID *argument2)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(routine);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
}

static void post_to_both(void)
{
    announce();
    LabAssert(post(port) == STATUS_SUCCESS);
    LabAssert(post(other) == STATUS_SUCCESS);
    while (!__atomic_load_n(&again, __ATOMIC_ACQUIRE))
        ;
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
}

static void interrupt(void)
{
    KeInitializeApc(&apc, find_target(), OriginalApcEnvironment, come_in_between, NULL, post_to_other, KernelMode,
                    NULL);
    LabAssert(KeInsertQueueApc(&apc, NULL, NULL, 0));
    __atomic_store_n(&again, 1, __ATOMIC_RELEASE);
}

static void each_has_its_own(void)
{
    LabAssert(depth(port) == 1 && depth(other) == 2);
}
LAB_SCENARIO(port_kept_interrupted, .Setup = setup, .Threads = {post_to_both, interrupt}, .Finish = each_has_its_own);

/* The thread switches to the other port while the first one is closed: nothing is taken from its cache at that moment.
   */
static void post_to_one_then_other(void)
{
    NTSTATUS status = post(port);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
    LabAssert(post(other) == STATUS_SUCCESS);
    LabAssert(post(other) == STATUS_SUCCESS);
}

static void close_one(void)
{
    LabAssert(NtClose(port) == STATUS_SUCCESS);
}

static void other_is_there_until_closed(void)
{
    LabAssert(depth(other) == 2 && NtpPortType.TotalNumberOfObjects == 1);
    LabAssert(NtClose(other) == STATUS_SUCCESS);
    LabAssert(NtpPortType.TotalNumberOfObjects == 0);
}
LAB_SCENARIO(port_kept_then_other, .Setup = setup, .Threads = {post_to_one_then_other, close_one},
             .Finish = other_is_there_until_closed);

/* Both are closed, one after the other. */
static void post_while_open(void)
{
    HANDLE to[] = {port, other, other};
    for (ULONG i = 0; i < ARRAYSIZE(to); i++) {
        NTSTATUS status = post(to[i]);
        LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
    }
}

static void close_both(void)
{
    LabAssert(NtClose(port) == STATUS_SUCCESS);
    LabAssert(NtClose(other) == STATUS_SUCCESS);
}

static void none_is_there(void)
{
    LabAssert(NtpPortType.TotalNumberOfObjects == 0);
}
LAB_SCENARIO(port_kept_then_none, .Setup = setup, .Threads = {post_while_open, close_both}, .Finish = none_is_there);

/*
 * Two threads close the two handles of one port, while a third one calls. Either closer may remove the reference from
 * the third one's slot, or find the slot in use and leave it to the end of the call; in all cases the port is freed
 * with its last handle.
 */
static void setup_pair(void)
{
    setup();
    LabAssert(NtClose(other) == STATUS_SUCCESS);
    LabAssert(NtDuplicateObject(NtCurrentProcess(), port, NtCurrentProcess(), &other, 0, 0, DUPLICATE_SAME_ACCESS) ==
              STATUS_SUCCESS);
}

static void close_other(void)
{
    LabAssert(NtClose(other) == STATUS_SUCCESS);
}

static void post_twice(void)
{
    HANDLE to[] = {port, other};
    for (ULONG i = 0; i < ARRAYSIZE(to); i++) {
        NTSTATUS status = post(to[i]);
        LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
    }
}

static void post_once(void)
{
    NTSTATUS status = post(port);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
}
LAB_SCENARIO(port_kept_two_closers, .Setup = setup_pair, .Threads = {post_once, close_one, close_other},
             .Finish = none_is_there);
LAB_SCENARIO(port_kept_two_closers_twice, .Setup = setup_pair, .Threads = {post_twice, close_one, close_other},
             .Finish = none_is_there);

/* A closer has found the slot not in use when the thread keeps the port again, by the other handle: it takes only what it has
   marked. */
LAB_SCENARIO(port_kept_two_closers_again, .Setup = setup_pair, .Threads = {post_while_open, close_one, close_other},
             .Finish = none_is_there);
LAB_SCENARIO(port_kept_two_closers_c11, .Setup = setup_pair, .Threads = {post_once, close_one, close_other},
             .Finish = none_is_there, .Model = "c11");
