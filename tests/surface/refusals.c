/*
 * Every exported function with ordinary arguments, once for each thing that it asks the host for: memory, a thread, a
 * process, a descriptor. That one is refused. The call has to fail with a status that says so, or do without; a call that
 * fails, made again and again, leaves nothing behind; and the next one, to which nothing is refused, succeeds.
 *
 * What a call allocates once for all later calls is not a leak: so the call is repeated until it leaves nothing behind.
 */
#include "surface.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAP_COUNTS_BLOCKS
#include "../support/heap.h"

#include "everything.h"

#include "support.h"

enum { CALL_SECONDS = 60, FIRST_CALL_SECONDS = 2, MOST_REFUSALS = 100, MOST_REPEATS = 8, MOST_LOOKS = 1000 };

/* What is refused, beside memory of the heap. The counts are the children's, too. */
enum refusable { THREAD, PROCESS, DESCRIPTOR, PAGES, KINDS_REFUSED };

static int watched; /* a pipe that nobody writes to */
static const char *const refusable_names[] = {"a thread", "a process", "a descriptor", "memory in pages"};
static unsigned *refused_of;

static bool refuse(enum refusable kind, int error)
{
    if (!refuse_allocation())
        return false;
    __atomic_add_fetch(&refused_of[kind], 1, __ATOMIC_RELAXED);
    errno = error;
    return true;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);
int __real_posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]);
int __wrap_posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    return refuse(THREAD, errno) ? EAGAIN : __real_pthread_create(thread, attributes, routine, argument);
}

int __wrap_posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    return refuse(PROCESS, errno) ? EAGAIN
                                  : __real_posix_spawnp(process, file, actions, attributes, arguments, environment);
}

static bool makes_descriptor(long number, const long *arguments)
{
    switch (number) {
    case SYS_openat:
    case SYS_pipe2:
    case SYS_eventfd2:
    case SYS_epoll_create1:
    case SYS_timerfd_create:
    case SYS_memfd_create:
    case SYS_pidfd_open:
        return true;
    default:
        return number == SYS_fcntl && arguments[1] == F_DUPFD_CLOEXEC;
    }
}

/* The bare calls of src/hal go through this one. */
long __wrap_syscall(long number, ...)
{
    long arguments[6];
    va_list list;

    va_start(list, number);
    for (unsigned i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (makes_descriptor(number, arguments) && refuse(DESCRIPTOR, EMFILE))
        return -1;
    if (number == SYS_mmap && refuse(PAGES, ENOMEM))
        return -1;
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

/* By either name: which one depends on the size of offsets in files. */
#define WRAP_MMAP(name)                                                                                               \
    void *__real_##name(void *address, size_t size, int access, int flags, int file, off_t offset);                   \
    void *__wrap_##name(void *address, size_t size, int access, int flags, int file, off_t offset);                   \
    void *__wrap_##name(void *address, size_t size, int access, int flags, int file, off_t offset)                    \
    {                                                                                                                 \
        return refuse(PAGES, ENOMEM) ? MAP_FAILED : __real_##name(address, size, access, flags, file, offset);        \
    }
WRAP_MMAP(mmap)
#ifdef __GLIBC__
WRAP_MMAP(mmap64)
#endif

#define WRAP_OPEN(name)                                                                                               \
    int __real_##name(const char *path, int flags, ...);                                                              \
    int __wrap_##name(const char *path, int flags, ...);                                                              \
    int __wrap_##name(const char *path, int flags, ...)                                                               \
    {                                                                                                                 \
        va_list list;                                                                                                 \
        mode_t mode;                                                                                                  \
                                                                                                                      \
        va_start(list, flags);                                                                                        \
        mode = va_arg(list, mode_t);                                                                                  \
        va_end(list);                                                                                                 \
        return refuse(DESCRIPTOR, EMFILE) ? -1 : __real_##name(path, flags, mode);                                    \
    }
WRAP_OPEN(open)
#ifdef __GLIBC__
WRAP_OPEN(open64)
#endif

/* Operations for which no function's ordinary arguments suffice. */

static uint64_t start_process(void)
{
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION information;
    char command[] = "/bin/true";

    if (!CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &information))
        return FALSE;
    WaitForSingleObject(information.hProcess, INFINITE);
    CloseHandle(information.hThread);
    CloseHandle(information.hProcess);
    return TRUE;
}

static uint64_t watch_descriptor(void)
{
    LARGE_INTEGER soon = {.QuadPart = -10000};
    HANDLE object = NULL;
    NTSTATUS status = IoCreateDescriptorObject(&object, IO_DESCRIPTOR_ALL_ACCESS, NULL, watched, IO_DESCRIPTOR_READABLE);

    if (NT_SUCCESS(status)) {
        status = NtWaitForSingleObject(object, FALSE, &soon);
        NtClose(object);
    }
    return (uint32_t)status;
}

static uint64_t export_object(void)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL), export = NULL;
    int descriptor;
    NTSTATUS status = event != NULL ? IoExportObject(event, &export, &descriptor) : STATUS_NO_MEMORY;

    if (NT_SUCCESS(status))
        NtClose(export);
    if (event != NULL)
        NtClose(event);
    return (uint32_t)status;
}

/* Mistakes that the test must find. */

