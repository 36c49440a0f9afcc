/*
 * Wait blocks are on the waiter's stack. The frame is reused the moment the wait returns: no thread may still write
 * into it.
 */
#include "stress.h"

#define OBJECTS 6
#define SIGNALERS 3
#define POISON 0xa5

static struct {
    KEVENT event[OBJECTS];
    unsigned long rounds;
    unsigned long signals[OBJECTS];
    unsigned long taken[OBJECTS];
    unsigned long waiters_left;
} race;

/* As deep as the frame of the wait: this overwrites the wait blocks. */
static __attribute__((noinline)) void reuse_the_frame(uint32_t patience)
{
    volatile unsigned char frame[2 * OBJECTS * sizeof(KWAIT_BLOCK)];

    for (size_t i = 0; i < sizeof(frame); i++)
        frame[i] = POISON;
    spin_for(patience);
    for (size_t i = 0; i < sizeof(frame); i++)
        require(frame[i] == POISON);
}

static __attribute__((noinline)) NTSTATUS wait_on_the_stack(unsigned first, PLARGE_INTEGER timeout)
{
    KWAIT_BLOCK blocks[OBJECTS];
    void *objects[OBJECTS];
    NTSTATUS status;

    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = &race.event[(first + i) % OBJECTS];
    status = KeWaitForMultipleObjects(OBJECTS, objects, WaitAny, Executive, KernelMode, FALSE, timeout, blocks);
    memset(blocks, POISON, sizeof(blocks));
    __asm__ volatile("" : : "r"(blocks) : "memory"); /* keeps the memset */
    return status;
}

static void waiter(unsigned index)
{
    test_random random;

    random_seed(&random, index);
    want_exact_timeouts();
    for (unsigned long round = 0; round < race.rounds; round++) {
        unsigned first = random_below(&random, OBJECTS);
        LARGE_INTEGER timeout = in_microseconds(1 + random_below(&random, 20));
        NTSTATUS status = wait_on_the_stack(first, random_below(&random, 2) ? &timeout : NULL);

        reuse_the_frame(random_below(&random, 30));
        if (status != STATUS_TIMEOUT) {
            require(status >= STATUS_WAIT_0 && status < STATUS_WAIT_0 + OBJECTS);
            add(&race.taken[(first + (unsigned)status) % OBJECTS], 1);
        }
    }
    add(&race.waiters_left, -1UL);
}

static void race_thread(void *argument, unsigned index)
{
    (void)argument;
    if (index < SIGNALERS) {
        test_random random;

        random_seed(&random, 100 + index);
        while (load(&race.waiters_left) != 0) {
            unsigned object = random_below(&random, OBJECTS);

            add(&race.signals[object], signal_once(&race.event[object]));
            spin_for(random_below(&random, 60));
        }
    } else {
        waiter(index);
    }
}

static void frames_are_left_alone(void **state)
{
    (void)state;
    memset(&race, 0, sizeof(race));
    race.rounds = test_rounds(200000);
    race.waiters_left = 2;
    for (unsigned i = 0; i < OBJECTS; i++)
        KeInitializeEvent(&race.event[i], SynchronizationEvent, FALSE);
    run_threads(SIGNALERS + 2, HANG_SECONDS, race_thread, NULL);
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_int_equal(race.signals[i], race.taken[i] + (unsigned long)KeReadStateEvent(&race.event[i]));
}

/* The event itself is on the waiter's stack and gone as soon as the wait returns: the setter must not touch it once the
   waiter can return. */
static struct {
    KEVENT *event;
    unsigned long rounds;
} handed;

static __attribute__((noinline)) void wait_for_own_event(void)
{
    KEVENT event;

    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    store(&handed.event, &event);
    require(wait_for(&event) == STATUS_SUCCESS);
    memset(&event, POISON, sizeof(event));
    __asm__ volatile("" : : "r"(&event) : "memory"); /* keeps the memset */
}

static void handed_thread(void *argument, unsigned index)
{
    (void)argument;
    for (unsigned long round = 0; round < handed.rounds; round++) {
        if (index == 0) {
            wait_for_own_event();
            reuse_the_frame(3);
        } else {
            KEVENT *event;

            await((event = load(&handed.event)) != NULL);
            store(&handed.event, NULL);
            KeSetEvent(event, EVENT_INCREMENT, FALSE);
        }
    }
}

static void events_on_the_stack(void **state)
{
    (void)state;
    handed.rounds = test_rounds(200000);
    run_threads(2, HANG_SECONDS, handed_thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_left_alone),
        cmocka_unit_test(events_on_the_stack),
    };

    return cmocka_run_group_tests_name("stress/stackreuse", tests, NULL, NULL);
}
