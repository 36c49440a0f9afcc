/* Barriers, by the numbers in src/rtl/barrier.c. */
#include "../ke/waittest.h"
#include "../support/heap.h"

#include <interlock/rtl.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPIN_ONLY RTL_BARRIER_FLAGS_SPIN_ONLY
#define BLOCK_ONLY RTL_BARRIER_FLAGS_BLOCK_ONLY
#define NO_DELETE RTL_BARRIER_FLAGS_NO_DELETE
#define DEFAULT_SPIN MAXULONG

/* 4 */

static const struct {
    ULONG threads;
    ULONG spin_count;
    NTSTATUS status;
} initializations[] = {
    {1, DEFAULT_SPIN, STATUS_SUCCESS},
    {2, 0, STATUS_SUCCESS},
    {MAXLONG, MAXLONG, STATUS_SUCCESS},
    {0, DEFAULT_SPIN, STATUS_INVALID_PARAMETER_2},
    {0x80000000, DEFAULT_SPIN, STATUS_SUCCESS},
    {MAXULONG, 0, STATUS_SUCCESS},
    {1, MAXULONG - 1, STATUS_SUCCESS},
    {1, 0x80000000, STATUS_SUCCESS},
};

static void test_initialize(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(initializations); i += 1) {
        RTL_BARRIER barrier, untouched;
        memset(&barrier, 0xaa, sizeof(barrier));
        memset(&untouched, 0xaa, sizeof(untouched));
        NTSTATUS status = RtlInitBarrier(&barrier, initializations[i].threads, initializations[i].spin_count);
        assert_int_equal(status, initializations[i].status);
        if (status == STATUS_SUCCESS) {
            assert_int_equal(RtlDeleteBarrier(&barrier), STATUS_SUCCESS);
        } else {
            assert_memory_equal(&barrier, &untouched, sizeof(barrier));
        }
    }
}

static void test_alone(void **state)
{
    static const ULONG flags[] = {0, SPIN_ONLY, BLOCK_ONLY, NO_DELETE, SPIN_ONLY | BLOCK_ONLY | NO_DELETE};
    RTL_BARRIER barrier;
    (void)state;
    assert_int_equal(RtlInitBarrier(&barrier, 1, DEFAULT_SPIN), STATUS_SUCCESS);
    for (ULONG i = 0; i < ARRAYSIZE(flags); i += 1) {
        assert_true(RtlBarrier(&barrier, flags[i]));
        assert_true(RtlBarrierForDelete(&barrier, flags[i]));
    }
    assert_int_equal(RtlDeleteBarrier(&barrier), STATUS_SUCCESS);
}

static NTSTATUS raised_by_barrier(BOOLEAN (*enter)(PRTL_BARRIER barrier, ULONG flags), PRTL_BARRIER barrier, ULONG flags)
{
    volatile NTSTATUS raised = STATUS_SUCCESS;
    __try {
        enter(barrier, flags);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        raised = GetExceptionCode();
    }
    return raised;
}

/* The thread has not arrived. */
static void test_unknown_flags(void **state)
{
    static const ULONG flags[] = {8, 0x80000000, SPIN_ONLY | 0x40, NO_DELETE | 0x100, MAXULONG};
    RTL_BARRIER barrier;
    (void)state;
    assert_int_equal(RtlInitBarrier(&barrier, 1, DEFAULT_SPIN), STATUS_SUCCESS);
    for (ULONG i = 0; i < ARRAYSIZE(flags); i += 1) {
        RTL_BARRIER before = barrier;
        assert_int_equal(raised_by_barrier(RtlBarrier, &barrier, flags[i]), STATUS_INVALID_PARAMETER_2);
        assert_int_equal(raised_by_barrier(RtlBarrierForDelete, &barrier, flags[i]), STATUS_INVALID_PARAMETER_2);
        assert_memory_equal(&barrier, &before, sizeof(barrier));
    }
    assert_int_equal(RtlDeleteBarrier(&barrier), STATUS_SUCCESS);
}

/* 1, 2, 4: early threads spin or block, and the last one gets TRUE. */

typedef struct visitor {
    actor actor;
    RTL_BARRIER *barrier;
    ULONG flags;
    BOOLEAN last;
} visitor;

static void visit(void *argument)
{
    visitor *v = argument;
    allocations_left = 0;
    v->last = RtlBarrier(v->barrier, v->flags);
    allocations_left = -1;
}

