/* The grid's rows of the kernel: ke.h and ex.h. */
#include "grid.h"

#include "ex/exp.h"
#include "ke/ki.h"

static LARGE_INTEGER now, soon = {.QuadPart = -10000};

#define TAG 0x64697247 /* Grid */

/* An operation of a lock: acquire, use, release. */
#define LOCKED(Name, Acquire, Use, Release) \
    static void Name(void)                  \
    {                                       \
        Acquire;                            \
        Use();                              \
        Release;                            \
    }
#define TRIED(Name, Before, Acquire, Use, Release, After) \
    static void Name(void)                                \
    {                                                     \
        Before;                                           \
        if (Acquire) {                                    \
            Use();                                        \
            Release;                                      \
        }                                                 \
        After;                                            \
    }
#define REGION KeEnterCriticalRegion()
#define NO_REGION KeLeaveCriticalRegion()

/* Spinlocks. */
static KSPIN_LOCK spin;
static EX_SPIN_LOCK rw;

LOCKED(spin_acquire, KIRQL irql; KeAcquireSpinLock(&spin, &irql), grid_write, KeReleaseSpinLock(&spin, irql))
TRIED(spin_try, KIRQL irql = KeRaiseIrqlToDpcLevel(), KeTryToAcquireSpinLockAtDpcLevel(&spin), grid_write,
      KeReleaseSpinLockFromDpcLevel(&spin), KeLowerIrql(irql))
GRID(spin_lock, NULL, NULL, spin_acquire, spin_try);

LOCKED(queued_acquire, KLOCK_QUEUE_HANDLE handle; KeAcquireInStackQueuedSpinLock(&spin, &handle), grid_write,
       KeReleaseInStackQueuedSpinLock(&handle))
GRID(queued_spin_lock, NULL, NULL, queued_acquire);

LOCKED(rw_exclusive, KIRQL irql = ExAcquireSpinLockExclusive(&rw), grid_write, ExReleaseSpinLockExclusive(&rw, irql))
LOCKED(rw_shared, KIRQL irql = ExAcquireSpinLockShared(&rw), grid_read, ExReleaseSpinLockShared(&rw, irql))
GRID(rw_spin_lock, NULL, NULL, rw_exclusive, rw_shared);

/* Objects that can be waited for, each as a lock. Alerts and APCs end some of the waits. */
static KEVENT event;
static KEVENT_PAIR pair;
static KGATE gate;
static KMUTANT mutant;
static KSEMAPHORE semaphore, other_semaphore;

static BOOLEAN wait_for(PVOID object, BOOLEAN alertable, PLARGE_INTEGER timeout)
{
    NTSTATUS status = KeWaitForSingleObject(object, Executive, alertable ? UserMode : KernelMode, alertable, timeout);
    LabAssert(status == STATUS_SUCCESS || (timeout != NULL && status == STATUS_TIMEOUT) ||
              (alertable && (status == STATUS_ALERTED || status == STATUS_USER_APC)));
    return status == STATUS_SUCCESS;
}

static void make_event(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, TRUE);
}

static void event_is_set(void)
{
    LabAssert(KeReadStateEvent(&event) == 1);
}
TRIED(event_wait, (void)0, wait_for(&event, TRUE, NULL), grid_write, KeSetEvent(&event, IO_NO_INCREMENT, FALSE), (void)0)
TRIED(event_timed, (void)0, wait_for(&event, FALSE, &soon), grid_write, KeSetEvent(&event, IO_NO_INCREMENT, FALSE),
      (void)0)
GRID(synchronization_event, make_event, event_is_set, event_wait, event_timed);
GRID_UPSET(synchronization_event, make_event, event_is_set);

/* The lock is a word; the event says when to try again. */
static LONG word;

