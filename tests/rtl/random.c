/* random.c: pseudo-random numbers, unique identifiers, seconds, the version. */
#include "support.h"

#include <ntddk.h>

#include <stdlib.h>
#include <string.h>

static void numbers(void **state)
{
    ULONG seed = 1, other = 1, halves = 0;
    UCHAR seen[64] = {0};

    (void)state;
    assert_int_equal(RtlUniform(&seed), 0x7FFFFFB1);
    assert_int_equal(seed, 0x7FFFFFB1);
    seed = 1;
    for (int i = 0; i < 10000; i++) {
        ULONG number = i % 2 ? RtlRandom(&seed) : RtlRandomEx(&seed);

        assert_true(number < MAXLONG);
        assert_int_equal(number, RtlRandomEx(&other)); /* the seed is the whole state */
        halves += number < MAXLONG / 2;
        seen[number % 64] = 1;
    }
    assert_true(halves > 4500 && halves < 5500);
    assert_null(memchr(seen, 0, sizeof(seen))); /* the low bits vary too */
}

static UUID created[4][200];

static void create(void *argument, unsigned index)
{
    (void)argument;
    for (int i = 0; i < 200; i++)
        assert_int_equal(ExUuidCreate(&created[index][i]), STATUS_SUCCESS); /* unique on every machine */
}

static int compare(const void *first, const void *second)
{
    return memcmp(first, second, sizeof(UUID));
}

static void identifiers(void **state)
{
    UUID *all = &created[0][0];

    (void)state;
    run_threads(4, 60, create, NULL);
    for (int i = 0; i < 800; i++) {
        assert_int_equal(all[i].Data3 >> 12, 1);         /* version 1 */
        assert_int_equal(all[i].Data4[0] & 0xC0, 0x80);  /* of the RFC */
        assert_int_equal(all[i].Data4[2] & 1, 1);        /* no address */
        assert_memory_equal(&all[i].Data4[2], &all[0].Data4[2], 6);
    }
    qsort(all, 800, sizeof(UUID), compare);
    for (int i = 1; i < 800; i++)
        assert_memory_not_equal(&all[i - 1], &all[i], sizeof(UUID));
}

static void seconds(void **state)
{
    TIME_FIELDS fields = {.Year = 1970, .Month = 1, .Day = 2, .Second = 5, .Milliseconds = 999};
    LARGE_INTEGER time;
    ULONG value = 7;

    (void)state;
    assert_true(RtlTimeFieldsToTime(&fields, &time));
    assert_true(RtlTimeToSecondsSince1970(&time, &value));
    assert_int_equal(value, 86405);
    assert_false(RtlTimeToSecondsSince1980(&time, &value));
    assert_int_equal(value, 86405);
    RtlSecondsSince1970ToTime(0, &time);
    assert_true(time.QuadPart == 116444736000000000LL);
    RtlSecondsSince1980ToTime(0, &time);
    assert_true(RtlTimeToSecondsSince1970(&time, &value));
    assert_int_equal(value, 315532800);
    RtlSecondsSince1970ToTime(MAXULONG, &time);
    assert_true(RtlTimeToSecondsSince1970(&time, &value));
    assert_int_equal(value, MAXULONG);
    time.QuadPart += 10000000;
    assert_false(RtlTimeToSecondsSince1970(&time, &value));
    assert_true(RtlTimeToSecondsSince1980(&time, &value));
    time.QuadPart = 0;
    assert_false(RtlTimeToSecondsSince1970(&time, &value));
}

static NTSTATUS verify(ULONG major, ULONG minor, ULONG pack, ULONG types, UCHAR condition)
{
    RTL_OSVERSIONINFOEXW info = {.dwMajorVersion = major, .dwMinorVersion = minor, .wServicePackMajor = (USHORT)pack};
    ULONGLONG mask = 0;

    VER_SET_CONDITION(mask, types, condition);
    return RtlVerifyVersionInfo(&info, types, mask);
}

static void version(void **state)
{
    const ULONG both = VER_MAJORVERSION | VER_MINORVERSION, all = both | VER_SERVICEPACKMAJOR;
    RTL_OSVERSIONINFOEXW info = {.dwOSVersionInfoSize = sizeof(info)};
    RTL_OSVERSIONINFOW plain[2];

    (void)state;
    memset(plain, '#', sizeof(plain));
    plain[0].dwOSVersionInfoSize = sizeof(plain[0]);
    assert_int_equal(RtlGetVersion(plain), STATUS_SUCCESS);
    assert_int_equal(plain[0].dwMajorVersion, 10);
    assert_int_equal(plain[0].dwPlatformId, VER_PLATFORM_WIN32_NT);
    assert_int_equal(*(PUCHAR)&plain[1], '#');
    assert_int_equal(RtlGetVersion((PRTL_OSVERSIONINFOW)&info), STATUS_SUCCESS);
    assert_int_equal(info.dwBuildNumber, 19045);
    assert_int_equal(info.wProductType, VER_NT_WORKSTATION);
    assert_int_equal(verify(6, 1, 0, both, VER_GREATER_EQUAL), STATUS_SUCCESS); /* the minor number does not count */
    assert_int_equal(verify(10, 0, 0, both, VER_GREATER_EQUAL), STATUS_SUCCESS);
    assert_int_equal(verify(10, 1, 0, both, VER_GREATER_EQUAL), STATUS_REVISION_MISMATCH);
    assert_int_equal(verify(10, 0, 0, both, VER_GREATER), STATUS_REVISION_MISMATCH);
    assert_int_equal(verify(9, 9, 9, all, VER_GREATER), STATUS_SUCCESS);
    assert_int_equal(verify(10, 0, 1, all, VER_LESS), STATUS_SUCCESS);
    assert_int_equal(verify(10, 0, 0, all, VER_LESS), STATUS_REVISION_MISMATCH);
    assert_int_equal(verify(10, 0, 0, all, VER_EQUAL), STATUS_SUCCESS);
    assert_int_equal(verify(11, 0, 0, both, VER_LESS_EQUAL), STATUS_SUCCESS);
    assert_int_equal(verify(10, 0, 0, 0, VER_EQUAL), STATUS_INVALID_PARAMETER);
    assert_int_equal(verify(10, 0, 0, both, 0), STATUS_INVALID_PARAMETER);
    /* each condition has its own bits */
    assert_int_equal(VerSetConditionMask(0, VER_MAJORVERSION, VER_EQUAL),
                     (ULONGLONG)VER_EQUAL << __builtin_ctz(VER_MAJORVERSION) * VER_NUM_BITS_PER_CONDITION_MASK);
    assert_int_equal(VerSetConditionMask(MAXULONGLONG, VER_MAJORVERSION, VER_EQUAL) |
                         (ULONGLONG)VER_CONDITION_MASK << __builtin_ctz(VER_MAJORVERSION) * VER_NUM_BITS_PER_CONDITION_MASK,
                     MAXULONGLONG);
    info.wProductType = VER_NT_SERVER;
    assert_int_equal(RtlVerifyVersionInfo(&info, VER_PRODUCT_TYPE, VerSetConditionMask(0, VER_PRODUCT_TYPE, VER_EQUAL)),
                     STATUS_REVISION_MISMATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(identifiers),
        cmocka_unit_test(seconds),
        cmocka_unit_test(version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
