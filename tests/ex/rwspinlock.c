/* Spinlocks of readers and writers. Numbers are those of the requirements in rwspinlock.c. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "ke/irql.h"
#include "support.h"
#include "withsetting.h"

#include <interlock/ex.h>

#define EXCLUSIVE ((LONG)0x80000000)
#define WRITER_WAITS 0x40000000
#define SECONDS 60

static LONG read_word(EX_SPIN_LOCK *lock)
{
    return __atomic_load_n(lock, __ATOMIC_ACQUIRE);
}

static void await_word(EX_SPIN_LOCK *lock, LONG word)
{
    while (read_word(lock) != word)
        sched_yield();
}

static int enough_processors(void)
{
    return KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS) >= 3;
}

/* The word and the level, from each level, in a lock that was zeroed and nothing else (7). */
static void words_and_levels(void **state)
{
    static const KIRQL levels[] = {PASSIVE_LEVEL, APC_LEVEL, DISPATCH_LEVEL};
    EX_SPIN_LOCK lock = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        KIRQL before, old;

        KeRaiseIrql(levels[i], &before);
        old = ExAcquireSpinLockShared(&lock);
        assert_int_equal(old, levels[i]);
        assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
        assert_int_equal(lock, 1);
        ExReleaseSpinLockShared(&lock, old);
        assert_int_equal(lock, 0);
        assert_int_equal(KeGetCurrentIrql(), levels[i]);

        old = ExAcquireSpinLockExclusive(&lock);
        assert_int_equal(old, levels[i]);
        assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
        assert_int_equal(lock, EXCLUSIVE);
        ExReleaseSpinLockExclusive(&lock, old);
        assert_int_equal(lock, 0);
        assert_int_equal(KeGetCurrentIrql(), levels[i]);
        KeLowerIrql(before);
    }
}

static void at_dispatch_level(void **state)
{
    static const KIRQL levels[] = {DISPATCH_LEVEL, SYNCH_LEVEL, HIGH_LEVEL};
    EX_SPIN_LOCK lock = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        KIRQL before;

        KeRaiseIrql(levels[i], &before);
        ExAcquireSpinLockSharedAtDpcLevel(&lock);
        assert_int_equal(lock, 1);
        ExReleaseSpinLockSharedFromDpcLevel(&lock);
        ExAcquireSpinLockExclusiveAtDpcLevel(&lock);
        assert_int_equal(lock, EXCLUSIVE);
        ExReleaseSpinLockExclusiveFromDpcLevel(&lock);
        assert_int_equal(lock, 0);
        assert_int_equal(KeGetCurrentIrql(), levels[i]);
        KeLowerIrql(before);
    }
}

/* 5, 6: what a try and a conversion do with every kind of word. */
static void tries(void **state)
{
    static const struct {
        LONG word, shared, exclusive, converted; /* what each leaves; the word itself: it fails */
    } rows[] = {
        {0, 1, EXCLUSIVE, 0},
        {1, 2, 1, EXCLUSIVE},
        {2, 3, 2, 2},
        {2560, 2561, 2560, 2560},
        {EXCLUSIVE, EXCLUSIVE, EXCLUSIVE, EXCLUSIVE},
        {EXCLUSIVE | WRITER_WAITS, EXCLUSIVE | WRITER_WAITS, EXCLUSIVE | WRITER_WAITS, EXCLUSIVE | WRITER_WAITS},
        {WRITER_WAITS, WRITER_WAITS, WRITER_WAITS, WRITER_WAITS},
        {WRITER_WAITS + 1, WRITER_WAITS + 1, WRITER_WAITS + 1, EXCLUSIVE | WRITER_WAITS},
        {WRITER_WAITS + 2, WRITER_WAITS + 2, WRITER_WAITS + 2, WRITER_WAITS + 2},
    };
    BOOLEAN verifier = KiVerifierEnabled;
    KIRQL old = KeRaiseIrqlToDpcLevel();

    (void)state;
    KiVerifierEnabled = FALSE; /* these words were not produced by acquires */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        EX_SPIN_LOCK lock = rows[i].word;

        assert_int_equal(ExTryAcquireSpinLockSharedAtDpcLevel(&lock), rows[i].shared != rows[i].word);
        assert_int_equal(lock, rows[i].shared);
        lock = rows[i].word;
        assert_int_equal(ExTryAcquireSpinLockExclusiveAtDpcLevel(&lock), rows[i].exclusive != rows[i].word);
        assert_int_equal(lock, rows[i].exclusive);
        lock = rows[i].word;
        assert_int_equal(ExTryConvertSharedSpinLockToExclusive(&lock), rows[i].converted != rows[i].word);
        assert_int_equal(lock, rows[i].converted);
    }
    KiVerifierEnabled = verifier;
    KeLowerIrql(old);
}

