/* locks.c: SRW locks, pushlocks, critical sections, resources, guarded mutexes, condition variables. */
#include "fuzz.h"

#include <stdio.h>

#include "../../lab/models/rwlock.h"

enum { RESOURCE_CONVERT = 5 };

static const char *const lock_names[LOCKS] = {"SRW lock", "pushlock", "critical section", "resource", "guarded mutex"};
static const char *const manner_names[MANNERS] = {"exclusive", "shared", "shared past others", "shared behind others"};

static void describe_acquire(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s %s%s", lock_names[made->target], manner_names[made->manner], made->poll ? " at once" : "");
}

static void describe_lock(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s", lock_names[made->target]);
}

/* A wait for one of these may consume an alert by id. */
static void note_wait(unsigned actor, unsigned lock)
{
    if (lock == SRW || lock == SECTION)
        model.actors[actor].may_be_alerted_by_id = true;
}

static bool is_only_exclusive(unsigned lock)
{
    return lock == SECTION || lock == GUARDED;
}

static bool predict_acquire(call *made)
{
    model_actor *self = &model.actors[made->caller];

    made->target = made->a % LOCKS;
    made->manner = is_only_exclusive(made->target) ? EXCLUSIVE : made->b % (made->target == RESOURCE ? MANNERS : 2);
    self->place = made->target;
    self->manner = made->manner;
    note_wait(made->caller, made->target);
    made->poll = made->poll || (!can_acquire(made->caller) && would_deadlock(made->caller, FOR_LOCK));
    acquire_lock(made->caller, made->poll);
    return true;
}

static BOOLEAN acquire_srw(const call *made)
{
    if (made->poll)
        return made->manner == EXCLUSIVE ? RtlTryAcquireSRWLockExclusive(&things.srw)
                                         : RtlTryAcquireSRWLockShared(&things.srw);
    if (made->manner == EXCLUSIVE)
        RtlAcquireSRWLockExclusive(&things.srw);
    else
        RtlAcquireSRWLockShared(&things.srw);
    return TRUE;
}

static BOOLEAN acquire_push(const call *made)
{
    if (made->poll)
        return made->manner == EXCLUSIVE ? ExTryAcquirePushLockExclusive(&things.push)
                                         : ExTryAcquirePushLockShared(&things.push);
    if (made->manner == EXCLUSIVE)
        ExAcquirePushLockExclusive(&things.push);
    else
        ExAcquirePushLockShared(&things.push);
    return TRUE;
}

static BOOLEAN acquire_resource(const call *made)
{
    switch (made->manner) {
    case EXCLUSIVE:
        return ExAcquireResourceExclusiveLite(&things.resource, !made->poll);
    case SHARED:
        return ExAcquireResourceSharedLite(&things.resource, !made->poll);
    case STARVE_EXCLUSIVE:
        return ExAcquireSharedStarveExclusive(&things.resource, !made->poll);
    default:
        return ExAcquireSharedWaitForExclusive(&things.resource, !made->poll);
    }
}

/* Locks of the kernel are held with normal APCs disabled. */
static BOOLEAN acquire_in_region(const call *made)
{
    KeEnterCriticalRegion();
    BOOLEAN got = made->target == PUSH ? acquire_push(made) : acquire_resource(made);
    if (!got)
        KeLeaveCriticalRegion();
    return got;
}

static BOOLEAN acquire_section(const call *made)
{
    if (made->poll)
        return RtlTryEnterCriticalSection(&things.section) != 0;
    RtlEnterCriticalSection(&things.section);
    return TRUE;
}

static BOOLEAN acquire_guarded(const call *made)
{
    if (made->poll)
        return KeTryToAcquireGuardedMutex(&things.guarded);
    KeAcquireGuardedMutex(&things.guarded);
    return TRUE;
}

static void perform_acquire(call *made)
{
    made->status = STATUS_SUCCESS;
    switch (made->target) {
    case SRW:
        made->value = acquire_srw(made) != FALSE;
        break;
    case SECTION:
        made->value = acquire_section(made) != FALSE;
        break;
    case GUARDED:
        made->value = acquire_guarded(made) != FALSE;
        break;
    default:
        made->value = acquire_in_region(made) != FALSE;
        break;
    }
}

static bool choose_held(call *made)
{
    for (unsigned i = 0; i < LOCKS; i++) {
        made->target = (made->a + i) % LOCKS;
        if (holds_lock(made->caller, made->target))
            return true;
    }
    return false;
}

