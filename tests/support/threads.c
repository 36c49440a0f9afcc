#include "support.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* this C library cannot unwind */
static int backtrace(void **frames, int size)
{
    (void)frames;
    (void)size;
    return 0;
}

static void backtrace_symbols_fd(void *const *frames, int size, int descriptor)
{
    (void)frames;
    (void)size;
    dprintf(descriptor, "(no stacks with this C library)\n");
}
#endif

#define STACK_SIGNAL SIGRTMAX
#define STACK_FRAMES 64

struct member {
    test_threads *threads;
    unsigned index;
    pthread_t thread;
};

struct test_threads {
    test_thread_function *function;
    void *argument;
    pthread_barrier_t start;
    unsigned count;
    struct member members[];
};

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t watch_changed;
static struct timespec watch_deadline;
static bool watch_active;
static pid_t watch_process;
static void *stack[STACK_FRAMES];
static int stack_depth;
static atomic_long stack_wanted;
static atomic_int stacks_taken;

static void require(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(error));
        abort();
    }
}

static void take_own_stack(int signal_number)
{
    (void)signal_number;
    if (atomic_load(&stack_wanted) != syscall(SYS_gettid))
        return;
    stack_depth = backtrace(stack, STACK_FRAMES);
    atomic_fetch_add(&stacks_taken, 1);
}

/* One line for each frame. Unlike backtrace_symbols, addr2line also names static and hidden functions. */
static void print_stack(void)
{
    char command[STACK_FRAMES * 20 + 128];
    Dl_info own, place;
    size_t length;
    int i;

    backtrace_symbols_fd(stack, stack_depth, STDERR_FILENO);
    if (dladdr((void *)print_stack, &own) == 0)
        return;
    length = (size_t)snprintf(command, sizeof(command),
                              "addr2line -a -p -f -i -s -e /proc/%ld/exe", (long)getpid());
    for (i = 0; i < stack_depth; i++) {
        if (dladdr(stack[i], &place) != 0 && place.dli_fbase == own.dli_fbase)
            length += (size_t)snprintf(command + length, sizeof(command) - length, " 0x%lx",
                                       (unsigned long)((char *)stack[i] - (char *)own.dli_fbase));
    }
    snprintf(command + length, sizeof(command) - length, " >&2");
    if (system(command) != 0)
        fprintf(stderr, "(no names without addr2line)\n");
}

static void print_stack_of(long thread)
{
    static const struct timespec pause = {.tv_nsec = 10000000};
    int before = atomic_load(&stacks_taken);
    int tries;

    atomic_store(&stack_wanted, thread);
    if (syscall(SYS_tgkill, getpid(), thread, STACK_SIGNAL) != 0)
        return;
    for (tries = 0; tries < 50 && atomic_load(&stacks_taken) == before; tries++)
        nanosleep(&pause, NULL);
    fprintf(stderr, "thread %ld:%s\n", thread,
            atomic_load(&stacks_taken) == before ? " does not take signals" : "");
    if (atomic_load(&stacks_taken) != before)
        print_stack();
}

static _Noreturn void abort_with_stacks(void)
{
    long self = (long)syscall(SYS_gettid);
    struct dirent *entry;
    DIR *tasks;
    long thread;

    fprintf(stderr, "the test hangs; stacks of its threads:\n");
    tasks = opendir("/proc/self/task");
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        thread = strtol(entry->d_name, NULL, 10);
        if (thread != 0 && thread != self)
            print_stack_of(thread);
    }
    abort();
}

static void *watch(void *unused)
{
    int error;

    (void)unused;
    pthread_mutex_lock(&watch_lock);
    for (;;) {
        if (!watch_active) {
            pthread_cond_wait(&watch_changed, &watch_lock);
            continue;
        }
        error = pthread_cond_timedwait(&watch_changed, &watch_lock, &watch_deadline);
        if (error == ETIMEDOUT && watch_active)
            abort_with_stacks();
    }
    return NULL;
}

