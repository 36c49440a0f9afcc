/* Fast references, by the numbers in src/ex/fastref.c and src/ob/object.c. */
#include "ob/obp.h"

#include <interlock/ex.h>

#include "support.h"

#include <stdlib.h>

static unsigned deleted;

static VOID count_deletion(PVOID object)
{
    (void)object;
    __atomic_fetch_add(&deleted, 1, __ATOMIC_SEQ_CST);
}

static OBJECT_TYPE test_type = {.Name = "Test", .DeleteProcedure = count_deletion};

static PVOID new_object(void)
{
    PVOID object = ObpCreateObject(&test_type, 64);
    assert_non_null(object);
    return object;
}

static LONG_PTR count_of(PVOID object)
{
    return __atomic_load_n(&ObpHeaderOf(object)->PointerCount, __ATOMIC_SEQ_CST);
}

static ULONG cached(PEX_FAST_REF ref)
{
    return ExGetCountFastReference(*ref);
}

/* The word alone: 1, 3, 4. */
static void test_word(void **state)
{
    static UCHAR memory[32] __attribute__((aligned(16)));
    PVOID one = memory, other = memory + 16;
    EX_FAST_REF ref;
    (void)state;
    memset(&ref, 0, sizeof(ref));
    assert_int_equal(ExAcquireFastReference(&ref).Value, 0);
    assert_false(ExReleaseFastReference(&ref, one));
    ExInitializeFastReference(&ref, one);
    assert_int_equal(ref.RefCnt, MAX_FAST_REFS);
    for (ULONG left = MAX_FAST_REFS; left > 0; left -= 1) {
        EX_FAST_REF old = ExAcquireFastReference(&ref);
        assert_int_equal(ExGetCountFastReference(old), left);
        assert_ptr_equal(ExGetObjectFastReference(old), one);
    }
    assert_int_equal(ExGetCountFastReference(ExAcquireFastReference(&ref)), 0);
    assert_ptr_equal(ExGetObjectFastReference(ref), one);
    assert_true(ExReleaseFastReference(&ref, one));
    assert_false(ExReleaseFastReference(&ref, other));
    assert_int_equal(ExInsertFastReference(&ref, other, 3), 3);
    assert_int_equal(ExInsertFastReference(&ref, one, MAX_FAST_REFS), 1);
    assert_int_equal(cached(&ref), MAX_FAST_REFS);
    assert_false(ExReleaseFastReference(&ref, one));
    assert_int_equal(ExCompareSwapFastReference(&ref, NULL, other).Value, (ULONG_PTR)one | MAX_FAST_REFS);
    assert_int_equal(ExCompareSwapFastReference(&ref, other, one).Value, (ULONG_PTR)one | MAX_FAST_REFS);
    assert_int_equal(ExSwapFastReference(&ref, NULL).Value, (ULONG_PTR)other | MAX_FAST_REFS);
    assert_int_equal(ref.Value, 0);
}

/* Objects 1, 4: references come and go, the count is right at every step. */
static void test_initialize_and_replace(void **state)
{
    EX_FAST_REF ref;
    PVOID first = new_object(), second = new_object();
    (void)state;
    deleted = 0;
    ObInitializeFastReference(&ref, first);
    assert_int_equal(count_of(first), 1 + MAX_FAST_REFS);
    assert_ptr_equal(ObFastReferenceObject(&ref), first);
    assert_ptr_equal(ObFastReferenceObject(&ref), first);
    assert_int_equal(count_of(first), 1 + MAX_FAST_REFS);
    ObFastDereferenceObject(&ref, first);
    assert_int_equal(cached(&ref), MAX_FAST_REFS - 1);

    assert_ptr_equal(ObFastReplaceObject(&ref, second), first);
    assert_int_equal(count_of(first), 2);
    assert_int_equal(count_of(second), 1 + MAX_FAST_REFS);
    ObFastDereferenceObject(&ref, first);
    assert_int_equal(count_of(first), 1);
    assert_int_equal(deleted, 0);
    ObDereferenceObject(first);
    assert_int_equal(deleted, 1);

    assert_ptr_equal(ObFastReplaceObject(&ref, NULL), second);
    assert_int_equal(count_of(second), 1);
    assert_int_equal(ref.Value, 0);
    assert_null(ObFastReferenceObject(&ref));
    assert_null(ObFastReferenceObjectLocked(&ref));
    assert_null(ObFastReplaceObject(&ref, NULL));
    ObDereferenceObject(second);
    assert_int_equal(deleted, 2);
    ObInitializeFastReference(&ref, NULL);
    assert_int_equal(ref.Value, 0);
}

