/* Rundown protection, plain and cache-aware, by the numbers in src/ex/rundown.c. */
#include "ex/exp.h"
#include "../ke/waittest.h"
#include "../support/heap.h"

#define TAG 0x6e755274u
#define HOLDERS 3

/* The two kinds behind one interface. */

typedef struct protection {
    EX_RUNDOWN_REF plain;
    PEX_RUNDOWN_REF_CACHE_AWARE aware;
    BOOLEAN is_aware;
} protection;

static void create(protection *p, BOOLEAN is_aware)
{
    *p = (protection){.is_aware = is_aware};
    if (is_aware) {
        p->aware = ExAllocateCacheAwareRundownProtection(NonPagedPool, TAG);
        assert_non_null(p->aware);
    }
}

static void destroy(protection *p)
{
    if (p->is_aware) {
        ExFreeCacheAwareRundownProtection(p->aware);
    }
}

static BOOLEAN acquire(protection *p)
{
    return p->is_aware ? ExAcquireRundownProtectionCacheAware(p->aware) : ExAcquireRundownProtection(&p->plain);
}

static BOOLEAN acquire_many(protection *p, ULONG count)
{
    return p->is_aware ? ExAcquireRundownProtectionCacheAwareEx(p->aware, count)
                       : ExAcquireRundownProtectionEx(&p->plain, count);
}

static void release(protection *p)
{
    if (p->is_aware) {
        ExReleaseRundownProtectionCacheAware(p->aware);
    } else {
        ExReleaseRundownProtection(&p->plain);
    }
}

static void release_many(protection *p, ULONG count)
{
    if (p->is_aware) {
        ExReleaseRundownProtectionCacheAwareEx(p->aware, count);
    } else {
        ExReleaseRundownProtectionEx(&p->plain, count);
    }
}

static void await_release(void *argument)
{
    protection *p = argument;
    allocations_left = 0;
    if (p->is_aware) {
        ExWaitForRundownProtectionReleaseCacheAware(p->aware);
    } else {
        ExWaitForRundownProtectionRelease(&p->plain);
    }
    allocations_left = -1;
}

static void reinitialize(protection *p)
{
    if (p->is_aware) {
        ExReInitializeRundownProtectionCacheAware(p->aware);
    } else {
        ExReInitializeRundownProtection(&p->plain);
    }
}

static void complete(protection *p)
{
    if (p->is_aware) {
        ExRundownCompletedCacheAware(p->aware);
    } else {
        ExRundownCompleted(&p->plain);
    }
}

/* The processor that acquires and releases appear to run on. */

static ULONG pretended_processor;
static ULONG (*real_processor)(VOID);

static ULONG pretend(VOID)
{
    return __atomic_load_n(&pretended_processor, __ATOMIC_RELAXED);
}

static void pretend_processor(ULONG number)
{
    __atomic_store_n(&pretended_processor, number, __ATOMIC_RELAXED);
    HalDispatch.CurrentProcessor = pretend;
}

static void believe_host(void)
{
    HalDispatch.CurrentProcessor = real_processor;
}

static void begin_waiting(actor *a, protection *p)
{
    tell(a, await_release, p);
    await(is_committed(a->thread));
}

/* 1, 3: the wait lasts as long as there are holders, and keeps new ones out. */
static void test_wait_lasts_until_last_holder(void **state)
{
    protection p;
    actor single;
    (void)state;
    start_actor(&single);
    for (int kind = 0; kind < 2; kind += 1) {
        create(&p, kind == 1);
        for (int i = 0; i < HOLDERS; i += 1) {
            assert_true(acquire(&p));
        }
        begin_waiting(&single, &p);
        assert_false(acquire(&p));
        assert_false(acquire_many(&p, 5));
        for (int i = 0; i < HOLDERS; i += 1) {
            assert_true(is_committed(single.thread));
            release(&p);
        }
        await(is_idle(&single));
        assert_false(acquire(&p));
        destroy(&p);
    }
    end_actor(&single);
}

/* 1: no holders, no wait; run down, no wait either; and again after it was reinitialized. */
static void test_wait_without_holders(void **state)
{
    protection p;
    (void)state;
    for (int kind = 0; kind < 2; kind += 1) {
        create(&p, kind == 1);
        for (int round = 0; round < 3; round += 1) {
            assert_true(acquire(&p));
            release(&p);
            await_release(&p);
            assert_false(acquire(&p));
            await_release(&p);
            reinitialize(&p);
        }
        complete(&p);
        assert_false(acquire(&p));
        await_release(&p);
        destroy(&p);
    }
}

