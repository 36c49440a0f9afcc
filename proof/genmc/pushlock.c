/*
 * pushlock.c: pushlocks and SRW locks, which are one algorithm. MODES has a thread each: an exclusive owner is alone, sharers
 * see its work, no wakeup is lost, and the lock is free in the end.
 */
#include "shim.h"

#ifndef MODES
#define MODES EXCLUSIVE, EXCLUSIVE, SHARED
#endif

struct _KTHREAD {
    PVOID LockOwned;
};

/* A contended acquire queues at once. */
typedef enum { KiParkForPushLock, KiParkForNearPushLock } KI_PARK_USE;
typedef struct {
    ULONG Spins;
    ULONG Spun;
    ULONG Gap;
} KI_PATIENCE;
#define KiLockUse(thread) KiParkForPushLock
#define KiBeginLockPatience(patience, thread, use, queues) ((void)(use), (patience)->Spins = 0)
#define KiStayAwake(patience, thread, use) FALSE
#define KiTimeLook(thread, patience, word) ((void)(word))
#define KiIsTurnOver(thread, lock) ((void)(thread), FALSE)
#define KiBeginTurn(thread, lock) ((void)(thread))
#define KiCountPass(thread, lock) ((void)(thread), FALSE)
#define KiCountContention(thread) ((void)(thread))
#define KiEndPass(thread, yields, queues) ((void)(yields))
#define HalDisperseCrowd() ((void)0)
#define KTRACE_CONTENTION_BEGIN(lock, kind, exclusive, spins) ((void)0)
#define KTRACE_CONTENTION_END(lock, kind, exclusive) ((void)0)
#define KTRACE_RELEASING(lock, kind, exclusive, thread) ((void)0)
#define KTRACE_RELEASED(all) ((void)0)
static struct { ULONG ProcessId; } KiInitialProcess = {1};

//! take ExpAcquirePushLockExclusive ExpAcquirePushLockShared ExpReleasePushLockExclusive ExpReleasePushLockShared ExpConvertPushLockToShared ExpTryConvertPushLockToExclusive ExpTryAcquirePushLockExclusive
//! fault 1 ExpChangePushLock: __ATOMIC_ACQ_REL, __ATOMIC_RELAXED => __ATOMIC_RELAXED, __ATOMIC_RELAXED
//! fault 2 ExpTryReleaseWaited: if (!(Found & WAKING)) => if (Found & WAKING)
//! fault 3 ExpMayTakePushLock: (!(Value & WAITING) && Value >= SHARE) => Value >= SHARE

enum { EXCLUSIVE, SHARED, TRY, UPGRADE, DOWNGRADE };

static const int modes[] = {MODES};
static volatile ULONG_PTR lock;
static int data; /* of the exclusive owner */
static int expected[SHIM_MOST];

static VOID prepare(PEXP_WAIT_BLOCK block)
{
    KeInitializeEvent(&block->WakeEvent, 0, FALSE);
}

static VOID sleep_in_queue(PEXP_WAIT_BLOCK block, volatile ULONG_PTR *word)
{
    (void)word;
    KeWaitForSingleObject(&block->WakeEvent, 0, 0, FALSE, NULL);
}

static VOID wake(PEXP_WAIT_BLOCK block)
{
    KeSetEvent(&block->WakeEvent, 0, FALSE);
}

static VOID not_owned(volatile ULONG_PTR *word)
{
    (void)word;
    assert(!"the lock is not held");
}

static const EXP_PUSH_LOCK_METHODS methods = {.Prepare = prepare, .Sleep = sleep_in_queue, .Wake = wake, .NotOwned = not_owned};

static void own(int thread)
{
    data += 1;
    expected[thread] = 1;
}

static void look(void)
{
    int seen = data;
    assert(seen >= 0 && seen <= SHIM_MOST);
}

static void *body(void *argument)
{
    int thread = (int)(intptr_t)argument;
    KTHREAD self = {0};
    shim_thread = &self;
    switch (modes[thread]) {
    case EXCLUSIVE:
        ExpAcquirePushLockExclusive(&lock, &methods);
        own(thread);
        ExpReleasePushLockExclusive(&lock, &methods);
        break;
    case SHARED:
        ExpAcquirePushLockShared(&lock, &methods);
        look();
        ExpReleasePushLockShared(&lock, &methods);
        break;
    case TRY:
        if (ExpTryAcquirePushLockExclusive(&lock)) {
            own(thread);
            ExpReleasePushLockExclusive(&lock, &methods);
        }
        break;
    case UPGRADE:
        ExpAcquirePushLockShared(&lock, &methods);
        look();
        if (ExpTryConvertPushLockToExclusive(&lock)) {
            own(thread);
            ExpReleasePushLockExclusive(&lock, &methods);
        } else {
            ExpReleasePushLockShared(&lock, &methods);
        }
        break;
    case DOWNGRADE:
        ExpAcquirePushLockExclusive(&lock, &methods);
        own(thread);
        ExpConvertPushLockToShared(&lock, &methods);
        look();
        ExpReleasePushLockShared(&lock, &methods);
        break;
    }
    return NULL;
}

static void setup(void)
{
    lock = 0;
    data = 0;
    for (int i = 0; i < SHIM_MOST; i++) {
        expected[i] = 0;
    }
}

static void finish(void)
{
    int owners = 0;
    for (int i = 0; i < SHIM_MOST; i++) {
        owners += expected[i];
    }
    assert(data == owners && lock == 0);
}

int main(void)
{
    static SHIM_BODY *const bodies[SHIM_MOST] = {body, body, body, body};
    shim_run((int)(sizeof(modes) / sizeof(*modes)), bodies, setup, finish);
    return 0;
}
