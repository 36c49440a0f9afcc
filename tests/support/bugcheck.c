#include "support.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 20

static _Noreturn void run_child(int output, void (*function)(void *), void *argument)
{
    static const struct rlimit no_core;

    setrlimit(RLIMIT_CORE, &no_core);
    /* A failed assertion must end this process, not run the parent's remaining tests in it. */
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    signal(SIGABRT, SIG_DFL);
    alarm(CHILD_SECONDS * test_slowdown());
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    close(output);
    function(argument);
    _exit(0);
}

static char *read_all(int input)
{
    size_t used = 0, size = 4096;
    char *text = malloc(size);
    ssize_t got;

    if (text == NULL)
        abort();
    for (;;) {
        got = read(input, text + used, size - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
        if (size - used < 2) {
            size *= 2;
            text = realloc(text, size);
            if (text == NULL)
                abort();
        }
    }
    text[used] = '\0';
    return text;
}

static bool has_line_beginning(const char *text, const char *beginning)
{
    const char *line = text;

    while (line != NULL) {
        if (strncmp(line, beginning, strlen(beginning)) == 0)
            return true;
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return false;
}

void test_expect_bugcheck(uint32_t code, const uint64_t *parameter, void (*function)(void *argument),
                          void *argument, const char *file, int line)
{
    char expected[48];
    char *output;
    int ends[2];
    int status;
    pid_t child;
    bool stopped;

    if (parameter != NULL)
        snprintf(expected, sizeof(expected), "*** STOP: 0x%08X (0x%016" PRIX64, (unsigned)code, *parameter);
    else
        snprintf(expected, sizeof(expected), "*** STOP: 0x%08X", (unsigned)code);
    fflush(NULL);
    if (pipe(ends) != 0)
        fail_msg("pipe: %s", strerror(errno));
    child = fork();
    if (child < 0)
        fail_msg("fork: %s", strerror(errno));
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1], function, argument);
    }
    close(ends[1]);
    output = read_all(ends[0]);
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;

    stopped = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (!stopped || !has_line_beginning(output, expected)) {
        if (WIFSIGNALED(status))
            print_error("expected \"%s\"; the child ended by signal %d (%s)\n", expected,
                        WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
            print_error("expected \"%s\"; the child returned with exit code %d\n", expected,
                        WEXITSTATUS(status));
        print_error("its output:\n%s\n", output);
        free(output);
        _fail(file, line);
    }
    free(output);
}
