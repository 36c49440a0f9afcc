/* The lock of a world, its journal and its records; the owner is killed anywhere. */
#include "wotest.h"

#include <sys/time.h>

#define WORLD_SIZE (1024 * 1024)

typedef struct accounts {
    WO_RECORD Record;
    ULONG64 Balance[6];
    ULONG64 Transfers;
} accounts;

static WO_VIEW view;
static WO_INDEX account;

static int set_up(void **state)
{
    (void)state;
    make_world(&view, WORLD_SIZE);
    assert_true(WopLock(&view));
    WopBegin(&view);
    account = WopAllocate(&view, WoTicketRecord, sizeof(accounts));
    assert_int_not_equal(account, 0);
    WopCommit(&view);
    WopUnlock(&view);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    delete_world(&view);
    return 0;
}

static accounts *the_accounts(void)
{
    return WopRecord(&view, account, WoTicketRecord);
}

static ULONG64 total(void)
{
    accounts *a = the_accounts();
    ULONG64 sum = 0;
    for (unsigned i = 0; i < RTL_NUMBER_OF(a->Balance); i++)
        sum += a->Balance[i];
    return sum;
}

static void transfer(WO_VIEW *v, accounts *a, unsigned from, unsigned to)
{
    WopBegin(v);
    WopEdit(v, &a->Balance[from], a->Balance[from] - 1);
    WopEdit(v, &a->Balance[to], a->Balance[to] + 1);
    WopEdit(v, &a->Transfers, a->Transfers + 1);
    WopCommit(v);
}

static void a_commit_stays_and_a_cancel_goes(void **state)
{
    (void)state;
    accounts *a = the_accounts();
    assert_true(WopLock(&view));
    transfer(&view, a, 0, 1);
    WopBegin(&view);
    WopEdit(&view, &a->Balance[2], 7);
    WopEdit(&view, &a->Balance[2], 8);
    WopEditUlong(&view, (PULONG)&a->Balance[3] + 1, 9);
    assert_int_equal(a->Balance[3], 9ull << 32);
    WopCancel(&view);
    WopUnlock(&view);
    assert_int_equal(a->Balance[1], 1);
    assert_int_equal(a->Balance[2], 0);
    assert_int_equal(a->Balance[3], 0);
    assert_int_equal(view.World->Lock, 0);
    assert_int_equal(view.World->Phase, WoPhaseIdle);
}

static void records_are_reused(void **state)
{
    (void)state;
    ULONG64 used = view.World->Used;
    ULONG64 top = 0;
    for (unsigned round = 0; round < 3; round++) {
        WO_INDEX index[WO_CLASSES];
        assert_true(WopLock(&view));
        for (unsigned class = 0; class < WO_CLASSES; class++) {
            WopBegin(&view);
            index[class] = WopAllocate(&view, WoTicketRecord, (size_t)WO_UNIT << class);
            assert_int_not_equal(index[class], 0);
            for (size_t i = sizeof(WO_RECORD); i < (size_t)WO_UNIT << class; i++)
                assert_int_equal(((PUCHAR)WopAt(&view, index[class]))[i], 0);
            memset((PUCHAR)WopAt(&view, index[class]) + sizeof(WO_RECORD), 0xa5,
                   ((size_t)WO_UNIT << class) - sizeof(WO_RECORD));
            WopCommit(&view);
        }
        WopBegin(&view);
        assert_int_equal(WopAllocate(&view, WoTicketRecord, ((size_t)WO_UNIT << (WO_CLASSES - 1)) + 1), 0);
        for (unsigned class = 0; class < WO_CLASSES; class++)
            WopFree(&view, index[class]);
        WopCommit(&view);
        WopUnlock(&view);
        assert_int_equal(view.World->Used, used);
        assert_true(top == 0 || top == view.World->Top);
        top = view.World->Top;
    }
}