static void test_rounds_of(ULONG flags)
{
    RTL_BARRIER barrier;
    visitor v[3];
    assert_int_equal(RtlInitBarrier(&barrier, ARRAYSIZE(v) + 1, DEFAULT_SPIN), STATUS_SUCCESS);
    for (ULONG i = 0; i < ARRAYSIZE(v); i += 1) {
        v[i] = (visitor){.barrier = &barrier, .flags = flags};
        start_actor(&v[i].actor);
    }
    for (ULONG round = 0; round < 3; round += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(v); i += 1) {
            tell(&v[i].actor, visit, &v[i]);
        }
        for (ULONG i = 0; i < ARRAYSIZE(v); i += 1) {
            if (!(flags & SPIN_ONLY)) {
                await(is_committed(v[i].actor.thread));
            }
            assert_false(is_idle(&v[i].actor));
        }
        await(__atomic_load_n(&barrier.Reserved1, __ATOMIC_ACQUIRE) == 1); /* missing */
        for (ULONG looks = 0; (flags & SPIN_ONLY) && looks < 100; looks += 1) {
            assert_false(is_committed(v[looks % ARRAYSIZE(v)].actor.thread)); /* never sleeps in a wait */
            pause_briefly();
        }
        assert_true(RtlBarrier(&barrier, flags));
        for (ULONG i = 0; i < ARRAYSIZE(v); i += 1) {
            await(is_idle(&v[i].actor));
            assert_false(v[i].last);
        }
        assert_int_equal(barrier.Reserved1, ARRAYSIZE(v) + 1);
        assert_int_equal(barrier.Reserved2, round + 1);
    }
    assert_int_equal(RtlDeleteBarrier(&barrier), STATUS_SUCCESS);
    for (ULONG i = 0; i < ARRAYSIZE(v); i += 1) {
        end_actor(&v[i].actor);
    }
    assert_int_equal(allocations_refused, 0);
}

static void test_rounds_default(void **state)
{
    (void)state;
    test_rounds_of(0);
}

static void test_rounds_blocking(void **state)
{
    (void)state;
    test_rounds_of(BLOCK_ONLY);
    test_rounds_of(BLOCK_ONLY | NO_DELETE);
}

static void test_rounds_spinning(void **state)
{
    (void)state;
    test_rounds_of(SPIN_ONLY);
}

/* Any of them may be the last to enter. */
static void test_last_is_another(void **state)
{
    RTL_BARRIER barrier;
    visitor v[2];
    (void)state;
    RtlInitBarrier(&barrier, ARRAYSIZE(v), 0);
    for (ULONG i = 0; i < ARRAYSIZE(v); i += 1) {
        v[i] = (visitor){.barrier = &barrier};
        start_actor(&v[i].actor);
    }
    tell(&v[0].actor, visit, &v[0]);
    await(is_committed(v[0].actor.thread));
    run_on(&v[1].actor, visit, &v[1]);
    await(is_idle(&v[0].actor));
    assert_true(v[1].last);
    assert_false(v[0].last);
    for (ULONG i = 0; i < ARRAYSIZE(v); i += 1) {
        end_actor(&v[i].actor);
    }
    RtlDeleteBarrier(&barrier);
}

/* 3: one thread of the round is kept inside. The deleter does not wait for threads that passed NO_DELETE. */

static void delete_barrier(void *barrier)
{
    check(RtlDeleteBarrier(barrier) == STATUS_SUCCESS);
}

static void test_delete_waits(void **state)
{
    RTL_BARRIER barrier;
    visitor v;
    actor deleter;
    (void)state;
    RtlInitBarrier(&barrier, 2, 0);
    v = (visitor){.barrier = &barrier};
    start_actor(&v.actor);
    start_actor(&deleter);
    tell(&v.actor, visit, &v);
    await(is_committed(v.actor.thread));
    assert_int_equal(KeSuspendThread(v.actor.thread), 0);
    assert_true(RtlBarrier(&barrier, 0));
    tell(&deleter, delete_barrier, &barrier);
    await(is_committed(deleter.thread));
    assert_false(is_idle(&deleter));
    KeResumeThread(v.actor.thread);
    await(is_idle(&deleter));
    await(is_idle(&v.actor));
    assert_false(v.last);
    end_actor(&v.actor);
    end_actor(&deleter);
}

static void test_delete_without_waiting(void **state)
{
    RTL_BARRIER barrier;
    visitor v;
    (void)state;
    RtlInitBarrier(&barrier, 2, 0);
    v = (visitor){.barrier = &barrier, .flags = NO_DELETE};
    start_actor(&v.actor);
    tell(&v.actor, visit, &v);
    await(is_committed(v.actor.thread));
    assert_int_equal(KeSuspendThread(v.actor.thread), 0);
    assert_true(RtlBarrier(&barrier, 0));
    assert_int_equal(RtlDeleteBarrier(&barrier), STATUS_SUCCESS);
    KeResumeThread(v.actor.thread);
    end_actor(&v.actor);
}

static void enter_barrier(void *barrier)
{
    RtlBarrier(barrier, 0);
}

/* Barriers do not work across processes. A child of a child initializes it, a child uses it. */
static void test_of_another_process(void **state)
{
    (void)state;
    RTL_BARRIER *barrier = mmap(NULL, sizeof(*barrier), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(barrier != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            RtlInitBarrier(barrier, 1, 0);
            _exit(0);
        }
        waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    expect_bugcheck(KERNEL_SECURITY_CHECK_FAILURE, enter_barrier, barrier);
    munmap(barrier, sizeof(*barrier));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_initialize),
        WATCHED(test_of_another_process),
        WATCHED(test_alone),
        WATCHED(test_unknown_flags),
        WATCHED(test_rounds_default),
        WATCHED(test_rounds_blocking),
        WATCHED(test_rounds_spinning),
        WATCHED(test_last_is_another),
        WATCHED(test_delete_waits),
        WATCHED(test_delete_without_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
