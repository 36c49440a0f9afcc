/*
 * Programs with their own use of real-time signals: they reset, handle, ignore, block or wait for the one that
 * interrupts threads, or have no right to send it. A suspension happens, or the call reports that it did not; a thread
 * that cannot be interrupted ends when it next calls in. Each case is a process of its own.
 */
#include "child.h"
#include "victim.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "hal/halp.h"

/* Victims. */

static void count_up(struct victim *victim)
{
    while (__atomic_load_n(&victim->release, __ATOMIC_RELAXED) == 0)
        __atomic_fetch_add(&victim->word, 1, __ATOMIC_RELAXED);
}

static NTSTATUS compute(struct victim *victim)
{
    tell_ready(victim);
    count_up(victim);
    return 0;
}

static sigset_t block_all(void)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    return before;
}

static NTSTATUS compute_without_signals(struct victim *victim)
{
    block_all();
    return compute(victim);
}

static ULONG id_of(struct victim *victim)
{
    return HandleToULong(PsGetThreadId(victim->thread));
}

static void await_progress(struct victim *victim)
{
    ULONG before = __atomic_load_n(&victim->word, __ATOMIC_RELAXED);

    while (__atomic_load_n(&victim->word, __ATOMIC_RELAXED) == before)
        HalDispatch.Yield();
}

static void expect_stopped(struct victim *victim)
{
    ULONG before;

    while (!sleeps_in_the_host(id_of(victim)))
        HalDispatch.Yield();
    before = __atomic_load_n(&victim->word, __ATOMIC_RELAXED);
    usleep(2000);
    assert_int_equal(__atomic_load_n(&victim->word, __ATOMIC_RELAXED), before);
}

static ULONG count_of(struct victim *victim)
{
    return KiQuerySuspendCountThread(&victim->thread->Tcb);
}

static void suspend_and_resume(struct victim *victim)
{
    ULONG count = 77;

    await_progress(victim);
    assert_int_equal(NtSuspendThread(victim->handle, &count), STATUS_SUCCESS);
    assert_int_equal(count, 0);
    expect_stopped(victim);
    assert_int_equal(NtSuspendThread(victim->handle, &count), STATUS_SUCCESS);
    assert_int_equal(NtResumeThread(victim->handle, NULL), STATUS_SUCCESS);
    expect_stopped(victim);
    assert_int_equal(NtResumeThread(victim->handle, &count), STATUS_SUCCESS);
    assert_int_equal(count, 1);
    await_progress(victim);
}

static void end(struct victim *victim)
{
    assert_int_equal(NtTerminateThread(victim->handle, EXIT_CODE), STATUS_SUCCESS);
    expect_end(victim, EXIT_CODE);
    forget_victim(victim);
}

/* The program changes the actions between any two calls, without the library's knowledge. */
static void suspend_and_end_after(void (*change)(void))
{
    struct victim victim;

    create_victim(&victim, compute, 0);
    await(&victim.ready);
    suspend_and_resume(&victim);
    change();
    suspend_and_resume(&victim);
    change();
    suspend_and_resume(&victim);
    change();
    end(&victim);
}

static void set_all_actions(void (*handler)(int number))
{
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        assert_true(signal(number, handler) != SIG_ERR);
}

static void reset_all(void)
{
    set_all_actions(SIG_DFL);
}

static void ignore_all(void)
{
    set_all_actions(SIG_IGN);
}

static volatile ULONG handled;

static void own_handler(int number)
{
    (void)number;
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void handle_all(void)
{
    set_all_actions(own_handler);
}

/* A handler that passes its signals to the one that it has replaced. */
static struct sigaction replaced[128];

static void polite_handler(int number, siginfo_t *information, void *context)
{
    struct sigaction *before = &replaced[number];

    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, information, context);
    else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
        before->sa_handler(number);
}

static void handle_all_politely(void)
{
    struct sigaction action = {.sa_sigaction = polite_handler, .sa_flags = SA_SIGINFO | SA_RESTART}, before;

    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        assert_int_equal(sigaction(number, &action, &before), 0);
        if (!(before.sa_flags & SA_SIGINFO) || before.sa_sigaction != polite_handler)
            replaced[number] = before;
    }
}

static void after_reset(void)
{
    suspend_and_end_after(reset_all);
}

static void after_ignore(void)
{
    suspend_and_end_after(ignore_all);
}

static void after_polite_handlers(void)
{
    suspend_and_end_after(handle_all_politely);
}

