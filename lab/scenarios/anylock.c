/*
 * Every lock of the kernel, and every object that can serve as one, in the same scenarios. A kind is a list of
 * operations, each of which acquires the lock in some way and releases it; the first is exclusive and has no timeout.
 *
 *     crowd_of_X        four threads, three random operations each
 *     crowd_in_turn_X   the same with fixed operations, for searches that are not random
 *     crowd_upset_X     three threads, while a fourth one alerts them, queues APCs to them, suspends and resumes them
 *     freed_last_X      the last owner frees the lock after its release
 *     freed_held_X      the last owner frees the lock while it holds it: the earlier ones have left
 */
#include <interlock/lab.h>

#include <ntifs.h>

#include "ex/exp.h"

#define MOST_OPERATIONS 10
#define ENOUGH_MEETINGS 64 /* for an auto-expand pushlock to grow */

typedef struct lock {
    union {
        KMUTANT mutant;
        KSEMAPHORE semaphore;
        KEVENT event;
        KEVENT_PAIR pair;
        KGATE gate;
        FAST_MUTEX fast;
        KGUARDED_MUTEX guarded;
        EX_PUSH_LOCK push;
        PEX_CACHE_AWARE_PUSH_LOCK aware;
        PEX_PUSH_LOCK_AUTO_EXPAND expanding;
        ERESOURCE resource;
        FAST_ERESOURCE fast_resource;
        KSPIN_LOCK spin;
        EX_SPIN_LOCK rw;
    };
    volatile LONG word; /* for the locks made of address waits */
    KEVENT always;      /* signaled */
    KEVENT never;
    int value;          /* protected by the lock */
    int users;          /* threads that have not left yet */
} lock;

typedef enum fate { STAYS, GOES_AFTER_RELEASE, GONE } fate;
typedef void operation(lock *l, BOOLEAN leaving);

typedef struct kind {
    void (*make)(lock *l);
    void (*unmake)(lock *l); /* or NULL */
    operation *operations[MOST_OPERATIONS];
} kind;

static const kind *kind_of_all;
static lock *it;
static BOOLEAN frees_while_holding;
static PKTHREAD users[LAB_MAXIMUM_THREADS];
static LARGE_INTEGER soon = {.QuadPart = -10000};

static void destroy(lock *l)
{
    if (kind_of_all->unmake != NULL)
        kind_of_all->unmake(l);
    LabFree(l);
}

static fate write_inside(lock *l, BOOLEAN leaving)
{
    l->value += 1;
    LabYield();
    if (leaving && --l->users == 0) {
        if (!frees_while_holding)
            return GOES_AFTER_RELEASE;
        destroy(l);
        return GONE;
    }
    return STAYS;
}

static void read_inside(lock *l)
{
    int seen = l->value;
    LabYield();
    LabAssert(l->value == seen);
}

/* An exclusive operation. Before and After surround it; Acquire returns whether it got the lock; Leave replaces Release
   when the lock was freed. */
#define EXCLUSIVE(Name, Before, Acquire, Release, Leave, After) \
    static void Name(lock *l, BOOLEAN leaving)                  \
    {                                                           \
        fate f = STAYS;                                         \
        Before;                                                 \
        if (Acquire) {                                          \
            f = write_inside(l, leaving);                       \
            if (f == GONE) {                                    \
                Leave;                                          \
            } else {                                            \
                Release;                                        \
            }                                                   \
        }                                                       \
        After;                                                  \
        if (f == GOES_AFTER_RELEASE)                            \
            destroy(l);                                         \
    }

#define SHARED(Name, Before, Acquire, Release, After) \
    static void Name(lock *l, BOOLEAN leaving)        \
    {                                                 \
        UNREFERENCED_PARAMETER(leaving);              \
        Before;                                       \
        if (Acquire) {                                \
            read_inside(l);                           \
            Release;                                  \
        }                                             \
        After;                                        \
    }

#define NOTHING (void)0
#define ALWAYS(Call) (Call, TRUE)
#define ENTER KeEnterCriticalRegion()
#define LEAVE KeLeaveCriticalRegion()

/* Dispatcher objects. */

