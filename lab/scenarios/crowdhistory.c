/*
 * Four threads, two or three random operations each: the object's sequential model must allow its history. An operation
 * leaves the object so that every other thread can continue.
 */
#include <interlock/lab.h>

#include <ntifs.h>

#include "../models/kqueue.h"
#include "ex/exp.h"

#define THREADS 4
#define MOST_OPERATIONS 8

typedef struct kind {
    const LAB_MODEL *model;
    void (*make)(void);
    void (*operations[MOST_OPERATIONS])(void);
    void (*end)(void); /* of a thread, or NULL */
    int times;         /* operations per thread; 0: three */
} kind;

static const kind *kind_of_all;
static LARGE_INTEGER now, soon = {.QuadPart = -10000};

/* Result is an expression that is evaluated after Call has returned. */
#define RECORD(Name, Argument, Call, Result)                   \
    do {                                                       \
        unsigned recorded_as = LabBegin((Name), (Argument));   \
        Call;                                                  \
        LabEnd(recorded_as, (Result));                         \
    } while (0)

/* Two operations of the model that begin and end together. */
#define RECORD_BOTH(First, Second, Argument, Call, Result)             \
    do {                                                               \
        unsigned recorded_first = LabBegin((First), (Argument));       \
        unsigned recorded_second = LabBegin((Second), (Argument));     \
        Call;                                                          \
        LabEnd(recorded_first, (Result));                              \
        LabEnd(recorded_second, (Result));                             \
    } while (0)

static BOOLEAN is_satisfied(PVOID object, PLARGE_INTEGER timeout)
{
    NTSTATUS status = KeWaitForSingleObject(object, Executive, KernelMode, FALSE, timeout);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
    return status == STATUS_SUCCESS;
}

/* Events. */
enum { EVENT_SET, EVENT_RESET, EVENT_WAIT };
static KEVENT event;

static void make_notification_event(void)
{
    KeInitializeEvent(&event, NotificationEvent, FALSE);
}

static void make_synchronization_event(void)
{
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
}

static void event_set(void)
{
    RECORD(EVENT_SET, 0, LONG was = KeSetEvent(&event, IO_NO_INCREMENT, FALSE), was);
}

static void event_reset(void)
{
    RECORD(EVENT_RESET, 0, LONG was = KeResetEvent(&event), was);
}

static void event_poll(void)
{
    RECORD(EVENT_WAIT, 0, BOOLEAN got = is_satisfied(&event, &now), got);
}

static void event_wait(void)
{
    RECORD(EVENT_WAIT, 0, BOOLEAN got = is_satisfied(&event, &soon), got);
}
#define EVENT_OPERATIONS {event_set, event_wait, event_reset, event_poll, event_set}
static const kind notification_event_kind = {&LabModelNotificationEvent, make_notification_event, EVENT_OPERATIONS, NULL, 0};
static const kind synchronization_event_kind = {&LabModelSynchronizationEvent, make_synchronization_event,
                                                EVENT_OPERATIONS, NULL, 0};

/* Semaphores. */
enum { SEMAPHORE_RELEASE, SEMAPHORE_WAIT };
static KSEMAPHORE semaphore;

static void make_semaphore(void)
{
    KeInitializeSemaphore(&semaphore, 0, 100);
}

static void release_count(LONG count)
{
    RECORD(SEMAPHORE_RELEASE, count, LONG was = KeReleaseSemaphore(&semaphore, IO_NO_INCREMENT, count, FALSE), was);
}

static void semaphore_release(void)
{
    release_count(1);
}

static void semaphore_release_two(void)
{
    release_count(2);
}

static void semaphore_poll(void)
{
    RECORD(SEMAPHORE_WAIT, 0, BOOLEAN got = is_satisfied(&semaphore, &now), got);
}

static void semaphore_wait(void)
{
    RECORD(SEMAPHORE_WAIT, 0, BOOLEAN got = is_satisfied(&semaphore, &soon), got);
}
static const kind semaphore_kind = {&LabModelSemaphore, make_semaphore,
                                    {semaphore_release, semaphore_wait, semaphore_release_two, semaphore_poll}, NULL, 0};

/* Mutants. */
enum { MUTANT_WAIT, MUTANT_RELEASE, MUTANT_END };
static KMUTANT mutant;

static void make_mutant(void)
{
    KeInitializeMutant(&mutant, FALSE);
}

