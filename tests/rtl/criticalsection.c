/* Critical sections, by the numbers in src/rtl/criticalsection.c. One variant runs all tests with events. */
#include "locktest.h"

#include "../ke/crowd.h"
#include "../support/heap.h"
#include "ob/obp.h"
#include "rtl/criticalsection.h"

#define FREE (-1)
#define HELD (-2)
#define WAITING 4 /* each waiter subtracts this much */
#define NO_DEBUG_INFO ((PVOID)(LONG_PTR)-1)
#define DEFAULT_SPIN 0x020007D0u

static BOOLEAN use_events(void)
{
    return RtlpForceCSToUseEvents;
}

static ULONG spin_count(ULONG on_many)
{
    return KeNumberProcessors == 1 ? 0 : on_many;
}

static LONG lock_count(RTL_CRITICAL_SECTION *section)
{
    return __atomic_load_n(&section->LockCount, __ATOMIC_ACQUIRE);
}

static HANDLE own_id(void)
{
    return ULongToHandle(KeGetCurrentThread()->ThreadId);
}

static void assert_free(RTL_CRITICAL_SECTION *section)
{
    assert_int_equal(lock_count(section), FREE);
    assert_int_equal(section->RecursionCount, 0);
    assert_null(section->OwningThread);
}

static void enter(void *section)
{
    check(RtlEnterCriticalSection(section) == STATUS_SUCCESS);
}

static void leave(void *section)
{
    check(RtlLeaveCriticalSection(section) == STATUS_SUCCESS);
}

static void enter_and_leave(void *section)
{
    enter(section);
    leave(section);
}

/* 3: initialization. */

static const struct {
    ULONG spin_count;
    ULONG flags;
    NTSTATUS status;
    ULONG spin_after;
} initializations[] = {
    {0, 0, STATUS_SUCCESS, DEFAULT_SPIN},
    {0, RTL_CRITICAL_SECTION_FLAG_NO_DEBUG_INFO, STATUS_SUCCESS, DEFAULT_SPIN},
    {4000, 0, STATUS_SUCCESS, 4000},
    {4000, RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN, STATUS_SUCCESS, 4000 | RTL_CRITICAL_SECTION_FLAG_DYNAMIC_SPIN},
    {0x00FFFFFF, RTL_CRITICAL_SECTION_FLAG_STATIC_INIT, STATUS_SUCCESS, 0x00FFFFFF},
    {1, RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE, STATUS_SUCCESS, 1},
    {0x01000000, 0, STATUS_INVALID_PARAMETER_2, 0},
    {0x80000000, 0, STATUS_INVALID_PARAMETER_2, 0},
    {0, 0x20000000, STATUS_INVALID_PARAMETER_3, 0},
    {0, 0x80000000, STATUS_INVALID_PARAMETER_3, 0},
    {0, 1, STATUS_SUCCESS, DEFAULT_SPIN}, /* the lower bits are no flags */
    {5, 0x00ffffff, STATUS_SUCCESS, 5},
    {0x01000000, 1, STATUS_INVALID_PARAMETER_2, 0},
};

static void test_initialize(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(initializations); i += 1) {
        RTL_CRITICAL_SECTION section, untouched;
        memset(&section, 0xaa, sizeof(section));
        memset(&untouched, 0xaa, sizeof(untouched));
        NTSTATUS status = RtlInitializeCriticalSectionEx(&section, initializations[i].spin_count, initializations[i].flags);
        assert_int_equal(status, initializations[i].status);
        if (status != STATUS_SUCCESS) {
            assert_memory_equal(&section, &untouched, sizeof(section));
            continue;
        }
        assert_free(&section);
        assert_ptr_equal(section.DebugInfo, NO_DEBUG_INFO);
        assert_null(section.LockSemaphore);
        assert_int_equal(section.SpinCount, spin_count(initializations[i].spin_after));
        assert_int_equal(RtlDeleteCriticalSection(&section), STATUS_SUCCESS);
    }
}

