#include "surface.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "everything.h"

#include "ke/ki.h"
#include "support.h"

enum { CALL_SECONDS = 30 };

/* Enough for every call, and no call gets gigabytes. */
#define MOST_MEMORY ((rlim_t)2 << 30) /* half of it for the addresses of a world */

/* How a child ends. */
enum { EXIT_DONE = 0, EXIT_FAULT = 70, EXIT_ABORT, EXIT_CHANGED, EXIT_UNSOUND, EXIT_HUNG };

/* What the parent sees of the child, also after it died. */
static struct shared {
    struct record record;
    struct progress progress;
    bool in_call;
    bool in_check;
    bool in_exit;
} * shared;

static int output = -1;
static char text[16384];

/* In the child. */

static void on_signal(int number, siginfo_t *information, void *context)
{
    (void)context;
    shared->record.signal = number;
    shared->record.address = (uint64_t)(uintptr_t)information->si_addr;
    shared->record.general = information->si_code == SI_KERNEL;
    _exit(number == SIGALRM ? EXIT_HUNG : number == SIGABRT ? EXIT_ABORT : EXIT_FAULT);
}

static void catch_signals(void)
{
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM};
    static char stack[65536];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    sigaltstack(&alternate, NULL);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        sigaction(caught[i], &action, NULL);
}

uint32_t handle_count(void)
{
    ULONG count = 0;

    NtQueryInformationProcess(NtCurrentProcess(), ProcessHandleCount, &count, sizeof(count), NULL);
    return count;
}

/* Whether the call changed the thread: a raised IRQL or a critical region would affect the calls that follow. */
bool thread_changed(void)
{
    return KeGetCurrentIrql() != PASSIVE_LEVEL || KeAreApcsDisabled();
}

uint8_t *service_depth(void)
{
    return &KiCurrentThread()->ServiceDepth;
}

typedef uint64_t any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t, uint64_t);

/* Integers and pointers go where the host's ABI puts them, however many the function takes. */
uint64_t call_function(const struct function *function, const uint64_t *a)
{
    return ((any_function *)function->address)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                                               a[11]);
}

/* Another thread may call a routine that does not exist: it gets time for that while the process does nothing else.
 */
static void wait_for_routine(void)
{
    const struct timespec moment = {.tv_nsec = 2000000};

    nanosleep(&moment, NULL);
    _exit(EXIT_CHANGED);
}

static void make_call(const struct function *function, const struct plan *plan)
{
    uint64_t arguments[MAXIMUM_PARAMETERS + 1];
    uint32_t handles;

    make_arguments(function, plan, arguments);
    handles = handle_count();
    SetLastError(UNTOUCHED);
    shared->in_call = true;
    errno = UNTOUCHED_HOST_ERROR;
    shared->record.result = call_function(function, arguments);
    shared->record.host_error = errno;
    shared->in_call = false;
    shared->record.error = GetLastError();
    shared->record.in_service = *service_depth() != 0;
    if (!thread_changed())
        shared->record.handles = handle_count() - handles;
    shared->record.outcome = RETURNED;
    if (plan->fault == FAULT_ROUTINE || (plan->fault == FAULT_ALL_ZERO && strstr(function->kinds, "routine") != NULL))
        wait_for_routine();
    if (shared->record.in_service || thread_changed() || (allowed_for(function) & CHANGES_THREAD) != 0)
        _exit(EXIT_CHANGED);
}

static void NTAPI count_work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)work;
    InterlockedIncrement(context);
}

/* Whether the rest of the library still works, checked by a thread that made none of the calls. */
static void *check_soundness(void *argument)
{
    static SRWLOCK lock = SRWLOCK_INIT;
    static LONG calls;
    CRITICAL_SECTION section;
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, u"soundness");
    PTP_WORK work = CreateThreadpoolWork(count_work, &calls, NULL);
    bool *sound = argument;

    *sound = event != NULL && work != NULL && SetEvent(event) &&
             WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0 && WaitForSingleObject(event, 0) == WAIT_TIMEOUT &&
             CloseHandle(event);
    AcquireSRWLockExclusive(&lock);
    ReleaseSRWLockExclusive(&lock);
    InitializeCriticalSection(&section);
    EnterCriticalSection(&section);
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);
    SubmitThreadpoolWork(work);
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    *sound = *sound && calls == 1;
    return NULL;
}

bool is_sound(void)
{
    pthread_t thread;
    bool sound = false;

    if (pthread_create(&thread, NULL, check_soundness, &sound) != 0)
        return false;
    pthread_join(thread, NULL);
    return sound;
}

/* A sanitizer prints its own report, slowly, for a use of NULL that a function leaves to its caller. */
static bool is_for_sanitizer(const struct function *function, const struct plan *plan)
{
    return test_slowdown() > 1 && (plan->fault == FAULT_MISALIGNED || may_fault(function, plan));
}

