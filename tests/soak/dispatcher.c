/* dispatcher.c: events, gates, event pairs, semaphores, and waits for any and for all of them. */
#include "soak.h"

/* What an interruptible wait returns besides success. */
static bool was_disturbed(NTSTATUS status, BOOLEAN alertable)
{
    return status == STATUS_TIMEOUT || (alertable && (status == STATUS_USER_APC || status == STATUS_ALERTED));
}

/* Events: a token that threads pass on, and a notification event that any thread sets, resets and pulses. */

static KEVENT token, flag;
static soak_cell token_cell;

static void events_setup(void)
{
    KeInitializeEvent(&token, SynchronizationEvent, TRUE);
    KeInitializeEvent(&flag, NotificationEvent, FALSE);
}

static void take_token(test_random *random)
{
    LARGE_INTEGER timeout = a_moment(random);
    BOOLEAN alertable = one_in(random, 2);
    KPROCESSOR_MODE mode = one_in(random, 2) ? UserMode : KernelMode;
    NTSTATUS status = KeWaitForSingleObject(&token, Executive, mode, alertable, one_in(random, 4) ? NULL : &timeout);

    if (status != STATUS_SUCCESS) {
        require(was_disturbed(status, alertable));
        return;
    }
    change_cell(&token_cell, random);
    require(KeSetEvent(&token, EVENT_INCREMENT, FALSE) == 0);
}

static void use_flag(test_random *random)
{
    LARGE_INTEGER timeout = a_moment(random);
    NTSTATUS status;

    switch (random_below(random, 5)) {
    case 0:
        require((ULONG)KeSetEvent(&flag, 0, FALSE) <= 1);
        break;
    case 1:
        require((ULONG)KeResetEvent(&flag) <= 1);
        break;
    case 2:
        require((ULONG)KePulseEvent(&flag, 0, FALSE) <= 1);
        break;
    default:
        status = KeWaitForSingleObject(&flag, UserRequest, UserMode, TRUE, &timeout);
        require(status == STATUS_SUCCESS || was_disturbed(status, TRUE));
        break;
    }
}

static void events_step(test_random *random)
{
    if (one_in(random, 3))
        use_flag(random);
    else
        take_token(random);
}

static void events_check(void)
{
    require(KeReadStateEvent(&token) == 1 && IsListEmpty(&token.Header.WaitListHead));
    require(IsListEmpty(&flag.Header.WaitListHead));
    require(token_cell.first == token_cell.second);
}

const soak_family events_family = {.name = "events",
                                   .weight = 8,
                                   .without_heap = true,
                                   .setup = events_setup,
                                   .step = events_step,
                                   .check = events_check};

/* Gates: a token too; one waits for it without a timeout. */

static KGATE gate;
static soak_cell gate_cell;

static void gates_setup(void)
{
    KeInitializeGate(&gate);
    KeSignalGate(&gate);
}

static void gates_step(test_random *random)
{
    NTSTATUS status;

    KeEnterGuardedRegion();
    status = KeWaitForGate(&gate, WrExecutive, KernelMode);
    require(status == STATUS_SUCCESS);
    change_cell(&gate_cell, random);
    if (one_in(random, 2))
        KeSignalGate(&gate);
    else
        KeSignalGateBoostPriority(&gate);
    KeLeaveGuardedRegion();
}

const soak_family gates_family = {
    .name = "gates", .weight = 6, .without_heap = true, .setup = gates_setup, .step = gates_step};

/* Event pairs: each side is a token. A holder releases it, or exchanges it for the other in one call. */

static HANDLE pair_handle;
static PKEVENT_PAIR pair;
static soak_cell side_cells[2];

static void event_pairs_setup(void)
{
    PVOID body;

    require(NT_SUCCESS(NtCreateEventPair(&pair_handle, EVENT_PAIR_ALL_ACCESS, NULL)));
    require(NT_SUCCESS(ObReferenceObjectByHandle(pair_handle, 0, NULL, KernelMode, &body, NULL)));
    pair = body;
    KeSetLowEventPair(pair, EVENT_INCREMENT, FALSE);
    require(NT_SUCCESS(NtSetHighEventPair(pair_handle)));
}

static NTSTATUS take_side(bool high, test_random *random)
{
    LARGE_INTEGER timeout = a_moment(random);
    BOOLEAN alertable = one_in(random, 2);

    if (one_in(random, 3))
        return high ? NtWaitHighEventPair(pair_handle) : NtWaitLowEventPair(pair_handle);
    NTSTATUS status = high ? KeWaitForHighEventPair(pair, UserMode, alertable, &timeout)
                           : KeWaitForLowEventPair(pair, UserMode, alertable, &timeout);
    require(status == STATUS_SUCCESS || was_disturbed(status, alertable));
    return status;
}