static BOOLEAN wait_for(PVOID object, BOOLEAN alertable, PLARGE_INTEGER timeout)
{
    NTSTATUS status = KeWaitForSingleObject(object, Executive, KernelMode, alertable, timeout);
    LabAssert(status == STATUS_SUCCESS || (timeout != NULL && status == STATUS_TIMEOUT) ||
              (alertable && (status == STATUS_ALERTED || status == STATUS_USER_APC)));
    return status == STATUS_SUCCESS;
}

static BOOLEAN wait_with(PVOID object, PVOID other, WAIT_TYPE type, PLARGE_INTEGER timeout)
{
    PVOID objects[2] = {other, object};
    NTSTATUS status = KeWaitForMultipleObjects(2, objects, type, Executive, KernelMode, FALSE, timeout, NULL);
    LabAssert(status == (type == WaitAny ? STATUS_WAIT_1 : STATUS_SUCCESS) ||
              (timeout != NULL && status == STATUS_TIMEOUT));
    return status != STATUS_TIMEOUT;
}

/* Objects that can be waited for, by all kinds of waits. */
#define WAITABLE(Kind, Object, Release)                                                                            \
    EXCLUSIVE(Kind##_wait, NOTHING, wait_for(Object, FALSE, NULL), Release, NOTHING, NOTHING)                      \
    EXCLUSIVE(Kind##_timed, NOTHING, wait_for(Object, FALSE, &soon), Release, NOTHING, NOTHING)                    \
    EXCLUSIVE(Kind##_alertable, NOTHING, wait_for(Object, TRUE, NULL), Release, NOTHING, NOTHING)                  \
    EXCLUSIVE(Kind##_any, NOTHING, wait_with(Object, &l->never, WaitAny, NULL), Release, NOTHING, NOTHING)         \
    EXCLUSIVE(Kind##_all, NOTHING, wait_with(Object, &l->always, WaitAll, NULL), Release, NOTHING, NOTHING)        \
    EXCLUSIVE(Kind##_any_timed, NOTHING, wait_with(Object, &l->never, WaitAny, &soon), Release, NOTHING, NOTHING)  \
    EXCLUSIVE(Kind##_all_timed, NOTHING, wait_with(Object, &l->always, WaitAll, &soon), Release, NOTHING, NOTHING)
#define WAITS(Kind) \
    Kind##_wait, Kind##_all, Kind##_timed, Kind##_any, Kind##_alertable, Kind##_all_timed, Kind##_any_timed

static void make_mutant(lock *l)
{
    KeInitializeMutant(&l->mutant, FALSE);
}
WAITABLE(mutant, &l->mutant, KeReleaseMutant(&l->mutant, IO_NO_INCREMENT, FALSE, FALSE))

static void mutant_recursive(lock *l, BOOLEAN leaving)
{
    LabAssert(wait_for(&l->mutant, FALSE, NULL));
    mutant_all(l, FALSE);
    LabAssert(!leaving);
    KeReleaseMutant(&l->mutant, IO_NO_INCREMENT, FALSE, FALSE);
}
static const kind mutant_kind = {make_mutant, NULL, {WAITS(mutant), mutant_recursive}};

static void make_mutex(lock *l)
{
    KeInitializeMutex(&l->mutant, 0);
}
WAITABLE(mutex, &l->mutant, KeReleaseMutex(&l->mutant, FALSE))
static const kind mutex_kind = {make_mutex, NULL, {WAITS(mutex)}};

static void make_semaphore(lock *l)
{
    KeInitializeSemaphore(&l->semaphore, 1, 1);
}
WAITABLE(semaphore, &l->semaphore, KeReleaseSemaphore(&l->semaphore, IO_NO_INCREMENT, 1, FALSE))
static const kind semaphore_kind = {make_semaphore, NULL, {WAITS(semaphore)}};

static void make_event(lock *l)
{
    KeInitializeEvent(&l->event, SynchronizationEvent, TRUE);
}
WAITABLE(event, &l->event, KeSetEvent(&l->event, IO_NO_INCREMENT, FALSE))
EXCLUSIVE(event_boosted, NOTHING, wait_for(&l->event, FALSE, NULL), KeSetEventBoostPriority(&l->event, NULL), NOTHING,
          NOTHING)
static const kind event_kind = {make_event, NULL, {WAITS(event), event_boosted}};

/* The lock is a word, and a notification event says when to retry. */
static BOOLEAN is_taken(lock *l)
{
    LONG expected = 0;
    return !__atomic_compare_exchange_n(&l->word, &expected, 1, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static BOOLEAN wait_and_win(lock *l, PLARGE_INTEGER timeout)
{
    while (is_taken(l)) {
        KeClearEvent(&l->event);
        if (!is_taken(l))
            return TRUE;
        if (!wait_for(&l->event, FALSE, timeout))
            return FALSE;
    }
    return TRUE;
}

static void lose(lock *l)
{
    __atomic_store_n(&l->word, 0, __ATOMIC_RELEASE);
    KeSetEvent(&l->event, IO_NO_INCREMENT, FALSE);
}

static void make_notification(lock *l)
{
    KeInitializeEvent(&l->event, NotificationEvent, TRUE);
}
EXCLUSIVE(notification_wait, NOTHING, wait_and_win(l, NULL), lose(l), NOTHING, NOTHING)
EXCLUSIVE(notification_timed, NOTHING, wait_and_win(l, &soon), lose(l), NOTHING, NOTHING)
static const kind notification_kind = {make_notification, NULL, {notification_wait, notification_timed}};

static void make_pair(lock *l)
{
    KeInitializeEventPair(&l->pair);
    KeSetHighEventPair(&l->pair, IO_NO_INCREMENT, FALSE);
}
EXCLUSIVE(pair_wait, NOTHING, KeWaitForHighEventPair(&l->pair, KernelMode, FALSE, NULL) == STATUS_SUCCESS,
          KeSetHighEventPair(&l->pair, IO_NO_INCREMENT, FALSE), NOTHING, NOTHING)
EXCLUSIVE(pair_timed, NOTHING, KeWaitForHighEventPair(&l->pair, KernelMode, FALSE, &soon) == STATUS_SUCCESS,
          KeSetHighEventPair(&l->pair, IO_NO_INCREMENT, FALSE), NOTHING, NOTHING)
static const kind pair_kind = {make_pair, NULL, {pair_wait, pair_timed}};

static void make_gate(lock *l)
{
    KeInitializeGate(&l->gate);
    KeSignalGate(&l->gate);
}
EXCLUSIVE(gate_wait, ENTER, KeWaitForGate(&l->gate, WrGuardedMutex, KernelMode) == STATUS_SUCCESS,
          KeSignalGate(&l->gate), NOTHING, LEAVE)
EXCLUSIVE(gate_boosted, ENTER, KeWaitForGate(&l->gate, WrGuardedMutex, KernelMode) == STATUS_SUCCESS,
          KeSignalGateBoostPriority(&l->gate), NOTHING, LEAVE)
static const kind gate_kind = {make_gate, NULL, {gate_wait, gate_boosted}};

/* Mutexes. */

static void make_fast(lock *l)
{
    ExInitializeFastMutex(&l->fast);
}
EXCLUSIVE(fast_acquire, NOTHING, ALWAYS(ExAcquireFastMutex(&l->fast)), ExReleaseFastMutex(&l->fast),
          KeLowerIrql(PASSIVE_LEVEL), NOTHING)
EXCLUSIVE(fast_try, NOTHING, ExTryToAcquireFastMutex(&l->fast), ExReleaseFastMutex(&l->fast),
          KeLowerIrql(PASSIVE_LEVEL), NOTHING)
EXCLUSIVE(fast_unsafe, ENTER, ALWAYS(ExAcquireFastMutexUnsafe(&l->fast)), ExReleaseFastMutexUnsafe(&l->fast), NOTHING,
          LEAVE)
static const kind fast_mutex_kind = {make_fast, NULL, {fast_acquire, fast_try, fast_unsafe}};

static void make_guarded(lock *l)
{
    KeInitializeGuardedMutex(&l->guarded);
}
EXCLUSIVE(guarded_acquire, NOTHING, ALWAYS(KeAcquireGuardedMutex(&l->guarded)), KeReleaseGuardedMutex(&l->guarded),
          KeLowerIrql(PASSIVE_LEVEL), NOTHING)
EXCLUSIVE(guarded_try, NOTHING, KeTryToAcquireGuardedMutex(&l->guarded), KeReleaseGuardedMutex(&l->guarded),
          KeLowerIrql(PASSIVE_LEVEL), NOTHING)
EXCLUSIVE(guarded_unsafe, KeEnterGuardedRegion(), ALWAYS(KeAcquireGuardedMutexUnsafe(&l->guarded)),
          KeReleaseGuardedMutexUnsafe(&l->guarded), NOTHING, KeLeaveGuardedRegion())
static const kind guarded_mutex_kind = {make_guarded, NULL, {guarded_acquire, guarded_try, guarded_unsafe}};

/* Pushlocks. */

static void make_push(lock *l)
{
    ExInitializePushLock(&l->push);
}
EXCLUSIVE(push_exclusive, ENTER, ALWAYS(ExAcquirePushLockExclusive(&l->push)), ExReleasePushLockExclusive(&l->push),
          NOTHING, LEAVE)
SHARED(push_shared, ENTER, ALWAYS(ExAcquirePushLockShared(&l->push)), ExReleasePushLockShared(&l->push), LEAVE)
EXCLUSIVE(push_try_exclusive, ENTER, ExTryAcquirePushLockExclusive(&l->push), ExReleasePushLock(&l->push), NOTHING,
          LEAVE)
SHARED(push_try_shared, ENTER, ExTryAcquirePushLockShared(&l->push), ExReleasePushLock(&l->push), LEAVE)

static void push_lower(lock *l, BOOLEAN leaving)
{
    LabAssert(!leaving);
    ENTER;
    ExAcquirePushLockExclusive(&l->push);
    write_inside(l, FALSE);
    ExConvertPushLockExclusiveToShared(&l->push);
    read_inside(l);
    ExReleasePushLockShared(&l->push);
    LEAVE;
}

static void push_raise(lock *l, BOOLEAN leaving)
{
    LabAssert(!leaving);
    ENTER;
    ExAcquirePushLockShared(&l->push);
    read_inside(l);
    if (ExTryConvertPushLockSharedToExclusive(&l->push)) {
        write_inside(l, FALSE);
        ExReleasePushLockExclusive(&l->push);
    } else {
        ExReleasePushLockShared(&l->push);
    }
    LEAVE;
}
static const kind pushlock_kind = {make_push, NULL,
                                   {push_exclusive, push_shared, push_lower, push_raise, push_try_exclusive,
                                    push_try_shared}};

static void make_aware(lock *l)
{
    l->aware = ExAllocateCacheAwarePushLock();
}

static void unmake_aware(lock *l)
{
    ExFreeCacheAwarePushLock(l->aware);
}
EXCLUSIVE(aware_exclusive, ENTER, ALWAYS(ExAcquireCacheAwarePushLockExclusiveEx(l->aware, 0)),
          ExReleaseCacheAwarePushLockExclusiveEx(l->aware, 0), NOTHING, LEAVE)
SHARED(aware_shared, ENTER; PEX_PUSH_LOCK held, (held = ExAcquireCacheAwarePushLockSharedEx(l->aware, 0)) != NULL,
       ExReleaseCacheAwarePushLockSharedEx(held, 0), LEAVE)
static const kind cache_aware_kind = {make_aware, unmake_aware, {aware_exclusive, aware_shared}};

static void make_expanding(lock *l)
{
    l->expanding = ExAllocateAutoExpandPushLock(0);
    l->expanding->Stats = ENOUGH_MEETINGS - 1;
}

static void unmake_expanding(lock *l)
{
    ExFreeAutoExpandPushLock(l->expanding);
}
EXCLUSIVE(expanding_exclusive, ENTER, ALWAYS(ExAcquireAutoExpandPushLockExclusive(l->expanding, 0)),
          ExReleaseAutoExpandPushLockExclusive(l->expanding, 0), NOTHING, LEAVE)
SHARED(expanding_shared, ENTER; PEX_PUSH_LOCK held, (held = ExAcquireAutoExpandPushLockShared(l->expanding, 0)) != NULL,
       ExReleaseAutoExpandPushLockShared(l->expanding, held, 0), LEAVE)
static const kind auto_expand_kind = {make_expanding, unmake_expanding, {expanding_exclusive, expanding_shared}};

/* A lock made of a word and waits for its value: by address, and step by step. */
static BOOLEAN take_word(lock *l, PLARGE_INTEGER timeout)
{
    LONG taken = 1;
    while (is_taken(l)) {
        if (ExBlockOnAddressPushLock(&l->push, (PVOID)&l->word, &taken, sizeof(taken), timeout) == STATUS_TIMEOUT)
            return FALSE;
    }
    return TRUE;
}

static BOOLEAN take_word_in_steps(lock *l, PLARGE_INTEGER timeout)
{
    while (is_taken(l)) {
        EX_PUSH_LOCK_WAIT_BLOCK block;
        ExBlockPushLock(&l->push, &block);
        if (__atomic_load_n(&l->word, __ATOMIC_ACQUIRE) == 0)
            ExUnblockPushLock(&l->push, &block);
        else if (ExTimedWaitForUnblockPushLock(&l->push, &block, timeout) == STATUS_TIMEOUT)
            return FALSE;
    }
    return TRUE;
}

static void give_word(lock *l)
{
    __atomic_store_n(&l->word, 0, __ATOMIC_SEQ_CST);
    ExUnblockOnAddressPushLock(&l->push, (PVOID)&l->word);
}

static void give_word_in_steps(lock *l)
{
    __atomic_store_n(&l->word, 0, __ATOMIC_SEQ_CST);
    ExUnblockPushLock(&l->push, NULL);
}
EXCLUSIVE(address_wait, NOTHING, take_word(l, NULL), give_word(l), NOTHING, NOTHING)
EXCLUSIVE(address_timed, NOTHING, take_word(l, &soon), give_word(l), NOTHING, NOTHING)
static const kind address_kind = {make_push, NULL, {address_wait, address_timed}};
EXCLUSIVE(steps_wait, NOTHING, take_word_in_steps(l, NULL), give_word_in_steps(l), NOTHING, NOTHING)
EXCLUSIVE(steps_timed, NOTHING, take_word_in_steps(l, &soon), give_word_in_steps(l), NOTHING, NOTHING)
static const kind address_steps_kind = {make_push, NULL, {steps_wait, steps_timed}};

/* Resources. */

static void make_resource(lock *l)
{
    ExInitializeResourceLite(&l->resource);
}

static void unmake_resource(lock *l)
{
    ExDeleteResourceLite(&l->resource);
}
#define RELEASE ExReleaseResourceLite(&l->resource)
EXCLUSIVE(resource_exclusive, ENTER, ExAcquireResourceExclusiveLite(&l->resource, TRUE), RELEASE, NOTHING, LEAVE)
EXCLUSIVE(resource_try, ENTER, ExTryToAcquireResourceExclusiveLite(&l->resource), RELEASE, NOTHING, LEAVE)
SHARED(resource_shared, ENTER, ExAcquireResourceSharedLite(&l->resource, TRUE), RELEASE, LEAVE)
SHARED(resource_try_shared, ENTER, ExAcquireResourceSharedLite(&l->resource, FALSE), RELEASE, LEAVE)
SHARED(resource_starve, ENTER, ExAcquireSharedStarveExclusive(&l->resource, TRUE), RELEASE, LEAVE)
SHARED(resource_behind, ENTER, ExAcquireSharedWaitForExclusive(&l->resource, TRUE), RELEASE, LEAVE)

static void resource_nested(lock *l, BOOLEAN leaving)
{
    LabAssert(!leaving);
    ENTER;
    ExAcquireResourceExclusiveLite(&l->resource, TRUE);
    resource_exclusive(l, FALSE);
    resource_shared(l, FALSE);
    RELEASE;
    LEAVE;
}

static void resource_shared_twice(lock *l, BOOLEAN leaving)
{
    LabAssert(!leaving);
    ENTER;
    ExAcquireResourceSharedLite(&l->resource, TRUE);
    resource_shared(l, FALSE);
    RELEASE;
    LEAVE;
}

static void resource_lower(lock *l, BOOLEAN leaving)
{
    LabAssert(!leaving);
    ENTER;
    ExAcquireResourceExclusiveLite(&l->resource, TRUE);
    write_inside(l, FALSE);
    ExConvertExclusiveToSharedLite(&l->resource);
    read_inside(l);
    RELEASE;
    LEAVE;
}

/* Owned by the owner pointer; any thread may release it. */
static void resource_for_pointer(lock *l, BOOLEAN leaving)
{
    PVOID pointer = (PVOID)((ULONG_PTR)KeGetCurrentThread() | 3);
    LabAssert(!leaving);
    ENTER;
    ExAcquireResourceSharedLite(&l->resource, TRUE);
    ExSetResourceOwnerPointer(&l->resource, pointer);
    read_inside(l);
    ExReleaseResourceForThreadLite(&l->resource, (ERESOURCE_THREAD)pointer);
    LEAVE;
}
static const kind resource_kind = {make_resource, unmake_resource,
                                   {resource_exclusive, resource_shared, resource_lower, resource_behind,
                                    resource_starve, resource_nested, resource_shared_twice, resource_for_pointer,
                                    resource_try, resource_try_shared}};

static void make_fast_resource(lock *l)
{
    ExInitializeFastResource(&l->fast_resource, 0);
}

static void unmake_fast_resource(lock *l)
{
    ExDeleteFastResource(&l->fast_resource);
}
#define OWNER             \
    FAST_OWNER_ENTRY entry; \
    ExInitializeFastOwnerEntry(&entry); \
    ENTER
#define RELEASE_FAST ExReleaseFastResource(&l->fast_resource, &entry)
EXCLUSIVE(fast_resource_exclusive, OWNER, ExAcquireFastResourceExclusive(&l->fast_resource, &entry, TRUE), RELEASE_FAST,
          NOTHING, LEAVE)
EXCLUSIVE(fast_resource_try, OWNER, ExTryAcquireFastResourceExclusive(&l->fast_resource, &entry), RELEASE_FAST, NOTHING,
          LEAVE)
SHARED(fast_resource_shared, OWNER, ExAcquireFastResourceShared(&l->fast_resource, &entry, TRUE), RELEASE_FAST, LEAVE)
SHARED(fast_resource_starve, OWNER, ExAcquireFastResourceSharedStarveExclusive(&l->fast_resource, &entry, TRUE),
       RELEASE_FAST, LEAVE)
SHARED(fast_resource_try_shared, OWNER, ExTryAcquireFastResourceShared(&l->fast_resource, &entry), RELEASE_FAST, LEAVE)

static void fast_resource_lower(lock *l, BOOLEAN leaving)
{
    LabAssert(!leaving);
    OWNER;
    ExAcquireFastResourceExclusive(&l->fast_resource, &entry, TRUE);
    write_inside(l, FALSE);
    ExConvertFastResourceExclusiveToShared(&l->fast_resource, &entry);
    read_inside(l);
    RELEASE_FAST;
    LEAVE;
}

static void fast_resource_disown(lock *l, BOOLEAN leaving)
{
    LabAssert(!leaving);
    OWNER;
    ExAcquireFastResourceExclusive(&l->fast_resource, &entry, TRUE);
    ExDisownFastResource(&l->fast_resource, &entry);
    write_inside(l, FALSE);
    ExReleaseDisownedFastResource(&l->fast_resource, &entry);
    LEAVE;
}
static const kind fast_resource_kind = {make_fast_resource, unmake_fast_resource,
                                        {fast_resource_exclusive, fast_resource_shared, fast_resource_lower,
                                         fast_resource_starve, fast_resource_disown, fast_resource_try,
                                         fast_resource_try_shared}};

/* Spinlocks. */

static void make_spin(lock *l)
{
    KeInitializeSpinLock(&l->spin);
}
#define RAISED KIRQL irql = KeRaiseIrqlToDpcLevel()
EXCLUSIVE(spin_acquire, KIRQL irql, ALWAYS(KeAcquireSpinLock(&l->spin, &irql)), KeReleaseSpinLock(&l->spin, irql),
          KeLowerIrql(irql), NOTHING)
EXCLUSIVE(spin_try, RAISED, KeTryToAcquireSpinLockAtDpcLevel(&l->spin), KeReleaseSpinLockFromDpcLevel(&l->spin), NOTHING,
          KeLowerIrql(irql))
EXCLUSIVE(spin_raised, RAISED, ALWAYS(KeAcquireSpinLockAtDpcLevel(&l->spin)), KeReleaseSpinLockFromDpcLevel(&l->spin),
          NOTHING, KeLowerIrql(irql))
static const kind spinlock_kind = {make_spin, NULL, {spin_acquire, spin_raised, spin_try}};

EXCLUSIVE(queued_acquire, KLOCK_QUEUE_HANDLE handle, ALWAYS(KeAcquireInStackQueuedSpinLock(&l->spin, &handle)),
          KeReleaseInStackQueuedSpinLock(&handle), KeLowerIrql(handle.OldIrql), NOTHING)
EXCLUSIVE(queued_raised, KLOCK_QUEUE_HANDLE handle; RAISED,
          ALWAYS(KeAcquireInStackQueuedSpinLockAtDpcLevel(&l->spin, &handle)),
          KeReleaseInStackQueuedSpinLockFromDpcLevel(&handle), NOTHING, KeLowerIrql(irql))
static const kind queued_spinlock_kind = {make_spin, NULL, {queued_acquire, queued_raised}};

#define NUMBER LockQueueUnusedSpare15
EXCLUSIVE(numbered_acquire, KIRQL irql, ALWAYS(irql = KeAcquireQueuedSpinLock(NUMBER)),
          KeReleaseQueuedSpinLock(NUMBER, irql), NOTHING, NOTHING)
EXCLUSIVE(numbered_try, KIRQL irql, KeTryToAcquireQueuedSpinLock(NUMBER, &irql), KeReleaseQueuedSpinLock(NUMBER, irql),
          NOTHING, NOTHING)
static const kind numbered_spinlock_kind = {make_spin, NULL, {numbered_acquire, numbered_try}};

static void make_rw(lock *l)
{
    l->rw = 0;
}
EXCLUSIVE(rw_exclusive, KIRQL irql, ALWAYS(irql = ExAcquireSpinLockExclusive(&l->rw)),
          ExReleaseSpinLockExclusive(&l->rw, irql), KeLowerIrql(irql), NOTHING)
SHARED(rw_shared, KIRQL irql, ALWAYS(irql = ExAcquireSpinLockShared(&l->rw)), ExReleaseSpinLockShared(&l->rw, irql),
       NOTHING)
EXCLUSIVE(rw_try, RAISED, ExTryAcquireSpinLockExclusiveAtDpcLevel(&l->rw), ExReleaseSpinLockExclusiveFromDpcLevel(&l->rw),
          NOTHING, KeLowerIrql(irql))
SHARED(rw_try_shared, RAISED, ExTryAcquireSpinLockSharedAtDpcLevel(&l->rw), ExReleaseSpinLockSharedFromDpcLevel(&l->rw),
       KeLowerIrql(irql))

static void rw_raise(lock *l, BOOLEAN leaving)
{
    KIRQL irql = ExAcquireSpinLockShared(&l->rw);
    LabAssert(!leaving);
    read_inside(l);
    if (ExTryConvertSharedSpinLockExclusive(&l->rw)) {
        write_inside(l, FALSE);
        ExReleaseSpinLockExclusive(&l->rw, irql);
    } else {
        ExReleaseSpinLockShared(&l->rw, irql);
    }
}
static const kind rw_spinlock_kind = {make_rw, NULL, {rw_exclusive, rw_shared, rw_raise, rw_try_shared, rw_try}};

/* The scenarios. */

static void make(const kind *k)
{
    kind_of_all = k;
    it = LabAllocate(sizeof(*it));
    *it = (lock){.users = 4};
    KeInitializeEvent(&it->always, NotificationEvent, TRUE);
    KeInitializeEvent(&it->never, SynchronizationEvent, FALSE);
    k->make(it);
}

static void make_freed_while_held(const kind *k)
{
    make(k);
    frees_while_holding = TRUE;
}

static unsigned count_operations(void)
{
    unsigned count = 0;
    while (count < MOST_OPERATIONS && kind_of_all->operations[count] != NULL)
        count++;
    return count;
}

static void any_operation(void)
{
    kind_of_all->operations[LabChoose(count_operations())](it, FALSE);
}

static void any_three(void)
{
    any_operation();
    any_operation();
    any_operation();
}

static void three_in_turn(void)
{
    unsigned count = count_operations(), first = LabCurrentThread();
    for (unsigned i = 0; i < 3; i++)
        kind_of_all->operations[(first + i) % count](it, FALSE);
}

static void use_and_leave(void)
{
    any_operation();
    kind_of_all->operations[0](it, TRUE);
}

static void is_free(void)
{
    kind_of_all->operations[0](it, FALSE);
}

/* Upset. */

static KAPC apcs[3];

static VOID kernel_routine(PKAPC apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *first, PVOID *second)
{
    UNREFERENCED_PARAMETER(apc);
    UNREFERENCED_PARAMETER(normal);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    LabAssert(KeGetCurrentIrql() == APC_LEVEL);
}

static VOID normal_routine(PVOID context, PVOID first, PVOID second)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    LabAssert(KeGetCurrentIrql() == PASSIVE_LEVEL);
}

static void queue_apc(PKAPC apc, PKTHREAD thread, PKNORMAL_ROUTINE normal, KPROCESSOR_MODE mode)
{
    KeInitializeApc(apc, thread, OriginalApcEnvironment, kernel_routine, NULL, normal, mode, NULL);
    KeInsertQueueApc(apc, NULL, NULL, IO_NO_INCREMENT);
}

static void upset(unsigned time, PKTHREAD thread)
{
    switch (LabChoose(6)) {
    case 0:
        KeAlertThread(thread, KernelMode);
        break;
    case 1:
        KeAlertThread(thread, UserMode);
        break;
    case 2:
        queue_apc(&apcs[time], thread, NULL, KernelMode);
        break;
    case 3:
        queue_apc(&apcs[time], thread, normal_routine, KernelMode);
        break;
    case 4:
        queue_apc(&apcs[time], thread, normal_routine, UserMode);
        break;
    default:
        KeSuspendThread(thread);
        KeResumeThread(thread);
    }
}

static void upset_three_times(void)
{
    for (unsigned time = 0; time < 3; time++) {
        PKTHREAD thread = __atomic_load_n(&users[LabChoose(3)], __ATOMIC_ACQUIRE);
        if (thread != NULL)
            upset(time, thread);
    }
}

static void upset_user(void)
{
    __atomic_store_n(&users[LabCurrentThread()], KeGetCurrentThread(), __ATOMIC_RELEASE);
    any_operation();
    any_operation();
}

#define CROWDS(Kind)                                                                                                   \
    static void make_##Kind##_lock(void)                                                                               \
    {                                                                                                                  \
        make(&Kind##_kind);                                                                                            \
    }                                                                                                                  \
    LAB_SCENARIO(crowd_of_##Kind, .Setup = make_##Kind##_lock, .Threads = {any_three, any_three, any_three, any_three}, \
                 .Finish = is_free, .Flags = LAB_LARGE, .Processors = 3);                                              \
    LAB_SCENARIO(crowd_in_turn_##Kind, .Setup = make_##Kind##_lock,                                                    \
                 .Threads = {three_in_turn, three_in_turn, three_in_turn, three_in_turn}, .Finish = is_free,           \
                 .Flags = LAB_LARGE, .Processors = 3);                                                                 \
    LAB_SCENARIO(crowd_upset_##Kind, .Setup = make_##Kind##_lock,                                                      \
                 .Threads = {upset_user, upset_user, upset_user, upset_three_times}, .Finish = is_free,                \
                 .Flags = LAB_LARGE, .Processors = 3);
#define FREED_LAST(Kind)                                                                                               \
    LAB_SCENARIO(freed_last_##Kind, .Setup = make_##Kind##_lock,                                                       \
                 .Threads = {use_and_leave, use_and_leave, use_and_leave, use_and_leave},                              \
                 .Flags = LAB_LARGE | LAB_CHECK_LEAKS, .Processors = 3);
#define FREED_HELD(Kind)                                                                                               \
    static void make_held_##Kind##_lock(void)                                                                          \
    {                                                                                                                  \
        make_freed_while_held(&Kind##_kind);                                                                           \
    }                                                                                                                  \
    LAB_SCENARIO(freed_held_##Kind, .Setup = make_held_##Kind##_lock,                                                  \
                 .Threads = {use_and_leave, use_and_leave, use_and_leave, use_and_leave},                              \
                 .Flags = LAB_LARGE | LAB_CHECK_LEAKS, .Processors = 3);
/* A lock that records its owner cannot be freed while it has one. A numbered lock is never freed. A lock made of a word
   and an object to wait for touches that object after the word is free. */
#define FREED_FREE(Kind) CROWDS(Kind) FREED_LAST(Kind)
#define FREED(Kind) CROWDS(Kind) FREED_LAST(Kind) FREED_HELD(Kind)

FREED_FREE(mutant)
FREED_FREE(mutex)
FREED(semaphore)
FREED(event)
FREED(pair)
FREED(gate)
FREED(fast_mutex)
FREED(guarded_mutex)
FREED(pushlock)
FREED(cache_aware)
FREED(auto_expand)
FREED_FREE(resource)
FREED_FREE(fast_resource)
FREED(spinlock)
FREED(queued_spinlock)
FREED(rw_spinlock)
CROWDS(numbered_spinlock)
CROWDS(notification)
CROWDS(address)
CROWDS(address_steps)
