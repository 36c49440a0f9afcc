/* A wake is for one thread, a stray one for none; several packets at once, and packets whose memory is reused. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "ke/ki.h"

/* One wake ends one sleep: any other sleeper waits until it times out. */
static RTL_CONDITION_VARIABLE condition;
static RTL_SRWLOCK lock;
static int woken;

static void sleep_for_a_while(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};

    RtlAcquireSRWLockExclusive(&lock);
    if (RtlSleepConditionVariableSRW(&condition, &lock, &timeout, 0) == STATUS_SUCCESS)
        woken += 1;
    RtlReleaseSRWLockExclusive(&lock);
}

static void wake_one(void)
{
    RtlWakeConditionVariable(&condition);
}

static void one_at_most(void)
{
    LabAssert(woken <= 1);
}
LAB_SCENARIO(condition_wakes_one, .Setup = NULL, .Threads = {sleep_for_a_while, sleep_for_a_while, wake_one},
             .Finish = one_at_most);

/* An alert that is not for the wait on an address does not start its timeout again. Time is virtual: it passes only when
   the other thread times out, between the wait's beginning and the alert. */
static ULONG word, zero;
static PKTHREAD sleeper;
static ULONGLONG deadline;
static int awake;

static void sleep_on_address(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -20000};

    deadline = KeQueryInterruptTime() + 20000;
    __atomic_store_n(&sleeper, KeGetCurrentThread(), __ATOMIC_RELEASE);
    LabAssert(RtlWaitOnAddress(&word, &zero, sizeof(zero), &timeout) == STATUS_TIMEOUT);
    __atomic_store_n(&awake, 1, __ATOMIC_RELEASE);
}

static void last_wait_ended_in_time(void)
{
    LabAssert(sleeper->WaitDeadline.Time <= deadline);
}

static void alert_halfway(void)
{
    LARGE_INTEGER half = {.QuadPart = -10000};
    PKTHREAD thread;

    while ((thread = __atomic_load_n(&sleeper, __ATOMIC_ACQUIRE)) == NULL)
        ;
    while (__atomic_load_n(&thread->State, __ATOMIC_RELAXED) == Running && !__atomic_load_n(&awake, __ATOMIC_ACQUIRE))
        ;
    KeDelayExecutionThread(KernelMode, FALSE, &half);
    NtAlertThreadByThreadId(PsGetThreadId((PETHREAD)thread));
}
LAB_SCENARIO(address_timeout_goes_on, .Threads = {sleep_on_address, alert_halfway}, .Finish = last_wait_ended_in_time);

/* Packets come out in the order of their insertion, at most as many as requested, and as many as there are. */
static HANDLE port;

static void setup_port(void)
{
    LabAssert(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 8) == STATUS_SUCCESS);
}

static void post(ULONG key)
{
    LabAssert(NtSetIoCompletion(port, ULongToPtr(key), ULongToPtr(key + 1), (NTSTATUS)key + 2, key + 3) == STATUS_SUCCESS);
}

static void post_three(void)
{
    for (ULONG key = 1; key <= 3; key++)
        post(key);
}

static ULONG take(ULONG next, ULONG most)
{
    FILE_IO_COMPLETION_INFORMATION packets[4] = {0};
    ULONG count = 0;

    LabAssert(NtRemoveIoCompletionEx(port, packets, most, &count, NULL, FALSE) == STATUS_SUCCESS);
    LabAssert(count >= 1 && count <= most);
    for (ULONG i = 0; i < count; i++, next++)
        LabAssert(packets[i].KeyContext == ULongToPtr(next) && packets[i].ApcContext == ULongToPtr(next + 1) &&
                  packets[i].IoStatusBlock.Status == (NTSTATUS)next + 2 &&
                  packets[i].IoStatusBlock.Information == next + 3);
    LabAssert(packets[count].KeyContext == NULL);
    return count;
}

static void take_batches(void)
{
    for (ULONG next = 1; next <= 3;)
        next += take(next, 2);
}
LAB_SCENARIO(port_batches, .Setup = setup_port, .Threads = {post_three, take_batches});

/* The second time the thread belongs to the port, and takes what is there without a wait. */
static void post_and_take(void)
{
    for (int i = 0; i < 2; i++) {
        post_three();
        LabAssert(take(1, 2) == 2);
        LabAssert(take(3, 2) == 1);
    }
}
LAB_SCENARIO(port_batch_alone, .Setup = setup_port, .Threads = {post_and_take});

/*
 * The memory of packets (src/nt/packet.c), with magazines of four and a depot of two here: they are filled and emptied, by
 * threads on different processors. No packet is lost, none is used twice.
 */
static void post_up_to(ULONG last)
{
    for (ULONG key = 1; key <= last; key++)
        post(key);
}

static void take_up_to(ULONG last)
{
    for (ULONG next = 1; next <= last;)
        next += take(next, 3);
}

/* Each time more than there ever were: all free packets are used, and new ones. */
static void fill_and_empty(void)
{
    for (ULONG last = 9; last <= 21; last += 6) {
        post_up_to(last);
        take_up_to(last);
    }
}
LAB_SCENARIO(port_packets, .Setup = setup_port, .Threads = {fill_and_empty});

static void post_nine(void)
{
    post_up_to(9);
}

static void take_nine(void)
{
    take_up_to(9);
}
LAB_SCENARIO(port_packets_handed_over, .Setup = setup_port, .Threads = {post_nine, take_nine}, .Flags = LAB_LARGE);
