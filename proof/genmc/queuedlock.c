/*
 * queuedlock.c: queued spinlocks. THREADS threads take the lock by their entries, the last one by a try: the owner is alone,
 * sees the work of the previous one, and no waiter that sleeps is forgotten.
 */
#include "shim.h"

#ifndef THREADS
#define THREADS 3
#endif

struct _KTHREAD {
    int Unused;
};

#define KiAcquireVerifiedQueuedLock(entry, lock, site) ((void)0)
#define KiVerifyRelease(thread, lock, hold) ((void)0)
#define KiVerifyAtDispatchLevel(thread) ((void)0)
#define KiNoteAcquired(thread, lock, hold, kind) ((void)0)
#define KI_SPIN_LOCK_HELD 1
#define KiInheritEntry NULL /* no fork */
#define HalProcessorsAvailable(number) FALSE
enum { KiParkForSpinLock, KiParkForQueuedLock, KiParkForNextInLine };

/* Parks at once, and reads the entry's Lock as a whole: GenMC has no accesses of different sizes. */
static struct { VOID (*Wake)(volatile ULONG *word, ULONG count); } HalDispatch;
static BOOLEAN KiParkOnWord(PKTHREAD thread, int use, volatile ULONG *word, ULONG mark,
                            BOOLEAN (*is_done)(ULONG value, PVOID context), PVOID deadline, PVOID context);
static VOID KiParkUntil(PKTHREAD thread, int use, BOOLEAN (*condition)(PVOID context), PVOID context);

//! take KiAcquireQueuedLock KiTryQueuedLock KiReleaseQueuedLock KLOCK_QUEUE_HANDLE
//! fault 1 KiHandToNext: Owner, __ATOMIC_RELEASE => Owner, __ATOMIC_RELAXED
//! fault 2 KiReleaseQueuedLock: FALSE, __ATOMIC_RELEASE => FALSE, __ATOMIC_RELAXED
//! fault 3 KiHandToNext: & KI_LOCK_QUEUE_PARKED => & 0

static KSPIN_LOCK lock;
static int data;
static int taken[SHIM_MOST];

static BOOLEAN KiParkOnWord(PKTHREAD thread, int use, volatile ULONG *word, ULONG mark,
                            BOOLEAN (*is_done)(ULONG value, PVOID context), PVOID deadline, PVOID context)
{
    volatile ULONG_PTR *whole = (volatile ULONG_PTR *)word;
    ULONG_PTR value = __atomic_load_n(whole, __ATOMIC_ACQUIRE);
    (void)thread, (void)use, (void)deadline;
    while (!is_done((ULONG)value, context)) {
        if ((value & mark) ||
            __atomic_compare_exchange_n(whole, &value, value | mark, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
#ifndef GENMC
            shim_wait(word, (ULONG)value | mark, FALSE);
#endif
        }
        value = __atomic_load_n(whole, __ATOMIC_ACQUIRE);
    }
    return TRUE;
}

static VOID KiParkUntil(PKTHREAD thread, int use, BOOLEAN (*condition)(PVOID context), PVOID context)
{
    (void)thread, (void)use;
    while (!condition(context)) {
        SHIM_PAUSE();
    }
}

static VOID wake(volatile ULONG *word, ULONG count)
{
    (void)count;
    shim_wake(word);
}

static void *body(void *argument)
{
    int thread = (int)(intptr_t)argument;
    KTHREAD self = {0};
    KLOCK_QUEUE_HANDLE handle = {{0}};
    BOOLEAN owns = TRUE;
    if (thread == THREADS - 1) {
        owns = KiTryQueuedLock(&self, &handle.LockQueue, &lock);
    } else {
        KiAcquireQueuedLock(&handle.LockQueue, &lock);
    }
    if (owns) {
        data += 1;
        taken[thread] = 1;
        KiReleaseQueuedLock(&handle.LockQueue);
        assert(handle.LockQueue.Next == NULL);
    }
    return NULL;
}

static void setup(void)
{
    HalDispatch.Wake = wake;
    lock = 0;
    data = 0;
    for (int i = 0; i < SHIM_MOST; i++) {
        taken[i] = 0;
    }
}

static void finish(void)
{
    assert(data == taken[0] + taken[1] + taken[2] + taken[3] + taken[4] && lock == 0);
}

int main(void)
{
    static SHIM_BODY *const bodies[SHIM_MOST] = {body, body, body, body};
    shim_run(THREADS, bodies, setup, finish);
    return 0;
}