static BOOLEAN is_taken(void)
{
    LONG expected = 0;
    return !__atomic_compare_exchange_n(&word, &expected, 1, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static BOOLEAN take_with_event(PLARGE_INTEGER timeout)
{
    while (is_taken()) {
        KeClearEvent(&event);
        if (!is_taken())
            return TRUE;
        if (!wait_for(&event, FALSE, timeout))
            return FALSE;
    }
    return TRUE;
}

static void give_with_event(void)
{
    __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
    KeSetEvent(&event, IO_NO_INCREMENT, FALSE);
}

static void make_notification_event(void)
{
    KeInitializeEvent(&event, NotificationEvent, TRUE);
}
TRIED(notification_wait, (void)0, take_with_event(NULL), grid_write, give_with_event(), (void)0)
TRIED(notification_timed, (void)0, take_with_event(&soon), grid_write, give_with_event(), (void)0)
GRID(notification_event, make_notification_event, NULL, notification_wait, notification_timed);
GRID_UPSET(notification_event, make_notification_event, NULL);

static void make_pair(void)
{
    KeInitializeEventPair(&pair);
    KeSetHighEventPair(&pair, IO_NO_INCREMENT, FALSE);
}
LOCKED(pair_wait, KeWaitForHighEventPair(&pair, KernelMode, FALSE, NULL), grid_write,
       KeSetHighEventPair(&pair, IO_NO_INCREMENT, FALSE))
GRID(event_pair, make_pair, NULL, pair_wait);
GRID_UPSET(event_pair, make_pair, NULL);

static void make_gate(void)
{
    KeInitializeGate(&gate);
    KeSignalGate(&gate);
}
TRIED(gate_wait, REGION, KeWaitForGate(&gate, WrGuardedMutex, KernelMode) == STATUS_SUCCESS, grid_write,
      KeSignalGate(&gate), NO_REGION)
GRID(gate, make_gate, NULL, gate_wait);
GRID_UPSET(gate, make_gate, NULL);

static void make_mutant(void)
{
    KeInitializeMutant(&mutant, FALSE);
}

static void mutant_is_free(void)
{
    LabAssert(KeReadStateMutant(&mutant) == 1);
}
#define RELEASE_MUTANT KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE)
TRIED(mutant_wait, (void)0, wait_for(&mutant, TRUE, NULL), grid_write, RELEASE_MUTANT, (void)0)
TRIED(mutant_timed, (void)0, wait_for(&mutant, FALSE, &soon), grid_write, RELEASE_MUTANT, (void)0)
GRID(mutant, make_mutant, mutant_is_free, mutant_wait, mutant_timed);
GRID_UPSET(mutant, make_mutant, mutant_is_free);

/* An owner may end at any step of its own: exactly one later owner gets STATUS_ABANDONED. */
static int untold;

static void own_and_perhaps_die(void)
{
    NTSTATUS status = KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, NULL);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
    untold -= status == STATUS_ABANDONED;
    if (LabChoose(2)) {
        untold += 1;
        LabExitThread();
    }
    KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

/* A death without a later owner has not been reported yet. */
static void each_death_is_told_once(void)
{
    LabAssert(KeReadStateMutant(&mutant) == 1 && (untold == 0 || untold == 1));
    LabAssert(mutant.Abandoned == untold);
}
GRID(mutant_abandoned, make_mutant, each_death_is_told_once, own_and_perhaps_die);
GRID_UPSET(mutant_abandoned, make_mutant, each_death_is_told_once);

static void make_semaphore(void)
{
    KeInitializeSemaphore(&semaphore, 1, 1);
    KeInitializeSemaphore(&other_semaphore, 1, 1);
}

static void semaphores_are_free(void)
{
    LabAssert(KeReadStateSemaphore(&semaphore) == 1 && KeReadStateSemaphore(&other_semaphore) == 1);
}

static void give(PKSEMAPHORE which)
{
    KeReleaseSemaphore(which, IO_NO_INCREMENT, 1, FALSE);
}
TRIED(semaphore_wait, (void)0, wait_for(&semaphore, TRUE, NULL), grid_write, give(&semaphore), (void)0)
TRIED(semaphore_timed, (void)0, wait_for(&semaphore, FALSE, &soon), grid_write, give(&semaphore), (void)0)
GRID(semaphore, make_semaphore, semaphores_are_free, semaphore_wait, semaphore_timed);
GRID_UPSET(semaphore, make_semaphore, semaphores_are_free);

/* Several objects: any of two, both of two. Each protects a value, as a lock does (grid_write). */
static int values[2];

static __attribute__((noinline)) void write_value(unsigned object)
{
    grid_forget_wait();
    values[object] = 0;
    __asm__ volatile("" : : "r"(values) : "memory");
}

static NTSTATUS wait_for_two(WAIT_TYPE type, BOOLEAN alertable, PLARGE_INTEGER timeout)
{
    PVOID objects[2] = {&semaphore, &other_semaphore};
    return KeWaitForMultipleObjects(2, objects, type, Executive, KernelMode, alertable, timeout, NULL);
}

static void take_any(void)
{
    NTSTATUS status = wait_for_two(WaitAny, FALSE, NULL);
    LabAssert(status == STATUS_WAIT_0 || status == STATUS_WAIT_1);
    write_value((unsigned)status);
    give(status == STATUS_WAIT_0 ? &semaphore : &other_semaphore);
}

static void take_all(void)
{
    NTSTATUS status = wait_for_two(WaitAll, TRUE, &soon);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT || status == STATUS_ALERTED);
    if (status != STATUS_SUCCESS)
        return;
    write_value(0);
    write_value(1);
    give(&semaphore);
    give(&other_semaphore);
}
GRID(wait_multiple, make_semaphore, semaphores_are_free, take_any, take_all);
GRID_UPSET(wait_multiple, make_semaphore, semaphores_are_free);

/* Timers, against their model. The expiration begins before the timer is set and never ends. */
enum { TIMER_SET, TIMER_CANCEL, TIMER_WAIT, TIMER_EXPIRE };
static KTIMER timer;
static int settings;

static void make_timer(void)
{
    KeInitializeTimerEx(&timer, SynchronizationTimer);
}

static void timer_set(void)
{
    int number = __atomic_add_fetch(&settings, 1, __ATOMIC_RELAXED);
    LabBegin(TIMER_EXPIRE, number);
    unsigned operation = LabBegin(TIMER_SET, number);
    LabEnd(operation, KeSetTimer(&timer, soon, NULL));
}

static void timer_cancel(void)
{
    unsigned operation = LabBegin(TIMER_CANCEL, 0);
    LabEnd(operation, KeCancelTimer(&timer));
}

static void timer_poll(void)
{
    unsigned operation = LabBegin(TIMER_WAIT, 0);
    LabEnd(operation, wait_for(&timer, FALSE, &now));
}

static void is_a_timer(void)
{
    LabCheckLinearizable(&LabModelSynchronizationTimer);
}
GRID(timer, make_timer, is_a_timer, timer_set, timer_cancel, timer_poll);

/* Executive timers: the callback runs at most once per setting, and not after the timer was cancelled for good. */
static PEX_TIMER executive_timer;
static int owed; /* settings that have neither expired nor been cancelled */

static VOID executive_expired(PEX_TIMER self, PVOID context)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(context);
    __atomic_fetch_sub(&owed, 1, __ATOMIC_RELAXED);
}

