/*
 * machine.c: the machine's world: names that begin with Global\, over users. In a PID namespace of its own, since the file's
 * name has its number, so nothing else on the machine notices.
 * usage: machine INTERLOCK (the command). Exit code 77: only root can make another namespace and be other users.
 */
#include <windows.h>
#include <winternl.h>

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALICE 12345
#define BOB 23456
#define SKIPPED 77

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "machine.c:%d: %s (error %u)\n", __LINE__, #condition, (unsigned)GetLastError());          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Processes. */

static int ready[2]; /* a byte for each step that a process announces */

static void announce(void)
{
    CHECK(write(ready[1], "x", 1) == 1);
}

static void await_announcement(void)
{
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
}

static pid_t start_as(uid_t user, void (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(120);
        if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0) {
            exit(2);
        }
        body();
        exit(0);
    }
    CHECK(child > 0);
    return child;
}

static int exit_code_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0) {
        CHECK(errno == EINTR);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static void run_as(uid_t user, void (*body)(void))
{
    CHECK(exit_code_of(start_as(user, body)) == 0);
}

static void end_by_force(pid_t child)
{
    CHECK(kill(child, SIGKILL) == 0);
    CHECK(exit_code_of(child) == 256 + SIGKILL);
}

/* An event of two users; a name of one of them. */

static void wait_for_event(void)
{
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, "Global\\event");
    CHECK(event != NULL && GetLastError() == ERROR_SUCCESS);
    CHECK(CreateEventA(NULL, FALSE, FALSE, "Local\\event") != NULL && GetLastError() == ERROR_SUCCESS);
    announce();
    CHECK(WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0);
}

static void set_event(void)
{
    HANDLE event = OpenEventA(EVENT_MODIFY_STATE, FALSE, "Global\\event");
    CHECK(event != NULL);
    CHECK(OpenEventA(EVENT_MODIFY_STATE, FALSE, "Local\\event") == NULL && GetLastError() == ERROR_FILE_NOT_FOUND);
    CHECK(OpenEventA(EVENT_MODIFY_STATE, FALSE, "event") == NULL && GetLastError() == ERROR_FILE_NOT_FOUND);
    CHECK(SetEvent(event));
}

static void users_share_global_names(void)
{
    for (unsigned round = 0; round < 3; round++) {
        pid_t waiter = start_as(ALICE, wait_for_event);
        await_announcement();
        run_as(round == 2 ? 0 : BOB, set_event);
        CHECK(exit_code_of(waiter) == 0);
    }
}

/* A mutex whose owner, another user's, is killed. */

static void own_mutex(void)
{
    CHECK(CreateMutexA(NULL, TRUE, "Global\\mutex") != NULL && GetLastError() == ERROR_SUCCESS);
    announce();
    pause();
}

static void inherit_mutex(void)
{
    HANDLE mutex = OpenMutexA(SYNCHRONIZE, FALSE, "Global\\mutex");
    CHECK(mutex != NULL);
    CHECK(WaitForSingleObject(mutex, 0) == WAIT_TIMEOUT);
    announce();
    CHECK(WaitForSingleObject(mutex, INFINITE) == WAIT_ABANDONED);
    CHECK(ReleaseMutex(mutex));
    CHECK(WaitForSingleObject(mutex, INFINITE) == WAIT_OBJECT_0);
}

static void the_dead_of_another_user_abandon(void)
{
    pid_t owner = start_as(ALICE, own_mutex);
    await_announcement();
    pid_t heir = start_as(BOB, inherit_mutex);
    await_announcement();
    end_by_force(owner);
    CHECK(exit_code_of(heir) == 0);
}

/* Waits for objects of both worlds, and of the process. */

static const char *const names[] = {"Local\\mine", "Global\\ours"};
static HANDLE worlds[3]; /* the third has no name */

static void open_both(void)
{
    for (unsigned i = 0; i < 2; i++) {
        worlds[i] = CreateEventA(NULL, FALSE, FALSE, names[i]);
        CHECK(worlds[i] != NULL);
    }
}

static void set_mine(void)
{
    open_both();
    CHECK(SetEvent(worlds[0]));
}

static void set_ours(void)
{
    HANDLE event = OpenEventA(EVENT_MODIFY_STATE, FALSE, names[1]);
    CHECK(event != NULL && SetEvent(event));
}

static void wait_for_any(void)
{
    open_both();
    announce();
    CHECK(WaitForMultipleObjects(2, worlds, FALSE, INFINITE) == WAIT_OBJECT_0 + 1);
    announce();
    CHECK(WaitForMultipleObjects(2, worlds, FALSE, INFINITE) == WAIT_OBJECT_0);
    CHECK(WaitForMultipleObjects(2, worlds, FALSE, 1) == WAIT_TIMEOUT);
}

