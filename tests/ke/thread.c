#include "support.h"

#include <interlock/ps.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "../support/heap.h"
#include "ke/ki.h"

static void in_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void current_thread_is_adopted(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();

    (void)state;
    assert_non_null(thread);
    assert_ptr_equal(KeGetCurrentThread(), thread);
    assert_int_equal(thread->State, Running);
    assert_true(thread->Foreign);
    assert_int_equal(thread->ThreadId, gettid());
    assert_int_equal(thread->Priority, 8);
    assert_int_equal(thread->BasePriority, 8);
    assert_int_equal(thread->Irql, PASSIVE_LEVEL);
    assert_int_equal(thread->Header.Type & KOBJECT_TYPE_MASK, ThreadObject);
    assert_int_equal(thread->Header.SignalState, 0);
    assert_int_equal(thread->Affinity.Group, 0);
    assert_int_not_equal(thread->Affinity.Mask, 0);
    assert_int_not_equal(thread->CreateTime, 0);
    assert_ptr_equal(thread->Process, &KiInitialProcess);
    assert_ptr_equal(KiLookupThreadById(thread->ThreadId), thread);
    assert_ptr_equal(KiThreadFromNumber(KiSlotOfThread(thread)->Number), thread);
}

/* The result of a signal handler that adopts during an adoption. */
static void adopting_twice_gives_one_thread(void **state)
{
    PKTHREAD thread = KeGetCurrentThread();
    ULONG used;

    (void)state;
    assert_ptr_equal(KiAdoptThread(), thread);
    used = KiThreadSlotsUsed;
    for (int i = 0; i < 100; i++)
        assert_ptr_equal(KiAdoptThread(), thread);
    assert_int_equal(KiThreadSlotsUsed, used);
    assert_ptr_equal(KiLookupThreadById(thread->ThreadId), thread);
}

static void *adopt_only(void *argument)
{
    (void)argument;
    assert_int_equal(KeGetCurrentThread()->ThreadId, gettid());
    return NULL;
}

static void adopt_many(void *argument, unsigned index)
{
    unsigned long rounds = *(unsigned long *)argument;

    (void)index;
    for (unsigned long i = 0; i < rounds; i++)
        in_thread(adopt_only, NULL);
}

static void slots_are_used_again(void **state)
{
    unsigned long rounds = test_rounds(1000);
    ULONG before;

    (void)state;
    KeGetCurrentThread();
    before = KiThreadSlotsUsed;
    run_threads(4, 120, adopt_many, &rounds);
    /* four at a time, and those that have been joined but whose slot is not free yet: their number depends on the
       host */
    assert_true(KiThreadSlotsUsed - before <= 12 + rounds);
}

static void *adopt_without_memory(void *argument)
{
    LARGE_INTEGER zero = {.QuadPart = 0}, tick = {.QuadPart = -10};
    KEVENT event;

    allocations_left = 0;
    KeInitializeEvent(&event, SynchronizationEvent, FALSE);
    KeSetEvent(&event, 0, FALSE);
    *(NTSTATUS *)argument = KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    if (KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &zero) != STATUS_TIMEOUT ||
        KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, &tick) != STATUS_TIMEOUT ||
        KiLookupThreadById((ULONG)gettid()) != KeGetCurrentThread())
        *(NTSTATUS *)argument = STATUS_UNSUCCESSFUL;
    allocations_left = -1;
    return NULL;
}

static void adoption_needs_no_memory(void **state)
{
    NTSTATUS status = STATUS_UNSUCCESSFUL;
    void *volatile memory;

    (void)state;
    allocations_left = 0;
    memory = malloc(1);
    allocations_left = -1;
#ifndef HEAP_IS_WATCHED_ONLY
    assert_null(memory);
#endif
    free(memory);
    assert_int_equal(allocations_refused, 1);
    in_thread(adopt_without_memory, &status);
    assert_int_equal(status, STATUS_SUCCESS);
    assert_int_equal(allocations_refused, 1);
}

struct owner {
    KMUTANT mutant;
    KEVENT owned;
    PKTHREAD thread;
};

static void *end_as_owner(void *argument)
{
    struct owner *owner = argument;

    KeWaitForSingleObject(&owner->mutant, Executive, KernelMode, FALSE, NULL);
    KeWaitForSingleObject(&owner->mutant, Executive, KernelMode, FALSE, NULL);
    owner->thread = KeGetCurrentThread();
    ObReferenceObject(owner->thread);
    KeSetEvent(&owner->owned, 0, FALSE);
    return NULL;
}