static BOOLEAN own_mutant(PLARGE_INTEGER timeout)
{
    NTSTATUS status;
    RECORD(MUTANT_WAIT, 0, status = KeWaitForSingleObject(&mutant, Executive, KernelMode, FALSE, timeout),
           status == STATUS_TIMEOUT ? 2 : status == STATUS_ABANDONED);
    return status != STATUS_TIMEOUT;
}

static void disown_mutant(void)
{
    RECORD(MUTANT_RELEASE, 0, LONG was = KeReleaseMutant(&mutant, IO_NO_INCREMENT, FALSE, FALSE), was);
}

static void mutant_wait(void)
{
    own_mutant(NULL);
    disown_mutant();
}

static void mutant_try(void)
{
    if (own_mutant(LabChoose(2) ? &now : &soon))
        disown_mutant();
}

static void mutant_nested(void)
{
    own_mutant(NULL);
    mutant_try();
    disown_mutant();
}

static void mutant_abandon(void)
{
    own_mutant(NULL);
    LabBegin(MUTANT_END, 0);
    LabExitThread();
}
static const kind mutant_kind = {&LabModelMutant, make_mutant, {mutant_wait, mutant_try, mutant_nested, mutant_abandon},
                                 NULL, 0};

/* Timers. The expiration begins before the timer is set and never ends. */
enum { TIMER_SET, TIMER_CANCEL, TIMER_WAIT, TIMER_EXPIRE };
static KTIMER timer;
static int settings;

static void make_notification_timer(void)
{
    KeInitializeTimerEx(&timer, NotificationTimer);
}

static void make_synchronization_timer(void)
{
    KeInitializeTimerEx(&timer, SynchronizationTimer);
}

static void timer_set(void)
{
    int number = __atomic_add_fetch(&settings, 1, __ATOMIC_RELAXED);
    LabBegin(TIMER_EXPIRE, number);
    RECORD(TIMER_SET, number, BOOLEAN was = KeSetTimer(&timer, soon, NULL), was);
}

static void timer_cancel(void)
{
    RECORD(TIMER_CANCEL, 0, BOOLEAN was = KeCancelTimer(&timer), was);
}

static void timer_poll(void)
{
    RECORD(TIMER_WAIT, 0, BOOLEAN got = is_satisfied(&timer, &now), got);
}
#define TIMER_OPERATIONS {timer_set, timer_poll, timer_cancel}
static const kind notification_timer_kind = {&LabModelNotificationTimer, make_notification_timer, TIMER_OPERATIONS, NULL, 0};
static const kind synchronization_timer_kind = {&LabModelSynchronizationTimer, make_synchronization_timer,
                                                TIMER_OPERATIONS, NULL, 0};

/* Queues for one running thread. A thread that exits no longer runs. */
static KQUEUE queue;
static LIST_ENTRY entries[1 + 3 * THREADS]; /* an element's number is not 0 */
static int inserted;

static void make_queue(void)
{
    KeInitializeQueue(&queue, 1);
}

static void queue_insert(void)
{
    int number = __atomic_add_fetch(&inserted, 1, __ATOMIC_RELAXED);
    RECORD(QUEUE_INSERT, number, LONG was = KeInsertQueue(&queue, &entries[number]), was);
}

static void queue_insert_head(void)
{
    int number = __atomic_add_fetch(&inserted, 1, __ATOMIC_RELAXED);
    RECORD(QUEUE_INSERT_HEAD, number, LONG was = KeInsertHeadQueue(&queue, &entries[number]), was);
}

/* A thread does not run while it is in its remove. */
static void remove_from_queue(PLARGE_INTEGER timeout)
{
    PLIST_ENTRY entry;
    RECORD_BOTH(QUEUE_END, QUEUE_REMOVE, 0, entry = KeRemoveQueue(&queue, KernelMode, timeout),
                (LONG_PTR)entry == STATUS_TIMEOUT ? 0 : entry - entries);
}

static void queue_poll(void)
{
    remove_from_queue(&now);
}

static void queue_wait(void)
{
    remove_from_queue(&soon);
}

static void queue_end(void)
{
    LabBegin(QUEUE_END, 0);
    LabExitThread();
}
static const kind queue_kind = {&LabModelNarrowQueue, make_queue,
                                {queue_insert, queue_wait, queue_insert_head, queue_poll}, queue_end, 0};

