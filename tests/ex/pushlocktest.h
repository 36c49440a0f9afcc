/*
 * pushlocktest.h: a pushlock that is used by scripts (lockscript.h), with wakes that can be delayed. Further steps:
 *     r      release, however it is held
 * Two belong to no thread: < delays the wakes from here on, > delivers them.
 */
#ifndef INTERLOCK_TESTS_PUSHLOCKTEST_H
#define INTERLOCK_TESTS_PUSHLOCKTEST_H

#define PLAYER_FIELDS                                                                                                  \
    volatile ULONG asleep;                                                                                             \
    sem_t wake;
#define STAGE_FIELDS                                                                                                   \
    volatile ULONG_PTR lock;                                                                                           \
    volatile ULONG held_back;                                                                                          \
    PEXP_WAIT_BLOCK wakes[PLAYERS];                                                                           \
    volatile ULONG wake_count;
#include "lockscript.h"

static __thread player *self;

/* The methods: sleep on a semaphore; a delayed wake is recorded. */

static inline player **player_in(PEXP_WAIT_BLOCK block)
{
    return (player **)(void *)&block->WakeEvent;
}

static inline void prepare_player(PEXP_WAIT_BLOCK block)
{
    *player_in(block) = self;
}

static inline void sleep_player(PEXP_WAIT_BLOCK block, volatile ULONG_PTR *lock)
{
    (void)block;
    (void)lock;
    __atomic_store_n(&self->asleep, 1, __ATOMIC_RELEASE);
    while (sem_wait(&self->wake) != 0) {
    }
}

static inline void wake_player(PEXP_WAIT_BLOCK block)
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
        ExpAcquirePushLockExclusive(&stage.lock, &stage_methods);
        break;
    case 'S':
        ExpAcquirePushLockShared(&stage.lock, &stage_methods);
        break;
    case 'T':
        p->result = ExpTryAcquirePushLockExclusive(&stage.lock);
        break;
    case 't':
        p->result = ExpTryAcquirePushLockShared(&stage.lock);
        break;
    case 'x':
        ExpReleasePushLockExclusive(&stage.lock, &stage_methods);
        break;
    case 's':
        ExpReleasePushLockShared(&stage.lock, &stage_methods);
        break;
    case 'r':
        ExpReleasePushLock(&stage.lock, &stage_methods);
        break;
    case 'C':
        ExpConvertPushLockToShared(&stage.lock, &stage_methods);
        break;
    case 'c':
        p->result = ExpTryConvertPushLockToExclusive(&stage.lock);
        break;
    default:
        check(!"no such step");
    }
}

static inline BOOLEAN sleeps(player *p)
{
    return __atomic_load_n(&p->asleep, __ATOMIC_ACQUIRE) != 0;
}

static inline const char *play_own_step(const char *script)
{
    if (*script == '<') {
        __atomic_store_n(&stage.held_back, 1, __ATOMIC_RELEASE);
    } else if (*script == '>') {
        deliver_wakes();
    } else {
        return script;
    }
    return script + 1;
}

static inline void end_play(void)
{
    deliver_wakes();
    release_all();
}

static inline ULONG_PTR stage_word(void)
{
    return __atomic_load_n(&stage.lock, __ATOMIC_ACQUIRE);
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