/* None of the library's signals reaches the program's handlers, and all of the program's do. */
static void after_own_handlers(void)
{
    ULONG sent = 0;

    suspend_and_end_after(handle_all);
    assert_int_equal(handled, 0);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++, sent++)
        assert_int_equal(pthread_kill(pthread_self(), number), 0);
    while (__atomic_load_n(&handled, __ATOMIC_RELAXED) != sent)
        HalDispatch.Yield();
}

static void the_program_changes_the_actions(void **state)
{
    (void)state;
    run_case_in_child(after_reset);
    run_case_in_child(after_ignore);
    run_case_in_child(after_own_handlers);
    run_case_in_child(after_polite_handlers);
}

/* One handler after another in front, more than there are places for: then no suspension is reported that did not
   happen. */
static void one_more_mask_each_time(void)
{
    struct victim victim;
    NTSTATUS status = STATUS_SUCCESS;
    unsigned suspended = 0;

    create_victim(&victim, compute, 0);
    await(&victim.ready);
    for (int i = 1; i < 20 && NT_SUCCESS(status); i++) {
        struct sigaction action = {.sa_handler = own_handler, .sa_flags = SA_RESTART};

        sigaddset(&action.sa_mask, i);
        for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
            assert_int_equal(sigaction(number, &action, NULL), 0);
        await_progress(&victim);
        status = NtSuspendThread(victim.handle, NULL);
        if (NT_SUCCESS(status)) {
            expect_stopped(&victim);
            assert_int_equal(NtResumeThread(victim.handle, NULL), STATUS_SUCCESS);
            suspended++;
        }
    }
    assert_true(suspended >= 5);
    assert_int_equal(status, STATUS_ACCESS_DENIED);
    assert_int_equal(count_of(&victim), 0);
    await_progress(&victim);
    reset_all();
    suspend_and_resume(&victim);
    end(&victim);
}

static void more_handlers_than_places(void **state)
{
    (void)state;
    run_case_in_child(one_more_mask_each_time);
}

/* Blocked signals. */

static void suspend_in_vain(struct victim *victim, NTSTATUS status)
{
    ULONG count = 77;

    await_progress(victim);
    assert_int_equal(NtSuspendThread(victim->handle, &count), status);
    assert_int_equal(count, 77);
    assert_int_equal(count_of(victim), 0);
    await_progress(victim);
}

static void a_computing_thread(void)
{
    struct victim victim;

    create_victim(&victim, compute_without_signals, 0);
    await(&victim.ready);
    suspend_in_vain(&victim, STATUS_ACCESS_DENIED);
    suspend_in_vain(&victim, STATUS_ACCESS_DENIED);
    __atomic_store_n(&victim.release, 1, __ATOMIC_RELEASE);
    expect_end(&victim, 0);
    forget_victim(&victim);
}

static NTSTATUS compute_until_released(struct victim *victim)
{
    sigset_t before = block_all();

    tell_ready(victim);
    count_up(victim);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    __atomic_store_n(&victim->release, 0, __ATOMIC_RELAXED);
    count_up(victim);
    return 0;
}

static NTSTATUS compute_and_call_in(struct victim *victim)
{
    LARGE_INTEGER now = {.QuadPart = 0};

    block_all();
    tell_ready(victim);
    count_up(victim);
    NtWaitForSingleObject(victim->event_handle, FALSE, &now);
    victim->past = 1;
    return 0;
}

/* A request to end stays: it is done when the thread unblocks the signal, or next calls in. */
static void end_when_it_can_be(NTSTATUS (*run)(struct victim *))
{
    struct victim victim;

    create_victim(&victim, run, 0);
    await(&victim.ready);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), STATUS_SUCCESS);
    await_progress(&victim);
    assert_int_equal(NtTerminateThread(victim.handle, EXIT_CODE), STATUS_SUCCESS);
    await_progress(&victim);
    __atomic_store_n(&victim.release, 1, __ATOMIC_RELEASE);
    expect_end(&victim, EXIT_CODE);
    forget_victim(&victim);
}

static void an_end_that_waits(void)
{
    end_when_it_can_be(compute_until_released);
    end_when_it_can_be(compute_and_call_in);
}

static void each_wait(struct victim *victim, NTSTATUS (*wait)(struct victim *))
{
    ULONG count = 77;

    create_victim(victim, wait, 0);
    await(&victim->ready);
    await_waiting(victim);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(NtSuspendThread(victim->handle, &count), STATUS_SUCCESS);
        assert_int_equal(count, 0);
        KeSetEvent(&victim->event, 0, FALSE);
        usleep(2000);
        assert_int_equal(KeReadStateEvent(&victim->event), 1);
        KeClearEvent(&victim->event);
        assert_int_equal(NtResumeThread(victim->handle, &count), STATUS_SUCCESS);
        assert_int_equal(count, 1);
    }
    end(victim);
}

