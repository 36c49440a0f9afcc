/*
 * Numbers that grow for as long as the program runs, or that a program may push to their end, preset just below the
 * point where they wrap. Times have tests of their own: ke/timeout, ke/timer and ke/timertable; the limits of mutants and
 * semaphores are in ke/mutant and ke/semaphore.
 */
#include "waittest.h"

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#include <sys/wait.h>
#include <unistd.h>

#include "ke/fork.h"
#include "ob/obp.h"
#include "rtl/criticalsection.h"

/* The sequence of the free list of thread slots. */

static void set_slot_sequence(ULONG sequence)
{
    ULONG64 head = __atomic_load_n(&KiFreeThreadSlots, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&KiFreeThreadSlots, &head, (ULONG64)sequence << 32 | (ULONG)head, FALSE,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
}

static void *become_a_thread(void *argument)
{
    check(KeGetCurrentThread() == KiCurrentThread());
    __atomic_add_fetch((ULONG *)argument, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void come_and_go(void *argument, unsigned index)
{
    (void)index;
    for (unsigned long round = test_rounds(300); round != 0; round -= 1) {
        pthread_t thread;
        check(pthread_create(&thread, NULL, become_a_thread, argument) == 0);
        check(pthread_join(thread, NULL) == 0);
    }
}

static void test_thread_slots(void **state)
{
    ULONG came = 0;
    (void)state;
    KeGetCurrentThread();
    set_slot_sequence(MAXULONG - 20);
    run_threads(4, 60, come_and_go, &came);
    assert_int_equal(came, 4 * test_rounds(300));
    assert_true(KiFreeThreadSlots >> 32 < MAXULONG - 20);
    assert_true(KiThreadSlotsUsed < 100);
}

/* The incarnation of a handle. */

static HANDLE make_event(void)
{
    HANDLE event;
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    return event;
}

static HANDLE make_port(void)
{
    HANDLE port;
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 0), STATUS_SUCCESS);
    return port;
}

/* The same handle value again, for another object. */
static void reuse(HANDLE handle, HANDLE (*make)(void))
{
    for (ULONG tries = 0; tries < 100000; tries += 1) {
        HANDLE other = make();
        if (other == handle) {
            return;
        }
        assert_int_equal(NtClose(other), STATUS_SUCCESS);
    }
    fail_msg("the handle does not come back");
}

static void test_handles(void **state)
{
    HANDLE handle = make_port();
    POBP_HANDLE_ENTRY entry = ObpEntryOfHandle(handle);
    PVOID key, context;
    IO_STATUS_BLOCK status;
    LONG previous;
    (void)state;
    for (ULONG round = 0; round < 3; round += 1) {
        assert_int_equal(NtClose(handle), STATUS_SUCCESS);
        assert_int_equal(NtClose(handle), STATUS_INVALID_HANDLE);
        if (round == 0) {
            __atomic_or_fetch(&entry->Access, 0xffffffffull << 32, __ATOMIC_RELAXED);
        }
        reuse(handle, round == 1 ? make_event : make_port);
        assert_int_equal(entry->Access >> 32, round);
        if (round == 1) {
            assert_int_equal(NtSetEvent(handle, &previous), STATUS_SUCCESS);
            assert_int_equal(NtSetIoCompletion(handle, NULL, NULL, 0, 0), STATUS_OBJECT_TYPE_MISMATCH);
        } else {
            assert_int_equal(NtSetEvent(handle, &previous), STATUS_OBJECT_TYPE_MISMATCH);
            assert_int_equal(NtSetIoCompletion(handle, (PVOID)7, NULL, 0, 0), STATUS_SUCCESS);
            assert_int_equal(NtRemoveIoCompletion(handle, &key, &context, &status, NO_TIME), STATUS_SUCCESS);
            assert_ptr_equal(key, (PVOID)7);
        }
    }
    assert_int_equal(NtClose(handle), STATUS_SUCCESS);
}

/* Sequence and depth of an SLIST: neither runs over into the other. */

#define LAST_SEQUENCE ((1ull << 48) - 1)

static struct {
    SLIST_HEADER head;
    SLIST_ENTRY entries[8];
} slist;

static void test_slist(void **state)
{
    (void)state;
    InitializeSListHead(&slist.head);
    assert_null(InterlockedPushEntrySList(&slist.head, &slist.entries[0]));
    slist.head.HeaderX64.Sequence = LAST_SEQUENCE;
    slist.head.HeaderX64.Depth = 0xffff;
    assert_ptr_equal(InterlockedPushEntrySList(&slist.head, &slist.entries[1]), &slist.entries[0]);
    assert_int_equal(slist.head.HeaderX64.Sequence, 0);
    assert_int_equal(slist.head.HeaderX64.Depth, 0);
    assert_ptr_equal(InterlockedPopEntrySList(&slist.head), &slist.entries[1]);
    assert_int_equal(slist.head.HeaderX64.Sequence, 0);
    assert_int_equal(slist.head.HeaderX64.Depth, 0xffff);
    assert_ptr_equal(InterlockedPopEntrySList(&slist.head), &slist.entries[0]);
    assert_null(InterlockedPopEntrySList(&slist.head));
    assert_int_equal(slist.head.HeaderX64.Depth, 0xfffe);
}

static void take_and_put_back(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    for (unsigned long round = test_rounds(20000); round != 0; round -= 1) {
        PSLIST_ENTRY entry = InterlockedPopEntrySList(&slist.head);
        if (entry != NULL) {
            InterlockedPushEntrySList(&slist.head, entry);
        }
    }
}

static void test_slist_under_way(void **state)
{
    (void)state;
    InitializeSListHead(&slist.head);
    for (ULONG i = 0; i < ARRAYSIZE(slist.entries); i += 1) {
        InterlockedPushEntrySList(&slist.head, &slist.entries[i]);
    }
    slist.head.HeaderX64.Sequence = LAST_SEQUENCE - 50;
    run_threads(4, 60, take_and_put_back, NULL);
    assert_true(slist.head.HeaderX64.Sequence < LAST_SEQUENCE - 50);
    assert_int_equal(slist.head.HeaderX64.Depth, ARRAYSIZE(slist.entries));
    ULONG left = 0;
    for (PSLIST_ENTRY entry = InterlockedFlushSList(&slist.head); entry != NULL; entry = entry->Next) {
        left += 1;
    }
    assert_int_equal(left, ARRAYSIZE(slist.entries));
}

/* More holders of a rundown reference than fit in 32 bits, released in other portions than acquired. */
static void test_rundown(void **state)
{
    EX_RUNDOWN_REF reference;
    PEX_RUNDOWN_REF_CACHE_AWARE aware = ExAllocateCacheAwareRundownProtection(NonPagedPool, 0x70617277);
    (void)state;
    assert_non_null(aware);
    ExInitializeRundownProtection(&reference);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_true(ExAcquireRundownProtectionEx(&reference, MAXULONG));
        assert_true(ExAcquireRundownProtectionCacheAwareEx(aware, MAXULONG));
    }
    for (ULONG i = 0; i < 3; i += 1) {
        ExReleaseRundownProtectionEx(&reference, MAXULONG - 1);
        ExReleaseRundownProtection(&reference);
        ExReleaseRundownProtectionCacheAwareEx(aware, MAXULONG - 1);
        ExReleaseRundownProtectionCacheAware(aware);
    }
    ExWaitForRundownProtectionRelease(&reference);
    assert_false(ExAcquireRundownProtection(&reference));
    ExWaitForRundownProtectionReleaseCacheAware(aware);
    assert_false(ExAcquireRundownProtectionCacheAware(aware));
    ExFreeCacheAwareRundownProtection(aware);
}

