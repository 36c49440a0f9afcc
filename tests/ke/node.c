/* Nodes of memory, callbacks for processors, yielding, calls with a larger stack, saved state. */
#include <interlock/ke.h>

#include "ke/ki.h"
#include "support.h"

#include <string.h>

static void nodes_have_all_processors(void **state)
{
    USHORT highest = KeQueryHighestNodeNumber();
    ULONG total = 0;
    KAFFINITY seen[INTERLOCK_MAXIMUM_PROCESSORS / 64] = {0};

    (void)state;
    for (USHORT node = 0; node <= highest; node++) {
        GROUP_AFFINITY affinities[INTERLOCK_MAXIMUM_PROCESSORS / 64], first;
        USHORT groups, count;
        USHORT processors = KeQueryNodeActiveProcessorCount(node);

        assert_int_equal(processors, KeQueryNodeMaximumProcessorCount(node));
        assert_int_equal(KeQueryNodeActiveAffinity2(node, affinities, ARRAYSIZE(affinities), &groups), STATUS_SUCCESS);
        for (USHORT i = 0; i < groups; i++) {
            assert_true(affinities[i].Mask != 0);
            assert_int_equal(seen[affinities[i].Group] & affinities[i].Mask, 0);
            seen[affinities[i].Group] |= affinities[i].Mask;
            processors -= (USHORT)__builtin_popcountll(affinities[i].Mask);
        }
        assert_int_equal(processors, 0);
        if (groups != 0) {
            assert_int_equal(KeQueryNodeActiveAffinity2(node, affinities, (USHORT)(groups - 1), &groups),
                             STATUS_BUFFER_TOO_SMALL);
        }
        KeQueryNodeActiveAffinity(node, &first, &count);
        assert_int_equal(count, __builtin_popcountll(first.Mask));
        KeQueryNodeActiveAffinity(node, NULL, NULL);
        total += KeQueryNodeActiveProcessorCount(node);
    }
    assert_int_equal(total, KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS));
    for (USHORT group = 0; group < KeQueryActiveGroupCount(); group++)
        assert_int_equal(seen[group], KeQueryGroupAffinity(group));
}

static void no_such_node(void **state)
{
    USHORT beyond = (USHORT)(KeQueryHighestNodeNumber() + 1), groups = 7, count = 7;
    GROUP_AFFINITY affinity = {.Mask = 7};

    (void)state;
    assert_int_equal(KeQueryNodeActiveAffinity2(beyond, &affinity, 1, &groups), STATUS_INVALID_PARAMETER);
    assert_int_equal(KeQueryNodeActiveProcessorCount(beyond), 0);
    KeQueryNodeActiveAffinity(beyond, &affinity, &count);
    assert_int_equal(count, 0);
    assert_int_equal(affinity.Mask, 0);
}

static void current_node(void **state)
{
    KIRQL old;
    GROUP_AFFINITY affinity;
    PROCESSOR_NUMBER number;

    (void)state;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_int_equal(KeGetCurrentProcessorIndex(), KeGetCurrentProcessorNumberEx(&number));
    KeQueryNodeActiveAffinity(KeGetCurrentNodeNumber(), &affinity, NULL);
    if (affinity.Group == number.Group)
        assert_true((affinity.Mask >> number.Number & 1) != 0);
    KeLowerIrql(old);
}

struct changes {
    ULONG refused;
    ULONG calls[3]; /* by state */
    ULONG next[3];
};

static VOID note_change(PVOID context, PKE_PROCESSOR_CHANGE_NOTIFY_CONTEXT change, PNTSTATUS status)
{
    struct changes *changes = context;

    assert_int_equal(change->NtNumber, changes->next[change->State]++);
    assert_int_equal(KeGetProcessorIndexFromNumber(&change->ProcNumber), change->NtNumber);
    changes->calls[change->State]++;
    if (change->State == KeProcessorAddStartNotify && change->NtNumber == changes->refused)
        *status = STATUS_INSUFFICIENT_RESOURCES;
    if (change->State == KeProcessorAddFailureNotify)
        assert_int_equal(change->Status, STATUS_INSUFFICIENT_RESOURCES);
}

