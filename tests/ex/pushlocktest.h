/*
 * pushlocktest.h: threads that use one pushlock as a script says, with wakes that can be held back, so that the lock
 * can be looked at in every state it goes through.
 *
 * A script is a list of steps, each a thread's digit and what it does:
 *     X S    acquire exclusively, shared         T t    try to, exclusively, shared
 *     x s r  release exclusively, shared, however it is held
 *     C      convert to shared                   c      try to convert to exclusive
 * followed by what is expected: nothing: it is done at once; ! it goes to sleep; + it succeeds; - it fails. A digit
 * with only a dot: what the thread was doing is now done; with only ! : it is asleep again. Two steps belong to nobody:
 * < holds back the wakes from here on, > delivers them.
 */
#ifndef INTERLOCK_TESTS_PUSHLOCKTEST_H
#define INTERLOCK_TESTS_PUSHLOCKTEST_H

#include "ex/pushlock.h"

#include "../ke/waittest.h"

#include <ctype.h>

#define L EX_PUSH_LOCK_LOCK
#define W EX_PUSH_LOCK_WAITING
#define K EX_PUSH_LOCK_WAKING
#define M EX_PUSH_LOCK_MULTIPLE_SHARED
#define SHARE EX_PUSH_LOCK_SHARE_INC

#define PLAYERS 6

typedef struct player {
    actor actor;
    volatile ULONG_PTR *lock;
    char step;
    BOOLEAN result;
    BOOLEAN busy;          /* its last step is not known to be done */
    char holds;            /* 'X', 'S' or 0 */
    volatile ULONG asleep;
    sem_t wake;
} player;

static struct {
    player player[PLAYERS];
    volatile ULONG_PTR lock;
    volatile ULONG held_back;
    PEX_PUSH_LOCK_WAIT_BLOCK wakes[PLAYERS];
    volatile ULONG wake_count;
} stage;

static __thread player *self;

/* The methods: sleep on a semaphore; a wake that is held back is noted. */

static inline player **player_in(PEX_PUSH_LOCK_WAIT_BLOCK block)
{
    return (player **)(void *)&block->WakeEvent;
}

static inline void prepare_player(PEX_PUSH_LOCK_WAIT_BLOCK block)
{
    *player_in(block) = self;
}

static inline void sleep_player(PEX_PUSH_LOCK_WAIT_BLOCK block, volatile ULONG_PTR *lock)
{
    (void)block;
    (void)lock;
    __atomic_store_n(&self->asleep, 1, __ATOMIC_RELEASE);
    while (sem_wait(&self->wake) != 0) {
    }
}

static inline void wake_player(PEX_PUSH_LOCK_WAIT_BLOCK block)
{
    player *p = *player_in(block);
    __atomic_store_n(&p->asleep, 0, __ATOMIC_RELEASE);
    if (__atomic_load_n(&stage.held_back, __ATOMIC_ACQUIRE)) {
        stage.wakes[__atomic_fetch_add(&stage.wake_count, 1, __ATOMIC_ACQ_REL)] = block;
    } else {
        sem_post(&p->wake);
    }
}

static inline void deliver_wakes(void)
{
    ULONG count = __atomic_exchange_n(&stage.wake_count, 0, __ATOMIC_ACQ_REL);
    __atomic_store_n(&stage.held_back, 0, __ATOMIC_RELEASE);
    for (ULONG i = 0; i < count; i++) {
        sem_post(&(*player_in(stage.wakes[i]))->wake);
    }
}

static inline void not_owned(volatile ULONG_PTR *lock)
{
    (void)lock;
    check(!"released what is not held");
}

static const EXP_PUSH_LOCK_METHODS stage_methods = {
    .Prepare = prepare_player, .Sleep = sleep_player, .Wake = wake_player, .NotOwned = not_owned};

/* Steps. */

static inline void perform_step(void *argument)
{
    player *p = argument;
    self = p;
    p->result = TRUE;
    switch (p->step) {
    case 'X':
        ExpAcquireExclusive(p->lock, &stage_methods);
        break;
    case 'S':
        ExpAcquireShared(p->lock, &stage_methods);
        break;
    case 'T':
        p->result = ExpTryAcquireExclusive(p->lock);
        break;
    case 't':
        p->result = ExpTryAcquireShared(p->lock);
        break;
    case 'x':
        ExpReleaseExclusive(p->lock, &stage_methods);
        break;
    case 's':
        ExpReleaseShared(p->lock, &stage_methods);
        break;
    case 'r':
        ExpRelease(p->lock, &stage_methods);
        break;
    case 'C':
        ExpConvertToShared(p->lock, &stage_methods);
        break;
    case 'c':
        p->result = ExpTryConvertToExclusive(p->lock);
        break;
    default:
        check(!"no such step");
    }
}

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
    p->lock = &stage.lock;
    tell(&p->actor, perform_step, p);
}

static inline void expect_asleep(player *p)
{
    await(__atomic_load_n(&p->asleep, __ATOMIC_ACQUIRE));
    check(!is_idle(&p->actor));
}

static inline void expect_outcome(player *p, char outcome)
{
    if (outcome == '!') {
        expect_asleep(p);
        return;
    }
    step_done(p);
    check(p->result == (outcome != '-'));
}

static inline void play(const char *script)
{
    while (*script != '\0') {
        if (*script == '<') {
            __atomic_store_n(&stage.held_back, 1, __ATOMIC_RELEASE);
            script += 1;
        } else if (*script == '>') {
            deliver_wakes();
            script += 1;
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

/* Everybody releases what it holds, until nobody wants anything any more. */
static inline void end_play(void)
{
    BOOLEAN active = TRUE;
    deliver_wakes();
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
    check(__atomic_load_n(&stage.lock, __ATOMIC_ACQUIRE) == 0);
}

/* The word. */

static inline ULONG_PTR stage_word(void)
{
    return __atomic_load_n(&stage.lock, __ATOMIC_ACQUIRE);
}

static inline PEX_PUSH_LOCK_WAIT_BLOCK newest_in(ULONG_PTR word)
{
    return (PEX_PUSH_LOCK_WAIT_BLOCK)(word & ~EXP_PUSH_LOCK_BITS);
}

static inline PEX_PUSH_LOCK_WAIT_BLOCK oldest_in(ULONG_PTR word)
{
    PEX_PUSH_LOCK_WAIT_BLOCK block = newest_in(word);
    while (block->Next != NULL) {
        block = block->Next;
    }
    return block;
}

static inline ULONG blocks_in(ULONG_PTR word)
{
    ULONG count = 0;
    for (PEX_PUSH_LOCK_WAIT_BLOCK block = newest_in(word); block != NULL; block = block->Next) {
        count += 1;
    }
    return count;
}

/* What always holds. */
static inline BOOLEAN is_consistent(ULONG_PTR word)
{
    return (!(word & K) || (word & W)) && (!(word & M) || (word & (L | W)) == (L | W)) &&
           ((word & (W | L)) != W || (word & K)) && ((word & (L | W)) || word == 0);
}

static inline int open_stage(void **state)
{
    memset(&stage, 0, sizeof(stage));
    for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
        check(sem_init(&p->wake, 0, 0) == 0);
        start_actor(&p->actor);
    }
    return start_watch(state);
}

static inline int close_stage(void **state)
{
    for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
        end_actor(&p->actor);
        sem_destroy(&p->wake);
    }
    return stop_watch(state);
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)

#endif
