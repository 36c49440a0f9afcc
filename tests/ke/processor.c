#include "machine.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "ke/irql.h"

#define THREADS 6

/* Written by the owner of the processor only, and not atomic: the sanitizer checks that owners follow each other. */
static struct {
    unsigned inside;
    unsigned long visits;
} processors[INTERLOCK_MAXIMUM_PROCESSORS];

static void visit_processors(void *rounds, unsigned index)
{
    test_random random;

    random_seed(&random, index + 1);
    for (unsigned long round = *(unsigned long *)rounds; round != 0; round--) {
        KIRQL old = KfRaiseIrql((KIRQL)(DISPATCH_LEVEL + random_below(&random, 3)));
        ULONG number = KeGetCurrentProcessorNumber();

        require(processors[number].inside++ == 0);
        processors[number].visits++;
        if (random_below(&random, 64) == 0)
            sched_yield();
        require(KeGetCurrentProcessorNumber() == number);
        require(--processors[number].inside == 0);
        KeLowerIrql(old);
    }
}

static int owners_exclude_each_other(void)
{
    unsigned long rounds = test_rounds(20000), visits = 0;

    run_threads(THREADS, 60, visit_processors, &rounds);
    for (ULONG number = 0; number < INTERLOCK_MAXIMUM_PROCESSORS; number++) {
        require(processors[number].visits == 0 || number < KeNumberProcessors);
        visits += processors[number].visits;
    }
    require(visits == THREADS * rounds);
    require_free_processors();
    return 0;
}

static void exclusion(void **state)
{
    static const char *const counts[] = {"1", "2", "4"};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        assert_int_equal(run_on_processors(counts[i], "exclusion"), 0);
}

/* Two threads hold both processors; a third one gets whichever is released first. */
static volatile int holding, leave[2], third_is_in;

static void hold_or_come_third(void *unused, unsigned index)
{
    (void)unused;
    if (index < 2) {
        KIRQL old = KfRaiseIrql(DISPATCH_LEVEL);

        __atomic_add_fetch(&holding, 1, __ATOMIC_SEQ_CST);
        while (!__atomic_load_n(&leave[index], __ATOMIC_SEQ_CST))
            usleep(100);
        KeLowerIrql(old);
    } else {
        KIRQL old;

        while (__atomic_load_n(&holding, __ATOMIC_SEQ_CST) != 2)
            usleep(100);
        old = KfRaiseIrql(DISPATCH_LEVEL);
        __atomic_store_n(&third_is_in, 1, __ATOMIC_SEQ_CST);
        KeLowerIrql(old);
    }
}

static int any_processor_will_do(void)
{
    for (int first = 0; first < 2; first++) {
        test_threads *threads;

        holding = leave[0] = leave[1] = third_is_in = 0;
        threads = start_threads(3, hold_or_come_third, NULL);
        while (__atomic_load_n(&holding, __ATOMIC_SEQ_CST) != 2)
            usleep(100);
        usleep(20000);
        require(!__atomic_load_n(&third_is_in, __ATOMIC_SEQ_CST));
        __atomic_store_n(&leave[first], 1, __ATOMIC_SEQ_CST);
        watchdog_start(20);
        while (!__atomic_load_n(&third_is_in, __ATOMIC_SEQ_CST))
            usleep(100);
        watchdog_stop();
        __atomic_store_n(&leave[!first], 1, __ATOMIC_SEQ_CST);
        join_threads(threads, 20);
    }
    return 0;
}

static void waiting_for_any_processor(void **state)
{
    (void)state;
    assert_int_equal(run_on_processors("2", "any"), 0);
}

/* A thread waits for the first processor when its affinity changes to the second: it gets the second, and no longer
   waits for the first. */
static PKTHREAD third;

static void set_user_affinity(PKTHREAD thread, KAFFINITY mask)
{
    GROUP_AFFINITY affinity = {.Mask = mask}, previous;

    require(KiSetUserAffinityThread(thread, &affinity, &previous));
}

static void hold_or_come_to_first(void *unused, unsigned index)
{
    set_user_affinity(KeGetCurrentThread(), index == 1 ? 2 : 1);
    if (index == 2)
        __atomic_store_n(&third, KeGetCurrentThread(), __ATOMIC_SEQ_CST);
    hold_or_come_third(unused, index);
}

