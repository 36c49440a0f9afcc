/* Rundown protection: no thread is inside when the wait returns, none enters afterwards; several users, several
   waiters, reuse, a slot for each processor, histories. */
#include <interlock/lab.h>

#include <ntifs.h>

static EX_RUNDOWN_REF rundown;
static int *object;
static int users;

static void setup(void)
{
    rundown.Count = 6; /* arbitrary contents */
    ExInitializeRundownProtection(&rundown);
    object = LabAllocate(sizeof(*object));
}

static void use(void)
{
    LabAssert(__atomic_load_n(object, __ATOMIC_RELAXED) == 0);
    __atomic_fetch_add(&users, 1, __ATOMIC_RELAXED);
}

static void user_in_line(void)
{
    if (ExAcquireRundownProtection(&rundown)) {
        LabAssert(*object == 0);
        ExReleaseRundownProtection(&rundown);
    }
}

static void user_of_three(void)
{
    if (ExAcquireRundownProtectionEx(&rundown, 3)) {
        use();
        ExReleaseRundownProtectionEx(&rundown, 1);
        use();
        ExReleaseRundownProtectionEx(&rundown, 2);
    }
}

static void user(void)
{
    if (ExfAcquireRundownProtection(&rundown)) {
        use();
        ExfReleaseRundownProtection(&rundown);
    }
}

static void destroyer(void)
{
    ExWaitForRundownProtectionRelease(&rundown);
    LabAssert(!ExAcquireRundownProtection(&rundown));
    LabFree(object);
}

/* All waiters return, and not before the last user has left. */
static int returned;

static void one_of_two_destroyers(void)
{
    ExfWaitForRundownProtectionRelease(&rundown);
    LabAssert(!ExAcquireRundownProtection(&rundown));
    if (__atomic_add_fetch(&returned, 1, __ATOMIC_ACQ_REL) == 2)
        LabFree(object);
}

static void is_run_down(void)
{
    LabAssert(rundown.Count == EX_RUNDOWN_ACTIVE);
}
LAB_SCENARIO(rundown_one_user, .Setup = setup, .Threads = {user_in_line, destroyer}, .Finish = is_run_down);
LAB_SCENARIO(rundown_one_user_c11, .Setup = setup, .Threads = {user_in_line, destroyer}, .Finish = is_run_down,
             .Model = "c11");
LAB_SCENARIO(rundown_counted_user, .Setup = setup, .Threads = {user_of_three, destroyer}, .Finish = is_run_down);
LAB_SCENARIO(rundown_users_that_meet, .Setup = setup, .Threads = {user, user_of_three, destroyer},
             .Finish = is_run_down);
LAB_SCENARIO(rundown_two_destroyers, .Setup = setup, .Threads = {user, one_of_two_destroyers, one_of_two_destroyers},
             .Finish = is_run_down);

/* What a user did is visible to its waiter, without other ordering. */
static int left_behind;

static void held(void)
{
    setup();
    LabAssert(ExAcquireRundownProtectionEx(&rundown, 2));
}

static void leave(void)
{
    left_behind = 1;
    ExReleaseRundownProtection(&rundown);
}

static void leave_without_a_word(void)
{
    ExReleaseRundownProtection(&rundown);
}

static void heir(void)
{
    ExWaitForRundownProtectionRelease(&rundown);
    LabAssert(left_behind == 1);
}
LAB_SCENARIO(rundown_heir, .Setup = held, .Threads = {leave, leave_without_a_word, heir}, .Finish = is_run_down);
LAB_SCENARIO(rundown_two_heirs, .Setup = held, .Threads = {leave, leave_without_a_word, heir, heir},
             .Finish = is_run_down, .Flags = LAB_LARGE);

/*
 * Several waiters: each may free the protection as soon as its own wait has returned, so no other waiter and no holder
 * touches it from then on. The holder leaves when all waiters but the late one are in, which the word of the first slot
 * shows.
 */
