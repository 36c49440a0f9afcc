/* Timers at their edges: a due time that is now, an expiry that races with the previous one, a cancel of a shared
   timer. */
#include "woworld.h"

#include "ex/exp.h"

#define SOON (-10000)

static KTIMER timer;

static void setup_timer(void)
{
    KeInitializeTimer(&timer);
}

/* Time is virtual and passes only in waits, so now is still now: such a timer has expired when it is set. */
static void set_for_now(void)
{
    LARGE_INTEGER now;

    KeQuerySystemTimePrecise(&now);
    LabAssert(!KeSetTimer(&timer, now, NULL));
    LabAssert(KeReadStateTimer(&timer));
    LabAssert(!KeCancelTimer(&timer));
}
LAB_SCENARIO(timer_due_now, .Setup = setup_timer, .Threads = {set_for_now});

/*
 * A periodic executive timer expires again after its DPC was dequeued and before the callback has begun. The DPC is not
 * queued a second time: a delete in between would not see it, and would free the timer that the DPC then uses.
 */
static int ran;

static VOID run(PEX_TIMER self, PVOID context)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(context);
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

static KDPC first;

static VOID nothing(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    UNREFERENCED_PARAMETER(dpc);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(argument1);
    UNREFERENCED_PARAMETER(argument2);
}

static void begin_executive(void)
{
    KeQueryInterruptTime();
}

static void expire_and_delete(void)
{
    PEX_TIMER mine = ExAllocateTimer(run, NULL, 0);

    KeSetTargetProcessorDpc(&mine->Dpc, 1);
    KeInitializeDpc(&first, nothing, NULL);
    KeSetTargetProcessorDpc(&first, 1);
    KeInsertQueueDpc(&first, NULL, NULL);
    KeFlushQueuedDpcs(); /* the processor has its idle thread */
    ExSetTimer(mine, SOON, -SOON, NULL);
    while (__atomic_load_n(&ran, __ATOMIC_RELAXED) == 0)
        ;
    ExDeleteTimer(mine, TRUE, TRUE, NULL);
}
LAB_SCENARIO(executive_timer_expires_twice, .Setup = begin_executive, .Threads = {expire_and_delete},
             .Flags = LAB_LARGE);

/* The word of a shared timer never shows that it is set, only that it is locked: a cancel queries the world. */
static proxy shared[PROCESSES];

static void setup_shared(void)
{
    make_world();
    make_object(shared, WoNotificationTimer, TimerNotificationObject, 0, 0);
}

static void set_and_cancel_shared(void)
{
    LARGE_INTEGER tomorrow = {.QuadPart = -10000000LL * 3600 * 48};

    LabAssert(!KeSetTimer(&shared[0].timer, tomorrow, NULL));
    LabAssert(KeCancelTimer(&shared[1].timer));
    LabAssert(!KeCancelTimer(&shared[0].timer));
}
LAB_SCENARIO(wo_timer_cancel, .Setup = setup_shared, .Threads = {set_and_cancel_shared});
