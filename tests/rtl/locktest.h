/* locktest.h: what the tests of user-mode locks share: capturing standard error, and children. */
#ifndef INTERLOCK_TESTS_LOCKTEST_H
#define INTERLOCK_TESTS_LOCKTEST_H

#include "../ke/waittest.h"

#include <sys/wait.h>
#include <unistd.h>

/* Standard error goes to a file between the two calls. */
static FILE *captured_file;
static int captured_stderr;

static inline void capture_errors(void)
{
    captured_file = tmpfile();
    check(captured_file != NULL);
    captured_stderr = dup(STDERR_FILENO);
    check(dup2(fileno(captured_file), STDERR_FILENO) >= 0);
}

/* The captured text; the caller frees it. */
static inline char *end_capture(void)
{
    check(dup2(captured_stderr, STDERR_FILENO) >= 0);
    close(captured_stderr);
    long size = lseek(fileno(captured_file), 0, SEEK_END);
    char *text = calloc(1, (size_t)size + 1);
    check(text != NULL);
    check(pread(fileno(captured_file), text, (size_t)size, 0) == size);
    fclose(captured_file);
    return text;
}

static inline unsigned occurrences(const char *text, const char *word)
{
    unsigned count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        count += 1;
    }
    return count;
}

/* Runs in a forked child; a failure there exits with another status. */
static inline void in_child(void (*function)(void *argument), void *argument)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(TEST_SECONDS * test_slowdown());
        function(argument);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
