/* User-mode resources, by the numbers in src/rtl/resource.c. */
#include "locktest.h"

#include "../support/heap.h"
#include "ob/obp.h"
#include "rtl/criticalsection.h"

static LONG active(RTL_RESOURCE *resource)
{
    return __atomic_load_n(&resource->NumberOfActive, __ATOMIC_ACQUIRE);
}

static HANDLE own_id(void)
{
    return ULongToHandle(KeGetCurrentThread()->ThreadId);
}

static void assert_state(RTL_RESOURCE *resource, LONG number_of_active, ULONG waiting_shared, ULONG waiting_exclusive)
{
    assert_int_equal(active(resource), number_of_active);
    assert_int_equal(resource->NumberOfWaitingShared, waiting_shared);
    assert_int_equal(resource->NumberOfWaitingExclusive, waiting_exclusive);
    assert_int_equal(resource->ExclusiveOwnerThread != NULL, number_of_active < 0);
}

static void share(void *resource)
{
    check(RtlAcquireResourceShared(resource, TRUE));
}

static void own(void *resource)
{
    check(RtlAcquireResourceExclusive(resource, TRUE));
}

static void release(void *resource)
{
    RtlReleaseResource(resource);
}

static void fail_to_share(void *resource)
{
    check(!RtlAcquireResourceShared(resource, FALSE));
}

static void fail_to_own(void *resource)
{
    check(!RtlAcquireResourceExclusive(resource, FALSE));
}

static void convert_to_exclusive(void *resource)
{
    RtlConvertSharedToExclusive(resource);
}

static void convert_to_shared(void *resource)
{
    RtlConvertExclusiveToShared(resource);
}

static void begin_to_wait(actor *a, void (*function)(void *argument), RTL_RESOURCE *resource)
{
    tell(a, function, resource);
    await(is_committed(a->thread));
    assert_false(is_idle(a));
}

static void test_initialize(void **state)
{
    RTL_RESOURCE resource;
    SEMAPHORE_BASIC_INFORMATION semaphore;
    (void)state;
    memset(&resource, 0xaa, sizeof(resource));
    RtlInitializeResource(&resource);
    assert_state(&resource, 0, 0, 0);
    assert_int_equal(resource.Flags, 0);
    assert_ptr_equal(resource.DebugInfo, resource.CriticalSection.DebugInfo);
    assert_int_equal(resource.DebugInfo->Type, RTL_RESOURCE_TYPE);
    assert_ptr_equal(resource.DebugInfo->CriticalSection, &resource.CriticalSection);
    assert_int_equal(resource.DebugInfo->ContentionCount, 0);
    assert_ptr_equal(RtlCriticalSectionList.Blink, &resource.DebugInfo->ProcessLocksList);
    assert_int_equal(resource.CriticalSection.LockCount, -1);
    HANDLE handles[] = {resource.SharedSemaphore, resource.ExclusiveSemaphore};
    for (ULONG i = 0; i < ARRAYSIZE(handles); i += 1) {
        assert_int_equal(
            NtQuerySemaphore(handles[i], SemaphoreBasicInformation, &semaphore, sizeof(semaphore), NULL),
            STATUS_SUCCESS);
        assert_int_equal(semaphore.CurrentCount, 0);
    }
    RtlDeleteResource(&resource);
    assert_true(IsListEmpty(&RtlCriticalSectionList));
    for (ULONG i = 0; i < ARRAYSIZE(handles); i += 1) {
        assert_int_equal(NtReleaseSemaphore(handles[i], 1, NULL), STATUS_INVALID_HANDLE);
    }
}

/* 1, 3, 4: uncontended. */
static void test_alone(void **state)
{
    RTL_RESOURCE resource;
    (void)state;
    RtlInitializeResource(&resource);
    for (LONG i = 1; i <= 3; i += 1) {
        assert_true(RtlAcquireResourceShared(&resource, i != 2));
        assert_state(&resource, i, 0, 0);
    }
    fail_to_own(&resource);
    assert_state(&resource, 3, 0, 0);
    for (LONG i = 2; i >= 0; i -= 1) {
        RtlReleaseResource(&resource);
        assert_state(&resource, i, 0, 0);
    }
    assert_true(RtlAcquireResourceExclusive(&resource, FALSE));
    assert_state(&resource, -1, 0, 0);
    assert_ptr_equal(resource.ExclusiveOwnerThread, own_id());
    assert_true(RtlAcquireResourceExclusive(&resource, TRUE));
    assert_true(RtlAcquireResourceShared(&resource, TRUE));
    assert_true(RtlAcquireResourceShared(&resource, FALSE));
    assert_state(&resource, -4, 0, 0);
    for (LONG i = -3; i <= 0; i += 1) {
        RtlReleaseResource(&resource);
        assert_state(&resource, i, 0, 0);
    }
    RtlDeleteResource(&resource);
}