static bool is_lacking_time(const struct plan *plan, unsigned allowed)
{
    return (allowed & NEEDS_TIME) != 0 &&
           (plan->fault == FAULT_ALL_ZERO || strcmp(plan->description, "NULL") == 0);
}

bool is_skipped(const struct function *function, const struct plan *plan)
{
    unsigned allowed = allowed_for(function);

    if ((allowed & NOT_CALLED) != 0 || is_for_sanitizer(function, plan))
        return true;
    switch (plan->fault) {
    case FAULT_FOREVER:
        return (allowed & NO_FOREVER) != 0 && !is_lacking_time(plan, allowed);
    case FAULT_ALL_ZERO:
        return (allowed & (NO_FOREVER | NO_SELF)) != 0 && !is_lacking_time(plan, allowed);
    case FAULT_PSEUDO:
        return (allowed & NO_SELF) != 0;
    case FAULT_HANDLE:
        return (allowed & NULL_IS_SELF) != 0 && strcmp(plan->description, "NULL") == 0;
    case FAULT_EXTREME:
        return (allowed & TRUSTS_NUMBERS) != 0;
    default:
        return false;
    }
}

static _Noreturn void run_calls(struct progress from, unsigned last, struct record *records)
{
    static const struct rlimit no_core, memory = {MOST_MEMORY, MOST_MEMORY};
    unsigned seconds = functions[from.function].layer == LAYER_planted ? 1 : CALL_SECONDS * test_slowdown();
    struct plan plan;

    setrlimit(RLIMIT_CORE, &no_core);
    if (test_slowdown() == 1)
        setrlimit(RLIMIT_AS, &memory);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    catch_signals();
    prepare_values();
    for (unsigned i = from.function; i <= last; i++) {
        for (unsigned n = i == from.function ? from.number : 0; plan_call(&functions[i], n, &plan); n++) {
            shared->progress = (struct progress){i, n};
            memset(&shared->record, 0, sizeof(shared->record));
            shared->record.outcome = SKIPPED;
            if (!is_skipped(&functions[i], &plan)) {
                shared->record.outcome = BEGUN;
                alarm(seconds);
                make_call(&functions[i], &plan);
            }
            records[functions[i].first + n] = shared->record;
        }
    }
    VfEndFaults(); /* one of the calls may have begun them, and the check allocates */
    shared->in_check = true;
    alarm(seconds);
    if (!is_sound())
        _exit(EXIT_UNSOUND);
    shared->in_check = false;
    shared->in_exit = true;
    exit(EXIT_DONE);
}

/* In the parent. */

const char *child_output(void)
{
    ssize_t length = pread(output, text, sizeof(text) - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    return text;
}

static void prepare(void)
{
    if (shared == NULL) {
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        output = memfd_create("output", MFD_CLOEXEC);
        if (shared == MAP_FAILED || output < 0)
            abort();
    }
    memset(shared, 0, sizeof(*shared));
    if (ftruncate(output, 0) != 0 || lseek(output, 0, SEEK_SET) != 0)
        abort();
}

static void read_stop(struct record *record)
{
    const char *line = strstr(child_output(), "*** STOP: 0x");
    unsigned code = 0;
    unsigned long parameter = 0;

    if (line != NULL && sscanf(line, "*** STOP: 0x%8X (0x%16lX", &code, &parameter) == 2) {
        record->outcome = STOPPED;
        record->address = code;
        record->parameter = parameter;
    } else {
        record->outcome = FAULTED;
    }
}

/* The result of the call in progress is how the process ended. */
static void interpret(int status, struct record *record)
{
    *record = shared->record;
    if (WIFSIGNALED(status)) {
        record->outcome = WTERMSIG(status) == SIGALRM ? HUNG : FAULTED;
        record->signal = WTERMSIG(status);
    } else if (WEXITSTATUS(status) == EXIT_HUNG) {
        record->outcome = HUNG;
    } else if (WEXITSTATUS(status) == EXIT_FAULT) {
        record->outcome = FAULTED;
    } else if (WEXITSTATUS(status) == EXIT_ABORT) {
        read_stop(record);
    } else if (WEXITSTATUS(status) != EXIT_CHANGED) {
        record->outcome = ENDED;
    }
}

enum child_end run_child(struct progress *progress, unsigned last, struct record *records)
{
    int status;
    pid_t child;

    prepare();
    fflush(NULL);
    child = fork();
    if (child < 0)
        abort();
    if (child == 0)
        run_calls(*progress, last, records);
    if (waitpid(child, &status, 0) != child)
        abort();
    if (shared->in_check || shared->in_exit)
        return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE && shared->in_exit ? CHILD_DONE : CHILD_UNSOUND;
    *progress = shared->progress;
    interpret(status, &records[functions[progress->function].first + progress->number]);
    progress->number++;
    return CHILD_INTERRUPTED;
}
