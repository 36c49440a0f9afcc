/* KGATE: the first waiter passes, with a boost if the gate is a locking one. */
#include "waittest.h"

#define BASE 8
#define OWN_PRIORITY 12

typedef struct gate_waiter {
    actor actor;
    PKGATE gate;
    NTSTATUS status;
} gate_waiter;

static void wait_for_gate(void *argument)
{
    gate_waiter *g = argument;
    g->status = KeWaitForGate(g->gate, WrGuardedMutex, KernelMode);
}

static void begin_gate_wait(gate_waiter *g)
{
    tell(&g->actor, wait_for_gate, g);
    await(is_committed(g->actor.thread));
}

static void test_signal_is_kept_for_one(void **state)
{
    KGATE gate;
    (void)state;
    KeInitializeGate(&gate);
    assert_false(poll_object(&gate));
    KeSignalGate(&gate);
    KeSignalGate(&gate);
    assert_int_equal(state_of(&gate), 1);
    assert_int_equal(KeWaitForGate(&gate, WrGuardedMutex, KernelMode), STATUS_SUCCESS);
    assert_int_equal(state_of(&gate), 0);
    assert_false(poll_object(&gate));
    KeSignalGateBoostPriority(&gate);
    assert_true(poll_object(&gate));
    assert_false(poll_object(&gate));
}

static void run_gate(BOOLEAN boost)
{
    PKTHREAD self = KeGetCurrentThread();
    gate_waiter g[2];
    KGATE gate = {.Header = {.Signalling = 0}};
    KeInitializeGate(&gate);
    memset(g, 0, sizeof(g));
    KPRIORITY before = KeSetPriorityThread(self, OWN_PRIORITY);
    for (ULONG i = 0; i < 2; i += 1) {
        g[i].gate = &gate;
        start_actor(&g[i].actor);
        begin_gate_wait(&g[i]);
        assert_int_equal(g[i].actor.thread->WaitReason, WrGuardedMutex);
    }
    for (ULONG i = 0; i < 2; i += 1) {
        if (boost) {
            KeSignalGateBoostPriority(&gate);
        } else {
            KeSignalGate(&gate);
        }
        assert_int_equal(gate.Header.Signalling, boost);
        assert_int_equal(priority_of(g[i].actor.thread), boost ? OWN_PRIORITY : BASE);
        await(is_idle(&g[i].actor));
        assert_int_equal(g[i].status, STATUS_SUCCESS);
        assert_int_equal(state_of(&gate), 0);
        if (i == 0) {
            assert_true(is_committed(g[1].actor.thread));
            assert_int_equal(priority_of(g[1].actor.thread), BASE);
        }
    }
    assert_true(has_no_waiters(&gate));
    KeSetPriorityThread(self, before);
    end_actor(&g[0].actor);
    end_actor(&g[1].actor);
}

static void test_signaling_gate(void **state)
{
    (void)state;
    run_gate(FALSE);
}

static void test_locking_gate(void **state)
{
    (void)state;
    run_gate(TRUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_signal_is_kept_for_one),
        WATCHED(test_signaling_gate),
        WATCHED(test_locking_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
