/*
 * faults.c: interlock faults: runs a test repeatedly, until each call stack of an allocation has failed once.
 *
 * A run fails one allocation: the library chooses it and writes it to the state file before it fails (src/ke/fault.c). This
 * command writes how the run ended. So the file always has the results, and an interrupted command continues where it
 * stopped:
 *
 *     command ARGUMENTS        first line: the command of this state file
 *     fault RUN STACK FRAMES   by the test
 *     leak RUN BLOCKS          by the test, at its end
 *     result RUN HOW NUMBER    HOW: exit, signal, hung, exception, interrupted
 *     complete                 a run without a fault has ended
 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_STATE "interlock-faults.txt"
#define DEFAULT_TIMEOUT 60
#define LONGEST_LINE 8192
#define LONGEST_PATH 4096
#define LINES_OF_OUTPUT 40

typedef struct options {
    const char *state;
    const char *only; /* repeats this stack */
    long timeout;     /* seconds */
    long most;        /* runs; 0: no limit */
    bool fresh, verbose;
    char **command;
} options;

/* The record of one run. */
typedef struct run {
    char stack[20];
    char *frames;
    unsigned long leaks;
    char how[16];
    long number;
    bool has_result;
} run;

typedef struct state {
    run *runs; /* by number, from 1 */
    size_t count;
    bool complete;
    bool exists;
    char command[LONGEST_LINE];
} state;

static const char help[] =
    "usage: interlock faults [--state FILE] [--timeout SECONDS] [--most RUNS] [--fresh] [-v] [--] COMMAND [ARGUMENTS]\n"
    "       interlock faults --only STACK [--state FILE] [--] COMMAND [ARGUMENTS]\n\n"
    "Runs a test of driver code until each distinct call stack of an allocation or creation has failed once, one per run,\n"
    "with the verifier on. Reports the failures that made the test crash, hang or leak. Results are kept in the state file;\n"
    "the same command continues where it was interrupted. --fresh starts over. --only repeats one failure, with the\n"
    "test's output; a debugger may be the command.\n\n"
    "Exit status: 0 if nothing was found, 1 if something was, or the test fails by itself, 2 for wrong usage.\n";

static void out_of_memory(void)
{
    fprintf(stderr, "interlock faults: no memory\n");
    exit(1);
}

/* The state file. */

static run *run_at(state *s, unsigned long number)
{
    if (number == 0 || number > 10000000)
        return NULL;
    if (number > s->count) {
        s->runs = realloc(s->runs, number * sizeof(run));
        if (s->runs == NULL)
            out_of_memory();
        memset(s->runs + s->count, 0, (number - s->count) * sizeof(run));
        s->count = number;
    }
    return &s->runs[number - 1];
}

static void read_line(state *s, char *line)
{
    unsigned long number, leaks;
    char stack[20], how[16];
    long value;
    int used = 0;
    run *r;

    if (sscanf(line, "fault %lu %16s %n", &number, stack, &used) == 2 && (r = run_at(s, number)) != NULL) {
        strcpy(r->stack, stack);
        free(r->frames);
        r->frames = strdup(line + used);
    } else if (sscanf(line, "leak %lu %lu", &number, &leaks) == 2 && (r = run_at(s, number)) != NULL) {
        r->leaks += leaks;
    } else if (sscanf(line, "result %lu %15s %ld", &number, how, &value) == 3 && (r = run_at(s, number)) != NULL) {
        strcpy(r->how, how);
        r->number = value;
        r->has_result = true;
    } else if (strcmp(line, "complete") == 0) {
        s->complete = true;
    } else if (strncmp(line, "command ", 8) == 0) {
        snprintf(s->command, sizeof(s->command), "%s", line + 8);
    }
}

static void free_state(state *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->runs[i].frames);
    free(s->runs);
    memset(s, 0, sizeof(*s));
}

