/*
 * signals.c: signals of the host. The first write to a page of the program belongs to memory.c. Every other fault is a
 * failure of the schedule. So are a thread that computes without ever making a step, and a thread that ends the
 * process.
 */
#include "engine.h"

#include "../posix/calls.h"
#include "../posix/program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define SIGNAL_STACK           (256 * 1024)
#define SECONDS_WITHOUT_STEP   3
#define SECONDS_STANDING_STILL 60 /* Setup and the search for an order of operations may take long */

static uintptr_t place_of(const void *context)
{
    const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
    return (uintptr_t)machine->gregs[REG_RIP] + 1;
#else
    return (uintptr_t)machine->pc + 1;
#endif
}

static bool is_program_running(void)
{
    return (lab->running || lab->preparing) && !lab->failing;
}

static const char *where(void)
{
    return lab->preparing ? " in Setup" : lab->quiet ? " in Invariant or Finish" : "";
}

static void __attribute__((noreturn)) fail_by_signal(int number, uintptr_t pc, uintptr_t address)
{
    if (number == SIGABRT)
        lab_sched_fail(VERDICT_CRASH, 0, "the program aborts%s", where());
    lab_sched_fail(VERDICT_CRASH, pc, "signal %d (%s)%s, address %#lx", number, strsignal(number), where(), address);
}

static void on_fault(int number, siginfo_t *information, void *context)
{
    uintptr_t address = (uintptr_t)information->si_addr;

    if (number == SIGSEGV && lab_memory_take_fault(address))
        return;
    if (is_program_running())
        fail_by_signal(number, number == SIGABRT ? 0 : place_of(context), address);
    static const char text[] = "lab: a signal outside a schedule\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    signal(number, SIG_DFL);
    raise(number);
}

static uint32_t steps, generation, searches, ticks;

/* Once per second of processor time. */
static void on_tick(int number, siginfo_t *information, void *context)
{
    (void)number;
    (void)information;
    bool stands_still = lab->run.steps == steps && lab->generation == generation && lab->strong_search == searches;
    ticks = stands_still && is_program_running() ? ticks + 1 : 0;
    steps = lab->run.steps;
    searches = lab->strong_search;
    generation = lab->generation;
    uint32_t limit = lab->preparing || lab->quiet ? SECONDS_STANDING_STILL : SECONDS_WITHOUT_STEP;
    if (ticks < limit)
        return;
    ticks = 0;
    lab_sched_fail(VERDICT_ENDLESS, place_of(context), "no step%s in %u seconds", where(), limit);
}

static void on_exit_of_program(int status, void *unused)
{
    (void)unused;
    if (!is_program_running())
        return;
    on_exit(on_exit_of_program, NULL); /* for the next schedule */
    if (lab->is_program && lab_sched_active())
        lab_program_exit(status);
    lab_sched_fail(VERDICT_CRASH, 0, "the program ends the process%s", where());
}

void lab_signals_install(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    stack_t stack = {.ss_sp = lab_memory_map(SIGNAL_STACK), .ss_size = SIGNAL_STACK};
    struct itimerval second = {{1, 0}, {1, 0}};

    lab_memory_ignore(&steps, sizeof(steps)); /* in the program's data segment, but not its own */
    lab_memory_ignore(&generation, sizeof(generation));
    lab_memory_ignore(&searches, sizeof(searches));
    lab_memory_ignore(&ticks, sizeof(ticks));
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        lab_calls_handle(faults[i], on_fault, SA_SIGINFO | SA_ONSTACK | SA_NODEFER);
    lab_calls_handle(SIGPROF, on_tick, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART);
    lab_calls_start(stack.ss_sp, stack.ss_size);
    setitimer(ITIMER_PROF, &second, NULL);
    on_exit(on_exit_of_program, NULL);
}
