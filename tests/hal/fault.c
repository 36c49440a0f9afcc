/* Reads that may fail, and faults that are not ours. Handlers belong to a process, so each case has its own. */
#include "haltest.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "hal/halp.h"

#define PAGE 4096
#define MANY_READS 5000 /* more than between two checks of the handlers */

static VOID *value = &value;

static void *map_page(int protection)
{
    void *page = mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(page != MAP_FAILED);
    return page;
}

/* Mapped, so that the address is not reused. */
static void *unreadable_page(void)
{
    return map_page(PROT_NONE);
}

static void *page_behind_end_of_file(void)
{
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    void *page;

    assert_true(file >= 0);
    page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
    assert_true(page != MAP_FAILED);
    close(file);
    return page;
}

static void must_read(void)
{
    HAL_READ read = HalReadPointerOrFault(&value);

    assert_true(read.Readable);
    assert_ptr_equal(read.Value, &value);
}

static void *read_once(void *unused)
{
    (void)unused;
    must_read();
    return NULL;
}

/* A new thread checks the handlers at its first read. This process may have read before it was forked. */
static void first_read(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, read_once, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void must_fail(void *address)
{
    ULONG64 failures = HalpFailedReads;

    errno = 12345;
    assert_false(HalReadPointerOrFault(address).Readable);
    assert_int_equal(HalpFailedReads, failures + 1);
    assert_int_equal(errno, 12345);
}

/* A fault of the program: an ordinary load or store. */
static void touch(volatile char *address)
{
    *address = 1;
}

static void reads(void **state)
{
    void **page = map_page(PROT_READ | PROT_WRITE);

    (void)state;
    must_read();
    page[8] = page;
    assert_ptr_equal(HalReadPointerOrFault(&page[8]).Value, page);
    mprotect(page, PAGE, PROT_NONE);
    must_fail(&page[8]);
    mprotect(page, PAGE, PROT_READ);
    assert_ptr_equal(HalReadPointerOrFault(&page[8]).Value, page);
    munmap(page, PAGE);
    must_fail(&page[8]);
    must_fail(NULL);
    must_fail(unreadable_page());
    must_fail(page_behind_end_of_file());
    must_read();
}

/* The program's handler: what it saw, and how it leaves. */

static sigjmp_buf out;
static volatile int seen_signal;
static void *volatile seen_address;
static volatile int seen_blocked, seen_count, seen_on_stack;
static char alternate_stack[64 * 1024];
static struct sigaction replaced;

static void note(int number)
{
    const char *here = __builtin_frame_address(0);
    sigset_t mask;

    seen_signal = number;
    seen_count++;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    seen_blocked = sigismember(&mask, number);
    seen_on_stack = here >= alternate_stack && here < alternate_stack + sizeof(alternate_stack);
}

static void jump_out(int number)
{
    note(number);
    siglongjmp(out, 1);
}

static void jump_out_with_info(int number, siginfo_t *information, void *context)
{
    (void)context;
    seen_address = information->si_addr;
    jump_out(number);
}

static void repair(int number, siginfo_t *information, void *context)
{
    (void)context;
    note(number);
    seen_address = information->si_addr;
    mprotect((void *)((ULONG_PTR)information->si_addr & ~(ULONG_PTR)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE);
}

/* As careful programs do: signals that are not theirs go to the handler that they replaced. */
static void pass_on(int number, siginfo_t *information, void *context)
{
    note(number);
    replaced.sa_sigaction(number, information, context);
}

static void install(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};

    assert_int_equal(sigaction(number, &action, &replaced), 0);
}

static void install_plain(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    assert_int_equal(sigaction(number, &action, NULL), 0);
}

/* The program's own fault at the address must reach its handler, which jumps out. */
static void must_be_seen(void *address, int number)
{
    int before = seen_count;

    if (sigsetjmp(out, 1) == 0) {
        touch(address);
        fail_msg("no fault");
    }
    assert_int_equal(seen_signal, number);
    assert_int_equal(seen_count, before + 1);
}

static void handler_with_info(void *unused)
{
    void *page = unreadable_page();

    (void)unused;
    install(SIGSEGV, jump_out_with_info, 0);
    first_read();
    must_fail(page);
    for (int times = 0; times < 3; times++) {
        must_be_seen(page, SIGSEGV);
        assert_ptr_equal(seen_address, page);
        assert_true(seen_blocked);
    }
    must_fail(page);
}

static void plain_handler(void *unused)
{
    (void)unused;
    install_plain(SIGSEGV, jump_out);
    install_plain(SIGBUS, jump_out);
    first_read();
    must_be_seen(unreadable_page(), SIGSEGV);
    must_fail(unreadable_page());
}

static void bus_errors(void *unused)
{
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    (void)unused;
    install_plain(SIGBUS, jump_out);
    first_read();
    must_fail(page);
    must_be_seen(page, SIGBUS);
}

static void handler_that_repairs(void *unused)
{
    volatile char *page = map_page(PROT_NONE);

    (void)unused;
    install(SIGSEGV, repair, 0);
    first_read();
    touch(&page[17]);
    assert_int_equal(seen_count, 1);
    assert_ptr_equal(seen_address, &page[17]);
    assert_int_equal(page[17], 1);
}

static void handler_that_stays_unblocked(void *unused)
{
    (void)unused;
    install(SIGSEGV, jump_out_with_info, SA_NODEFER);
    first_read();
    must_be_seen(unreadable_page(), SIGSEGV);
#ifndef HALP_THREAD_SANITIZER /* which blocks every signal in every handler */
    assert_false(seen_blocked);
#endif
}

static void handler_on_its_own_stack(void *unused)
{
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof(alternate_stack)};

    (void)unused;
    sigaltstack(&stack, NULL);
    install(SIGSEGV, jump_out_with_info, SA_ONSTACK);
    first_read();
    must_be_seen(unreadable_page(), SIGSEGV);
    assert_true(seen_on_stack);
    must_fail(unreadable_page());
}

