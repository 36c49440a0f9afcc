/* Attaching to a world and leaving it, with real processes. */
#include "processes.h"

static void attach_twice(void *argument)
{
    char path[512];
    struct stat status;
    PWO_VIEW view = attach();
    (void)argument;
    assert_ptr_equal(attach(), view);
    assert_true(find_world_file(path));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(view->World->Processes, 1);
    assert_string_equal(view->Path, path);
}

static void the_file_goes_with_the_last_process(void **state)
{
    char path[512];
    (void)state;
    for (int round = 0; round < 3; round++) {
        run(attach_twice, NULL);
        assert_false(find_world_file(path));
    }
}

static void expect_no_world(void *argument)
{
    PWO_VIEW view;
    (void)argument;
    assert_int_equal(WoOpenView(WoLocal, &view), STATUS_NOT_SUPPORTED);
    assert_int_equal(WoOpenView(WoMachine, &view), STATUS_NOT_SUPPORTED);
}

static void expect_private(void *argument)
{
    setenv("INTERLOCK_SESSION", "private", 1);
    expect_no_world(argument);
}

static void a_private_session_has_no_world(void **state)
{
    char path[512];
    (void)state;
    run(expect_private, NULL);
    assert_false(find_world_file(path));
}

static void with_a_strange_session(void *argument)
{
    char path[512];
    setenv("INTERLOCK_SESSION", argument, 1);
    attach();
    assert_true(find_world_file(path));
}

static void too_long(void *argument)
{
    char name[300];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    setenv("INTERLOCK_SESSION", name, 1);
    expect_no_world(argument);
}

static void sessions_have_any_name(void **state)
{
    (void)state;
    run(with_a_strange_session, (char[]){"a/../b c"});
    run(with_a_strange_session, (char[]){"\xc3\xa4%"});
    run(too_long, NULL);
}

static void make_obstacle(int kind, const char *path)
{
    switch (kind) {
    case 0:
        assert_int_equal(symlink("/dev/shm/nowhere", path), 0);
        break;
    case 1:
        assert_int_equal(mkfifo(path, 0600), 0);
        break;
    case 2:
        assert_int_equal(mkdir(path, 0700), 0);
        break;
    default:
        assert_int_equal(close(open(path, O_CREAT | O_RDWR, 0600)), 0);
        assert_int_equal(chmod(path, 0644), 0);
        break;
    }
}

static void tell_path(void *steps_of_path)
{
    PWO_VIEW view = attach();
    steps *s = steps_of_path;
    assert_true(write(s->ends[1], view->Path, strlen(view->Path) + 1) > 0);
}

static void ask_path(char path[512])
{
    steps s = make_steps();
    run(tell_path, &s);
    assert_true(read(s.ends[0], path, 512) > 0);
    close_steps(&s);
}

static void what_is_not_the_users_own_file_is_refused(void **state)
{
    char path[512];
    (void)state;
    ask_path(path);
    for (int kind = 0; kind < 4; kind++) {
        struct stat status;
        make_obstacle(kind, path);
        run(expect_no_world, NULL);
        assert_int_equal(lstat(path, &status), 0); /* it is still there */
        assert_int_equal(kind == 2 ? rmdir(path) : unlink(path), 0);
    }
}

static void expect_no_world_of_others(void *path)
{
    if (chown(path, 12345, 12345) != 0)
        return; /* only root can */
    expect_no_world(NULL);
}

static void the_file_of_another_user_is_refused(void **state)
{
    char path[512];
    (void)state;
    ask_path(path);
    assert_int_equal(close(open(path, O_CREAT | O_RDWR, 0600)), 0);
    run(expect_no_world_of_others, path);
    assert_int_equal(unlink(path), 0);
}

static void fill(const char *path, size_t size, int byte)
{
    int file = open(path, O_CREAT | O_RDWR, 0600);
    char page[4096];
    memset(page, byte, sizeof(page));
    for (size_t written = 0; written < size; written += sizeof(page))
        assert_int_equal(write(file, page, sizeof(page)), sizeof(page));
    close(file);
}

