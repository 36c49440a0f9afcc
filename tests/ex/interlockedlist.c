/* List operations and additions under a spinlock. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "ke/irql.h"
#include "support.h"

#include <interlock/ex.h>
#include <interlock/io.h>

#define SECONDS 60
#define DIRQL 7
#define ENTRIES 64

static KSPIN_LOCK lock;

static void doubly_linked(void **state)
{
    LIST_ENTRY head, a, b, c;

    (void)state;
    InitializeListHead(&head);
    assert_null(ExInterlockedRemoveHeadList(&head, &lock));
    assert_null(ExInterlockedInsertHeadList(&head, &a, &lock));
    assert_ptr_equal(ExInterlockedInsertHeadList(&head, &b, &lock), &a);
    assert_ptr_equal(ExInterlockedInsertTailList(&head, &c, &lock), &a);
    assert_ptr_equal(head.Flink, &b);
    assert_ptr_equal(head.Blink, &c);
    assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &b);
    assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &a);
    assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &c);
    assert_null(ExInterlockedRemoveHeadList(&head, &lock));
    assert_null(ExInterlockedInsertTailList(&head, &a, &lock));
    assert_int_equal(lock, 0);
}

static void singly_linked(void **state)
{
    SINGLE_LIST_ENTRY head = {NULL}, a, b;

    (void)state;
    assert_null(ExInterlockedPopEntryList(&head, &lock));
    assert_null(ExInterlockedPushEntryList(&head, &a, &lock));
    assert_ptr_equal(ExInterlockedPushEntryList(&head, &b, &lock), &a);
    assert_ptr_equal(ExInterlockedPopEntryList(&head, &lock), &b);
    assert_ptr_equal(ExInterlockedPopEntryList(&head, &lock), &a);
    assert_null(ExInterlockedPopEntryList(&head, &lock));
    assert_int_equal(lock, 0);
}

static void additions(void **state)
{
    static const struct {
        LONGLONG before, increment, after;
    } sums[] = {
        {0, 1, 1},
        {5, -7, -2},
        {0xffffffff, 1, 0x100000000},
        {MAXLONGLONG, 1, -MAXLONGLONG - 1},
        {-MAXLONGLONG - 1, -1, MAXLONGLONG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        LARGE_INTEGER sum = {.QuadPart = sums[i].before}, increment = {.QuadPart = sums[i].increment};
        ULONG small = (ULONG)sums[i].before;

        assert_int_equal(ExInterlockedAddLargeInteger(&sum, increment, &lock).QuadPart, sums[i].before);
        assert_int_equal(sum.QuadPart, sums[i].after);
        assert_int_equal(ExInterlockedAddUlong(&small, (ULONG)sums[i].increment, &lock), (ULONG)sums[i].before);
        assert_int_equal(small, (ULONG)sums[i].after);
    }
}

/* The forms that ignore the lock, even one that is held. */
static void without_the_lock(void **state)
{
    KSPIN_LOCK held = 1;
    LONGLONG value = 5, exchange = 9, comperand = 5;
    LARGE_INTEGER sum = {.QuadPart = 40};

    (void)state;
    assert_int_equal(ExInterlockedCompareExchange64(&value, &exchange, &comperand, &held), 5);
    assert_int_equal(value, 9);
    assert_int_equal(ExInterlockedCompareExchange64(&value, &exchange, &comperand, &held), 9);
    ExInterlockedAddLargeStatistic(&sum, 2);
    assert_int_equal(sum.QuadPart, 42);
    assert_int_equal(held, 1);
}

/* The sign of the result, over every change of sign and around the ends of the range. */
static void of_one_word(void **state)
{
    static const struct {
        LONG before;
        INTERLOCKED_RESULT incremented, decremented;
    } rows[] = {
        {-2, ResultNegative, ResultNegative}, {-1, ResultZero, ResultNegative},     {0, ResultPositive, ResultNegative},
        {1, ResultPositive, ResultZero},      {2, ResultPositive, ResultPositive},  {MAXLONG, ResultNegative, ResultPositive},
        {MINLONG, ResultNegative, ResultPositive},
    };
    KSPIN_LOCK held = 1;

    (void)state;
    assert_int_equal(RESULT_ZERO, 0);
    assert_int_equal(RESULT_NEGATIVE, 1);
    assert_int_equal(RESULT_POSITIVE, 2);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        LONG value = rows[i].before;
        assert_int_equal(ExInterlockedIncrementLong(&value, &held), rows[i].incremented);
        assert_int_equal((ULONG)value, (ULONG)rows[i].before + 1);
        value = rows[i].before;
        assert_int_equal(ExInterlockedDecrementLong(&value, &held), rows[i].decremented);
        assert_int_equal((ULONG)value, (ULONG)rows[i].before - 1);
    }
    LONG value = 5;
    assert_int_equal(ExInterlockedCompareExchange(&value, 9, 5, &held), 5);
    assert_int_equal(value, 9);
    assert_int_equal(ExInterlockedCompareExchange(&value, 7, 5, &held), 9);
    assert_int_equal(value, 9);
    ULONG target = 0xffffffff;
    assert_int_equal(ExInterlockedExchangeUlong(&target, 3, &held), 0xffffffff);
    assert_int_equal(target, 3);
    assert_int_equal(held, 1);
}