/* Keyed events. */
enum { WAIT_ARRIVES, WAIT_LEAVES, RELEASE_ARRIVES, RELEASE_LEAVES };
static EX_KEYED_EVENT keyed;
static int keys[2] DECLSPEC_ALIGN(2);

static void make_keyed(void)
{
    ExpInitializeKeyedEvent(&keyed);
}

static void keyed_wait(void)
{
    unsigned key = LabChoose(2);
    NTSTATUS status;
    RECORD_BOTH(WAIT_ARRIVES, WAIT_LEAVES, key,
                status = ExpWaitForKeyedEvent(&keyed, &keys[key], KernelMode, FALSE, &soon), status == STATUS_SUCCESS);
}

static void keyed_release(void)
{
    unsigned key = LabChoose(2);
    NTSTATUS status;
    RECORD_BOTH(RELEASE_ARRIVES, RELEASE_LEAVES, key,
                status = ExpReleaseKeyedEvent(&keyed, &keys[key], KernelMode, FALSE, &soon), status == STATUS_SUCCESS);
}
static const kind keyed_event_kind = {&LabModelKeyedEvent, make_keyed, {keyed_wait, keyed_release}, NULL, 0};

/* Resources, released by the acquiring thread. */
enum { EXCLUSIVE, SHARED, STARVE_EXCLUSIVE, WAIT_FOR_EXCLUSIVE, RELEASE, CONVERT };
static ERESOURCE resource;

static void make_resource(void)
{
    ExInitializeResourceLite(&resource);
}

static BOOLEAN own_resource(unsigned name, BOOLEAN wait)
{
    static BOOLEAN (*const acquire[])(PERESOURCE, BOOLEAN) = {
        ExAcquireResourceExclusiveLite, ExAcquireResourceSharedLite, ExAcquireSharedStarveExclusive,
        ExAcquireSharedWaitForExclusive};
    BOOLEAN got;
    RECORD(name, wait, got = acquire[name](&resource, wait), got);
    return got;
}

static void disown_resource(void)
{
    RECORD(RELEASE, 0, ExReleaseResourceLite(&resource), 0);
}

static void resource_any_manner(void)
{
    KeEnterCriticalRegion();
    if (own_resource(LabChoose(4), (BOOLEAN)LabChoose(2)))
        disown_resource();
    KeLeaveCriticalRegion();
}

static void resource_convert(void)
{
    KeEnterCriticalRegion();
    own_resource(EXCLUSIVE, TRUE);
    RECORD(CONVERT, 0, ExConvertExclusiveToSharedLite(&resource), 0);
    disown_resource();
    KeLeaveCriticalRegion();
}

/* Without waiting, or shared: a sharer that waits behind the exclusive waiters waits for itself. */
static void resource_nested(void)
{
    KeEnterCriticalRegion();
    own_resource(LabChoose(2) ? EXCLUSIVE : SHARED, TRUE);
    if (own_resource(LabChoose(4), FALSE))
        disown_resource();
    own_resource(SHARED, TRUE);
    disown_resource();
    disown_resource();
    KeLeaveCriticalRegion();
}
static const kind resource_kind = {&LabModelResource, make_resource,
                                   {resource_any_manner, resource_convert, resource_nested}, NULL, 2};

/* Rundown protection, run down by several threads. */
enum { RUNDOWN_ACQUIRE, RUNDOWN_RELEASE, RUNDOWN_BEGIN, RUNDOWN_COMPLETE };
static EX_RUNDOWN_REF rundown;

static void make_rundown(void)
{
    ExInitializeRundownProtection(&rundown);
}

static BOOLEAN protect(void)
{
    BOOLEAN got;
    RECORD(RUNDOWN_ACQUIRE, 0, got = ExAcquireRundownProtection(&rundown), got);
    return got;
}

static void unprotect(void)
{
    RECORD(RUNDOWN_RELEASE, 0, ExReleaseRundownProtection(&rundown), 0);
}

static void rundown_use(void)
{
    if (protect())
        unprotect();
}

static void rundown_use_twice(void)
{
    if (protect()) {
        rundown_use();
        unprotect();
    }
}

static void rundown_wait(void)
{
    RECORD_BOTH(RUNDOWN_BEGIN, RUNDOWN_COMPLETE, 0, ExWaitForRundownProtectionRelease(&rundown), 0);
}
static const kind rundown_kind = {&LabModelRundown, make_rundown,
                                  {rundown_use, rundown_use_twice, rundown_use, rundown_wait}, NULL, 0};

