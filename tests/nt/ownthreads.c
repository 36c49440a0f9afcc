/*
 * The library starts threads of its own when they are first needed. It does so, and uses the heap, only while the
 * calling thread is in no dispatcher section. Otherwise a fork deadlocks with an allocator that locks its heap over the
 * fork, as jemalloc does: the fork waits for the section, and the section for the heap. For the same reason the fork's
 * handler in the child starts no thread and leaves the heap alone.
 *
 * The heap here is the host's behind a lock of the test, which the test's fork handlers hold. They are registered after
 * the library's: their prepare handler runs before the library's, their child handler after it.
 */
#include "child.h"
#include "objecttest.h"
#include "withsetting.h"

#include <pthread.h>
#include <sched.h>

#include <interlock/ex.h>
#include <interlock/io.h>
#include <interlock/rtl.h>

#include "ke/ownthread.h"
#include "ps/psp.h"

#define MILLISECONDS(n) ((LARGE_INTEGER){.QuadPart = -10000LL * (n)})
#define OTHER_PROCESSOR ((CCHAR)(KeNumberProcessors - 1))

static struct {
    pthread_t owner;
    volatile ULONG held;
    volatile ULONG forking;
    volatile ULONG wrong;         /* uses from inside a section, or by the thread that has locked it for a fork */
    volatile ULONG hold_creation; /* the next thread is created when a fork has locked the heap, or later */
    volatile ULONG forks;
    volatile ULONG creating;
    ULONG created;
} heap;