/* What a canceled transaction had freed and allocated again would come back empty. */
static void a_freed_record_is_not_reused_in_its_own_transaction(void **state)
{
    (void)state;
    the_accounts()->Balance[0] = 5;
    assert_true(WopLock(&view));
    WopBegin(&view);
    WopFree(&view, account);
    WO_INDEX other = WopAllocate(&view, WoTicketRecord, sizeof(accounts));
    assert_int_not_equal(other, 0);
    assert_int_not_equal(other, account);
    WopCancel(&view);
    WopUnlock(&view);
    assert_int_equal(the_accounts()->Balance[0], 5);
}

static void a_world_without_room_refuses(void **state)
{
    (void)state;
    ULONG64 count = 0;
    assert_true(WopLock(&view));
    WopBegin(&view);
    while (WopAllocate(&view, WoTicketRecord, 65536) != 0)
        count++;
    WopCancel(&view);
    WopUnlock(&view);
    assert_in_range(count, 5, WORLD_SIZE / 65536);
    assert_false(WoIsPoisoned(&view));
    assert_int_equal(view.World->Used, 64);
}

static void make_waiter(WO_INDEX *index)
{
    assert_true(WopLock(&view));
    WopBegin(&view);
    *index = WopAllocate(&view, WoWaiterRecord, sizeof(WO_WAITER));
    WopCommit(&view);
    WopUnlock(&view);
}

static void claims_are_granted_or_taken_back(void **state)
{
    (void)state;
    WO_INDEX index;
    make_waiter(&index);
    PWO_WAITER waiter = WopRecord(&view, index, WoWaiterRecord);
    waiter->State = 0x700 | WoWaiting;
    assert_true(WopLock(&view));
    WopBegin(&view);
    assert_true(WopClaim(&view, waiter, STATUS_WAIT_1));
    assert_int_equal(waiter->State, 0x700 | WoClaimed);
    WopCancel(&view);
    assert_int_equal(waiter->State, 0x700 | WoWaiting);
    assert_int_equal(waiter->Recheck, 1);
    ULONG wakes = waiter->WakeWord;
    assert_int_not_equal(wakes, 0);
    WopBegin(&view);
    assert_true(WopClaim(&view, waiter, STATUS_WAIT_1));
    assert_false(WopClaim(&view, waiter, STATUS_WAIT_1));
    WopCommit(&view);
    assert_int_equal(waiter->State, 0x700 | WoGranted);
    assert_int_equal(waiter->Status, STATUS_WAIT_1);
    assert_int_not_equal(waiter->WakeWord, wakes);
    waiter->State = 0x800 | WoLocallyEnded;
    WopBegin(&view);
    assert_false(WopClaim(&view, waiter, STATUS_WAIT_0));
    WopCommit(&view);
    assert_int_equal(waiter->State, 0x800 | WoLocallyEnded);
    WopUnlock(&view);
}

static void die_with_a_claim(WO_VIEW *v, void *commits)
{
    PWO_WAITER waiter = WopRecord(v, *(WO_INDEX *)commits, WoWaiterRecord);
    assert_true(WopLock(v));
    WopBegin(v);
    assert_true(WopClaim(v, waiter, STATUS_WAIT_2));
    if (waiter->Count == 1)
        v->World->Phase = WoPhaseFinishing;
    raise(SIGKILL);
}

/* Undone before the commit, carried out after it. */
static void the_repairer_decides_as_the_dead_owner_did(void **state)
{
    (void)state;
    WO_INDEX index;
    make_waiter(&index);
    PWO_WAITER waiter = WopRecord(&view, index, WoWaiterRecord);
    for (UCHAR committed = 0; committed < 2; committed++) {
        waiter->State = 0x100 | WoWaiting;
        waiter->Count = committed;
        await_process(start_process(&view, die_with_a_claim, &index));
        assert_int_equal(waiter->State, 0x100 | WoClaimed);
        assert_true(WopLock(&view));
        assert_int_equal(waiter->State, 0x100 | (committed ? WoGranted : WoWaiting));
        WopUnlock(&view);
    }
}

