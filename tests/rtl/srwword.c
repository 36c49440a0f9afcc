/* The word of an SRW lock through its states, which are those of a pushlock: see src/ex/pushlock.c. */
#include "srwtest.h"

static const row rows[] = {
    {"0X 1x", 0, 0, 0}, /* no owner */
    {"0S 1s", 0, 0, 0},

    /* a waiter is in transit */
    {"0X 1X! 2X! 1z 0x", WAITING | WAKING, 0, 1},
    {"0X 1X! 2X! 1z 0x 3S!", WAITING | WAKING, 0, 2},
    {"0X 1X! 2X! 1z 0x 3t- 3T+", LOCKED | WAITING | WAKING, 0, 1},
    {"0X 1X! 2X! 1z 0x 3T+ 4X! 5S!", LOCKED | WAITING | WAKING, 0, 3},
    {"0X 1X! 2X! 1z 0x 3T+ 3x", WAITING | WAKING, 0, 1},
    {"0X 1X! 2X! 1z 0x 3T+ 3C", LOCKED | WAITING | WAKING | MULTIPLE, 0, 1},
    {"0X 1X! 2X! 1z 0x 3T+ 3C 3c+", LOCKED | WAITING | WAKING, 0, 1},
    {"0X 1X! 2X! 1z 0x 3T+ 1w 1!", LOCKED | WAITING, 0, 2},
    {"0X 1X! 2X! 1z 0x 1w 1.", LOCKED | WAITING, 0, 1},
    {"0X 1X! 1z 0x", 0, 0, 0},
    {"0X 1X! 1z 0x 2S 3S", LOCKED, 2, 0},
    {"0X 1S! 2S! 1z 2z 0x", LOCKED, 2, 0},
    {"0X 1S! 2X! 1z 0x", LOCKED | WAITING, 0, 1},
};

static void play_all_rows(void)
{
    play_common_rows();
    play_rows(rows, RTL_NUMBER_OF(rows));
}

static void the_word_goes_through_its_states(void **state)
{
    (void)state;
    play_all_rows();
}

#ifdef MISALIGNED_ATOMICS
static void and_at_any_address(void **state)
{
    static const SIZE_T rows_at[] = {1, 2, 4, 7, KI_CACHE_LINE - 4, KI_CACHE_LINE - 1};
    (void)state;
    for (size_t i = 0; i < RTL_NUMBER_OF(rows_at); i += 1) {
        stage.lock = (PRTL_SRWLOCK)(PVOID)(stage.memory + rows_at[i]);
        play_all_rows();
    }
    stage.lock = (PRTL_SRWLOCK)(PVOID)stage.memory;
}
#endif

int main(void)
{
    static const struct CMUnitTest tests[] = {
        STAGED(the_word_goes_through_its_states),
#ifdef MISALIGNED_ATOMICS
        STAGED(and_at_any_address),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