static int affinity_of_waiting_thread(void)
{
    test_threads *threads = start_threads(3, hold_or_come_to_first, NULL);

    watchdog_start(60);
    while (!(KiReadOwner(KiProcessorBlock[0]) & KI_PRCB_WAITERS))
        usleep(100);
    set_user_affinity(__atomic_load_n(&third, __ATOMIC_SEQ_CST), 2);
    __atomic_store_n(&leave[0], 1, __ATOMIC_SEQ_CST);
    while (KiOwnerThread(KiReadOwner(KiProcessorBlock[0])) != NULL)
        usleep(100);
    require(!__atomic_load_n(&third_is_in, __ATOMIC_SEQ_CST));
    __atomic_store_n(&leave[1], 1, __ATOMIC_SEQ_CST);
    watchdog_stop();
    join_threads(threads, 60);
    require(third_is_in);
    return 0;
}

static void waiting_for_another_processor(void **state)
{
    (void)state;
    assert_int_equal(run_on_processors("2", "change"), 0);
}

/*
 * Both processors are held; one thread waits for either, and behind it one that may run on the first only. The first is
 * released to the thread in front, which does not notice before the second is free too. If it takes the second, no
 * thread is left to hand the first to the other.
 */
enum { HOLDS_FIRST, HOLDS_SECOND, IN_FRONT, BEHIND, MEMBERS };
static volatile int in_front_id, in_front_is_held_up, in_front_may_go, behind_comes;

static void hold_up(int signal_number)
{
    (void)signal_number;
    __atomic_store_n(&in_front_is_held_up, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&in_front_may_go, __ATOMIC_SEQ_CST))
        usleep(100);
}

/* On the host's second processor, if there is one: there a thread would prefer our second one, too. */
static void come_in_front(void)
{
    cpu_set_t second;

    CPU_ZERO(&second);
    CPU_SET(1, &second);
    sched_setaffinity(0, sizeof(second), &second);
    __atomic_store_n(&in_front_id, gettid(), __ATOMIC_SEQ_CST);
    hold_or_come_third(NULL, 2);
}

static void come_behind(void)
{
    set_user_affinity(KeGetCurrentThread(), 1);
    while (!__atomic_load_n(&in_front_is_held_up, __ATOMIC_SEQ_CST))
        usleep(100);
    __atomic_store_n(&behind_comes, 1, __ATOMIC_SEQ_CST);
    KeLowerIrql(KfRaiseIrql(DISPATCH_LEVEL));
}

static void take_a_place(void *unused, unsigned index)
{
    if (index == IN_FRONT) {
        come_in_front();
    } else if (index == BEHIND) {
        come_behind();
    } else {
        set_user_affinity(KeGetCurrentThread(), index == HOLDS_FIRST ? 1 : 2);
        hold_or_come_third(unused, index);
    }
}

static void give_back(int index)
{
    __atomic_store_n(&leave[index], 1, __ATOMIC_SEQ_CST);
    while (KiOwnerThread(KiReadOwner(KiProcessorBlock[index])) != NULL)
        usleep(100);
}

static int place_behind_another(void)
{
    test_threads *threads;

    signal(SIGUSR1, hold_up);
    threads = start_threads(MEMBERS, take_a_place, NULL);
    watchdog_start(60);
    while (!(KiReadOwner(KiProcessorBlock[0]) & KI_PRCB_WAITERS))
        usleep(100);
    require(syscall(SYS_tgkill, getpid(), __atomic_load_n(&in_front_id, __ATOMIC_SEQ_CST), SIGUSR1) == 0);
    usleep(20000);
    __atomic_store_n(&in_front_is_held_up, 1, __ATOMIC_SEQ_CST); /* a sanitizer may defer the signal */
    while (!__atomic_load_n(&behind_comes, __ATOMIC_SEQ_CST))
        usleep(100);
    usleep(20000);
    give_back(0);
    give_back(1);
    __atomic_store_n(&in_front_may_go, 1, __ATOMIC_SEQ_CST);
    watchdog_stop();
    join_threads(threads, 60);
    return 0;
}

static void waiting_behind_another(void **state)
{
    (void)state;
    assert_int_equal(run_on_processors("2", "behind"), 0);
}

