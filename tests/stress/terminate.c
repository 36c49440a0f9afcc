/*
 * Threads are terminated at random moments while they wait, signal, own mutants, are suspended and resumed, queue APCs,
 * or start and exit by themselves. Each must end, once, with one of the statuses that were requested; nothing that the
 * others use may be lost.
 */
#include "support.h"

#include <interlock/nt.h>

#include <sys/wait.h>
#include <unistd.h>

#include "ke/wait.h"
#include "ps/psp.h"

#define VICTIMS 4
#define OWN_STATUS 77
#define FIRST_STATUS 1000

static struct {
    KEVENT event;
    KSEMAPHORE semaphore;
    KMUTANT mutant;
    KQUEUE queue;
    HANDLE handle;
    volatile ULONG hunters;
    volatile ULONG abandoned;
} shared;

static VOID apc(PVOID a, PVOID b, PVOID c)
{
    (void)a;
    (void)b;
    (void)c;
}

static LARGE_INTEGER soon = {.QuadPart = -2000};

static void use_mutant(KPROCESSOR_MODE mode)
{
    NTSTATUS status = KeWaitForSingleObject(&shared.mutant, Executive, mode, FALSE, &soon);

    if (status == STATUS_ABANDONED)
        __atomic_fetch_add(&shared.abandoned, 1, __ATOMIC_RELAXED);
    if (status == STATUS_SUCCESS || status == STATUS_ABANDONED)
        KeReleaseMutant(&shared.mutant, 0, FALSE, FALSE);
}

static void do_something(uint32_t what)
{
    PVOID objects[] = {&shared.event, &shared.semaphore};

    switch (what) {
    case 0:
        KeWaitForSingleObject(&shared.event, Executive, KernelMode, FALSE, &soon);
        break;
    case 1:
        KeSetEvent(&shared.event, 0, FALSE);
        break;
    case 2:
        KeWaitForMultipleObjects(2, objects, WaitAll, Executive, UserMode, FALSE, &soon, NULL);
        break;
    case 3:
        KeWaitForMultipleObjects(2, objects, WaitAny, Executive, UserMode, TRUE, &soon, NULL);
        break;
    case 4:
        use_mutant(UserMode);
        break;
    case 5:
        NtWaitForSingleObject(shared.handle, TRUE, &soon);
        break;
    case 6:
        KeRemoveQueue(&shared.queue, UserMode, &soon);
        break;
    case 7:
        NtSetEvent(shared.handle, NULL);
        break;
    case 8:
        NtQueueApcThread(NtCurrentThread(), apc, NULL, NULL, NULL);
        NtTestAlert();
        break;
    case 9:
        KeDelayExecutionThread(UserMode, TRUE, &soon);
        break;
    default:
        HalDispatch.Yield();
    }
}

static NTSTATUS live(PVOID context)
{
    test_random random;

    random_seed(&random, (uint64_t)(ULONG_PTR)context);
    for (;;) {
        uint32_t what = random_below(&random, 60);

        if (what == 59)
            return OWN_STATUS;
        if (what == 58)
            NtTerminateThread(NtCurrentThread(), OWN_STATUS);
        do_something(what % 11);
    }
}

static void harass(HANDLE thread, test_random *random)
{
    for (uint32_t i = random_below(random, 4); i > 0; i--) {
        switch (random_below(random, 4)) {
        case 0:
            NtSuspendThread(thread, NULL);
            break;
        case 1:
            NtResumeThread(thread, NULL);
            break;
        case 2:
            NtQueueApcThread(thread, apc, NULL, NULL, NULL);
            break;
        default:
            NtAlertThread(thread);
        }
        for (uint32_t pause = random_below(random, 3); pause > 0; pause--)
            HalDispatch.Yield();
    }
}

static void expect_end(HANDLE handle)
{
    THREAD_BASIC_INFORMATION basic;
    LARGE_INTEGER timeout = {.QuadPart = -1200000000};
    PVOID thread;

    assert_int_equal(ObReferenceObjectByHandle(handle, 0, *PsThreadType, KernelMode, &thread, NULL), 0);
    assert_int_equal(KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, &timeout), STATUS_SUCCESS);
    assert_int_equal(NtQueryInformationThread(handle, ThreadBasicInformation, &basic, sizeof(basic), NULL), 0);
    assert_true(basic.ExitStatus == OWN_STATUS || basic.ExitStatus == FIRST_STATUS ||
                basic.ExitStatus == FIRST_STATUS + 1);
    assert_true(IsListEmpty(&((PKTHREAD)thread)->MutantListHead));
    assert_int_equal(NtQueueApcThread(handle, apc, NULL, NULL, NULL), STATUS_UNSUCCESSFUL);
    ObDereferenceObject(thread);
}

