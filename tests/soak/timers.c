/* timers.c: kernel timers with and without DPCs, waitable timers with APCs, timers of the executive. */
#include "soak.h"

/* Kernel timers, each on the stack of the step that uses it: the step cancels the timer and waits for its DPC before it
   returns. */

typedef struct expiries {
    unsigned long count; /* plain: KeFlushQueuedDpcs orders it */
} expiries;

static VOID note_expiry(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    (void)dpc;
    (void)one;
    (void)two;
    ((expiries *)context)->count += 1;
}

/* The next expiry of a periodic timer queues the DPC while its last call may still run on another processor. */
static VOID note_period(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    (void)dpc;
    (void)one;
    (void)two;
    add(&((expiries *)context)->count, 1);
}

static void one_shot(test_random *random)
{
    LARGE_INTEGER due = in_microseconds(random_below(random, 500)), timeout = a_moment(random);
    expiries seen = {0};
    KTIMER timer;
    KDPC dpc;
    BOOLEAN cancelled;

    KeInitializeTimerEx(&timer, one_in(random, 2) ? NotificationTimer : SynchronizationTimer);
    KeInitializeDpc(&dpc, note_expiry, &seen);
    require(!KeSetTimer(&timer, due, &dpc));
    KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, &timeout);
    cancelled = KeCancelTimer(&timer);
    KeFlushQueuedDpcs();
    require(seen.count == (cancelled ? 0 : 1));
}

static void periodic(test_random *random)
{
    LARGE_INTEGER due = in_microseconds(random_below(random, 300)), timeout = in_microseconds(3000);
    expiries seen = {0};
    unsigned long waited = 0;
    KTIMER timer;
    KDPC dpc;

    KeInitializeTimerEx(&timer, SynchronizationTimer);
    KeInitializeDpc(&dpc, note_period, &seen);
    KeSetTimerEx(&timer, due, 1, &dpc);
    for (uint32_t i = random_below(random, 3); i > 0; i--)
        waited += KeWaitForSingleObject(&timer, Executive, KernelMode, FALSE, &timeout) == STATUS_SUCCESS;
    require(KeCancelTimer(&timer));
    KeFlushQueuedDpcs();
    require(seen.count >= (waited != 0));
}

/* One timer that all workers set and cancel. */
static KTIMER shared;

static void use_shared_timer(test_random *random)
{
    LARGE_INTEGER due = in_microseconds(random_below(random, 2000)), timeout = a_moment(random);

    switch (random_below(random, 3)) {
    case 0:
        KeSetTimerEx(&shared, due, one_in(random, 2) ? 2 : 0, NULL);
        break;
    case 1:
        KeCancelTimer(&shared);
        break;
    default:
        KeWaitForSingleObject(&shared, Executive, UserMode, TRUE, &timeout);
        break;
    }
}

static void timers_setup(void)
{
    KeInitializeTimerEx(&shared, SynchronizationTimer);
}

static void timers_step(test_random *random)
{
    switch (random_below(random, 4)) {
    case 0:
        one_shot(random);
        break;
    case 1:
        periodic(random);
        break;
    default:
        use_shared_timer(random);
        break;
    }
}

static void timers_check(void)
{
    KeCancelTimer(&shared);
    require(IsListEmpty(&shared.Header.WaitListHead));
}

const soak_family timers_family = {.name = "timers",
                                   .weight = 6,
                                   .without_heap = true,
                                   .setup = timers_setup,
                                   .step = timers_step,
                                   .check = timers_check};

/* Waitable timers. The APC runs in alertable waits of the thread that set the timer, and only until that thread cancels
   it.
 */

static VOID CALLBACK note_apc(LPVOID context, DWORD low, DWORD high)
{
    require(low != 0 || high != 0);
    *(unsigned *)context += 1;
}

static void user_timers_step(test_random *random)
{
    HANDLE timer = CreateWaitableTimerA(NULL, one_in(random, 2), NULL);
    LARGE_INTEGER due = in_microseconds(random_below(random, 1000));
    unsigned apcs = 0, before;

    require(timer != NULL);
    require(SetWaitableTimer(timer, &due, one_in(random, 2) ? 1 : 0, note_apc, &apcs, FALSE));
    for (uint32_t i = random_below(random, 3); i > 0; i--)
        SleepEx(1, TRUE);
    WaitForSingleObject(timer, random_below(random, 3));
    require(CancelWaitableTimer(timer));
    before = apcs;
    SleepEx(0, TRUE);
    require(apcs == before);
    require(CloseHandle(timer));
}

const soak_family user_timers_family = {.name = "waitable timers", .weight = 4, .step = user_timers_step};

/* Timers of the executive. */

static VOID note_callback(PEX_TIMER timer, PVOID context)
{
    (void)timer;
    ((expiries *)context)->count += 1;
}

static void executive_timers_step(test_random *random)
{
    expiries seen = {0};
    PEX_TIMER timer = ExAllocateTimer(note_callback, &seen, one_in(random, 2) ? EX_TIMER_NOTIFICATION : 0);
    LARGE_INTEGER timeout = a_moment(random);
    BOOLEAN cancelled;

    require(timer != NULL);
    require(!ExSetTimer(timer, -10 * (LONGLONG)(1 + random_below(random, 500)), 0, NULL));
    KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, &timeout);
    cancelled = ExDeleteTimer(timer, TRUE, TRUE, NULL);
    require(seen.count == (cancelled ? 0 : 1));
}

const soak_family executive_timers_family = {.name = "executive timers", .weight = 3, .step = executive_timers_step};
