/* Waits at their edges: what the register and the blocks of a thread show when its wait ended before it was committed. */
#include <interlock/lab.h>

#include <ntddk.h>

#include "ke/wait.h"

static KEVENT first, second;

static void setup(void)
{
    KeInitializeEvent(&first, SynchronizationEvent, FALSE);
    KeInitializeEvent(&second, SynchronizationEvent, FALSE);
}

/* A block that was bypassed belongs to a wait that was aborted, and to no other. */
static void assert_register(void)
{
    PKTHREAD thread = KeGetCurrentThread();
    ULONG state = __atomic_load_n(&thread->WaitRegister, __ATOMIC_RELAXED) & KI_WAIT_STATE_MASK;
    BOOLEAN bypassed = FALSE;

    for (int i = 0; i < 2; i++)
        bypassed |= thread->WaitBlock[i].BlockState == WaitBlockBypassComplete;
    LabAssert(bypassed == (state == WaitAborted));
}

static void wait_for_first(void)
{
    LabAssert(KeWaitForSingleObject(&first, Executive, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    assert_register();
}

static void set_first(void)
{
    KeSetEvent(&first, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(wait_aborted, .Setup = setup, .Threads = {wait_for_first, set_first});

static void wait_for_any(void)
{
    PVOID objects[] = {&first, &second};

    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL) < 2);
    assert_register();
}

static void set_either(void)
{
    KeSetEvent(LabChoose(2) ? &first : &second, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(wait_aborted_any, .Setup = setup, .Threads = {wait_for_any, set_either});
