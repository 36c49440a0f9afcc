/*
 * srwtest.h: threads that use one SRW lock as a script says, so that the lock can be looked at in every state.
 *
 * A script is a list of steps, each a thread's digit and what it does:
 *     X S    acquire exclusively, shared         T t    try to, exclusively, shared
 *     x s    release exclusively, shared         C c    convert to shared, to exclusive
 * followed by what is expected: nothing: it is done at once; ! it sleeps; + it succeeds; - it fails. A digit with only
 * a dot: what the thread was doing is now done; with only ! : it sleeps again. z: the thread, which sleeps, is
 * suspended, so that a wake that reaches it has no effect yet; w: it is resumed.
 */
#ifndef INTERLOCK_TESTS_SRWTEST_H
#define INTERLOCK_TESTS_SRWTEST_H

#include "../ke/waittest.h"

#include "ex/pushlock.h"

#include <interlock/rtl.h>

#include <ctype.h>

#define L EX_PUSH_LOCK_LOCK
#define W EX_PUSH_LOCK_WAITING
#define K EX_PUSH_LOCK_WAKING
#define M EX_PUSH_LOCK_MULTIPLE_SHARED
#define SHARE EX_PUSH_LOCK_SHARE_INC

#define PLAYERS 6

typedef struct player {
    actor actor;
    char step;
    BOOLEAN result;
    BOOLEAN busy; /* its last step is not known to be done */
    char holds;   /* 'X', 'S' or 0 */
} player;

static struct {
    player player[PLAYERS];
    PRTL_SRWLOCK lock;
    UCHAR memory[2 * KI_CACHE_LINE] DECLSPEC_ALIGN(KI_CACHE_LINE);
} stage;

static inline ULONG_PTR word_of(PRTL_SRWLOCK lock)
{
    return __atomic_load_n((volatile ULONG_PTR *)lock, __ATOMIC_ACQUIRE);
}

static inline void perform_step(void *argument)
{
    player *p = argument;
    p->result = TRUE;
    switch (p->step) {
    case 'X':
        RtlAcquireSRWLockExclusive(stage.lock);
        break;
    case 'S':
        RtlAcquireSRWLockShared(stage.lock);
        break;
    case 'T':
        p->result = RtlTryAcquireSRWLockExclusive(stage.lock);
        break;
    case 't':
        p->result = RtlTryAcquireSRWLockShared(stage.lock);
        break;
    case 'x':
        RtlReleaseSRWLockExclusive(stage.lock);
        break;
    case 's':
        RtlReleaseSRWLockShared(stage.lock);
        break;
    case 'C':
        RtlConvertSRWLockExclusiveToShared(stage.lock);
        break;
    case 'c':
        p->result = RtlConvertSRWLockSharedToExclusive(stage.lock);
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
    tell(&p->actor, perform_step, p);
}

static inline BOOLEAN sleeps(player *p)
{
    return is_committed(p->actor.thread);
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
        if (!isdigit((unsigned char)*script)) {
            check(*script == ' ');
            script += 1;
            continue;
        }
        player *p = &stage.player[*script++ - '0'];
        if (*script == 'z' || *script == 'w') {
            (*script == 'z' ? KeSuspendThread : KeResumeThread)(p->actor.thread);
            script += 1;
            continue;
        }
        if (isalpha((unsigned char)*script)) {
            begin_step(p, *script++);
        }
        expect_outcome(p, *script);
        script += *script != '\0' && strchr("!+-.", *script) != NULL;
    }
}

/* Everybody releases what it holds, until nobody wants anything any more. */
static inline void end_play(void)
{
    BOOLEAN active = TRUE;
    for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
        KeResumeThread(p->actor.thread);
    }
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
    check(word_of(stage.lock) == 0);
    for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
        check(!(p->actor.thread->WaitRegister & KI_WAIT_ALERT_BY_ID_PENDING)); /* none is left over */
    }
}

static inline int open_stage(void **state)
{
    memset(&stage, 0, sizeof(stage));
    stage.lock = (PRTL_SRWLOCK)(PVOID)stage.memory;
    for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
        start_actor(&p->actor);
    }
    return start_watch(state);
}

static inline int close_stage(void **state)
{
    for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
        end_actor(&p->actor);
    }
    return stop_watch(state);
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)

#endif
