/*
 * lockscript.h: threads that use one pushlock or SRW lock as a script says, so that the lock can be checked in every
 * state. pushlocktest.h and srwtest.h include it and perform the steps.
 *
 * A script is a list of steps, each a thread's digit and what it does:
 *     X S    acquire exclusively, shared         T t    try to, exclusively, shared
 *     x s    release exclusively, shared         C c    convert to shared, try to convert to exclusive
 * followed by the expectation: nothing: it completes at once; ! it goes to sleep; + it succeeds; - it fails. A digit
 * with only a dot: the thread's pending step is now complete; with only ! : it is asleep again.
 */
#ifndef INTERLOCK_TESTS_LOCKSCRIPT_H
#define INTERLOCK_TESTS_LOCKSCRIPT_H

#include "ex/pushlock.h"

#include "../ke/waittest.h"

#include <ctype.h>

#define LOCKED EX_PUSH_LOCK_LOCK
#define WAITING EX_PUSH_LOCK_WAITING
#define WAKING EX_PUSH_LOCK_WAKING
#define MULTIPLE EX_PUSH_LOCK_MULTIPLE_SHARED
#define SHARE EX_PUSH_LOCK_SHARE_INC

#define PLAYERS 6

typedef struct player {
    actor actor;
    char step;
    BOOLEAN result;
    BOOLEAN busy; /* its last step may not be complete */
    char holds;   /* 'X', 'S' or 0 */
    PLAYER_FIELDS
} player;

static struct {
    player player[PLAYERS];
    STAGE_FIELDS
} stage;

/* Provided by the including file. */
static inline void perform_step(void *player);
static inline BOOLEAN sleeps(player *p);
static inline const char *play_own_step(const char *script); /* the rest after it; script itself: not a step */
static inline void end_play(void);
static inline ULONG_PTR stage_word(void);

static inline char held_after(const player *p)
{
    if (!p->result) {
        return p->holds;
    }
    switch (p->step) {
    case 'X':
    case 'T':
    case 'c':
        return 'X';
    case 'S':
    case 't':
    case 'C':
        return 'S';
    default:
        return 0;
    }
}

static inline void step_done(player *p)
{
    await(is_idle(&p->actor));
    p->busy = FALSE;
    p->holds = held_after(p);
}

static inline void begin_step(player *p, char step)
{
    check(!p->busy);
    p->busy = TRUE;
    p->step = step;
    tell(&p->actor, perform_step, p);
}

static inline void expect_outcome(player *p, char outcome)
{
    if (outcome == '!') {
        await(sleeps(p));
        return;
    }
    step_done(p);
    check(p->result == (outcome != '-'));
}

static inline void play(const char *script)
{
    while (*script != '\0') {
        const char *behind = play_own_step(script);
        if (behind != script) {
            script = behind;
        } else if (isdigit((unsigned char)*script)) {
            player *p = &stage.player[*script++ - '0'];
            if (isalpha((unsigned char)*script)) {
                begin_step(p, *script++);
            }
            expect_outcome(p, *script);
            script += *script != '\0' && strchr("!+-.", *script) != NULL;
        } else {
            check(*script == ' ');
            script += 1;
        }
    }
}

/* Each thread releases what it holds, until no thread waits. */
static inline void release_all(void)
{
    BOOLEAN active = TRUE;
    while (active) {
        active = FALSE;
        for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
            active |= p->busy || p->holds;
            if (p->busy && is_idle(&p->actor)) {
                step_done(p);
            } else if (!p->busy && p->holds) {
                begin_step(p, p->holds == 'X' ? 'x' : 's');
                step_done(p);
            }
        }
        pause_briefly();
    }
    check(stage_word() == 0);
}

/* The word. */

static inline PEXP_WAIT_BLOCK newest_in(ULONG_PTR word)
{
    return (PEXP_WAIT_BLOCK)(word & ~EXP_PUSH_LOCK_BITS);
}

static inline PEXP_WAIT_BLOCK oldest_in(ULONG_PTR word)
{
    PEXP_WAIT_BLOCK block = newest_in(word);
    while (block->Next != NULL) {
        block = block->Next;
    }
    return block;
}

static inline ULONG blocks_in(ULONG_PTR word)
{
    ULONG count = 0;
    for (PEXP_WAIT_BLOCK block = newest_in(word); block != NULL; block = block->Next) {
        count += 1;
    }
    return count;
}

static inline ULONG sharers_in(ULONG_PTR word)
{
    if (!(word & WAITING)) {
        return (ULONG)(word / SHARE);
    }
    return (ULONG)((word & (MULTIPLE | WAKING)) == MULTIPLE ? oldest_in(word)->ShareCount : 0);
}

/* Invariants. */
static inline BOOLEAN is_consistent(ULONG_PTR word)
{
    ULONG_PTR held = word & (LOCKED | WAITING);
    return (!(word & WAKING) || (word & WAITING)) && (!(word & MULTIPLE) || held == (LOCKED | WAITING)) &&
           (held != WAITING || (word & WAKING)) && (held != 0 || word == 0);
}

typedef struct row {
    const char *script;
    ULONG_PTR flags;
    ULONG sharers; /* in the word, or with MULTIPLE but without WAKING in the oldest block */
    ULONG blocks;
} row;

