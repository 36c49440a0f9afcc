/*
 * A signal releases several waiters, and the first one to return unmaps the object's memory: neither the other waiters
 * nor the signaling thread touch it any more. Also while waits are recorded (INTERLOCK_TRACE).
 */
#include "stress.h"

#include <sys/mman.h>

#define WAITERS 3
#define PAGE 4096

typedef struct round_of_waits {
    KEVENT *event;
    KEVENT never;
    unsigned long rounds;
    unsigned long begun;
    unsigned returned;
    PKTHREAD waiters[WAITERS];
} round_of_waits;

static void *take_page(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    require(page != MAP_FAILED);
    return page;
}

/* The second of two objects, so a recording must find out which one it was. */
static void wait_in_some_way(round_of_waits *r, test_random *random)
{
    PVOID objects[] = {&r->never, r->event};

    if (random_below(random, 2))
        require(wait_for(r->event) == STATUS_SUCCESS);
    else
        require(KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_1);
}

static void wait_and_unmap(round_of_waits *r, test_random *random)
{
    for (unsigned long i = 1; i <= r->rounds; i += 1) {
        await(load(&r->begun) == i);
        KEVENT *event = r->event; /* when all have returned there is a new one */

        wait_in_some_way(r, random);
        if (add(&r->returned, 1) == 1)
            require(munmap(event, PAGE) == 0);
    }
}

static void signal_waiters(round_of_waits *r)
{
    for (unsigned long i = 1; i <= r->rounds; i += 1) {
        r->event = take_page();
        KeInitializeEvent(r->event, NotificationEvent, FALSE);
        store(&r->returned, 0);
        store(&r->begun, i);
        for (unsigned w = 0; w < WAITERS; w += 1)
            await(load(&r->waiters[w]) != NULL && is_in_wait(r->waiters[w], WaitCommitted));
        if (i % 2)
            KeSetEvent(r->event, IO_NO_INCREMENT, FALSE);
        else
            KePulseEvent(r->event, IO_NO_INCREMENT, FALSE);
        await(load(&r->returned) == WAITERS);
    }
}

static void run(void *argument, unsigned index)
{
    round_of_waits *r = argument;
    test_random random;

    random_seed(&random, index);
    if (index == WAITERS) {
        signal_waiters(r);
    } else {
        store(&r->waiters[index], KeGetCurrentThread());
        wait_and_unmap(r, &random);
    }
}

static void test_event(void **state)
{
    round_of_waits r = {.rounds = test_rounds(2000)};

    (void)state;
    KeInitializeEvent(&r.never, SynchronizationEvent, FALSE);
    run_threads(WAITERS + 1, HANG_SECONDS, run, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_event)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
