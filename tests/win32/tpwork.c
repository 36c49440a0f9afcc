/* Work objects and the threads that run them, by the numbers in src/rtl/tpp.h. */
#include "tptest.h"

#include "heap.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

static PTP_WORK expected_work;
static volatile ULONG runs;

static void count(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    check(instance != NULL);
    check(context == NULL || (context == &expected_work && work == expected_work));
    add_one(&runs);
}

static void test_submit(void **state)
{
    PTP_WORK work = CreateThreadpoolWork(count, &expected_work, NULL);
    (void)state;
    assert_non_null(work);
    expected_work = work;
    runs = 0;
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    for (ULONG i = 1; i <= 100; i += 1) {
        SubmitThreadpoolWork(work);
        WaitForThreadpoolWorkCallbacks(work, FALSE);
        assert_int_equal(count_of(&runs), i);
    }
    for (ULONG i = 0; i < 1000; i += 1) {
        SubmitThreadpoolWork(work);
    }
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    assert_int_equal(count_of(&runs), 1100);
    CloseThreadpoolWork(work);
}

static void simple(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    set_event(context);
}

static void test_simple(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    (void)state;
    for (int i = 0; i < 100; i += 1) {
        assert_true(TrySubmitThreadpoolCallback(simple, event, NULL));
        wait_event(event);
    }
    NtClose(event);
}

static void test_no_memory(void **state)
{
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    SetLastError(0);
    allocations_left = 0;
    PTP_POOL pool = CreateThreadpool(NULL);
    allocations_left = -1;
    assert_null(pool);
    assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
}

static void expect_refusal(PTP_CALLBACK_ENVIRON environment)
{
    SetLastError(0);
    assert_null(CreateThreadpoolWork(count, NULL, environment));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
}

