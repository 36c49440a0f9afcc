/* Locks of the kernel and of user mode. */
#include "../bench.h"

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

static EX_PUSH_LOCK push_lock;
static PEX_CACHE_AWARE_PUSH_LOCK cache_aware;
static PEX_PUSH_LOCK_AUTO_EXPAND auto_expand;
static FAST_MUTEX fast_mutex;
static ERESOURCE resource;
static KSPIN_LOCK spin_lock;
static EX_SPIN_LOCK rw_spin_lock;
static KMUTANT mutant;
static KMUTEX mutex;
static HANDLE mutant_handle;
static RTL_SRWLOCK srw_lock;
static RTL_CRITICAL_SECTION section;
static RTL_RESOURCE rtl_resource;
static RTL_RUN_ONCE done = {(PVOID)(ULONG_PTR)2};
static VOID (*volatile acquire_srw)(PRTL_SRWLOCK) = RtlAcquireSRWLockExclusive;
static VOID (*volatile release_srw)(PRTL_SRWLOCK) = RtlReleaseSRWLockExclusive;

static void wait_for(PVOID object)
{
    KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL);
}

#define IN_REGION(function, body)                                                                                      \
    BENCH_LOOP_WITHIN(function, KeEnterCriticalRegion(); (void)row, body, KeLeaveCriticalRegion())
#define AT_DISPATCH(function, body)                                                                                    \
    BENCH_LOOP_WITHIN(function, KIRQL before = KeRaiseIrqlToDpcLevel(); (void)row, body, KeLowerIrql(before))

IN_REGION(run_push, ExAcquirePushLockExclusive(&push_lock); ExReleasePushLockExclusive(&push_lock))
IN_REGION(run_push_shared, ExAcquirePushLockShared(&push_lock); ExReleasePushLockShared(&push_lock))
IN_REGION(run_cache_aware, ExAcquireCacheAwarePushLockExclusive(cache_aware);
          ExReleaseCacheAwarePushLockExclusive(cache_aware))
IN_REGION(run_cache_aware_shared, PEX_PUSH_LOCK held = ExAcquireCacheAwarePushLockShared(cache_aware);
          ExReleaseCacheAwarePushLockShared(held))
IN_REGION(run_auto_expand, ExAcquireAutoExpandPushLockExclusive(auto_expand, 0);
          ExReleaseAutoExpandPushLockExclusive(auto_expand, 0))
IN_REGION(run_auto_expand_shared, PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(auto_expand, 0);
          ExReleaseAutoExpandPushLockShared(auto_expand, held, 0))
IN_REGION(run_resource, ExAcquireResourceExclusiveLite(&resource, TRUE); ExReleaseResourceLite(&resource))
IN_REGION(run_resource_shared, ExAcquireResourceSharedLite(&resource, TRUE); ExReleaseResourceLite(&resource))
IN_REGION(run_fast_unsafe, ExAcquireFastMutexUnsafe(&fast_mutex); ExReleaseFastMutexUnsafe(&fast_mutex))
BENCH_LOOP(run_fast, ExAcquireFastMutex(&fast_mutex); ExReleaseFastMutex(&fast_mutex))
BENCH_LOOP(run_srw, RtlAcquireSRWLockExclusive(&srw_lock); RtlReleaseSRWLockExclusive(&srw_lock))
BENCH_LOOP(run_srw_shared, RtlAcquireSRWLockShared(&srw_lock); RtlReleaseSRWLockShared(&srw_lock))
BENCH_LOOP(run_srw_called, acquire_srw(&srw_lock); release_srw(&srw_lock))
BENCH_LOOP(run_section, RtlEnterCriticalSection(&section); RtlLeaveCriticalSection(&section))
BENCH_LOOP_WITHIN(run_section_again, RtlEnterCriticalSection(&section); (void)row, RtlEnterCriticalSection(&section);
                  RtlLeaveCriticalSection(&section), RtlLeaveCriticalSection(&section))