static void attach_to_a_new_one(void *argument)
{
    PWO_VIEW view = attach();
    (void)argument;
    assert_int_equal(view->World->State, WoLive);
    while (__atomic_load_n(&view->World->Processes, __ATOMIC_RELAXED) != 1)
        nap(1000 * MICROSECOND); /* the session thread may still clean up */
    assert_int_equal(view->World->Objects, 0);
}

static void rubbish_is_replaced(void **state)
{
    static const size_t sizes[] = {0, 4096, 1024 * 1024};
    char path[512];
    (void)state;
    ask_path(path);
    for (unsigned i = 0; i < 3; i++) {
        for (int byte = 0; byte < 256; byte += 85) {
            fill(path, sizes[i], byte);
            run(attach_to_a_new_one, NULL);
        }
    }
}

static steps gate;

static void attach_when_all_are_there(void *argument)
{
    char byte;
    (void)argument;
    close(gate.ends[1]);
    assert_int_equal(read(gate.ends[0], &byte, 1), 0);
    attach();
}

/* All at once, repeatedly: each finds the same world or creates a new one, and no world is left behind. */
static void many_attach_and_leave_at_once(void **state)
{
    char path[512];
    (void)state;
    for (unsigned long round = 0; round < test_rounds(30); round++) {
        pid_t children[12];
        gate = make_steps();
        for (unsigned i = 0; i < 12; i++)
            children[i] = start(attach_when_all_are_there, NULL);
        close_steps(&gate);
        for (unsigned i = 0; i < 12; i++)
            assert_int_equal(await_process(children[i]), 0);
        assert_false(find_world_file(path));
    }
}

static void attach_for_ever(void *argument)
{
    (void)argument;
    for (;;)
        attach();
}

static void attach_and_die(void *argument)
{
    (void)argument;
    attach();
    raise(SIGKILL);
}

static void the_world_of_the_dead_is_cleaned_up_by_the_next(void **state)
{
    char path[512];
    pid_t children[8];
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        children[i] = start(attach_and_die, NULL);
    for (unsigned i = 0; i < 8; i++)
        await_process(children[i]);
    assert_true(find_world_file(path));
    run(attach_to_a_new_one, NULL);
    assert_false(find_world_file(path));
}

static void killed_anywhere_while_it_attaches(void **state)
{
    char path[512];
    test_random random;
    (void)state;
    random_seed(&random, 7);
    for (unsigned long round = 0; round < test_rounds(500); round++) {
        pid_t child = start(attach_for_ever, NULL);
        nap((long)random_below(&random, 1500) * MICROSECOND);
        kill_process(child);
    }
    run(attach_to_a_new_one, NULL);
    assert_false(find_world_file(path));
}

/* Waits until 2 processes are left, then 1; each time on command, and reports it. */
static void follow_deaths(void *argument)
{
    steps *s = argument;
    PWO_VIEW view = attach();
    step(&s[0]);
    for (ULONG left = 2; left != 0; left--) {
        await_step(&s[1]);
        while (__atomic_load_n(&view->World->Processes, __ATOMIC_RELAXED) != left)
            nap(1000 * MICROSECOND);
        step(&s[0]);
    }
}

static void expect_next_count(steps *s)
{
    step(&s[1]);
    await_step(&s[0]);
}

static void attach_and_stay(void *ready)
{
    attach();
    step(ready);
    pause();
}

/* The guard makes no call. */
static void the_guards_clean_up_after_the_killed(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        pid_t guard = start(follow_deaths, s);
        await_step(&s[0]);
        pid_t child = start(attach_and_stay, &s[0]);
        await_step(&s[0]);
        expect_next_count(s);
        kill_process(child);
        expect_next_count(s);
        assert_int_equal(await_process(guard), 0);
    }
    close_steps(&s[0]);
    close_steps(&s[1]);
}