static void test_parameters(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    (void)state;
    SetLastError(0);
    assert_null(CreateThreadpoolWork(NULL, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(TrySubmitThreadpoolCallback(NULL, NULL, NULL));
    assert_null(CreateThreadpool(&environment));
    InitializeThreadpoolEnvironment(&environment);
    environment.Version = 2;
    expect_refusal(&environment);
    InitializeThreadpoolEnvironment(&environment);
    environment.Size -= 1;
    expect_refusal(&environment);
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackPriority(&environment, TP_CALLBACK_PRIORITY_INVALID);
    expect_refusal(&environment);
    InitializeThreadpoolEnvironment(&environment);
    environment.Version = 1;
    environment.Size = 0;
    PTP_WORK work = CreateThreadpoolWork(count, NULL, &environment);
    assert_non_null(work);
    CloseThreadpoolWork(work);
    DestroyThreadpoolEnvironment(&environment);
}

static void test_cancel(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    gate g;
    (void)state;
    for (int priority = TP_CALLBACK_PRIORITY_HIGH; priority <= TP_CALLBACK_PRIORITY_LOW; priority += 1) {
        SetThreadpoolCallbackPriority(&environment, (TP_CALLBACK_PRIORITY)priority);
        PTP_WORK work = CreateThreadpoolWork(count, NULL, &environment);
        gate_block(&g, &environment);
        runs = 0;
        for (int i = 0; i < 5; i += 1) {
            SubmitThreadpoolWork(work);
        }
        WaitForThreadpoolWorkCallbacks(work, TRUE);
        SubmitThreadpoolWork(work);
        SubmitThreadpoolWork(work);
        set_event(g.opened);
        WaitForThreadpoolWorkCallbacks(work, FALSE);
        assert_int_equal(count_of(&runs), 2);
        CloseThreadpoolWork(work);
        gate_close(&g);
        assert_int_equal(KeReadStateQueue(&pool->Queue), 0);
    }
    CloseThreadpool(pool);
}

static void test_close_with_pending(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    gate g;
    (void)state;
    gate_block(&g, &environment);
    PTP_WORK work = CreateThreadpoolWork(count, NULL, &environment);
    runs = 0;
    for (int i = 0; i < 5; i += 1) {
        SubmitThreadpoolWork(work);
    }
    CloseThreadpoolWork(work);
    CloseThreadpool(pool);
    assert_int_equal(count_of(&runs), 0);
    set_event(g.opened);
    await(count_of(&runs) == 5);
    gate_close(&g);
}

static void close_itself(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    CloseThreadpoolWork(work);
    set_event(context);
}

static void test_close_inside_callback(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    (void)state;
    for (int i = 0; i < 50; i += 1) {
        SubmitThreadpoolWork(CreateThreadpoolWork(close_itself, event, NULL));
        wait_event(event);
    }
    NtClose(event);
}

/* Callbacks of one object run concurrently; each one that blocks makes room for the next. */
typedef struct meeting {
    volatile ULONG present;
    ULONG expected;
    HANDLE all;
} meeting;

static void meet(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    meeting *m = context;
    (void)instance;
    (void)work;
    if (add_one(&m->present) == m->expected) {
        set_event(m->all);
    }
    wait_event(m->all);
}

static void test_blocked_callbacks_make_room(void **state)
{
    meeting m = {.expected = 40, .all = make_event(NotificationEvent)};
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(40, &environment);
    PTP_WORK work = CreateThreadpoolWork(meet, &m, &environment);
    (void)state;
    for (ULONG i = 0; i < m.expected; i += 1) {
        SubmitThreadpoolWork(work);
    }
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    assert_int_equal(m.present, m.expected);
    assert_in_range(TppQueryThreads(pool), 1, 40);
    CloseThreadpoolWork(work);
    CloseThreadpool(pool);
    NtClose(m.all);
}

/* 2 of the threads: callbacks that block in the host do not starve the others. */
static volatile ULONG released;

static void block_in_host(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    add_one(context);
    await(count_of(&released) != 0);
    subtract_one(context);
}

static void test_blocked_in_host(void **state)
{
    enum { BLOCKED = 6 };
    volatile ULONG blocked = 0;
    HANDLE event = make_event(SynchronizationEvent);
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(100, &environment);
    (void)state;
    released = 0;
    __atomic_store_n(&TppTickInterval, -2 * MILLISECOND, __ATOMIC_RELAXED);
    for (ULONG i = 0; i < BLOCKED; i += 1) {
        assert_true(TrySubmitThreadpoolCallback(block_in_host, (PVOID)&blocked, &environment));
    }
    assert_true(TrySubmitThreadpoolCallback(simple, event, &environment));
    wait_event(event);
    await(count_of(&blocked) == BLOCKED);
    add_one(&released);
    await(count_of(&blocked) == 0);
    await(__atomic_load_n(&pool->Limit, __ATOMIC_RELAXED) == KeNumberProcessors);
    CloseThreadpool(pool);
    NtClose(event);
}

/* The same, without delay, for callbacks that announce it. */
static void run_long(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    volatile ULONG *blocked = context;
    check(CallbackMayRunLong(instance));
    block_in_host(instance, (PVOID)blocked);
}

static void test_long_callbacks(void **state)
{
    enum { BLOCKED = 6 };
    HANDLE event = make_event(SynchronizationEvent);
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(100, &environment);
    (void)state;
    __atomic_store_n(&TppTickInterval, -3600 * SECOND, __ATOMIC_RELAXED);
    for (int declared = 0; declared <= 1; declared += 1) {
        volatile ULONG blocked = 0;
        released = 0;
        if (declared) {
            SetThreadpoolCallbackRunsLong(&environment);
        }
        for (ULONG i = 0; i < BLOCKED; i += 1) {
            assert_true(
                TrySubmitThreadpoolCallback(declared ? block_in_host : run_long, (PVOID)&blocked, &environment));
        }
        assert_true(TrySubmitThreadpoolCallback(simple, event, &environment));
        wait_event(event);
        await(count_of(&blocked) == BLOCKED);
        add_one(&released);
        await(count_of(&blocked) == 0);
    }
    CloseThreadpool(pool);
    NtClose(event);
}

static void ask_for_long(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    SetLastError(0);
    check(!CallbackMayRunLong(instance));
    check(GetLastError() != 0);
    set_event(context);
}

static void test_no_thread_for_long_callback(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    (void)state;
    assert_true(TrySubmitThreadpoolCallback(ask_for_long, event, &environment));
    wait_event(event);
    CloseThreadpool(pool);
    NtClose(event);
}

/* A pool of one thread runs callbacks one at a time, in submission order. */
typedef struct place {
    ULONG number;
} place;

static ULONG order[64];
static ULONG order_length;

static void note_order(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    order[order_length] = ((place *)context)->number;
    order_length += 1;
    pause_briefly();
}

static void note_and_set(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    set_event(context);
}

static void test_one_thread_keeps_order(void **state)
{
    static place places[64];
    HANDLE event = make_event(SynchronizationEvent);
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    (void)state;
    order_length = 0;
    for (ULONG i = 0; i < ARRAYSIZE(places); i += 1) {
        places[i].number = i;
        assert_true(TrySubmitThreadpoolCallback(note_order, &places[i], &environment));
    }
    assert_true(TrySubmitThreadpoolCallback(note_and_set, event, &environment));
    wait_event(event);
    for (ULONG i = 0; i < ARRAYSIZE(places); i += 1) {
        assert_int_equal(order[i], i);
    }
    assert_int_equal(TppQueryThreads(pool), 1);
    CloseThreadpool(pool);
    NtClose(event);
}

static void test_priorities(void **state)
{
    static const TP_CALLBACK_PRIORITY submitted[] = {
        TP_CALLBACK_PRIORITY_LOW,    TP_CALLBACK_PRIORITY_NORMAL, TP_CALLBACK_PRIORITY_HIGH, TP_CALLBACK_PRIORITY_LOW,
        TP_CALLBACK_PRIORITY_NORMAL, TP_CALLBACK_PRIORITY_HIGH,   TP_CALLBACK_PRIORITY_LOW,  TP_CALLBACK_PRIORITY_HIGH,
    };
    static const ULONG expected[] = {2, 5, 7, 1, 4, 0, 3, 6};
    place places[ARRAYSIZE(submitted)];
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    gate g;
    (void)state;
    gate_block(&g, &environment);
    order_length = 0;
    for (ULONG i = 0; i < ARRAYSIZE(submitted); i += 1) {
        places[i].number = i;
        SetThreadpoolCallbackPriority(&environment, submitted[i]);
        assert_true(TrySubmitThreadpoolCallback(note_order, &places[i], &environment));
    }
    HANDLE event = make_event(SynchronizationEvent);
    SetThreadpoolCallbackPriority(&environment, TP_CALLBACK_PRIORITY_LOW);
    assert_true(TrySubmitThreadpoolCallback(note_and_set, event, &environment));
    set_event(g.opened);
    wait_event(event);
    assert_int_equal(order_length, ARRAYSIZE(expected));
    for (ULONG i = 0; i < ARRAYSIZE(expected); i += 1) {
        assert_int_equal(order[i], expected[i]);
    }
    CloseThreadpool(pool);
    gate_close(&g);
    NtClose(event);
}

/* Threads are created on demand, and leave. */
static void need_threads(PTP_CALLBACK_ENVIRON environment, ULONG number)
{
    meeting m = {.expected = number, .all = make_event(NotificationEvent)};
    PTP_WORK work = CreateThreadpoolWork(meet, &m, environment);
    for (ULONG i = 0; i < number; i += 1) {
        SubmitThreadpoolWork(work);
    }
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    NtClose(m.all);
}

static void test_threads_leave(void **state)
{
    LONGLONG patience = TppPatience;
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(100, &environment);
    (void)state;
    assert_int_equal(TppQueryThreads(pool), 0);
    __atomic_store_n(&TppPatience, -10 * MILLISECOND, __ATOMIC_RELAXED);
    need_threads(&environment, 8);
    await(TppQueryThreads(pool) == 1);
    assert_true(SetThreadpoolThreadMinimum(pool, 3));
    assert_int_equal(TppQueryThreads(pool), 3);
    need_threads(&environment, 8);
    await(TppQueryThreads(pool) == 3);
    SetThreadpoolThreadMaximum(pool, 2);
    need_threads(&environment, 2);
    await(TppQueryThreads(pool) == 2);
    assert_int_equal(pool->Minimum, 2);
    assert_true(SetThreadpoolThreadMinimum(pool, 4));
    assert_int_equal(pool->Maximum, 4);
    assert_int_equal(TppQueryThreads(pool), 4);
    __atomic_store_n(&TppPatience, patience, __ATOMIC_RELAXED);
    CloseThreadpool(pool);
}

static void test_persistent(void **state)
{
    LONGLONG patience = TppPatience;
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(100, &environment);
    (void)state;
    SetThreadpoolCallbackPersistent(&environment);
    __atomic_store_n(&TppPatience, -5 * MILLISECOND, __ATOMIC_RELAXED);
    need_threads(&environment, 4);
    await(TppQueryThreads(pool) == 4);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    assert_int_equal(TppQueryThreads(pool), 4);
    __atomic_store_n(&TppPatience, patience, __ATOMIC_RELAXED);
    CloseThreadpool(pool);
}

static void test_stack(void **state)
{
    TP_POOL_STACK_INFORMATION stack = {.StackReserve = 1 << 20, .StackCommit = 4096};
    TP_POOL_STACK_INFORMATION bad = {.StackReserve = 4096, .StackCommit = 1 << 20};
    TP_POOL_STACK_INFORMATION read = {0, 0};
    PTP_POOL pool = CreateThreadpool(NULL);
    (void)state;
    assert_true(SetThreadpoolStackInformation(pool, &stack));
    assert_true(QueryThreadpoolStackInformation(pool, &read));
    assert_memory_equal(&read, &stack, sizeof(read));
    SetLastError(0);
    assert_false(SetThreadpoolStackInformation(pool, &bad));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_true(SetThreadpoolThreadMinimum(pool, 1));
    CloseThreadpool(pool);
}

/* Each new thread has the stack that is set when it starts. */
static volatile ULONG stacks_end;

static void *set_stacks(void *pool)
{
    TP_POOL_STACK_INFORMATION stack = {.StackReserve = 1 << 20, .StackCommit = 4096};
    while (!count_of(&stacks_end)) {
        stack.StackReserve ^= 4096;
        check(SetThreadpoolStackInformation(pool, &stack));
    }
    return NULL;
}

static void test_stack_while_threads_start(void **state)
{
    PTP_POOL pool = CreateThreadpool(NULL);
    pthread_t setter;
    (void)state;
    stacks_end = 0;
    assert_int_equal(pthread_create(&setter, NULL, set_stacks, pool), 0);
    for (DWORD i = 1; i <= 16; i += 1) {
        assert_true(SetThreadpoolThreadMinimum(pool, i));
    }
    add_one(&stacks_end);
    assert_int_equal(pthread_join(setter, NULL), 0);
    CloseThreadpool(pool);
}

/* A thread that ends inside a callback is replaced, and its callback counts as over. */
static void end_thread(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    NtTerminateThread(NtCurrentThread(), STATUS_SUCCESS);
}

static void test_thread_ends_in_callback(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    PTP_WORK work = CreateThreadpoolWork(end_thread, NULL, &environment);
    (void)state;
    for (int i = 0; i < 5; i += 1) {
        SubmitThreadpoolWork(work);
    }
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    CloseThreadpoolWork(work);
    CloseThreadpool(pool);
}

/* So is one that another thread terminates. */
typedef struct victim {
    HANDLE started;
    DWORD id;
} victim;

static void block_for_ever(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    victim *v = context;
    (void)instance;
    (void)work;
    v->id = GetCurrentThreadId();
    set_event(v->started);
    NtDelayExecution(FALSE, &(LARGE_INTEGER){.QuadPart = -3600 * SECOND});
}

static void test_thread_is_terminated(void **state)
{
    victim v = {.started = make_event(SynchronizationEvent)};
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    PTP_WORK work = CreateThreadpoolWork(block_for_ever, &v, &environment);
    PTP_WORK other = CreateThreadpoolWork(count, NULL, &environment);
    (void)state;
    SubmitThreadpoolWork(work);
    wait_event(v.started);
    HANDLE thread = OpenThread(THREAD_TERMINATE, FALSE, v.id);
    assert_non_null(thread);
    assert_true(TerminateThread(thread, 1));
    WaitForThreadpoolWorkCallbacks(work, FALSE);
    runs = 0;
    SubmitThreadpoolWork(other);
    WaitForThreadpoolWorkCallbacks(other, FALSE);
    assert_int_equal(runs, 1);
    CloseThreadpoolWork(work);
    CloseThreadpoolWork(other);
    CloseThreadpool(pool);
    NtClose(thread);
    NtClose(v.started);
}

static void submit(void *argument)
{
    SubmitThreadpoolWork(argument);
}

static void test_overflow(void **state)
{
    PTP_WORK work = CreateThreadpoolWork(count, NULL, NULL);
    (void)state;
    work->Object.State = TPP_PENDING_MASK | TPP_LINKED;
    assert_int_equal(raised_by(submit, work), STATUS_INTEGER_OVERFLOW);
    work->Object.State = 0;
    CloseThreadpoolWork(work);
}

/* In a forked child the pool starts over with the queued callbacks. */
static BOOLEAN use_work(void *argument)
{
    SubmitThreadpoolWork(argument);
    WaitForThreadpoolWorkCallbacks(argument, FALSE);
    return count_of(&runs) == 1;
}

static BOOLEAN finish_pending(void *argument)
{
    WaitForThreadpoolWorkCallbacks(argument, FALSE);
    return count_of(&runs) == 3;
}

static void test_fork(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    PTP_WORK shared = CreateThreadpoolWork(count, NULL, NULL);
    gate g;
    (void)state;
    need_threads(NULL, 4);
    runs = 0;
    assert_int_equal(in_child(use_work, shared), 0);
    for (int priority = TP_CALLBACK_PRIORITY_HIGH; priority <= TP_CALLBACK_PRIORITY_LOW; priority += 1) {
        SetThreadpoolCallbackPriority(&environment, (TP_CALLBACK_PRIORITY)priority);
        PTP_WORK work = CreateThreadpoolWork(count, NULL, &environment);
        gate_block(&g, &environment);
        runs = 0;
        SubmitThreadpoolWork(work);
        SubmitThreadpoolWork(work);
        SubmitThreadpoolWork(work);
        assert_int_equal(in_child(finish_pending, work), 0);
        set_event(g.opened);
        WaitForThreadpoolWorkCallbacks(work, FALSE);
        assert_int_equal(count_of(&runs), 3);
        CloseThreadpoolWork(work);
        gate_close(&g);
    }
    CloseThreadpoolWork(shared);
    CloseThreadpool(pool);
}

/* The callback continues in the child, on its only thread, and so does the pool. */
typedef struct forking {
    PTP_WORK work;
    PTP_WORK other;
    HANDLE done;
    int status;
} forking;

static void fork_inside(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    forking *f = context;
    (void)work;
    pid_t child = fork();
    if (child == 0) {
        alarm(TEST_SECONDS);
        SetEventWhenCallbackReturns(instance, f->done);
        runs = 0;
        SubmitThreadpoolWork(f->other);
        return;
    }
    check(waitpid(child, &f->status, 0) == child);
}

static void end_child(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    forking *f = context;
    (void)instance;
    (void)work;
    wait_event(f->done);
    WaitForThreadpoolWorkCallbacks(f->work, FALSE);
    _exit(0);
}

static void test_fork_inside_callback(void **state)
{
    forking f = {.done = make_event(NotificationEvent), .status = -1};
    (void)state;
    f.work = CreateThreadpoolWork(fork_inside, &f, NULL);
    f.other = CreateThreadpoolWork(end_child, &f, NULL);
    SubmitThreadpoolWork(f.work);
    WaitForThreadpoolWorkCallbacks(f.work, FALSE);
    assert_int_equal(f.status, 0);
    CloseThreadpoolWork(f.work);
    CloseThreadpoolWork(f.other);
    NtClose(f.done);
}

/* A callback forks while a thread waits for it. The waiter stays behind; here the child cannot touch its stack. */
#define WAITER_STACK (1 << 20)

typedef struct forking_end {
    PTP_WORK work;
    PTP_POOL pool;
    void *stack;
    void (*end)(PTP_CALLBACK_INSTANCE instance, struct forking_end *f);
    int status;
} forking_end;

static void *wait_for_work(void *argument)
{
    WaitForThreadpoolWorkCallbacks(argument, FALSE);
    return NULL;
}

static void fork_while_waited_for(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    forking_end *f = context;
    await(__atomic_load_n(&work->Object.State, __ATOMIC_ACQUIRE) & TPP_WAITERS);
    pid_t child = fork();
    if (child == 0) {
        alarm(TEST_SECONDS);
        check(mprotect(f->stack, WAITER_STACK, PROT_NONE) == 0);
        f->end(instance, f);
        _exit(1);
    }
    check(waitpid(child, &f->status, 0) == child);
}

static int end_in_child(void (*end)(PTP_CALLBACK_INSTANCE instance, forking_end *f))
{
    forking_end f = {.end = end, .status = -1};
    TP_CALLBACK_ENVIRON environment;
    pthread_attr_t attributes;
    pthread_t thread;
    f.pool = make_pool(2, &environment);
    f.work = CreateThreadpoolWork(fork_while_waited_for, &f, &environment);
    f.stack = mmap(NULL, WAITER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(f.stack, MAP_FAILED);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, f.stack, WAITER_STACK), 0);
    SubmitThreadpoolWork(f.work);
    assert_int_equal(pthread_create(&thread, &attributes, wait_for_work, f.work), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(munmap(f.stack, WAITER_STACK), 0);
    pthread_attr_destroy(&attributes);
    CloseThreadpoolWork(f.work);
    CloseThreadpool(f.pool);
    return f.status;
}

static void disassociate_forked(PTP_CALLBACK_INSTANCE instance, forking_end *f)
{
    (void)f;
    DisassociateCurrentThreadFromCallback(instance);
    _exit(0);
}

static void *exit_after(void *thread)
{
    wait_event(thread);
    _exit(0);
}

static void end_forked_thread(PTP_CALLBACK_INSTANCE instance, forking_end *f)
{
    HANDLE thread = OpenThread(SYNCHRONIZE, FALSE, GetCurrentThreadId());
    pthread_t observer;
    (void)instance;
    (void)f;
    check(thread != NULL && pthread_create(&observer, NULL, exit_after, thread) == 0);
    NtTerminateThread(NtCurrentThread(), STATUS_SUCCESS);
}

/* The pool's other thread stayed behind too: a new one is needed. */
static void run_long_forked(PTP_CALLBACK_INSTANCE instance, forking_end *f)
{
    BOOL idle = CallbackMayRunLong(instance);
    _exit(idle && TppIsPoolReady(f->pool) && TppQueryThreads(f->pool) == 2 ? 0 : 1);
}

static void test_fork_then_disassociate(void **state)
{
    (void)state;
    assert_int_equal(end_in_child(disassociate_forked), 0);
}

static void test_fork_then_end_thread(void **state)
{
    (void)state;
    assert_int_equal(end_in_child(end_forked_thread), 0);
}

static void test_fork_then_run_long(void **state)
{
    (void)state;
    assert_int_equal(end_in_child(run_long_forked), 0);
}

static void raise_in_callback(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    KIRQL old;
    (void)instance;
    (void)context;
    KeRaiseIrql(APC_LEVEL, &old);
}

static void raise_status_in_callback(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    (void)context;
    RtlRaiseStatus(STATUS_ACCESS_DENIED);
}

static void submit_misuse(void *argument)
{
    TrySubmitThreadpoolCallback(*(PTP_SIMPLE_CALLBACK *)argument, NULL, NULL);
    NtDelayExecution(FALSE, &(LARGE_INTEGER){.QuadPart = -TEST_SECONDS * SECOND});
}

static void test_misuse(void **state)
{
    static PTP_SIMPLE_CALLBACK level = raise_in_callback;
    static PTP_SIMPLE_CALLBACK status = raise_status_in_callback;
    (void)state;
    expect_bugcheck(WORKER_THREAD_RETURNED_AT_BAD_IRQL, submit_misuse, &level);
    expect_bugcheck(KMODE_EXCEPTION_NOT_HANDLED, submit_misuse, &status);
}

/* One callback of a batch computes until all others have run: they must not be left to its thread. */
#define BATCH 12

static volatile ULONG batch_entered, batch_left;

static void be_long_once(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)work;
    if (add_one(&batch_entered) == *(ULONG *)context) {
        await(count_of(&batch_left) == BATCH - 1);
    }
    add_one(&batch_left);
}

static void test_long_callback_holds_none_back(void **state)
{
    ULONG long_one;
    (void)state;
    PTP_WORK work = CreateThreadpoolWork(be_long_once, &long_one, NULL);
    for (long_one = 1; long_one <= BATCH; long_one += 1) {
        batch_entered = batch_left = 0;
        for (ULONG i = 0; i < BATCH; i += 1) {
            SubmitThreadpoolWork(work);
        }
        WaitForThreadpoolWorkCallbacks(work, FALSE);
        assert_int_equal(count_of(&batch_left), BATCH);
    }
    CloseThreadpoolWork(work);
}

/* Work objects with several callbacks pending take turns. */
static volatile ULONG turns;
static ULONG turn_of[2 * 3];

static void take_turn(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)work;
    turn_of[add_one(&turns) - 1] = *(ULONG *)context;
}