typedef struct protection {
    PEX_RUNDOWN_REF plain;
    PEX_RUNDOWN_REF_CACHE_AWARE aware; /* or this */
    PVOID memory;
    PEX_RUNDOWN_REF first; /* slot */
    int returned;
} protection;
static protection shared;

static void hold_plain(void)
{
    shared.memory = shared.plain = shared.first = LabAllocate(sizeof(*shared.plain));
    ExInitializeRundownProtection(shared.plain);
    LabAssert(ExAcquireRundownProtection(shared.plain));
}

static void hold_aware(void)
{
    SIZE_T size = ExSizeOfRundownProtectionCacheAware();
    shared.memory = shared.aware = LabAllocate(size);
    ExInitializeRundownProtectionCacheAware(shared.aware, size);
    shared.first = *(PEX_RUNDOWN_REF *)(PVOID)shared.aware;
    LabAssert(ExAcquireRundownProtectionCacheAware(shared.aware));
}

static void run_down_shared(void)
{
    if (shared.aware != NULL)
        ExWaitForRundownProtectionReleaseCacheAware(shared.aware);
    else
        ExWaitForRundownProtectionRelease(shared.plain);
}

static void leave_shared(void)
{
    if (shared.aware != NULL)
        ExReleaseRundownProtectionCacheAware(shared.aware);
    else
        ExReleaseRundownProtection(shared.plain);
}

static void first_to_return_frees(void *unused)
{
    (void)unused;
    run_down_shared();
    if (__atomic_fetch_add(&shared.returned, 1, __ATOMIC_ACQ_REL) == 0)
        LabFree(shared.memory);
}

static void frees_nothing(void *unused)
{
    (void)unused;
    run_down_shared();
}

/* Returns when the new waiter is in. */
static void spawn_waiter(void (*waiter)(void *))
{
    ULONG_PTR word, before = __atomic_load_n(&shared.first->Count, __ATOMIC_RELAXED);
    LabSpawn(waiter, NULL);
    do {
        word = __atomic_load_n(&shared.first->Count, __ATOMIC_RELAXED);
    } while (word == before);
}

static void leave_two_waiters(void)
{
    spawn_waiter(first_to_return_frees);
    spawn_waiter(first_to_return_frees);
    leave_shared();
}

static void leave_three_waiters(void)
{
    spawn_waiter(first_to_return_frees);
    leave_two_waiters();
}

static void leave_waiter_before_late_one(void)
{
    spawn_waiter(frees_nothing);
    LabSpawn(first_to_return_frees, NULL);
    leave_shared();
}
LAB_SCENARIO(rundown_first_frees, .Setup = hold_plain, .Threads = {leave_two_waiters}, .Flags = LAB_LARGE);
LAB_SCENARIO(rundown_first_of_three_frees, .Setup = hold_plain, .Threads = {leave_three_waiters}, .Flags = LAB_LARGE);
LAB_SCENARIO(rundown_late_one_frees, .Setup = hold_plain, .Threads = {leave_waiter_before_late_one},
             .Flags = LAB_LARGE);
LAB_SCENARIO(rundown_cache_aware_first_frees, .Setup = hold_aware, .Threads = {leave_two_waiters}, .Flags = LAB_LARGE);
LAB_SCENARIO(rundown_cache_aware_first_of_three_frees, .Setup = hold_aware, .Threads = {leave_three_waiters},
             .Flags = LAB_LARGE);
LAB_SCENARIO(rundown_cache_aware_late_one_frees, .Setup = hold_aware, .Threads = {leave_waiter_before_late_one},
             .Flags = LAB_LARGE);

/* Run down and reused. */
static int used;

static void renewer(void)
{
    ExWaitForRundownProtectionRelease(&rundown);
    *object = 1;
    ExReInitializeRundownProtection(&rundown);
}

static void user_of_either(void)
{
    if (ExAcquireRundownProtection(&rundown)) {
        used = 1 + *object;
        ExReleaseRundownProtection(&rundown);
    }
}

