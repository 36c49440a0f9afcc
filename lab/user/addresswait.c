/* Waiting on an address: no lost wake, wakes and timeouts, neighbours in the hash, memory freed at once. */
#include <interlock/lab.h>

#include <ntddk.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "neighbours.h"

static volatile ULONG word;
static int data;
static ULONG zero;

static ULONG read_word(volatile ULONG *address)
{
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

static void await_change(volatile ULONG *address)
{
    while (read_word(address) == 0)
        LabAssert(RtlWaitOnAddress(address, &zero, sizeof(zero), NULL) == STATUS_SUCCESS);
}

static void waiter(void)
{
    await_change(&word);
    LabAssert(data == 1);
}

static void change(void)
{
    data = 1;
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
}

static void wake_one(void)
{
    change();
    RtlWakeAddressSingle((PVOID)&word);
}

static void wake_each(void)
{
    change();
    RtlWakeAddressSingle((PVOID)&word);
    RtlWakeAddressSingle((PVOID)&word);
}

static void wake_all(void)
{
    change();
    RtlWakeAddressAll((PVOID)&word);
}
LAB_SCENARIO(address_handover, .Threads = {waiter, wake_one}, .SpuriousWakes = 1);
LAB_SCENARIO(address_handover_c11, .Threads = {waiter, wake_one}, .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(address_wake_all, .Threads = {waiter, waiter, wake_all});
LAB_SCENARIO(address_wake_each, .Threads = {waiter, waiter, wake_each});

/* An unrelated alert ends no wait. */
static void patient_waiter(void)
{
    LabAssert(RtlWaitOnAddress(&word, &zero, sizeof(zero), NULL) == STATUS_SUCCESS);
    LabAssert(read_word(&word) == 1 && data == 1);
}

static void stray_alerter(void)
{
    NtAlertThreadByThreadId(ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread()));
}
LAB_SCENARIO(address_stray_alert, .Threads = {patient_waiter, wake_one, stray_alerter});

/* One token and one wake for two waiters; one of them times out. A wake that was meant for the one that timed out must
   not be lost with it: at the end the token is taken. */
static BOOLEAN take_token(void)
{
    ULONG one = 1;
    return __atomic_compare_exchange_n(&word, &one, 0, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void token_waiter(void)
{
    while (!take_token())
        RtlWaitOnAddress(&word, &zero, sizeof(zero), NULL);
}

static void impatient_token_waiter(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    while (!take_token())
        if (RtlWaitOnAddress(&word, &zero, sizeof(zero), &timeout) == STATUS_TIMEOUT)
            return;
}

static void token_is_taken(void)
{
    LabAssert(word == 0);
}
LAB_SCENARIO(address_timeout, .Threads = {impatient_token_waiter, token_waiter, wake_one}, .Finish = token_is_taken,
             .Flags = LAB_MAY_BLOCK, .Timeouts = 1);

/* Two addresses in one bucket: a wake of one does not wake the other's waiter. */
static void first_waiter(void)
{
    LabAssert(RtlWaitOnAddress(first, &zero, sizeof(zero), NULL) == STATUS_SUCCESS);
    LabAssert(read_word(first) == 1);
}

static void second_waiter(void)
{
    LabAssert(RtlWaitOnAddress(second, &zero, sizeof(zero), NULL) == STATUS_SUCCESS);
    LabAssert(read_word(second) == 1);
}

static void wake_both(void)
{
    __atomic_store_n(first, 1, __ATOMIC_RELEASE);
    RtlWakeAddressAll((PVOID)first);
    __atomic_store_n(second, 1, __ATOMIC_RELEASE);
    RtlWakeAddressSingle((PVOID)second);
}
LAB_SCENARIO(address_neighbours, .Setup = find_neighbours, .Threads = {first_waiter, second_waiter, wake_both});

/* The thread that sees the change frees the memory; the wake needs only the address. */
static volatile ULONG *heap_word;

static void setup_heap(void)
{
    heap_word = LabAllocate(sizeof(*heap_word));
}

static void waiter_that_frees(void)
{
    await_change(heap_word);
    LabFree((void *)heap_word);
}

static void wake_after_last_touch(void)
{
    volatile ULONG *address = heap_word;
    __atomic_store_n(address, 1, __ATOMIC_RELEASE);
    RtlWakeAddressSingle((PVOID)address);
}
LAB_SCENARIO(address_freed, .Setup = setup_heap, .Threads = {waiter_that_frees, wake_after_last_touch});

/* One wait is enough where there are no spurious wakeups, and what was done before the change is visible afterwards,
   without a load by the caller that would order it. */
static void waiter_without_look(void)
{
    LabAssert(RtlWaitOnAddress(&word, &zero, sizeof(zero), NULL) == STATUS_SUCCESS);
    LabAssert(__atomic_load_n(&word, __ATOMIC_RELAXED) == 1);
    LabAssert(data == 1);
}
LAB_SCENARIO(address_order, .Threads = {waiter_without_look, wake_one});
LAB_SCENARIO(address_order_c11, .Threads = {waiter_without_look, waiter_without_look, wake_all}, .Model = "c11");

/* Quiet buckets: they have been woken without waiters before, so that a wake is a plain load until a waiter arrives. */
static void make_almost_quiet(volatile ULONG *address)
{
    bucket_of(address)->VainWakes = RTLP_QUIET_AFTER - 1;
    LabAssert(!RtlpIsAddressQuiet((PVOID)address));
}

static void setup_almost_quiet(void)
{
    make_almost_quiet(&word);
}

static void make_quiet(volatile ULONG *address)
{
    make_almost_quiet(address);
    RtlWakeAddressSingle((PVOID)address);
    LabAssert(RtlpIsAddressQuiet((PVOID)address));
}

static void setup_quiet(void)
{
    make_quiet(&word);
}

static void wake_in_vain(void)
{
    RtlWakeAddressSingle((PVOID)&word);
}
LAB_SCENARIO(address_quiet, .Setup = setup_quiet, .Threads = {waiter, wake_one}, .SpuriousWakes = 1);
LAB_SCENARIO(address_quiet_tso, .Setup = setup_quiet, .Threads = {waiter, wake_one}, .Model = "tso");
LAB_SCENARIO(address_quiet_c11, .Setup = setup_quiet, .Threads = {waiter, wake_one}, .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(address_quiet_two_tso, .Setup = setup_quiet, .Threads = {waiter, waiter, wake_all}, .Model = "tso");
LAB_SCENARIO(address_quiet_two_c11, .Setup = setup_quiet, .Threads = {waiter, waiter, wake_all}, .Model = "c11");
LAB_SCENARIO(address_quiet_begins, .Setup = setup_almost_quiet, .Threads = {waiter, wake_in_vain, wake_one});
LAB_SCENARIO(address_quiet_begins_c11, .Setup = setup_almost_quiet, .Threads = {waiter, wake_in_vain, wake_one},
             .Model = "c11");

/* The quiet begins between two waits of a thread. */
static void waiter_twice(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};

    RtlWaitOnAddress(&word, &zero, sizeof(zero), &timeout);
    waiter();
}
LAB_SCENARIO(address_quiet_again_c11, .Setup = setup_almost_quiet, .Threads = {waiter_twice, wake_in_vain, wake_one},
             .Model = "c11", .Timeouts = 1);

/* The quiet of a bucket ends for all of its addresses. */
static void setup_quiet_neighbours(void)
{
    find_neighbours();
    make_quiet(first);
    LabAssert(RtlpIsAddressQuiet((PVOID)second));
}
LAB_SCENARIO(address_quiet_neighbours, .Setup = setup_quiet_neighbours,
             .Threads = {first_waiter, second_waiter, wake_both});