static NTSTATUS exchange_sides(bool high, test_random *random)
{
    if (one_in(random, 2))
        return high ? NtSetHighWaitLowEventPair(pair_handle) : NtSetLowWaitHighEventPair(pair_handle);
    return high ? KeSetHighWaitLowThread(pair, KernelMode) : KeSetLowWaitHighThread(pair, KernelMode);
}

static void event_pairs_step(test_random *random)
{
    bool high = one_in(random, 2);

    if (take_side(high, random) != STATUS_SUCCESS)
        return;
    change_cell(&side_cells[high], random);
    while (one_in(random, 2)) {
        require(exchange_sides(high, random) == STATUS_SUCCESS);
        high = !high;
        change_cell(&side_cells[high], random);
    }
    require((high ? KeSetHighEventPair(pair, 0, FALSE) : KeSetLowEventPair(pair, 0, FALSE)) == 0);
}

static void event_pairs_check(void)
{
    require(KeReadStateEvent(&pair->EventLow) == 1 && IsListEmpty(&pair->EventLow.Header.WaitListHead));
    require(KeReadStateEvent(&pair->EventHigh) == 1 && IsListEmpty(&pair->EventHigh.Header.WaitListHead));
    require(side_cells[0].first == side_cells[0].second && side_cells[1].first == side_cells[1].second);
    ObDereferenceObject(pair);
    require(NT_SUCCESS(NtClose(pair_handle)));
}

const soak_family event_pairs_family = {.name = "event pairs",
                                        .weight = 4,
                                        .without_heap = true,
                                        .setup = event_pairs_setup,
                                        .step = event_pairs_step,
                                        .check = event_pairs_check};

/* Semaphores: never more holders than permits. */

#define PERMITS 3

static KSEMAPHORE permits;
static HANDLE permits_by_handle;
static volatile LONG holders, holders_by_handle;

static void semaphores_setup(void)
{
    KeInitializeSemaphore(&permits, PERMITS, PERMITS);
    permits_by_handle = CreateSemaphoreA(NULL, PERMITS, PERMITS, NULL);
    require(permits_by_handle != NULL);
}

static void hold_permit(test_random *random)
{
    LARGE_INTEGER timeout = a_moment(random);
    BOOLEAN alertable = one_in(random, 2);
    NTSTATUS status = KeWaitForSingleObject(&permits, Executive, UserMode, alertable, &timeout);
    LONG before;

    if (status != STATUS_SUCCESS) {
        require(was_disturbed(status, alertable));
        return;
    }
    require(add(&holders, 1) <= PERMITS);
    spin_for(random_below(random, 100));
    add(&holders, -1);
    before = KeReleaseSemaphore(&permits, 0, 1, FALSE);
    require(before >= 0 && before < PERMITS);
}

static void hold_permit_by_handle(test_random *random)
{
    LONG before = -1;

    require(!ReleaseSemaphore(permits_by_handle, PERMITS + 1, &before) && GetLastError() == ERROR_TOO_MANY_POSTS);
    require(before == -1);
    if (WaitForSingleObjectEx(permits_by_handle, random_below(random, 3), one_in(random, 2)) != WAIT_OBJECT_0)
        return;
    require(add(&holders_by_handle, 1) <= PERMITS);
    if (one_in(random, 8))
        SwitchToThread();
    add(&holders_by_handle, -1);
    require(ReleaseSemaphore(permits_by_handle, 1, &before) && before >= 0 && before < PERMITS);
}

static void semaphores_step(test_random *random)
{
    if (one_in(random, 2))
        hold_permit(random);
    else
        hold_permit_by_handle(random);
}

static void semaphores_check(void)
{
    LONG before;

    require(KeReadStateSemaphore(&permits) == PERMITS && holders == 0);
    require(WaitForSingleObject(permits_by_handle, 0) == WAIT_OBJECT_0);
    require(ReleaseSemaphore(permits_by_handle, 1, &before) && before == PERMITS - 1);
    require(CloseHandle(permits_by_handle));
}

const soak_family semaphores_family = {.name = "semaphores",
                                       .weight = 8,
                                       .without_heap = true,
                                       .setup = semaphores_setup,
                                       .step = semaphores_step,
                                       .check = semaphores_check};