static void is_open(void)
{
    LabAssert(rundown.Count == 0 && used <= 2);
}
LAB_SCENARIO(rundown_renewed, .Setup = setup, .Threads = {user_of_either, renewer}, .Finish = is_open);
LAB_SCENARIO(rundown_renewed_c11, .Setup = setup, .Threads = {user_of_either, renewer}, .Finish = is_open,
             .Model = "c11", .StaleReads = 2);

static void complete(void)
{
    ExRundownCompleted(&rundown);
    LabAssert(!ExAcquireRundownProtection(&rundown));
    ExWaitForRundownProtectionRelease(&rundown);
    ExReInitializeRundownProtection(&rundown);
    LabAssert(ExfAcquireRundownProtection(&rundown));
    ExfReleaseRundownProtection(&rundown);
    LabAssert(rundown.Count == 0);
}
LAB_SCENARIO(rundown_completed, .Setup = setup, .Threads = {complete});

static void release_unheld(void)
{
    ExReleaseRundownProtection(&rundown);
}
LAB_SCENARIO(rundown_release_unheld, .Setup = setup, .Threads = {release_unheld}, .Expect = "bugcheck");

/* Histories. A thread that holds it already is refused like any other. */
enum { ACQUIRE, RELEASE, BEGIN_RUNDOWN, COMPLETE_RUNDOWN };

static BOOLEAN record_acquire(void)
{
    unsigned operation = LabBegin(ACQUIRE, 0);
    BOOLEAN got = ExAcquireRundownProtection(&rundown);
    LabEnd(operation, got);
    return got;
}

static void record_release(void)
{
    unsigned operation = LabBegin(RELEASE, 0);
    ExReleaseRundownProtection(&rundown);
    LabEnd(operation, 0);
}

static void recorded_nested_user(void)
{
    if (record_acquire()) {
        if (record_acquire())
            record_release();
        record_release();
    }
}

static void recorded_waiter(void)
{
    unsigned begin = LabBegin(BEGIN_RUNDOWN, 0);
    unsigned complete = LabBegin(COMPLETE_RUNDOWN, 0);
    ExWaitForRundownProtectionRelease(&rundown);
    LabEnd(begin, 0);
    LabEnd(complete, 0);
}

static void is_a_rundown(void)
{
    LabCheckLinearizable(&LabModelRundown);
}
LAB_SCENARIO(rundown_history, .Setup = setup, .Threads = {recorded_nested_user, recorded_waiter},
             .Finish = is_a_rundown);

/*
 * With a slot for each processor: users enter through one and may leave through another. An acquire that overlaps the
 * beginning of a wait may succeed after another one has failed, so the model has no such history; still, no thread is
 * inside when the wait returns. The memory is the caller's and had other contents before.
 */
static ULONG64 memory[64];
static PEX_RUNDOWN_REF_CACHE_AWARE aware;

static void setup_aware(void)
{
    LabAssert(ExSizeOfRundownProtectionCacheAware() <= sizeof(memory));
    for (int i = 0; i < 64; i++)
        memory[i] = 6;
    aware = (PEX_RUNDOWN_REF_CACHE_AWARE)memory;
    ExInitializeRundownProtectionCacheAware(aware, sizeof(memory));
    object = LabAllocate(sizeof(*object));
}

static void aware_user(void)
{
    if (ExAcquireRundownProtectionCacheAware(aware)) {
        LabAssert(*object == 0);
        ExReleaseRundownProtectionCacheAware(aware);
    }
}

static void aware_user_of_two(void)
{
    if (ExAcquireRundownProtectionCacheAwareEx(aware, 2)) {
        use();
        ExReleaseRundownProtectionCacheAwareEx(aware, 1);
        use();
        ExReleaseRundownProtectionCacheAware(aware);
    }
}

static void aware_destroyer(void)
{
    ExWaitForRundownProtectionReleaseCacheAware(aware);
    LabFree(object);
    LabAssert(!ExAcquireRundownProtectionCacheAware(aware));
}