static bool predict_release(call *made)
{
    if (!choose_held(made))
        return false;
    made->manner = holds_exclusively(made->caller, made->target) ? EXCLUSIVE : SHARED;
    release_lock(made->caller, made->target);
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_release(call *made)
{
    made->status = STATUS_SUCCESS;
    made->value = 0;
    switch (made->target) {
    case SRW:
        if (made->manner == EXCLUSIVE)
            RtlReleaseSRWLockExclusive(&things.srw);
        else
            RtlReleaseSRWLockShared(&things.srw);
        break;
    case PUSH:
        if (made->manner == EXCLUSIVE)
            ExReleasePushLockExclusive(&things.push);
        else
            ExReleasePushLockShared(&things.push);
        KeLeaveCriticalRegion();
        break;
    case SECTION:
        RtlLeaveCriticalSection(&things.section);
        break;
    case GUARDED:
        KeReleaseGuardedMutex(&things.guarded);
        break;
    default:
        ExReleaseResourceLite(&things.resource);
        KeLeaveCriticalRegion();
        break;
    }
}

/* Exclusive to shared, or for SRW locks and pushlocks the other way if it is the only sharer. */
static bool predict_convert(call *made)
{
    model_actor *self = &model.actors[made->caller];

    if (!choose_held(made) || is_only_exclusive(made->target))
        return false;
    made->manner = holds_exclusively(made->caller, made->target) ? EXCLUSIVE : SHARED;
    model_object *lock = &model.locks[made->target];
    if (made->target == RESOURCE) {
        if (made->manner != EXCLUSIVE)
            return false;
        predict(lock, RESOURCE_CONVERT, made->caller, 0, 0, 0);
    } else if (made->manner == EXCLUSIVE) {
        predict(lock, CONVERT_TO_SHARED, made->caller, 0, 1, 1);
        self->shares[made->target]++;
    } else {
        intptr_t got = predict(lock, CONVERT_TO_EXCLUSIVE, made->caller, 0, 0, 1);
        self->shares[made->target] -= got != 0;
        end_call(made->caller, STATUS_SUCCESS, got);
        return true;
    }
    grant_lock(made->target, true);
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_convert(call *made)
{
    made->status = STATUS_SUCCESS;
    made->value = 0;
    if (made->target == RESOURCE)
        ExConvertExclusiveToSharedLite(&things.resource);
    else if (made->manner == EXCLUSIVE && made->target == SRW)
        RtlConvertSRWLockExclusiveToShared(&things.srw);
    else if (made->manner == EXCLUSIVE)
        ExConvertPushLockExclusiveToShared(&things.push);
    else if (made->target == SRW)
        made->value = RtlConvertSRWLockSharedToExclusive(&things.srw) != FALSE;
    else
        made->value = ExTryConvertPushLockSharedToExclusive(&things.push) != FALSE;
}

/* Condition variables. */

static bool is_held_once(unsigned actor, unsigned lock)
{
    return lock == SECTION ? holds_exclusively(actor, lock) && model.locks[lock].state[0] == 0
                           : holds_exclusively(actor, lock) || model.actors[actor].shares[lock] == 1;
}

static bool predict_sleep(call *made)
{
    model_actor *self = &model.actors[made->caller];

    made->target = made->a % 2 ? SECTION : SRW;
    self->place = made->target;
    self->manner = made->manner = holds_exclusively(made->caller, made->target) ? EXCLUSIVE : SHARED;
    if (!is_held_once(made->caller, made->target) || would_deadlock(made->caller, FOR_CONDITION))
        return false;
    note_wait(made->caller, made->target);
    made->poll = made->poll && !has_waiters(made->target); /* otherwise the next owner of the lock is not determined */
    if (made->poll) {
        end_call(made->caller, STATUS_TIMEOUT, 1);
        return true;
    }
    release_lock(made->caller, made->target);
    begin_wait(made->caller, FOR_CONDITION);
    return true;
}

static void perform_sleep(call *made)
{
    PRTL_CONDITION_VARIABLE condition = &things.conditions[made->target];
    ULONG flags = made->manner == SHARED ? RTL_CONDITION_VARIABLE_LOCKMODE_SHARED : 0;

    made->status = made->target == SRW ? RtlSleepConditionVariableSRW(condition, &things.srw, timeout_of(made), flags)
                                       : RtlSleepConditionVariableCS(condition, &things.section, timeout_of(made));
    made->value = 1;
}

/* Several sleepers are woken together only if all of them can continue at once: otherwise the order at the lock is not
   determined. */
static bool can_wake_all(unsigned lock)
{
    bool can = lock == SRW && !has_waiters(lock) && model.locks[lock].state[0] == 0;

    for (unsigned i = 0; i < ACTORS; i++)
        if (model.actors[i].waiting == FOR_CONDITION && model.actors[i].place == lock)
            can = can && model.actors[i].manner != EXCLUSIVE;
    return can || count_sleepers(lock) <= 1;
}

static bool predict_wake(call *made)
{
    made->target = made->a % 2 ? SECTION : SRW;
    made->other = made->other && can_wake_all(made->target);
    while (wake_sleeper(made->target) && made->other) {
    }
    end_call(made->caller, STATUS_SUCCESS, 0);
    return true;
}

static void perform_wake(call *made)
{
    if (made->other)
        RtlWakeAllConditionVariable(&things.conditions[made->target]);
    else
        RtlWakeConditionVariable(&things.conditions[made->target]);
    made->status = STATUS_SUCCESS;
    made->value = 0;
}

static void describe_sleep(const call *made, char *text, size_t size)
{
    snprintf(text, size, "of the %s%s", lock_names[made->target], made->poll ? " at once" : "");
}

static void describe_wake(const call *made, char *text, size_t size)
{
    snprintf(text, size, "%s of the %s", made->other ? "all" : "one", lock_names[made->target]);
}

const operation lock_operations[] = {
    {"acquire", ACTORS_ONLY, predict_acquire, perform_acquire, describe_acquire},
    {"release", ACTORS_ONLY, predict_release, perform_release, describe_lock},
    {"convert", ACTORS_ONLY, predict_convert, perform_convert, describe_lock},
    {"sleep on condition variable", ACTORS_ONLY, predict_sleep, perform_sleep, describe_sleep},
    {"wake sleepers", ANYBODY, predict_wake, perform_wake, describe_wake},
};
const size_t lock_operation_count = sizeof(lock_operations) / sizeof(lock_operations[0]);