static NTSTATUS wait_single_without_signals(struct victim *victim)
{
    block_all();
    return wait_single_user(victim);
}

static NTSTATUS wait_any_without_signals(struct victim *victim)
{
    block_all();
    return wait_any_kernel(victim);
}

static void waits_need_no_signal(void)
{
    struct victim victim;

    each_wait(&victim, wait_single_without_signals);
    each_wait(&victim, wait_any_without_signals);
}

static void a_thread_blocks_all_signals(void **state)
{
    (void)state;
    run_case_in_child(a_computing_thread);
    run_case_in_child(an_end_that_waits);
    run_case_in_child(waits_need_no_signal);
}

static void suspend_for_nothing(void *argument, unsigned index)
{
    struct victim *victim = argument;

    (void)index;
    assert_int_equal(NtSuspendThread(victim->handle, NULL), STATUS_ACCESS_DENIED);
}

/* Each of them has to take back its own. */
static void several_in_vain(void)
{
    struct victim victim;

    create_victim(&victim, compute_without_signals, 0);
    await(&victim.ready);
    run_threads(4, 60, suspend_for_nothing, &victim);
    assert_int_equal(count_of(&victim), 0);
    await_progress(&victim);
    __atomic_store_n(&victim.release, 1, __ATOMIC_RELEASE);
    expect_end(&victim, 0);
    forget_victim(&victim);
}

static void several_suspend_it_at_once(void **state)
{
    (void)state;
    run_case_in_child(several_in_vain);
}

/* Something else takes the signal. */