static void make_executive_timer(void)
{
    executive_timer = ExAllocateTimer(executive_expired, NULL, 0);
}

static void executive_set(void)
{
    __atomic_fetch_add(&owed, 1, __ATOMIC_RELAXED);
    BOOLEAN replaced = ExSetTimer(executive_timer, soon.QuadPart, 0, NULL);
    __atomic_fetch_sub(&owed, replaced, __ATOMIC_RELAXED);
}

static void executive_cancel(void)
{
    __atomic_fetch_sub(&owed, ExCancelTimer(executive_timer, NULL), __ATOMIC_RELAXED);
}

static void executive_adds_up(void)
{
    LabAssert(owed >= 0);
}
GRID(executive_timer, make_executive_timer, executive_adds_up, executive_set, executive_cancel);

/* Queues: as many are inserted as removed, or more. */
static KQUEUE queue;
static LIST_ENTRY entries[8];
static int inserted, gotten[ARRAYSIZE(entries)];

static void make_queue(void)
{
    KeInitializeQueue(&queue, 8);
}

static void queue_insert(void)
{
    KeInsertQueue(&queue, &entries[__atomic_fetch_add(&inserted, 1, __ATOMIC_RELAXED)]);
}

static void take_entry(PLIST_ENTRY entry)
{
    LabAssert(entry >= entries && entry < entries + ARRAYSIZE(entries));
    gotten[entry - entries] += 1; /* a race if another thread got it too */
    LabForget(entry, sizeof(*entry)); /* no list has it any more */
}

