/* apc.c: APCs: special kernel, normal kernel, user; what disables them, and the end of their thread. */
#include "apctest.h"

#include <interlock/ps.h>

#include "../support/guarded.h"

static void test_initialize(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    KAPC apc;
    (void)state;
    memset(&apc, 0xff, sizeof(apc));
    KeInitializeApc(&apc, self, CurrentApcEnvironment, kernel_routine, rundown_routine, NULL, UserMode, self);
    assert_int_equal(apc.Type, ApcObject);
    assert_int_equal(apc.Size, sizeof(apc));
    assert_ptr_equal(apc.Thread, self);
    assert_int_equal(apc.ApcMode, KernelMode); /* a special one, whatever mode was requested */
    assert_null(apc.NormalContext);
    assert_int_equal(apc.ApcStateIndex, OriginalApcEnvironment);
    assert_false(apc.Inserted);
    KeInitializeApc(&apc, self, OriginalApcEnvironment, kernel_routine, NULL, normal_routine, UserMode, self);
    assert_int_equal(apc.ApcMode, UserMode);
    assert_ptr_equal(apc.NormalContext, self);
}

/* For the current thread, with nothing disabled, immediately: kernel routines at APC_LEVEL, others at PASSIVE_LEVEL. */
static void test_own_thread(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    test_apc special, normal;
    (void)state;
    clear_journal();
    queue_apc(&special, self, SPECIAL, 's');
    assert_string_equal(journal, "s");
    queue_apc(&normal, self, NORMAL, 'n');
    assert_string_equal(journal, "snN");
    assert_int_equal(special.kernel_irql, APC_LEVEL);
    assert_int_equal(normal.kernel_irql, APC_LEVEL);
    assert_int_equal(normal.normal_irql, PASSIVE_LEVEL);
    assert_ptr_equal(normal.argument1, (PVOID)1);
    assert_ptr_equal(normal.argument2, (PVOID)2);
    assert_ptr_equal(normal.context, &normal);
    assert_ptr_equal(normal.ran_on, self);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static void test_barriers(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    (void)state;
    assert_false(KeAreApcsDisabled());
    assert_false(KeAreAllApcsDisabled());
    for (ULONG i = 0; i < ARRAYSIZE(barriers); i += 1) {
        const struct barrier *b = &barriers[i];
        test_apc special, normal;
        print_message("# %s\n", b->name);
        clear_journal();
        b->enter();
        BOOLEAN disabled = KeAreApcsDisabled();
        BOOLEAN all_disabled = KeAreAllApcsDisabled();
        make_apc(&normal, self, NORMAL, 'n');
        make_apc(&special, self, SPECIAL, 's');
        BOOLEAN inserted = insert(&normal) && insert(&special);
        ULONG ran_inside = notes();
        b->leave();
        assert_true(inserted);
        assert_int_equal(disabled, b->apcs_disabled);
        assert_int_equal(all_disabled, b->all_apcs_disabled);
        assert_int_equal(ran_inside, b->holds_special ? 0 : 1);
        assert_string_equal(journal, "snN");
        assert_false(KeAreApcsDisabled());
        assert_false(KeAreAllApcsDisabled());
    }
}

/* Leaving the guarded region inside a critical one lets the special ones run, and only those. */
static void test_guarded_in_critical(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    test_apc special, normal;
    (void)state;
    clear_journal();
    KeEnterCriticalRegion();
    KeEnterGuardedRegion();
    queue_apc(&normal, self, NORMAL, 'n');
    queue_apc(&special, self, SPECIAL, 's');
    assert_int_equal(notes(), 0);
    KeLeaveGuardedRegion();
    assert_string_equal(journal, "s");
    KeLeaveCriticalRegion();
    assert_string_equal(journal, "snN");
}

/* A mutex is such a barrier for normal APCs. */
static void test_mutex_is_a_barrier(void **state)
{
    KMUTEX mutex;
    test_apc special, normal;
    (void)state;
    clear_journal();
    KeInitializeMutex(&mutex, 0);
    wait_for(&mutex, NULL);
    wait_for(&mutex, NULL);
    queue_apc(&normal, KeGetCurrentThread(), NORMAL, 'n');
    queue_apc(&special, KeGetCurrentThread(), SPECIAL, 's');
    KeReleaseMutex(&mutex, FALSE);
    assert_string_equal(journal, "s");
    KeReleaseMutex(&mutex, FALSE);
    assert_string_equal(journal, "snN");
}

/* Special ones before normal ones, each kind in the order of insertion. */
static void test_order(void **state)
{
    static const struct {
        apc_kind kind;
        char letter;
    } inserted[] = {{NORMAL, 'a'}, {SPECIAL, 'b'}, {NORMAL, 'c'}, {SPECIAL, 'd'}, {SPECIAL, 'e'}, {NORMAL, 'f'}};
    test_apc apcs[ARRAYSIZE(inserted)];
    (void)state;
    clear_journal();
    KeEnterGuardedRegion();
    for (ULONG i = 0; i < ARRAYSIZE(inserted); i += 1) {
        queue_apc(&apcs[i], KeGetCurrentThread(), inserted[i].kind, inserted[i].letter);
    }
    KeLeaveGuardedRegion();
    assert_string_equal(journal, "bdeaAcCfF");
}

/* The kernel routine may clear the normal routine. */
/* A special one goes behind the last special one without reading the others, of either kind, which would fault. */
static void test_order_among_many(void **state)
{
    enum { EACH = 8 };
    PKTHREAD self = KeGetCurrentThread();
    guarded apcs = guarded_items(2 * EACH);
    test_apc special[3];
    (void)state;
    clear_journal();
    KeEnterGuardedRegion();
    /* Item 0 is the first normal one, item EACH the last special one, and the last item the first: those stay open. */
    for (ULONG i = 0; i < EACH; i += 1) {
        queue_apc(guarded_item(&apcs, 2 * EACH - 1 - i), self, SPECIAL, (char)('a' + i));
        queue_apc(guarded_item(&apcs, i), self, NORMAL, (char)('m' + i));
    }
    assert_int_equal(mprotect(guarded_item(&apcs, 1), (EACH - 1) * apcs.page, PROT_NONE), 0);
    assert_int_equal(mprotect(guarded_item(&apcs, EACH + 1), (EACH - 2) * apcs.page, PROT_NONE), 0);
    for (int round = 0; round < 2; round += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(special); i += 1) {
            queue_apc(&special[i], self, SPECIAL, (char)('x' + i));
        }
        if (round == 0) {
            assert_true(KeRemoveQueueApc(&special[1].apc));
            assert_true(KeRemoveQueueApc(&special[2].apc));
            assert_true(KeRemoveQueueApc(&special[0].apc));
        }
    }
    unguard(&apcs);
    KeLeaveGuardedRegion();
    assert_string_equal(journal, "abcdefghxyzmMnNoOpPqQrRsStT");
    free_guarded(&apcs);
}