/* How many forks came before: by that a lock knows that its waiters stayed behind. A critical section has all of the
   number, other locks the low bits of it, in their words. */

static RTL_CRITICAL_SECTION section;
static RTL_SRWLOCK srw_lock;
static EX_PUSH_LOCK push_lock;

static void enter_section(void)
{
    check(RtlEnterCriticalSection(&section) == STATUS_SUCCESS);
}

static void leave_section(void)
{
    check(RtlLeaveCriticalSection(&section) == STATUS_SUCCESS);
}

static BOOLEAN section_is_free(void)
{
    check((LONG_PTR)section.LockSemaphore < 0 ? !RtlpForceCSToUseEvents : RtlpForceCSToUseEvents);
    return section.LockCount == -1;
}

static void acquire_srw(void)
{
    RtlAcquireSRWLockExclusive(&srw_lock);
}

static void release_srw(void)
{
    RtlReleaseSRWLockExclusive(&srw_lock);
}

static BOOLEAN srw_is_free(void)
{
    return srw_lock.Ptr == NULL;
}

static void acquire_push(void)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&push_lock);
}

static void release_push(void)
{
    ExReleasePushLockExclusive(&push_lock);
    KeLeaveCriticalRegion();
}

static BOOLEAN push_is_free(void)
{
    return push_lock == 0;
}

typedef struct fork_lock {
    void (*acquire)(void);
    void (*release)(void);
    BOOLEAN (*is_free)(void);
} fork_lock;

static const fork_lock section_lock = {enter_section, leave_section, section_is_free};
static const fork_lock word_locks[] = {{acquire_srw, release_srw, srw_is_free}, {acquire_push, release_push, push_is_free}};
static PKTHREAD lock_waiter;

static void use_lock(void *argument, unsigned index)
{
    const fork_lock *lock = argument;
    (void)index;
    __atomic_store_n(&lock_waiter, KeGetCurrentThread(), __ATOMIC_RELEASE);
    lock->acquire();
    lock->release();
}

static void fork_with_a_waiter(const fork_lock *lock, ULONG forks);