static inline void play_rows(const row *rows, size_t count)
{
    for (const row *r = rows; r < rows + count; r++) {
        play(r->script);
        ULONG_PTR word = stage_word();
        ULONG blocks = word & WAITING ? blocks_in(word) : 0;
        if ((word & EXP_PUSH_LOCK_BITS) != r->flags || sharers_in(word) != r->sharers || blocks != r->blocks ||
            !is_consistent(word)) {
            print_error("%s: flags %lx, sharers %u, blocks %u\n", r->script, (unsigned long)(word & EXP_PUSH_LOCK_BITS),
                        sharers_in(word), blocks);
            fail();
        }
        end_play();
    }
}

/* Those in which all wakes are delivered at once. */
static inline void play_common_rows(void)
{
    static const row rows[] = {
        {"", 0, 0, 0},
        {"0X", LOCKED, 0, 0},
        {"0X 0x", 0, 0, 0},
        {"0S", LOCKED, 1, 0},
        {"0S 0s", 0, 0, 0},
        {"0S 1S 2S", LOCKED, 3, 0},
        {"0S 1S 2S 1s", LOCKED, 2, 0},

        /* held, with waiters */
        {"0X 1X!", LOCKED | WAITING, 0, 1},
        {"0X 1S!", LOCKED | WAITING, 0, 1},
        {"0X 1X! 2S! 3X!", LOCKED | WAITING, 0, 3},
        {"0S 1X!", LOCKED | WAITING, 0, 1},
        {"0S 1S 2X!", LOCKED | WAITING | MULTIPLE, 2, 1},
        {"0S 1S 2S 3X! 4S! 5X!", LOCKED | WAITING | MULTIPLE, 3, 3},
        {"0S 1S 2X! 1s", LOCKED | WAITING | MULTIPLE, 1, 1},

        /* handed off */
        {"0X 1X! 0x 1.", LOCKED, 0, 0},
        {"0X 1X! 2X! 0x 1.", LOCKED | WAITING, 0, 1},
        {"0X 1X! 2X! 3X! 0x 1. 1x 2.", LOCKED | WAITING, 0, 1},
        {"0S 1S 2X! 0s 1s 2.", LOCKED, 0, 0},
        {"0S 1S 2X! 3S! 4S! 0s 1s 2. 2x 3. 4.", LOCKED, 2, 0},
        {"0X 1S! 0x 1.", LOCKED, 1, 0},
        {"0X 1S! 2S! 3S! 0x 1. 2. 3.", LOCKED, 3, 0},
        {"0X 1S! 2S! 0x 1. 2. 3S", LOCKED, 3, 0},
        {"0X 1S! 2X! 0x 1.", LOCKED | WAITING, 0, 1},
        {"0X 1S! 2S! 3X! 0x 1. 2.", LOCKED | WAITING | MULTIPLE, 2, 1},
        {"0X 1S! 2S! 3X! 4S! 0x 1. 2. 1s 2s 3.", LOCKED | WAITING, 0, 1},

        /* tries */
        {"0T+", LOCKED, 0, 0},
        {"0t+ 1t+", LOCKED, 2, 0},
        {"0X 0T- 0t- 1T- 1t-", LOCKED, 0, 0},
        {"0S 1T- 1t+ 2t+", LOCKED, 3, 0},
        {"0S 1X! 2t- 2T- 0t-", LOCKED | WAITING, 0, 1},

        /* conversions */
        {"0X 0C", LOCKED, 1, 0},
        {"0X 0C 1S", LOCKED, 2, 0},
        {"0S 0c+", LOCKED, 0, 0},
        {"0S 1S 0c-", LOCKED, 2, 0},
        {"0S 1X! 0c+", LOCKED | WAITING, 0, 1},
        {"0S 1S 2X! 0c-", LOCKED | WAITING | MULTIPLE, 2, 1},
        {"0S 1S 2X! 1s 0c+", LOCKED | WAITING, 0, 1},
        {"0S 1S 2X! 1s 0c+ 0x 2.", LOCKED, 0, 0},
        {"0S 1S 2X! 3S! 1s 0c+ 0C", LOCKED | WAITING, 0, 2},
        {"0S 1S 2S 3X! 4X! 1s 2s 0c+ 0x 3.", LOCKED | WAITING, 0, 1},
        {"0X 1X! 0C", LOCKED | WAITING, 0, 1},
        {"0X 1S! 0C 1.", LOCKED, 2, 0},
        {"0X 1S! 2S! 0C 1. 2.", LOCKED, 3, 0},
        {"0X 1S! 2X! 0C 1.", LOCKED | WAITING | MULTIPLE, 2, 1},
        {"0X 1S! 2X! 0C 1. 0s", LOCKED | WAITING | MULTIPLE, 1, 1},
        {"0X 1S! 2X! 0C 1. 0s 1c+", LOCKED | WAITING, 0, 1},
        {"0X 1X! 2S! 0C", LOCKED | WAITING, 0, 2},
        {"0X 1X! 2S! 0C 0c+ 0x 1.", LOCKED | WAITING, 0, 1},
    };
    play_rows(rows, RTL_NUMBER_OF(rows));
}

#endif
