/* Address waits, by the numbers in src/rtl/addresswait.c and src/rtl/rtlp.h. */
#include "../ke/waittest.h"
#include "../support/heap.h"

#include "rtl/rtlp.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include <sys/wait.h>
#include <unistd.h>

typedef struct watcher {
    actor actor;
    PVOID address;
    ULONG64 undesired;
    SIZE_T size;
    PLARGE_INTEGER timeout;
    NTSTATUS status;
} watcher;

static void watch(void *argument)
{
    watcher *w = argument;
    allocations_left = 0;
    w->status = RtlWaitOnAddress(w->address, &w->undesired, w->size, w->timeout);
    allocations_left = -1;
}

static void start_watchers(watcher *w, ULONG count, PVOID address, SIZE_T size)
{
    memset(w, 0, count * sizeof(*w));
    for (ULONG i = 0; i < count; i += 1) {
        w[i].address = address;
        w[i].size = size;
        start_actor(&w[i].actor);
    }
}

static void end_watchers(watcher *w, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        end_actor(&w[i].actor);
    }
    assert_int_equal(allocations_refused, 0);
}

static void begin(watcher *w)
{
    tell(&w->actor, watch, w);
    await(is_committed(w->actor.thread));
}

static NTSTATUS result(watcher *w)
{
    await(is_idle(&w->actor));
    return w->status;
}

static BOOLEAN waits(watcher *w)
{
    return is_committed(w->actor.thread);
}

/* The wait consumed its alert. */
static BOOLEAN has_alert(watcher *w)
{
    return (__atomic_load_n(&w->actor.thread->WaitRegister, __ATOMIC_ACQUIRE) & KI_WAIT_ALERT_BY_ID_PENDING) != 0;
}

static void sizes(void **state)
{
    static const SIZE_T wrong[] = {0, 3, 5, 6, 7, 9, 16, 0x100000001, ~(SIZE_T)0};
    static const SIZE_T right[] = {1, 2, 4, 8};
    ULONG64 value = 0;
    ULONG64 same = 0;
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(wrong); i += 1) {
        assert_int_equal(RtlWaitOnAddress(NULL, NULL, wrong[i], NULL), STATUS_INVALID_PARAMETER);
    }
    for (size_t i = 0; i < ARRAYSIZE(right); i += 1) {
        assert_int_equal(RtlWaitOnAddress(&value, &same, right[i], NO_TIME), STATUS_TIMEOUT);
    }
}

/* For every alignment of both operands, only the bytes of the value are compared. */
static void only_the_value_is_compared(void **state)
{
    UCHAR memory[32];
    UCHAR other[32];
    (void)state;
    for (SIZE_T size = 1; size <= 8; size *= 2) {
        for (SIZE_T at = 8; at < 16; at += 1) {
            for (SIZE_T there = 8; there < 16; there += 1) {
                memset(memory, 0xaa, sizeof(memory));
                memset(other, 0x55, sizeof(other));
                memset(memory + at, 7, size);
                memset(other + there, 7, size);
                assert_int_equal(RtlWaitOnAddress(memory + at, other + there, size, NO_TIME), STATUS_TIMEOUT);
                for (SIZE_T byte = 0; byte < size; byte += 1) {
                    memory[at + byte] ^= 0x80;
                    assert_int_equal(RtlWaitOnAddress(memory + at, other + there, size, NULL), STATUS_SUCCESS);
                    memory[at + byte] ^= 0x80;
                }
            }
        }
    }
}

static void woken_at_any_alignment(void **state)
{
    static UCHAR memory[2 * KI_CACHE_LINE] DECLSPEC_ALIGN(KI_CACHE_LINE);
    watcher w;
    (void)state;
    start_watchers(&w, 1, NULL, 0);
    for (w.size = 1; w.size <= 8; w.size *= 2) {
        for (SIZE_T at = KI_CACHE_LINE - 8; at <= KI_CACHE_LINE; at += 1) {
            w.address = memory + at;
            begin(&w);
            assert_ptr_equal(w.actor.thread->WaitBlockList[0].Object, w.address);
            assert_int_equal(w.actor.thread->WaitReason, WrAlertByThreadId);
            RtlWakeAddressSingle((PUCHAR)w.address - 1);
            RtlWakeAddressAll((PUCHAR)w.address + 1);
            assert_true(waits(&w));
            RtlWakeAddressSingle(w.address);
            assert_int_equal(result(&w), STATUS_SUCCESS);
            assert_false(has_alert(&w));
        }
    }
    end_watchers(&w, 1);
}