static void test_kernel_routine_drops_the_normal_one(void **state)
{
    static const apc_kind apc_kinds[] = {NORMAL, USER};
    KEVENT event;
    (void)state;
    KeInitializeEvent(&event, NotificationEvent, TRUE);
    for (ULONG i = 0; i < ARRAYSIZE(apc_kinds); i += 1) {
        test_apc a;
        clear_journal();
        make_apc(&a, KeGetCurrentThread(), apc_kinds[i], 'a');
        a.drop_normal = TRUE;
        assert_true(insert(&a));
        if (apc_kinds[i] == USER) {
            wait_call call = {.count = 1, .object = {&event}, .mode = UserMode, .alertable = TRUE};
            assert_int_equal(perform(&call), STATUS_USER_APC);
        }
        assert_string_equal(journal, "a");
    }
}

/* An APC is queued at most once, and can be queued again from its own routine, by when it is out of the queue. */

static void insert_again(test_apc *a)
{
    a->during = NULL;
    check(insert(a));
    check(!insert(a));
}

static void test_insert_twice(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    test_apc a;
    (void)state;
    clear_journal();
    KeEnterGuardedRegion();
    queue_apc(&a, self, NORMAL, 'a');
    assert_true(a.apc.Inserted);
    assert_false(KeInsertQueueApc(&a.apc, (PVOID)3, (PVOID)4, 0));
    assert_ptr_equal(a.apc.SystemArgument1, (PVOID)1);
    KeLeaveGuardedRegion();
    assert_string_equal(journal, "aA");
    assert_false(a.apc.Inserted);
    assert_true(insert(&a));
    assert_string_equal(journal, "aAaA");

    clear_journal();
    make_apc(&a, self, NORMAL, 'b');
    a.during = insert_again;
    assert_true(insert(&a));
    assert_string_equal(journal, "bBbB");
}

