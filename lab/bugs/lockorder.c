/* Two locks in two orders. The threads of the first scenario never overlap, so no schedule deadlocks: the verifier
   reports each one. Those of the second may deadlock, and the report comes first. */
#include <interlock/lab.h>

#include "ke/ki.h"

#include <ntddk.h>

static FAST_MUTEX first, second;
static KEVENT passed;

static void setup(void)
{
    KiVerifierEnabled = TRUE;
    ExInitializeFastMutex(&first);
    ExInitializeFastMutex(&second);
    KeInitializeEvent(&passed, NotificationEvent, FALSE);
}

static void nest(PFAST_MUTEX outer, PFAST_MUTEX inner)
{
    ExAcquireFastMutex(outer);
    ExAcquireFastMutex(inner);
    ExReleaseFastMutex(inner);
    ExReleaseFastMutex(outer);
}

static void first_then_second(void)
{
    nest(&first, &second);
    KeSetEvent(&passed, 0, FALSE);
}

static void second_then_first_later(void)
{
    KeWaitForSingleObject(&passed, Executive, KernelMode, FALSE, NULL);
    nest(&second, &first);
}

static void second_then_first(void)
{
    nest(&second, &first);
}

LAB_SCENARIO(lock_order_never_meets, .Setup = setup, .Threads = {first_then_second, second_then_first_later},
             .Expect = "bugcheck");
LAB_SCENARIO(lock_order_may_meet, .Setup = setup, .Threads = {first_then_second, second_then_first}, .Expect = "bugcheck");
LAB_SCENARIO(lock_order_correct, .Setup = setup, .Threads = {first_then_second, first_then_second});