static NTSTATUS take_all_signals(struct victim *victim)
{
    sigset_t all, before = block_all();

    sigfillset(&all);
    tell_ready(victim);
    while (__atomic_load_n(&victim->release, __ATOMIC_ACQUIRE) == 0)
        sigwaitinfo(&all, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    __atomic_store_n(&victim->release, 0, __ATOMIC_RELEASE);
    return compute(victim);
}

static NTSTATUS read_all_signals(struct victim *victim)
{
    struct signalfd_siginfo information;
    sigset_t all, before = block_all();
    int descriptor;

    sigfillset(&all);
    descriptor = signalfd(-1, &all, SFD_CLOEXEC);
    assert_true(descriptor >= 0);
    tell_ready(victim);
    while (__atomic_load_n(&victim->release, __ATOMIC_ACQUIRE) == 0)
        assert_int_equal(read(descriptor, &information, sizeof(information)), sizeof(information));
    close(descriptor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    __atomic_store_n(&victim->release, 0, __ATOMIC_RELEASE);
    return compute(victim);
}

/* The library does not wait forever for a signal that was taken: later requests send their own. */
static void suspend_one_that_takes_signals(NTSTATUS (*run)(struct victim *))
{
    struct victim victim;

    create_victim(&victim, run, 0);
    await(&victim.ready);
    while (!sleeps_in_the_host(id_of(&victim)))
        HalDispatch.Yield();
    assert_int_equal(NtSuspendThread(victim.handle, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(count_of(&victim), 0);
    __atomic_store_n(&victim.release, 1, __ATOMIC_RELEASE);
    assert_int_equal(syscall(SYS_tgkill, getpid(), id_of(&victim), SIGUSR1), 0);
    while (__atomic_load_n(&victim.release, __ATOMIC_ACQUIRE) != 0)
        HalDispatch.Yield();
    suspend_and_resume(&victim);
    end(&victim);
}

static void with_sigwait(void)
{
    suspend_one_that_takes_signals(take_all_signals);
}

static void with_signalfd(void)
{
    suspend_one_that_takes_signals(read_all_signals);
}

static void a_thread_takes_signals_itself(void **state)
{
    (void)state;
#ifdef HALP_THREAD_SANITIZER
    skip(); /* a signal that the thread does not block is the sanitizer's, see HalpIsSignalOnItsWay */
#endif
    run_case_in_child(with_sigwait);
    run_case_in_child(with_signalfd);
}

/* The host refuses. */

static void refuse_calls(long first, long second)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAYSIZE(filter), .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(0); /* a host without filters cannot refuse */
}

static void refuse_values(void)
{
    refuse_calls(SYS_rt_tgsigqueueinfo, SYS_rt_tgsigqueueinfo);
}

static void without_values(void)
{
    struct victim victim;

    refuse_values();
    create_victim(&victim, compute, 0);
    await(&victim.ready);
    suspend_and_resume(&victim);
    reset_all();
    suspend_and_resume(&victim);
    end(&victim);
}

/* There a plain signal could be mistaken for one of the program's. */
static void without_values_and_with_handlers(void)
{
    struct victim victim;

    refuse_values();
    create_victim(&victim, compute, 0);
    await(&victim.ready);
    handle_all();
    suspend_in_vain(&victim, STATUS_ACCESS_DENIED);
    assert_int_equal(handled, 0);
    reset_all();
    suspend_and_resume(&victim);
    end(&victim);
}

static void without_signals(void)
{
    struct victim victim;

    refuse_calls(SYS_rt_tgsigqueueinfo, SYS_tgkill);
    create_victim(&victim, compute, 0);
    await(&victim.ready);
    suspend_in_vain(&victim, STATUS_ACCESS_DENIED);
    __atomic_store_n(&victim.release, 1, __ATOMIC_RELEASE);
    expect_end(&victim, 0);
    forget_victim(&victim);
    end_when_it_can_be(compute_and_call_in);
    waits_need_no_signal();
}

static void without_room(void)
{
    struct rlimit none = {0, 0}, before;
    struct victim victim;

    create_victim(&victim, compute, 0);
    await(&victim.ready);
    assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    suspend_in_vain(&victim, STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &before), 0);
    suspend_and_resume(&victim);
    end(&victim);
}

static void the_host_refuses_to_send(void **state)
{
    (void)state;
    run_case_in_child(without_values);
    run_case_in_child(without_values_and_with_handlers);
    run_case_in_child(without_signals);
    run_case_in_child(without_room);
}

/* Interrupts of processors. */

struct busy_processor {
    volatile ULONG raised;
    volatile ULONG done;
    ULONG served;
};

static void own_a_processor(void *argument, unsigned index)
{
    struct busy_processor *busy = argument;
    KIRQL irql;

    (void)index;
    irql = KeRaiseIrqlToDpcLevel();
    __atomic_store_n(&busy->raised, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&busy->done, __ATOMIC_ACQUIRE) == 0)
        continue;
    KeLowerIrql(irql);
}

static ULONG_PTR serve(ULONG_PTR context)
{
    __atomic_fetch_add(&((struct busy_processor *)context)->served, 1, __ATOMIC_RELAXED);
    return 0;
}

static void interrupt_processors_after(void (*change)(void))
{
    struct busy_processor busy = {0};
    test_threads *threads;

    if (KeNumberProcessors < 2)
        return;
    threads = start_threads(1, own_a_processor, &busy);
    await(&busy.raised);
    for (ULONG i = 1; i <= 5; i++) {
        change();
        KeIpiGenericCall(serve, (ULONG_PTR)&busy);
        assert_int_equal(busy.served, i * KeNumberProcessors);
    }
    __atomic_store_n(&busy.done, 1, __ATOMIC_RELEASE);
    join_threads(threads, 60);
}

static void interrupts_after_changes(void)
{
    interrupt_processors_after(reset_all);
    interrupt_processors_after(ignore_all);
    interrupt_processors_after(handle_all);
}

static void interrupts_without_values(void)
{
    reset_all();
    refuse_values();
    interrupt_processors_after(reset_all);
}

static void processors_are_still_interrupted(void **state)
{
    (void)state;
    run_case_in_child(interrupts_after_changes);
    run_case_in_child(interrupts_without_values);
}

/* A program begins with the mask and the ignored signals of the one that started it. */

static const char *program;

static void start_with_everything_blocked(void)
{
    ignore_all();
    block_all();
    execl(program, program, "inherited", (char *)NULL);
    _exit(1);
}

static void a_program_inherits_mask_and_actions(void **state)
{
    (void)state;
    run_case_in_child(start_with_everything_blocked);
}

static int run_inherited(void)
{
    struct victim victim;

    create_victim(&victim, compute, 0);
    await(&victim.ready);
    suspend_and_resume(&victim);
    end(&victim);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_changes_the_actions),
        cmocka_unit_test(more_handlers_than_places),
        cmocka_unit_test(a_thread_blocks_all_signals),
        cmocka_unit_test(several_suspend_it_at_once),
        cmocka_unit_test(a_thread_takes_signals_itself),
        cmocka_unit_test(the_host_refuses_to_send),
        cmocka_unit_test(processors_are_still_interrupted),
        cmocka_unit_test(a_program_inherits_mask_and_actions),
    };

    if (argc > 1)
        return run_inherited();
    program = argv[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
