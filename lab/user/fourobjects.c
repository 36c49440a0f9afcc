/* Waits behind handles and the thread pool, four threads with several operations each. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "nt/ntp.h"
#include "rtl/criticalsection.h"

#include "four.h"

#define PACKETS 6

static LARGE_INTEGER soon = {.QuadPart = -10000};
static HANDLE port;
static int posted, taken;
static int seen[PACKETS];

static void add(int *count, int number)
{
    __atomic_fetch_add(count, number, __ATOMIC_RELAXED);
}

static int read_count(int *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/* Completion ports: six packets, each taken once. */
static void make_port(ULONG threads)
{
    LabAssert(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, threads) == STATUS_SUCCESS);
}

static void make_wide_port(void)
{
    make_port(8);
}

static void make_narrow_port(void)
{
    make_port(1);
}

static void post_next(void)
{
    int key = __atomic_fetch_add(&posted, 1, __ATOMIC_RELAXED);
    LabAssert(NtSetIoCompletion(port, ULongToPtr(key), NULL, STATUS_SUCCESS, 0) == STATUS_SUCCESS);
}

static void is_taken(PVOID key)
{
    LabAssert(PtrToUlong(key) < PACKETS);
    LabAssert(__atomic_fetch_add(&seen[PtrToUlong(key)], 1, __ATOMIC_RELAXED) == 0);
    add(&taken, 1);
}

static void remove_one(void)
{
    PVOID key, context;
    IO_STATUS_BLOCK block;
    LabAssert(NtRemoveIoCompletion(port, &key, &context, &block, NULL) == STATUS_SUCCESS);
    is_taken(key);
}

static void remove_all_by_two(void)
{
    while (read_count(&taken) < PACKETS) {
        FILE_IO_COMPLETION_INFORMATION found[2];
        ULONG count = 0;
        NTSTATUS status = NtRemoveIoCompletionEx(port, found, 2, &count, &soon, FALSE);
        LabAssert(status == STATUS_TIMEOUT || (status == STATUS_SUCCESS && (count == 1 || count == 2)));
        for (ULONG i = 0; status == STATUS_SUCCESS && i < count; i++)
            is_taken(found[i].KeyContext);
    }
}
FOUR_REPEAT(poster, 3, post_next())
FOUR_REPEAT(remover, 3, remove_one())

static LONG depth(void)
{
    IO_COMPLETION_BASIC_INFORMATION information = {0};
    LabAssert(NtQueryIoCompletion(port, IoCompletionBasicInformation, &information, sizeof(information), NULL) ==
              STATUS_SUCCESS);
    return information.Depth;
}

static void all_were_taken(void)
{
    LabAssert(posted == PACKETS && taken == PACKETS && depth() == 0);
}
FOUR_SCENARIO(port_4x3, poster, remover, poster, remover, .Setup = make_wide_port, .Finish = all_were_taken);
FOUR_SCENARIO(port_4x3_c11, poster, remover, poster, remover, .Setup = make_wide_port, .Finish = all_were_taken,
              .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(port_4x3_narrow, .Setup = make_narrow_port, .Threads = {poster, remover, poster, remover},
             .Finish = all_were_taken, .Flags = LAB_LARGE | LAB_RUN_EXIT);
FOUR_SCENARIO(port_4x3_batch, poster, remove_all_by_two, poster, remove_all_by_two, .Setup = make_wide_port,
              .Finish = all_were_taken, .Timeouts = 2);

/* The last handle is closed while others post and remove; each of them finds the port, or finds it closed. */
static void post_while_open(void)
{
    NTSTATUS status = NtSetIoCompletion(port, NULL, NULL, STATUS_SUCCESS, 0);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
}

static void remove_while_open(void)
{
    PVOID key, context;
    IO_STATUS_BLOCK block;
    NTSTATUS status = NtRemoveIoCompletion(port, &key, &context, &block, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_ABANDONED || status == STATUS_INVALID_HANDLE);
}

static void close_port(void)
{
    LabAssert(NtClose(port) == STATUS_SUCCESS);
}
FOUR_REPEAT(poster_while_open, 2, post_while_open())
FOUR_REPEAT(remover_while_open, 2, remove_while_open())

static void port_is_gone(void)
{
    LabAssert(NtpPortType.TotalNumberOfObjects == 0);
}
FOUR_SCENARIO(port_4x2_close, poster_while_open, remover_while_open, remover_while_open, close_port,
              .Setup = make_wide_port, .Finish = port_is_gone);

/* Wait completion packets. Six units of a semaphore come through two packets and one port; the thread that has removed
   a packet associates it again. No other may: the packet is in use until then. */
static HANDLE semaphore, packets[2];

static void associate(ULONG which)
{
    LabAssert(NtAssociateWaitCompletionPacket(packets[which], port, semaphore, ULongToPtr(which), NULL, STATUS_SUCCESS,
                                              0, NULL) == STATUS_SUCCESS);
}

static void make_semaphore(void)
{
    LabAssert(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, PACKETS) == STATUS_SUCCESS);
}