BENCH_LOOP(run_rtl_resource, RtlAcquireResourceExclusive(&rtl_resource, TRUE); RtlReleaseResource(&rtl_resource))
BENCH_LOOP(run_rtl_resource_shared, RtlAcquireResourceShared(&rtl_resource, TRUE); RtlReleaseResource(&rtl_resource))
BENCH_LOOP(run_mutant, wait_for(&mutant); KeReleaseMutant(&mutant, 0, FALSE, FALSE))
BENCH_LOOP(run_mutex, wait_for(&mutex); KeReleaseMutex(&mutex, FALSE))
BENCH_LOOP_WITHIN(run_mutant_again, wait_for(&mutant); (void)row, wait_for(&mutant);
                  KeReleaseMutant(&mutant, 0, FALSE, FALSE), KeReleaseMutant(&mutant, 0, FALSE, FALSE))
BENCH_LOOP(run_nt_mutant, NtWaitForSingleObject(mutant_handle, FALSE, NULL); NtReleaseMutant(mutant_handle, NULL))
BENCH_LOOP(run_spin, KIRQL old; KeAcquireSpinLock(&spin_lock, &old); KeReleaseSpinLock(&spin_lock, old))
AT_DISPATCH(run_spin_at, KeAcquireSpinLockAtDpcLevel(&spin_lock); KeReleaseSpinLockFromDpcLevel(&spin_lock))
BENCH_LOOP(run_queued, KLOCK_QUEUE_HANDLE own; KeAcquireInStackQueuedSpinLock(&spin_lock, &own);
           KeReleaseInStackQueuedSpinLock(&own))
AT_DISPATCH(run_queued_at, KLOCK_QUEUE_HANDLE own; KeAcquireInStackQueuedSpinLockAtDpcLevel(&spin_lock, &own);
            KeReleaseInStackQueuedSpinLockFromDpcLevel(&own))
AT_DISPATCH(run_rw_spin_at, ExAcquireSpinLockExclusiveAtDpcLevel(&rw_spin_lock);
            ExReleaseSpinLockExclusiveFromDpcLevel(&rw_spin_lock))
AT_DISPATCH(run_rw_spin_shared_at, ExAcquireSpinLockSharedAtDpcLevel(&rw_spin_lock);
            ExReleaseSpinLockSharedFromDpcLevel(&rw_spin_lock))
BENCH_LOOP(run_once, RtlRunOnceBeginInitialize(&done, 0, NULL))
BENCH_LOOP(run_raise_apc, KIRQL old; KeRaiseIrql(APC_LEVEL, &old); KeLowerIrql(old))
BENCH_LOOP(run_raise_dispatch, KIRQL old; KeRaiseIrql(DISPATCH_LEVEL, &old); KeLowerIrql(old))
BENCH_LOOP(run_region, KeEnterCriticalRegion(); KeLeaveCriticalRegion())

#define WORK_IN_REGION(function, lock, unlock, lock_shared, unlock_shared)                                             \
    BENCH_WORK_WITHIN(function, KeEnterCriticalRegion(), lock, unlock, lock_shared, unlock_shared,                     \
                      KeLeaveCriticalRegion())

WORK_IN_REGION(work_push, ExAcquirePushLockExclusive(&push_lock), ExReleasePushLockExclusive(&push_lock),
               ExAcquirePushLockShared(&push_lock), ExReleasePushLockShared(&push_lock))
WORK_IN_REGION(work_cache_aware, ExAcquireCacheAwarePushLockExclusive(cache_aware),
               ExReleaseCacheAwarePushLockExclusive(cache_aware),
               PEX_PUSH_LOCK held = ExAcquireCacheAwarePushLockShared(cache_aware),
               ExReleaseCacheAwarePushLockShared(held))