/* A stopped process that holds the lock blocks all others. */
static void stop_without_the_lock(pid_t child)
{
    char path[512];
    ULONG64 lock;
    do {
        assert_int_equal(kill(child, SIGCONT), 0);
        nap(10000 * MICROSECOND);
        assert_int_equal(kill(child, SIGSTOP), 0);
        assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
        assert_true(find_world_file(path));
        int file = open(path, O_RDONLY);
        assert_int_equal(pread(file, &lock, sizeof(lock), FIELD_OFFSET(WO_WORLD, Lock)), sizeof(lock));
        close(file);
    } while ((lock & ((1ull << HAL_PROCESS_ID_BITS) - 1)) == (ULONG64)child);
}

/* Three in a ring: the only guard that runs is not the first one behind the dead process. */
static void a_stopped_guard_hides_no_death(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    (void)state;
    for (unsigned victim = 0; victim < 2; victim++) {
        pid_t children[2];
        for (unsigned i = 0; i < 2; i++) {
            children[i] = start(attach_and_stay, &s[0]);
            await_step(&s[0]);
        }
        stop_without_the_lock(children[!victim]);
        pid_t guard = start(follow_deaths, s);
        await_step(&s[0]);
        kill_process(children[victim]);
        expect_next_count(s);
        kill_process(children[!victim]);
        expect_next_count(s);
        assert_int_equal(await_process(guard), 0);
    }
    close_steps(&s[0]);
    close_steps(&s[1]);
}

static void see_the_end(void *argument)
{
    PWO_VIEW view = attach();
    char path[512];
    (void)argument;
    assert_true(find_world_file(path));
    assert_int_equal(truncate(path, 0), 0);
    assert_false(WopLock(view));
    assert_true(WoIsPoisoned(view));
    assert_int_equal(WoReferenceObject(view, 77777), STATUS_FILE_CORRUPT_ERROR);
}

static void a_truncated_file_is_noticed(void **state)
{
    (void)state;
    run(see_the_end, NULL);
    run(attach_to_a_new_one, NULL);
}

/* Sleeps in the world of another process until that says that it is gone. */
static void sleep_in_the_world(void *ready)
{
    static const HAL_DEADLINE never = {HalNoDeadline, 0};
    PWO_VIEW view = attach();
    WO_INDEX index;
    assert_int_equal(WoCreateWaiter(view, 1, &index), STATUS_SUCCESS);
    volatile ULONG *word = WoWakeWord(view, index);
    ULONG seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    step(ready);
    while (!WoIsPoisoned(view)) {
        HalWaitShared(word, seen, &never);
        seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    }
}

static void cut_off(void *argument)
{
    char path[512];
    PWO_VIEW view = attach();
    (void)argument;
    assert_true(find_world_file(path));
    assert_int_equal(truncate(path, 0), 0);
    assert_false(WopLock(view));
}

/* The words on which they sleep are gone with the end of the file. */
static void the_sleepers_of_a_truncated_file_wake_up(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* a thread that wakes all others races with whatever uses the memory */
#endif
    steps ready = make_steps();
    pid_t sleeper = start(sleep_in_the_world, &ready);
    (void)state;
    await_step(&ready);
    while (!sleeps_in_the_host((unsigned long)sleeper))
        nap(1000 * MICROSECOND);
    run(cut_off, NULL);
    assert_int_equal(await_process(sleeper), 0);
    close_steps(&ready);
    run(attach_to_a_new_one, NULL);
}

static void grow(void *argument)
{
    PWO_VIEW view = attach();
    WO_INDEX index[64];
    (void)argument;
    assert_true(WopLock(view));
    for (unsigned i = 0; i < 64; i++) {
        WopBegin(view);
        index[i] = WopAllocate(view, WoTicketRecord, 128 * 1024);
        assert_int_not_equal(index[i], 0);
        memset((char *)WopAt(view, index[i]) + sizeof(WO_RECORD), 1, 128 * 1024 - sizeof(WO_RECORD));
        WopCommit(view);
    }
    for (unsigned i = 0; i < 64; i++) {
        WopBegin(view);
        WopFree(view, index[i]);
        WopCommit(view);
    }
    WopUnlock(view);
    assert_true(view->World->Size >= 64 * 128 * 1024);
}