/* Called with watch_lock held. A forked child has no watchdog thread and creates its own. */
static void start_watching(void)
{
    struct sigaction action = {.sa_handler = take_own_stack, .sa_flags = SA_RESTART};
    pthread_condattr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    void *frame;

    if (watch_process == getpid())
        return;
    watch_process = getpid();
    watch_active = false;
    backtrace(&frame, 1); /* loads the unwinder now rather than in the signal handler */
    require(sigaction(STACK_SIGNAL, &action, NULL) ? errno : 0, "sigaction");
    require(pthread_condattr_init(&attributes), "pthread_condattr_init");
    require(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), "pthread_condattr_setclock");
    require(pthread_cond_init(&watch_changed, &attributes), "pthread_cond_init");
    pthread_condattr_destroy(&attributes);
    /* Signals are for the threads of the test. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    require(pthread_create(&thread, NULL, watch, NULL), "pthread_create");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_detach(thread);
}

/* The watching thread may hold the lock when another one forks. */
static void lock_watch(void)
{
    pthread_mutex_lock(&watch_lock);
}

static void unlock_watch(void)
{
    pthread_mutex_unlock(&watch_lock);
}

__attribute__((constructor)) static void keep_watch_over_forks(void)
{
    require(pthread_atfork(lock_watch, unlock_watch, unlock_watch), "pthread_atfork");
}

void watchdog_start(unsigned seconds)
{
    pthread_mutex_lock(&watch_lock);
    start_watching();
    if (watch_active) {
        fprintf(stderr, "watchdog_start: a watch is running already\n");
        abort();
    }
    clock_gettime(CLOCK_MONOTONIC, &watch_deadline);
    watch_deadline.tv_sec += (time_t)seconds * test_slowdown();
    watch_active = true;
    pthread_cond_signal(&watch_changed);
    pthread_mutex_unlock(&watch_lock);
}

void watchdog_stop(void)
{
    pthread_mutex_lock(&watch_lock);
    watch_active = false;
    pthread_cond_signal(&watch_changed);
    pthread_mutex_unlock(&watch_lock);
}

static void *run_member(void *argument)
{
    struct member *member = argument;
    test_threads *threads = member->threads;

    pthread_barrier_wait(&threads->start);
    threads->function(threads->argument, member->index);
    return NULL;
}

test_threads *start_threads(unsigned count, test_thread_function *function, void *argument)
{
    test_threads *threads = malloc(sizeof(*threads) + count * sizeof(threads->members[0]));
    unsigned i;

    if (threads == NULL)
        abort();
    threads->function = function;
    threads->argument = argument;
    threads->count = count;
    require(pthread_barrier_init(&threads->start, NULL, count), "pthread_barrier_init");
    for (i = 0; i < count; i++) {
        threads->members[i].threads = threads;
        threads->members[i].index = i;
        require(pthread_create(&threads->members[i].thread, NULL, run_member, &threads->members[i]),
                "pthread_create");
    }
    return threads;
}

void join_threads(test_threads *threads, unsigned seconds)
{
    unsigned i;

    watchdog_start(seconds);
    for (i = 0; i < threads->count; i++)
        require(pthread_join(threads->members[i].thread, NULL), "pthread_join");
    watchdog_stop();
    pthread_barrier_destroy(&threads->start);
    free(threads);
}

void run_threads(unsigned count, unsigned seconds, test_thread_function *function, void *argument)
{
    join_threads(start_threads(count, function, argument), seconds);
}

bool sleeps_in_the_host(unsigned long thread_id)
{
    char path[64], line[128];
    const char *state;
    ssize_t length;
    int file;

    snprintf(path, sizeof(path), "/proc/self/task/%lu/stat", thread_id);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return true;
    length = read(file, line, sizeof(line) - 1);
    close(file);
    line[length > 0 ? length : 0] = '\0';
    state = strrchr(line, ')');
    return state == NULL || state[2] == 'S';
}

bool all_others_sleep(void)
{
    long self = (long)syscall(SYS_gettid);
    bool asleep = true;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");

    require(tasks == NULL ? errno : 0, "opendir");
    while (asleep && (entry = readdir(tasks)) != NULL) {
        long thread = strtol(entry->d_name, NULL, 10);

        asleep = thread == 0 || thread == self || sleeps_in_the_host((unsigned long)thread);
    }
    closedir(tasks);
    return asleep;
}