static void queue_remove(void)
{
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, NULL);
    take_entry(entry);
}

static void queue_adds_up(void)
{
    int removed = 0;
    for (unsigned i = 0; i < ARRAYSIZE(entries); i++) {
        LabAssert(gotten[i] <= 1);
        removed += gotten[i];
    }
    LabAssert(KeReadStateQueue(&queue) == inserted - removed);
}
GRID_ROLES(queue, make_queue, queue_adds_up, queue_insert, queue_remove);
GRID_UPSET(queue, make_queue, queue_adds_up);

/* The timeout against the insertion: an entry is removed once, or is still there. */
static void queue_remove_timed(void)
{
    PLIST_ENTRY entry = KeRemoveQueue(&queue, KernelMode, &soon);
    if (entry == (PLIST_ENTRY)(ULONG_PTR)STATUS_TIMEOUT)
        return;
    take_entry(entry);
}
GRID_ROLES(queue_timed, make_queue, queue_adds_up, queue_remove_timed, queue_insert);

/* Keyed events: both sides are paired or neither. */
static EX_KEYED_EVENT keyed;
static int key DECLSPEC_ALIGN(2);
static int met; /* waits less releases */

static void make_keyed(void)
{
    ExpInitializeKeyedEvent(&keyed);
}

static void keyed_wait(void)
{
    NTSTATUS status = ExpWaitForKeyedEvent(&keyed, &key, KernelMode, FALSE, &soon);
    __atomic_fetch_add(&met, status == STATUS_SUCCESS, __ATOMIC_RELAXED);
}

static void keyed_release(void)
{
    NTSTATUS status = ExpReleaseKeyedEvent(&keyed, &key, KernelMode, FALSE, &soon);
    __atomic_fetch_sub(&met, status == STATUS_SUCCESS, __ATOMIC_RELAXED);
}

static void as_many_met(void)
{
    LabAssert(met == 0);
}
GRID_ROLES(keyed_event, make_keyed, as_many_met, keyed_wait, keyed_release);
GRID_UPSET(keyed_event, make_keyed, as_many_met);

/* Mutexes and pushlocks. */
static FAST_MUTEX fast;
static KGUARDED_MUTEX guarded;
static EX_PUSH_LOCK push;
static PEX_CACHE_AWARE_PUSH_LOCK aware;
static PEX_PUSH_LOCK_AUTO_EXPAND expanding;

static void make_fast(void)
{
    ExInitializeFastMutex(&fast);
    LabIgnore(&fast.Contention, sizeof(fast.Contention));
}
LOCKED(fast_acquire, ExAcquireFastMutex(&fast), grid_write, ExReleaseFastMutex(&fast))
TRIED(fast_try, (void)0, ExTryToAcquireFastMutex(&fast), grid_write, ExReleaseFastMutex(&fast), (void)0)
GRID(fast_mutex, make_fast, NULL, fast_acquire, fast_try);
GRID_UPSET(fast_mutex, make_fast, NULL);

static void make_guarded(void)
{
    KeInitializeGuardedMutex(&guarded);
    LabIgnore(&guarded.Contention, sizeof(guarded.Contention));
}
LOCKED(guarded_acquire, KeAcquireGuardedMutex(&guarded), grid_write, KeReleaseGuardedMutex(&guarded))
TRIED(guarded_try, (void)0, KeTryToAcquireGuardedMutex(&guarded), grid_write, KeReleaseGuardedMutex(&guarded), (void)0)
GRID(guarded_mutex, make_guarded, NULL, guarded_acquire, guarded_try);
GRID_UPSET(guarded_mutex, make_guarded, NULL);

