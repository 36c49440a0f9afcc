/* Barriers by their Win32 names. */
#include "../rtl/locktest.h"

#include <interlock/win32.h>

#define SPIN_ONLY SYNCHRONIZATION_BARRIER_FLAGS_SPIN_ONLY
#define BLOCK_ONLY SYNCHRONIZATION_BARRIER_FLAGS_BLOCK_ONLY
#define NO_DELETE SYNCHRONIZATION_BARRIER_FLAGS_NO_DELETE
#define UNTOUCHED 1234

static const struct {
    LONG threads;
    LONG spin_count;
    DWORD error;
} initializations[] = {
    {1, -1, UNTOUCHED},
    {64, 0, UNTOUCHED},
    {MAXLONG, MAXLONG, UNTOUCHED},
    {0, -1, ERROR_INVALID_PARAMETER},
    {-1, -1, ERROR_INVALID_PARAMETER},
    {MINLONG, 0, ERROR_INVALID_PARAMETER},
    {1, -2, ERROR_INVALID_PARAMETER},
    {1, MINLONG, ERROR_INVALID_PARAMETER},
};

static void test_initialize(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(initializations); i += 1) {
        SYNCHRONIZATION_BARRIER barrier;
        SetLastError(UNTOUCHED);
        BOOL good =
            InitializeSynchronizationBarrier(&barrier, initializations[i].threads, initializations[i].spin_count);
        assert_int_equal(good, initializations[i].error == UNTOUCHED);
        assert_int_equal(GetLastError(), initializations[i].error);
        if (good) {
            assert_true(DeleteSynchronizationBarrier(&barrier));
        }
    }
}

#define THREADS 4

typedef struct meeting {
    SYNCHRONIZATION_BARRIER barrier;
    DWORD flags;
    ULONG rounds;
    volatile ULONG told[16];
    volatile ULONG come[16];
} meeting;

static void meet(void *argument, unsigned index)
{
    meeting *m = argument;
    (void)index;
    for (ULONG round = 0; round < m->rounds; round += 1) {
        __atomic_add_fetch(&m->come[round], 1, __ATOMIC_RELAXED);
        if (EnterSynchronizationBarrier(&m->barrier, m->flags)) {
            __atomic_add_fetch(&m->told[round], 1, __ATOMIC_RELAXED);
        }
        check(__atomic_load_n(&m->come[round], __ATOMIC_RELAXED) == THREADS);
    }
}

static void test_meetings(void **state)
{
    static const DWORD flags[] = {0, SPIN_ONLY, BLOCK_ONLY, NO_DELETE, SPIN_ONLY | NO_DELETE};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(flags); i += 1) {
        meeting m = {.flags = flags[i], .rounds = ARRAYSIZE(m.told)};
        assert_true(InitializeSynchronizationBarrier(&m.barrier, THREADS, -1));
        run_threads(THREADS, TEST_SECONDS, meet, &m);
        for (ULONG round = 0; round < m.rounds; round += 1) {
            assert_int_equal(m.told[round], 1);
        }
        assert_true(DeleteSynchronizationBarrier(&m.barrier));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_initialize),
        cmocka_unit_test(test_meetings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