static int groups(void)
{
    PROCESSOR_NUMBER number;

    require(KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS) == 130);
    require(KeQueryMaximumProcessorCountEx(ALL_PROCESSOR_GROUPS) == 130);
    require(KeQueryActiveProcessorCountEx(0) == 64 && KeQueryActiveProcessorCountEx(1) == 64);
    require(KeQueryActiveProcessorCountEx(2) == 2 && KeQueryActiveProcessorCountEx(3) == 0);
    require(KeQueryActiveGroupCount() == 3 && KeQueryMaximumGroupCount() == 3);
    require(KeQueryGroupAffinity(0) == ~(KAFFINITY)0 && KeQueryGroupAffinity(2) == 3 && KeQueryGroupAffinity(3) == 0);
    require(KeQueryActiveProcessors() == ~(KAFFINITY)0 && KeQueryActiveProcessorCount(NULL) == 64);
    for (ULONG index = 0; index < 130; index++) {
        require(KeGetProcessorNumberFromIndex(index, &number) == STATUS_SUCCESS);
        require(number.Group == index / 64 && number.Number == index % 64);
        require(KeGetProcessorIndexFromNumber(&number) == index);
    }
    require(KeGetProcessorNumberFromIndex(130, &number) == STATUS_INVALID_PARAMETER);
    number = (PROCESSOR_NUMBER){.Group = 2, .Number = 2};
    require(KeGetProcessorIndexFromNumber(&number) == INVALID_PROCESSOR_INDEX);

    for (ULONG index = 0; index < 130; index += 43) {
        GROUP_AFFINITY affinity = {.Group = (USHORT)(index / 64), .Mask = (KAFFINITY)1 << index % 64}, previous;
        KIRQL old;

        KeSetSystemGroupAffinityThread(&affinity, &previous);
        require(previous.Mask == 0 && previous.Group == 0);
        require(KeGetCurrentProcessorNumberEx(&number) == index);
        require(number.Group == index / 64 && number.Number == index % 64);
        old = KfRaiseIrql(DISPATCH_LEVEL);
        require(KeGetCurrentProcessorNumber() == index);
        KeLowerIrql(old);
        KeRevertToUserGroupAffinityThread(&previous);
    }
    return 0;
}

static void processor_groups(void **state)
{
    (void)state;
    assert_int_equal(run_on_processors("130", "groups"), 0);
}

static int affinity(void)
{
    GROUP_AFFINITY bad = {.Group = 1, .Mask = 1}, previous;
    KIRQL old;

    /* The user affinity comes back with 0, an earlier system affinity with its mask. */
    require(KeSetSystemAffinityThreadEx(1 << 2) == 0);
    require(KeGetCurrentProcessorNumber() == 2);
    require(KeSetSystemAffinityThreadEx(1 << 3) == 1 << 2);
    require(KeGetCurrentProcessorNumber() == 3);
    KeRevertToUserAffinityThreadEx(1 << 2);
    require(KeGetCurrentProcessorNumber() == 2);

    /* A mask with processors that do not exist, or none, changes nothing. */
    require(KeSetSystemAffinityThreadEx(0) == 1 << 2);
    require(KeSetSystemAffinityThreadEx(1 << 4) == 1 << 2);
    require(KeSetSystemAffinityThreadEx(1 << 3 | 1 << 4) == 1 << 2);
    KeSetSystemGroupAffinityThread(&bad, &previous);
    require(previous.Mask == 1 << 2);
    bad = (GROUP_AFFINITY){.Mask = 1, .Reserved = {1}};
    KeSetSystemGroupAffinityThread(&bad, NULL);
    KeRevertToUserAffinityThreadEx(1 << 4);
    require(KeGetCurrentProcessorNumber() == 2);
    KeRevertToUserAffinityThreadEx(0);

    /* Without a system affinity there is nothing to revert. */
    KeRevertToUserAffinityThreadEx(1 << 3);
    require(KeSetSystemAffinityThreadEx(1 << 1) == 0);
    KeRevertToUserAffinityThread();
    require(KeSetSystemAffinityThreadEx(1 << 1) == 0);

    /* A thread that owns a processor moves when it lowers its level. */
    old = KfRaiseIrql(DISPATCH_LEVEL);
    require(KeSetSystemAffinityThreadEx(1 << 3) == 1 << 1);
    require(KeGetCurrentProcessorNumber() == 1);
    KeLowerIrql(old);
    require(KeGetCurrentProcessorNumber() == 3);
    old = KfRaiseIrql(DISPATCH_LEVEL);
    require(KeGetCurrentProcessorNumber() == 3);
    KeLowerIrql(old);
    KeRevertToUserAffinityThread();
    return 0;
}

static void system_affinity(void **state)
{
    (void)state;
    assert_int_equal(run_on_processors("4", "affinity"), 0);
}

