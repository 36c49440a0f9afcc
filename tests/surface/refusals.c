/*
 * Every exported function with ordinary arguments, once for each resource that it requests from the host: memory, a
 * thread, a descriptor. That one request is refused. The call must fail with a status that says so, or do without; a
 * failing call that is repeated leaves nothing behind; and the next call, without a refusal, succeeds.
 *
 * What a call allocates once for all later calls is not a leak: so the call is repeated until it leaves nothing behind.
 */
#include "surface.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAP_COUNTS_BLOCKS
#include "../support/heap.h"

#include "everything.h"

#include "support.h"

#ifndef HEAP_IS_WATCHED_ONLY

enum { CALL_SECONDS = 60, FIRST_CALL_SECONDS = 5, MOST_REFUSALS = 100, MOST_REPEATS = 8, MOST_LOOKS = 1000 };

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    return refuse_allocation() ? EAGAIN : __real_pthread_create(thread, attributes, routine, argument);
}

int __wrap_eventfd(unsigned count, int flags)
{
    return refuse_allocation() ? -1 : __real_eventfd(count, flags);
}

int __wrap_epoll_create1(int flags)
{
    return refuse_allocation() ? -1 : __real_epoll_create1(flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return refuse_allocation() ? -1 : __real_timerfd_create(clock, flags);
}

/* Mistakes that the test must find. */

static uint64_t planted_leak(void)
{
    void *volatile kept = malloc(100);
    void *volatile other = malloc(100);

    free(other);
    if (kept != NULL && other != NULL)
        free(kept);
    return other != NULL ? STATUS_SUCCESS : (uint32_t)STATUS_NO_MEMORY;
}

static uint64_t planted_handle_leak(void)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    void *volatile memory = malloc(100);

    free(memory);
    if (memory != NULL)
        CloseHandle(event);
    return memory != NULL ? STATUS_SUCCESS : (uint32_t)STATUS_NO_MEMORY;
}

static uint64_t planted_crash(void)
{
    volatile char *volatile memory = malloc(100);

    memory[0] = 1;
    free((void *)memory);
    return STATUS_SUCCESS;
}

static uint64_t planted_status(void)
{
    void *volatile memory = malloc(100);

    free(memory);
    return memory != NULL ? STATUS_SUCCESS : (uint32_t)STATUS_INVALID_PARAMETER;
}

static uint64_t planted_end_of_service(void)
{
    static bool broken;
    void *volatile memory = malloc(100);

    broken = broken || memory == NULL;
    free(memory);
    return broken ? (uint32_t)STATUS_NO_MEMORY : STATUS_SUCCESS;
}