/* As the library does. */
static void *allocate(void)
{
    int error = errno;
    void *volatile memory = malloc(100);

    errno = error;
    return memory;
}

static uint64_t planted_leak(void)
{
    void *volatile kept = allocate();
    void *volatile other = allocate();

    free(other);
    if (kept != NULL && other != NULL)
        free(kept);
    return other != NULL ? STATUS_SUCCESS : (uint32_t)STATUS_NO_MEMORY;
}

static uint64_t planted_handle_leak(void)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    void *volatile memory = allocate();

    free(memory);
    if (memory != NULL)
        CloseHandle(event);
    return memory != NULL ? STATUS_SUCCESS : (uint32_t)STATUS_NO_MEMORY;
}

static uint64_t planted_crash(void)
{
    volatile char *volatile memory = allocate();

    memory[0] = 1;
    free((void *)memory);
    return STATUS_SUCCESS;
}

static uint64_t planted_status(void)
{
    void *volatile memory = allocate();

    free(memory);
    return memory != NULL ? STATUS_SUCCESS : (uint32_t)STATUS_INVALID_PARAMETER;
}

static uint64_t planted_errno(void)
{
    void *volatile memory = malloc(100);

    free(memory);
    return memory != NULL ? STATUS_SUCCESS : (uint32_t)STATUS_NO_MEMORY;
}

static uint64_t planted_in_service(void)
{
    *service_depth() = 1;
    return STATUS_SUCCESS;
}

static uint64_t planted_end_of_service(void)
{
    static bool broken;
    void *volatile memory = allocate();

    broken = broken || memory == NULL;
    free(memory);
    return broken ? (uint32_t)STATUS_NO_MEMORY : STATUS_SUCCESS;
}

#define FUNCTION(name, layer, result, kinds) \
    {#name, (void (*)(void))name, LAYER_##layer, RESULT_##result, kinds, 0, {""}, 0, 0},
struct function functions[] = {
#include "functions.def"
    FUNCTION(start_process, win32, boolean, "") FUNCTION(watch_descriptor, kernel, status, "")
    FUNCTION(export_object, kernel, status, "")
    FUNCTION(planted_leak, planted, status, "") FUNCTION(planted_handle_leak, planted, status, "")
        FUNCTION(planted_crash, planted, status, "") FUNCTION(planted_status, planted, status, "")
            FUNCTION(planted_end_of_service, planted, status, "") FUNCTION(planted_errno, planted, status, "")
                FUNCTION(planted_in_service, planted, status, "")};
#undef FUNCTION

static const char *const planted_findings[] = {
    "leaves memory behind", "leaves a handle behind", "faults", "fails with another status", "does not work afterwards",
    "changes errno", "leaves the thread in a service"};

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
    int host_error; /* errno, if a call has changed it */
    struct holdings left;
    bool in_service;
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
    errno = UNTOUCHED_HOST_ERROR;
    allocations_left = number;
    shared->raised = !call_and_catch(function, arguments, &shared->result);
    allocations_left = -1;
    if (errno != UNTOUCHED_HOST_ERROR && shared->host_error == 0)
        shared->host_error = errno;
    shared->asked = allocations_asked - asked;
    shared->error = GetLastError();
    shared->in_service = shared->in_service || *service_depth() != 0;
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
    first.host_error = shared->host_error;
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

static const uint32_t statuses[] = {(uint32_t)STATUS_INSUFFICIENT_RESOURCES, (uint32_t)STATUS_NO_MEMORY,
                                    (uint32_t)STATUS_TOO_MANY_OPENED_FILES};
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
    if (shared->host_error != 0 && !(allowed_for(function) & SETS_ERRNO))
        return "changes errno";
    if (shared->in_service)
        return "leaves the thread in a service";
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
    if (status == 0 && (found = judge(function, status)) != NULL && talk)
        printf("# %s(%s): %s (%d)\n", function->name, function->kinds, found, shared->host_error);
    if (status != 0 || shared->failed || !shared->passed) /* there is no success to compare with */
        return found;
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
    int ends[2];
    bool good;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    refused_of = mmap(NULL, KINDS_REFUSED * sizeof(*refused_of), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    output = open("/dev/null", O_WRONLY);
    watched = pipe(ends) == 0 ? ends[0] : -1;
    if (shared == MAP_FAILED || refused_of == MAP_FAILED || output < 0 || watched < 0)
        abort();
    for (unsigned i = 0; i < function_count + PLANTED; i++)
        split_kinds(&functions[i]);
    printf("1..%u\n", 2 + (argc == 1 ? KINDS_REFUSED : 0));
    good = find_planted();
    printf("%sok 1 - planted mistakes are found\n", good ? "" : "not ");
    for (unsigned i = 0; i < function_count; i++) {
        if (is_chosen(functions[i].name, argc, argv))
            failures += refuse_each(&functions[i], true) != NULL;
    }
    printf("%sok 2 - %u refusals, %u calls did without\n", failures == 0 ? "" : "not ", refusals, did_without);
    for (unsigned kind = 0; argc == 1 && kind < KINDS_REFUSED; kind++) {
        printf("%sok %u - %s was refused %u times\n", refused_of[kind] != 0 ? "" : "not ", 3 + kind, refusable_names[kind],
               refused_of[kind]);
        good = good && refused_of[kind] != 0;
    }
    return good && failures == 0 ? 0 : 1;
}