static void transfer_for_ever(WO_VIEW *v, void *argument)
{
    test_random random;
    accounts *a = the_accounts();
    random_seed(&random, (uint64_t)getpid());
    (void)argument;
    for (;;) {
        if (!WopLock(v))
            _exit(1);
        transfer(v, a, random_below(&random, 6), random_below(&random, 6));
        if (random_below(&random, 4) == 0) {
            WopBegin(v);
            WO_INDEX index = WopAllocate(v, WoTicketRecord, (size_t)WO_UNIT << random_below(&random, 3));
            WopCommit(v);
            WopBegin(v);
            WopFree(v, index);
            WopCommit(v);
        }
        WopUnlock(v);
    }
}

/* One process is killed repeatedly while another continues. */
static void killed_owners_leave_whole_transactions(void **state)
{
    (void)state;
    unsigned long rounds = test_rounds(2000);
    test_random random;
    random_seed(&random, 1);
    pid_t other = start_process(&view, transfer_for_ever, NULL);
    ULONG64 leaked = 0;
    watchdog_start(120);
    for (unsigned long round = 0; round < rounds; round++) {
        pid_t child = start_process(&view, transfer_for_ever, NULL);
        nap((long)random_below(&random, 700) * MICROSECOND);
        kill_process(child);
        assert_true(WopLock(&view));
        assert_int_equal(total(), 0);
        leaked = view.World->Used - WO_UNIT * 1;
        WopUnlock(&view);
    }
    kill_process(other);
    assert_true(WopLock(&view));
    WopUnlock(&view);
    watchdog_stop();
    assert_int_equal(total(), 0);
    assert_true(the_accounts()->Transfers > rounds);
    /* a record is lost only between the two transactions of the test itself */
    assert_true(leaked <= rounds * 4 * WO_UNIT);
    assert_false(WoIsPoisoned(&view));
}

static void hold_and_stop(WO_VIEW *v, void *argument)
{
    (void)argument;
    assert_true(WopLock(v));
    raise(SIGSTOP);
    the_accounts()->Balance[0] = 1;
    WopUnlock(v);
}

/* The others wait for it and do not take the lock from it. */
static void a_stopped_owner_keeps_the_lock(void **state)
{
    (void)state;
    pid_t child = start_process(&view, hold_and_stop, NULL);
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    pid_t continuer = fork();
    if (continuer == 0) {
        nap(60000 * MICROSECOND);
        kill(child, SIGCONT);
        _exit(0);
    }
    assert_true(WopLock(&view));
    assert_int_equal(the_accounts()->Balance[0], 1);
    WopUnlock(&view);
    await_process(child);
    await_process(continuer);
}

static char said[400];
static pid_t stopped;

/* Continues the owner when the thread that waits has said that it waits. */
static void continue_when_told(void *argument, unsigned index)
{
    (void)argument;
    if (index == 0) {
        HalCapturePrint(said, sizeof(said));
        assert_true(WopLock(&view));
        WopUnlock(&view);
        HalCapturePrint(NULL, 0);
    } else {
        while (!__atomic_load_n(&view.ToldStuck, __ATOMIC_RELAXED))
            nap(1000 * MICROSECOND);
        kill(stopped, SIGCONT);
    }
}

static void who_keeps_the_lock_for_long_is_named(void **state)
{
    char name[40];
    (void)state;
    stopped = start_process(&view, hold_and_stop, NULL);
    assert_int_equal(waitpid(stopped, NULL, WUNTRACED), stopped);
    run_threads(2, 60, continue_when_told, NULL);
    await_process(stopped);
    snprintf(name, sizeof(name), "process %d has kept", (int)stopped);
    assert_non_null(strstr(said, name));
}

static void die_with_the_lock(WO_VIEW *v, void *argument)
{
    (void)argument;
    assert_true(WopLock(v));
    raise(SIGKILL);
}