/* 2 */
static volatile ULONG host_wakes;
static HAL_DISPATCH host;

static VOID count_wake(volatile ULONG *address, ULONG count)
{
    host_wakes += 1;
    host.Wake(address, count);
}

static void a_wake_without_waiters_does_nothing(void **state)
{
    ULONG64 value = 5;
    (void)state;
    host = HalDispatch;
    HalDispatch.Wake = count_wake;
    for (int round = 0; round < 3; round += 1) {
        RtlWakeAddressSingle(NULL);
        RtlWakeAddressAll(NULL);
        RtlWakeAddressSingleNoFence(NULL);
        RtlWakeAddressAllNoFence(NULL);
        RtlWakeAddressSingle(&value);
        RtlWakeAddressAll(&value);
        RtlWakeAddressSingle((PVOID)1); /* the address is never read */
        RtlWakeAddressAll((PVOID)~(ULONG_PTR)0);
    }
    assert_int_equal(host_wakes, 0);
    assert_int_equal(value, 5);
    /* and none is pending */
    assert_int_equal(RtlWaitOnAddress(&value, &(ULONG64){5}, 8, &(LARGE_INTEGER){.QuadPart = -10}), STATUS_TIMEOUT);
    HalDispatch = host;
}

/* 3: enough addresses to fill every bucket many times. */
static void waiters_of_other_addresses_stay(void **state)
{
    static UCHAR memory[8192];
    watcher w;
    (void)state;
    start_watchers(&w, 1, memory + 4096, 1);
    begin(&w);
    for (SIZE_T i = 0; i < sizeof(memory); i += 1) {
        if (i != 4096) {
            RtlWakeAddressSingle(memory + i);
            RtlWakeAddressAll(memory + i);
        }
    }
    assert_true(waits(&w));
    RtlWakeAddressAll(memory + 4096);
    assert_int_equal(result(&w), STATUS_SUCCESS);
    end_watchers(&w, 1);
}

static void single_wakes_the_longest_waiter(void **state)
{
    static void (*const wakes[])(PVOID) = {RtlWakeAddressSingle, RtlWakeAddressSingleNoFence};
    ULONG value = 0;
    watcher w[4];
    (void)state;
    start_watchers(w, ARRAYSIZE(w), &value, sizeof(value));
    for (size_t kind = 0; kind < ARRAYSIZE(wakes); kind += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(w); i += 1) {
            begin(&w[i]);
        }
        for (ULONG i = 0; i < ARRAYSIZE(w); i += 1) {
            wakes[kind](&value);
            assert_int_equal(result(&w[i]), STATUS_SUCCESS);
            for (ULONG j = i + 1; j < ARRAYSIZE(w); j += 1) {
                assert_true(waits(&w[j]));
            }
        }
    }
    end_watchers(w, ARRAYSIZE(w));
}

static void all_wakes_all_of_the_address(void **state)
{
    static void (*const wakes[])(PVOID) = {RtlWakeAddressAll, RtlWakeAddressAllNoFence};
    ULONG values[2] = {0};
    watcher w[6];
    (void)state;
    start_watchers(w, ARRAYSIZE(w), NULL, sizeof(values[0]));
    for (size_t kind = 0; kind < ARRAYSIZE(wakes); kind += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(w); i += 1) {
            w[i].address = &values[i % 2];
            begin(&w[i]);
        }
        wakes[kind](&values[0]);
        for (ULONG i = 0; i < ARRAYSIZE(w); i += 2) {
            assert_int_equal(result(&w[i]), STATUS_SUCCESS);
            assert_true(waits(&w[i + 1]));
        }
        wakes[kind](&values[1]);
        for (ULONG i = 1; i < ARRAYSIZE(w); i += 2) {
            assert_int_equal(result(&w[i]), STATUS_SUCCESS);
        }
    }
    end_watchers(w, ARRAYSIZE(w));
}

/* Timeouts. */

static void timeouts(void **state)
{
    LARGE_INTEGER rows[] = {relative(5 * MILLISECOND), absolute(5 * MILLISECOND), absolute(-SECOND), relative(1)};
    USHORT value = 3;
    USHORT same = 3;
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i += 1) {
        assert_int_equal(RtlWaitOnAddress(&value, &same, sizeof(value), &rows[i]), STATUS_TIMEOUT);
    }
    LARGE_INTEGER due = absolute(20 * MILLISECOND);
    assert_int_equal(RtlWaitOnAddress(&value, &same, sizeof(value), &due), STATUS_TIMEOUT);
    assert_true(HalDispatch.QuerySystemTime() >= (ULONGLONG)due.QuadPart);
}

