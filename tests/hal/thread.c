#include "haltest.h"

#include "hal/halp.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

static pthread_key_t early_key, late_key;
static volatile ULONG fork_steps; /* one hexadecimal digit for each callback, in the order of the calls */

/* The end of one thread. */
#define LONGEST_STORY 32

struct ending {
    struct _KTHREAD threads[4];
    unsigned adopted;        /* how many of them the thread was so far */
    unsigned rounds[2];      /* calls of the destructors of early_key and late_key */
    unsigned last_round;     /* the destructors request no further one */
    unsigned adopt_in_round; /* late_key's destructor calls in, in this round; 0: never */
    char story[LONGEST_STORY];
    volatile ULONG ended;
};

static __thread struct ending *current_ending;

static void tell(struct ending *ending, char step)
{
    size_t length = strlen(ending->story);

    assert_true(length + 1 < LONGEST_STORY);
    ending->story[length] = step;
}

static void adopt(struct ending *ending)
{
    HalCurrentThread = &ending->threads[ending->adopted++];
    HalWatchThreadExit(HalCurrentThread);
}

static VOID thread_exit(struct _KTHREAD *Thread)
{
    assert_ptr_equal(HalCurrentThread, Thread);
    Thread->exits++;
    if (current_ending != NULL)
        tell(current_ending, 'X');
}

static VOID fork_step(ULONG Step)
{
    __atomic_store_n(&fork_steps, fork_steps << 4 | Step, __ATOMIC_RELAXED);
}

static VOID fork_prepare(VOID)
{
    fork_step(1);
}

static VOID fork_parent(BOOLEAN late_follows)
{
    (void)late_follows;
    fork_step(2);
}

static VOID fork_child(VOID)
{
    assert_int_equal(HalCurrentThreadId(), syscall(SYS_gettid));
    assert_int_equal(HalCurrentProcessId(), getpid());
    fork_step(3);
}

static const HAL_CALLBACKS callbacks = {
    .ThreadExit = thread_exit,
    .ForkPrepare = fork_prepare,
    .ForkParent = fork_parent,
    .ForkChild = fork_child,
};

static void read_ids(void *argument, unsigned index)
{
    ULONG *ids = argument;

    ids[index] = HalCurrentThreadId();
    assert_int_equal(ids[index], syscall(SYS_gettid));
    assert_int_equal(HalCurrentThreadId(), ids[index]);
}

static void ids_are_the_hosts(void **state)
{
    ULONG ids[2];

    (void)state;
    assert_int_equal(HalCurrentProcessId(), getpid());
    assert_int_equal(HalCurrentThreadId(), syscall(SYS_gettid));
    run_threads(2, 20, read_ids, ids);
    assert_true(ids[0] != ids[1]);
}

struct creation {
    SIZE_T stack_size;
    const char *name;
    const char *host_name;
    SIZE_T host_stack_size;
    char found_name[64];
    sigset_t mask;
    volatile ULONG done;
};

static VOID look_at_itself(PVOID Context)
{
    struct creation *creation = Context;
    pthread_attr_t attributes;

    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, &creation->host_stack_size);
    pthread_attr_destroy(&attributes);
    pthread_getname_np(pthread_self(), creation->found_name, sizeof(creation->found_name));
    pthread_sigmask(SIG_SETMASK, NULL, &creation->mask);
    set_flag(&creation->done);
}

static void threads_get_their_stack_and_name(void **state)
{
    struct creation creations[] = {
        {.stack_size = 0, .name = "default", .host_name = "default"},
        {.stack_size = 1, .name = "fifteen letters", .host_name = "fifteen letters"},
        {.stack_size = 65537, .name = "sixteen letters!", .host_name = "sixteen letters"},
        {.stack_size = 3 * 1024 * 1024 + 1, .name = "a name for people only", .host_name = "a name for peop"},
        {.stack_size = 0, .name = NULL, .host_name = NULL},
        {.stack_size = 0, .name = "", .host_name = NULL},
    };
    char own_name[64];
    size_t i;

    (void)state;
    pthread_getname_np(pthread_self(), own_name, sizeof(own_name));
    watchdog_start(20);
    for (i = 0; i < sizeof(creations) / sizeof(creations[0]); i++) {
        struct creation *creation = &creations[i];

        assert_int_equal(HalCreateThread(look_at_itself, creation, creation->stack_size, creation->name),
                         STATUS_SUCCESS);
        wait_until_set(&creation->done);
        assert_true(creation->host_stack_size >= creation->stack_size);
        assert_string_equal(creation->found_name, creation->host_name != NULL ? creation->host_name : own_name);
    }
    watchdog_stop();
}

