#include "machine.h"

#include "ke/irql.h"

static void levels_nest(void **state)
{
    (void)state;
    for (KIRQL low = PASSIVE_LEVEL; low <= HIGH_LEVEL; low++) {
        for (KIRQL high = low; high <= HIGH_LEVEL; high++) {
            KIRQL passive, old;

            KeRaiseIrql(low, &passive);
            assert_int_equal(passive, PASSIVE_LEVEL);
            assert_int_equal(KeGetCurrentIrql(), low);
            KeRaiseIrql(high, &old);
            assert_int_equal(old, low);
            assert_int_equal(KeGetCurrentIrql(), high);
            KeLowerIrql(old);
            assert_int_equal(KeGetCurrentIrql(), low);
            KeLowerIrql(passive);
            assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
        }
    }
}

static void named_levels(void **state)
{
    (void)state;
    assert_int_equal(KeRaiseIrqlToDpcLevel(), PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    assert_int_equal(KeRaiseIrqlToSynchLevel(), DISPATCH_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), SYNCH_LEVEL);
    KeLowerIrql(PASSIVE_LEVEL);
}

static void processor_is_owned_from_dispatch_level_on(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();

    (void)state;
    for (KIRQL level = PASSIVE_LEVEL; level <= HIGH_LEVEL; level++) {
        KIRQL old = KfRaiseIrql(level);

        if (level < DISPATCH_LEVEL) {
            assert_null(thread->Prcb);
        } else {
            assert_ptr_equal(KiOwnerThread(thread->Prcb->Owner), thread);
            assert_ptr_equal(thread->Prcb->CurrentThread, thread);
            assert_int_equal(KeGetCurrentProcessorNumber(), thread->Prcb->Number);
            assert_ptr_equal(KiProcessorBlock[thread->Prcb->Number], thread->Prcb);
        }
        KeLowerIrql(old);
        assert_null(thread->Prcb);
    }
    for (ULONG number = 0; number < KeNumberProcessors; number++)
        assert_int_equal(KiProcessorBlock[number]->Owner, 0);
}

static void raise_to(void *level)
{
    KfRaiseIrql(DISPATCH_LEVEL);
    KfRaiseIrql((KIRQL)(uintptr_t)level);
}

static void lower_to(void *level)
{
    KfRaiseIrql(DISPATCH_LEVEL);
    KfLowerIrql((KIRQL)(uintptr_t)level);
}

static void wrong_directions(void **state)
{
    (void)state;
    for (uintptr_t level = PASSIVE_LEVEL; level < DISPATCH_LEVEL; level++)
        expect_bugcheck(IRQL_NOT_GREATER_OR_EQUAL, raise_to, (void *)level);
    expect_bugcheck(IRQL_NOT_GREATER_OR_EQUAL, raise_to, (void *)(uintptr_t)(HIGH_LEVEL + 1));
    for (uintptr_t level = DISPATCH_LEVEL + 1; level <= HIGH_LEVEL + 1; level++)
        expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, lower_to, (void *)level);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_nest),
        cmocka_unit_test(named_levels),
        cmocka_unit_test(processor_is_owned_from_dispatch_level_on),
        cmocka_unit_test(wrong_directions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