static void make_packets(void)
{
    make_wide_port();
    make_semaphore();
    for (ULONG which = 0; which < 2; which++) {
        LabAssert(NtCreateWaitCompletionPacket(&packets[which], WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL) ==
                  STATUS_SUCCESS);
        associate(which);
    }
}

static void release_unit(void)
{
    LabAssert(NtReleaseSemaphore(semaphore, 1, NULL) == STATUS_SUCCESS);
    add(&posted, 1);
}

static void remove_and_associate(void)
{
    PVOID key, context;
    IO_STATUS_BLOCK block;
    LabAssert(NtRemoveIoCompletion(port, &key, &context, &block, NULL) == STATUS_SUCCESS);
    add(&taken, 1);
    associate(PtrToUlong(key));
}

/* Without removal: the packet is cancelled before a signal, or another thread removes it. */
static void cancel_and_associate(void)
{
    NTSTATUS status = NtCancelWaitCompletionPacket(packets[0], FALSE);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_PENDING || status == STATUS_CANCELLED);
    if (status == STATUS_SUCCESS)
        associate(0);
}
FOUR_REPEAT(releaser, 3, release_unit())
FOUR_REPEAT(double_releaser, 6, release_unit())
FOUR_REPEAT(packet_user, 3, remove_and_associate())
FOUR_REPEAT(canceller, 3, cancel_and_associate())

static LONG units(void)
{
    SEMAPHORE_BASIC_INFORMATION information = {0};
    NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), NULL);
    return information.CurrentCount;
}

static void all_came_through(void)
{
    LabAssert(posted == PACKETS && taken == PACKETS && units() == 0 && depth() == 0);
}
FOUR_SCENARIO(wait_packet_4x3, releaser, packet_user, releaser, packet_user, .Setup = make_packets,
              .Finish = all_came_through);
FOUR_SCENARIO(wait_packet_4x3_c11, releaser, packet_user, releaser, packet_user, .Setup = make_packets,
              .Finish = all_came_through, .Model = "c11", .StaleReads = 2);
FOUR_SCENARIO(wait_packet_4x3_cancel, double_releaser, packet_user, canceller, packet_user, .Setup = make_packets,
              .Finish = all_came_through);

/* Keyed events by service: each wait pairs with one release of its key. */
static HANDLE keyed;
static int keys[2] DECLSPEC_ALIGN(2);
static int waits_met, releases_met;

static void make_keyed_event(void)
{
    LabAssert(NtCreateKeyedEvent(&keyed, KEYEDEVENT_ALL_ACCESS, NULL, 0) == STATUS_SUCCESS);
}

static void meet(NTSTATUS status, int *met, PLARGE_INTEGER timeout)
{
    LabAssert(status == STATUS_SUCCESS || (status == STATUS_TIMEOUT && timeout != NULL));
    add(met, status == STATUS_SUCCESS);
}

static void wait_for_key(int *key, PLARGE_INTEGER timeout)
{
    meet(NtWaitForKeyedEvent(keyed, key, FALSE, timeout), &waits_met, timeout);
}

static void release_key(int *key, PLARGE_INTEGER timeout)
{
    meet(NtReleaseKeyedEvent(keyed, key, FALSE, timeout), &releases_met, timeout);
}
FOUR_REPEAT(key_waiter, 3, wait_for_key(&keys[0], NULL))
FOUR_REPEAT(key_releaser, 3, release_key(&keys[0], NULL))
FOUR_REPEAT(other_key_waiter, 3, wait_for_key(&keys[1], NULL))
FOUR_REPEAT(other_key_releaser, 3, release_key(&keys[1], NULL))
FOUR_REPEAT(timed_key_waiter, 3, wait_for_key(&keys[0], &soon))
FOUR_REPEAT(timed_key_releaser, 3, release_key(&keys[0], &soon))

static void six_met(void)
{
    LabAssert(waits_met == 6 && releases_met == 6);
}

static void as_many_met(void)
{
    LabAssert(waits_met == releases_met);
}
FOUR_SCENARIO(keyed_event_4x3_service, key_waiter, key_releaser, key_waiter, key_releaser, .Setup = make_keyed_event,
              .Finish = six_met);
