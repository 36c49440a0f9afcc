/*
 * guard.c: time and memory limits for code that is not the debugger's own: the kernel, which reads another process, and
 * the libraries that read its files.
 *
 * A process can block a reader of its memory (userfaultfd, or a mapping of its own file system), and so can the file
 * system of a module. Such a read ends only when the reader is killed; no signal handler runs meanwhile. So a thread
 * watches the clock, reports the reason and ends the process.
 */
#include "kd.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MOST_GUARDS 4
#define LEAST_MEMORY ((uint64_t)4 << 30)

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

static const char *volatile guarded; /* the operation; NULL: none */
static volatile int patience;
static volatile uint64_t turn;       /* counts guarded operations */

/* Nothing here may acquire a lock that the blocked thread may own. */
static void end_with(const char *why)
{
    char text[256];
    int length = snprintf(text, sizeof(text), "interlock: %s: it was given up\n", why);
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);

    (void)written;
    _exit(1);
}

static void *watch(void *context)
{
    struct timespec second = {.tv_sec = 1};
    uint64_t last = 0;
    int waited = 0;

    (void)context;
    for (;;) {
        const char *what;
        uint64_t now;

        nanosleep(&second, NULL);
        what = __atomic_load_n(&guarded, __ATOMIC_ACQUIRE); /* pairs with the release in kd_guard_begin */
        now = __atomic_load_n(&turn, __ATOMIC_RELAXED);     /* relaxed: only a change matters */
        waited = what != NULL && now == last ? waited + 1 : 0;
        last = now;
        if (what != NULL && waited >= __atomic_load_n(&patience, __ATOMIC_RELAXED))
            end_with(what);
    }
    return NULL;
}

/*
 * libelf and libdw trust the sizes in a file's headers, and the files belong to the process. Beyond the limit an
 * allocation fails, and they report a damaged file. Not with a sanitizer: its shadow memory would count too.
 */
static struct rlimit memory_before = {RLIM_INFINITY, RLIM_INFINITY};

static void limit_memory(void)
{
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    rlim_t most = all / 4 > LEAST_MEMORY ? all / 4 : LEAST_MEMORY;
    struct rlimit limit;

    if (IS_SANITIZED || getrlimit(RLIMIT_DATA, &memory_before) != 0 || memory_before.rlim_cur <= most)
        return;
    limit = (struct rlimit){most, memory_before.rlim_max};
    setrlimit(RLIMIT_DATA, &limit);
}

void kd_unlimit_memory(void)
{
    if (!IS_SANITIZED)
        setrlimit(RLIMIT_DATA, &memory_before);
}

/* A mapped file was truncated. */
static void on_bus_error(int number)
{
    (void)number;
    end_with("a file that it reads was truncated meanwhile, or cannot be read");
}

static void start_watch(void)
{
    sigset_t all, before;
    pthread_t thread;

    /* Signals go to the thread that prints. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, watch, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void kd_guard_start(bool watched)
{
    static bool started;
    struct sigaction bus = {.sa_handler = on_bus_error};

    if (started)
        return;
    started = true;
    limit_memory();
    sigaction(SIGBUS, &bus, NULL);
    if (!watched)
        start_watch();
}

/* Guards may nest. */
static struct {
    const char *what;
    int seconds;
} outer[MOST_GUARDS];
static int depth;

/* The watcher may combine the name of one guard with the seconds of another, but gives up only if the turn did not change. */
static void guard(const char *what, int seconds)
{
    if (what != NULL)
        __atomic_store_n(&patience, seconds, __ATOMIC_RELAXED); /* relaxed: published by the release below */
    __atomic_store_n(&turn, turn + 1, __ATOMIC_RELAXED);    /* relaxed: this thread alone writes it */
    __atomic_store_n(&guarded, what, __ATOMIC_RELEASE);
}

void kd_guard_begin(int seconds, const char *what)
{
    if (depth < MOST_GUARDS) {
        outer[depth].what = guarded;
        outer[depth].seconds = patience;
    }
    depth++;
    guard(what, seconds);
}

void kd_guard_end(void)
{
    depth--;
    guard(depth < MOST_GUARDS ? outer[depth].what : NULL, depth < MOST_GUARDS ? outer[depth].seconds : 0);
}

/* Children that inspect one process each. */

pid_t kd_start_child(void (*run)(const char *process, int to), const char *process, int cpu_seconds, int *from)
{
    struct rlimit cpu = {(rlim_t)cpu_seconds, (rlim_t)cpu_seconds}, no_core = {0, 0};
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0)
        return -1;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        close(ends[0]);
        setrlimit(RLIMIT_CPU, &cpu);
        setrlimit(RLIMIT_CORE, &no_core);
        run(process, ends[1]);
        _exit(1);
    }
    close(ends[1]);
    *from = ends[0];
    if (child < 0)
        close(ends[0]);
    return child;
}