/* A handler installed later: detected after a while, and then both get their signals. */
static void later_handler(void *unused)
{
    void *page = unreadable_page();

    (void)unused;
    first_read();
    install(SIGSEGV, jump_out_with_info, 0);
    for (int i = 0; i < MANY_READS; i++)
        must_read();
    must_fail(page);
    must_be_seen(page, SIGSEGV);
    assert_ptr_equal(seen_address, page);
    must_fail(page);
}

/* A handler installed later that passes on other signals: they reach the first handler, once. */
static void later_handler_passes_on(void *unused)
{
    void *page = unreadable_page();

    (void)unused;
    install(SIGSEGV, jump_out_with_info, 0);
    first_read();
    install(SIGSEGV, pass_on, 0);
    must_fail(page); /* not detected yet: it also passes on our own fault */
    assert_int_equal(seen_count, 1);
    for (int i = 0; i < MANY_READS; i++)
        must_read();
    must_fail(page);
    assert_int_equal(seen_count, 1);
    if (sigsetjmp(out, 1) == 0)
        touch(page);
    assert_int_equal(seen_count, 3);
    assert_ptr_equal(seen_address, page);
}

/* A temporary handler, as around code that may fault. */
static void passing_handler(void *unused)
{
    void *page = unreadable_page();

    (void)unused;
    install(SIGSEGV, jump_out_with_info, 0);
    first_read();
    for (int times = 0; times < 20; times++) {
        int before;
        struct sigaction own;

        install(SIGSEGV, pass_on, 0);
        own = replaced;
        for (int i = 0; i < MANY_READS; i++)
            must_read();
        must_fail(page);
        assert_int_equal(sigaction(SIGSEGV, &own, NULL), 0);
        for (int i = 0; i < MANY_READS; i++)
            must_read();
        must_fail(page);
        before = seen_count;
        must_be_seen(page, SIGSEGV);
        assert_int_equal(seen_count, before + 1);
    }
}

/* More handlers of the program than there are places: successful reads still work. */
static void many_handlers(void *unused)
{
    (void)unused;
    for (int flags = 0; flags < 16; flags++) {
        install(SIGSEGV, jump_out_with_info,
                (flags & 1 ? SA_NODEFER : 0) | (flags & 2 ? SA_RESTART : 0) | (flags & 4 ? SA_NOCLDSTOP : 0) |
                    (flags & 8 ? SA_NOCLDWAIT : 0));
        for (int i = 0; i < MANY_READS; i++)
            must_read();
        must_be_seen(unreadable_page(), SIGSEGV);
    }
}

