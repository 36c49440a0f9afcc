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

/* Whichever object ended the wait: the thread's blocks are on no list. */
static void none_is_linked(void)
{
    LabAssert(IsListEmpty(&first.Header.WaitListHead) && IsListEmpty(&second.Header.WaitListHead));
}
LAB_SCENARIO(wait_aborted_any, .Setup = setup, .Threads = {wait_for_any, set_either}, .Finish = none_is_linked);

/*
 * A signaler that has locked all objects of a WaitAll, and finds one of them taken meanwhile, removes its marks from
 * the blocks before it unlocks the objects. The next signaler marks them as soon as they are unlocked, and a mark that
 * is lost is an object that stays locked.
 */
static KEVENT objects[3]; /* locked in this order */
#define lasting objects[0]
#define taken objects[1]
#define set_last objects[2]

static void setup_marks(void)
{
    KeInitializeEvent(&lasting, NotificationEvent, TRUE);
    KeInitializeEvent(&taken, SynchronizationEvent, TRUE);
    KeInitializeEvent(&set_last, SynchronizationEvent, FALSE);
}

static void wait_for_three(void)
{
    PVOID all[] = {&taken, &lasting, &set_last}; /* unlocked in this order */

    LabAssert(KeWaitForMultipleObjects(3, all, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
}

static void complete(void)
{
    KeSetEvent(&set_last, IO_NO_INCREMENT, FALSE);
}

static void take_and_give_back(void)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    if (KeWaitForSingleObject(&taken, Executive, KernelMode, FALSE, &now) == STATUS_SUCCESS)
        KeSetEvent(&taken, IO_NO_INCREMENT, FALSE);
}

static void none_is_locked(void)
{
    for (int i = 0; i < 3; i++)
        LabAssert(!(KiReadHeader(&objects[i].Header) & KI_LOCKED));
}
LAB_SCENARIO(wait_all_marks, .Setup = setup_marks, .Threads = {wait_for_three, complete, take_and_give_back},
             .Finish = none_is_locked);
