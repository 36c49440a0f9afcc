/*
 * srwtest.h: an SRW lock driven by scripts (../ex/lockscript.h). Additional steps: z: suspends the thread, which
 * sleeps, so that a wake has no effect yet; w: resumes it.
 */
#ifndef INTERLOCK_TESTS_SRWTEST_H
#define INTERLOCK_TESTS_SRWTEST_H

#include <interlock/rtl.h>

#define PLAYER_FIELDS
#define STAGE_FIELDS                                                                                                   \
    PRTL_SRWLOCK lock;                                                                                                 \
    UCHAR memory[2 * KI_CACHE_LINE] DECLSPEC_ALIGN(KI_CACHE_LINE);
#include "../ex/lockscript.h"

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

static inline BOOLEAN sleeps(player *p)
{
    return is_committed(p->actor.thread);
}

static inline const char *play_own_step(const char *script)
{
    if (!isdigit((unsigned char)script[0]) || (script[1] != 'z' && script[1] != 'w')) {
        return script;
    }
    (script[1] == 'z' ? KeSuspendThread : KeResumeThread)(stage.player[script[0] - '0'].actor.thread);
    return script + 2;
}

static inline ULONG_PTR stage_word(void)
{
    return __atomic_load_n((volatile ULONG_PTR *)stage.lock, __ATOMIC_ACQUIRE);
}

/* A thread whose lock another thread has released holds nothing. */
static inline void forget_what_others_released(void)
{
    if (stage_word() == 0) {
        for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
            p->holds = 0;
        }
    }
}

static inline void end_play(void)
{
    forget_what_others_released();
    for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
        KeResumeThread(p->actor.thread);
    }
    release_all();
    for (player *p = stage.player; p < stage.player + PLAYERS; p++) {
        check(!(p->actor.thread->WaitRegister & KI_WAIT_ALERT_BY_ID_PENDING)); /* none is pending */
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