static void *read_with_everything_blocked(void *page)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    must_fail(page);
    pthread_sigmask(SIG_BLOCK, NULL, &all);
    assert_true(sigismember(&all, SIGTERM));
    return NULL;
}

static void blocked_signals(void *unused)
{
    pthread_t thread;

    (void)unused;
    first_read();
    pthread_create(&thread, NULL, read_with_everything_blocked, unreadable_page());
    pthread_join(thread, NULL);
}

static void others_faults(void **state)
{
    static void (*const cases[])(void *) = {
        handler_with_info,
        plain_handler,
        bus_errors,
        handler_that_repairs,
        handler_that_stays_unblocked,
        handler_on_its_own_stack,
        later_handler,
        later_handler_passes_on,
        passing_handler,
        many_handlers,
        blocked_signals,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_in_child(cases[i], NULL);
}

/* The end by a signal, as it would be without the library. */

static void fault(void) { touch(unreadable_page()); }
static void fault_on_bus(void) { (void)*(volatile char *)page_behind_end_of_file(); }
static void send_to_process(void) { kill(getpid(), SIGSEGV); }
static void send_to_thread(void) { raise(SIGBUS); }

static void send_ignored(void)
{
    raise(SIGSEGV);
    kill(getpid(), SIGSEGV);
    _exit(77);
}

static void fault_twice(void)
{
    if (sigsetjmp(out, 1) == 0)
        fault();
    fault();
}

static void the_host_decides(void **state)
{
    static const struct {
        void (*before)(int);
        int flags;
        void (*action)(void);
        int ends_by; /* a signal, or minus an exit code */
    } cases[] = {
        {SIG_DFL, 0, fault, SIGSEGV},
        {SIG_DFL, 0, fault_on_bus, SIGBUS},
        {SIG_DFL, 0, send_to_process, SIGSEGV},
        {SIG_DFL, 0, send_to_thread, SIGBUS},
        {SIG_IGN, 0, fault, SIGSEGV},
        {SIG_IGN, 0, send_ignored, -77},
        {jump_out, (int)SA_RESETHAND, fault_twice, SIGSEGV},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sigaction action = {.sa_handler = cases[i].before, .sa_flags = cases[i].flags};
        pid_t child;
        int status;

        fflush(NULL);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(30 * test_slowdown());
            sigaction(SIGSEGV, &action, NULL);
            sigaction(SIGBUS, &action, NULL);
            first_read();
            if (HalReadPointerOrFault(NULL).Readable)
                _exit(1);
            cases[i].action();
            _exit(2);
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        if (cases[i].ends_by > 0) {
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), cases[i].ends_by);
        } else {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), -cases[i].ends_by);
        }
    }
}

/* Threads that read while pages are mapped and unmapped. */

static VOID *volatile *shared_page;
static volatile ULONG stop;

static void read_on(void *argument, unsigned index)
{
    unsigned long *counts = argument;

    (void)index;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        HAL_READ read = HalReadPointerOrFault((VOID *volatile *)&shared_page[3]);

        if (read.Readable && read.Value != &value)
            abort();
        __atomic_fetch_add(&counts[read.Readable != 0], 1, __ATOMIC_RELAXED);
    }
}

static void come_and_go(void **state)
{
    unsigned long rounds = test_rounds(20000), counts[2] = {0, 0};
    test_threads *readers;

    (void)state;
    shared_page = map_page(PROT_READ | PROT_WRITE);
    ((VOID **)shared_page)[3] = &value;
    readers = start_threads(2, read_on, counts);
    while (__atomic_load_n(&counts[1], __ATOMIC_RELAXED) == 0)
        sched_yield();
    for (unsigned long round = 0; round < rounds; round++) {
        mprotect((void *)shared_page, PAGE, PROT_NONE);
        if (round % 64 == 0)
            sched_yield();
        mprotect((void *)shared_page, PAGE, PROT_READ);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    join_threads(readers, 60);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(others_faults),
        cmocka_unit_test(the_host_decides),
        cmocka_unit_test(come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