WORK_IN_REGION(work_auto_expand, ExAcquireAutoExpandPushLockExclusive(auto_expand, 0),
               ExReleaseAutoExpandPushLockExclusive(auto_expand, 0),
               PEX_PUSH_LOCK held = ExAcquireAutoExpandPushLockShared(auto_expand, 0),
               ExReleaseAutoExpandPushLockShared(auto_expand, held, 0))
WORK_IN_REGION(work_resource, ExAcquireResourceExclusiveLite(&resource, TRUE), ExReleaseResourceLite(&resource),
               ExAcquireResourceSharedLite(&resource, TRUE), ExReleaseResourceLite(&resource))
BENCH_WORK(work_srw, RtlAcquireSRWLockExclusive(&srw_lock), RtlReleaseSRWLockExclusive(&srw_lock),
           RtlAcquireSRWLockShared(&srw_lock), RtlReleaseSRWLockShared(&srw_lock))
BENCH_MUTEX_WORK(work_section, RtlEnterCriticalSection(&section), RtlLeaveCriticalSection(&section))
BENCH_MUTEX_WORK(work_fast, ExAcquireFastMutex(&fast_mutex), ExReleaseFastMutex(&fast_mutex))
BENCH_WORK(work_spin, KIRQL old;
           KeAcquireSpinLock(&spin_lock, &old), KeReleaseSpinLock(&spin_lock, old), (void)0, (void)0)
BENCH_WORK(work_queued, KLOCK_QUEUE_HANDLE own;
           KeAcquireInStackQueuedSpinLock(&spin_lock, &own), KeReleaseInStackQueuedSpinLock(&own), (void)0, (void)0)

BENCH_SIZE(size_push, sizeof(push_lock))
BENCH_SIZE(size_srw, sizeof(srw_lock))
BENCH_SIZE(size_section, sizeof(section))
BENCH_SIZE(size_fast, sizeof(fast_mutex))
BENCH_SIZE(size_resource, sizeof(resource))
BENCH_SIZE(size_spin, sizeof(spin_lock))

static void initialize(void)
{
    cache_aware = ExAllocateCacheAwarePushLock();
    auto_expand = ExAllocateAutoExpandPushLock(0);
    if (cache_aware == NULL || auto_expand == NULL)
        bench_fail("pushlocks");
    ExInitializeFastMutex(&fast_mutex);
    ExInitializeResourceLite(&resource);
    KeInitializeSpinLock(&spin_lock);
    KeInitializeMutant(&mutant, FALSE);
    KeInitializeMutex(&mutex, 0);
    NtCreateMutant(&mutant_handle, MUTANT_ALL_ACCESS, NULL, FALSE);
    RtlInitializeCriticalSection(&section);
    RtlInitializeResource(&rtl_resource);
}

