/* things.c: the objects of the calls, created for each input, and the comparison of their states with the model's. */
#include "fuzz.h"

#include <string.h>

#include "ob/obp.h"

#include "../../lab/models/kqueue.h"

fuzz_things things;

const char *const object_names[ALL_OBJECTS] = {"E0", "E1", "E2", "S0", "S1", "M0", "M1",  "T0",
                                               "T1", "A0", "A1", "A2", "A3", "P0", "low", "high"};

static void must(NTSTATUS status)
{
    if (!NT_SUCCESS(status))
        mismatch("an object cannot be made: %08x", (unsigned)status);
}

static void create_objects(void)
{
    static WCHAR text[] = u"\\BaseNamedObjects\\fuzz E0";
    UNICODE_STRING name = {.Buffer = text, .Length = sizeof(text) - sizeof(WCHAR), .MaximumLength = sizeof(text)};
    OBJECT_ATTRIBUTES attributes;

    InitializeObjectAttributes(&attributes, &name, 0, NULL, NULL);
    for (unsigned i = E0; i <= E2; i++)
        must(NtCreateEvent(&things.handles[i], EVENT_ALL_ACCESS, i == E0 ? &attributes : NULL,
                           i == E0 ? NotificationEvent : SynchronizationEvent, state_of(i) != 0));
    for (unsigned i = S0; i <= S1; i++)
        must(NtCreateSemaphore(&things.handles[i], SEMAPHORE_ALL_ACCESS, NULL, (LONG)state_of(i),
                               (LONG)model.objects[i].state[1]));
    must(NtCreateMutant(&things.handles[M0], MUTANT_ALL_ACCESS, NULL, FALSE));
    must(NtCreateMutant(&things.handles[M1], MUTANT_ALL_ACCESS, NULL, FALSE));
    must(NtCreateTimer(&things.handles[T0], TIMER_ALL_ACCESS, NULL, NotificationTimer));
    must(NtCreateTimer(&things.handles[T1], TIMER_ALL_ACCESS, NULL, SynchronizationTimer));
    for (unsigned i = 0; i < A0; i++)
        must(ObReferenceObjectByHandle(things.handles[i], 0, NULL, KernelMode, &things.bodies[i], NULL));
}

static ULONG limit_of(unsigned queue)
{
    return (ULONG)model.queues[queue].state[QUEUE_LIMIT] - (model.wrong == RULE_concurrency);
}

static void create_pair(void)
{
    PVOID body;

    must(NtCreateEventPair(&things.pair_handle, EVENT_PAIR_ALL_ACCESS, NULL));
    must(ObReferenceObjectByHandle(things.pair_handle, 0, NULL, KernelMode, &body, NULL));
    things.pair = body;
    things.bodies[LOW] = &things.pair->EventLow;
    things.bodies[HIGH] = &things.pair->EventHigh;
}

void things_create(void)
{
    create_objects();
    KeInitializeQueue(&things.queue, limit_of(Q0));
    must(NtCreateIoCompletion(&things.port, IO_COMPLETION_ALL_ACCESS, NULL, limit_of(P0)));
    must(ObReferenceObjectByHandle(things.port, 0, NULL, KernelMode, &things.port_body, NULL));
    things.handles[PORT] = things.port;
    things.bodies[PORT] = ObpWaitObject(things.port_body);
    must(NtCreateWaitCompletionPacket(&things.wait_packet, WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL));
    must(NtCreateKeyedEvent(&things.keyed_event, KEYEDEVENT_ALL_ACCESS, NULL, 0));
    create_pair();
    memset((void *)things.words, 0, sizeof(things.words));
    RtlInitializeSRWLock(&things.srw);
    ExInitializePushLock(&things.push);
    must(RtlInitializeCriticalSection(&things.section));
    must(ExInitializeResourceLite(&things.resource));
    KeInitializeGuardedMutex(&things.guarded);
    memset(things.conditions, 0, sizeof(things.conditions));
    ExInitializeRundownProtection(&things.rundown);
    InitializeSListHead(&things.list);
    slots_reset();
}