static void pushlock_is_free(void)
{
    LabAssert(push == 0);
}
LOCKED(push_exclusive, REGION; ExAcquirePushLockExclusive(&push), grid_write, ExReleasePushLockExclusive(&push); NO_REGION)
LOCKED(push_shared, REGION; ExAcquirePushLockShared(&push), grid_read, ExReleasePushLockShared(&push); NO_REGION)
GRID(pushlock, NULL, pushlock_is_free, push_exclusive, push_shared);
GRID_UPSET(pushlock, NULL, pushlock_is_free);

static void make_aware(void)
{
    aware = ExAllocateCacheAwarePushLock();
}
LOCKED(aware_exclusive, REGION; ExAcquireCacheAwarePushLockExclusiveEx(aware, 0), grid_write,
       ExReleaseCacheAwarePushLockExclusiveEx(aware, 0); NO_REGION)
LOCKED(aware_shared, REGION; PEX_PUSH_LOCK held = ExAcquireCacheAwarePushLockSharedEx(aware, 0), grid_read,
       ExReleaseCacheAwarePushLockSharedEx(held, 0); NO_REGION)
GRID(cache_aware_pushlock, make_aware, NULL, aware_exclusive, aware_shared);
GRID_UPSET(cache_aware_pushlock, make_aware, NULL);

#define ENOUGH_MEETINGS 64 /* the next shared acquire expands it */

static void make_expanding(void)
{
    expanding = ExAllocateAutoExpandPushLock(0);
    expanding->Stats = ENOUGH_MEETINGS - 1;
}
LOCKED(expanding_exclusive, REGION; ExAcquireAutoExpandPushLockExclusive(expanding, 0), grid_write,
       ExReleaseAutoExpandPushLockExclusive(expanding, 0); NO_REGION)
LOCKED(expanding_shared, REGION; PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(expanding, 0), grid_read,
       ExReleaseAutoExpandPushLockShared(expanding, held, 0); NO_REGION)
GRID(auto_expand_pushlock, make_expanding, NULL, expanding_exclusive, expanding_shared);
GRID_UPSET(auto_expand_pushlock, make_expanding, NULL);

/* A lock made of a word and an address-based pushlock. */
static BOOLEAN take_with_address(PLARGE_INTEGER timeout)
{
    LONG taken = 1;
    while (is_taken()) {
        if (ExBlockOnAddressPushLock(&push, &word, &taken, sizeof(taken), timeout) == STATUS_TIMEOUT)
            return FALSE;
    }
    return TRUE;
}

static void give_with_address(void)
{
    __atomic_store_n(&word, 0, __ATOMIC_SEQ_CST);
    ExUnblockOnAddressPushLock(&push, &word);
}
TRIED(address_wait, (void)0, take_with_address(NULL), grid_write, give_with_address(), (void)0)
TRIED(address_timed, (void)0, take_with_address(&soon), grid_write, give_with_address(), (void)0)
GRID(address_pushlock, NULL, NULL, address_wait, address_timed);
GRID_UPSET(address_pushlock, NULL, NULL);

/* Resources. */
static ERESOURCE resource;
static FAST_ERESOURCE fast_resource;

static void make_resource(void)
{
    ExInitializeResourceLite(&resource);
    LabIgnore(&resource.ContentionCount, sizeof(resource.ContentionCount));
}
LOCKED(resource_exclusive, REGION; ExAcquireResourceExclusiveLite(&resource, TRUE), grid_write,
       ExReleaseResourceLite(&resource); NO_REGION)
LOCKED(resource_shared, REGION; ExAcquireResourceSharedLite(&resource, TRUE), grid_read,
       ExReleaseResourceLite(&resource); NO_REGION)
GRID(resource, make_resource, NULL, resource_exclusive, resource_shared);
GRID_UPSET(resource, make_resource, NULL);

