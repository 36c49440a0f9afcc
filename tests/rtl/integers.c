/* integers.c: byte order, 64-bit arithmetic by name, memory by words. */
#include "support.h"

#include <interlock/rtl.h>

static LARGE_INTEGER large(LONGLONG value)
{
    LARGE_INTEGER integer;

    integer.QuadPart = value;
    return integer;
}

static void byte_order(void **state)
{
    (void)state;
    assert_int_equal(RtlUshortByteSwap(0x1234), 0x3412);
    assert_int_equal(RtlUlongByteSwap(0x12345678), 0x78563412);
    assert_true(RtlUlonglongByteSwap(0x0123456789ABCDEF) == 0xEFCDAB8967452301);
}

static void unaligned(void **state)
{
    UCHAR bytes[16] = {0};
    ULONG value = 0;
    USHORT small = 0;

    (void)state;
    RtlStoreUlong(bytes + 1, 0x12345678);
    RtlRetrieveUlong(&value, bytes + 1);
    assert_int_equal(value, 0x12345678);
    RtlStoreUshort(bytes + 3, 0xABCD);
    RtlRetrieveUshort(&small, bytes + 3);
    assert_int_equal(small, 0xABCD);
    RtlStoreUlonglong(bytes + 7, 0x1122334455667788);
    assert_int_equal(bytes[7], 0x88);
    assert_int_equal(bytes[14], 0x11);
    assert_int_equal(bytes[15], 0);
}

static void shared_flags(void **state)
{
    LONG flags = 0x11;

    (void)state;
    assert_int_equal(RtlInterlockedSetBits(&flags, 0x2), 0x11);
    assert_int_equal(RtlInterlockedClearBits(&flags, 0x10), 0x13);
    RtlInterlockedSetBitsDiscardReturn(&flags, 0x80);
    RtlInterlockedClearBitsDiscardReturn(&flags, 0x1);
    assert_int_equal(RtlInterlockedXorBits(&flags, 0xFF), 0x82);
    assert_int_equal(flags, 0x7D);
}

static void large_integers(void **state)
{
    LARGE_INTEGER rest;
    ULONG small;

    (void)state;
    assert_true(RtlConvertLongToLargeInteger(-1).QuadPart == -1);
    assert_true(RtlConvertUlongToLargeInteger(MAXULONG).QuadPart == 0xFFFFFFFFLL);
    assert_true(RtlLargeIntegerAdd(large(MAXLONGLONG), large(1)).QuadPart == -MAXLONGLONG - 1); /* wraps */
    assert_true(RtlLargeIntegerSubtract(large(1), large(3)).QuadPart == -2);
    assert_true(RtlLargeIntegerNegate(large(5)).QuadPart == -5);
    assert_true(RtlLargeIntegerShiftLeft(large(1), 40).QuadPart == 1LL << 40);
    assert_true(RtlLargeIntegerShiftRight(large(-1), 60).QuadPart == 15);
    assert_true(RtlLargeIntegerArithmeticShift(large(-16), 2).QuadPart == -4);
    assert_true(RtlEnlargedIntegerMultiply(-100000, 100000).QuadPart == -10000000000LL);
    assert_true(RtlEnlargedUnsignedMultiply(MAXULONG, 2).QuadPart == 0x1FFFFFFFELL);
    assert_true(RtlExtendedIntegerMultiply(large(-10000000000LL), -3).QuadPart == 30000000000LL);
    assert_true(RtlLargeIntegerDivide(large(-7), large(2), &rest).QuadPart == -3);
    assert_true(rest.QuadPart == -1);
    assert_true(RtlExtendedLargeIntegerDivide(large(10000000001LL), 10, &small).QuadPart == 1000000000);
    assert_int_equal(small, 1);
    assert_int_equal(RtlEnlargedUnsignedDivide((ULARGE_INTEGER){.QuadPart = 1000000007}, 10, &small), 100000000);
    assert_int_equal(small, 7);
    /* 10000 is 0xD1B71758E219652C of the documentation's table, shifted by 13: milliseconds of 100 ns. */
    assert_true(RtlExtendedMagicDivide(large(123456789), large((LONGLONG)0xD1B71758E219652C), 13).QuadPart == 12345);
    assert_true(RtlExtendedMagicDivide(large(-123456789), large((LONGLONG)0xD1B71758E219652C), 13).QuadPart == -12345);
    assert_true(RtlLargeIntegerGreaterThan(large(1), large(-1)));
    assert_true(RtlLargeIntegerLessThanZero(large(-1)));
    assert_true(RtlLargeIntegerEqualToZero(large(0)));
}

static void memory(void **state)
{
    UCHAR bytes[19];

    (void)state;
    memset(bytes, '#', sizeof(bytes));
    RtlFillMemoryUlong(bytes + 1, 11, 0x04030201);
    assert_memory_equal(bytes, "#\1\2\3\4\1\2\3\4###", 12);
    assert_int_equal(RtlCompareMemoryUlong(bytes + 1, 11, 0x04030201), 8);
    assert_int_equal(RtlCompareMemoryUlong(bytes + 1, 7, 0x04030201), 4);
    assert_int_equal(RtlCompareMemoryUlong(bytes + 1, 3, 0x04030201), 0);
    assert_int_equal(RtlCompareMemoryUlong(bytes, 8, 0x04030201), 0);
    RtlFillMemoryUlonglong(bytes + 1, 17, 0x0807060504030201);
    assert_memory_equal(bytes, "#\1\2\3\4\5\6\7\10\1\2\3\4\5\6\7\10##", 19);
    RtlFillMemoryUlong(bytes, 3, 0);
    assert_int_equal(bytes[0], '#');
    memset(bytes, 0, sizeof(bytes));
    assert_true(RtlIsZeroMemory(bytes, sizeof(bytes)));
    assert_true(RtlIsZeroMemory(bytes, 0));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 1;
        assert_false(RtlIsZeroMemory(bytes, sizeof(bytes)));
        assert_true(RtlIsZeroMemory(bytes, i));
        bytes[i] = 0;
    }
    RtlPrefetchMemoryNonTemporal(bytes, sizeof(bytes));
    RtlCopyMemoryNonTemporal(bytes, "abc", 3);
    assert_memory_equal(bytes, "abc", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_order),     cmocka_unit_test(unaligned), cmocka_unit_test(shared_flags),
        cmocka_unit_test(large_integers), cmocka_unit_test(memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
