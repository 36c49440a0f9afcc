/*
 * Processes that wait, own and signal are killed at random. Still, a mutant has one owner; the next owner, and only
 * that one, learns of an abandonment; no process waits forever for a dead one; at the end no object has a waiter and no
 * waiter record is left.
 */
#include "proxies.h"

#define WORKERS 4
#define MUTANTS 3
#define KILLS 150

/* In memory that the processes share. */
typedef struct shared {
    volatile int inside[MUTANTS]; /* the process in the section, 0: none */
    volatile unsigned long told, entered, stop;
    volatile int failed;
} shared;

static shared *s;
static proxy mutants[MUTANTS], tokens, doorbell, gate;

static void enter_section(int number, bool abandoned)
{
    int before = __atomic_exchange_n(&s->inside[number], getpid(), __ATOMIC_SEQ_CST);
    if (before != 0 && !abandoned) {
        fprintf(stderr, "mutant %d: process %d is inside, and %d got it\n", number, before, getpid());
        s->failed = 1;
    }
    if (abandoned)
        __atomic_add_fetch(&s->told, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&s->entered, 1, __ATOMIC_RELAXED);
}

static void leave_section(int number)
{
    int mine = getpid();
    if (!__atomic_compare_exchange_n(&s->inside[number], &mine, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        fprintf(stderr, "mutant %d: process %d came while %d was inside\n", number, mine, getpid());
        s->failed = 1;
    }
    KeReleaseMutant(&mutants[number].mutant, 0, FALSE, FALSE);
}

static bool is_abandoned(NTSTATUS status)
{
    return status >= STATUS_ABANDONED_WAIT_0 && status < STATUS_ABANDONED_WAIT_0 + 64;
}

static void use_one(test_random *r)
{
    int number = (int)random_below(r, MUTANTS);
    NTSTATUS status = wait_for_object(&mutants[number], random_below(r, 4) ? NULL : &(LARGE_INTEGER){.QuadPart = -500});
    if (status == STATUS_TIMEOUT)
        return;
    enter_section(number, is_abandoned(status));
    if (random_below(r, 8) == 0)
        nap(50 * MICROSECOND);
    if (random_below(r, 8) == 0 && wait_for_object(&mutants[number], NULL) == STATUS_WAIT_0)
        KeReleaseMutant(&mutants[number].mutant, 0, FALSE, FALSE);
    leave_section(number);
}

static void use_any(test_random *r)
{
    PVOID objects[MUTANTS + 2] = {&doorbell, &mutants[0], &mutants[1], &mutants[2], &tokens};
    KWAIT_BLOCK blocks[MUTANTS + 2];
    NTSTATUS status = KeWaitForMultipleObjects(MUTANTS + 2, objects, WaitAny, Executive, KernelMode, FALSE,
                                               &(LARGE_INTEGER){.QuadPart = -(LONGLONG)random_below(r, 2000) - 1}, blocks);
    bool abandoned = is_abandoned(status);
    ULONG index = (ULONG)(status - (abandoned ? STATUS_ABANDONED_WAIT_0 : STATUS_WAIT_0));
    if (index >= 1 && index <= MUTANTS) {
        enter_section((int)index - 1, abandoned);
        leave_section((int)index - 1);
    } else if (index == MUTANTS + 1) {
        KeReleaseSemaphore(&tokens.semaphore, 0, 1, FALSE);
    }
}

/* The status of a set does not tell which mutant was abandoned: it was those whose owner was inside. */
static void use_all(test_random *r)
{
    PVOID objects[2] = {&mutants[1], &mutants[2]};
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE,
                                               random_below(r, 2) ? NULL : &(LARGE_INTEGER){.QuadPart = -2000}, NULL);
    if (status == STATUS_TIMEOUT)
        return;
    enter_section(1, is_abandoned(status));
    enter_section(2, is_abandoned(status));
    leave_section(2);
    leave_section(1);
}

static void signal_something(test_random *r)
{
    switch (random_below(r, 4)) {
    case 0:
        KeSetEvent(&doorbell.event, 0, FALSE);
        break;
    case 1:
        KePulseEvent(&gate.event, 0, FALSE);
        break;
    case 2:
        wait_for_object(&gate, &(LARGE_INTEGER){.QuadPart = -1000});
        break;
    default:
        if (wait_for_object(&tokens, &(LARGE_INTEGER){.QuadPart = -500}) == STATUS_WAIT_0)
            KeReleaseSemaphore(&tokens.semaphore, 0, 1, FALSE);
        break;
    }
}

static void work(void *seed)
{
    test_random r;
    random_seed(&r, (uintptr_t)seed);
    while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
        switch (random_below(&r, 4)) {
        case 0:
            use_one(&r);
            break;
        case 1:
            use_any(&r);
            break;
        case 2:
            use_all(&r);
            break;
        default:
            signal_something(&r);
            break;
        }
    }
}

static pid_t start_worker(unsigned long seed)
{
    return fork_process(work, (void *)seed);
}

static ULONG count_processes(void)
{
    assert_true(WopLock(view));
    ULONG count = view->World->Processes;
    WopUnlock(view);
    return count;
}

static void settle(void)
{
    for (int i = 0; i < MUTANTS; i++) {
        NTSTATUS status = wait_for_object(&mutants[i], NULL);
        assert_true(status == STATUS_WAIT_0 || status == STATUS_ABANDONED_WAIT_0);
        assert_true(status == STATUS_ABANDONED_WAIT_0 || s->inside[i] == 0);
        assert_int_equal(KeReleaseMutant(&mutants[i].mutant, 0, FALSE, FALSE), 0);
    }
}

static void killed_at_random(void **state)
{
    (void)state;
    pid_t workers[WORKERS];
    test_random r;
    unsigned long kills = test_rounds(KILLS), progress = 0;
    random_seed(&r, 42);
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start_worker((unsigned long)i + 1);
    for (unsigned long i = 0; i < kills && !s->failed; i++) {
        unsigned victim = random_below(&r, WORKERS);
        nap(random_below(&r, 4000) * MICROSECOND);
        kill_process(workers[victim]);
        workers[victim] = start_worker(i + 100);
    }
    progress = s->entered;
    await(s->entered > progress + 100 || s->failed); /* the survivors continue */
    s->stop = 1;
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(await_process(workers[i]), 0);
    assert_false(s->failed);
    settle();
    await(count_processes() == 1);
    assert_int_equal(view->World->Waiters, 1);
    LONG left = KeReadStateSemaphore(&tokens.semaphore);
    assert_true(left >= 0 && left <= 2);
    proxy *all[] = {&mutants[0], &mutants[1], &mutants[2], &tokens, &doorbell, &gate};
    for (unsigned i = 0; i < RTL_NUMBER_OF(all); i++) {
        PWO_OBJECT object = WopRecord(view, all[i]->outside.Index, WoObjectRecord);
        assert_int_equal(object->WaitersWord, 0);
        assert_int_equal(object->References, 1);
    }
    print_message("%lu kills, %lu sections, abandonment told %lu times\n", kills, s->entered, s->told);
}

static int set_up(void **state)
{
    make_directory(state);
    view = attach();
    s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < MUTANTS; i++)
        make_proxy(&mutants[i], WoMutant, MutantObject, 1, 0);
    make_proxy(&tokens, WoSemaphore, SemaphoreObject, 2, 2);
    make_proxy(&doorbell, WoSynchronizationEvent, EventSynchronizationObject, 0, 0);
    make_proxy(&gate, WoNotificationEvent, EventNotificationObject, 0, 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {WATCHED(killed_at_random)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