static void a_world_grows(void **state)
{
    (void)state;
    run(grow, NULL);
}

/* Of the mapping of the world: whether its last part can be written. */
static bool is_writable_to_the_end(void)
{
    char line[1024], rights[8] = "", last[8] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        if (strstr(line, directory) != NULL && sscanf(line, "%*s %7s", rights) == 1)
            memcpy(last, rights, sizeof(last));
    }
    fclose(maps);
    assert_int_equal(last[0], 'r');
    return last[1] == 'w';
}

typedef struct growth {
    steps attached, grown;
    WO_INDEX *record; /* shared memory */
} growth;

/* Without the handler that makes the mapping writable after a fault. */
static void write_behind_the_old_end(void *argument)
{
    growth *g = argument;
    PWO_VIEW view = attach();
    assert_false(is_writable_to_the_end());
    step(&g->attached);
    await_step(&g->grown);
    signal(SIGSEGV, SIG_DFL);
    assert_true(WopLock(view));
    char *record = WopRecord(view, *g->record, WoTicketRecord);
    assert_non_null(record);
    assert_true((ULONG64)*g->record * WO_UNIT > WO_FIRST_SIZE * 2);
    memset(record + sizeof(WO_RECORD), 2, 1024);
    WopUnlock(view);
    assert_false(is_writable_to_the_end());
}

static void grow_for_another(void *argument)
{
    growth *g = argument;
    PWO_VIEW view = attach();
    assert_true(WopLock(view));
    for (unsigned i = 0; i < 16; i++) {
        WopBegin(view);
        *g->record = WopAllocate(view, WoTicketRecord, 128 * 1024);
        assert_int_not_equal(*g->record, 0);
        WopCommit(view);
    }
    WopUnlock(view);
    step(&g->grown);
}

/* Leak checkers read all that can be written: the addresses reserved for growth cannot, until the file is there. */
static void a_process_follows_a_world_that_another_one_grew(void **state)
{
    growth g = {make_steps(), make_steps(), mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    (void)state;
    assert_ptr_not_equal(g.record, MAP_FAILED);
    pid_t follower = start(write_behind_the_old_end, &g);
    await_step(&g.attached);
    run(grow_for_another, &g);
    assert_int_equal(await_process(follower), 0);
    close_steps(&g.attached);
    close_steps(&g.grown);
    munmap(g.record, 4096);
}

/* An index of a corrupt world leads anywhere in the mapping. */
static void write_far_behind_the_end(void *argument)
{
    PWO_VIEW view = attach();
    (void)argument;
    ((volatile char *)view->World)[WO_MAXIMUM_SIZE - 4096] = 1;
    assert_true(WoIsPoisoned(view));
    assert_true(is_writable_to_the_end());
}

static void a_write_where_there_is_no_file_poisons_the_view(void **state)
{
    (void)state;
    run(write_far_behind_the_end, NULL);
    run(attach_to_a_new_one, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_goes_with_the_last_process),
        cmocka_unit_test(a_private_session_has_no_world),
        cmocka_unit_test(sessions_have_any_name),
        cmocka_unit_test(what_is_not_the_users_own_file_is_refused),
        cmocka_unit_test(the_file_of_another_user_is_refused),
        cmocka_unit_test(rubbish_is_replaced),
        cmocka_unit_test(many_attach_and_leave_at_once),
        cmocka_unit_test(the_world_of_the_dead_is_cleaned_up_by_the_next),
        cmocka_unit_test(killed_anywhere_while_it_attaches),
        cmocka_unit_test(the_guards_clean_up_after_the_killed),
        cmocka_unit_test(a_stopped_guard_hides_no_death),
        cmocka_unit_test(a_truncated_file_is_noticed),
        cmocka_unit_test(the_sleepers_of_a_truncated_file_wake_up),
        cmocka_unit_test(a_world_grows),
        cmocka_unit_test(a_process_follows_a_world_that_another_one_grew),
        cmocka_unit_test(a_write_where_there_is_no_file_poisons_the_view),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