#define FUNCTION(name, layer, result, kinds) \
    {#name, (void (*)(void))name, LAYER_##layer, RESULT_##result, kinds, 0, {""}, 0, 0},
struct function functions[] = {
#include "functions.def"
    FUNCTION(planted_leak, planted, status, "") FUNCTION(planted_handle_leak, planted, status, "")
        FUNCTION(planted_crash, planted, status, "") FUNCTION(planted_status, planted, status, "")
            FUNCTION(planted_end_of_service, planted, status, "")};
#undef FUNCTION

static const char *const planted_findings[] = {
    "leaves memory behind", "leaves a handle behind", "faults", "fails with another status", "does not work afterwards"};

enum { PLANTED = sizeof(planted_findings) / sizeof(planted_findings[0]) };

const unsigned function_count = sizeof(functions) / sizeof(functions[0]) - PLANTED;

/* The number of each kind of resource that a call could leave behind. */

struct holdings {
    long blocks;
    long handles;
    long threads;
    long descriptors;
};

static long count_entries(const char *path)
{
    DIR *folder = opendir(path);
    long count = 0;

    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* Some threads never sleep and always hold something: a wait for an object that stays signaled was registered. Then
   there is nothing to compare. */
static bool restless;

/* A thread that is starting or ending holds resources, so the count waits until all others sleep. */
static struct holdings take_stock(void)
{
    struct holdings holdings;
    unsigned calm = 0;

    for (unsigned looks = 0; calm < 3 && looks < MOST_LOOKS && !restless; looks++) {
        calm = all_others_sleep() ? calm + 1 : 0;
        sched_yield();
    }
    restless = calm < 3;
    holdings.handles = handle_count();
    holdings.threads = count_entries("/proc/self/task");
    holdings.descriptors = count_entries("/proc/self/fd");
    holdings.blocks = blocks_allocated;
    return holdings;
}

/* In the child. */

static struct shared {
    bool refused, failed, raised; /* of the first call: a request was refused; the call failed; it raised the status */
    bool passed;                  /* the call after it succeeded */
    unsigned asked;
    uint64_t result;
    uint32_t error;
    struct holdings left;
    bool sound;
} * shared;

static int output = -1; /* discards what the calls write */

static const struct plan ordinary_plan = {.fault = FAULT_NONE, .parameter = MAXIMUM_PARAMETERS, .description = ""};

/* FALSE: the function raised *result. */
static bool call_and_catch(const struct function *function, const uint64_t *arguments, uint64_t *result)
{
    volatile bool returned = false;

    __try {
        *result = call_function(function, arguments);
        returned = true;
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        *result = (uint32_t)GetExceptionCode();
    }
    return returned;
}

/* One call, with its request `number` refused; below 0: none. */
static bool call_once(const struct function *function, int number)
{
    uint64_t arguments[MAXIMUM_PARAMETERS + 1];
    struct holdings before, after;
    unsigned refused = allocations_refused, asked;

    make_arguments(function, &ordinary_plan, arguments);
    before = take_stock();
    SetLastError(UNTOUCHED);
    asked = allocations_asked;
    allocations_left = number;
    shared->raised = !call_and_catch(function, arguments, &shared->result);
    allocations_left = -1;
    shared->asked = allocations_asked - asked;
    shared->error = GetLastError();
    if (thread_changed())
        _exit(0); /* it raised the IRQL or entered a region, as it should: there is nothing to compare */
    after = take_stock();
    shared->left = restless ? (struct holdings){0}
                            : (struct holdings){after.blocks - before.blocks, after.handles - before.handles,
                                                after.threads - before.threads, after.descriptors - before.descriptors};
    shared->failed = shared->raised || has_failed(function, shared->result) ||
                     (function->result == RESULT_value && shared->result == 0);
    return allocations_refused != refused;
}

static bool leaves_nothing(void)
{
    return shared->left.blocks <= 0 && shared->left.handles <= 0 && shared->left.threads <= 0 &&
           shared->left.descriptors <= 0;
}

static void refuse_one(const struct function *function, int number)
{
    struct shared first;

    shared->refused = call_once(function, number);
    first = *shared;
    for (unsigned i = 1; i < MOST_REPEATS && shared->failed && first.refused && !leaves_nothing(); i++)
        call_once(function, number);
    if (first.failed && shared->failed)
        first.left = shared->left;
    else
        memset(&first.left, 0, sizeof(first.left)); /* what it left behind is what lets it succeed */
    call_once(function, -1);
    first.passed = !shared->failed;
    *shared = first;
    shared->sound = is_sound();
}

static _Noreturn void run(const struct function *function, int number)
{
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    /* a call that blocks without a refusal has nothing to compare with */
    alarm(number < 0 || function->layer == LAYER_planted ? FIRST_CALL_SECONDS : CALL_SECONDS);
    prepare_values();
    refuse_one_only = 1;
    refuse_one(function, number);
    _exit(0);
}

/* Returns the exit status of the child; 0: it completed. */
static int run_in_child(const struct function *function, int number)
{
    int status;
    pid_t child;

    memset(shared, 0, sizeof(*shared));
    shared->sound = true;
    shared->passed = true;
    fflush(NULL);
    child = fork();
    if (child == 0)
        run(function, number);
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    return status;
}

/* In the parent. */

static const uint32_t statuses[] = {(uint32_t)STATUS_INSUFFICIENT_RESOURCES, (uint32_t)STATUS_NO_MEMORY};
static const uint32_t errors[] = {ERROR_NOT_ENOUGH_MEMORY, ERROR_OUTOFMEMORY, ERROR_NO_SYSTEM_RESOURCES,
                                  ERROR_TOO_MANY_OPEN_FILES};

static bool says_why(const struct function *function)
{
    if (function->layer == LAYER_win32 && !shared->raised) {
        for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
            if (shared->error == errors[i])
                return true;
        }
        return function->result != RESULT_boolean && function->result != RESULT_handle;
    }
    for (unsigned i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if ((uint32_t)shared->result == statuses[i])
            return true;
    }
    return function->result != RESULT_status && !shared->raised;
}

static const char *judge(const struct function *function, int status)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "hangs" : WTERMSIG(status) == SIGABRT ? "stops" : "faults";
    if (!shared->refused)
        return NULL;
    if (shared->failed && !says_why(function))
        return "fails with another status";
    if (shared->failed && shared->left.handles > 0)
        return "leaves a handle behind";
    if (shared->failed && shared->left.threads > 0)
        return "leaves a thread behind";
    if (shared->failed && shared->left.descriptors > 0)
        return "leaves a descriptor behind";
    if (shared->failed && shared->left.blocks > 0)
        return "leaves memory behind";
    if (!shared->passed)
        return "does not work afterwards";
    return shared->sound ? NULL : "leaves the library unsound";
}

