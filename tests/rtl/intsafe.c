/* intsafe.c: every conversion and operation of ntintsafe.h and intsafe.h, against arithmetic in 128 bits. */
#include "support.h"

#include <windows.h>
#include <ntintsafe.h>
#include <intsafe.h>

__extension__ typedef __int128 wide;

/* The edges of every type, and their neighbours. */
static wide edges[200];
static unsigned edge_count;

static int find_edges(void **state)
{
    (void)state;
    for (int bits = 0; bits <= 64; bits++) {
        if (bits != 0 && bits != 7 && bits != 8 && bits != 15 && bits != 16 && bits != 31 && bits != 32 && bits < 63)
            continue;
        for (int offset = -2; offset <= 2; offset++) {
            edges[edge_count++] = ((wide)1 << bits) + offset;
            edges[edge_count++] = -((wide)1 << bits) + offset;
        }
    }
    return 0;
}

/* Does the type have this value? Then the conversion preserves it. */
#define FITS(Type, Value) ((wide)(Type)(Value) == (Value))

static unsigned long checks;

static void check(LONG status, LONG wanted, bool right)
{
    assert_int_equal(status, wanted);
    assert_true(right);
    checks++;
}

#define CHECK(Type, Call, Expected, Error, Ok, Overflow)                                                               \
    do {                                                                                                               \
        Type result = (Type)0x55;                                                                                      \
        const wide expected = (Expected);                                                                              \
        const bool fits = FITS(Type, expected);                                                                        \
        const LONG status = Call;                                                                                      \
        check(status, fits ? Ok : Overflow, result == (fits ? (Type)expected : (Type)(Error)));                        \
    } while (0)

#undef INTERLOCK_SAFE_CONVERSION
#undef INTERLOCK_SAFE_ARITHMETIC
#define INTERLOCK_SAFE_INTEGER(Name) Name

/* A function for each: compilers take long for a large one. */
#define INTERLOCK_SAFE_CONVERSION(Name, From, To, Error)                                                               \
    static void check_##Name(void)                                                                                     \
    {                                                                                                                  \
        for (unsigned i = 0; i < edge_count; i++) {                                                                    \
            if (FITS(From, edges[i])) {                                                                                \
                const From value = (From)edges[i];                                                                     \
                CHECK(To, Rtl##Name(value, &result), edges[i], Error, STATUS_SUCCESS, STATUS_INTEGER_OVERFLOW);        \
                CHECK(To, Name(value, &result), edges[i], Error, S_OK, INTSAFE_E_ARITHMETIC_OVERFLOW);                 \
            }                                                                                                          \
        }                                                                                                              \
    }
#define CHECK_BOTH(Name, Type, Error, First, Second, Expected)                                                         \
    CHECK(Type, Rtl##Name(First, Second, &result), Expected, Error, STATUS_SUCCESS, STATUS_INTEGER_OVERFLOW);          \
    CHECK(Type, Name(First, Second, &result), Expected, Error, S_OK, INTSAFE_E_ARITHMETIC_OVERFLOW)
#define INTERLOCK_SAFE_ARITHMETIC(Name, Type, Error)                                                                   \
    static void check_##Name(void)                                                                                     \
    {                                                                                                                  \
        for (unsigned i = 0; i < edge_count; i++) {                                                                    \
            for (unsigned j = 0; j < edge_count; j++) {                                                                \
                if (FITS(Type, edges[i]) && FITS(Type, edges[j])) {                                                    \
                    const Type first = (Type)edges[i], second = (Type)edges[j];                                        \
                    CHECK_BOTH(Name##Add, Type, Error, first, second, edges[i] + edges[j]);                            \
                    CHECK_BOTH(Name##Sub, Type, Error, first, second, edges[i] - edges[j]);                            \
                    if (!(edges[i] > INT64_MAX && edges[j] > INT64_MAX)) {                                             \
                        CHECK_BOTH(Name##Mult, Type, Error, first, second, edges[i] *edges[j]);                        \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
#include <interlock/safe.h>

#undef INTERLOCK_SAFE_CONVERSION
#undef INTERLOCK_SAFE_ARITHMETIC
#define INTERLOCK_SAFE_INTEGER(Name)                       Name
#define INTERLOCK_SAFE_CONVERSION(Name, From, To, Error)   check_##Name();
#define INTERLOCK_SAFE_ARITHMETIC(Name, Type, Error)       check_##Name();

static void every_function(void **state)
{
    (void)state;
#include <interlock/safe.h>
    assert_true(checks > 100000);
}

/* Two factors of 64 bits: their product does not fit into 128 bits with a sign. */
static void large_products(void **state)
{
    ULONGLONG result;

    (void)state;
    assert_int_equal(RtlULongLongMult(MAXULONGLONG, MAXULONGLONG, &result), STATUS_INTEGER_OVERFLOW);
    assert_true(result == ULONGLONG_ERROR);
    assert_int_equal(RtlULongLongMult(MAXULONGLONG, 1, &result), STATUS_SUCCESS);
    assert_true(result == MAXULONGLONG);
}

static void other_names(void **state)
{
    UINT32 result;
    SIZE_T size;

    (void)state;
    assert_int_equal(RtlUInt32Add(MAXULONG, 1, &result), STATUS_INTEGER_OVERFLOW);
    assert_int_equal(RtlSIZETMult(3, 4, &size), STATUS_SUCCESS);
    assert_int_equal(size, 12);
    assert_int_equal(UInt64ToUInt32(1ULL << 32, &result), INTSAFE_E_ARITHMETIC_OVERFLOW);
    assert_int_equal(result, UINT_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function),
        cmocka_unit_test(large_products),
        cmocka_unit_test(other_names),
    };

    return cmocka_run_group_tests(tests, find_edges, NULL);
}