/* 4: a release removes its own part and leaves W. */
static void releases(void **state)
{
    BOOLEAN verifier = KiVerifierEnabled;
    EX_SPIN_LOCK lock = WRITER_WAITS + 2;
    KIRQL old = KeRaiseIrqlToDpcLevel();

    (void)state;
    KiVerifierEnabled = FALSE;
    ExReleaseSpinLockSharedFromDpcLevel(&lock);
    assert_int_equal(lock, WRITER_WAITS + 1);
    lock = EXCLUSIVE | WRITER_WAITS;
    ExReleaseSpinLockExclusiveFromDpcLevel(&lock);
    assert_int_equal(lock, WRITER_WAITS);
    lock = 3;
    ExReleaseSpinLockSharedFromDpcLevel(&lock);
    assert_int_equal(lock, 2);
    KiVerifierEnabled = verifier;
    KeLowerIrql(old);
}

/* Threads that wait for the lock, acquire it, report that, and release it on request. */
typedef struct actor {
    EX_SPIN_LOCK *lock;
    int exclusive;
    volatile ULONG has, go;
    test_threads *thread;
} actor;

static void act(void *argument, unsigned index)
{
    actor *self = argument;
    KIRQL old;

    (void)index;
    old = self->exclusive ? ExAcquireSpinLockExclusive(self->lock) : ExAcquireSpinLockShared(self->lock);
    __atomic_store_n(&self->has, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&self->go, __ATOMIC_ACQUIRE))
        sched_yield();
    if (self->exclusive)
        ExReleaseSpinLockExclusive(self->lock, old);
    else
        ExReleaseSpinLockShared(self->lock, old);
}

static void start_actor(actor *self, EX_SPIN_LOCK *lock, int exclusive)
{
    self->lock = lock;
    self->exclusive = exclusive;
    self->has = self->go = 0;
    self->thread = start_threads(1, act, self);
}