/* A waiter that has timed out does not affect later ones. */
static void a_timed_out_waiter_takes_no_wake(void **state)
{
    LARGE_INTEGER short_time = relative(MILLISECOND);
    ULONG value = 0;
    watcher w[2];
    (void)state;
    start_watchers(w, 2, &value, sizeof(value));
    w[0].timeout = &short_time;
    tell(&w[0].actor, watch, &w[0]);
    begin(&w[1]);
    assert_int_equal(result(&w[0]), STATUS_TIMEOUT);
    RtlWakeAddressSingle(&value);
    assert_int_equal(result(&w[1]), STATUS_SUCCESS);
    end_watchers(w, 2);
}

static PEXP_WAITER_BUCKET lock_bucket(PVOID address)
{
    EXP_WAIT_KEY key = RtlpWaitKey(address, RtlpAddressWait);
    return ExpLockWaiters(&key, KeGetCurrentThread());
}

/* 4: the wake removes a waiter whose timeout has expired before the waiter can remove itself. */
static void a_wake_that_meets_a_timeout_wins(void **state)
{
    LARGE_INTEGER short_time = relative(MILLISECOND);
    ULONG value = 0;
    LIST_ENTRY taken;
    watcher w;
    (void)state;
    start_watchers(&w, 1, &value, sizeof(value));
    w.timeout = &short_time;
    EXP_WAIT_KEY key = RtlpWaitKey(&value, RtlpAddressWait);
    ULONG found = 0;
    while (found == 0) {
        PEXP_WAITER_BUCKET bucket;
        tell(&w.actor, watch, &w);
        await(ExpMayHaveWaiters(&key) || is_idle(&w.actor));
        bucket = lock_bucket(&value);
        await(wait_state(w.actor.thread) == MaximumWaitState);
        found = ExpTakeWaiters(bucket, &key, 1, &taken);
        ExpUnlockWaiters(bucket, KeGetCurrentThread());
    }
    /* The waiter must return to its wait and sleep without a timeout until it is woken. */
    await(waits_without_timeout(w.actor.thread));
    assert_false(is_idle(&w.actor));
    RtlpWakeTakenWaiters(&taken);
    assert_int_equal(result(&w), STATUS_SUCCESS);
    assert_false(has_alert(&w));
    end_watchers(&w, 1);
}

/* 1: the value changes after the first comparison, and no wake follows. */
static void a_change_before_it_waits_is_seen(void **state)
{
    ULONG value = 0;
    watcher w;
    (void)state;
    start_watchers(&w, 1, &value, sizeof(value));
    PEXP_WAITER_BUCKET bucket = lock_bucket(&value);
    tell(&w.actor, watch, &w);
    await(__atomic_load_n(&w.actor.thread->DispatcherDepth, __ATOMIC_ACQUIRE) != 0);
    __atomic_store_n(&value, 1, __ATOMIC_RELEASE);
    ExpUnlockWaiters(bucket, KeGetCurrentThread());
    assert_int_equal(result(&w), STATUS_SUCCESS);
    EXP_WAIT_KEY key = RtlpWaitKey(&value, RtlpAddressWait);
    assert_false(ExpMayHaveWaiters(&key));
    end_watchers(&w, 1);
}

/* 2 in rtlp.h */
static void a_stray_alert_changes_nothing(void **state)
{
    LARGE_INTEGER long_time = relative(1000 * SECOND);
    ULONG value = 0;
    watcher w;
    (void)state;
    start_watchers(&w, 1, &value, sizeof(value));
    for (int round = 0; round < 2; round += 1) {
        w.timeout = round == 0 ? NULL : &long_time;
        begin(&w);
        ULONGLONG deadline = w.actor.thread->WaitDeadline.Time;
        for (int stray = 0; stray < 3; stray += 1) {
            KeAlertThreadById(w.actor.thread);
            await(waits(&w) && !has_alert(&w));
        }
        if (round == 1) {
            /* the clock is accurate to microseconds, and the deadline does not move */
            assert_true(w.actor.thread->WaitDeadline.Time - deadline + SECOND <= 2 * SECOND);
        }
        assert_false(is_idle(&w.actor));
        RtlWakeAddressSingle(&value);
        assert_int_equal(result(&w), STATUS_SUCCESS);
        assert_false(has_alert(&w));
    }
    end_watchers(&w, 1);
}