/* After the last step: no thread waits, nothing is held, Q0 is run down and P0 closed. */
void things_delete(void)
{
    for (unsigned i = 0; i < A0; i++) {
        if (i == T0 || i == T1)
            KeCancelTimer(things.bodies[i]);
        ObDereferenceObject(things.bodies[i]);
        must(NtClose(things.handles[i]));
    }
    must(NtClose(things.keyed_event));
    must(NtClose(things.pair_handle));
    ObDereferenceObject(things.pair);
    must(NtClose(things.wait_packet));
    ObDereferenceObject(things.port_body);
    must(RtlDeleteCriticalSection(&things.section));
    must(ExDeleteResourceLite(&things.resource));
    if (things.srw.Ptr != NULL || things.push != 0 || things.conditions[SRW].Ptr != NULL ||
        things.conditions[SECTION].Ptr != NULL)
        mismatch("a lock or condition variable that nobody uses is not 0");
}

ULONG count_handles(void)
{
    ULONG count = 0;

    must(NtQueryInformationProcess(NtCurrentProcess(), ProcessHandleCount, &count, sizeof(count), NULL));
    return count;
}

/* The state that can be read without side effects. */

static intptr_t real_state(unsigned object)
{
    PVOID body = things.bodies[object];

    if (object <= E2)
        return KeReadStateEvent(body);
    if (object <= S1)
        return KeReadStateSemaphore(body);
    if (object <= M1)
        return KeReadStateMutant(body);
    return KeReadStateTimer(body);
}

static void expect_state(const char *name, intptr_t real, intptr_t modeled)
{
    if (real != modeled)
        mismatch("the state of %s is %ld; by the model %ld", name, (long)real, (long)modeled);
}

static void check_queue(void)
{
    const intptr_t *state = model.queues[Q0].state;

    if (state[QUEUE_GONE])
        return;
    expect_state("Q0", KeReadStateQueue(&things.queue), state[QUEUE_COUNT]);
    expect_state("Q0's running threads", (intptr_t)things.queue.CurrentCount,
                 __builtin_popcountl((unsigned long)state[QUEUE_RUNNING]));
}

static LONG depth_of_port(void)
{
    IO_COMPLETION_BASIC_INFORMATION information = {.Depth = -1};

    must(NtQueryIoCompletion(things.port, IoCompletionBasicInformation, &information, sizeof(information), NULL));
    return information.Depth;
}

static void check_port(void)
{
    const intptr_t *state = model.queues[P0].state;
    unsigned seconds = 0;

    if (state[QUEUE_GONE])
        return;
    while (depth_of_port() != state[QUEUE_COUNT] && await_another_look(&seconds)) {
    }
    expect_state("P0", depth_of_port(), state[QUEUE_COUNT]);
}

static void check_locks(void)
{
    intptr_t shares = 0;

    expect_state("the SRW lock", things.srw.Ptr != NULL,
                 model.locks[SRW].state[0] != 0 || model.locks[SRW].state[1] != 0);
    expect_state("the pushlock", things.push != 0, model.locks[PUSH].state[0] != 0 || model.locks[PUSH].state[1] != 0);
    expect_state("the critical section", things.section.RecursionCount, 1 - model.locks[SECTION].state[0]);
    expect_state("the guarded mutex", things.guarded.Count == FM_LOCK_BIT, model.locks[GUARDED].state[0] == 0);
    for (unsigned i = 0; i < ACTORS; i++)
        shares += holds_lock(i, RESOURCE);
    expect_state("the resource", (intptr_t)things.resource.ActiveEntries, shares);
    expect_state("the list", QueryDepthSList(&things.list),
                 __builtin_popcountl((unsigned long)((model.list.state[0] | model.list.state[0] >> 1 |
                                                      model.list.state[0] >> 2 | model.list.state[0] >> 3) &
                                                     0x1111111111111111)));
}

void check_states(void)
{
    for (unsigned i = 0; i < A0; i++)
        expect_state(object_names[i], real_state(i), state_of(i));
    for (unsigned i = LOW; i <= HIGH; i++)
        expect_state(object_names[i], KeReadStateEvent(things.bodies[i]), state_of(i));
    check_queue();
    check_port();
    check_locks();
}