static void the_end_abandons_and_signals(void **state)
{
    struct owner owner;
    pthread_t thread;
    ULONG id;

    (void)state;
    KeInitializeMutant(&owner.mutant, FALSE);
    KeInitializeEvent(&owner.owned, NotificationEvent, FALSE);
    assert_int_equal(pthread_create(&thread, NULL, end_as_owner, &owner), 0);
    watchdog_start(20);
    assert_int_equal(KeWaitForSingleObject(&owner.owned, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(KeWaitForSingleObject(owner.thread, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(KeWaitForSingleObject(&owner.mutant, Executive, KernelMode, FALSE, NULL), STATUS_ABANDONED);
    watchdog_stop();
    assert_int_equal(KeReadStateMutant(&owner.mutant), 0);
    KeReleaseMutant(&owner.mutant, 0, FALSE, FALSE);
    assert_int_equal(pthread_join(thread, NULL), 0);

    id = owner.thread->ThreadId;
    assert_int_equal(owner.thread->State, Terminated);
    assert_int_equal(owner.thread->Header.SignalState, 1);
    assert_ptr_equal(KiLookupThreadById(id), owner.thread);
    ObDereferenceObject(owner.thread);
    assert_null(KiLookupThreadById(id));
}

static void lookups_prefer_the_living(void **state)
{
    PKTHREAD ended = KiAllocateThread();
    PKTHREAD living = KiAllocateThread();
    enum { ID = 0x7ffffff0 };

    (void)state;
    living->State = Running;
    ended->ThreadId = living->ThreadId = ID;
    KiInsertThreadId(ended, ID);
    assert_ptr_equal(KiLookupThreadById(ID), ended);
    ended->State = Terminated;
    assert_ptr_equal(KiLookupThreadById(ID), ended);
    KiInsertThreadId(living, ID);
    assert_ptr_equal(KiLookupThreadById(ID), living);
    KiDropThread(ended);
    assert_ptr_equal(KiLookupThreadById(ID), living);
    KiDropThread(living);
    assert_null(KiLookupThreadById(ID));
    assert_null(KiLookupThreadById(0));
}

/* More threads whose ids collide in one bucket of the table than the bucket holds. */
static void ids_that_meet_are_all_found(void **state)
{
    enum { COUNT = 20, APART = 8192, FIRST = 0x40000000 };
    PKTHREAD threads[COUNT];

    (void)state;
    for (ULONG i = 0; i < COUNT; i++) {
        threads[i] = KiAllocateThread();
        threads[i]->ThreadId = FIRST + i * APART;
        KiInsertThreadId(threads[i], FIRST + i * APART);
    }
    for (ULONG i = 0; i < COUNT; i++)
        assert_ptr_equal(KiLookupThreadById(FIRST + i * APART), threads[i]);
    assert_null(KiLookupThreadById(FIRST + COUNT * APART));
    for (ULONG i = 0; i < COUNT; i++) {
        KiDropThread(threads[i]);
        assert_null(KiLookupThreadById(FIRST + i * APART));
    }
    for (ULONG i = 0; i < COUNT; i++) {
        threads[i] = KiAllocateThread();
        threads[i]->ThreadId = FIRST + i;
        KiInsertThreadId(threads[i], FIRST + i);
        assert_ptr_equal(KiLookupThreadById(FIRST + i), threads[i]);
    }
    for (ULONG i = 0; i < COUNT; i++)
        KiDropThread(threads[i]);
}

static void the_table_grows_by_chunks(void **state)
{
    enum { COUNT = KI_THREAD_CHUNK + 10 };
    PKTHREAD *threads = malloc(COUNT * sizeof(*threads));
    ULONG used;

    (void)state;
    for (ULONG i = 0; i < COUNT; i++) {
        threads[i] = KiAllocateThread();
        assert_non_null(threads[i]);
        assert_int_equal((uintptr_t)threads[i] % KI_CACHE_LINE, 0);
        assert_ptr_equal(KiThreadFromNumber(KiSlotOfThread(threads[i])->Number), threads[i]);
    }
    used = KiThreadSlotsUsed;
    assert_true(used > KI_THREAD_CHUNK);
    assert_null(KiThreadFromNumber(used));
    for (ULONG i = 0; i < COUNT; i++)
        KiDropThread(threads[i]);
    for (ULONG i = 0; i < COUNT; i++)
        threads[i] = KiAllocateThread();
    for (ULONG i = 0; i < COUNT; i++)
        KiDropThread(threads[i]);
    assert_int_equal(KiThreadSlotsUsed, used);
    free(threads);
}

static void stack_swap_setting_returns_the_last(void **state)
{
    (void)state;
    assert_true(KeSetKernelStackSwapEnable(FALSE));
    assert_false(KeSetKernelStackSwapEnable(FALSE));
    assert_false(KeSetKernelStackSwapEnable(TRUE));
    assert_true(KeSetKernelStackSwapEnable(TRUE));
}

static void *end_at_dispatch_level(void *argument)
{
    (void)argument;
    KeRaiseIrqlToDpcLevel();
    return NULL;
}

static void foreign_thread_ends_at_dispatch_level(void *argument)
{
    (void)argument;
    in_thread(end_at_dispatch_level, NULL);
}

static KMUTEX mutex;

static VOID end_in_critical_region(PVOID context)
{
    (void)context;
    KeEnterCriticalRegion();
}

static VOID end_in_guarded_region(PVOID context)
{
    (void)context;
    KeEnterGuardedRegion();
}

static VOID end_at_apc_level(PVOID context)
{
    KIRQL irql;

    (void)context;
    KeRaiseIrql(APC_LEVEL, &irql);
}

static VOID end_with_mutex(PVOID context)
{
    (void)context;
    KeWaitForSingleObject(&mutex, Executive, KernelMode, FALSE, NULL);
}

static NTSTATUS run_system_thread(PKSTART_ROUTINE routine)
{
    HANDLE handle;
    PVOID thread;

    KeInitializeMutex(&mutex, 0);
    assert_int_equal(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, routine, NULL), STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(handle, SYNCHRONIZE, *PsThreadType, KernelMode, &thread, NULL), 0);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    assert_int_equal(KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    ObDereferenceObject(thread);
    return KeWaitForSingleObject(&mutex, Executive, KernelMode, FALSE, NULL);
}

static void system_thread_ends(void *routine)
{
    run_system_thread((PKSTART_ROUTINE)(ULONG_PTR)routine);
}

static void system_thread_ends_with_verifier(void *routine)
{
    KiVerifierEnabled = TRUE;
    system_thread_ends(routine);
}

static void wrong_ends(void **state)
{
    static const struct {
        PKSTART_ROUTINE routine;
        ULONG code;
    } rows[] = {
        {end_in_critical_region, KERNEL_APC_PENDING_DURING_EXIT},
        {end_in_guarded_region, KERNEL_APC_PENDING_DURING_EXIT},
        {end_at_apc_level, KERNEL_APC_PENDING_DURING_EXIT},
        {end_with_mutex, THREAD_TERMINATE_HELD_MUTEX},
    };

    (void)state;
    expect_bugcheck(IRQL_NOT_LESS_OR_EQUAL, foreign_thread_ends_at_dispatch_level, NULL);
    for (size_t i = 0; i < ARRAYSIZE(rows); i++)
        expect_bugcheck(rows[i].code, system_thread_ends_with_verifier, (void *)(ULONG_PTR)rows[i].routine);
    KiVerifierEnabled = FALSE;
    expect_bugcheck(THREAD_TERMINATE_HELD_MUTEX, system_thread_ends, (void *)(ULONG_PTR)end_with_mutex);
    for (size_t i = 0; i < ARRAYSIZE(rows) && rows[i].routine != end_with_mutex; i++) {
        assert_int_equal(run_system_thread(rows[i].routine), STATUS_SUCCESS);
        KeReleaseMutex(&mutex, FALSE);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_thread_is_adopted),
        cmocka_unit_test(adopting_twice_gives_one_thread),
        cmocka_unit_test(slots_are_used_again),
        cmocka_unit_test(adoption_needs_no_memory),
        cmocka_unit_test(the_end_abandons_and_signals),
        cmocka_unit_test(lookups_prefer_the_living),
        cmocka_unit_test(ids_that_meet_are_all_found),
        cmocka_unit_test(the_table_grows_by_chunks),
        cmocka_unit_test(stack_swap_setting_returns_the_last),
        cmocka_unit_test(wrong_ends),
    };

    return cmocka_run_group_tests_name("ke/thread", tests, NULL, NULL);
}