static void any_of_both_worlds(void)
{
    pid_t waiter = start_as(ALICE, wait_for_any);
    await_announcement();
    run_as(BOB, set_ours);
    await_announcement();
    run_as(ALICE, set_mine);
    CHECK(exit_code_of(waiter) == 0);
}

static LONG state_of(HANDLE event)
{
    EVENT_BASIC_INFORMATION information;
    CHECK(NtQueryEvent(event, EventBasicInformation, &information, sizeof(information), NULL) >= 0);
    return information.EventState;
}

static void expect_states(LONG first, LONG second, LONG third)
{
    CHECK(state_of(worlds[0]) == first && state_of(worlds[1]) == second && state_of(worlds[2]) == third);
}

static DWORD WINAPI wait_for_all_of_them(void *result)
{
    *(DWORD *)result = WaitForMultipleObjects(3, worlds, TRUE, INFINITE);
    return 0;
}

/* Nothing is taken before all are signaled, in whatever order. */
static void wait_for_all(void)
{
    static const unsigned char orders[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {2, 0, 1}};
    open_both();
    worlds[2] = CreateEventA(NULL, FALSE, FALSE, NULL);
    for (unsigned i = 0; i < 4; i++) {
        DWORD result = WAIT_FAILED;
        LONG states[3] = {0};
        HANDLE thread = CreateThread(NULL, 0, wait_for_all_of_them, &result, 0, NULL);
        CHECK(thread != NULL);
        for (unsigned step = 0; step < 2; step++) {
            CHECK(SetEvent(worlds[orders[i][step]]));
            states[orders[i][step]] = 1;
            CHECK(WaitForMultipleObjects(3, worlds, TRUE, 0) == WAIT_TIMEOUT);
            CHECK(WaitForMultipleObjects(3, worlds, TRUE, 5) == WAIT_TIMEOUT);
            expect_states(states[0], states[1], states[2]);
        }
        CHECK(SetEvent(worlds[orders[i][2]]));
        CHECK(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && result == WAIT_OBJECT_0);
        expect_states(0, 0, 0);
        CloseHandle(thread);
    }
}

static void all_of_both_worlds(void)
{
    run_as(ALICE, wait_for_all);
}

/* An event of the user's world and a mutex of the machine's whose owner is killed. */
static void wait_for_event_and_mutex(void)
{
    open_both();
    worlds[1] = OpenMutexA(SYNCHRONIZE, FALSE, "Global\\mutex");
    CHECK(worlds[1] != NULL);
    announce();
    CHECK(WaitForMultipleObjects(2, worlds, TRUE, INFINITE) == WAIT_ABANDONED_0);
    CHECK(ReleaseMutex(worlds[1]));
    CHECK(WaitForMultipleObjects(2, worlds, TRUE, 0) == WAIT_TIMEOUT);
    CHECK(WaitForSingleObject(worlds[1], 0) == WAIT_OBJECT_0);
}

static void all_with_an_abandoned_mutex(void)
{
    pid_t owner = start_as(BOB, own_mutex);
    await_announcement();
    pid_t waiter = start_as(ALICE, wait_for_event_and_mutex);
    await_announcement();
    run_as(ALICE, set_mine);
    end_by_force(owner);
    CHECK(exit_code_of(waiter) == 0);
}

/* The namespace. */

static void in_the_namespace(const char *command)
{
    char line[600], pattern[300];
    glob_t found;
    /* /proc, not /, which is no mount in a chroot: private, so that no other namespace sees the new one over it */
    CHECK(mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) == 0 && mount("proc", "/proc", "proc", 0, NULL) == 0);
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(line, sizeof(line), "'%s' machine >/dev/null", command);
    CHECK(system(line) == 0);
    ssize_t length = readlink("/proc/self/ns/pid", line, sizeof(line) - 1); /* pid:[NUMBER] */
    CHECK(length > 5);
    line[length] = 0;
    snprintf(pattern, sizeof(pattern), "/dev/shm/interlock*-machine-%lx", strtoul(line + 5, NULL, 10));
    CHECK(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    CHECK(pipe(ready) == 0);
    pid_t tests = fork();
    if (tests == 0) {
        users_share_global_names();
        the_dead_of_another_user_abandon();
        any_of_both_worlds();
        all_of_both_worlds();
        all_with_an_abandoned_mutex();
        exit(0);
    }
    int code = exit_code_of(tests);
    bool stays = access(found.gl_pathv[0], F_OK) == 0; /* it is an administrator's */
    unlink(found.gl_pathv[0]);
    exit(code != 0 ? code : !stays);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    if (geteuid() != 0 || unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
        return SKIPPED;
    }
    pid_t first = fork();
    if (first == 0) {
        in_the_namespace(argv[1]);
    }
    return first > 0 ? exit_code_of(first) : 1;
}