static void a_stack_that_cannot_be_had_is_an_error(void **state)
{
    static const SIZE_T sizes[] = {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, (SIZE_T)1 << 60};
    struct creation creation = {0};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        NTSTATUS status = HalCreateThread(look_at_itself, &creation, sizes[i], "never");

        assert_true(status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES);
    }
    assert_int_equal(creation.done, 0);
}

static int interrupt_signal(void)
{
    struct sigaction action;
    int number;

    for (number = SIGRTMIN; number < SIGRTMAX; number++) {
        if (sigaction(number, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) != 0)
            return number;
    }
    fail_msg("no real-time signal has a handler");
    return 0;
}

static void a_thread_inherits_all_but_the_interrupt_mask(void **state)
{
    struct creation creation = {0};
    sigset_t blocked, before;

    (void)state;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, interrupt_signal());
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    assert_int_equal(HalCreateThread(look_at_itself, &creation, 0, NULL), STATUS_SUCCESS);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    watchdog_start(20);
    wait_until_set(&creation.done);
    watchdog_stop();
    assert_int_equal(sigismember(&creation.mask, SIGUSR1), 1);
    assert_int_equal(sigismember(&creation.mask, SIGUSR2), sigismember(&before, SIGUSR2));
    assert_int_equal(sigismember(&creation.mask, interrupt_signal()), 0);
}

static void adopt_with_everything_blocked(void *argument, unsigned index)
{
    sigset_t *mask = argument;
    sigset_t all;
    struct _KTHREAD thread = {0};

    (void)index;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    HalCurrentThread = &thread;
    HalWatchThreadExit(&thread);
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    HalWatchThreadExit(NULL);
}

static void adoption_unblocks_the_interrupt(void **state)
{
    sigset_t mask;

    (void)state;
    run_threads(1, 20, adopt_with_everything_blocked, &mask);
    assert_int_equal(sigismember(&mask, interrupt_signal()), 0);
    assert_int_equal(sigismember(&mask, SIGUSR1), 1);
}

static VOID exit_in_the_middle(PVOID Context)
{
    struct ending *ending = Context;

    adopt(ending);
    pthread_setspecific(late_key, ending);
    HalExitThread();
}

static void exit_thread(void *argument, unsigned index)
{
    (void)index;
    exit_in_the_middle(argument);
    fail();
}

static void a_thread_can_end_itself(void **state)
{
    struct ending ending = {0};

    (void)state;
    run_threads(1, 20, exit_thread, &ending);
    assert_int_equal(ending.threads[0].exits, 1);
}

static void a_created_thread_can_end_itself(void **state)
{
    struct ending ending = {0};

    (void)state;
    assert_int_equal(HalCreateThread(exit_in_the_middle, &ending, 0, "ends"), STATUS_SUCCESS);
    watchdog_start(20);
    wait_until_set(&ending.ended);
    watchdog_stop();
    assert_int_equal(ending.threads[0].exits, 1);
}

/* Requests further rounds: e and l are the rounds of the two keys, in capitals when the thread is not adopted. */
static void run_round(struct ending *ending, unsigned which, pthread_key_t key, char step)
{
    unsigned round = ++ending->rounds[which];

    tell(ending, HalCurrentThread != NULL ? step : (char)(step - 'a' + 'A'));
    if (which == 1 && round == ending->adopt_in_round && HalCurrentThread == NULL)
        adopt(ending);
    if (round < ending->last_round)
        pthread_setspecific(key, ending);
}

static void destroy_early(void *value)
{
    run_round(value, 0, early_key, 'e');
}