static void test_counts(void **state)
{
    protection p;
    actor single;
    (void)state;
    start_actor(&single);
    for (int kind = 0; kind < 2; kind += 1) {
        create(&p, kind == 1);
        assert_true(acquire_many(&p, 7));
        release_many(&p, 3);
        begin_waiting(&single, &p);
        release_many(&p, 3);
        release_many(&p, 0);
        assert_true(is_committed(single.thread));
        release(&p);
        await(is_idle(&single));
        destroy(&p);
    }
    end_actor(&single);
}

/* 4: all waiters return when the last holder has released. */
static void test_several_waiters(void **state)
{
    protection p;
    actor waiters[4];
    (void)state;
    for (unsigned i = 0; i < ARRAYSIZE(waiters); i += 1) {
        start_actor(&waiters[i]);
    }
    for (int kind = 0; kind < 2; kind += 1) {
        create(&p, kind == 1);
        assert_true(acquire_many(&p, 2));
        for (unsigned i = 0; i < ARRAYSIZE(waiters); i += 1) {
            begin_waiting(&waiters[i], &p);
        }
        release(&p);
        for (unsigned i = 0; i < ARRAYSIZE(waiters); i += 1) {
            assert_true(is_committed(waiters[i].thread));
        }
        release(&p);
        for (unsigned i = 0; i < ARRAYSIZE(waiters); i += 1) {
            await(is_idle(&waiters[i]));
        }
        destroy(&p);
    }
    for (unsigned i = 0; i < ARRAYSIZE(waiters); i += 1) {
        end_actor(&waiters[i]);
    }
}

/* 3: the last holder is delayed while it wakes the waiter, until the waiter has returned and reused the memory. */

static void (*real_wake)(volatile ULONG *address, ULONG count);
static actor *awaited_actor;

static void wake_and_linger(volatile ULONG *address, ULONG count)
{
    real_wake(address, count);
    await(is_idle(awaited_actor));
}

static SIZE_T memory_of(protection *p, UCHAR **memory)
{
    *memory = p->is_aware ? (UCHAR *)p->aware : (UCHAR *)&p->plain;
    return p->is_aware ? ExSizeOfRundownProtectionCacheAware() : sizeof(p->plain);
}

static void await_release_and_reuse(void *argument)
{
    UCHAR *memory;
    SIZE_T size = memory_of(argument, &memory);
    await_release(argument);
    memset(memory, 0x5a, size);
}

static void test_not_touched_after_wake(void **state)
{
    protection p;
    actor single;
    (void)state;
    start_actor(&single);
    for (int kind = 0; kind < 2; kind += 1) {
        UCHAR *memory;
        create(&p, kind == 1);
        SIZE_T size = memory_of(&p, &memory);
        assert_true(acquire(&p));
        tell(&single, await_release_and_reuse, &p);
        await(is_committed(single.thread) &&
              __atomic_load_n(&single.thread->WakeWord, __ATOMIC_SEQ_CST) == KI_SLEEPING);
        awaited_actor = &single;
        real_wake = HalDispatch.Wake;
        HalDispatch.Wake = wake_and_linger;
        release(&p);
        HalDispatch.Wake = real_wake;
        await(is_idle(&single));
        for (SIZE_T i = 0; i < size; i += 1) {
            assert_int_equal(memory[i], 0x5a);
        }
        destroy(&p);
    }
    end_actor(&single);
}

/* 6, and the values of the word. */
static void test_word(void **state)
{
    EX_RUNDOWN_REF ref;
    (void)state;
    memset(&ref, 0, sizeof(ref));
    assert_true(ExAcquireRundownProtection(&ref));
    assert_int_equal(ref.Count, 2);
    assert_true(ExAcquireRundownProtectionEx(&ref, 4));
    assert_int_equal(ref.Count, 10);
    ExReleaseRundownProtectionEx(&ref, 4);
    ExReleaseRundownProtection(&ref);
    assert_int_equal(ref.Count, 0);
    ExWaitForRundownProtectionRelease(&ref);
    assert_int_equal(ref.Count, EX_RUNDOWN_ACTIVE);
    ExReInitializeRundownProtection(&ref);
    assert_int_equal(ref.Count, 0);
    ref.Count = 123;
    ExInitializeRundownProtection(&ref);
    assert_int_equal(ref.Count, 0);
}

/* 7 */
static void release_unheld(void *argument)
{
    ExReleaseRundownProtection(argument);
}

static void release_too_many(void *argument)
{
    ExAcquireRundownProtection(argument);
    ExReleaseRundownProtectionEx(argument, 2);
}

static void release_run_down(void *argument)
{
    ExWaitForRundownProtectionRelease(argument);
    ExReleaseRundownProtection(argument);
}