static void test_other_initializers(void **state)
{
    RTL_CRITICAL_SECTION section;
    (void)state;
    assert_int_equal(RtlInitializeCriticalSection(&section), STATUS_SUCCESS);
    assert_free(&section);
    assert_int_equal(section.SpinCount, spin_count(DEFAULT_SPIN));
    RtlDeleteCriticalSection(&section);
    assert_int_equal(RtlInitializeCriticalSectionAndSpinCount(&section, 0x80000400), STATUS_SUCCESS);
    assert_free(&section);
    assert_ptr_equal(section.DebugInfo, NO_DEBUG_INFO);
    assert_int_equal(section.SpinCount, spin_count(0x400));
    RtlDeleteCriticalSection(&section);
}

static void test_set_spin_count(void **state)
{
    RTL_CRITICAL_SECTION section;
    (void)state;
    RtlInitializeCriticalSection(&section);
    assert_int_equal(RtlSetCriticalSectionSpinCount(&section, 100), spin_count(DEFAULT_SPIN));
    assert_int_equal(section.SpinCount, spin_count(100));
    assert_int_equal(RtlSetCriticalSectionSpinCount(&section, 0), spin_count(100));
    assert_int_equal(section.SpinCount, 0);
    assert_int_equal(RtlSetCriticalSectionSpinCount(&section, 0x02000001), 0);
    assert_int_equal(section.SpinCount, spin_count(1));
    RtlDeleteCriticalSection(&section);
}

/* 1, 3: uncontended. */
static void test_recursion(void **state)
{
    RTL_CRITICAL_SECTION section;
    (void)state;
    RtlInitializeCriticalSection(&section);
    assert_false(RtlIsCriticalSectionLocked(&section));
    for (LONG depth = 1; depth <= 3; depth += 1) {
        if (depth == 2) {
            assert_true(RtlTryEnterCriticalSection(&section));
        } else {
            enter(&section);
        }
        assert_int_equal(lock_count(&section), HELD);
        assert_int_equal(section.RecursionCount, depth);
        assert_ptr_equal(section.OwningThread, own_id());
        assert_int_equal(RtlGetCriticalSectionRecursionCount(&section), depth);
        assert_true(RtlIsCriticalSectionLocked(&section));
        assert_true(RtlIsCriticalSectionLockedByThread(&section));
    }
    for (LONG depth = 2; depth >= 0; depth -= 1) {
        leave(&section);
        assert_int_equal(section.RecursionCount, depth);
        assert_int_equal(lock_count(&section), depth == 0 ? FREE : HELD);
    }
    assert_free(&section);
    assert_false(RtlIsCriticalSectionLockedByThread(&section));
    assert_int_equal(RtlGetCriticalSectionRecursionCount(&section), 0);
    assert_true(RtlTryEnterCriticalSection(&section));
    assert_int_equal(section.RecursionCount, 1);
    leave(&section);
    RtlDeleteCriticalSection(&section);
}

/* Other threads. */

static void try_what_is_held(void *section)
{
    check(!RtlTryEnterCriticalSection(section));
    check(RtlIsCriticalSectionLocked(section));
    check(!RtlIsCriticalSectionLockedByThread(section));
    check(RtlGetCriticalSectionRecursionCount(section) == 0);
}

static void test_try_of_another(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor other;
    (void)state;
    RtlInitializeCriticalSection(&section);
    start_actor(&other);
    enter(&section);
    run_on(&other, try_what_is_held, &section);
    assert_int_equal(lock_count(&section), HELD);
    assert_int_equal(section.RecursionCount, 1);
    leave(&section);
    end_actor(&other);
    assert_free(&section);
    RtlDeleteCriticalSection(&section);
}

/* A waiter that has stopped spinning and sleeps. */
static void begin_to_wait(actor *a, RTL_CRITICAL_SECTION *section, void (*function)(void *argument))
{
    LONG before = lock_count(section);
    tell(a, function, section);
    await(lock_count(section) == before - WAITING);
    await(is_committed(a->thread));
}

/* Requirements 1 to 4: the words with waiters. Each leave admits one waiter, and nothing is allocated. */
#define WAITERS 3

static void enter_and_leave_without_memory(void *section)
{
    if (!use_events()) {
        allocations_left = 0;
    }
    enter_and_leave(section);
    allocations_left = -1;
}