static void test_remove(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    static const apc_kind apc_kinds[] = {SPECIAL, NORMAL, USER};
    (void)state;
    clear_journal();
    for (ULONG i = 0; i < ARRAYSIZE(apc_kinds); i += 1) {
        test_apc a;
        make_apc(&a, self, apc_kinds[i], 'a');
        assert_false(KeRemoveQueueApc(&a.apc));
        KeEnterGuardedRegion();
        assert_true(insert(&a));
        assert_true(KeRemoveQueueApc(&a.apc));
        assert_false(a.apc.Inserted);
        assert_false(KeRemoveQueueApc(&a.apc));
        KeLeaveGuardedRegion();
        assert_int_equal(notes(), 0);
        assert_int_equal(self->WaitRegister & (KI_WAIT_APC | KI_WAIT_SPECIAL_APC | KI_WAIT_USER_APC), 0);
    }
}

/* Normal APCs do not interrupt each other; special ones interrupt normal ones. */

static void queue_inner_and_wait(test_apc *a)
{
    test_apc *inner = a->data;
    KEVENT event;
    LARGE_INTEGER time = relative(MILLISECOND);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    check(insert(&inner[0]));
    check(insert(&inner[1]));
    check(wait_for(&event, &time) == STATUS_TIMEOUT);
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
    note('-');
}

static void test_nesting(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    test_apc outer, inner[2];
    (void)state;
    clear_journal();
    make_apc(&outer, self, NORMAL, 'o');
    make_apc(&inner[0], self, NORMAL, 'n');
    make_apc(&inner[1], self, SPECIAL, 's');
    outer.data = inner;
    outer.during = queue_inner_and_wait;
    assert_true(insert(&outer));
    assert_string_equal(journal, "os-OnN");
    assert_false(self->ApcState.KernelApcInProgress);
}

/* A thread that has ended takes no APCs, and those that it had are run down. */

static void enter_guarded_region(void *argument)
{
    (void)argument;
    KeEnterGuardedRegion();
}

static void test_end_of_a_thread(void **state)
{
    actor ending = {0};
    test_apc special, normal, user, late;
    (void)state;
    clear_journal();
    start_actor(&ending);
    assert_int_equal(ObReferenceObjectByPointer(ending.thread, SYNCHRONIZE, *PsThreadType, KernelMode), STATUS_SUCCESS);
    run_on(&ending, enter_guarded_region, NULL);
    queue_apc(&special, ending.thread, SPECIAL, 's');
    queue_apc(&normal, ending.thread, NORMAL, 'n');
    queue_apc(&user, ending.thread, USER, 'u');
    PKTHREAD thread = ending.thread;
    end_actor(&ending);
    assert_int_equal(state_of(thread), 1);
    assert_string_equal(journal, "!s!n!u");
    make_apc(&late, thread, NORMAL, 'l');
    assert_false(insert(&late));
    make_apc(&late, thread, USER, 'l');
    assert_false(insert(&late));
    assert_false(late.apc.Inserted);
    ObDereferenceObject(thread);
}

/* Kernel APCs that may run are run, not run down. */
static void test_end_of_a_thread_that_may_run_them(void **state)
{
    actor ending = {0};
    test_apc normal, user;
    (void)state;
    clear_journal();
    start_actor(&ending);
    queue_apc(&normal, ending.thread, NORMAL, 'n');
    queue_apc(&user, ending.thread, USER, 'u');
    end_actor(&ending);
    assert_string_equal(journal, "nN!u");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_initialize),
        WATCHED(test_own_thread),
        WATCHED(test_barriers),
        WATCHED(test_guarded_in_critical),
        WATCHED(test_mutex_is_a_barrier),
        WATCHED(test_order),
        WATCHED(test_order_among_many),
        WATCHED(test_kernel_routine_drops_the_normal_one),
        WATCHED(test_insert_twice),
        WATCHED(test_remove),
        WATCHED(test_nesting),
        WATCHED(test_end_of_a_thread),
        WATCHED(test_end_of_a_thread_that_may_run_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