static unsigned refusals, failures, did_without;

/* NULL, or what is wrong. */
static const char *refuse_each(const struct function *function, bool talk)
{
    const char *wrong = NULL, *found = NULL;
    unsigned asked;
    int status;

    if ((allowed_for(function) & (NOT_CALLED | MAY_END)) != 0 || is_skipped(function, &ordinary_plan))
        return NULL;
    status = run_in_child(function, -1);
    asked = shared->asked;
    if (status != 0 || shared->failed || !shared->passed) /* there is no success to compare with */
        return NULL;
    for (unsigned number = 0; number < asked && number < MOST_REFUSALS; number++) {
        status = run_in_child(function, (int)number);
        wrong = judge(function, status);
        refusals += shared->refused;
        did_without += shared->refused && !shared->failed;
        if (wrong != NULL && talk)
            printf("# %s(%s), refusal %u of %u: %s (result %#" PRIx64 ", error %u, %ld blocks, %ld handles, %ld "
                   "threads, %ld descriptors)\n",
                   function->name, function->kinds, number + 1, asked, wrong, shared->result, shared->error,
                   shared->left.blocks, shared->left.handles, shared->left.threads, shared->left.descriptors);
        found = found != NULL ? found : wrong;
    }
    return found;
}

static bool find_planted(void)
{
    bool good = true;

    for (unsigned i = 0; i < PLANTED; i++) {
        const char *wrong = refuse_each(&functions[function_count + i], false);

        if (wrong == NULL || strcmp(wrong, planted_findings[i]) != 0) {
            printf("# %s: %s\n", functions[function_count + i].name, wrong != NULL ? wrong : "fine");
            good = false;
        }
    }
    refusals = did_without = 0;
    return good;
}

/* With the names of functions, only those. */
static bool is_chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(name, argv[i]) == 0)
            return true;
    }
    return argc == 1;
}

int main(int argc, char **argv)
{
    bool good;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    output = open("/dev/null", O_WRONLY);
    if (shared == MAP_FAILED || output < 0)
        abort();
    for (unsigned i = 0; i < function_count + PLANTED; i++)
        split_kinds(&functions[i]);
    printf("1..2\n");
    good = find_planted();
    printf("%sok 1 - planted mistakes are found\n", good ? "" : "not ");
    for (unsigned i = 0; i < function_count; i++) {
        if (is_chosen(functions[i].name, argc, argv))
            failures += refuse_each(&functions[i], true) != NULL;
    }
    printf("%sok 2 - %u refusals, %u calls did without\n", failures == 0 ? "" : "not ", refusals, did_without);
    return good && failures == 0 ? 0 : 1;
}

#else

struct function functions[1];
const unsigned function_count = 0;

int main(void)
{
    printf("1..0 # SKIP the heap of a sanitizer refuses nothing\n");
    return 0;
}

#endif