static void aware_destroyer_of_two(void)
{
    ExWaitForRundownProtectionReleaseCacheAware(aware);
    if (__atomic_add_fetch(&returned, 1, __ATOMIC_ACQ_REL) == 2)
        LabFree(object);
}
LAB_SCENARIO(rundown_cache_aware, .Setup = setup_aware, .Threads = {aware_destroyer, aware_user});
LAB_SCENARIO(rundown_cache_aware_c11, .Setup = setup_aware, .Threads = {aware_destroyer, aware_user}, .Model = "c11",
             .StaleReads = 2);
LAB_SCENARIO(rundown_cache_aware_users, .Setup = setup_aware,
             .Threads = {aware_user, aware_user_of_two, aware_destroyer_of_two, aware_destroyer_of_two},
             .Flags = LAB_LARGE);

/* A thread that entered through one slot leaves through the other, which then counts below zero. */
static KEVENT handed;
static int got;

static void setup_handover(void)
{
    setup_aware();
    KeInitializeEvent(&handed, NotificationEvent, FALSE);
}

static void giver(void)
{
    got = ExAcquireRundownProtectionCacheAware(aware);
    KeSetEvent(&handed, IO_NO_INCREMENT, FALSE);
}

static void taker(void)
{
    KeWaitForSingleObject(&handed, Executive, KernelMode, FALSE, NULL);
    if (got) {
        LabAssert(*object == 0);
        ExReleaseRundownProtectionCacheAware(aware);
    }
}
LAB_SCENARIO(rundown_cache_aware_handed_on, .Setup = setup_handover, .Threads = {giver, taker, aware_destroyer},
             .Flags = LAB_LARGE);

static void aware_second_life(void)
{
    ExWaitForRundownProtectionReleaseCacheAware(aware);
    LabAssert(!ExAcquireRundownProtectionCacheAware(aware));
    ExReInitializeRundownProtectionCacheAware(aware);
    LabAssert(ExAcquireRundownProtectionCacheAware(aware));
    ExReleaseRundownProtectionCacheAware(aware);
    ExRundownCompletedCacheAware(aware);
    LabAssert(!ExAcquireRundownProtectionCacheAware(aware));
}
LAB_SCENARIO(rundown_cache_aware_second_life, .Setup = setup_aware, .Threads = {aware_second_life});

/* A release without an acquire is found by the waiter, or, if it comes too late, by the value that the wait has left
   there. */
static void aware_release_unheld(void)
{
    ExReleaseRundownProtectionCacheAware(aware);
    ExWaitForRundownProtectionReleaseCacheAware(aware);
}
LAB_SCENARIO(rundown_cache_aware_release_unheld, .Setup = setup_aware, .Threads = {aware_release_unheld},
             .Expect = "bugcheck");

static void aware_waiter(void)
{
    ExWaitForRundownProtectionReleaseCacheAware(aware);
    KeSetEvent(&handed, IO_NO_INCREMENT, FALSE);
}

/* Through the other slot. */
static void aware_late_releaser(void)
{
    KeWaitForSingleObject(&handed, Executive, KernelMode, FALSE, NULL);
    ExReleaseRundownProtectionCacheAware(aware);
}
LAB_SCENARIO(rundown_cache_aware_release_late, .Setup = setup_handover, .Threads = {aware_waiter, aware_late_releaser},
             .Expect = "bugcheck");

/* No memory: none. */
static void aware_allocator(void)
{
    PEX_RUNDOWN_REF_CACHE_AWARE mine = ExAllocateCacheAwareRundownProtection(NonPagedPool, 0x62614c20);
    if (mine != NULL) {
        LabAssert(ExAcquireRundownProtectionCacheAware(mine));
        ExFreeCacheAwareRundownProtection(mine);
    }
}
LAB_SCENARIO(rundown_cache_aware_no_memory, .Threads = {aware_allocator}, .AllocationFailures = 1,
             .Flags = LAB_CHECK_LEAKS);