/* Waits for any and for all: five kinds of objects, signaled at random; what is released is consumed once. */

enum { AUTO_EVENT, MANUAL_EVENT, SEMAPHORE, MUTEX_0, MUTEX_1, TIMER, MORE, MIXED = MORE + 4 };

static HANDLE mixed[MIXED];
static soak_cell mixed_cells[2];
static volatile LONG released, taken;

static void any_all_setup(void)
{
    mixed[AUTO_EVENT] = CreateEventA(NULL, FALSE, FALSE, NULL);
    mixed[MANUAL_EVENT] = CreateEventA(NULL, TRUE, FALSE, NULL);
    mixed[SEMAPHORE] = CreateSemaphoreA(NULL, 0, MAXLONG, NULL);
    mixed[MUTEX_0] = CreateMutexA(NULL, FALSE, NULL);
    mixed[MUTEX_1] = CreateMutexA(NULL, FALSE, NULL);
    mixed[TIMER] = CreateWaitableTimerA(NULL, FALSE, NULL);
    for (unsigned i = MORE; i < MIXED; i++)
        mixed[i] = CreateEventA(NULL, FALSE, FALSE, NULL);
    for (unsigned i = 0; i < MIXED; i++)
        require(mixed[i] != NULL);
}

static void note_taken(unsigned index, test_random *random)
{
    if (index == SEMAPHORE)
        add(&taken, 1);
    if (index == MUTEX_0 || index == MUTEX_1) {
        change_cell(&mixed_cells[index - MUTEX_0], random);
        require(ReleaseMutex(mixed[index]));
    }
}

static void wait_for_some(test_random *random)
{
    unsigned first = random_below(random, MIXED), count = 1 + random_below(random, MIXED - 1);
    BOOL all = count < 4 && one_in(random, 2), alertable = one_in(random, 2);
    HANDLE some[MIXED];
    DWORD result;

    for (unsigned i = 0; i < count; i++)
        some[i] = mixed[(first + i) % MIXED];
    result = WaitForMultipleObjectsEx(count, some, all, random_below(random, 3), alertable);
    if (result == WAIT_TIMEOUT || (alertable && result == WAIT_IO_COMPLETION))
        return;
    require(result < count); /* no thread ends as the owner of one of these mutexes */
    for (unsigned i = 0; i < count; i++)
        if (all || i == result)
            note_taken((first + i) % MIXED, random);
}

static void signal_and_wait(test_random *random)
{
    DWORD result;

    add(&released, 1);
    result = SignalObjectAndWait(mixed[SEMAPHORE], mixed[AUTO_EVENT], random_below(random, 2), TRUE);
    require(result == WAIT_OBJECT_0 || result == WAIT_TIMEOUT || result == WAIT_IO_COMPLETION);
}

static void signal_something(test_random *random)
{
    LARGE_INTEGER due = in_microseconds(random_below(random, 500));
    LONG count = 1 + (LONG)random_below(random, 2);

    switch (random_below(random, 6)) {
    case 0:
        require(SetEvent(mixed[AUTO_EVENT]));
        break;
    case 1:
        require(SetEvent(mixed[MANUAL_EVENT]));
        break;
    case 2:
        require(ResetEvent(mixed[MANUAL_EVENT]));
        break;
    case 3:
        require(PulseEvent(mixed[MORE + random_below(random, MIXED - MORE)]));
        break;
    case 4:
        add(&released, count);
        require(ReleaseSemaphore(mixed[SEMAPHORE], count, NULL));
        break;
    default:
        require(SetWaitableTimer(mixed[TIMER], &due, one_in(random, 4) ? 1 : 0, NULL, NULL, FALSE));
        break;
    }
}

static void any_all_step(test_random *random)
{
    switch (random_below(random, 8)) {
    case 0:
        signal_and_wait(random);
        break;
    case 1:
    case 2:
        signal_something(random);
        break;
    default:
        wait_for_some(random);
        break;
    }
}

static void any_all_check(void)
{
    while (WaitForSingleObject(mixed[SEMAPHORE], 0) == WAIT_OBJECT_0)
        taken++;
    require(taken == released);
    require(CancelWaitableTimer(mixed[TIMER]));
    for (unsigned i = 0; i < MIXED; i++)
        require(CloseHandle(mixed[i]));
}

const soak_family any_all_family = {.name = "any/all",
                                    .weight = 12,
                                    .without_heap = true,
                                    .setup = any_all_setup,
                                    .step = any_all_step,
                                    .check = any_all_check};
