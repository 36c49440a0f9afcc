/* Restartable sections: no addition is lost, whatever the host does to the threads; none comes after they are closed. */
#include "haltest.h"

#include "sandbox.h"

#include "hal/section.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 6
#define SLOTS 256

typedef union slot {
    volatile LONG_PTR word;
    UCHAR line[1 << HAL_SECTION_SLOT_SHIFT];
} slot;

static slot slots[SLOTS] __attribute__((aligned(64)));
static volatile ULONG closed;
static LONG_PTR added[THREADS];
static unsigned long rounds;
static volatile sig_atomic_t interrupts;

static LONG_PTR sum(void)
{
    LONG_PTR all = 0;

    for (int i = 0; i < SLOTS; i++)
        all += __atomic_load_n(&slots[i].word, __ATOMIC_RELAXED);
    return all;
}

static void begin(unsigned long number)
{
    memset(slots, 0, sizeof(slots));
    memset(added, 0, sizeof(added));
    closed = 0;
    rounds = number;
}

static void *add_until_closed(void *argument)
{
    LONG_PTR *mine = argument, number = mine - added + 1;

    for (unsigned long round = 0; round < rounds; round++) {
        if (!HalAddInSection(slots, SLOTS, &closed, round % 3 == 0 ? -number : number)) {
            assert_int_equal(closed, 1);
            break;
        }
        *mine += round % 3 == 0 ? -number : number;
        if (round % 64 == 0)
            sched_yield();
    }
    return NULL;
}

static void start(pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_until_closed, &added[i]), 0);
}

static LONG_PTR join(pthread_t *threads)
{
    LONG_PTR all = 0;

    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        all += added[i];
    }
    return all;
}

static BOOLEAN offered(void)
{
    return HAL_SECTIONS && HalSectionsOffered() && sysconf(_SC_NPROCESSORS_CONF) <= SLOTS;
}

/* More threads than processors, so that they preempt each other, and signals, whose handler uses a section too. */
static void interrupted(int signal)
{
    (void)signal;
    if (HalAddInSection(slots, SLOTS, &closed, 1))
        __atomic_add_fetch(&interrupts, 1, __ATOMIC_RELAXED);
}

static void nothing_is_lost(void **state)
{
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART}, old;

    (void)state;
    if (!offered())
        skip();
    begin(test_rounds(200000));
    interrupts = 0;
    sigaction(SIGUSR1, &action, &old);
    start(threads);
    for (int i = 0; i < 200; i++)
        for (int k = 0; k < THREADS; k++)
            pthread_kill(threads[k], SIGUSR1);
    LONG_PTR all = join(threads);
    assert_int_equal(sum(), all + interrupts);
    sigaction(SIGUSR1, &old, NULL);
}

static void close_them(void)
{
    pthread_t threads[THREADS];

    begin(~0ul);
    start(threads);
    for (int i = 0; i < 20; i++)
        sched_yield();
    __atomic_store_n(&closed, 1, __ATOMIC_RELAXED);
    HalRestartSections();
    LONG_PTR before = sum();
    for (int i = 0; i < 5; i++)
        sched_yield();
    assert_int_equal(sum(), before);
    assert_int_equal(join(threads), before);
}

static void none_comes_after_the_close(void **state)
{
    (void)state;
    if (!offered())
        skip();
    for (unsigned long i = 0; i < test_rounds(100); i++)
        close_them();
}

static void no_slot_for_the_processor(void **state)
{
    (void)state;
    if (!offered())
        skip();
    begin(0);
    assert_false(HalAddInSection(slots, 0, &closed, 1));
    assert_int_equal(sum(), 0);
}

static void use_sections(void *argument)
{
    (void)argument;
    for (int i = 0; i < 3; i++)
        close_them();
}

static void a_forked_child_has_sections(void **state)
{
    (void)state;
    if (!offered())
        skip();
    run_in_child(use_sections, NULL);
}

static void use_sections_in_sandbox(void *argument)
{
    if (refuse_call(SYS_membarrier, *(unsigned *)argument))
        use_sections(NULL);
}

static void a_sandbox_refuses_the_restart(void **state)
{
    unsigned errors[] = {EPERM, ENOSYS};

    (void)state;
    if (!offered())
        skip();
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        run_in_child(use_sections_in_sandbox, &errors[i]);
}

int main(void)
{
    static const HAL_CALLBACKS callbacks;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(none_comes_after_the_close),
        cmocka_unit_test(no_slot_for_the_processor),
        cmocka_unit_test(a_forked_child_has_sections),
        cmocka_unit_test(a_sandbox_refuses_the_restart),
    };

    HalInitialize(&callbacks);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
