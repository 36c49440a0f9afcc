/* A thread that is interrupted inside the C library is recognized, and interrupted again. */
#include "haltest.h"

#include "hal/halp.h"

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#define LARGE (32u << 20)
#define ENOUGH 30

static struct _KTHREAD target_thread;
static volatile ULONG inside;
static volatile ULONG outside;
static volatile ULONG refused;
static BOOLEAN again;

static VOID interrupt(BOOLEAN in_library)
{
    __atomic_fetch_add(in_library ? &inside : &outside, 1, __ATOMIC_RELEASE);
    if (again && in_library && HalInterruptLater() != HalLaterSet)
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELEASE);
}

static const HAL_CALLBACKS callbacks = {.Interrupt = interrupt};

struct target {
    void (*occupation)(struct target *target);
    char *memory;
    int ends[2];
    volatile ULONG id;
    volatile ULONG stop;
};

static void compute(struct target *target)
{
    (void)target;
    for (volatile unsigned count = 0; count < 100000; count++)
        ;
}

static void fill(struct target *target)
{
    memset(target->memory, 1, LARGE);
}

static void allocate(struct target *target)
{
    (void)target;
    for (int i = 0; i < 1000; i++) {
        void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(memory, MAP_FAILED);
        munmap(memory, 4096);
    }
}

static void read_from_pipe(struct target *target)
{
    char byte;

    assert_int_equal(read(target->ends[0], &byte, 1), 1);
}

static void poll_pipe(struct target *target)
{
    struct pollfd input = {.fd = target->ends[0], .events = POLLIN};

    (void)!poll(&input, 1, -1);
}

static void run_target(void *argument, unsigned index)
{
    struct target *target = argument;

    (void)index;
    HalCurrentThread = &target_thread;
    HalWatchThreadExit(&target_thread);
    __atomic_store_n(&target->id, HalCurrentThreadId(), __ATOMIC_RELEASE);
    while (__atomic_load_n(&target->stop, __ATOMIC_ACQUIRE) == 0)
        target->occupation(target);
    HalWatchThreadExit(NULL);
    HalCurrentThread = NULL;
}

static test_threads *start_target(struct target *target)
{
    test_threads *threads;

    inside = outside = refused = 0;
    target->memory = malloc(LARGE);
    assert_non_null(target->memory);
    assert_int_equal(pipe(target->ends), 0);
    threads = start_threads(1, run_target, target);
    wait_until_set(&target->id);
    sleep_milliseconds(2);
    return threads;
}

static void stop_target(struct target *target, test_threads *threads)
{
    set_flag(&target->stop);
    assert_int_equal(write(target->ends[1], "xx", 2), 2);
    join_threads(threads, 60);
    close(target->ends[0]);
    close(target->ends[1]);
    free(target->memory);
}

static ULONG seen(void)
{
    return __atomic_load_n(&inside, __ATOMIC_ACQUIRE) + __atomic_load_n(&outside, __ATOMIC_ACQUIRE);
}

/* Interrupts a thread that does nothing else, and returns how often it was inside the C library. */
static ULONG interrupt_while(void (*occupation)(struct target *target), BOOLEAN asleep)
{
    struct target target = {.occupation = occupation};
    test_threads *threads = start_target(&target);

    watchdog_start(60);
    for (ULONG count = 1; count <= ENOUGH; count++) {
        while (asleep && !sleeps_in_the_host(target.id))
            sleep_milliseconds(1);
        HalInterruptThread(target.id);
        while (seen() < count)
            sleep_milliseconds(1);
    }
    watchdog_stop();
    stop_target(&target, threads);
    return inside;
}

/* ThreadSanitizer provides malloc, is called by every access, and defers signals while the C library runs. */
static void need_a_plain_build(void)
{
#ifdef HALP_THREAD_SANITIZER
    skip();
#endif
}

static void code_of_the_program_is_outside(void **state)
{
    (void)state;
    need_a_plain_build();
    again = FALSE;
    assert_int_equal(interrupt_while(compute, FALSE), 0);
}

/* The program may be between two calls. */
static void a_function_of_the_library_is_inside(void **state)
{
    (void)state;
    again = FALSE;
    assert_true(interrupt_while(fill, FALSE) > ENOUGH / 2);
}

static void a_call_for_memory_is_inside(void **state)
{
    (void)state;
    again = FALSE;
    assert_true(interrupt_while(allocate, FALSE) > ENOUGH / 4);
}

static void a_call_that_waits_is_outside(void **state)
{
    (void)state;
    need_a_plain_build();
    again = FALSE;
    assert_int_equal(interrupt_while(read_from_pipe, TRUE), 0);
    assert_int_equal(interrupt_while(poll_pipe, TRUE), 0);
}

/* One interrupt, and the rest follow automatically: another one each time the thread is inside the library. */
static void it_is_interrupted_again_until_it_is_outside(void **state)
{
    struct target target = {.occupation = allocate};
    test_threads *threads;

    (void)state;
    again = TRUE;
    threads = start_target(&target);
    watchdog_start(60);
    for (int round = 0; round < 20; round++) {
        ULONG before = __atomic_load_n(&outside, __ATOMIC_ACQUIRE);

        HalInterruptThread(target.id);
        while (__atomic_load_n(&outside, __ATOMIC_ACQUIRE) == before &&
               __atomic_load_n(&refused, __ATOMIC_ACQUIRE) == 0)
            sleep_milliseconds(1);
    }
    watchdog_stop();
    stop_target(&target, threads);
    assert_true(inside > 0);
}

static pthread_spinlock_t taken;

static void spin_in_library(struct target *target)
{
    (void)target;
    pthread_spin_lock(&taken);
    pthread_spin_unlock(&taken);
}

/* A thread that never leaves the library is not deferred forever. */
static void it_is_not_put_off_for_ever(void **state)
{
    struct target target = {.occupation = spin_in_library};
    test_threads *threads;

    (void)state;
    need_a_plain_build();
    again = TRUE;
    assert_int_equal(pthread_spin_init(&taken, PTHREAD_PROCESS_PRIVATE), 0);
    pthread_spin_lock(&taken);
    threads = start_target(&target);
    watchdog_start(60);
    HalInterruptThread(target.id);
    wait_until_set(&refused);
    watchdog_stop();
    pthread_spin_unlock(&taken);
    stop_target(&target, threads);
    assert_true(inside > 10000);
    assert_int_equal(refused, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_of_the_program_is_outside),
        cmocka_unit_test(a_function_of_the_library_is_inside),
        cmocka_unit_test(a_call_for_memory_is_inside),
        cmocka_unit_test(a_call_that_waits_is_outside),
        cmocka_unit_test(it_is_interrupted_again_until_it_is_outside),
        cmocka_unit_test(it_is_not_put_off_for_ever),
    };

    HalInitialize(&callbacks);
    HalCompleteInitialization();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