static void make_fast_resource(void)
{
    ExInitializeFastResource(&fast_resource, 0);
}
#define OWNER_ENTRY         \
    FAST_OWNER_ENTRY entry; \
    ExInitializeFastOwnerEntry(&entry); \
    REGION
LOCKED(fast_exclusive, OWNER_ENTRY; ExAcquireFastResourceExclusive(&fast_resource, &entry, TRUE), grid_write,
       ExReleaseFastResource(&fast_resource, &entry); NO_REGION)
LOCKED(fast_shared, OWNER_ENTRY; ExAcquireFastResourceShared(&fast_resource, &entry, TRUE), grid_read,
       ExReleaseFastResource(&fast_resource, &entry); NO_REGION)
GRID(fast_resource, make_fast_resource, NULL, fast_exclusive, fast_shared);
GRID_UPSET(fast_resource, make_fast_resource, NULL);

/* Rundown protection: what is written after the wait is not read by a user. */
static EX_RUNDOWN_REF rundown;
static PEX_RUNDOWN_REF_CACHE_AWARE aware_rundown;

static void run_down(void)
{
    ExWaitForRundownProtectionRelease(&rundown);
    LabAssert(!ExAcquireRundownProtection(&rundown));
    __atomic_fetch_add(&word, 1, __ATOMIC_RELAXED);
}

static void protected_read(void)
{
    LabAssert(__atomic_load_n(&word, __ATOMIC_RELAXED) == 0);
}

static void make_rundown(void)
{
    ExInitializeRundownProtection(&rundown);
}
TRIED(rundown_use, (void)0, ExAcquireRundownProtection(&rundown), protected_read, ExReleaseRundownProtection(&rundown),
      (void)0)
GRID(rundown, make_rundown, NULL, rundown_use, rundown_use, run_down);
GRID_UPSET(rundown, make_rundown, NULL);

static void run_down_aware(void)
{
    ExWaitForRundownProtectionReleaseCacheAware(aware_rundown);
    LabAssert(!ExAcquireRundownProtectionCacheAware(aware_rundown));
    __atomic_fetch_add(&word, 1, __ATOMIC_RELAXED);
}

static void make_aware_rundown(void)
{
    aware_rundown = ExAllocateCacheAwareRundownProtection(NonPagedPool, TAG);
}
TRIED(aware_use, (void)0, ExAcquireRundownProtectionCacheAware(aware_rundown), protected_read,
      ExReleaseRundownProtectionCacheAware(aware_rundown), (void)0)
static void aware_end(void)
{
    if (LabCurrentThread() == grid_threads - 1)
        run_down_aware(); /* one thread only: the structure is not for several */
    else
        aware_use();
}
GRID(cache_aware_rundown, make_aware_rundown, NULL, aware_use, aware_end);

/* Fast references, against their model. Object 1 is the first. */
enum { REFERENCE_ACQUIRE, REFERENCE_RELEASE, REFERENCE_SWAP };
static char objects[3][16] DECLSPEC_ALIGN(16);
static EX_FAST_REF reference;

static void make_reference(void)
{
    ExInitializeFastReference(&reference, objects[1]);
}

static intptr_t value_of(EX_FAST_REF found)
{
    char *object = ExGetObjectFastReference(found);
    intptr_t number = object != NULL ? (object - objects[0]) / 16 : 0;
    return number * 16 + (intptr_t)ExGetCountFastReference(found);
}

static void reference_use(void)
{
    unsigned operation = LabBegin(REFERENCE_ACQUIRE, 0);
    intptr_t value = value_of(ExAcquireFastReference(&reference));
    LabEnd(operation, value);
    if (value % 16 != 0) {
        operation = LabBegin(REFERENCE_RELEASE, value / 16);
        LabEnd(operation, ExReleaseFastReference(&reference, objects[value / 16]));
    }
}

static void reference_swap(void)
{
    unsigned object = 1 + LabChoose(2);
    unsigned operation = LabBegin(REFERENCE_SWAP, object);
    LabEnd(operation, value_of(ExSwapFastReference(&reference, objects[object])));
}

