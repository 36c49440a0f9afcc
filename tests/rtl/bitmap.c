/* bitmap.c: bitmaps, compared with a model that reads one bit at a time. */
#include "support.h"

#include <sys/mman.h>

#include <interlock/rtl.h>

#define WORDS 8
#define NONE 0xFFFFFFFFu
#define GUARD 0xA5A5A5A5u

/* The bitmap of a test, with a word before and after it, and the same bits as booleans. */
typedef struct {
    ULONG words[WORDS + 2];
    RTL_BITMAP map;
    BOOLEAN bits[WORDS * 32];
} pair;

static void start(pair *p, ULONG size)
{
    memset(p, 0, sizeof(*p));
    p->words[0] = p->words[WORDS + 1] = GUARD;
    RtlInitializeBitMap(&p->map, p->words + 1, size);
}

static void compare(pair *p)
{
    ULONG set = 0;

    for (ULONG i = 0; i < p->map.SizeOfBitMap; i++) {
        assert_int_equal(RtlTestBit(&p->map, i), p->bits[i]);
        assert_int_equal(RtlCheckBit(&p->map, i), p->bits[i]);
        set += p->bits[i];
    }
    assert_int_equal(RtlNumberOfSetBits(&p->map), set);
    assert_int_equal(RtlNumberOfClearBits(&p->map), p->map.SizeOfBitMap - set);
    assert_int_equal(p->words[0], GUARD);
    assert_int_equal(p->words[WORDS + 1], GUARD);
    for (ULONG i = p->map.SizeOfBitMap; i < WORDS * 32; i++) /* bits behind the end are not touched */
        assert_int_equal(p->words[1 + i / 32] >> i % 32 & 1, 0);
}

static ULONG model_run(const pair *p, ULONG from, BOOLEAN value, ULONG *begin)
{
    ULONG size = p->map.SizeOfBitMap, i = from, length = 0;

    while (i < size && p->bits[i] != value)
        i++;
    *begin = i;
    while (i + length < size && p->bits[i + length] == value)
        length++;
    return length;
}

static ULONG model_find(const pair *p, ULONG count, ULONG hint, BOOLEAN value)
{
    ULONG size = p->map.SizeOfBitMap;

    hint = hint < size ? hint : 0;
    if (count == 0)
        return hint;
    for (int pass = 0; pass < 2; pass++) {
        for (ULONG i = pass == 0 ? hint : 0; i < size; i++) {
            ULONG length = 0;

            while (i + length < size && length < count && p->bits[i + length] == value)
                length++;
            if (length == count)
                return i;
        }
    }
    return NONE;
}

static void mark(pair *p, ULONG from, ULONG count, BOOLEAN value)
{
    if (from <= p->map.SizeOfBitMap && count <= p->map.SizeOfBitMap - from)
        memset(p->bits + from, value, count);
}

static void check_runs(pair *p)
{
    RTL_BITMAP_RUN first[300], longest[4];
    ULONG size = p->map.SizeOfBitMap, count = 0, begin, length, best = 0, best_at = 0, at;

    for (ULONG from = 0; (length = model_run(p, from, FALSE, &begin)) != 0; from = begin + length) {
        if (length > best) {
            best = length;
            best_at = begin;
        }
        count++;
    }
    assert_int_equal(RtlFindLongestRunClear(&p->map, &at), best);
    if (best != 0)
        assert_int_equal(at, best_at);
    assert_int_equal(RtlFindClearRuns(&p->map, first, 300, FALSE), count);
    at = 0;
    for (ULONG i = 0; i < count; i++) {
        assert_int_equal(model_run(p, at, FALSE, &begin), first[i].NumberOfBits);
        assert_int_equal(begin, first[i].StartingIndex);
        at = begin + first[i].NumberOfBits;
    }
    length = RtlFindClearRuns(&p->map, longest, 4, TRUE);
    assert_int_equal(length, count < 4 ? count : 4);
    for (ULONG i = 0; i < length; i++) {
        ULONG longer = 0;

        for (ULONG j = 0; j < count; j++)
            longer += first[j].NumberOfBits > longest[i].NumberOfBits;
        assert_true(longer <= i); /* no longer run was missed */
        assert_int_equal(model_run(p, longest[i].StartingIndex, FALSE, &begin), longest[i].NumberOfBits);
        assert_int_equal(begin, longest[i].StartingIndex);
        if (i != 0)
            assert_true(longest[i - 1].NumberOfBits >= longest[i].NumberOfBits);
    }
    assert_int_equal(RtlFindClearRuns(&p->map, longest, 0, TRUE), 0);
    assert_int_equal(RtlFindFirstRunClear(&p->map, &at), model_run(p, 0, FALSE, &begin));
    if (size == 0)
        assert_int_equal(RtlFindFirstRunClear(&p->map, &at), 0);
}

static void check_backward(pair *p, ULONG from)
{
    ULONG end = from < p->map.SizeOfBitMap ? from + 1 : p->map.SizeOfBitMap, begin, at, length;

    while (end != 0 && p->bits[end - 1])
        end--;
    for (begin = end; begin != 0 && !p->bits[begin - 1];)
        begin--;
    length = RtlFindLastBackwardRunClear(&p->map, from, &at);
    assert_int_equal(length, end - begin);
    if (length != 0)
        assert_int_equal(at, begin);
}