static volatile BOOLEAN keep_alerting;

static void alert_all_the_time(void *argument)
{
    while (__atomic_load_n(&keep_alerting, __ATOMIC_RELAXED)) {
        KeAlertThreadById(argument);
        pause_briefly();
    }
}

static void stray_alerts_do_not_move_the_deadline(void **state)
{
    LARGE_INTEGER timeout = relative(30 * MILLISECOND);
    ULONG value = 0;
    actor pest;
    (void)state;
    keep_alerting = TRUE;
    start_actor(&pest);
    tell(&pest, alert_all_the_time, KeGetCurrentThread());
    assert_int_equal(RtlWaitOnAddress(&value, &(ULONG){0}, sizeof(value), &timeout), STATUS_TIMEOUT);
    __atomic_store_n(&keep_alerting, FALSE, __ATOMIC_RELAXED);
    end_actor(&pest);
    NtWaitForAlertByThreadId(NULL, NO_TIME);
}

static void a_suspended_waiter_can_be_woken(void **state)
{
    ULONG value = 0;
    watcher w;
    (void)state;
    start_watchers(&w, 1, &value, sizeof(value));
    begin(&w);
    KeSuspendThread(w.actor.thread);
    RtlWakeAddressSingle(&value);
    assert_int_equal(wait_state(w.actor.thread), WaitSuspended);
    KeResumeThread(w.actor.thread);
    assert_int_equal(result(&w), STATUS_SUCCESS);
    end_watchers(&w, 1);
}

/* The child inherits no waiters, and new ones work. */
static void in_a_forked_child(void **state)
{
    static ULONG value;
    watcher w;
    int status;
    (void)state;
    start_watchers(&w, 1, &value, sizeof(value));
    begin(&w);
    pid_t child = fork();
    if (child == 0) {
        watcher own;
        RtlWakeAddressAll(&value);
        RtlWakeAddressSingle(&value);
        start_watchers(&own, 1, &value, sizeof(value));
        begin(&own);
        RtlWakeAddressSingle(&value);
        _exit(result(&own) == STATUS_SUCCESS ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(waits(&w));
    RtlWakeAddressSingle(&value);
    assert_int_equal(result(&w), STATUS_SUCCESS);
    end_watchers(&w, 1);
}

static ULONG watched;

static NTSTATUS watch_for_ever(PVOID context)
{
    UNREFERENCED_PARAMETER(context);
    return RtlWaitOnAddress(&watched, &(ULONG){0}, sizeof(watched), NULL);
}

/* A thread that is terminated while it waits consumes no wake. */
static void a_terminated_waiter_takes_no_wake(void **state)
{
    HANDLE handle;
    PVOID thread;
    watcher w;
    (void)state;
    start_watchers(&w, 1, &watched, sizeof(watched));
    assert_int_equal(
        NtCreateThreadEx(&handle, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), watch_for_ever, NULL, 0, 0, 0, 0, NULL),
        STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, *PsThreadType, KernelMode, &thread, NULL), 0);
    await(is_committed(thread));
    begin(&w);
    assert_int_equal(NtTerminateThread(handle, STATUS_UNSUCCESSFUL), STATUS_SUCCESS);
    assert_int_equal(wait_for(thread, NULL), STATUS_SUCCESS);
    RtlWakeAddressSingle(&watched);
    assert_int_equal(result(&w), STATUS_SUCCESS);
    ObDereferenceObject(thread);
    ObCloseHandle(handle, KernelMode);
    end_watchers(&w, 1);
}

/* Keyed events, condition variables and address waits share the hash, but their keys never match. */
static void other_kinds_of_waiters_stay(void **state)
{
    ULONG64 value = 0;
    LIST_ENTRY taken;
    watcher w;
    (void)state;
    start_watchers(&w, 1, &value, sizeof(value));
    begin(&w);
    EXP_WAIT_KEY condition = RtlpWaitKey(&value, RtlpConditionWait);
    PEXP_WAITER_BUCKET bucket = lock_bucket(&value);
    assert_int_equal(ExpTakeWaiters(bucket, &condition, MAXULONG, &taken), 0);
    ExpUnlockWaiters(bucket, KeGetCurrentThread());
    assert_true(waits(&w));
    RtlWakeAddressSingle(&value);
    assert_int_equal(result(&w), STATUS_SUCCESS);
    end_watchers(&w, 1);
}

