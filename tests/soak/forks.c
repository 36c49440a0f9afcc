/*
 * forks.c: the process forks. The child has one thread and a copy of everything else: it starts threads, executes steps
 * of every family, and exits. The sanitizers' heap does not survive a fork while others use it, so no step is in
 * progress when the process forks.
 */
#include "soak.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_SECONDS      60
#define CHILD_STEPS        60
#define CHILD_THREADS      2
#define PAUSE_MILLISECONDS 500
#define QUIET_TRIES        400
#define QUIET_ENOUGH       2

#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
static pthread_rwlock_t stillness = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
#else
static pthread_rwlock_t stillness = PTHREAD_RWLOCK_INITIALIZER;
#endif
static pthread_t forker;
static volatile LONG forks;
static bool in_child;

void stand_still_begin(void)
{
    if (!in_child)
        require(pthread_rwlock_rdlock(&stillness) == 0);
}

void stand_still_end(void)
{
    if (!in_child)
        require(pthread_rwlock_unlock(&stillness) == 0);
}

static void child_steps(uint64_t seed)
{
    test_random random;

    random_seed(&random, seed);
    for (int i = 0; i < CHILD_STEPS; i++)
        soak_step(soak_choose_family(&random), &random);
}

static DWORD WINAPI child_thread(LPVOID argument)
{
    child_steps((uint64_t)(ULONG_PTR)argument);
    return 0;
}

static _Noreturn void live_as_child(uint64_t seed)
{
    HANDLE threads[CHILD_THREADS];

    in_child = true;
    soak.workers = 0; /* those were the parent's, and so were the locks of their slots */
    for (unsigned i = 0; i < CHILD_THREADS; i++) {
        threads[i] = CreateThread(NULL, SMALL_STACK, child_thread, (LPVOID)(ULONG_PTR)(seed + i), 0, NULL);
        require(threads[i] != NULL);
    }
    child_steps(seed + CHILD_THREADS);
    require(WaitForMultipleObjects(CHILD_THREADS, threads, TRUE, INFINITE) == WAIT_OBJECT_0);
    _exit(0);
}

/* There is no watchdog in the child: its thread was not forked. */
static bool has_ended(pid_t child, int *status)
{
    ULONGLONG seconds = test_heap_may_stay_locked() ? TEST_HEAP_SECONDS : CHILD_SECONDS * test_slowdown();
    struct timespec pause = {.tv_nsec = 2000000};
    ULONGLONG start = GetTickCount64();
    pid_t got = 0;

    while (got == 0 && GetTickCount64() - start < 1000 * seconds) {
        got = waitpid(child, status, WNOHANG);
        if (got == 0)
            nanosleep(&pause, NULL);
    }
    require(got == 0 || got == child);
    return got == child;
}

/* The output of a child, which goes to a separate file. */
static const char *text_of(int output)
{
    static char text[1 << 16];
    ssize_t length = pread(output, text, sizeof(text) - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    return text;
}

/*
 * ThreadSanitizer's runtime never forgets a terminated thread, and fails in a child whose C library reuses that
 * thread's stack: not a bug of Interlock.
 */
static bool has_sanitizer_given_up(const char *text)
{
    return strstr(text, "ThreadSanitizer: dup thread with used id") != NULL;
}

static void wait_for_child(pid_t child, int output)
{
    int status = -1;

    if (!has_ended(child, &status)) {
        fprintf(stderr, "a forked child hangs (seed %llu)\n", (unsigned long long)soak.seed);
        show_waits(child);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        if (test_heap_may_stay_locked())
            return;
    }
    if (status != 0) {
        const char *text = text_of(output);

        fprintf(stderr, "a forked child ended with %#x\n%s", (unsigned)status, text);
        require(has_sanitizer_given_up(text));
    }
}

/* False: a worker does not stop. */
static bool is_quiet(void)
{
    struct timespec pause = {.tv_nsec = 500000};

    for (int quiet = 0, tries = 0; tries < QUIET_TRIES; tries++) {
        quiet = all_others_sleep() ? quiet + 1 : 0;
        if (quiet == QUIET_ENOUGH)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static pid_t fork_child(uint64_t seed, int output)
{
    pid_t child = fork();

    if (child == 0) {
        dup2(output, STDERR_FILENO);
        live_as_child(seed);
    }
    require(child > 0);
    return child;
}

static void fork_once(uint64_t seed)
{
    pid_t child = -1;
    int output = memfd_create("child", MFD_CLOEXEC);

    require(output >= 0);
    pthread_rwlock_wrlock(&stillness);
    if (is_quiet())
        child = fork_child(seed, output);
    pthread_rwlock_unlock(&stillness);
    if (child > 0) {
        wait_for_child(child, output);
        add(&forks, 1);
    }
    close(output);
}

static void *fork_again_and_again(void *unused)
{
    test_random random;

    (void)unused;
    random_seed(&random, soak.seed + 2000);
    while (!load(&soak_over)) {
        struct timespec pause = {.tv_nsec = 1000000L * random_below(&random, PAUSE_MILLISECONDS)};

        nanosleep(&pause, NULL);
        fork_once(random_next(&random));
    }
    return NULL;
}

void forks_start(void)
{
    require(pthread_create(&forker, NULL, fork_again_and_again, NULL) == 0);
}

void forks_join(void)
{
    require(pthread_join(forker, NULL) == 0);
}

unsigned long forks_done(void)
{
    return (unsigned long)load(&forks);
}
