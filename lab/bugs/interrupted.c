/* A thread that is ended between two plain accesses: it has taken an item from a list and not yet counted it. */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/ki.h"

static PKTHREAD target;
static int queued, counted;

static void take_one(void)
{
    queued -= 1;
    counted += 1;
}

static void stay_until_ended(void)
{
    static int never;
    while (!__atomic_load_n(&never, __ATOMIC_RELAXED))
        ;
}

static void taker(void)
{
    __atomic_store_n(&target, KeGetCurrentThread(), __ATOMIC_RELEASE);
    take_one();
    stay_until_ended();
}

/* A thread at APC_LEVEL is ended when it lowers its level. */
static void careful_taker(void)
{
    KIRQL irql;

    __atomic_store_n(&target, KeGetCurrentThread(), __ATOMIC_RELEASE);
    KeRaiseIrql(APC_LEVEL, &irql);
    take_one();
    KeLowerIrql(irql);
    stay_until_ended();
}

static void terminator(void)
{
    PKTHREAD thread;

    while ((thread = __atomic_load_n(&target, __ATOMIC_ACQUIRE)) == NULL)
        ;
    LabAssert(KiTerminateThread(thread, 1) == STATUS_SUCCESS);
}

static void setup(void)
{
    queued = 1;
}

static void none_is_lost(void)
{
    LabAssert(queued + counted == 1);
}

LAB_SCENARIO(interrupted_taker, .Setup = setup, .Threads = {taker, terminator}, .Finish = none_is_lost,
             .Flags = LAB_PRECISE, .Expect = "assertion");
LAB_SCENARIO(interrupted_careful_taker, .Setup = setup, .Threads = {careful_taker, terminator}, .Finish = none_is_lost,
             .Flags = LAB_PRECISE);