static void at_every_level(void **state)
{
    (void)state;
    for (KIRQL level = PASSIVE_LEVEL; level <= HIGH_LEVEL; level++) {
        LIST_ENTRY head, entry;
        ULONG sum = level;
        KIRQL before;

        KeRaiseIrql(level, &before);
        InitializeListHead(&head);
        assert_null(ExInterlockedInsertTailList(&head, &entry, &lock));
        assert_int_equal(KeGetCurrentIrql(), level);
        assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &entry);
        assert_int_equal(ExInterlockedAddUlong(&sum, 1, &lock), level);
        assert_int_equal(KeGetCurrentIrql(), level);
        KeLowerIrql(before);
    }
}

/* An interrupt routine and the thread that it interrupts alternate on one list: neither waits for the other. */

typedef struct device {
    PKINTERRUPT interrupt;
    LIST_ENTRY head;
    KSPIN_LOCK lock;
    LIST_ENTRY entries[ENTRIES];
    volatile ULONG processor, started, done, served;
} device;

static BOOLEAN serve(PKINTERRUPT interrupt, PVOID context)
{
    device *d = context;
    PLIST_ENTRY entry = ExInterlockedRemoveHeadList(&d->head, &d->lock);

    (void)interrupt;
    if (entry != NULL)
        ExInterlockedInsertTailList(&d->head, entry, &d->lock);
    __atomic_fetch_add(&d->served, 1, __ATOMIC_RELAXED);
    return TRUE;
}

static void be_interrupted(void *argument, unsigned index)
{
    device *d = argument;
    KIRQL old = KeRaiseIrqlToDpcLevel();

    (void)index;
    d->processor = KeGetCurrentProcessorNumber();
    __atomic_store_n(&d->started, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&d->done, __ATOMIC_ACQUIRE)) {
        PLIST_ENTRY entry = ExInterlockedRemoveHeadList(&d->head, &d->lock);

        if (entry != NULL)
            ExInterlockedInsertHeadList(&d->head, entry, &d->lock);
    }
    KeLowerIrql(old);
}

static void interrupts(void **state)
{
    static device d;
    unsigned long rounds = test_rounds(20000);
    test_threads *thread;
    ULONG count = 0;

    (void)state;
    InitializeListHead(&d.head);
    for (int i = 0; i < ENTRIES; i++)
        InsertTailList(&d.head, &d.entries[i]);
    assert_int_equal(IoConnectInterrupt(&d.interrupt, serve, &d, NULL, 0x60, DIRQL, DIRQL, Latched, FALSE,
                                        ~(KAFFINITY)0, FALSE), STATUS_SUCCESS);
    thread = start_threads(1, be_interrupted, &d);
    while (!__atomic_load_n(&d.started, __ATOMIC_ACQUIRE))
        sched_yield();
    watchdog_start(SECONDS);
    for (unsigned long round = 0; round < rounds; round++)
        assert_true(KeFireInterrupt(d.interrupt, d.processor));
    watchdog_stop();
    __atomic_store_n(&d.done, 1, __ATOMIC_RELEASE);
    join_threads(thread, SECONDS);
    IoDisconnectInterrupt(d.interrupt);
    assert_int_equal(d.served, rounds);
    while (ExInterlockedRemoveHeadList(&d.head, &d.lock) != NULL)
        count++;
    assert_int_equal(count, ENTRIES);
}

/* A lock that is used with the Ke routines too ends in a deadlock on its own processor. */
static void mix_with_ke(void *unused)
{
    LIST_ENTRY head;

    (void)unused;
    KiVerifierEnabled = TRUE;
    InitializeListHead(&head);
    KeAcquireSpinLockRaiseToDpc(&lock);
    ExInterlockedRemoveHeadList(&head, &lock);
}

static void corrupt_list(void *unused)
{
    LIST_ENTRY head, entry, other;

    (void)unused;
    InitializeListHead(&head);
    ExInterlockedInsertHeadList(&head, &entry, &lock);
    InitializeListHead(&other);
    entry.Flink = &other;
    ExInterlockedRemoveHeadList(&head, &lock);
}

static void misuse(void **state)
{
    (void)state;
    expect_bugcheck(SPIN_LOCK_ALREADY_OWNED, mix_with_ke, NULL);
    expect_bugcheck(KERNEL_SECURITY_CHECK_FAILURE, corrupt_list, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubly_linked),
        cmocka_unit_test(singly_linked),
        cmocka_unit_test(additions),
        cmocka_unit_test(without_the_lock),
        cmocka_unit_test(of_one_word),
        cmocka_unit_test(at_every_level),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(misuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