static int print_count(void)
{
    printf("count %u\n", KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS));
    return 0;
}

static void read_output(const char *setting, char *text, size_t size)
{
    int out[2], status;
    pid_t child;
    ssize_t got, used = 0;

    assert_int_equal(pipe(out), 0);
    child = fork();
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        setenv("INTERLOCK_PROCESSORS", setting, 1);
        execl("/proc/self/exe", "self", "count", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    while ((got = read(out[0], text + used, size - 1 - (size_t)used)) > 0)
        used += got;
    text[used] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void settings(void **state)
{
    static const char *const good[] = {"1", "64", "1089", "2560"};
    static const char *const bad[] = {"0", "2561", "abc", "-1", "4x", "99999999999999999999"};
    char text[1024], expected[64];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        read_output(good[i], text, sizeof(text));
        snprintf(expected, sizeof(expected), "count %s\n", good[i]);
        assert_string_equal(text, expected);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        read_output(bad[i], text, sizeof(text));
        snprintf(expected, sizeof(expected), "interlock: INTERLOCK_PROCESSORS=%s is not", bad[i]);
        assert_memory_equal(text, expected, strlen(expected));
        snprintf(expected, sizeof(expected), "count %u\n", HalProcessorCount());
        assert_non_null(strstr(text, expected));
    }
}

static void block_description(void **state)
{
    (void)state;
    for (ULONG number = 0; number < KeNumberProcessors; number++) {
        PKPRCB prcb = KiProcessorBlock[number];

        assert_int_equal(prcb->Number, number);
        assert_int_equal(prcb->MajorVersion, 10);
        assert_int_equal(prcb->MinorVersion, 0);
        assert_int_equal(!!(prcb->BuildType & PRCB_BUILD_DEBUG), KiVerifierEnabled);
        assert_int_equal(!!(prcb->BuildType & PRCB_BUILD_UNIPROCESSOR), KeNumberProcessors == 1);
        assert_int_equal((uintptr_t)prcb % KI_CACHE_LINE, 0);
    }
}

/* A forked child finds the processors free that other threads of the parent owned. */
static volatile int at_dispatch_level, child_is_done;

static void stay_at_dispatch_level(void *unused, unsigned index)
{
    KIRQL old = KfRaiseIrql(DISPATCH_LEVEL);

    (void)unused;
    (void)index;
    __atomic_add_fetch(&at_dispatch_level, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&child_is_done, __ATOMIC_SEQ_CST))
        usleep(100);
    KeLowerIrql(old);
}

static int use_every_processor(void)
{
    for (ULONG number = 0; number < KeNumberProcessors; number++) {
        KIRQL old;

        KeSetSystemAffinityThread((KAFFINITY)1 << number);
        old = KfRaiseIrql(DISPATCH_LEVEL);
        if (KeGetCurrentProcessorNumber() != number)
            return 1;
        KeLowerIrql(old);
    }
    return 0;
}

static int child_after_fork(void)
{
    test_threads *threads = start_threads(2, stay_at_dispatch_level, NULL);
    pid_t child;
    int status;

    while (__atomic_load_n(&at_dispatch_level, __ATOMIC_SEQ_CST) != 2)
        usleep(100);
    child = fork();
    if (child == 0) {
        alarm(20 * test_slowdown());
        _exit(use_every_processor());
    }
    require(waitpid(child, &status, 0) == child && status == 0);
    __atomic_store_n(&child_is_done, 1, __ATOMIC_SEQ_CST);
    join_threads(threads, 20);
    return use_every_processor();
}

static void forked_child(void **state)
{
    (void)state;
    assert_int_equal(run_on_processors("3", "fork"), 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } parts[] = {
        {"exclusion", owners_exclude_each_other},
        {"any", any_processor_will_do},
        {"groups", groups},
        {"affinity", affinity},
        {"count", print_count},
        {"fork", child_after_fork},
        {"change", affinity_of_waiting_thread},
        {"behind", place_behind_another},
    };
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(exclusion),
        cmocka_unit_test(waiting_for_any_processor),
        cmocka_unit_test(processor_groups),
        cmocka_unit_test(system_affinity),
        cmocka_unit_test(settings),
        cmocka_unit_test(block_description),
        cmocka_unit_test(forked_child),
        cmocka_unit_test(waiting_for_another_processor),
        cmocka_unit_test(waiting_behind_another),
    };
    for (size_t i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(argv[1], parts[i].name) == 0)
            return parts[i].run();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