/* Fast references. Object 1 is the first. */
enum { REFERENCE_ACQUIRE, REFERENCE_RELEASE, REFERENCE_SWAP, REFERENCE_COMPARE_SWAP };
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
    intptr_t value;
    RECORD(REFERENCE_ACQUIRE, 0, value = value_of(ExAcquireFastReference(&reference)), value);
    if (value % 16 != 0)
        RECORD(REFERENCE_RELEASE, value / 16, BOOLEAN back = ExReleaseFastReference(&reference, objects[value / 16]),
               back);
}

static void reference_swap(void)
{
    unsigned object = 1 + LabChoose(2);
    RECORD(REFERENCE_SWAP, object, intptr_t was = value_of(ExSwapFastReference(&reference, objects[object])), was);
}

static void reference_compare_swap(void)
{
    unsigned old = 1 + LabChoose(2), new = 1 + LabChoose(2);
    RECORD(REFERENCE_COMPARE_SWAP, old * 16 + new,
           intptr_t was = value_of(ExCompareSwapFastReference(&reference, objects[new], objects[old])), was);
}
static const kind fast_reference_kind = {&LabModelFastReference, make_reference,
                                         {reference_use, reference_swap, reference_compare_swap}, NULL, 0};

/* Lists. A thread that has popped an entry pushes it again; a flush returns the first one only. */
enum { LIST_PUSH, LIST_POP, LIST_FLUSH, LIST_DEPTH };
static SLIST_HEADER list DECLSPEC_ALIGN(16);
static SLIST_ENTRY links[1 + 3 * THREADS] DECLSPEC_ALIGN(16);
static int pushed;

static void make_list(void)
{
    InitializeSListHead(&list);
}

static intptr_t number_of(PSLIST_ENTRY entry)
{
    return entry != NULL ? entry - links : 0;
}

static void push(intptr_t number)
{
    RECORD(LIST_PUSH, number, intptr_t first = number_of(InterlockedPushEntrySList(&list, &links[number])), first);
}

static void list_push(void)
{
    push(__atomic_add_fetch(&pushed, 1, __ATOMIC_RELAXED));
}

static void list_pop(void)
{
    intptr_t number;
    RECORD(LIST_POP, 0, number = number_of(InterlockedPopEntrySList(&list)), number);
    if (number != 0 && LabChoose(2))
        push(number);
}

static void list_flush(void)
{
    intptr_t all = 0;
    unsigned operation = LabBegin(LIST_FLUSH, 0), shift = 0;
    for (PSLIST_ENTRY entry = InterlockedFlushSList(&list); entry != NULL; entry = entry->Next, shift += 4)
        all |= number_of(entry) << shift;
    LabEnd(operation, all);
    if (all != 0)
        push(all & 15);
}
static const kind slist_kind = {&LabModelList, make_list, {list_push, list_pop, list_flush}, NULL, 0};

/* The scenarios. */

static void make(const kind *k)
{
    kind_of_all = k;
    k->make();
}

static void any_operations(void)
{
    unsigned count = 0;
    while (count < MOST_OPERATIONS && kind_of_all->operations[count] != NULL)
        count++;
    for (int i = kind_of_all->times != 0 ? kind_of_all->times : 3; i > 0; i--)
        kind_of_all->operations[LabChoose(count)]();
    if (kind_of_all->end != NULL)
        kind_of_all->end();
}

static void fits_model(void)
{
    LabCheckLinearizable(kind_of_all->model);
}

#define HISTORY(Kind)                                                                                    \
    static void make_any_##Kind(void)                                                                    \
    {                                                                                                    \
        make(&Kind##_kind);                                                                              \
    }                                                                                                    \
    LAB_SCENARIO(crowd_history_##Kind, .Setup = make_any_##Kind,                                         \
                 .Threads = {any_operations, any_operations, any_operations, any_operations}, .Finish = fits_model,          \
                 .Flags = LAB_LARGE, .Processors = 3);

HISTORY(notification_event)
HISTORY(synchronization_event)
HISTORY(semaphore)
HISTORY(mutant)
HISTORY(notification_timer)
HISTORY(synchronization_timer)
HISTORY(queue)
HISTORY(keyed_event)
HISTORY(resource)
HISTORY(rundown)
HISTORY(fast_reference)
HISTORY(slist)
