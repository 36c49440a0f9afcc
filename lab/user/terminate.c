/* Terminating a thread that waits: what it waits for is not lost with it, and no thread touches its remains. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "ke/wait.h"

static KEVENT event;
static KMUTANT mutant;
static volatile ULONG word;
static int got;

static void setup(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeInitializeMutant(&mutant, FALSE);
}

static HANDLE id_of_first(void)
{
    return ULongToHandle(HandleToULong(PsGetCurrentThreadId()) - LabCurrentThread());
}

/* Too late: there is no thread to open. */
static void terminator(void)
{
    OBJECT_ATTRIBUTES attributes = {.Length = sizeof(attributes)};
    CLIENT_ID id = {.UniqueThread = id_of_first()};
    HANDLE thread;
    NTSTATUS status = NtOpenThread(&thread, THREAD_TERMINATE, &attributes, &id);
    if (status == STATUS_SUCCESS) {
        LabAssert(NtTerminateThread(thread, STATUS_CANCELLED) == STATUS_SUCCESS);
        LabAssert(NtClose(thread) == STATUS_SUCCESS);
    } else {
        LabAssert(status == STATUS_INVALID_CID);
    }
}

/* In a service, so a thread that was given the event reports it before it is terminated. */
static void waiter(void)
{
    KiEnterService(KeGetCurrentThread());
    NTSTATUS status = KiWaitForSingleObject(&event, UserRequest, UserMode, FALSE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_USER_APC);
    __atomic_fetch_add(&got, status == STATUS_SUCCESS, __ATOMIC_RELAXED);
    KiExitService(KeGetCurrentThread());
}

static void setter(void)
{
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

/* Either the victim, in time, or the other thread has consumed the signal. */
static void is_consumed(void)
{
    LabAssert(got == 1 && KeReadStateEvent(&event) == 0);
}
LAB_SCENARIO(terminate_against_set, .Setup = setup, .Threads = {waiter, terminator, setter, waiter},
             .Finish = is_consumed, .Flags = LAB_LARGE | LAB_MAY_BLOCK | LAB_RUN_EXIT);

/* The other waiter of the address is woken, whatever happens to the first. */
static void address_waiter(void)
{
    ULONG zero = 0;
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(&word, &zero, sizeof(zero), NULL);
    __atomic_fetch_add(&got, 1, __ATOMIC_RELAXED);
}

static void waker(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    RtlWakeAddressAll((PVOID)&word);
}

static void other_was_woken(void)
{
    LabAssert(got == 1 || got == 2);
}
LAB_SCENARIO(terminate_address_waiter, .Threads = {address_waiter, terminator, waker, address_waiter},
             .Finish = other_was_woken, .Flags = LAB_LARGE | LAB_RUN_EXIT);

/* A mutant that the victim owned is abandoned; it may also have been terminated before it got it. */
static void owner(void)
{
    KeWaitForSingleObject(&mutant, Executive, UserMode, FALSE, NULL);
    LabExitThread();
}

static void heir(void)
{
    NTSTATUS status = KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
    got += 1;
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void mutant_is_free(void)
{
    LabAssert(KeReadStateMutant(&mutant) == 1 && got == 1);
}
LAB_SCENARIO(terminate_owner, .Setup = setup, .Threads = {owner, terminator, heir}, .Finish = mutant_is_free,
             .Flags = LAB_LARGE | LAB_RUN_EXIT);