static void wait_released_too_often(void *argument)
{
    PEX_RUNDOWN_REF_CACHE_AWARE aware = ExAllocateCacheAwareRundownProtection(NonPagedPool, TAG);
    (void)argument;
    ExReleaseRundownProtectionCacheAware(aware);
    ExWaitForRundownProtectionReleaseCacheAware(aware);
}

static void wait_at_dispatch_level(void *argument)
{
    KIRQL old;
    ExAcquireRundownProtection(argument);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    ExWaitForRundownProtectionRelease(argument);
}

static void test_misuse(void **state)
{
    EX_RUNDOWN_REF ref = {.Count = 0};
    static const struct {
        ULONG code;
        void (*function)(void *);
    } rows[] = {
        {KERNEL_SECURITY_CHECK_FAILURE, release_unheld},
        {KERNEL_SECURITY_CHECK_FAILURE, release_too_many},
        {KERNEL_SECURITY_CHECK_FAILURE, release_run_down},
        {KERNEL_SECURITY_CHECK_FAILURE, wait_released_too_often},
        {IRQL_NOT_LESS_OR_EQUAL, wait_at_dispatch_level},
    };
    (void)state;
    for (unsigned i = 0; i < ARRAYSIZE(rows); i += 1) {
        expect_bugcheck(rows[i].code, rows[i].function, &ref);
    }
}

/* 5: usable where nothing may block. */
static void test_at_dispatch_level(void **state)
{
    protection p;
    KIRQL old;
    (void)state;
    for (int kind = 0; kind < 2; kind += 1) {
        create(&p, kind == 1);
        KeRaiseIrql(DISPATCH_LEVEL, &old);
        allocations_left = 0;
        BOOLEAN acquired = acquire(&p) && acquire(&p);
        release(&p);
        release(&p);
        allocations_left = -1;
        KeLowerIrql(old);
        assert_true(acquired);
        destroy(&p);
    }
}

/* 11: sections are those of the host's processor. Closed, the slots are those of any processor that the test pretends. */
static void close_sections(PEX_RUNDOWN_REF_CACHE_AWARE aware)
{
    ExRundownCompletedCacheAware(aware);
    ExReInitializeRundownProtectionCacheAware(aware);
}

static LONG_PTR holders_of(PEX_RUNDOWN_REF first)
{
    LONG_PTR all = 0;
    for (ULONG number = 0; number < KeNumberProcessors; number += 1) {
        all += (LONG_PTR)first[number * 8].Count / 2;
    }
    return all;
}

/* 11 and 12: holders that acquired by a section release by one or without, and a wait waits for them. */
static void test_sections(void **state)
{
    PEX_RUNDOWN_REF_CACHE_AWARE aware;
    PEX_RUNDOWN_REF first;
    protection p;
    actor single;
    (void)state;
    start_actor(&single);
    create(&p, TRUE);
    aware = p.aware;
    first = *(PEX_RUNDOWN_REF *)(PVOID)aware;
    for (ULONG life = 0; life < 3; life += 1) {
        assert_true(acquire(&p));
        assert_true(acquire_many(&p, 4));
        assert_int_equal(holders_of(first), 5);
        release_many(&p, 2);
        assert_int_equal(holders_of(first), 3);
        begin_waiting(&single, &p);
        assert_false(acquire(&p));
        release(&p);
        release(&p);
        assert_true(is_committed(single.thread));
        release(&p);
        await(is_idle(&single));
        assert_false(acquire(&p));
        ExReInitializeRundownProtectionCacheAware(aware);
    }
    destroy(&p);
    end_actor(&single);
}

/* 13: the inline functions and the exported ones may be mixed. */
static void test_inline_or_called(void **state)
{
    protection p;
    (void)state;
    create(&p, TRUE);
    PEX_RUNDOWN_REF first = *(PEX_RUNDOWN_REF *)(PVOID)p.aware;
    for (ULONG round = 0; round < 2; round += 1) {
        assert_true(ExAcquireRundownProtectionCacheAware(p.aware));
        assert_int_equal(holders_of(first), 1);
        (ExReleaseRundownProtectionCacheAware)(p.aware);
        assert_int_equal(holders_of(first), 0);
        assert_true((ExAcquireRundownProtectionCacheAware)(p.aware));
        assert_int_equal(holders_of(first), 1);
        ExReleaseRundownProtectionCacheAware(p.aware);
        assert_int_equal(holders_of(first), 0);
        close_sections(p.aware);
        assert_int_equal(p.aware->Area, 0);
    }
    await_release(&p);
    assert_false(ExAcquireRundownProtectionCacheAware(p.aware));
    assert_false((ExAcquireRundownProtectionCacheAware)(p.aware));
    destroy(&p);
}

