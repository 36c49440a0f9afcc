#include "haltest.h"

static void memory_is_aligned_and_zeroed(void **state)
{
    static const SIZE_T sizes[] = {0, 1, 15, 16, 17, 4096, 100000};
    static const SIZE_T alignments[] = {0, 1, 8, 16, 32, 64, 4096};
    size_t i, j, k, round;

    (void)state;
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (j = 0; j < sizeof(alignments) / sizeof(alignments[0]); j++) {
            for (round = 0; round < 4; round++) {
                unsigned char *memory = HalAllocate(sizes[i], alignments[j]);

                assert_non_null(memory);
                assert_int_equal((ULONG_PTR)memory % (alignments[j] > 16 ? alignments[j] : 16), 0);
                for (k = 0; k < sizes[i]; k++) {
                    assert_int_equal(memory[k], 0);
                    memory[k] = 0xaa;
                }
                HalFree(memory);
            }
        }
    }
}

static void too_much_memory_is_refused(void **state)
{
    (void)state;
    assert_null(HalAllocate(MAXLONG_PTR, 16));
    assert_null(HalAllocate(MAXLONG_PTR, 64));
}

static void nothing_can_be_freed(void **state)
{
    (void)state;
    HalFree(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_zeroed),
        cmocka_unit_test(too_much_memory_is_refused),
        cmocka_unit_test(nothing_can_be_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