static void test_waiters(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor a[WAITERS];
    (void)state;
    allocations_refused = 0;
    RtlInitializeCriticalSection(&section);
    enter(&section);
    for (LONG i = 0; i < WAITERS; i += 1) {
        start_actor(&a[i]);
        begin_to_wait(&a[i], &section, enter_and_leave_without_memory);
        assert_int_equal(lock_count(&section), HELD - WAITING * (i + 1));
        assert_ptr_equal(section.OwningThread, own_id());
    }
    if (use_events()) {
        EVENT_BASIC_INFORMATION event;
        assert_int_equal(NtQueryEvent(section.LockSemaphore, EventBasicInformation, &event, sizeof(event), NULL),
                         STATUS_SUCCESS);
        assert_int_equal(event.EventType, SynchronizationEvent);
        assert_int_equal(event.EventState, 0);
    } else {
        assert_ptr_equal(section.LockSemaphore, (HANDLE)(LONG_PTR)-1);
    }
    leave(&section);
    for (ULONG i = 0; i < WAITERS; i += 1) {
        end_actor(&a[i]);
    }
    assert_free(&section);
    assert_int_equal(allocations_refused, 0);
    RtlDeleteCriticalSection(&section);
}

/* 3, 6: suspension keeps a woken waiter in transit for as long as the test needs. */
static void test_woken_waiter(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor a;
    (void)state;
    RtlInitializeCriticalSection(&section);
    start_actor(&a);
    enter(&section);
    begin_to_wait(&a, &section, enter);
    assert_int_equal(KeSuspendThread(a.thread), 0);
    leave(&section);
    assert_int_equal(lock_count(&section), FREE - 2); /* no thread waits any more, one was woken */
    enter(&section);
    assert_int_equal(lock_count(&section), HELD - 2);
    leave(&section);
    assert_int_equal(lock_count(&section), FREE - 2);
    assert_true(RtlTryEnterCriticalSection(&section));
    KeResumeThread(a.thread);
    await(lock_count(&section) == HELD - WAITING); /* lost the race and waits again */
    await(is_committed(a.thread));
    leave(&section);
    await(is_idle(&a));
    assert_int_equal(lock_count(&section), HELD);
    assert_ptr_equal(section.OwningThread, ULongToHandle(a.thread->ThreadId));
    run_on(&a, leave, &section);
    assert_free(&section);
    end_actor(&a);
    RtlDeleteCriticalSection(&section);
}

/* 2, 3: a new waiter does not rely on the woken waiter and answers the wake instead. With an event it cannot: the event
   is the wake and belongs to the other waiter. */
static void test_newcomer_beside_woken_waiter(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor woken, newcomer;
    (void)state;
    RtlInitializeCriticalSection(&section);
    start_actor(&woken);
    start_actor(&newcomer);
    enter(&section);
    begin_to_wait(&woken, &section, enter_and_leave);
    assert_int_equal(KeSuspendThread(woken.thread), 0);
    leave(&section);
    enter(&section);
    assert_int_equal(lock_count(&section), HELD - 2);
    tell(&newcomer, enter_and_leave, &section);
    await(lock_count(&section) == HELD - 2 * WAITING);
    await(is_committed(newcomer.thread));
    leave(&section);
    await(is_idle(&newcomer));
    assert_false(RtlIsCriticalSectionLocked(&section));
    KeResumeThread(woken.thread);
    end_actor(&woken);
    end_actor(&newcomer);
    assert_free(&section);
    RtlDeleteCriticalSection(&section);
}

/* 5: the waiter frees the memory right after it has left. */

static void enter_and_free(void *argument)
{
    RTL_CRITICAL_SECTION *section = argument;
    enter_and_leave(section);
    RtlDeleteCriticalSection(section);
    memset(section, 0xdd, sizeof(*section));
    free(section);
}

static void test_freed_by_next_owner(void **state)
{
    actor a;
    (void)state;
    start_actor(&a);
    for (ULONG i = 0; i < 20; i += 1) {
        RTL_CRITICAL_SECTION *section = malloc(sizeof(*section));
        RtlInitializeCriticalSection(section);
        enter(section);
        begin_to_wait(&a, section, enter_and_free);
        leave(section);
        await(is_idle(&a));
    }
    end_actor(&a);
}

/* 4: the event cannot be allocated. */
static void enter_and_leave_without_event(void *section)
{
    allocations_left = 0;
    enter_and_leave(section);
    allocations_left = -1;
}

