/* Completion ports: packets are conserved, in order; closing the port wakes its waiters. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

#include "nt/ntp.h"

#define KEYS 3

static HANDLE port;
static int taken[KEYS];

static void setup(void)
{
    LabAssert(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 8) == STATUS_SUCCESS);
}

/* One thread at a time: another one gets its packet when the first has exited. */
static void setup_narrow(void)
{
    LabAssert(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1) == STATUS_SUCCESS);
}

static void post(ULONG key)
{
    LabAssert(NtSetIoCompletion(port, ULongToPtr(key), NULL, STATUS_SUCCESS, key * 10) == STATUS_SUCCESS);
}

static void post_first(void)
{
    post(1);
}

static void post_second(void)
{
    post(2);
}

static NTSTATUS take(PLARGE_INTEGER timeout)
{
    PVOID key, context;
    IO_STATUS_BLOCK block;
    NTSTATUS status = NtRemoveIoCompletion(port, &key, &context, &block, timeout);
    if (status == STATUS_SUCCESS) {
        LabAssert(PtrToUlong(key) < KEYS && block.Information == PtrToUlong(key) * 10);
        LabAssert(__atomic_fetch_add(&taken[PtrToUlong(key)], 1, __ATOMIC_RELAXED) == 0);
    }
    return status;
}

static void remover(void)
{
    LabAssert(take(NULL) == STATUS_SUCCESS);
}

static void remove_both(void)
{
    remover();
    remover();
}

static LONG depth(void)
{
    IO_COMPLETION_BASIC_INFORMATION information = {0};
    LabAssert(NtQueryIoCompletion(port, IoCompletionBasicInformation, &information, sizeof(information), NULL) ==
              STATUS_SUCCESS);
    return information.Depth;
}

static void one_was_taken(void)
{
    LabAssert(taken[1] == 1 && depth() == 0);
}

static void both_were_taken(void)
{
    LabAssert(taken[1] == 1 && taken[2] == 1 && depth() == 0);
}
LAB_SCENARIO(port_one, .Setup = setup, .Threads = {post_first, remover}, .Finish = one_was_taken);
LAB_SCENARIO(port_two, .Setup = setup, .Threads = {post_first, post_second, remove_both}, .Finish = both_were_taken,
             .Flags = LAB_LARGE);
LAB_SCENARIO(port_two_removers, .Setup = setup, .Threads = {post_first, post_second, remover, remover},
             .Finish = both_were_taken, .Flags = LAB_LARGE);
LAB_SCENARIO(port_narrow, .Setup = setup_narrow, .Threads = {post_first, post_second, remover, remover},
             .Finish = both_were_taken, .Flags = LAB_LARGE | LAB_RUN_EXIT);

static void impatient_remover(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = take(&timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
}

static void taken_or_there(void)
{
    LabAssert(taken[1] + depth() == 1);
}
LAB_SCENARIO(port_timeout, .Setup = setup, .Threads = {post_first, impatient_remover, impatient_remover},
             .Finish = taken_or_there, .Timeouts = 1, .Flags = LAB_LARGE);

/* Several at once. */
static void remove_some(void)
{
    FILE_IO_COMPLETION_INFORMATION found[2];
    ULONG count = 0;
    LabAssert(NtRemoveIoCompletionEx(port, found, 2, &count, NULL, FALSE) == STATUS_SUCCESS);
    LabAssert(count == 1 || count == 2);
    for (ULONG i = 0; i < count; i++)
        taken[PtrToUlong(found[i].KeyContext)] += 1;
}

static void all_are_accounted_for(void)
{
    LabAssert(taken[1] <= 1 && taken[2] <= 1 && taken[1] + taken[2] + depth() == 2);
}
LAB_SCENARIO(port_several, .Setup = setup, .Threads = {post_first, post_second, remove_some},
             .Finish = all_are_accounted_for, .Flags = LAB_LARGE);

/* The last handle is closed while a thread waits, or is too late, or posts. Nothing leaks. */
static void closer(void)
{
    LabAssert(NtClose(port) == STATUS_SUCCESS);
}

static void remover_at_closed(void)
{
    NTSTATUS status = take(NULL);
    LabAssert(status == STATUS_ABANDONED || status == STATUS_INVALID_HANDLE || status == STATUS_SUCCESS);
}

static void poster_at_closed(void)
{
    NTSTATUS status = NtSetIoCompletion(port, ULongToPtr(1), NULL, STATUS_SUCCESS, 10);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
}

static void spawned_remover(void *unused)
{
    UNREFERENCED_PARAMETER(unused);
    remover_at_closed();
}

static void spawned_closer(void *unused)
{
    UNREFERENCED_PARAMETER(unused);
    closer();
}

/* The handle table is allocated for the first handle and stays; so does the memory of a packet. */
static void setup_table(void)
{
    setup();
    post(2);
    remover();
    closer();
}

/* The port belongs to this schedule, so a leak of it is reported. The packet is the one of Setup. */
static void creator(void)
{
    setup();
    unsigned first = LabSpawn(spawned_closer, NULL);
    unsigned second = LabSpawn(spawned_remover, NULL);
    poster_at_closed();
    LabJoin(first);
    LabJoin(second);
}
LAB_SCENARIO(port_close, .Setup = setup, .Threads = {closer, remover_at_closed, poster_at_closed}, .Flags = LAB_LARGE);
LAB_SCENARIO(port_close_leaves_nothing, .Setup = setup_table, .Threads = {creator}, .Flags = LAB_CHECK_LEAKS);

/* The port that a thread caches from its first call is not kept alive by that. */
static void poster_of_two_at_closed(void)
{
    poster_at_closed();
    poster_at_closed();
}

static void looker_at_closed(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    for (int i = 0; i < 2; i++) {
        PVOID key, context;
        IO_STATUS_BLOCK block;
        NTSTATUS status = NtRemoveIoCompletion(port, &key, &context, &block, &now);
        LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT || status == STATUS_ABANDONED ||
                  status == STATUS_INVALID_HANDLE);
    }
}