/* 11: a thread on a processor that has no slot closes the sections and acquires. */
static void test_processor_without_slot(void **state)
{
    UCHAR memory[4 * 64] DECLSPEC_ALIGN(64);
    PEX_RUNDOWN_REF_CACHE_AWARE aware = (PVOID)memory;
    cpu_set_t all;
    LONG_PTR holders = 0;
    (void)state;
    memset(memory, 0xdd, sizeof(memory));
    ExInitializeRundownProtectionCacheAware(aware, 2 * 64);
    PEX_RUNDOWN_REF first = *(PEX_RUNDOWN_REF *)(PVOID)aware;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int number = 0; number < CPU_SETSIZE; number += 1) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(number, &one);
        if (CPU_ISSET(number, &all) && sched_setaffinity(0, sizeof(one), &one) == 0) {
            assert_true(ExAcquireRundownProtectionCacheAware(aware));
            holders += 1;
            assert_int_equal(first->Count, 2 * holders);
        }
    }
    sched_setaffinity(0, sizeof(all), &all);
    ExReleaseRundownProtectionCacheAwareEx(aware, (ULONG)holders);
    ExWaitForRundownProtectionReleaseCacheAware(aware);
    assert_false(ExAcquireRundownProtectionCacheAware(aware));
    for (UCHAR *behind = memory + 2 * 64; behind < memory + sizeof(memory); behind += 1) {
        assert_int_equal(*behind, 0xdd);
    }
}

/* Cache-aware 1 and 3: each processor has a line of its own, whatever the address of the memory. */
static void test_own_line(void **state)
{
    SIZE_T size = ExSizeOfRundownProtectionCacheAware();
    UCHAR *memory = malloc(size + 64);
    (void)state;
    for (ULONG offset = 0; offset < 64; offset += 8) {
        PEX_RUNDOWN_REF_CACHE_AWARE aware = (PVOID)(memory + offset);
        memset(memory, 0xa5, size + 64);
        ExInitializeRundownProtectionCacheAware(aware, size);
        close_sections(aware);
        PEX_RUNDOWN_REF first = *(PEX_RUNDOWN_REF *)(PVOID)aware;
        assert_int_equal((ULONG_PTR)first % 64, 0);
        assert_true((UCHAR *)first >= (UCHAR *)aware + sizeof(PVOID) + sizeof(ULONG));
        assert_true((UCHAR *)(first + KeNumberProcessors * 8) <= memory + offset + size);
        for (ULONG number = 0; number < KeNumberProcessors; number += 1) {
            pretend_processor(number);
            assert_true(ExAcquireRundownProtectionCacheAware(aware));
            assert_int_equal(first[number * 8].Count, 2);
        }
        believe_host();
        ExRundownCompletedCacheAware(aware);
    }
    free(memory);
}

static void initialize_without_room(void *argument)
{
    ExInitializeRundownProtectionCacheAware(argument, 24);
}

static void test_too_small(void **state)
{
    ULONG_PTR memory[8];
    (void)state;
    assert_int_equal(raised_by(initialize_without_room, memory), STATUS_INVALID_PARAMETER_2);
}

/* Cache-aware 2: acquired on one processor, released on another, before and after the wait begins. */
static void test_leave_elsewhere(void **state)
{
    protection p;
    actor single;
    (void)state;
    start_actor(&single);
    create(&p, TRUE);
    close_sections(p.aware);
    for (ULONG number = 0; number < 6; number += 1) {
        pretend_processor(number);
        assert_true(acquire(&p));
    }
    for (ULONG number = 0; number < 3; number += 1) {
        pretend_processor(KeNumberProcessors - 1 - number % KeNumberProcessors);
        release(&p);
    }
    begin_waiting(&single, &p);
    for (ULONG number = 0; number < 3; number += 1) {
        assert_true(is_committed(single.thread));
        pretend_processor(number * 7);
        assert_false(acquire(&p));
        release(&p);
    }
    await(is_idle(&single));
    believe_host();
    destroy(&p);
    end_actor(&single);
}

static void test_nothing_was_allocated(void **state)
{
    (void)state;
    assert_int_equal(allocations_refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_wait_lasts_until_last_holder),
        WATCHED(test_wait_without_holders),
        WATCHED(test_counts),
        WATCHED(test_several_waiters),
        WATCHED(test_not_touched_after_wake),
        WATCHED(test_word),
        cmocka_unit_test(test_misuse),
        WATCHED(test_at_dispatch_level),
        WATCHED(test_sections),
        WATCHED(test_inline_or_called),
        WATCHED(test_processor_without_slot),
        WATCHED(test_own_line),
        WATCHED(test_too_small),
        WATCHED(test_leave_elsewhere),
        cmocka_unit_test(test_nothing_was_allocated),
    };
    real_processor = HalDispatch.CurrentProcessor;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