/* 4 */
static void test_another(void **state)
{
    RTL_RESOURCE resource;
    actor a;
    (void)state;
    RtlInitializeResource(&resource);
    start_actor(&a);
    own(&resource);
    run_on(&a, fail_to_share, &resource);
    run_on(&a, fail_to_own, &resource);
    assert_state(&resource, -1, 0, 0);
    release(&resource);
    share(&resource);
    run_on(&a, fail_to_own, &resource);
    run_on(&a, share, &resource);
    assert_state(&resource, 2, 0, 0);
    run_on(&a, release, &resource);
    release(&resource);
    end_actor(&a);
    RtlDeleteResource(&resource);
}

/* 2 */
static void test_share_beside_exclusive_waiter(void **state)
{
    RTL_RESOURCE resource;
    actor writer, reader;
    (void)state;
    RtlInitializeResource(&resource);
    start_actor(&writer);
    start_actor(&reader);
    share(&resource);
    begin_to_wait(&writer, own, &resource);
    assert_state(&resource, 1, 0, 1);
    run_on(&reader, share, &resource);
    assert_true(RtlAcquireResourceShared(&resource, FALSE));
    assert_state(&resource, 3, 0, 1);
    release(&resource);
    release(&resource);
    assert_false(is_idle(&writer));
    run_on(&reader, release, &resource);
    await(is_idle(&writer));
    assert_state(&resource, -1, 0, 0);
    assert_ptr_equal(resource.ExclusiveOwnerThread, ULongToHandle(writer.thread->ThreadId));
    run_on(&writer, release, &resource);
    assert_state(&resource, 0, 0, 0);
    end_actor(&writer);
    end_actor(&reader);
    RtlDeleteResource(&resource);
}

/* 5, 8 */

static void share_without_memory(void *resource)
{
    allocations_left = 0;
    share(resource);
    allocations_left = -1;
}

static void own_without_memory(void *resource)
{
    allocations_left = 0;
    own(resource);
    allocations_left = -1;
}

static void test_handing_over(void **state)
{
    RTL_RESOURCE resource;
    actor writer[2], reader[3];
    (void)state;
    allocations_refused = 0;
    RtlInitializeResource(&resource);
    own(&resource);
    for (ULONG i = 0; i < ARRAYSIZE(reader); i += 1) {
        start_actor(&reader[i]);
        begin_to_wait(&reader[i], share_without_memory, &resource);
    }
    for (ULONG i = 0; i < ARRAYSIZE(writer); i += 1) {
        start_actor(&writer[i]);
        begin_to_wait(&writer[i], own_without_memory, &resource);
    }
    assert_state(&resource, -1, 3, 2);
    assert_true(resource.DebugInfo->ContentionCount >= 5); /* and possibly some for its section */
    release(&resource);
    await(is_idle(&writer[0]));
    assert_state(&resource, -1, 3, 1);
    run_on(&writer[0], release, &resource);
    await(is_idle(&writer[1]));
    assert_state(&resource, -1, 3, 0);
    run_on(&writer[1], release, &resource);
    for (ULONG i = 0; i < ARRAYSIZE(reader); i += 1) {
        await(is_idle(&reader[i]));
    }
    assert_state(&resource, 3, 0, 0);
    for (ULONG i = 0; i < ARRAYSIZE(reader); i += 1) {
        run_on(&reader[i], release, &resource);
        end_actor(&reader[i]);
    }
    assert_state(&resource, 0, 0, 0);
    assert_int_equal(allocations_refused, 0);
    for (ULONG i = 0; i < ARRAYSIZE(writer); i += 1) {
        end_actor(&writer[i]);
    }
    RtlDeleteResource(&resource);
}

/* 6 */

static void test_only_sharer_converts(void **state)
{
    RTL_RESOURCE resource;
    (void)state;
    RtlInitializeResource(&resource);
    share(&resource);
    convert_to_exclusive(&resource);
    assert_state(&resource, -1, 0, 0);
    assert_ptr_equal(resource.ExclusiveOwnerThread, own_id());
    own(&resource);
    convert_to_shared(&resource);
    assert_state(&resource, 2, 0, 0);
    release(&resource);
    release(&resource);
    assert_state(&resource, 0, 0, 0);
    RtlDeleteResource(&resource);
}