static void destroy_late(void *value)
{
    struct ending *ending = value;

    if (current_ending != NULL)
        run_round(ending, 1, late_key, 'l');
    else if (ending->threads[0].exits == 0)
        pthread_setspecific(late_key, ending); /* returns once the thread has ended */
    else
        set_flag(&ending->ended);
}

static void end_with_destructors(void *argument, unsigned index)
{
    struct ending *ending = argument;

    (void)index;
    current_ending = ending;
    adopt(ending);
    pthread_setspecific(early_key, ending);
    pthread_setspecific(late_key, ending);
}

static void other_destructors_come_before_the_exit(void **state)
{
    static const struct {
        unsigned last_round;
        unsigned adopt_in_round;
        const char *story;
        unsigned exits;
    } cases[] = {
        {1, 0, "elX", 1},
        {2, 0, "eleXL", 1},
        {2, 2, "eleXLX", 2},
        {3, 0, "eleXLEL", 1},
        {3, 2, "eleXLeXL", 2},
#ifndef HALP_THREAD_SANITIZER /* whose own state ends in the last round */
        {3, 3, "eleXLELX", 2},
        {4, 0, "eleXLELEL", 1},
        {4, 2, "eleXLeXLEL", 2},
        {4, 3, "eleXLELeXL", 2},
#endif
    };
    C_ASSERT(PTHREAD_DESTRUCTOR_ITERATIONS >= 4);
    size_t i, j;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ending ending = {.last_round = cases[i].last_round, .adopt_in_round = cases[i].adopt_in_round};

        run_threads(1, 20, end_with_destructors, &ending);
        assert_string_equal(ending.story, cases[i].story);
        assert_int_equal(ending.adopted, cases[i].exits);
        for (j = 0; j < ending.adopted; j++)
            assert_int_equal(ending.threads[j].exits, 1);
    }
}

static void watch_and_stop_watching(void *argument, unsigned index)
{
    (void)index;
    adopt(argument);
    HalWatchThreadExit(NULL);
}

static void a_watch_can_be_given_up(void **state)
{
    struct ending ending = {0};

    (void)state;
    run_threads(1, 20, watch_and_stop_watching, &ending);
    assert_int_equal(ending.threads[0].exits, 0);
}

static void check_forked_child(void *argument)
{
    assert_int_equal(fork_steps, 0x13);
    assert_int_equal(HalCurrentThreadId(), getpid());
    assert_true(HalCurrentProcessId() != *(ULONG *)argument);
    fork_steps = 0;
    if (HalCurrentThread == NULL) {
        ULONG process = HalCurrentProcessId();

        HalCurrentThread = (struct _KTHREAD *)argument;
        run_in_child(check_forked_child, &process);
        assert_int_equal(fork_steps, 0x12);
    }
}

static void fork_runs_the_callbacks_in_order(void **state)
{
    ULONG process = HalCurrentProcessId();

    (void)state;
    fork_steps = 0;
    run_in_child(check_forked_child, &process);
    assert_int_equal(fork_steps, 0x12);
}

static void a_second_start_changes_nothing(void **state)
{
    static const HAL_CALLBACKS nothing;

    HalInitialize(&nothing);
    HalCompleteInitialization();
    fork_runs_the_callbacks_in_order(state);
    a_thread_can_end_itself(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_the_hosts),
        cmocka_unit_test(threads_get_their_stack_and_name),
        cmocka_unit_test(a_stack_that_cannot_be_had_is_an_error),
        cmocka_unit_test(a_thread_inherits_all_but_the_interrupt_mask),
        cmocka_unit_test(adoption_unblocks_the_interrupt),
        cmocka_unit_test(a_thread_can_end_itself),
        cmocka_unit_test(a_created_thread_can_end_itself),
        cmocka_unit_test(other_destructors_come_before_the_exit),
        cmocka_unit_test(a_watch_can_be_given_up),
        cmocka_unit_test(fork_runs_the_callbacks_in_order),
        cmocka_unit_test(a_second_start_changes_nothing),
    };

    pthread_key_create(&early_key, destroy_early);
    HalInitialize(&callbacks);
    HalCompleteInitialization();
    pthread_key_create(&late_key, destroy_late);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