FOUR_SCENARIO(keyed_event_4x3_service_keys, key_waiter, key_releaser, other_key_waiter, other_key_releaser,
              .Setup = make_keyed_event, .Finish = six_met);
FOUR_SCENARIO(keyed_event_4x3_service_timeout, timed_key_waiter, timed_key_releaser, timed_key_waiter,
              timed_key_releaser, .Setup = make_keyed_event, .Finish = as_many_met, .Timeouts = 3);

/* The thread pool. Callbacks count in ran, calls that cancelled one in undone. */
static PTP_WORK work;
static PTP_TIMER timer;
static PTP_WAIT wait;
static PTP_CLEANUP_GROUP group;
static TP_CALLBACK_ENVIRON environment;
static HANDLE registered;
static int ran, undone, finished;

static void no_report(void)
{
    RtlpTimeout = 0;
}

static VOID work_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK item)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(item);
    add(&ran, 1);
}

static void make_work(void)
{
    no_report();
    LabAssert(TpAllocWork(&work, work_callback, NULL, NULL) == STATUS_SUCCESS);
}

static void post_and_wait(void)
{
    add(&posted, 1);
    TpPostWork(work);
    TpWaitForWork(work, FALSE);
    LabAssert(read_count(&ran) >= 1);
}

static void post_and_cancel(void)
{
    add(&posted, 1);
    TpPostWork(work);
    TpWaitForWork(work, TRUE);
}
FOUR_REPEAT(work_poster, 2, post_and_wait())
FOUR_REPEAT(work_canceller, 2, post_and_cancel())

static void each_ran(void)
{
    LabAssert(posted == 8 && ran == 8);
}

static void at_most_each_ran(void)
{
    LabAssert(posted == 8 && ran <= 8);
}
FOUR_SCENARIO(pool_4x2_work, work_poster, work_poster, work_poster, work_poster, .Setup = make_work,
              .Finish = each_ran);
FOUR_SCENARIO(pool_4x2_work_cancelled, work_canceller, work_canceller, work_canceller, work_canceller,
              .Setup = make_work, .Finish = at_most_each_ran);

/* Objects that are released with their callback pending, in a pool of one thread that is released before them. */
static PTP_POOL pool;

static void make_pool(void)
{
    no_report();
    LabAssert(TpAllocPool(&pool, NULL) == STATUS_SUCCESS);
    TpSetPoolMaxThreads(pool, 1);
    TpInitializeCallbackEnviron(&environment);
    TpSetCallbackThreadpool(&environment, pool);
    LabAssert(TpAllocWork(&work, work_callback, NULL, &environment) == STATUS_SUCCESS);
}

static void post_and_release(void)
{
    PTP_WORK mine;
    LabAssert(TpAllocWork(&mine, work_callback, NULL, NULL) == STATUS_SUCCESS);
    add(&posted, 1);
    TpPostWork(mine);
    TpReleaseWork(mine);
}

static void release_pool(void)
{
    TpReleasePool(pool);
}
FOUR_REPEAT(work_releaser, 2, post_and_release())

static void each_posted_ran(void)
{
    LabAssert(ran == posted);
}
FOUR_SCENARIO(pool_4x2_work_released, work_releaser, work_releaser, work_releaser, work_releaser, .Setup = no_report,
              .Finish = each_posted_ran);
FOUR_SCENARIO(pool_4x2_of_one_thread, work_poster, work_poster, work_poster, release_pool, .Setup = make_pool,
              .Finish = each_posted_ran);

/* A timer that was set runs its callback, or the next call that sets or resets it reports that it was cancelled. */
static VOID timer_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER item)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(item);
    add(&ran, 1);
}

static void make_timer(void)
{
    no_report();
    LabAssert(TpAllocTimer(&timer, timer_callback, NULL, NULL) == STATUS_SUCCESS);
}

static void set_timer(void)
{
    add(&posted, 1);
    add(&undone, TpSetTimerEx(timer, &soon, 0, 0) != FALSE);
}

static void unset_timer(void)
{
    add(&undone, TpSetTimerEx(timer, NULL, 0, 0) != FALSE);
    TpWaitForTimer(timer, FALSE);
}
FOUR_REPEAT(timer_setter, 2, set_timer())
FOUR_REPEAT(timer_unsetter, 2, unset_timer())

static void ran_or_undone(void)
{
    add(&undone, TpSetTimerEx(timer, NULL, 0, 0) != FALSE);
    LabAssert(posted == 4 && ran + undone == 4);
}
FOUR_SCENARIO(pool_4x2_timer, timer_setter, timer_unsetter, timer_setter, timer_unsetter, .Setup = make_timer,
              .Finish = ran_or_undone);