static void test_converting_among_others(void **state)
{
    RTL_RESOURCE resource;
    actor a, b;
    (void)state;
    RtlInitializeResource(&resource);
    start_actor(&a);
    start_actor(&b);
    share(&resource);
    run_on(&a, share, &resource);
    begin_to_wait(&a, convert_to_exclusive, &resource);
    assert_state(&resource, 1, 0, 1);
    release(&resource);
    await(is_idle(&a));
    assert_state(&resource, -1, 0, 0);
    assert_ptr_equal(resource.ExclusiveOwnerThread, ULongToHandle(a.thread->ThreadId));
    begin_to_wait(&b, share, &resource);
    assert_state(&resource, -1, 1, 0);
    run_on(&a, convert_to_shared, &resource);
    await(is_idle(&b));
    assert_state(&resource, 2, 0, 0);
    run_on(&a, release, &resource);
    run_on(&b, release, &resource);
    assert_state(&resource, 0, 0, 0);
    end_actor(&a);
    end_actor(&b);
    RtlDeleteResource(&resource);
}

/* 7 */
static void test_not_owned(void **state)
{
    RTL_RESOURCE resource;
    actor a;
    (void)state;
    RtlInitializeResource(&resource);
    assert_int_equal(raised_by(release, &resource), STATUS_RESOURCE_NOT_OWNED);
    assert_int_equal(raised_by(convert_to_exclusive, &resource), STATUS_RESOURCE_NOT_OWNED);
    assert_int_equal(raised_by(convert_to_shared, &resource), STATUS_RESOURCE_NOT_OWNED);
    share(&resource);
    assert_int_equal(raised_by(convert_to_shared, &resource), STATUS_RESOURCE_NOT_OWNED);
    release(&resource);
    start_actor(&a);
    run_on(&a, own, &resource);
    assert_int_equal(raised_by(release, &resource), STATUS_RESOURCE_NOT_OWNED);
    assert_int_equal(raised_by(convert_to_exclusive, &resource), STATUS_RESOURCE_NOT_OWNED);
    assert_int_equal(raised_by(convert_to_shared, &resource), STATUS_RESOURCE_NOT_OWNED);
    assert_state(&resource, -1, 0, 0);
    run_on(&a, release, &resource);
    end_actor(&a);
    assert_state(&resource, 0, 0, 0);
    assert_int_equal(resource.CriticalSection.LockCount, -1);
    RtlDeleteResource(&resource);
}

/* 8: each allocation in turn is refused. */
static void initialize(void *resource)
{
    RtlInitializeResource(resource);
}

static ULONG semaphores(void)
{
    return (*ExSemaphoreObjectType)->TotalNumberOfHandles;
}

static void test_no_memory(void **state)
{
    RTL_RESOURCE resource;
    ULONG before = semaphores();
    ULONG failures = 0;
    (void)state;
#ifdef HEAP_IS_WATCHED_ONLY
    skip();
#endif
    for (refuse_one_only = FALSE; refuse_one_only <= TRUE; refuse_one_only += 1) {
        for (int refused = 0;; refused += 1) {
            allocations_refused = 0;
            allocations_left = refused;
            NTSTATUS status = raised_by(initialize, &resource);
            allocations_left = -1;
            if (allocations_refused == 0) {
                assert_int_equal(status, STATUS_SUCCESS);
                break;
            }
            assert_true(status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES);
            assert_int_equal(semaphores(), before);
            failures += 1;
        }
        if (!refuse_one_only) {
            RtlDeleteResource(&resource);
        }
    }
    refuse_one_only = FALSE;
    assert_true(failures >= 6);
    assert_ptr_equal(RtlCriticalSectionList.Flink, &resource.DebugInfo->ProcessLocksList);
    RtlDeleteResource(&resource);
    assert_int_equal(semaphores(), before);
}

