/* What a process must not leave in a world, or mistake for its own. */
#include "wotest.h"

#include <interlock/win32.h>

static PWO_VIEW own_view(void)
{
    PWO_VIEW view;
    assert_int_equal(WoOpenView(WoLocal, &view), STATUS_SUCCESS);
    return view;
}

static void an_owned_mutex_goes_with_its_last_handle(void **state)
{
    PWO_VIEW view = own_view();
    ULONG objects = view->World->Objects;

    (void)state;
    for (int i = 0; i < 100; i++) {
        HANDLE mutex = CreateMutexA(NULL, TRUE, "leftover");
        assert_non_null(mutex);
        assert_int_equal(GetLastError(), ERROR_SUCCESS);
        assert_int_equal(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
        assert_true(CloseHandle(mutex));
    }
    assert_int_equal(view->World->Objects, objects);
}

/* Another process keeps it alive: it stays owned by the thread that has closed its handle. */
static void an_owned_mutex_stays_while_others_have_handles(void **state)
{
    HANDLE kept = CreateMutexA(NULL, FALSE, "kept"), mutex;
    int to_child[2], from_child[2];
    char byte = 0;

    (void)state;
    assert_int_equal(pipe(to_child) | pipe(from_child), 0);
    pid_t child = fork();
    if (child == 0) {
        DWORD found = WaitForSingleObject(kept, 0) == WAIT_OBJECT_0;
        found = found && ReleaseMutex(kept) && write(from_child[1], &byte, 1) == 1 && read(to_child[0], &byte, 1) == 1;
        _exit(found && WaitForSingleObject(kept, 0) == WAIT_TIMEOUT ? 0 : 1);
    }
    assert_int_equal(read(from_child[0], &byte, 1), 1);
    mutex = OpenMutexA(MUTEX_ALL_ACCESS, FALSE, "kept");
    assert_int_equal(WaitForSingleObject(mutex, 0), WAIT_OBJECT_0);
    CloseHandle(mutex);
    CloseHandle(kept);
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(await_process(child), 0);
}

/*
 * A forks B, which uses nothing, and is killed. B forks C when A's record is free, so C is given it. C has the memory of
 * A, in which this thread had a waiter record.
 */
static void run_grandchild(HANDLE event)
{
    DWORD result = WaitForSingleObject(event, 20);
    _exit(result == WAIT_TIMEOUT && SetEvent(event) && WaitForSingleObject(event, 0) == WAIT_OBJECT_0 ? 0 : 1);
}

static void run_child(HANDLE event, int ready, int go)
{
    char byte = 0;
    int status = -1;

    if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
        _exit(2);
    pid_t grandchild = fork();
    if (grandchild == 0)
        run_grandchild(event);
    waitpid(grandchild, &status, 0);
    byte = WIFEXITED(status) ? (char)WEXITSTATUS(status) : 3;
    _exit(write(ready, &byte, 1) == 1 ? 0 : 4);
}

static void run_first(int ready, int go)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, "of the first");
    if (WaitForSingleObject(event, 5) != WAIT_TIMEOUT)
        _exit(5);
    if (fork() == 0)
        run_child(event, ready, go);
    for (;;)
        pause();
}

static void a_grandchild_has_its_own_waiter(void **state)
{
    PWO_VIEW view = own_view();
    int ready[2], go[2];
    char byte = 9;

    (void)state;
    assert_int_equal(pipe(ready) | pipe(go), 0);
    ULONG processes = __atomic_load_n(&view->World->Processes, __ATOMIC_RELAXED);
    pid_t first = fork();
    if (first == 0)
        run_first(ready[1], go[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill_process(first);
    for (int i = 0; i < 10000 && __atomic_load_n(&view->World->Processes, __ATOMIC_RELAXED) > processes + 1; i++)
        nap(1000 * MICROSECOND);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
}

/* An address that another process wrote is not followed. */
static void forge_a_notification(void)
{
    PWO_VIEW view = own_view();
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, "forged");
    if (WaitForSingleObject(event, 5) != WAIT_TIMEOUT)
        _exit(1);
    PWO_PROCESS process = WopRecord(view, view->Self, WoProcessRecord);
    PWO_WAITER waiter = WopRecord(view, process->FirstWaiter, WoWaiterRecord);
    waiter->Notification = 0x1230;
    waiter->State = WopStateOf(waiter->State, WoGranted);
    WopWakeSession(process);
    for (int i = 0; i < 10000 && !WoIsPoisoned(view); i++)
        nap(1000 * MICROSECOND);
    _exit(WoIsPoisoned(view) ? 0 : 2);
}

static void a_forged_notification_is_noticed(void **state)
{
    (void)state;
    setenv("INTERLOCK_SESSION", "forged", 1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        execl("/proc/self/exe", "leftovers", "forge", (char *)NULL);
    assert_int_equal(await_process(child), 0);
}

/* Processes that exit in order, all at once: the last one removes the file. */
#define LEAVING 6

static void enter_and_leave(void)
{
    char byte;

    if (CreateEventA(NULL, FALSE, FALSE, "leaving") == NULL || write(STDOUT_FILENO, "", 1) != 1)
        _exit(1);
    exit(read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 2); /* the end of the pipe: for all at once */
}

static pid_t start_leaver(int go[2], int ready[2])
{
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        dup2(go[0], STDIN_FILENO);
        dup2(ready[1], STDOUT_FILENO);
        close(go[1]);
        execl("/proc/self/exe", "leftovers", "leave", (char *)NULL);
        _exit(3);
    }
    return child;
}

static void leave_at_once(const char *path)
{
    pid_t children[LEAVING];
    int go[2], ready[2];
    char byte;

    assert_int_equal(pipe(go) | pipe(ready), 0);
    for (int i = 0; i < LEAVING; i++)
        children[i] = start_leaver(go, ready);
    for (int i = 0; i < LEAVING; i++)
        assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(access(path, F_OK), 0);
    close(go[1]);
    for (int i = 0; i < LEAVING; i++)
        assert_int_equal(await_process(children[i]), 0);
    assert_int_equal(access(path, F_OK), -1);
    close(go[0]);
    close(ready[0]);
    close(ready[1]);
}

static void the_last_of_many_removes_the_file(void **state)
{
    const char *own = getenv("INTERLOCK_SESSION");
    char session[64], path[sizeof(own_view()->Path) + sizeof(session)];

    (void)state;
    snprintf(session, sizeof(session), "leaving-%d", (int)getpid());
    snprintf(path, sizeof(path), "%.*s%s", (int)(strlen(own_view()->Path) - strlen(own)), own_view()->Path, session);
    setenv("INTERLOCK_SESSION", session, 1);
    for (int i = 0; i < 10; i++)
        leave_at_once(path);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "leave") == 0)
        enter_and_leave();
    if (argc > 1)
        forge_a_notification();

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owned_mutex_goes_with_its_last_handle),
        cmocka_unit_test(an_owned_mutex_stays_while_others_have_handles),
        cmocka_unit_test(a_grandchild_has_its_own_waiter),
        cmocka_unit_test(the_last_of_many_removes_the_file),
        cmocka_unit_test(a_forged_notification_is_noticed), /* last: it renames the session */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