/* A wait that its callback sets again takes all units of a semaphore, one by one. */
static VOID wait_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT item, TP_WAIT_RESULT result)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    LabAssert(result == STATUS_WAIT_0 || result == STATUS_TIMEOUT);
    add(&ran, result == STATUS_WAIT_0);
    TpSetWait(item, semaphore, NULL);
}

static void make_wait(void)
{
    no_report();
    make_semaphore();
    LabAssert(TpAllocWait(&wait, wait_callback, NULL, NULL) == STATUS_SUCCESS);
    TpSetWait(wait, semaphore, NULL);
}

static void unset_wait(void)
{
    TpSetWait(wait, NULL, NULL);
    TpWaitForWait(wait, FALSE);
}
FOUR_REPEAT(wait_setter, 2, TpSetWait(wait, semaphore, NULL))
FOUR_REPEAT(timed_wait_setter, 2, TpSetWait(wait, semaphore, &soon))
FOUR_REPEAT(wait_unsetter, 2, unset_wait())
FOUR_REPEAT(pair_releaser, 2, release_unit())

static void each_unit_ran(void)
{
    LabAssert(ran == posted && units() == 0);
}
FOUR_SCENARIO(pool_4x2_wait, pair_releaser, pair_releaser, pair_releaser, wait_setter, .Setup = make_wait,
              .Finish = each_unit_ran);

/* A wait that is reset leaves the unit to the semaphore or to the callback, and a timeout takes none. */
static void each_unit_is_accounted_for(void)
{
    LabAssert(ran + units() == posted);
}
FOUR_SCENARIO(pool_4x2_wait_unset, pair_releaser, wait_unsetter, wait_setter, wait_unsetter, .Setup = make_wait,
              .Finish = each_unit_is_accounted_for);
FOUR_SCENARIO(pool_4x2_wait_timeout, pair_releaser, timed_wait_setter, wait_unsetter, timed_wait_setter,
              .Setup = make_wait, .Finish = each_unit_is_accounted_for);

/* A registered wait that repeats until it is deregistered: a unit was taken by a callback, or remains, except for the
   one whose callback had not begun at that moment. */
static VOID registered_callback(PVOID context, BOOLEAN timed_out)
{
    UNREFERENCED_PARAMETER(context);
    LabAssert(!timed_out && !read_count(&finished));
    add(&ran, 1);
}

static void make_registered(void)
{
    no_report();
    make_semaphore();
    LabAssert(RtlRegisterWait(&registered, semaphore, registered_callback, NULL, MAXULONG, WT_EXECUTEDEFAULT) ==
              STATUS_SUCCESS);
}

static void deregister(void)
{
    LabAssert(RtlDeregisterWaitEx(registered, (HANDLE)(LONG_PTR)-1) == STATUS_SUCCESS);
    add(&finished, 1);
}

static void ran_or_is_there(void)
{
    LabAssert(ran + units() == 6 || ran + units() == 5);
}
FOUR_SCENARIO(pool_4x2_registered, pair_releaser, pair_releaser, pair_releaser, deregister, .Setup = make_registered,
              .Finish = ran_or_is_there);

/* Timer queue timers: a deleted one no longer runs. Some delete themselves. */
typedef struct own_timer {
    HANDLE handle;
    volatile LONG deleted;
} own_timer;

static own_timer own[8];
static int made_timers;

static VOID queue_timer_callback(PVOID context, BOOLEAN timed_out)
{
    own_timer *mine = context;
    LabAssert(timed_out && !__atomic_load_n(&mine->deleted, __ATOMIC_RELAXED));
    add(&ran, 1);
}

static VOID last_timer_callback(PVOID context, BOOLEAN timed_out)
{
    own_timer *mine = context;
    queue_timer_callback(context, timed_out);
    LabAssert(RtlDeleteTimer(NULL, mine->handle, NULL) == STATUS_PENDING);
}

static own_timer *make_timer_in(HANDLE queue, WAITORTIMERCALLBACKFUNC callback)
{
    own_timer *mine = &own[__atomic_fetch_add(&made_timers, 1, __ATOMIC_RELAXED)];
    LabAssert(RtlCreateTimer(queue, &mine->handle, callback, mine, 1, 0, 0) == STATUS_SUCCESS);
    return mine;
}