/* 9 */
static void test_long_wait(void **state)
{
    RTL_RESOURCE resource;
    LONGLONG timeout = RtlpTimeout;
    char place[80];
    actor a;
    (void)state;
    RtlInitializeResource(&resource);
    start_actor(&a);
    own(&resource);
    RtlpTimeout = 20 * MILLISECOND;
    RtlpPossibleDeadlocks = 0;
    capture_errors();
    begin_to_wait(&a, share, &resource);
    await(__atomic_load_n(&RtlpPossibleDeadlocks, __ATOMIC_RELAXED) >= 2);
    release(&resource);
    await(is_idle(&a));
    char *text = end_capture();
    snprintf(place, sizeof(place), "20 ms in RtlAcquireResourceShared for %p\n", (void *)&resource);
    assert_true(occurrences(text, place) >= 2);
    snprintf(place, sizeof(place), "owner: thread %u, count -1 ", HandleToULong(own_id()));
    assert_true(occurrences(text, place) >= 2);
    free(text);
    run_on(&a, release, &resource);

    resource.Flags |= RTL_RESOURCE_FLAG_LONG_TERM;
    RtlpPossibleDeadlocks = 0;
    own(&resource);
    begin_to_wait(&a, own, &resource);
    for (ULONG i = 0; i < 40; i += 1) { /* longer than the timeout, unless a thread is stopped meanwhile */
        KeDelayExecutionThread(KernelMode, FALSE, &(LARGE_INTEGER){.QuadPart = -MILLISECOND});
    }
    assert_int_equal(RtlpPossibleDeadlocks, 0);
    release(&resource);
    await(is_idle(&a));
    run_on(&a, release, &resource);
    RtlpTimeout = timeout;
    end_actor(&a);
    RtlDeleteResource(&resource);
}

static void test_dump(void **state)
{
    RTL_RESOURCE resource;
    (void)state;
    RtlInitializeResource(&resource);
    share(&resource);
    capture_errors();
    RtlDumpResource(&resource);
    char *text = end_capture();
    assert_int_equal(occurrences(text, "NumberOfActive 1, owner: thread 0, waiting: 0 shared, 0 exclusive"), 1);
    free(text);
    release(&resource);
    RtlDeleteResource(&resource);
}

static void dump(void *resource)
{
    RtlDumpResource(resource);
}

/* The numbers are of one moment. */
static void test_dump_waits(void **state)
{
    RTL_RESOURCE resource;
    actor a;
    (void)state;
    RtlInitializeResource(&resource);
    start_actor(&a);
    RtlEnterCriticalSection(&resource.CriticalSection);
    capture_errors();
    begin_to_wait(&a, dump, &resource);
    RtlLeaveCriticalSection(&resource.CriticalSection);
    await(is_idle(&a));
    char *text = end_capture();
    assert_int_equal(occurrences(text, "NumberOfActive 0"), 1);
    free(text);
    end_actor(&a);
    RtlDeleteResource(&resource);
}

/* 10 */

static void *own_in_thread(void *resource)
{
    own(resource);
    release(resource);
    return NULL;
}

static void use_in_child(void *argument)
{
    RTL_RESOURCE *resource = argument;
    pthread_t thread;
    own(resource);
    check(active(resource) == -2);
    check(resource->NumberOfWaitingShared == 0 && resource->NumberOfWaitingExclusive == 0);
    release(resource);
    check(pthread_create(&thread, NULL, own_in_thread, resource) == 0);
    await(resource->NumberOfWaitingExclusive == 1);
    release(resource);
    check(pthread_join(thread, NULL) == 0);
    check(active(resource) == 0);
    share(resource);
    release(resource);
}

static void test_fork(void **state)
{
    RTL_RESOURCE resource;
    actor writer, reader;
    (void)state;
#ifdef THREAD_SANITIZER
    skip(); /* ThreadSanitizer does not support threads in a forked child */
#endif
    RtlInitializeResource(&resource);
    start_actor(&writer);
    start_actor(&reader);
    own(&resource);
    begin_to_wait(&writer, own, &resource);
    begin_to_wait(&reader, share, &resource);
    in_child(use_in_child, &resource);
    release(&resource);
    await(is_idle(&writer));
    run_on(&writer, release, &resource);
    await(is_idle(&reader));
    run_on(&reader, release, &resource);
    assert_state(&resource, 0, 0, 0);
    end_actor(&writer);
    end_actor(&reader);
    RtlDeleteResource(&resource);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_initialize),
        WATCHED(test_alone),
        WATCHED(test_another),
        WATCHED(test_share_beside_exclusive_waiter),
        WATCHED(test_handing_over),
        WATCHED(test_only_sharer_converts),
        WATCHED(test_converting_among_others),
        WATCHED(test_not_owned),
        WATCHED(test_no_memory),
        WATCHED(test_long_wait),
        WATCHED(test_dump),
        WATCHED(test_dump_waits),
        WATCHED(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