static void hunt(unsigned index)
{
    unsigned long rounds = test_rounds(150);
    test_random random;

    random_seed(&random, index + 1);
    for (unsigned long round = 0; round < rounds; round++) {
        HANDLE threads[VICTIMS];

        for (int i = 0; i < VICTIMS; i++)
            assert_int_equal(NtCreateThreadEx(&threads[i], THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), live,
                                              (PVOID)(ULONG_PTR)random_next(&random),
                                              random_below(&random, 2) ? THREAD_CREATE_FLAGS_CREATE_SUSPENDED : 0, 0,
                                              0x40000, 0, NULL),
                             STATUS_SUCCESS);
        for (int i = 0; i < VICTIMS; i++) {
            if (random_below(&random, 4) != 0)
                NtResumeThread(threads[i], NULL);
            harass(threads[i], &random);
            if (random_below(&random, 3) == 0)
                KeDelayExecutionThread(KernelMode, FALSE, &soon);
            assert_int_equal(NtTerminateThread(threads[i], FIRST_STATUS + (NTSTATUS)random_below(&random, 2)), 0);
            harass(threads[i], &random);
            assert_int_equal(NtTerminateThread(threads[i], FIRST_STATUS), 0);
        }
        for (int i = 0; i < VICTIMS; i++) {
            expect_end(threads[i]);
            assert_int_equal(ObCloseHandle(threads[i], UserMode), 0);
        }
    }
}

/* The child has one thread, regardless of the state of the others, and every object works there. */
static int try_everything_in_child(void)
{
    LARGE_INTEGER poll = {.QuadPart = 0};
    HANDLE thread;
    NTSTATUS status;

    KeSetEvent(&shared.event, 0, FALSE);
    if (KeWaitForSingleObject(&shared.event, Executive, KernelMode, FALSE, &poll) != STATUS_SUCCESS)
        return 1;
    status = KeWaitForSingleObject(&shared.mutant, Executive, KernelMode, FALSE, &poll);
    if (status != STATUS_SUCCESS && status != STATUS_ABANDONED)
        return 2;
    if (!IsListEmpty(&shared.queue.ThreadListHead) || shared.queue.CurrentCount != 0)
        return 3;
    if (NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), live, NULL, 1, 0, 0, 0, NULL) != 0 ||
        NtTerminateThread(thread, 1) != 0)
        return 4;
    return NtWaitForSingleObject(thread, FALSE, NULL) == STATUS_SUCCESS ? 0 : 5;
}

static void fork_meanwhile(void)
{
    while (__atomic_load_n(&shared.hunters, __ATOMIC_RELAXED) != 0) {
        LARGE_INTEGER moment = {.QuadPart = -20000};
        pid_t child = fork();
        int status = -1;

        assert_true(child >= 0);
        if (child == 0)
            _exit(try_everything_in_child());
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        KeDelayExecutionThread(KernelMode, FALSE, &moment);
    }
}

static void take_part(void *argument, unsigned index)
{
    (void)argument;
    if (index >= 2) {
        fork_meanwhile();
        return;
    }
    hunt(index);
    __atomic_sub_fetch(&shared.hunters, 1, __ATOMIC_RELAXED);
}

/* After the storm every object is as if no thread had ever waited. */
static void expect_calm(void)
{
    LARGE_INTEGER poll = {.QuadPart = 0};
    NTSTATUS status;

    assert_true(IsListEmpty(&shared.event.Header.WaitListHead));
    assert_true(IsListEmpty(&shared.semaphore.Header.WaitListHead));
    assert_true(IsListEmpty(&shared.mutant.Header.WaitListHead));
    assert_true(IsListEmpty(&shared.queue.Header.WaitListHead));
    assert_true(IsListEmpty(&shared.queue.ThreadListHead));
    assert_int_equal(shared.queue.CurrentCount, 0);
    assert_int_equal(KeReadStateMutant(&shared.mutant), 1);
    status = KeWaitForSingleObject(&shared.mutant, Executive, KernelMode, FALSE, &poll);
    assert_true(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
    assert_int_equal(KeReleaseMutant(&shared.mutant, 0, FALSE, FALSE), 0);
}

/* Handles cache references, so the event's own count is compared after the last handle is closed. */
static void a_storm_of_ends(void **state)
{
    PVOID event;

    (void)state;
    KeInitializeEvent(&shared.event, SynchronizationEvent, FALSE);
    KeInitializeSemaphore(&shared.semaphore, 0, 1000);
    KeInitializeMutant(&shared.mutant, FALSE);
    KeInitializeQueue(&shared.queue, 2);
    assert_int_equal(NtCreateEvent(&shared.handle, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE), 0);
    assert_int_equal(ObReferenceObjectByHandle(shared.handle, 0, NULL, KernelMode, &event, NULL), 0);
    shared.hunters = 2;
    run_threads(test_slowdown() == 1 ? 3 : 2, 200, take_part, NULL); /* sanitizers do not support forks */
    expect_calm();
    assert_int_equal(ObCloseHandle(shared.handle, UserMode), 0);
    assert_int_equal(ObpHeaderOf(event)->PointerCount, 1);
    ObDereferenceObject(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_storm_of_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