/* A thread waits for the lock, and forks happen while it does. */
static void let_a_thread_wait(const fork_lock *lock, ULONG forks)
{
    lock_waiter = NULL;
    lock->acquire();
    test_threads *waiting = start_threads(1, use_lock, (void *)(ULONG_PTR)lock);
    await(__atomic_load_n(&lock_waiter, __ATOMIC_ACQUIRE) != NULL && is_committed(lock_waiter));
    if (forks != 0) {
        fork_with_a_waiter(lock, forks);
    }
    lock->release();
    join_threads(waiting, 60);
    check(lock->is_free());
}

static void fork_with_a_waiter(const fork_lock *lock, ULONG forks)
{
    int status;
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        alarm(60);
        lock->release();
        let_a_thread_wait(lock, 0);
        if (forks > 1) {
            let_a_thread_wait(lock, forks - 1);
        }
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void set_fork_depth(ULONG depth)
{
    KiForkDepth = depth;
    KiForkTag = (ULONG_PTR)depth << KI_FORK_TAG_SHIFT;
}

static void test_fork_depth(void **state)
{
    static const ULONG depths[] = {0, MAXLONG - 1, MAXLONG};
    (void)state;
#ifdef THREAD_SANITIZER /* which takes a new thread of a child for the parent's thread that had the same stack */
    skip();
#endif
    for (ULONG events = 0; events < 2; events += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(depths); i += 1) {
            set_fork_depth(depths[i]);
            RtlpForceCSToUseEvents = events != 0;
            assert_int_equal(RtlInitializeCriticalSection(&section), STATUS_SUCCESS);
            let_a_thread_wait(&section_lock, 2);
            assert_int_equal(RtlDeleteCriticalSection(&section), STATUS_SUCCESS);
        }
    }
    set_fork_depth(0);
    RtlpForceCSToUseEvents = FALSE;
}

#define LAST_TAG (KI_FORK_TAG_MASK >> KI_FORK_TAG_SHIFT)

static void test_fork_tag(void **state)
{
    static const ULONG depths[] = {LAST_TAG / 2, LAST_TAG - 1, LAST_TAG, MAXLONG - 1, MAXLONG};
    (void)state;
#ifdef THREAD_SANITIZER
    skip();
#endif
    for (ULONG kind = 0; kind < ARRAYSIZE(word_locks); kind += 1) {
        for (ULONG i = 0; i < ARRAYSIZE(depths); i += 1) {
            set_fork_depth(depths[i]);
            let_a_thread_wait(&word_locks[kind], 2);
        }
    }
    set_fork_depth(0);
}

/* The number that the thread which runs down others waits on. */

static NTSTATUS sleep_for_ever(PVOID context)
{
    (void)context;
    for (;;) {
        NtDelayExecution(FALSE, &(LARGE_INTEGER){.QuadPart = -600000000});
    }
    return STATUS_SUCCESS;
}

static void test_dead_threads(void **state)
{
    (void)state;
    __atomic_store_n(&KiReaperWakes, MAXULONG - 1, __ATOMIC_RELAXED);
    for (ULONG i = 0; i < 5; i += 1) {
        HANDLE thread;
        assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), sleep_for_ever, NULL, 0,
                                          0, 0, 0, NULL),
                         STATUS_SUCCESS);
        assert_int_equal(NtTerminateThread(thread, 5), STATUS_SUCCESS);
        assert_int_equal(NtWaitForSingleObject(thread, FALSE, NULL), STATUS_WAIT_0);
        assert_int_equal(NtClose(thread), STATUS_SUCCESS);
    }
    assert_true(__atomic_load_n(&KiReaperWakes, __ATOMIC_RELAXED) < 100);
}

/* Regions are counted in 16 bits, as on NT: this many may be entered, and leaving one more is a bugcheck. */

#define MOST_REGIONS 32768

static void enter_one_region_too_many(void *argument)
{
    (void)argument;
    for (ULONG i = 0; i < MOST_REGIONS + 1; i += 1) {
        KeEnterCriticalRegion();
    }
    KeLeaveCriticalRegion();
}

static void test_regions(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    (void)state;
    for (ULONG i = 0; i < MOST_REGIONS; i += 1) {
        KeEnterCriticalRegion();
        KeEnterGuardedRegion();
        assert_true(KeAreApcsDisabled() && KeAreAllApcsDisabled());
    }
    for (ULONG i = 0; i < MOST_REGIONS; i += 1) {
        assert_true(KeAreApcsDisabled() && KeAreAllApcsDisabled());
        KeLeaveGuardedRegion();
        KeLeaveCriticalRegion();
    }
    assert_false(KeAreApcsDisabled() || KeAreAllApcsDisabled());
    assert_int_equal(self->KernelApcDisable, 0);
    assert_int_equal(self->SpecialApcDisable, 0);
    expect_bugcheck(APC_INDEX_MISMATCH, enter_one_region_too_many, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_slots), cmocka_unit_test(test_handles),         cmocka_unit_test(test_slist),
        cmocka_unit_test(test_rundown),      cmocka_unit_test(test_slist_under_way), cmocka_unit_test(test_fork_depth),
        cmocka_unit_test(test_fork_tag),     cmocka_unit_test(test_dead_threads),    cmocka_unit_test(test_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