static void wake_in_vain(PVOID address)
{
    for (ULONG i = 0; i < RTLP_QUIET_AFTER; i += 1) {
        RtlWakeAddressSingle(address);
    }
}

/* 6: wakes without waiters make the bucket quiet, a waiter ends that, and is woken; a sleeper of another kind does
   neither. */
static void a_waiter_ends_the_quiet(void **state)
{
    ULONG value = 0;
    watcher w[2];
    (void)state;
    start_watchers(w, 2, &value, sizeof(value));
    for (ULONG round = 0; round < 3; round += 1) {
        wake_in_vain(&value);
        assert_int_equal(RtlpIsAddressQuiet(&value), !KiDispatcherFence);
        PEXP_WAITER_BUCKET bucket = lock_bucket(&value);
        ULONG ended = bucket->QuietsEnded;
        ExpUnlockWaiters(bucket, KeGetCurrentThread());
        begin(&w[0]);
        assert_false(RtlpIsAddressQuiet(&value));
        assert_int_equal(bucket->QuietsEnded, ended + !KiDispatcherFence);
        assert_int_equal(bucket->BarrierMade, bucket->QuietsEnded);
        begin(&w[1]);
        assert_int_equal(bucket->QuietsEnded, ended + !KiDispatcherFence);
        RtlWakeAddressSingle(&value);
        assert_int_equal(result(&w[0]), STATUS_SUCCESS);
        assert_true(waits(&w[1]));
        wake_in_vain(&(&value)[1]);
        assert_false(RtlpIsAddressQuiet(&value));
        RtlWakeAddressAll(&value);
        assert_int_equal(result(&w[1]), STATUS_SUCCESS);
        assert_false(RtlpIsAddressQuiet(&value));
    }
    end_watchers(w, 2);
}

/* 8 */
static void without_a_barrier_nothing_is_quiet(void **state)
{
    static ULONG values[1024];
    ULONG *value = values;
    BOOLEAN fence = KiDispatcherFence;
    (void)state;
    while (RtlpIsAddressQuiet(value)) {
        value += 1; /* the bucket of an address that the other cases have made quiet */
    }
    KiDispatcherFence = TRUE;
    wake_in_vain(value);
    wake_in_vain(value);
    assert_false(RtlpIsAddressQuiet(value));
    KiDispatcherFence = fence;
}

/* The quiet of the parent holds in a child, and can end there. */
static void a_forked_child_inherits_the_quiet(void **state)
{
    static ULONG value;
    (void)state;
    wake_in_vain(&value);
    pid_t child = fork();
    if (child == 0) {
        watcher w;
        BOOLEAN quiet = RtlpIsAddressQuiet(&value);
        start_watchers(&w, 1, &value, sizeof(value));
        begin(&w);
        BOOLEAN ended = !RtlpIsAddressQuiet(&value);
        RtlWakeAddressSingle(&value);
        BOOLEAN woken = result(&w) == STATUS_SUCCESS;
        _exit(quiet == !KiDispatcherFence && ended && woken ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(RtlpIsAddressQuiet(&value), !KiDispatcherFence);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WATCHED(sizes),
        WATCHED(only_the_value_is_compared),
        WATCHED(woken_at_any_alignment),
        WATCHED(a_wake_without_waiters_does_nothing),
        WATCHED(waiters_of_other_addresses_stay),
        WATCHED(single_wakes_the_longest_waiter),
        WATCHED(all_wakes_all_of_the_address),
        WATCHED(timeouts),
        WATCHED(a_timed_out_waiter_takes_no_wake),
        WATCHED(a_wake_that_meets_a_timeout_wins),
        WATCHED(a_change_before_it_waits_is_seen),
        WATCHED(a_stray_alert_changes_nothing),
        WATCHED(stray_alerts_do_not_move_the_deadline),
        WATCHED(a_suspended_waiter_can_be_woken),
        WATCHED(in_a_forked_child),
        WATCHED(a_terminated_waiter_takes_no_wake),
        WATCHED(other_kinds_of_waiters_stay),
        WATCHED(a_waiter_ends_the_quiet),
        WATCHED(without_a_barrier_nothing_is_quiet),
        WATCHED(a_forked_child_inherits_the_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
