/* Event pairs: client and server alternate, and neither sees the other's work before it is done. */
#include <interlock/lab.h>

#include <ntifs.h>

#define ROUNDS 2

static KEVENT_PAIR pair;
static int request, answer;

static void setup(void)
{
    KeInitializeEventPair(&pair);
}

static void client(void)
{
    for (int round = 1; round <= ROUNDS; round++) {
        request = round;
        LabAssert(KeSetHighWaitLowThread(&pair, KernelMode) == STATUS_SUCCESS);
        LabAssert(answer == round);
    }
}

static void server(void)
{
    LabAssert(KeWaitForHighEventPair(&pair, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
    for (int round = 1; round <= ROUNDS; round++) {
        LabAssert(request == round);
        answer = round;
        if (round < ROUNDS)
            LabAssert(KeSetLowWaitHighThread(&pair, KernelMode) == STATUS_SUCCESS);
        else
            KeSetLowEventPair(&pair, IO_NO_INCREMENT, FALSE);
    }
}

static void both_are_reset(void)
{
    LabAssert(KeReadStateEvent(&pair.EventLow) == 0 && KeReadStateEvent(&pair.EventHigh) == 0);
}
LAB_SCENARIO(event_pair_turns, .Setup = setup, .Threads = {client, server}, .Finish = both_are_reset,
             .Flags = LAB_LARGE);
LAB_SCENARIO(event_pair_turns_c11, .Setup = setup, .Threads = {client, server}, .Finish = both_are_reset,
             .Model = "c11", .StaleReads = 1, .Flags = LAB_LARGE);

/* A wait that times out leaves the event to the next one. */
static int taken;

static void impatient_server(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    NTSTATUS status = KeWaitForHighEventPair(&pair, KernelMode, FALSE, &timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    __atomic_fetch_add(&taken, status == STATUS_SUCCESS, __ATOMIC_RELAXED);
}

static void set_high(void)
{
    KeSetHighEventPair(&pair, IO_NO_INCREMENT, FALSE);
}

static void taken_or_there(void)
{
    LabAssert(taken + KeReadStateEvent(&pair.EventHigh) == 1);
}
LAB_SCENARIO(event_pair_timeout, .Setup = setup, .Threads = {impatient_server, set_high}, .Finish = taken_or_there);