static void test_objects_take_turns(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    ULONG numbers[2] = {0, 1};
    PTP_WORK works[2];
    gate g;
    (void)state;
    gate_block(&g, &environment);
    turns = 0;
    for (ULONG i = 0; i < 2; i += 1) {
        works[i] = CreateThreadpoolWork(take_turn, &numbers[i], &environment);
        for (ULONG j = 0; j < 3; j += 1) {
            SubmitThreadpoolWork(works[i]);
        }
    }
    set_event(g.opened);
    for (ULONG i = 0; i < 2; i += 1) {
        WaitForThreadpoolWorkCallbacks(works[i], FALSE);
        CloseThreadpoolWork(works[i]);
    }
    for (ULONG i = 0; i < ARRAYSIZE(turn_of); i += 1) {
        assert_int_equal(turn_of[i], i % 2);
    }
    gate_close(&g);
    CloseThreadpool(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misuse),
        WATCHED(test_no_memory), WATCHED(test_submit),
        WATCHED(test_simple),
        WATCHED(test_parameters),
        WATCHED(test_cancel),
        WATCHED(test_close_with_pending),
        WATCHED(test_close_inside_callback),
        WATCHED(test_blocked_callbacks_make_room),
        WATCHED(test_blocked_in_host),
        WATCHED(test_long_callbacks),
        WATCHED(test_no_thread_for_long_callback),
        WATCHED(test_long_callback_holds_none_back),
        WATCHED(test_objects_take_turns),
        WATCHED(test_one_thread_keeps_order),
        WATCHED(test_priorities),
        WATCHED(test_threads_leave),
        WATCHED(test_persistent),
        WATCHED(test_stack),
        WATCHED(test_stack_while_threads_start),
        WATCHED(test_thread_ends_in_callback),
        WATCHED(test_thread_is_terminated),
        WATCHED(test_overflow),
        WATCHED(test_fork),
        WATCHED(test_fork_inside_callback),
        WATCHED(test_fork_then_disassociate),
        WATCHED(test_fork_then_end_thread),
        WATCHED(test_fork_then_run_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