static void await_actor(actor *self)
{
    while (!__atomic_load_n(&self->has, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void end_actor(actor *self)
{
    __atomic_store_n(&self->go, 1, __ATOMIC_RELEASE);
    join_threads(self->thread, SECONDS);
}

/* 1: readers share; a writer is alone. */
static void readers_share(void **state)
{
    EX_SPIN_LOCK lock = 0;
    actor first, second;

    (void)state;
    if (!enough_processors())
        return;
    start_actor(&first, &lock, 0);
    start_actor(&second, &lock, 0);
    await_actor(&first);
    await_actor(&second);
    assert_int_equal(read_word(&lock), 2);
    end_actor(&first);
    assert_int_equal(read_word(&lock), 1);
    end_actor(&second);
    assert_int_equal(read_word(&lock), 0);
}

/* 2, 3: a waiting writer excludes new readers, acquires the lock when the old ones have released, and clears its
   mark. */
static void a_waiting_writer_stops_readers(void **state)
{
    EX_SPIN_LOCK lock = 0;
    actor writer, reader;
    KIRQL old;

    (void)state;
    if (!enough_processors())
        return;
    old = ExAcquireSpinLockShared(&lock);
    start_actor(&writer, &lock, 1);
    await_word(&lock, WRITER_WAITS + 1);
    assert_false(ExTryAcquireSpinLockSharedAtDpcLevel(&lock));
    start_actor(&reader, &lock, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(read_word(&lock), WRITER_WAITS + 1);
        sched_yield();
    }
    assert_int_equal(writer.has, 0);
    assert_int_equal(reader.has, 0);
    ExReleaseSpinLockShared(&lock, old);
    await_actor(&writer);
    assert_int_equal(read_word(&lock), EXCLUSIVE);
    assert_int_equal(reader.has, 0);
    end_actor(&writer);
    await_actor(&reader);
    assert_int_equal(read_word(&lock), 1);
    end_actor(&reader);
    assert_int_equal(read_word(&lock), 0);
}

/* 3: with several waiting writers the mark is set again, and disappears with the last of them. */
static void several_writers_wait(void **state)
{
    EX_SPIN_LOCK lock = 0;
    actor writers[2];
    actor *first, *second;
    KIRQL old;

    (void)state;
    if (!enough_processors())
        return;
    old = ExAcquireSpinLockExclusive(&lock);
    start_actor(&writers[0], &lock, 1);
    await_word(&lock, EXCLUSIVE | WRITER_WAITS);
    start_actor(&writers[1], &lock, 1);
    ExReleaseSpinLockExclusive(&lock, old);
    while (!__atomic_load_n(&writers[0].has, __ATOMIC_ACQUIRE) && !__atomic_load_n(&writers[1].has, __ATOMIC_ACQUIRE))
        sched_yield();
    first = writers[0].has ? &writers[0] : &writers[1];
    second = first == &writers[0] ? &writers[1] : &writers[0];
    await_word(&lock, EXCLUSIVE | WRITER_WAITS);
    assert_int_equal(second->has, 0);
    end_actor(first);
    await_actor(second);
    assert_int_equal(read_word(&lock), EXCLUSIVE);
    end_actor(second);
    assert_int_equal(read_word(&lock), 0);
}

/* 6: the only reader converts ahead of a waiting writer, which then waits for the converted lock. */
static void conversion_beside_a_waiting_writer(void **state)
{
    EX_SPIN_LOCK lock = 0;
    actor writer, reader;
    KIRQL old;

    (void)state;
    if (!enough_processors())
        return;
    start_actor(&reader, &lock, 0);
    await_actor(&reader);
    old = ExAcquireSpinLockShared(&lock);
    start_actor(&writer, &lock, 1);
    await_word(&lock, WRITER_WAITS + 2);
    assert_false(ExTryConvertSharedSpinLockToExclusive(&lock));
    assert_int_equal(read_word(&lock), WRITER_WAITS + 2);
    end_actor(&reader);
    assert_true(ExTryConvertSharedSpinLockToExclusive(&lock));
    assert_int_equal(read_word(&lock), EXCLUSIVE | WRITER_WAITS);
    assert_int_equal(writer.has, 0);
    ExReleaseSpinLockExclusive(&lock, old);
    await_actor(&writer);
    end_actor(&writer);
    assert_int_equal(read_word(&lock), 0);
}

/* Misuse. The verifier is on in the children. */

static EX_SPIN_LOCK misused;

static void exclusive_twice(void)
{
    ExAcquireSpinLockExclusive(&misused);
    ExAcquireSpinLockExclusiveAtDpcLevel(&misused);
}

static void shared_then_exclusive(void)
{
    ExAcquireSpinLockShared(&misused);
    ExAcquireSpinLockExclusiveAtDpcLevel(&misused);
}

static void exclusive_then_shared(void)
{
    ExAcquireSpinLockExclusive(&misused);
    ExAcquireSpinLockSharedAtDpcLevel(&misused);
}

static void release_free_exclusive(void)
{
    KeRaiseIrqlToDpcLevel();
    ExReleaseSpinLockExclusiveFromDpcLevel(&misused);
}

static void release_free_shared(void)
{
    KeRaiseIrqlToDpcLevel();
    ExReleaseSpinLockSharedFromDpcLevel(&misused);
}

static void release_shared_as_exclusive(void)
{
    ExReleaseSpinLockExclusive(&misused, ExAcquireSpinLockShared(&misused));
}

static void release_exclusive_as_shared(void)
{
    ExReleaseSpinLockShared(&misused, ExAcquireSpinLockExclusive(&misused));
}

static void release_converted_as_shared(void)
{
    KIRQL old = ExAcquireSpinLockShared(&misused);

    ExTryConvertSharedSpinLockExclusive(&misused);
    ExReleaseSpinLockShared(&misused, old);
}

static void convert_unheld(void)
{
    KeRaiseIrqlToDpcLevel();
    ExTryConvertSharedSpinLockExclusive(&misused);
}

static void too_low_shared(void) { ExAcquireSpinLockSharedAtDpcLevel(&misused); }
static void too_low_exclusive(void) { ExAcquireSpinLockExclusiveAtDpcLevel(&misused); }
static void too_low_try_shared(void) { ExTryAcquireSpinLockSharedAtDpcLevel(&misused); }
static void too_low_try_exclusive(void) { ExTryAcquireSpinLockExclusiveAtDpcLevel(&misused); }
static void too_low_release(void) { ExReleaseSpinLockShared(&misused, PASSIVE_LEVEL); }

static void too_high(void)
{
    KfRaiseIrql(SYNCH_LEVEL);
    ExAcquireSpinLockShared(&misused);
}

static void verified(void *argument)
{
    KiVerifierEnabled = TRUE;
    (*(void (*const *)(void))argument)();
}

static void misuse(void **state)
{
    static const struct {
        void (*function)(void);
        ULONG code;
    } cases[] = {
        {exclusive_twice, SPIN_LOCK_ALREADY_OWNED},
        {shared_then_exclusive, SPIN_LOCK_ALREADY_OWNED},
        {exclusive_then_shared, SPIN_LOCK_ALREADY_OWNED},
        {release_free_exclusive, SPIN_LOCK_NOT_OWNED},
        {release_free_shared, SPIN_LOCK_NOT_OWNED},
        {release_shared_as_exclusive, SPIN_LOCK_NOT_OWNED},
        {release_exclusive_as_shared, SPIN_LOCK_NOT_OWNED},
        {release_converted_as_shared, SPIN_LOCK_NOT_OWNED},
        {convert_unheld, SPIN_LOCK_NOT_OWNED},
        {too_low_shared, IRQL_NOT_GREATER_OR_EQUAL},
        {too_low_exclusive, IRQL_NOT_GREATER_OR_EQUAL},
        {too_low_try_shared, IRQL_NOT_GREATER_OR_EQUAL},
        {too_low_try_exclusive, IRQL_NOT_GREATER_OR_EQUAL},
        {too_low_release, IRQL_NOT_GREATER_OR_EQUAL},
        {too_high, IRQL_NOT_GREATER_OR_EQUAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_bugcheck(cases[i].code, verified, (void *)&cases[i].function);
}

/* With the verifier on, two shared acquires by one processor are recorded twice. */
static void shared_by_one_twice(void)
{
    KIRQL old = ExAcquireSpinLockShared(&misused);

    ExAcquireSpinLockSharedAtDpcLevel(&misused);
    ExReleaseSpinLockSharedFromDpcLevel(&misused);
    ExReleaseSpinLockShared(&misused, old);
    old = ExAcquireSpinLockExclusive(&misused);
    ExReleaseSpinLockExclusive(&misused, old);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

/* A conversion that fails leaves the share, for the verifier too. */
static void convert_in_vain(void)
{
    KIRQL old = ExAcquireSpinLockShared(&misused);

    __atomic_fetch_add(&misused, 1, __ATOMIC_RELAXED); /* another sharer */
    if (ExTryConvertSharedSpinLockExclusive(&misused))
        return;
    ExReleaseSpinLockShared(&misused, old);
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void the_verifier_counts(void **state)
{
    static void (*const functions[])(void) = {shared_by_one_twice, convert_in_vain};

    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        expect_bugcheck(MANUALLY_INITIATED_CRASH, verified, (void *)&functions[i]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_levels),
        cmocka_unit_test(at_dispatch_level),
        cmocka_unit_test(tries),
        cmocka_unit_test(releases),
        cmocka_unit_test(readers_share),
        cmocka_unit_test(a_waiting_writer_stops_readers),
        cmocka_unit_test(several_writers_wait),
        cmocka_unit_test(conversion_beside_a_waiting_writer),
        cmocka_unit_test(misuse),
        cmocka_unit_test(the_verifier_counts),
    };

    default_setting("INTERLOCK_PROCESSORS", "4");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