static void test_no_event(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor a;
    BOOLEAN events = RtlpForceCSToUseEvents;
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    RtlpForceCSToUseEvents = TRUE;
    RtlInitializeCriticalSection(&section);
    start_actor(&a);
    enter(&section);
    begin_to_wait(&a, &section, enter_and_leave_without_event);
    assert_ptr_equal(section.LockSemaphore, (HANDLE)(LONG_PTR)-1);
    leave(&section);
    end_actor(&a);
    assert_free(&section);
    RtlDeleteCriticalSection(&section);
    RtlpForceCSToUseEvents = events;
}

static ULONG events(void)
{
    return (*ExEventObjectType)->TotalNumberOfHandles;
}

static void test_early_event(void **state)
{
    RTL_CRITICAL_SECTION section;
    ULONG before = events();
    actor a;
    (void)state;
    RtlEnableEarlyCriticalSectionEventCreation();
    NTSTATUS status = RtlInitializeCriticalSection(&section);
    RtlpEarlyEventCreation = FALSE;
    assert_int_equal(status, STATUS_SUCCESS);
    HANDLE event = section.LockSemaphore;
    assert_int_equal(NtResetEvent(event, NULL), STATUS_SUCCESS);
    assert_int_equal(events(), before + 1);
    start_actor(&a);
    enter(&section);
    begin_to_wait(&a, &section, enter_and_leave);
    assert_ptr_equal(section.LockSemaphore, event);
    leave(&section);
    end_actor(&a);
    RtlDeleteCriticalSection(&section);
    assert_int_equal(NtResetEvent(event, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(events(), before);
}

static void test_no_early_event(void **state)
{
    RTL_CRITICAL_SECTION section;
    ULONG before = events();
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    RtlEnableEarlyCriticalSectionEventCreation();
    allocations_left = 0;
    NTSTATUS status = RtlInitializeCriticalSection(&section);
    allocations_left = 1;
    NTSTATUS forced = RtlInitializeCriticalSectionEx(&section, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    allocations_left = -1;
    RtlpEarlyEventCreation = FALSE;
    assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(forced, STATUS_NO_MEMORY);
    assert_int_equal(events(), before);
}

/* Debug information. */

static BOOLEAN is_listed(RTL_CRITICAL_SECTION_DEBUG *info)
{
    for (PLIST_ENTRY entry = RtlCriticalSectionList.Flink; entry != &RtlCriticalSectionList; entry = entry->Flink) {
        if (entry == &info->ProcessLocksList) {
            return TRUE;
        }
    }
    return FALSE;
}

static void test_debug_info(void **state)
{
    static const ULONG force = RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO;
    RTL_CRITICAL_SECTION plain, resource;
    (void)state;
    assert_int_equal(RtlInitializeCriticalSectionEx(&plain, 0, force), STATUS_SUCCESS);
    assert_int_equal(RtlInitializeCriticalSectionEx(&resource, 0,
                                                    force | RTL_CRITICAL_SECTION_FLAG_RESOURCE_TYPE |
                                                        RTL_CRITICAL_SECTION_FLAG_STATIC_INIT),
                     STATUS_SUCCESS);
    assert_int_equal(plain.DebugInfo->Type, RTL_CRITSECT_TYPE);
    assert_int_equal(plain.DebugInfo->Flags, 0);
    assert_ptr_equal(plain.DebugInfo->CriticalSection, &plain);
    assert_int_equal(resource.DebugInfo->Type, RTL_RESOURCE_TYPE);
    assert_int_equal(resource.DebugInfo->Flags, RTL_CRITICAL_SECTION_DEBUG_FLAG_STATIC_INIT);
    assert_true(is_listed(plain.DebugInfo));
    assert_true(is_listed(resource.DebugInfo));
    RTL_CRITICAL_SECTION_DEBUG *gone = plain.DebugInfo;
    RtlDeleteCriticalSection(&plain);
    assert_null(plain.DebugInfo);
    assert_false(is_listed(gone));
    assert_true(is_listed(resource.DebugInfo));
    RtlDeleteCriticalSection(&resource);
    assert_true(IsListEmpty(&RtlCriticalSectionList));
}

static void test_no_memory_for_debug_info(void **state)
{
    RTL_CRITICAL_SECTION section;
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    allocations_left = 0;
    NTSTATUS status = RtlInitializeCriticalSectionEx(&section, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    allocations_left = -1;
    assert_int_equal(status, STATUS_NO_MEMORY);
    assert_true(IsListEmpty(&RtlCriticalSectionList));
}

static void test_contention_count(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor a;
    (void)state;
    RtlInitializeCriticalSectionEx(&section, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    start_actor(&a);
    for (DWORD i = 0; i < 3; i += 1) {
        assert_int_equal(section.DebugInfo->ContentionCount, i);
        assert_int_equal(section.DebugInfo->EntryCount, i);
        enter(&section);
        enter(&section);
        begin_to_wait(&a, &section, enter_and_leave);
        leave(&section);
        leave(&section);
        await(is_idle(&a));
    }
    end_actor(&a);
    RtlDeleteCriticalSection(&section);
}

/* Without debug information the upper half of SpinCount counts, and the spin count is the lower half alone. */
static void test_wait_count(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor a;
    (void)state;
    RtlInitializeCriticalSection(&section);
    start_actor(&a);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_int_equal(section.SpinCount, (ULONG_PTR)i << 32 | spin_count(i == 0 ? DEFAULT_SPIN : 10));
        enter(&section);
        begin_to_wait(&a, &section, enter_and_leave);
        assert_int_equal(RtlSetCriticalSectionSpinCount(&section, 10), spin_count(i == 0 ? DEFAULT_SPIN : 10));
        leave(&section);
        await(is_idle(&a));
    }
    end_actor(&a);
    RtlDeleteCriticalSection(&section);
    assert_int_equal(section.SpinCount, 0);
}

/* 6: a thread yields before it waits, and takes a section that was released meanwhile without waiting. */
static struct {
    VOID (*yield)(VOID);
    PKTHREAD thread; /* that yields */
    volatile ULONG yields;
    volatile BOOLEAN left;
} looker;

static VOID wait_until_left(VOID)
{
    if (KeGetCurrentThread() != looker.thread) {
        looker.yield();
        return;
    }
    __atomic_fetch_add(&looker.yields, 1, __ATOMIC_SEQ_CST);
    await(__atomic_load_n(&looker.left, __ATOMIC_SEQ_CST));
}

static void test_yield_before_wait(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor a;
    (void)state;
    RtlInitializeCriticalSectionEx(&section, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    start_actor(&a);
    looker.yield = HalDispatch.Yield;
    looker.thread = a.thread;
    enter(&section);
    HalDispatch.Yield = wait_until_left;
    tell(&a, enter_and_leave, &section);
    await(__atomic_load_n(&looker.yields, __ATOMIC_SEQ_CST) != 0);
    assert_int_equal(lock_count(&section), HELD);
    leave(&section);
    __atomic_store_n(&looker.left, TRUE, __ATOMIC_SEQ_CST);
    await(is_idle(&a));
    HalDispatch.Yield = looker.yield;
    assert_int_equal(section.DebugInfo->ContentionCount, 0);
    end_actor(&a);
    RtlDeleteCriticalSection(&section);
}

/* 6: in a crowd it sleeps without a yield, and a leave with waiters counts as contention. */
static VOID note_yield(VOID)
{
    if (KeGetCurrentThread() == looker.thread) {
        __atomic_fetch_add(&looker.yields, 1, __ATOMIC_SEQ_CST);
    }
    looker.yield();
}

static ULONG yields_before_sleep(RTL_CRITICAL_SECTION *section, actor *a)
{
    ULONG yields;
    __atomic_store_n(&looker.yields, 0, __ATOMIC_SEQ_CST);
    enter(section);
    tell(a, enter_and_leave, section);
    await(RtlpWaitersOf(lock_count(section)) == 1);
    yields = __atomic_load_n(&looker.yields, __ATOMIC_SEQ_CST);
    leave(section);
    await(is_idle(a));
    return yields;
}

static void test_crowd(void **state)
{
    RTL_CRITICAL_SECTION section;
    PKTHREAD self = KeGetCurrentThread();
    actor a;
    (void)state;
    RtlInitializeCriticalSection(&section);
    start_actor(&a);
    looker.yield = HalDispatch.Yield;
    looker.thread = a.thread;
    HalDispatch.Yield = note_yield;
    self->HostTurn = (HAL_TURN){0};
    a.thread->HostTurn = (HAL_TURN){0};
    assert_int_equal(yields_before_sleep(&section, &a), HalYieldsBeforeSleep());
    assert_int_equal(self->HostTurn.Acquires, 0);
    make_crowd();
    assert_int_equal(yields_before_sleep(&section, &a), 0);
    assert_int_equal(self->HostTurn.Acquires, 1);
    HalDisperseCrowd();
    HalDispatch.Yield = looker.yield;
    end_actor(&a);
    RtlDeleteCriticalSection(&section);
}

/* A thread that exits leaves its sections locked, and they can be found. */
static void test_orphan(void **state)
{
    RTL_CRITICAL_SECTION orphan, other;
    char expected[64];
    HANDLE thread;
    actor a;
    (void)state;
    RtlInitializeCriticalSectionEx(&orphan, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    RtlInitializeCriticalSectionEx(&other, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    start_actor(&a);
    assert_int_equal(ObOpenObjectByPointer(a.thread, 0, NULL, THREAD_ALL_ACCESS, NULL, KernelMode, &thread),
                     STATUS_SUCCESS);
    run_on(&a, enter, &orphan);
    enter(&other);
    capture_errors();
    RtlCheckForOrphanedCriticalSections(thread);
    char *text = end_capture();
    snprintf(expected, sizeof(expected), "critical section %p", (void *)&orphan);
    assert_int_equal(occurrences(text, "critical section"), 1);
    assert_int_equal(occurrences(text, expected), 1);
    free(text);
    end_actor(&a);
    assert_int_equal(lock_count(&orphan), HELD);
    assert_false(RtlTryEnterCriticalSection(&orphan));
    capture_errors();
    RtlCheckForOrphanedCriticalSections((HANDLE)(ULONG_PTR)0x7ffffff0);
    text = end_capture();
    assert_string_equal(text, "");
    free(text);
    NtClose(thread);
    leave(&other);
    RtlDeleteCriticalSection(&other);
    KiVerifierEnabled = FALSE;
    RtlDeleteCriticalSection(&orphan);
}

/* 7 */

static void enter_and_be_stopped(void *section)
{
    check(raised_by(enter, section) == STATUS_POSSIBLE_DEADLOCK);
}

static void test_possible_deadlock(void **state)
{
    RTL_CRITICAL_SECTION section;
    char place[64], owner[64];
    LONGLONG timeout = RtlpTimeout;
    actor a;
    (void)state;
    RtlInitializeCriticalSectionEx(&section, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO);
    start_actor(&a);
    enter(&section);
    RtlpTimeout = 50 * MILLISECOND;
    RtlpPossibleDeadlocks = 0;
    capture_errors();
    run_on(&a, enter_and_be_stopped, &section);
    char *text = end_capture();
    RtlpTimeout = timeout;
    assert_int_equal(RtlpPossibleDeadlocks, 2);
    snprintf(place, sizeof(place), "50 ms in RtlEnterCriticalSection for %p\n", (void *)&section);
    snprintf(owner, sizeof(owner), "owner: thread %u, count -6 ", HandleToULong(own_id()));
    assert_int_equal(occurrences(text, place), 2);
    assert_int_equal(occurrences(text, owner), 2);
    assert_int_equal(occurrences(text, "waiters 1, ContentionCount 1\n"), 2);
    free(text);
    assert_int_equal(lock_count(&section), HELD);
    begin_to_wait(&a, &section, enter_and_leave);
    leave(&section);
    end_actor(&a);
    assert_free(&section);
    RtlDeleteCriticalSection(&section);
}

/* After a report the wait continues. */
static void test_patience(void **state)
{
    RTL_CRITICAL_SECTION section;
    LONGLONG timeout = RtlpTimeout;
    actor a;
    (void)state;
    RtlInitializeCriticalSection(&section);
    start_actor(&a);
    enter(&section);
    RtlpTimeout = SECOND / 2;
    RtlpPossibleDeadlocks = 0;
    capture_errors();
    begin_to_wait(&a, &section, enter_and_leave);
    __atomic_store_n(&RtlpTimeout, 20 * SECOND, __ATOMIC_RELAXED); /* the second report */
    await(__atomic_load_n(&RtlpPossibleDeadlocks, __ATOMIC_RELAXED) == 1);
    leave(&section);
    end_actor(&a);
    char *text = end_capture();
    RtlpTimeout = timeout;
    assert_int_equal(occurrences(text, "(no debug information)"), 1);
    free(text);
    assert_free(&section);
    RtlDeleteCriticalSection(&section);
}

static void test_settings(void **state)
{
    const char *seconds = getenv("INTERLOCK_CRITICAL_SECTION_TIMEOUT");
    const char *events = getenv("INTERLOCK_FORCE_CS_EVENTS");
    (void)state;
    assert_int_equal(RtlpTimeout, (seconds != NULL ? atoll(seconds) : 2592000) * SECOND);
    assert_int_equal(RtlpForceCSToUseEvents, events != NULL && strcmp(events, "1") == 0);
}

/* 8 */

/* The section is owned. Only the child's waiter counts, and acquires it. */
static void let_one_in(RTL_CRITICAL_SECTION *section)
{
    actor a;
    start_actor(&a);
    tell(&a, enter_and_leave, section);
    await(is_committed(a.thread));
    check(lock_count(section) == HELD - WAITING);
    leave(section);
    end_actor(&a);
    check(lock_count(section) == FREE);
}

/* The parent's thread owned it once, and another thread of the parent waits for it. */
static void use_in_child(void *argument)
{
    RTL_CRITICAL_SECTION *section = argument;
    check(RtlIsCriticalSectionLockedByThread(section));
    enter(section);
    check(section->RecursionCount == 2);
    check(section->OwningThread == own_id());
    leave(section);
    let_one_in(section);
}

/* No thread is woken in place of the parent's waiter. */
static void leave_first_in_child(void *argument)
{
    RTL_CRITICAL_SECTION *section = argument;
    leave(section);
    check(lock_count(section) == FREE);
    if (use_events()) {
        EVENT_BASIC_INFORMATION event;
        check(NtQueryEvent(ULongToHandle(HandleToULong(section->LockSemaphore)), EventBasicInformation, &event,
                           sizeof(event), NULL) == STATUS_SUCCESS);
        check(event.EventState == 0);
    }
    enter(section);
    leave(section);
    enter(section);
    let_one_in(section);
    enter_and_leave(section);
}

static void fork_again(void *argument)
{
    enter_and_leave(argument);
    in_child(use_in_child, argument);
    use_in_child(argument);
}

static void test_fork(void **state)
{
    RTL_CRITICAL_SECTION section;
    actor a;
    (void)state;
#ifdef THREAD_SANITIZER
    skip(); /* ThreadSanitizer does not support threads in a forked child */
#endif
    RtlInitializeCriticalSection(&section);
    start_actor(&a);
    enter(&section);
    begin_to_wait(&a, &section, enter_and_leave);
    in_child(use_in_child, &section);
    in_child(leave_first_in_child, &section);
    leave(&section);
    await(is_idle(&a));
    assert_free(&section);
    enter(&section);
    begin_to_wait(&a, &section, enter_and_leave);
    in_child(fork_again, &section);
    leave(&section);
    end_actor(&a);
    assert_free(&section);
    RtlDeleteCriticalSection(&section);
}

/* 9 */

static void test_leaving_what_is_free(void **state)
{
    RTL_CRITICAL_SECTION section;
    BOOLEAN verifier = KiVerifierEnabled;
    (void)state;
    KiVerifierEnabled = FALSE;
    RtlInitializeCriticalSection(&section);
    assert_int_equal(RtlLeaveCriticalSection(&section), STATUS_RESOURCE_NOT_OWNED);
    assert_free(&section);
    enter(&section);
    assert_int_equal(section.RecursionCount, 1);
    leave(&section);
    assert_free(&section);
    RtlDeleteCriticalSection(&section);
    KiVerifierEnabled = verifier;
}

static void test_leaving_what_is_not_ones_own(void **state)
{
    RTL_CRITICAL_SECTION section;
    BOOLEAN verifier = KiVerifierEnabled;
    actor a;
    (void)state;
    KiVerifierEnabled = FALSE;
    RtlInitializeCriticalSection(&section);
    start_actor(&a);
    run_on(&a, enter, &section);
    leave(&section);
    assert_free(&section);
    run_on(&a, enter_and_leave, &section);
    end_actor(&a);
    RtlDeleteCriticalSection(&section);
    KiVerifierEnabled = verifier;
}

static void leave_what_is_free(void *argument)
{
    RTL_CRITICAL_SECTION section;
    (void)argument;
    KiVerifierEnabled = TRUE;
    RtlInitializeCriticalSection(&section);
    RtlLeaveCriticalSection(&section);
}

#ifndef THREAD_SANITIZER /* a forked child may not create threads under ThreadSanitizer */

static void *enter_in_another(void *section)
{
    enter(section);
    return NULL;
}

static void leave_what_is_not_ones_own(void *argument)
{
    RTL_CRITICAL_SECTION section;
    pthread_t thread;
    (void)argument;
    KiVerifierEnabled = TRUE;
    RtlInitializeCriticalSection(&section);
    check(pthread_create(&thread, NULL, enter_in_another, &section) == 0);
    pthread_join(thread, NULL);
    RtlLeaveCriticalSection(&section);
}

#endif

static void enter_what_is_not_initialized(void *argument)
{
    RTL_CRITICAL_SECTION section = {0};
    (void)argument;
    KiVerifierEnabled = TRUE;
    RtlEnterCriticalSection(&section);
}

static void try_what_was_deleted(void *argument)
{
    RTL_CRITICAL_SECTION section;
    (void)argument;
    KiVerifierEnabled = TRUE;
    RtlInitializeCriticalSection(&section);
    RtlDeleteCriticalSection(&section);
    RtlTryEnterCriticalSection(&section);
}

static void delete_what_is_held(void *argument)
{
    RTL_CRITICAL_SECTION section;
    (void)argument;
    KiVerifierEnabled = TRUE;
    RtlInitializeCriticalSection(&section);
    enter(&section);
    RtlDeleteCriticalSection(&section);
}

static void test_verifier(void **state)
{
    (void)state;
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1007, leave_what_is_free, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1002, enter_what_is_not_initialized, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1002, try_what_was_deleted, NULL);
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0x100B, delete_what_is_held, NULL);
#ifndef THREAD_SANITIZER
    expect_violation(DRIVER_VERIFIER_DETECTED_VIOLATION, 0x1004, leave_what_is_not_ones_own, NULL);
#endif
}

static void test_verifier_finds_nothing(void **state)
{
    BOOLEAN verifier = KiVerifierEnabled;
    RTL_CRITICAL_SECTION section;
    KiVerifierEnabled = TRUE;
    test_recursion(state);
    test_waiters(state);
    assert_int_equal(RtlInitializeCriticalSection(&section), STATUS_SUCCESS);
    assert_int_equal(RtlDeleteCriticalSection(&section), STATUS_SUCCESS);
    assert_int_equal(RtlDeleteCriticalSection(&section), STATUS_SUCCESS); /* nothing is left to check */
    section = (RTL_CRITICAL_SECTION){0}; /* never initialized: its LockCount means nothing */
    assert_int_equal(RtlDeleteCriticalSection(&section), STATUS_SUCCESS);
    KiVerifierEnabled = verifier;
}

int main(void)
{
    struct CMUnitTest tests[] = {
        WATCHED(test_initialize),
        WATCHED(test_other_initializers),
        WATCHED(test_set_spin_count),
        WATCHED(test_recursion),
        WATCHED(test_try_of_another),
        WATCHED(test_waiters),
        WATCHED(test_woken_waiter),
        WATCHED(test_newcomer_beside_woken_waiter),
        WATCHED(test_freed_by_next_owner),
        WATCHED(test_no_event),
        WATCHED(test_early_event),
        WATCHED(test_no_early_event),
        WATCHED(test_debug_info),
        WATCHED(test_no_memory_for_debug_info),
        WATCHED(test_contention_count),
        WATCHED(test_wait_count),
        WATCHED(test_yield_before_wait),
        WATCHED(test_crowd),
        WATCHED(test_orphan),
        WATCHED(test_possible_deadlock),
        WATCHED(test_patience),
        WATCHED(test_settings),
        WATCHED(test_fork),
        WATCHED(test_leaving_what_is_free),
        WATCHED(test_leaving_what_is_not_ones_own),
        WATCHED(test_verifier),
        WATCHED(test_verifier_finds_nothing),
    };
    if (use_events()) {
        remove_case(tests, test_newcomer_beside_woken_waiter);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