static void make_and_delete_timer(void)
{
    own_timer *mine = make_timer_in(NULL, queue_timer_callback);
    LabAssert(RtlUpdateTimer(NULL, mine->handle, 2, 0) == STATUS_SUCCESS);
    LabAssert(RtlDeleteTimer(NULL, mine->handle, (HANDLE)(LONG_PTR)-1) == STATUS_SUCCESS);
    __atomic_store_n(&mine->deleted, 1, __ATOMIC_RELAXED);
}

static void make_and_delete_queue(void)
{
    HANDLE queue;
    LabAssert(RtlCreateTimerQueue(&queue) == STATUS_SUCCESS);
    own_timer *mine = make_timer_in(queue, queue_timer_callback);
    LabAssert(RtlDeleteTimerQueueEx(queue, (HANDLE)(LONG_PTR)-1) == STATUS_SUCCESS);
    __atomic_store_n(&mine->deleted, 1, __ATOMIC_RELAXED);
}
FOUR_REPEAT(timer_deleter, 2, make_and_delete_timer())
FOUR_REPEAT(queue_deleter, 2, make_and_delete_queue())
FOUR_REPEAT(timer_maker, 2, make_timer_in(NULL, last_timer_callback))
FOUR_SCENARIO(pool_4x2_timer_queue, timer_deleter, queue_deleter, timer_maker, timer_deleter, .Setup = no_report);

/* A group whose members are released while others post to them: an accepted callback runs, or the cancel callback is
   called. */
static VOID simple_callback(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    add(&ran, 1);
}

static VOID cancel_callback(PVOID context, PVOID parameter)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(parameter);
    add(&undone, 1);
}

static void make_group(void)
{
    no_report();
    TpInitializeCallbackEnviron(&environment);
    LabAssert(TpAllocCleanupGroup(&group) == STATUS_SUCCESS);
    TpSetCallbackCleanupGroup(&environment, group, cancel_callback);
}

static void post_to_group(void)
{
    LabAssert(TpSimpleTryPost(simple_callback, NULL, &environment) == STATUS_SUCCESS);
    add(&posted, 1);
}

/* An object that its owner does not touch again. */
static void allocate_in_group(void)
{
    TP_CALLBACK_ENVIRON silent = environment;
    PTP_TIMER unused;
    TpSetCallbackCleanupGroup(&silent, group, NULL);
    LabAssert(TpAllocTimer(&unused, timer_callback, NULL, &silent) == STATUS_SUCCESS);
}
FOUR_REPEAT(group_poster, 2, post_to_group())
FOUR_REPEAT(group_allocator, 2, allocate_in_group())
FOUR_REPEAT(group_releaser, 2, TpReleaseCleanupGroupMembers(group, TRUE, NULL))
FOUR_REPEAT(group_waiter, 2, TpReleaseCleanupGroupMembers(group, FALSE, NULL))

static void ran_or_told(void)
{
    LabAssert(posted == 4 && ran + undone == 4);
}
FOUR_SCENARIO(pool_4x2_group, group_poster, group_poster, group_releaser, group_waiter, .Setup = make_group,
              .Finish = ran_or_told);

/* Members that fire while they are released: none of their callbacks begins afterwards. */
static VOID member_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT item, TP_WAIT_RESULT result)
{
    LabAssert(!read_count(&finished));
    wait_callback(instance, context, item, result);
}

static VOID member_timer_callback(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER item)
{
    UNREFERENCED_PARAMETER(instance);
    UNREFERENCED_PARAMETER(context);
    LabAssert(!read_count(&finished));
    TpSetTimer(item, &soon, 0, 0);
}

static void make_members(void)
{
    make_group();
    make_semaphore();
    LabAssert(TpAllocWait(&wait, member_callback, NULL, &environment) == STATUS_SUCCESS);
    LabAssert(TpAllocTimer(&timer, member_timer_callback, NULL, &environment) == STATUS_SUCCESS);
    TpSetWait(wait, semaphore, &soon);
    TpSetTimer(timer, &soon, 0, 0);
}

static void release_members(void)
{
    TpReleaseCleanupGroupMembers(group, LabChoose(2) == 0, NULL);
    add(&finished, 1);
}

/* A unit that was taken for a cancelled callback is lost with it. */
static void at_most_one_unit_is_lost(void)
{
    LabAssert(posted - ran - units() <= 1 && undone <= 2);
}
FOUR_SCENARIO(pool_4x2_group_fires, pair_releaser, pair_releaser, release_members, pair_releaser, .Setup = make_members,
              .Finish = at_most_one_unit_is_lost);
FOUR_SCENARIO(pool_4x2_group_grows, group_allocator, group_allocator, group_releaser, group_waiter,
              .Setup = make_group);