static void ignore_signal(int number)
{
    (void)number;
}

/* Each signal ends the waiter's sleep long before its nap is over. */
static void signals_do_not_keep_a_dead_owner_alive(void **state)
{
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = ignore_signal}, before;
    (void)state;
    await_process(start_process(&view, die_with_the_lock, NULL));
    sigaction(SIGALRM, &action, &before);
    watchdog_start(60);
    setitimer(ITIMER_REAL, &every, NULL);
    bool locked = WopLock(&view);
    setitimer(ITIMER_REAL, &never, NULL);
    watchdog_stop();
    sigaction(SIGALRM, &before, NULL);
    assert_true(locked);
    WopUnlock(&view);
}

static void corrupt(void (*change)(PWO_WORLD world), bool survives)
{
    WO_VIEW v;
    make_world(&v, WORLD_SIZE);
    change(v.World);
    v.World->Lock = 1ull << HAL_PROCESS_ID_BITS | 4194303; /* owned by no process */
    watchdog_start(20);
    bool locked = WopLock(&v);
    watchdog_stop();
    assert_int_equal(locked, survives);
    assert_int_equal(WoIsPoisoned(&v), !survives);
    assert_int_equal(v.World->State == WoDamaged, !survives);
    if (locked)
        WopUnlock(&v);
    assert_int_equal(WopLock(&v), survives);
    if (survives)
        WopUnlock(&v);
    delete_world(&v);
}

static void nothing(PWO_WORLD w) { w->LockWake = 99; }
static void wrong_phase(PWO_WORLD w) { w->Phase = 17; }
static void wrong_edits(PWO_WORLD w) { w->Phase = WoPhaseEditing, w->Edits = WO_JOURNAL + 1; }
static void wrong_offset(PWO_WORLD w) { w->Phase = WoPhaseEditing, w->Edits = 1, w->Edit[0].Offset = MAXULONGLONG - 7; }
static void odd_offset(PWO_WORLD w) { w->Phase = WoPhaseEditing, w->Edits = 1, w->Edit[0].Offset = sizeof(*w) + 3; }
static void offset_of_lock(PWO_WORLD w)
{
    w->Phase = WoPhaseEditing, w->Edits = 1, w->Edit[0].Offset = FIELD_OFFSET(WO_WORLD, Lock);
}
static void wrong_posts(PWO_WORLD w) { w->Phase = WoPhaseFinishing, w->Posts = MAXULONG; }
static void wrong_post(PWO_WORLD w) { w->Phase = WoPhaseFinishing, w->Posts = 1, w->Post[0].Waiter = 0xfffffff; }

static void rubbish_in_the_journal_is_noticed(void **state)
{
    (void)state;
    corrupt(nothing, true);
    corrupt(wrong_phase, false);
    corrupt(wrong_edits, false);
    corrupt(wrong_offset, false);
    corrupt(odd_offset, false);
    corrupt(offset_of_lock, false);
    corrupt(wrong_posts, false);
    corrupt(wrong_post, false);
}

static void rubbish_in_the_lock_is_noticed(void **state)
{
    static const ULONG64 rubbish[] = {1, WO_LOCK_SLEEPERS, MAXULONGLONG, 0x0123456789abcdefull, 1ull << 62};
    (void)state;
    watchdog_start(20);
    for (size_t i = 0; i < RTL_NUMBER_OF(rubbish); i++) {
        view.World->Lock = rubbish[i];
        assert_true(WopLock(&view));
        WopUnlock(&view);
    }
    watchdog_stop();
}

