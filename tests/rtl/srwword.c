/* The word of an SRW lock, through its states: that of a pushlock, see src/ex/pushlockcore.c. */
#include "srwtest.h"

typedef struct row {
    const char *script;
    ULONG_PTR flags;
    ULONG sharers; /* in the word, or with M but without K in the oldest block */
    ULONG blocks;
} row;

static const row rows[] = {
    {"", 0, 0, 0},
    {"0X", L, 0, 0},
    {"0X 0x", 0, 0, 0},
    {"0S", L, 1, 0},
    {"0S 0s", 0, 0, 0},
    {"0S 1S 2S", L, 3, 0},
    {"0S 1S 2S 1s", L, 2, 0},
    {"0X 1x", 0, 0, 0}, /* no owner */
    {"0S 1s", 0, 0, 0},

    /* held, with waiters */
    {"0X 1X!", L | W, 0, 1},
    {"0X 1S!", L | W, 0, 1},
    {"0X 1X! 2S! 3X!", L | W, 0, 3},
    {"0S 1X!", L | W, 0, 1},
    {"0S 1S 2X!", L | W | M, 2, 1},
    {"0S 1S 2S 3X! 4S! 5X!", L | W | M, 3, 3},
    {"0S 1S 2X! 1s", L | W | M, 1, 1},

    /* given on */
    {"0X 1X! 0x 1.", L, 0, 0},
    {"0X 1X! 2X! 0x 1.", L | W, 0, 1},
    {"0X 1X! 2X! 3X! 0x 1. 1x 2.", L | W, 0, 1},
    {"0S 1S 2X! 0s 1s 2.", L, 0, 0},
    {"0S 1S 2X! 3S! 4S! 0s 1s 2. 2x 3. 4.", L, 2, 0},
    {"0X 1S! 0x 1.", L, 1, 0},
    {"0X 1S! 2S! 3S! 0x 1. 2. 3.", L, 3, 0},
    {"0X 1S! 2S! 0x 1. 2. 3S", L, 3, 0},
    {"0X 1S! 2X! 0x 1.", L | W, 0, 1},
    {"0X 1S! 2S! 3X! 0x 1. 2.", L | W | M, 2, 1},
    {"0X 1S! 2S! 3X! 4S! 0x 1. 2. 1s 2s 3.", L | W, 0, 1},

    /* a waiter is on its way */
    {"0X 1X! 2X! 1z 0x", W | K, 0, 1},
    {"0X 1X! 2X! 1z 0x 3S!", W | K, 0, 2},
    {"0X 1X! 2X! 1z 0x 3t- 3T+", L | W | K, 0, 1},
    {"0X 1X! 2X! 1z 0x 3T+ 4X! 5S!", L | W | K, 0, 3},
    {"0X 1X! 2X! 1z 0x 3T+ 3x", W | K, 0, 1},
    {"0X 1X! 2X! 1z 0x 3T+ 3C", L | W | K | M, 0, 1},
    {"0X 1X! 2X! 1z 0x 3T+ 3C 3c+", L | W | K, 0, 1},
    {"0X 1X! 2X! 1z 0x 3T+ 1w 1!", L | W, 0, 2},
    {"0X 1X! 2X! 1z 0x 1w 1.", L | W, 0, 1},
    {"0X 1X! 1z 0x", 0, 0, 0},
    {"0X 1X! 1z 0x 2S 3S", L, 2, 0},
    {"0X 1S! 2S! 1z 2z 0x", L, 2, 0},
    {"0X 1S! 2X! 1z 0x", L | W, 0, 1},

    /* tries */
    {"0T+", L, 0, 0},
    {"0t+ 1t+", L, 2, 0},
    {"0X 0T- 0t- 1T- 1t-", L, 0, 0},
    {"0S 1T- 1t+ 2t+", L, 3, 0},
    {"0S 1X! 2t- 2T- 0t-", L | W, 0, 1},

    /* conversions */
    {"0X 0C", L, 1, 0},
    {"0X 0C 1S", L, 2, 0},
    {"0S 0c+", L, 0, 0},
    {"0S 1S 0c-", L, 2, 0},
    {"0S 1X! 0c+", L | W, 0, 1},
    {"0S 1S 2X! 0c-", L | W | M, 2, 1},
    {"0X 1S! 0C 1.", L, 2, 0},
    {"0X 1S! 2S! 0C 1. 2.", L, 3, 0},
    {"0X 1S! 2X! 0C 1.", L | W | M, 2, 1},
    {"0X 1X! 2S! 0C", L | W, 0, 2},
};

static PEX_PUSH_LOCK_WAIT_BLOCK newest_in(ULONG_PTR word)
{
    return (PEX_PUSH_LOCK_WAIT_BLOCK)(word & ~EXP_PUSH_LOCK_BITS);
}

static PEX_PUSH_LOCK_WAIT_BLOCK oldest_in(ULONG_PTR word)
{
    PEX_PUSH_LOCK_WAIT_BLOCK block = newest_in(word);
    while (block->Next != NULL) {
        block = block->Next;
    }
    return block;
}

static ULONG blocks_in(ULONG_PTR word)
{
    ULONG count = 0;
    for (PEX_PUSH_LOCK_WAIT_BLOCK block = newest_in(word); block != NULL; block = block->Next) {
        count += 1;
    }
    return count;
}

static ULONG sharers_in(ULONG_PTR word)
{
    if (!(word & W)) {
        return (ULONG)(word / SHARE);
    }
    return (ULONG)((word & (M | K)) == M ? oldest_in(word)->ShareCount : 0);
}

/* What holds a lock that somebody else has released is nothing any more. */
static void forget_what_others_released(void)
{
    if (word_of(stage.lock) == 0) {
        for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
            p->holds = 0;
        }
    }
}

static void play_all_rows(void)
{
    for (const row *r = rows; r < rows + RTL_NUMBER_OF(rows); r++) {
        play(r->script);
        ULONG_PTR word = word_of(stage.lock);
        ULONG blocks = word & W ? blocks_in(word) : 0;
        if ((word & EXP_PUSH_LOCK_BITS) != r->flags || sharers_in(word) != r->sharers || blocks != r->blocks) {
            print_error("%s: flags %lx, sharers %u, blocks %u\n", r->script, (unsigned long)(word & EXP_PUSH_LOCK_BITS),
                        sharers_in(word), blocks);
            fail();
        }
        forget_what_others_released();
        end_play();
    }
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