/* Objects 3: references never run out while one thread after the other takes them. */
static void test_refill(void **state)
{
    EX_FAST_REF ref;
    PVOID object = new_object();
    ULONG taken = 100;
    (void)state;
    deleted = 0;
    ObInitializeFastReference(&ref, object);
    for (ULONG i = 0; i < taken; i += 1) {
        assert_ptr_equal(ObFastReferenceObject(&ref), object);
        assert_int_equal(count_of(object), (LONG_PTR)(1 + cached(&ref) + i + 1));
    }
    for (ULONG i = 0; i < taken; i += 1) {
        ObFastDereferenceObject(&ref, object);
        assert_int_equal(count_of(object), (LONG_PTR)(1 + cached(&ref) + taken - i - 1));
    }
    assert_int_equal(cached(&ref), MAX_FAST_REFS);
    assert_ptr_equal(ObFastReplaceObject(&ref, NULL), object);
    assert_int_equal(ObDereferenceObject(object), 0);
    assert_int_equal(deleted, 1);
}

/* Objects 2: with nothing cached the plain form returns NULL; the locked form works, and refills. */
static void test_locked_form(void **state)
{
    EX_FAST_REF ref;
    PVOID object = new_object();
    (void)state;
    ref.Value = (ULONG_PTR)object;
    assert_null(ObFastReferenceObject(&ref));
    assert_ptr_equal(ObFastReferenceObjectLocked(&ref), object);
    assert_int_equal(cached(&ref), MAX_FAST_REFS);
    assert_int_equal(count_of(object), 1 + MAX_FAST_REFS + 1);
    assert_ptr_equal(ObFastReferenceObject(&ref), object);
    ObFastDereferenceObject(&ref, object);
    ObFastDereferenceObject(&ref, object);
    assert_int_equal(count_of(object), 1 + MAX_FAST_REFS);
    assert_ptr_equal(ObFastReplaceObject(&ref, NULL), object);
    ObDereferenceObject(object);
}

static void initialize_unaligned(void *argument)
{
    DECLSPEC_ALIGN(16) static UCHAR object[16];
    EX_FAST_REF ref;

    (void)argument;
    ExInitializeFastReference(&ref, object + 8);
}

static void test_unaligned(void **state)
{
    (void)state;
    expect_bugcheck(KERNEL_SECURITY_CHECK_FAILURE, initialize_unaligned, NULL);
}

/* As the slides use it: readers with a lock to fall back on, a writer that replaces. */

#define READERS 3

typedef struct race {
    EX_FAST_REF ref;
    EX_PUSH_LOCK lock;
    unsigned long rounds;
} race;

static PVOID take(race *r)
{
    PVOID object = ObFastReferenceObject(&r->ref);
    if (object == NULL) {
        ExAcquirePushLockShared(&r->lock);
        object = ObFastReferenceObjectLocked(&r->ref);
        ExReleasePushLockShared(&r->lock);
    }
    return object;
}

static void read_object(race *r)
{
    ULONG *object = take(r);
    if (object == NULL || __atomic_load_n(object, __ATOMIC_RELAXED) != 0x600d) {
        abort();
    }
    ObFastDereferenceObject(&r->ref, object);
}

static void replace_object(race *r)
{
    ULONG *fresh = ObpCreateObject(&test_type, 64);
    if (fresh == NULL) {
        abort();
    }
    __atomic_store_n(fresh, 0x600d, __ATOMIC_RELAXED);
    PVOID old = ObFastReplaceObject(&r->ref, fresh);
    ExAcquirePushLockExclusive(&r->lock);
    ExReleasePushLockExclusive(&r->lock);
    ObDereferenceObject(old);
}

static void run_race(void *argument, unsigned index)
{
    race *r = argument;
    for (unsigned long i = 0; i < r->rounds; i += 1) {
        KeEnterCriticalRegion();
        if (index == 0) {
            replace_object(r);
        } else {
            read_object(r);
        }
        KeLeaveCriticalRegion();
    }
}

static void test_race(void **state)
{
    race r = {.rounds = test_rounds(5000)};
    ULONG *object = new_object();
    (void)state;
    deleted = 0;
    *object = 0x600d;
    ObInitializeFastReference(&r.ref, object);
    run_threads(1 + READERS, 60, run_race, &r);
    object = ObFastReplaceObject(&r.ref, NULL);
    assert_int_equal(count_of(object), 1);
    ObDereferenceObject(object);
    assert_int_equal(deleted, r.rounds + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_word),        cmocka_unit_test(test_initialize_and_replace),
        cmocka_unit_test(test_refill),      cmocka_unit_test(test_locked_form),
        cmocka_unit_test(test_unaligned),   cmocka_unit_test(test_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