static void processor_changes(void **state)
{
    ULONG count = KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS);
    struct changes changes = {.refused = MAXULONG};
    PVOID handle;

    (void)state;
    handle = KeRegisterProcessorChangeCallback(note_change, &changes, 0);
    assert_non_null(handle);
    assert_int_equal(changes.calls[KeProcessorAddStartNotify], 0);
    KeDeregisterProcessorChangeCallback(handle);

    handle = KeRegisterProcessorChangeCallback(note_change, &changes, KE_PROCESSOR_CHANGE_ADD_EXISTING);
    assert_non_null(handle);
    assert_int_equal(changes.calls[KeProcessorAddStartNotify], count);
    assert_int_equal(changes.calls[KeProcessorAddCompleteNotify], count);
    assert_int_equal(changes.calls[KeProcessorAddFailureNotify], 0);
    KeDeregisterProcessorChangeCallback(handle);

    changes = (struct changes){.refused = count - 1};
    assert_null(KeRegisterProcessorChangeCallback(note_change, &changes, KE_PROCESSOR_CHANGE_ADD_EXISTING));
    assert_int_equal(changes.calls[KeProcessorAddCompleteNotify], 0);
    assert_int_equal(changes.calls[KeProcessorAddFailureNotify], count);
    changes = (struct changes){.refused = 0};
    assert_null(KeRegisterProcessorChangeCallback(note_change, &changes, KE_PROCESSOR_CHANGE_ADD_EXISTING));
    assert_int_equal(changes.calls[KeProcessorAddStartNotify], 1);
    assert_int_equal(changes.calls[KeProcessorAddFailureNotify], 1);
    assert_null(KeRegisterProcessorChangeCallback(note_change, &changes, 2));
}

static VOID nothing(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument1;
    (void)argument2;
}

static void yielding(void **state)
{
    KDPC dpc;
    KIRQL old;

    (void)state;
    assert_int_equal(KeShouldYieldProcessor(), 0);
    KeInitializeDpc(&dpc, nothing, NULL);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_int_equal(KeShouldYieldProcessor(), 0);
    KeInsertQueueDpc(&dpc, NULL, NULL);
    assert_int_not_equal(KeShouldYieldProcessor(), 0);
    KeRemoveQueueDpc(&dpc);
    assert_int_equal(KeShouldYieldProcessor(), 0);
    KeLowerIrql(old);
}

static VOID use_stack(PVOID parameter)
{
    volatile UCHAR room[MAXIMUM_EXPANSION_SIZE];

    memset((void *)(ULONG_PTR)room, 1, sizeof(room));
    *(ULONG *)parameter += room[sizeof(room) - 1];
}

static void expand_and_wait_at_dispatch_level(void *unused)
{
    (void)unused;
    KfRaiseIrql(DISPATCH_LEVEL);
    KeExpandKernelStackAndCalloutEx(use_stack, unused, 4096, TRUE, NULL);
}

static void much_stack(void **state)
{
    ULONG calls = 0;
    KIRQL old;

    (void)state;
    assert_int_equal(KeExpandKernelStackAndCallout(use_stack, &calls, MAXIMUM_EXPANSION_SIZE), STATUS_SUCCESS);
    assert_int_equal(calls, 1);
    assert_int_equal(KeExpandKernelStackAndCallout(use_stack, &calls, MAXIMUM_EXPANSION_SIZE + 1),
                     STATUS_INVALID_PARAMETER_3);
    assert_int_equal(calls, 1);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_int_equal(KeExpandKernelStackAndCalloutEx(use_stack, &calls, 4096, FALSE, NULL), STATUS_SUCCESS);
    KeLowerIrql(old);
    assert_int_equal(calls, 2);
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, expand_and_wait_at_dispatch_level, NULL);
}

static void restore_at_another_level(void *unused)
{
    XSTATE_SAVE save;

    (void)unused;
    KeSaveExtendedProcessorState(XSTATE_MASK_LEGACY, &save);
    KfRaiseIrql(DISPATCH_LEVEL);
    KeRestoreExtendedProcessorState(&save);
}

static void saved_state(void **state)
{
    KFLOATING_SAVE floating;
    XSTATE_SAVE extended;
    KIRQL old;

    (void)state;
    assert_int_equal(KeSaveFloatingPointState(&floating), STATUS_SUCCESS);
    assert_int_equal(KeRestoreFloatingPointState(&floating), STATUS_SUCCESS);
    assert_int_equal(KeRestoreFloatingPointState(&floating), STATUS_UNSUCCESSFUL);
    assert_int_equal(KeSaveFloatingPointState(&floating), STATUS_SUCCESS);
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_int_equal(KeRestoreFloatingPointState(&floating), STATUS_UNSUCCESSFUL);
    assert_int_equal(KeSaveExtendedProcessorState(XSTATE_MASK_AVX, &extended), STATUS_SUCCESS);
    assert_ptr_equal(extended.Thread, KeGetCurrentThread());
    KeRestoreExtendedProcessorState(&extended);
    KeLowerIrql(old);
    expect_bugcheck(IRQL_UNEXPECTED_VALUE, restore_at_another_level, NULL);
}

static void unbiased_time(void **state)
{
    ULONG64 counter;
    ULONGLONG before = KeQueryUnbiasedInterruptTime();
    ULONGLONG precise = KeQueryUnbiasedInterruptTimePrecise(&counter);

    (void)state;
    assert_true(before <= precise && precise <= KeQueryUnbiasedInterruptTime());
    assert_true(counter != 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_all_processors),
        cmocka_unit_test(no_such_node),
        cmocka_unit_test(current_node),
        cmocka_unit_test(processor_changes),
        cmocka_unit_test(yielding),
        cmocka_unit_test(much_stack),
        cmocka_unit_test(saved_state),
        cmocka_unit_test(unbiased_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