static void is_a_reference(void)
{
    LabCheckLinearizable(&LabModelFastReference);
}
GRID(fast_reference, make_reference, is_a_reference, reference_use, reference_swap);

/* Lists: an entry that was popped is its thread's alone. */
typedef struct item {
    SLIST_ENTRY link;
    int owned;
} DECLSPEC_ALIGN(16) item;

static SLIST_HEADER list DECLSPEC_ALIGN(16);
static item items[2];

static void make_list(void)
{
    InitializeSListHead(&list);
    InterlockedPushEntrySList(&list, &items[0].link);
    InterlockedPushEntrySList(&list, &items[1].link);
}

/* A write is a race if another thread owns the entry too. Not inline, and always the same value: as grid_write. */
static __attribute__((noinline)) void own(PSLIST_ENTRY entry)
{
    CONTAINING_RECORD(entry, item, link)->owned = 0;
    __asm__ volatile("" : : "r"(entry) : "memory");
}

static void pop_and_push(void)
{
    PSLIST_ENTRY entry = InterlockedPopEntrySList(&list);
    if (entry == NULL)
        return;
    own(entry);
    InterlockedPushEntrySList(&list, entry);
}

static void flush_and_push(void)
{
    PSLIST_ENTRY entry = InterlockedFlushSList(&list);
    while (entry != NULL) {
        PSLIST_ENTRY next = entry->Next;
        own(entry);
        InterlockedPushEntrySList(&list, entry);
        entry = next;
    }
}

static void both_are_there(void)
{
    LabAssert(QueryDepthSList(&list) == 2);
}
GRID(slist, make_list, both_are_there, pop_and_push, flush_and_push);

/* Lists under a spinlock: an entry that was removed is its thread's alone. */
static LIST_ENTRY list_head;
static KSPIN_LOCK list_lock;

static void make_interlocked_list(void)
{
    InitializeListHead(&list_head);
    InsertTailList(&list_head, &entries[0]);
    InsertTailList(&list_head, &entries[1]);
}

static void remove_and_insert_tail(void)
{
    PLIST_ENTRY entry = ExInterlockedRemoveHeadList(&list_head, &list_lock);
    if (entry == NULL)
        return;
    entry->Flink = NULL; /* a race if another thread got it too */
    ExInterlockedInsertTailList(&list_head, entry, &list_lock);
}

static void remove_and_insert_head(void)
{
    PLIST_ENTRY entry = ExInterlockedRemoveHeadList(&list_head, &list_lock);
    if (entry == NULL)
        return;
    entry->Flink = NULL;
    ExInterlockedInsertHeadList(&list_head, entry, &list_lock);
}

static void both_are_linked(void)
{
    LabAssert(list_head.Flink->Flink->Flink == &list_head && list_head.Flink != list_head.Blink);
}
GRID(interlocked_list, make_interlocked_list, both_are_linked, remove_and_insert_tail, remove_and_insert_head);

/* DPCs: one runs as often as it was queued, unless it was removed. */
static KDPC dpc;
static int pending; /* queued, less those that ran or were taken back */

static VOID count_run(PKDPC self, PVOID context, PVOID first, PVOID second)
{
    UNREFERENCED_PARAMETER(self);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    __atomic_fetch_sub(&pending, 1, __ATOMIC_RELAXED);
}

static void make_dpc(void)
{
    KeInitializeDpc(&dpc, count_run, NULL);
    KeSetTargetProcessorDpc(&dpc, 1);
}

static void dpc_insert(void)
{
    __atomic_fetch_add(&pending, KeInsertQueueDpc(&dpc, NULL, NULL), __ATOMIC_RELAXED);
}

static void dpc_remove(void)
{
    __atomic_fetch_sub(&pending, KeRemoveQueueDpc(&dpc), __ATOMIC_RELAXED);
}

static void dpc_adds_up(void)
{
    LabAssert(pending == 0 && dpc.DpcData == NULL);
}
GRID(dpc, make_dpc, dpc_adds_up, dpc_insert, dpc_remove);