static void read_state(const char *path, state *s)
{
    char line[LONGEST_LINE];
    FILE *file = fopen(path, "re");

    free_state(s);
    s->exists = file != NULL;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        read_line(s, line);
    }
    if (file != NULL)
        fclose(file);
}

static bool append(const char *path, const char *text)
{
    FILE *file = fopen(path, "ae");
    bool written = file != NULL && fputs(text, file) >= 0;

    if (file == NULL || fclose(file) != 0 || !written) {
        fprintf(stderr, "interlock faults: %s: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

static void join_command(char **command, char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (size_t used = 0; *command != NULL; command++)
        used += (size_t)snprintf(buffer + used, used < size ? size - used : 0, "%s%s", used != 0 ? " " : "", *command);
}

/* One run. */

static void log_path(const options *o, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s.log", o->state);
}

/* 0: without faults. */
static pid_t start(const options *o, unsigned long number)
{
    char path[LONGEST_PATH], text[32];
    pid_t child;

    fflush(NULL);
    log_path(o, path, sizeof(path));
    child = fork();
    if (child != 0)
        return child;
    if (o->only == NULL && !o->verbose) {
        int log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

        if (log >= 0) {
            dup2(log, STDOUT_FILENO);
            dup2(log, STDERR_FILENO);
        }
    }
    setenv("INTERLOCK_VERIFIER", "1", 0);
    unsetenv("INTERLOCK_FAULTS");
    if (number != 0) {
        snprintf(text, sizeof(text), "%lu", number);
        setenv("INTERLOCK_FAULTS", o->state, 1);
        setenv("INTERLOCK_FAULTS_RUN", text, 1);
    }
    execvp(o->command[0], o->command);
    fprintf(stderr, "interlock faults: %s: %s\n", o->command[0], strerror(errno));
    _exit(127);
}

/* FALSE: it did not end in time, and was killed. */
static bool await(pid_t child, long seconds, int *status)
{
    int descriptor = (int)syscall(SYS_pidfd_open, child, 0);
    bool in_time = true;

    if (descriptor >= 0) {
        struct pollfd end = {.fd = descriptor, .events = POLLIN};
        int ready;

        do {
            ready = poll(&end, 1, seconds > 0 ? (int)(seconds * 1000) : -1);
        } while (ready < 0 && errno == EINTR);
        in_time = ready != 0;
        close(descriptor);
    }
    if (!in_time)
        kill(child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        continue;
    return in_time;
}

/* cmocka turns a hardware fault into a failed test. */
static bool log_has_exception(const options *o)
{
    char path[LONGEST_PATH], line[LONGEST_LINE];
    bool found = false;
    FILE *file;

    log_path(o, path, sizeof(path));
    file = fopen(path, "re");
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
        found = strstr(line, "Test failed with exception") != NULL;
    if (file != NULL)
        fclose(file);
    return found;
}

/* 127 and "exit": it could not be started. */
static void make_run(const options *o, unsigned long number, run *r)
{
    int status = 0;
    pid_t child = start(o, number);

    if (child < 0) {
        fprintf(stderr, "interlock faults: fork: %s\n", strerror(errno));
        exit(1);
    }
    if (!await(child, o->timeout, &status)) {
        strcpy(r->how, "hung");
        r->number = o->timeout;
    } else if (WIFSIGNALED(status)) {
        strcpy(r->how, "signal");
        r->number = WTERMSIG(status);
    } else {
        strcpy(r->how, log_has_exception(o) ? "exception" : "exit");
        r->number = WEXITSTATUS(status);
    }
    r->has_result = true;
}

/* Results. */

static bool is_finding(const run *r)
{
    return r->leaks != 0 || (r->has_result && strcmp(r->how, "exit") != 0 && strcmp(r->how, "interrupted") != 0);
}

static void describe(const run *r, FILE *to)
{
    if (strcmp(r->how, "hung") == 0)
        fprintf(to, "hung for %ld s", r->number);
    else if (strcmp(r->how, "signal") == 0)
        fprintf(to, "crashed: %s", strsignal((int)r->number));
    else if (strcmp(r->how, "exception") == 0)
        fprintf(to, "crashed inside a test");
    else if (strcmp(r->how, "interrupted") == 0)
        fprintf(to, "was interrupted");
    else
        fprintf(to, "ended with status %ld", r->number);
    if (r->leaks != 0)
        fprintf(to, ", leaked %lu block%s of pool memory", r->leaks, r->leaks == 1 ? "" : "s");
}

static void print_frames(const char *frames)
{
    const char *next = frames;

    for (unsigned number = 0; next != NULL && *next != '\0'; number++) {
        const char *end = strstr(next, " < ");

        printf("    %2u  %.*s\n", number, end != NULL ? (int)(end - next) : (int)strlen(next), next);
        next = end != NULL ? end + 3 : NULL;
    }
}

static void print_output(const options *o)
{
    char path[LONGEST_PATH], line[LONGEST_LINE];
    FILE *file;

    log_path(o, path, sizeof(path));
    file = fopen(path, "re");
    if (file == NULL)
        return;
    printf("  its output:\n");
    for (int lines = 0; lines < LINES_OF_OUTPUT && fgets(line, sizeof(line), file) != NULL; lines++)
        printf("    | %s%s", line, strchr(line, '\n') != NULL ? "" : "\n");
    fclose(file);
}

static void print_finding(size_t number, const run *r)
{
    printf("run %zu, stack %s: the test ", number, r->stack);
    describe(r, stdout);
    printf(", after this allocation failed:\n");
    print_frames(r->frames);
}

static int summarize(const state *s)
{
    size_t faults = 0, findings = 0, crashes = 0, hangs = 0, leaks = 0;

    for (size_t i = 0; i < s->count; i++) {
        const run *r = &s->runs[i];

        faults += r->stack[0] != '\0' && strcmp(r->how, "interrupted") != 0;
        findings += is_finding(r);
        crashes += strcmp(r->how, "signal") == 0 || strcmp(r->how, "exception") == 0;
        hangs += strcmp(r->how, "hung") == 0;
        leaks += r->leaks != 0;
    }
    printf("%zu stacks have failed%s: %zu made the test crash, %zu hang, %zu leak\n", faults,
           s->complete ? ", which is all of them" : "", crashes, hangs, leaks);
    return findings != 0;
}

/* The loop. */

static bool begin(const options *o, state *s)
{
    char command[LONGEST_LINE], line[LONGEST_LINE + 16];
    run baseline = {.leaks = 0};

    join_command(o->command, command, sizeof(command));
    if (o->fresh)
        unlink(o->state);
    read_state(o->state, s);
    if (s->exists && strcmp(s->command, command) != 0) {
        fprintf(stderr, "interlock faults: %s belongs to another command: %s\n"
                "--fresh starts over, --state names another file\n", o->state, s->command);
        return false;
    }
    if (s->exists)
        return true;
    make_run(o, 0, &baseline);
    if (strcmp(baseline.how, "exit") != 0 || baseline.number != 0) {
        fprintf(stderr, "interlock faults: without any fault the test ");
        describe(&baseline, stderr);
        fprintf(stderr, "\n");
        print_output(o);
        return false;
    }
    snprintf(line, sizeof(line), "command %s\n", command);
    return append(o->state, line);
}


static bool next_run(const options *o, state *s)
{
    unsigned long number = s->count + 1;
    run made = {.leaks = 0};
    char line[64];

    make_run(o, number, &made);
    read_state(o->state, s);
    if (s->count < number || s->runs[number - 1].stack[0] == '\0') {
        if (getenv("INTERLOCK_FAULTS_ONLY") != NULL)
            return false; /* the program has changed */
        s->complete = true;
        append(o->state, "complete\n");
        if (strcmp(made.how, "exit") != 0 || made.number != 0) {
            printf("the last run, without a fault: the test ");
            describe(&made, stdout);
            printf(": it behaves differently from run to run\n");
        }
        return false;
    }
    snprintf(line, sizeof(line), "result %lu %s %ld\n", number, made.how, made.number);
    append(o->state, line);
    read_line(s, line);
    if (is_finding(&s->runs[number - 1])) {
        print_finding(number, &s->runs[number - 1]);
        print_output(o);
        fflush(stdout);
    }
    return true;
}

/* A run of a command that was killed has no result: its stack fails again. */
static void repeat_interrupted(const options *o, state *s)
{
    char line[64], stack[sizeof(s->runs->stack)];
    size_t count = s->count;

    for (size_t i = 0; i < count; i++)
        if (!s->runs[i].has_result && s->runs[i].stack[0] != '\0') {
            strcpy(stack, s->runs[i].stack);
            snprintf(line, sizeof(line), "result %zu interrupted 0\n", i + 1);
            append(o->state, line);
            setenv("INTERLOCK_FAULTS_ONLY", stack, 1);
            next_run(o, s);
            unsetenv("INTERLOCK_FAULTS_ONLY");
        }
}

static int run_all(const options *o)
{
    state s = {.count = 0};
    char path[LONGEST_PATH];
    int status = 1;

    if (begin(o, &s)) {
        read_state(o->state, &s);
        for (size_t i = 0; i < s.count; i++)
            if (is_finding(&s.runs[i]))
                print_finding(i + 1, &s.runs[i]);
        repeat_interrupted(o, &s);
        for (long made = 0; !s.complete && (o->most == 0 || made < o->most) && next_run(o, &s); made++)
            continue;
        status = summarize(&s);
    }
    log_path(o, path, sizeof(path));
    unlink(path);
    free_state(&s);
    return status;
}

static int run_only(const options *o)
{
    char name[] = "/tmp/interlock-fault-XXXXXX";
    int file = mkstemp(name);
    options own = *o;
    run made = {.leaks = 0};

    if (file < 0) {
        fprintf(stderr, "interlock faults: %s: %s\n", name, strerror(errno));
        return 1;
    }
    close(file);
    own.state = name;
    own.timeout = 0;
    setenv("INTERLOCK_FAULTS_ONLY", o->only, 1);
    make_run(&own, 1, &made);
    unlink(name);
    printf("the test ");
    describe(&made, stdout);
    printf("\n");
    return strcmp(made.how, "exit") != 0 || made.number != 0;
}

static bool number_of(const char *text, long *number)
{
    char *end;

    errno = 0;
    *number = strtol(text, &end, 10);
    return *text != '\0' && *end == '\0' && errno == 0 && *number >= 0 && *number <= 1000000;
}

static bool refuse(const char *word)
{
    fprintf(stderr, "interlock: unrecognized argument: %s\n", word);
    return false;
}

static bool parse(int argc, char **argv, options *o)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--fresh") == 0)
            o->fresh = true;
        else if (strcmp(argv[i], "-v") == 0)
            o->verbose = true;
        else if (value == NULL)
            return refuse(argv[i]);
        else if (strcmp(argv[i], "--state") == 0)
            o->state = argv[++i];
        else if (strcmp(argv[i], "--only") == 0)
            o->only = argv[++i];
        else if (strcmp(argv[i], "--timeout") != 0 && strcmp(argv[i], "--most") != 0)
            return refuse(argv[i]);
        else if (!number_of(value, argv[i][2] == 't' ? &o->timeout : &o->most))
            return refuse(value);
        else
            i++;
    }
    o->command = argv + i;
    return i < argc;
}

int command_faults(int argc, char **argv)
{
    options o = {.state = DEFAULT_STATE, .timeout = DEFAULT_TIMEOUT};

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (!parse(argc, argv, &o)) {
        fputs(help, stderr);
        return 2;
    }
    return o.only != NULL ? run_only(&o) : run_all(&o);
}
