/*
 * actors.h: a test with several processes. The test program starts itself with the name of a role; a role is a function that
 * returns the exit code. An actor is one such child.
 */
#ifndef INTERLOCK_TESTS_ACTORS_H
#define INTERLOCK_TESTS_ACTORS_H

#include <windows.h>
#include <winternl.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "support.h"

#define LONG_ENOUGH (60000 * test_slowdown())

typedef int actor_role(int argc, char **argv); /* argv[0]: the role's name */

typedef struct actor_entry {
    const char *name;
    actor_role *role;
} actor_entry;

/* For the sanitizer: a role exits with open handles. */
static int playing_a_role;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return playing_a_role;
}

/* In main: the exit code of a role, or -1 if the program was started as the test. */
static inline int play_role(int argc, char **argv, const actor_entry *roles)
{
    if (argc < 2)
        return -1;
    playing_a_role = 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no process behind */
    for (; roles->name != NULL; roles++)
        if (strcmp(roles->name, argv[1]) == 0)
            return roles->role(argc - 1, argv + 1);
    fprintf(stderr, "what is the role %s?\n", argv[1]);
    return 99;
}

typedef struct actor_options {
    BOOL inherit;
    DWORD flags;
    STARTUPINFOEXA *extended;
} actor_options;

static inline void actor_line(char *line, size_t size, const char *arguments)
{
    char self[512];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    assert_true(length > 0);
    self[length] = '\0';
    assert_in_range(snprintf(line, size, "\"%s\" %s", self, arguments), 1, size - 1);
}

static inline PROCESS_INFORMATION start_actor_with(const char *arguments, actor_options options)
{
    STARTUPINFOA plain = {.cb = sizeof(plain)};
    PROCESS_INFORMATION actor = {0};
    char line[65536];

    actor_line(line, sizeof(line), arguments);
    if (!CreateProcessA(NULL, line, NULL, NULL, options.inherit, options.flags, NULL, NULL,
                        options.extended != NULL ? &options.extended->StartupInfo : &plain, &actor))
        fail_msg("CreateProcess: %u", (unsigned)GetLastError());
    return actor;
}

static inline PROCESS_INFORMATION start_actor(const char *arguments)
{
    return start_actor_with(arguments, (actor_options){0});
}

static inline PROCESS_INFORMATION start_heir(const char *arguments)
{
    return start_actor_with(arguments, (actor_options){.inherit = TRUE});
}

static inline DWORD end_actor(PROCESS_INFORMATION actor)
{
    DWORD code = 4711;

    assert_int_equal(WaitForSingleObject(actor.hProcess, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(GetExitCodeProcess(actor.hProcess, &code));
    assert_true(CloseHandle(actor.hProcess));
    assert_true(CloseHandle(actor.hThread));
    return code;
}

static inline void kill_actor(PROCESS_INFORMATION actor)
{
    assert_true(TerminateProcess(actor.hProcess, 9));
    end_actor(actor);
}

/* In a role. */
static inline HANDLE handle_of(const char *text)
{
    return (HANDLE)(ULONG_PTR)strtoull(text, NULL, 16);
}

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s, error %u\n", __FILE__, __LINE__, #condition, (unsigned)GetLastError());        \
            exit(98);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline ULONG handles_of(HANDLE handle)
{
    OBJECT_BASIC_INFORMATION information;

    assert_int_equal(NtQueryObject(handle, ObjectBasicInformation, &information, sizeof(information), NULL), 0);
    return information.HandleCount;
}

/* Handles of a killed process count as closed; its guard needs a moment. */
static inline void await_one_handle(HANDLE handle)
{
    for (int round = 0; round < 6000 && handles_of(handle) != 1; round++)
        Sleep(10);
    assert_int_equal(handles_of(handle), 1);
}

/* The same for a name that disappears with its last process. */
static inline void await_end_of_event(const char *name)
{
    for (unsigned round = 0; round < 6000; round++) {
        HANDLE event = OpenEventA(SYNCHRONIZE, FALSE, name);

        if (event == NULL) {
            assert_int_equal(GetLastError(), ERROR_FILE_NOT_FOUND);
            return;
        }
        CloseHandle(event);
        Sleep(10);
    }
    fail_msg("the event %s is still there", name);
}

#endif