static ULONG load(volatile ULONG *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void lock_heap(void)
{
    ULONG free = 0;

    while (!__atomic_compare_exchange_n(&heap.held, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        free = 0;
        sched_yield();
    }
    heap.owner = pthread_self();
}

static void unlock_heap(void)
{
    __atomic_store_n(&heap.held, 0, __ATOMIC_RELEASE);
}

static void prepare_fork(void)
{
    lock_heap();
    __atomic_store_n(&heap.forking, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&heap.forks, 1, __ATOMIC_RELEASE);
}

static void after_fork(void)
{
    __atomic_store_n(&heap.forking, 0, __ATOMIC_RELEASE);
    unlock_heap();
}

static void use_heap(const char *call)
{
    struct _KTHREAD *thread = HalCurrentThread;

    if (load(&heap.forking) && pthread_equal(heap.owner, pthread_self())) {
        fprintf(stderr, "%s is called by the library's fork handler\n", call);
        _exit(3);
    }
    if (thread != NULL && thread->DispatcherDepth != 0) {
        fprintf(stderr, "%s is called in a dispatcher section\n", call);
        __atomic_fetch_add(&heap.wrong, 1, __ATOMIC_RELAXED);
    }
    lock_heap();
    unlock_heap();
}

/* What the library calls. A thread that is created takes memory for its thread-local storage. */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    if (__atomic_exchange_n(&heap.hold_creation, 0, __ATOMIC_RELAXED) != 0) {
        ULONG before = load(&heap.forks);

        __atomic_store_n(&heap.creating, 1, __ATOMIC_RELEASE);
        while (load(&heap.forks) == before)
            sched_yield();
    }
    use_heap("pthread_create");
    __atomic_fetch_add(&heap.created, 1, __ATOMIC_RELAXED);
    return __real_pthread_create(thread, attributes, routine, argument);
}

void *__wrap_malloc(size_t size)
{
    use_heap("malloc");
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    use_heap("calloc");
    return __real_calloc(count, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    use_heap("posix_memalign");
    return __real_posix_memalign(memory, alignment, size);
}

void __wrap_free(void *memory)
{
    use_heap("free");
    __real_free(memory);
}

/* Operations that may start a thread. prepare creates what act needs, without starting the thread that act starts. */
struct operation {
    const char *name;
    void (*prepare)(void);
    void (*act)(void);
};

static struct use {
    KTIMER timer;
    KDPC dpc;
    KEVENT event;
    WORK_QUEUE_ITEM item;
    HANDLE handle;
    PTP_TIMER pool_timer;
    PTP_WAIT pool_wait;
    PTP_WORK pool_work;
    int ends[2];
} uses[2], *used = uses; /* a child that inherits the first one, perhaps in use, has the second */

static void set_event(PKDPC dpc, PVOID context, PVOID first, PVOID second)
{
    (void)dpc;
    (void)context;
    (void)first;
    (void)second;
    KeSetEvent(&used->event, 0, FALSE);
}

static void prepare_timer(void)
{
    KeInitializeTimer(&used->timer);
    KeInitializeEvent(&used->event, NotificationEvent, FALSE);
}

static void set_timer(void)
{
    KeSetTimer(&used->timer, MILLISECONDS(5), NULL);
    assert_int_equal(KeWaitForSingleObject(&used->timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
}

static void await_event(void)
{
    assert_int_equal(KeWaitForSingleObject(&used->event, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
}

static void prepare_dpc(void)
{
    prepare_timer();
    KeInitializeDpc(&used->dpc, set_event, NULL);
    KeSetTargetProcessorDpc(&used->dpc, OTHER_PROCESSOR);
}

static void queue_dpc(void)
{
    assert_true(KeInsertQueueDpc(&used->dpc, NULL, NULL));
    await_event();
}

static void queue_dpc_at_dispatch_level(void)
{
    KIRQL old = KeRaiseIrqlToDpcLevel();

    assert_true(KeInsertQueueDpc(&used->dpc, NULL, NULL));
    while (KeGetCurrentProcessorNumber() != (ULONG)OTHER_PROCESSOR && !KeReadStateEvent(&used->event))
        sched_yield();
    KeLowerIrql(old);
    await_event();
}

static void set_timer_with_dpc(void)
{
    KeSetTimer(&used->timer, MILLISECONDS(5), &used->dpc);
    await_event();
}

/* Under the timer's lock, since its time has passed. */
static void set_past_timer_with_dpc(void)
{
    KeSetTimer(&used->timer, (LARGE_INTEGER){.QuadPart = 1}, &used->dpc);
    await_event();
}

static void prepare_threaded_dpc(void)
{
    prepare_dpc();
    KeInitializeThreadedDpc(&used->dpc, set_event, NULL);
}

static void prepare_timer_by_handle(void)
{
    assert_int_equal(NtCreateTimer(&used->handle, TIMER_ALL_ACCESS, NULL, NotificationTimer), STATUS_SUCCESS);
}

static void ignore_apc(PVOID context, ULONG low, LONG high)
{
    (void)context;
    (void)low;
    (void)high;
}

static void set_timer_by_handle(void)
{
    LARGE_INTEGER due = MILLISECONDS(5);

    assert_int_equal(NtSetTimer(used->handle, &due, ignore_apc, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(used->handle, FALSE, NULL), STATUS_SUCCESS);
    close_handle(used->handle);
}

static void run_work(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)context;
    (void)work;
    KeSetEvent(&used->event, 0, FALSE);
}

static void run_timer(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_TIMER timer)
{
    (void)instance;
    (void)context;
    (void)timer;
    KeSetEvent(&used->event, 0, FALSE);
}

static void run_wait(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    (void)instance;
    (void)context;
    (void)wait;
    (void)result;
    KeSetEvent(&used->event, 0, FALSE);
}

static void use_work(void)
{
    assert_int_equal(TpAllocWork(&used->pool_work, run_work, NULL, NULL), STATUS_SUCCESS);
    TpPostWork(used->pool_work);
    await_event();
    TpWaitForWork(used->pool_work, FALSE);
    TpReleaseWork(used->pool_work);
}

static void prepare_pool_timer(void)
{
    prepare_timer();
    assert_int_equal(TpAllocTimer(&used->pool_timer, run_timer, NULL, NULL), STATUS_SUCCESS);
}

static void set_pool_timer(void)
{
    LARGE_INTEGER due = MILLISECONDS(5);

    TpSetTimer(used->pool_timer, &due, 0, 0);
    await_event();
}

static void prepare_pool_wait(void)
{
    prepare_timer();
    assert_int_equal(NtCreateEvent(&used->handle, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(TpAllocWait(&used->pool_wait, run_wait, NULL, NULL), STATUS_SUCCESS);
}

static void set_pool_wait(void)
{
    LARGE_INTEGER timeout = MILLISECONDS(5);

    TpSetWait(used->pool_wait, used->handle, &timeout);
    await_event();
}

static void run_item(PVOID parameter)
{
    KeSetEvent(parameter, 0, FALSE);
}

static void queue_item(void)
{
    ExInitializeWorkItem(&used->item, run_item, &used->event);
    ExQueueWorkItem(&used->item, DelayedWorkQueue);
    await_event();
}

static void *wait_for_ever(void *unused)
{
    KEVENT never;

    (void)unused;
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    __atomic_store_n(&used->handle, PsGetCurrentThreadId(), __ATOMIC_RELEASE);
    KeWaitForSingleObject(&never, Executive, UserMode, FALSE, NULL);
    return NULL;
}

static void terminate_thread(void)
{
    CLIENT_ID id = {0};
    OBJECT_ATTRIBUTES none;
    pthread_t thread;
    HANDLE handle;

    used->handle = NULL;
    assert_int_equal(__real_pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
    while ((id.UniqueThread = __atomic_load_n(&used->handle, __ATOMIC_ACQUIRE)) == NULL)
        sched_yield();
    InitializeObjectAttributes(&none, NULL, 0, NULL, NULL);
    assert_int_equal(NtOpenThread(&handle, THREAD_ALL_ACCESS, &none, &id), STATUS_SUCCESS);
    assert_int_equal(NtTerminateThread(handle, 5), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, NULL), STATUS_SUCCESS);
    close_handle(handle);
}

static void prepare_descriptor(void)
{
    assert_int_equal(pipe(used->ends), 0);
}

static void watch_descriptor(void)
{
    HANDLE handle;

    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, used->ends[0],
                                              IO_DESCRIPTOR_READABLE), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, &MILLISECONDS(5)), STATUS_TIMEOUT);
    assert_int_equal(write(used->ends[1], "", 1), 1);
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, NULL), STATUS_SUCCESS);
    close_handle(handle);
}

static const struct operation operations[] = {
    {"KeSetTimer", prepare_timer, set_timer},
    {"KeSetTimer with a DPC", prepare_dpc, set_timer_with_dpc},
    {"KeSetTimer with a DPC, the time has passed", prepare_dpc, set_past_timer_with_dpc},
    {"KeSetTimer with a threaded DPC, the time has passed", prepare_threaded_dpc, set_past_timer_with_dpc},
    {"KeInsertQueueDpc", prepare_dpc, queue_dpc},
    {"KeInsertQueueDpc at DISPATCH_LEVEL", prepare_dpc, queue_dpc_at_dispatch_level},
    {"KeInsertQueueDpc of a threaded DPC", prepare_threaded_dpc, queue_dpc},
    {"NtSetTimer", prepare_timer_by_handle, set_timer_by_handle},
    {"TpPostWork", prepare_timer, use_work},
    {"TpSetTimer", prepare_pool_timer, set_pool_timer},
    {"TpSetWait", prepare_pool_wait, set_pool_wait},
    {"ExQueueWorkItem", prepare_timer, queue_item},
    {"NtTerminateThread", prepare_timer, terminate_thread},
    {"IoCreateDescriptorObject", prepare_descriptor, watch_descriptor},
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static const struct operation *current;

static void act_alone(void *unused)
{
    ULONG created;

    (void)unused;
    current->prepare();
    created = heap.created;
    current->act();
    /* The pool's objects have their thread already, and a DPC for the thread's own processor needs none. */
    assert_true(heap.created > created || current->prepare == prepare_pool_timer || current->prepare == prepare_pool_wait ||
                current->prepare == prepare_dpc);
    assert_int_equal(heap.wrong, 0);
}

static void act_prepared(void *unused)
{
    (void)unused;
    current->act();
    assert_int_equal(heap.wrong, 0);
}

/* What prepare has created is inherited, the threads are not. */
static void act_in_forked_child(void *unused)
{
    (void)unused;
    current->prepare();
    run_in_child(act_prepared, NULL);
}

static void each_operation(void (*run)(void *))
{
    for (size_t i = 0; i < OPERATIONS; i++) {
        current = &operations[i];
        fprintf(stderr, "# %s\n", current->name);
        run_in_child(run, NULL);
    }
}

static void no_thread_is_started_in_a_section(void **state)
{
    (void)state;
    each_operation(act_alone);
    each_operation(act_in_forked_child);
}

static VOID never_runs(PVOID context)
{
    (void)context;
    abort();
}

/* The interrupted code may be inside of the host's heap, which a new thread needs. */
static void no_thread_is_started_in_an_interrupt(void **state)
{
    static const KI_OWN_KIND kind = {.Name = "interlock-test", .Routine = never_runs};
    PKTHREAD thread = KiCurrentThread();
    NTSTATUS status;

    (void)state;
    thread->HostInterrupts += 1;
    status = KiCreateOwnThread(&kind, NULL, 0);
    thread->HostInterrupts -= 1;
    assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
}

/* A thread creates one of the library's threads while another one forks. */
static void *act_on_thread(void *done)
{
    current->act();
    __atomic_store_n((volatile ULONG *)done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void fork_while_creating(void *unused)
{
    volatile ULONG done = 0;
    pthread_t thread;
    pid_t child;
    int status;

    (void)unused;
    current->prepare();
    __atomic_store_n(&heap.hold_creation, 1, __ATOMIC_RELEASE);
    assert_int_equal(__real_pthread_create(&thread, NULL, act_on_thread, (void *)&done), 0);
    while (!load(&heap.creating) && !load(&done))
        sched_yield();
    __atomic_store_n(&heap.hold_creation, 0, __ATOMIC_RELEASE);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS * test_slowdown());
        used += 1;
        current->prepare();
        current->act();
        _exit(heap.wrong != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(heap.wrong, 0);
}

static void a_fork_does_not_wait_for_the_heap(void **state)
{
    (void)state;
    each_operation(fork_while_creating);
}

/* The child inherits timers, and objects of threads that stayed behind. Neither the clock is started nor memory freed
   before the heap is usable in the child. */
static void *leave_things_behind(void *ready)
{
    LARGE_INTEGER due = MILLISECONDS(3600000);
    UNICODE_STRING name = counted(u"left behind");
    HANDLE timer, unused;

    assert_int_equal(NtSetInformationThread(NtCurrentThread(), ThreadNameInformation, &name, sizeof(name)), STATUS_SUCCESS);
    assert_int_equal(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, NotificationTimer), STATUS_SUCCESS);
    assert_int_equal(NtSetTimer(timer, &due, ignore_apc, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    close_handle(timer);
    assert_int_equal(NtQueueApcThread(NtCurrentThread(), (PPS_APC_ROUTINE)(PVOID)ignore_apc, NULL, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(NtDuplicateObject(NtCurrentProcess(), NtCurrentThread(), NtCurrentProcess(), &unused, 0, 0, 0), 0);
    close_handle(unused);
    __atomic_store_n((volatile ULONG *)ready, 1, __ATOMIC_RELEASE);
    KeDelayExecutionThread(KernelMode, FALSE, &due);
    return NULL;
}

static void use_inheritance(void *unused)
{
    (void)unused;
    assert_int_equal(KeWaitForSingleObject(&used->timer, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    await_event();
    assert_int_equal(heap.wrong, 0);
}

static void fork_with_inheritance(void *unused)
{
    volatile ULONG ready = 0;
    static KTIMER pending; /* expires in both processes; this one may leave the frame before */
    pthread_t thread;

    (void)unused;
    prepare_dpc();
    KeInitializeTimer(&pending);
    assert_int_equal(__real_pthread_create(&thread, NULL, leave_things_behind, (void *)&ready), 0);
    while (!load(&ready))
        sched_yield();
    KeSetTimer(&used->timer, MILLISECONDS(100), NULL);
    KeSetTimer(&pending, MILLISECONDS(100), &used->dpc);
    run_in_child(use_inheritance, NULL);
}

static void a_child_leaves_the_heap_alone(void **state)
{
    (void)state;
    run_in_child(fork_with_inheritance, NULL);
}

/*
 * Everything at once: each child starts the threads again, from two threads, while it forks. A timer that a parent's
 * thread set expires in the child too, so each generation has its own timers.
 */
#define GENERATIONS 4

static struct storm {
    KTIMER timer;
    KDPC dpc, threaded;
    const struct operation *operation;
} storms[GENERATIONS + 1][2];

static volatile ULONG stop;

static void *keep_acting(void *argument)
{
    struct storm *storm = argument;

    KeInitializeTimer(&storm->timer);
    KeInitializeDpc(&storm->dpc, set_event, NULL);
    KeInitializeThreadedDpc(&storm->threaded, set_event, NULL);
    KeSetTargetProcessorDpc(&storm->dpc, OTHER_PROCESSOR);
    while (!load(&stop)) {
        KeSetTimer(&storm->timer, MILLISECONDS(1), &storm->dpc);
        KeInsertQueueDpc(&storm->threaded, NULL, NULL);
        storm->operation->act();
        KeCancelTimer(&storm->timer);
        KeFlushQueuedDpcs();
    }
    return NULL;
}

static void rest(void)
{
    KeDelayExecutionThread(KernelMode, FALSE, &MILLISECONDS(1));
}

static void fork_in_storm(void *generations)
{
    static const struct operation resting = {"", prepare_timer, rest};
    static const struct operation terminating = {"", prepare_timer, terminate_thread};
    uintptr_t left = (uintptr_t)generations;
    pthread_t threads[2];

    __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
    storms[left][0].operation = &resting;
    storms[left][1].operation = &terminating;
    for (int i = 0; i < 2; i++)
        assert_int_equal(__real_pthread_create(&threads[i], NULL, keep_acting, &storms[left][i]), 0);
    for (uintptr_t i = left; i > 0; i--)
        run_in_child(fork_in_storm, (void *)(i - 1));
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(heap.wrong, 0);
}

static void forks_in_a_storm(void **state)
{
    (void)state;
    if (test_slowdown() != 1)
        skip(); /* sanitizers support neither such forks nor threads that are terminated */
    prepare_timer();
    run_in_child(fork_in_storm, (void *)(uintptr_t)GENERATIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_thread_is_started_in_a_section),
        cmocka_unit_test(no_thread_is_started_in_an_interrupt),
        cmocka_unit_test(a_fork_does_not_wait_for_the_heap),
        cmocka_unit_test(a_child_leaves_the_heap_alone),
        cmocka_unit_test(forks_in_a_storm),
    };

    default_setting("INTERLOCK_PROCESSORS", "4");
    if (pthread_atfork(prepare_fork, after_fork, after_fork) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