static void check_range(pair *p, ULONG from, ULONG count)
{
    ULONG set = 0;
    BOOLEAN inside = from <= p->map.SizeOfBitMap && count <= p->map.SizeOfBitMap - from;

    for (ULONG i = 0; inside && i < count; i++)
        set += p->bits[from + i];
    assert_int_equal(RtlAreBitsSet(&p->map, from, count), inside && count != 0 && set == count);
    assert_int_equal(RtlAreBitsClear(&p->map, from, count), inside && count != 0 && set == 0);
    assert_int_equal(RtlNumberOfSetBitsInRange(&p->map, from, count), set);
    assert_int_equal(RtlNumberOfClearBitsInRange(&p->map, from, count), inside ? count - set : 0);
}

static void random_operations(void **state)
{
    test_random random;

    (void)state;
    random_seed(&random, 1);
    for (ULONG size = 0; size <= WORDS * 32; size += size < 70 ? 1 : 31) {
        pair p;

        start(&p, size);
        for (int step = 0; step < 60; step++) {
            ULONG from = random_below(&random, size + 3), count = random_below(&random, size / 4 + 3);
            BOOLEAN value = step % 2 != 0;
            ULONG begin, at, found = model_find(&p, count, from, !value), length;

            switch (random_below(&random, 5)) {
            case 0:
            case 1:
                (value ? RtlSetBits : RtlClearBits)(&p.map, from, count);
                mark(&p, from, count, value);
                break;
            case 2:
                if (from < size) {
                    (value ? RtlSetBit : RtlClearBit)(&p.map, from);
                    mark(&p, from, 1, value);
                }
                break;
            default:
                assert_int_equal((value ? RtlFindClearBits : RtlFindSetBits)(&p.map, count, from), found);
                assert_int_equal((value ? RtlFindClearBitsAndSet : RtlFindSetBitsAndClear)(&p.map, count, from), found);
                if (found != NONE)
                    mark(&p, found, count, value);
            }
            compare(&p);
            check_range(&p, from, count);
            check_backward(&p, from);
            length = model_run(&p, from, FALSE, &begin);
            assert_int_equal(RtlFindNextForwardRunClear(&p.map, from, &at), length);
            if (length != 0)
                assert_int_equal(at, begin);
            length = model_run(&p, from, TRUE, &begin);
            assert_int_equal(RtlFindNextForwardRunSet(&p.map, from, &at), length);
            if (length != 0)
                assert_int_equal(at, begin);
            check_runs(&p);
        }
        RtlSetAllBits(&p.map);
        mark(&p, 0, size, TRUE);
        compare(&p);
        RtlClearAllBits(&p.map);
        mark(&p, 0, size, FALSE);
        compare(&p);
    }
}

static void copies(void **state)
{
    test_random random;

    (void)state;
    random_seed(&random, 7);
    for (int round = 0; round < 300; round++) {
        pair source, target;
        ULONG at = random_below(&random, 130), count = random_below(&random, 130);

        start(&source, random_below(&random, 120));
        start(&target, random_below(&random, 120));
        for (ULONG i = 0; i < source.map.SizeOfBitMap; i++) {
            source.bits[i] = random_below(&random, 2) != 0;
            (source.bits[i] ? RtlSetBit : RtlClearBit)(&source.map, i);
        }
        if (round % 2 == 0) {
            RtlCopyBitMap(&source.map, &target.map, at);
            for (ULONG i = 0; i < source.map.SizeOfBitMap && at + i < target.map.SizeOfBitMap; i++)
                target.bits[at + i] = source.bits[i];
        } else {
            RtlExtractBitMap(&source.map, &target.map, at, count);
            for (ULONG i = 0; i < count && i < target.map.SizeOfBitMap && at + i < source.map.SizeOfBitMap; i++)
                target.bits[i] = source.bits[at + i];
        }
        compare(&source);
        compare(&target);
    }
}

/* Ranges whose end does not fit into 32 bits are not inside. */
static void ranges_that_wrap(void **state)
{
    pair p;

    (void)state;
    start(&p, 64);
    RtlSetBits(&p.map, 10, MAXULONG);
    RtlSetBits(&p.map, MAXULONG, 2);
    compare(&p);
    check_range(&p, 1, MAXULONG);
    check_range(&p, MAXULONG, 1);
    assert_int_equal(RtlFindClearBits(&p.map, 65, 0), NONE);
    assert_int_equal(RtlFindClearBits(&p.map, MAXULONG, 3), NONE);
    assert_int_equal(RtlFindClearBits(&p.map, 64, 3), 0); /* the hint comes too late, the search starts over */
}

/* As many bits as there are numbers for. Only the pages at both ends are used. */
static void largest_bitmap(void **state)
{
    const size_t bytes = (size_t)1 << 29;
    RTL_BITMAP map;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    (void)state;
    if (memory == MAP_FAILED)
        skip();
    RtlInitializeBitMap(&map, memory, MAXULONG);
    assert_true(RtlAreBitsClear(&map, MAXULONG - 40, 40));
    RtlSetBits(&map, MAXULONG - 40, 40);
    assert_true(RtlAreBitsSet(&map, MAXULONG - 40, 40));
    assert_false(RtlAreBitsSet(&map, MAXULONG - 41, 41));
    munmap(memory, bytes);
}

static void bits_of_integers(void **state)
{
    (void)state;
    assert_int_equal(RtlFindMostSignificantBit(0), -1);
    assert_int_equal(RtlFindLeastSignificantBit(0), -1);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(RtlFindMostSignificantBit(1ULL << i | 1), i);
        assert_int_equal(RtlFindLeastSignificantBit(1ULL << i | 1ULL << 63), i);
        assert_int_equal(RtlNumberOfSetBitsUlongPtr((1UL << i) - 1), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations),
        cmocka_unit_test(copies),
        cmocka_unit_test(ranges_that_wrap),
        cmocka_unit_test(largest_bitmap),
        cmocka_unit_test(bits_of_integers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