static void port_is_gone(void)
{
    LabAssert(NtpPortType.TotalNumberOfObjects == 0);
    LabAssert(NtSetIoCompletion(port, NULL, NULL, STATUS_SUCCESS, 0) == STATUS_INVALID_HANDLE);
}
LAB_SCENARIO(port_kept, .Setup = setup, .Threads = {poster_of_two_at_closed, closer}, .Finish = port_is_gone);
LAB_SCENARIO(port_kept_c11, .Setup = setup, .Threads = {poster_of_two_at_closed, closer}, .Finish = port_is_gone,
             .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(port_kept_tso, .Setup = setup, .Threads = {poster_of_two_at_closed, closer}, .Finish = port_is_gone,
             .Model = "tso");
LAB_SCENARIO(port_kept_by_two, .Setup = setup, .Threads = {poster_of_two_at_closed, looker_at_closed, closer},
             .Finish = port_is_gone, .Flags = LAB_LARGE);

/* Another one is cached in its place while its handle is closed. */
static HANDLE other;

static void setup_other(void)
{
    setup();
    LabAssert(NtCreateIoCompletion(&other, IO_COMPLETION_ALL_ACCESS, NULL, 8) == STATUS_SUCCESS);
}

static void poster_to_both(void)
{
    poster_at_closed();
    for (ULONG i = 0; i < 2; i++)
        LabAssert(NtSetIoCompletion(other, ULongToPtr(i), NULL, STATUS_SUCCESS, 0) == STATUS_SUCCESS);
}

static void other_is_left(void)
{
    LabAssert(NtpPortType.TotalNumberOfObjects == 1);
    LabAssert(NtClose(other) == STATUS_SUCCESS);
    port_is_gone();
}
LAB_SCENARIO(port_kept_exchanged, .Setup = setup_other, .Threads = {poster_to_both, closer}, .Finish = other_is_left);

/* A port is a queue. */
static void record_post(ULONG key)
{
    unsigned operation = LabBegin(0, key);
    post(key);
    LabEnd(operation, 0);
}

static void recorded_poster(void)
{
    record_post(1);
    record_post(2);
}

static void recorded_remover(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};
    for (int i = 0; i < 2; i++) {
        PVOID key = NULL, context;
        IO_STATUS_BLOCK block;
        unsigned operation = LabBegin(1, 0);
        NTSTATUS status = NtRemoveIoCompletion(port, &key, &context, &block, &now);
        LabEnd(operation, status == STATUS_SUCCESS ? (intptr_t)PtrToUlong(key) : 0);
    }
}

static void is_a_queue(void)
{
    LabCheckLinearizable(&LabModelQueue);
}
LAB_SCENARIO(port_history, .Setup = setup, .Threads = {recorded_poster, recorded_remover}, .Finish = is_a_queue);
LAB_SCENARIO(port_history_two, .Setup = setup, .Threads = {recorded_poster, recorded_remover, recorded_remover},
             .Finish = is_a_queue, .Flags = LAB_LARGE);