static void rubbish_in_records_is_noticed(void **state)
{
    static const WO_INDEX rubbish[] = {0, 1, WO_FIRST_RECORD - 1, WORLD_SIZE / WO_UNIT, MAXULONG, MAXULONG / 2};
    (void)state;
    for (size_t i = 0; i < RTL_NUMBER_OF(rubbish); i++) {
        WO_VIEW v;
        make_world(&v, WORLD_SIZE);
        assert_null(WopRecord(&v, rubbish[i], WoObjectRecord));
        assert_true(WoIsPoisoned(&v));
        assert_false(WopLock(&v));
        delete_world(&v);
    }
    assert_null(WopRecord(&view, account, WoObjectRecord));
    assert_true(WoIsPoisoned(&view));
}

static void rubbish_in_free_lists_is_noticed(void **state)
{
    static const ULONG64 rubbish[] = {0, 1, 63, MAXULONGLONG, 1ull << 40};
    (void)state;
    for (size_t i = 0; i < 2 * RTL_NUMBER_OF(rubbish); i++) {
        WO_VIEW v;
        make_world(&v, WORLD_SIZE);
        if (i % 2 == 0)
            v.World->Top = rubbish[i / 2];
        else
            v.World->FreeRecord[0] = (WO_INDEX)rubbish[i / 2];
        assert_true(WopLock(&v));
        WopBegin(&v);
        WO_INDEX index = WopAllocate(&v, WoTicketRecord, WO_UNIT);
        WopCommit(&v);
        WopUnlock(&v);
        assert_int_equal(index == 0, WoIsPoisoned(&v));
        assert_true(index == 0 || i == 1 || i == 9); /* an empty list */
        delete_world(&v);
    }
}

static void sleep_on_a_waiter(WO_VIEW *v, void *index)
{
    PWO_WAITER waiter = WopRecord(v, *(WO_INDEX *)index, WoWaiterRecord);
    const HAL_DEADLINE never = {HalNoDeadline, 0};
    waiter->Count = 1;
    while (!WoIsPoisoned(v))
        HalWaitShared(&waiter->WakeWord, 0, &never);
}

static void a_poisoned_world_wakes_its_sleepers(void **state)
{
    (void)state;
    WO_INDEX index;
    make_waiter(&index);
    pid_t child = start_process(&view, sleep_on_a_waiter, &index);
    PWO_WAITER waiter = WopRecord(&view, index, WoWaiterRecord);
    while (__atomic_load_n(&waiter->Count, __ATOMIC_RELAXED) == 0 || !sleeps_in_the_host((unsigned long)child))
        nap(100 * MICROSECOND);
    WopPoison(&view, "the test says so");
    watchdog_start(20);
    assert_int_equal(await_process(child), 0);
    watchdog_stop();
}

static volatile ULONG64 sum;

static void count_under_the_lock(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    for (unsigned long round = test_rounds(20000); round != 0; round--) {
        assert_true(WopLock(&view));
        sum = sum + 1;
        WopUnlock(&view);
    }
}

static void threads_exclude_each_other(void **state)
{
    (void)state;
    sum = 0;
    run_threads(4, 60, count_under_the_lock, NULL);
    assert_int_equal(sum, 4 * test_rounds(20000));
}

int main(void)
{
#define lock_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        lock_test(a_commit_stays_and_a_cancel_goes),
        lock_test(records_are_reused),
        lock_test(a_freed_record_is_not_reused_in_its_own_transaction),
        lock_test(a_world_without_room_refuses),
        lock_test(claims_are_granted_or_taken_back),
        lock_test(the_repairer_decides_as_the_dead_owner_did),
        lock_test(killed_owners_leave_whole_transactions),
        lock_test(a_stopped_owner_keeps_the_lock),
        lock_test(who_keeps_the_lock_for_long_is_named),
        lock_test(signals_do_not_keep_a_dead_owner_alive),
        lock_test(rubbish_in_the_journal_is_noticed),
        lock_test(rubbish_in_the_lock_is_noticed),
        lock_test(rubbish_in_records_is_noticed),
        lock_test(rubbish_in_free_lists_is_noticed),
        lock_test(a_poisoned_world_wakes_its_sleepers),
        lock_test(threads_exclude_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