BENCH_CONTENDERS(interlock_locks, "")
{
    initialize();
    bench_add_loop("exclusive", BENCH_INTERLOCK, "pushlock", 13.5, run_push);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "SRW lock", 13.5, run_srw);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "SRW lock, not inline", 0, run_srw_called);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "critical section", 16, run_section);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "fast mutex", 16, run_fast);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "fast mutex, unsafe", 0, run_fast_unsafe);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "cache-aware pushlock", 0, run_cache_aware);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "auto-expand pushlock", 0, run_auto_expand);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "ERESOURCE", 0, run_resource);
    bench_add_loop("exclusive", BENCH_INTERLOCK, "RTL_RESOURCE", 0, run_rtl_resource);
    bench_add_loop("shared", BENCH_INTERLOCK, "pushlock", 14, run_push_shared);
    bench_add_loop("shared", BENCH_INTERLOCK, "SRW lock", 14, run_srw_shared);
    bench_add_loop("shared", BENCH_INTERLOCK, "cache-aware pushlock", 20, run_cache_aware_shared);
    bench_add_loop("shared", BENCH_INTERLOCK, "auto-expand pushlock", 20, run_auto_expand_shared);
    bench_add_loop("shared", BENCH_INTERLOCK, "ERESOURCE", 0, run_resource_shared);
    bench_add_loop("shared", BENCH_INTERLOCK, "RTL_RESOURCE", 0, run_rtl_resource_shared);
    bench_add_loop("spin-shared", BENCH_INTERLOCK, "EX_SPIN_LOCK at DISPATCH_LEVEL", 0, run_rw_spin_shared_at);
    bench_add_loop("recursive", BENCH_INTERLOCK, "critical section", 0, run_section_again);
    bench_add_loop("recursive", BENCH_INTERLOCK, "mutant", 0, run_mutant_again);
    bench_add_loop("mutex-object", BENCH_INTERLOCK, "KMUTANT", 0, run_mutant);
    bench_add_loop("mutex-object", BENCH_INTERLOCK, "KMUTEX", 0, run_mutex);
    bench_add_loop("mutex-object", BENCH_INTERLOCK, "mutant by handle", 0, run_nt_mutant);
    bench_add_loop("spinlock", BENCH_INTERLOCK, "KeAcquireSpinLock", 25, run_spin);
    bench_add_loop("spinlock", BENCH_INTERLOCK, "KeAcquireSpinLockAtDpcLevel", 10, run_spin_at);
    bench_add_loop("spinlock", BENCH_INTERLOCK, "in-stack queued", 0, run_queued);
    bench_add_loop("spinlock", BENCH_INTERLOCK, "in-stack queued at DISPATCH_LEVEL", 14, run_queued_at);
    bench_add_loop("spinlock", BENCH_INTERLOCK, "EX_SPIN_LOCK at DISPATCH_LEVEL", 0, run_rw_spin_at);
    bench_add_loop("once", BENCH_INTERLOCK, "RtlRunOnceBeginInitialize", 0, run_once);
    bench_add_loop("level", BENCH_INTERLOCK, "to APC_LEVEL", 0, run_raise_apc);
    bench_add_loop("level", BENCH_INTERLOCK, "to DISPATCH_LEVEL", 0, run_raise_dispatch);
    bench_add_loop("level", BENCH_INTERLOCK, "critical region", 0, run_region);
    bench_add_contended("mutex", BENCH_INTERLOCK, "pushlock", work_push);
    bench_add_contended("mutex", BENCH_INTERLOCK, "SRW lock", work_srw);
    bench_add_contended("mutex", BENCH_INTERLOCK, "critical section", work_section);
    bench_add_contended("mutex", BENCH_INTERLOCK, "fast mutex", work_fast);
    bench_no_target();
    bench_add_contended("spin", BENCH_INTERLOCK, "KeAcquireSpinLock", work_spin);
    bench_add_contended("spin", BENCH_INTERLOCK, "in-stack queued", work_queued);
    bench_add_contended("rwlock", BENCH_INTERLOCK, "pushlock", work_push);
    bench_add_contended("rwlock", BENCH_INTERLOCK, "SRW lock", work_srw);
    bench_add_contended("rwlock", BENCH_INTERLOCK, "cache-aware pushlock", work_cache_aware);
    bench_add_contended("rwlock", BENCH_INTERLOCK, "auto-expand pushlock", work_auto_expand);
    bench_add_contended("rwlock", BENCH_INTERLOCK, "ERESOURCE", work_resource);
    bench_no_target();
    bench_add_value("bytes-lock", BENCH_INTERLOCK, "pushlock", 0, size_push);
    bench_add_value("bytes-lock", BENCH_INTERLOCK, "SRW lock", 0, size_srw);
    bench_add_value("bytes-lock", BENCH_INTERLOCK, "spin lock", 0, size_spin);
    bench_add_value("bytes-lock", BENCH_INTERLOCK, "critical section", 0, size_section);
    bench_add_value("bytes-lock", BENCH_INTERLOCK, "fast mutex", 0, size_fast);
    bench_add_value("bytes-lock", BENCH_INTERLOCK, "ERESOURCE", 0, size_resource);
}
