/* The grid's rows of what --abstract-locks makes single steps (hal/locks.c), besides spinlocks: locks of the kernel, the lock of an object,
   and the sleep of a waiting thread. They never run with it. */
#include "grid.h"

#include "ke/wait.h"

static KI_LOCK kernel_lock;

static void kernel_lock_use(void)
{
    KiAcquireLock(&kernel_lock);
    grid_write();
    KiReleaseLock(&kernel_lock);
}

static void kernel_lock_try(void)
{
    if (KiTryAcquireLock(&kernel_lock)) {
        grid_write();
        KiReleaseLock(&kernel_lock);
    }
}
GRID(kernel_lock, NULL, NULL, kernel_lock_use, kernel_lock_try);

/* While nobody holds the lock, other threads change the word without it, as the inline paths of events do. */
static KEVENT locked;

static void make_object_lock(void)
{
    KeInitializeEvent(&locked, NotificationEvent, FALSE);
}

static void object_lock_use(void)
{
    ULONG64 word = KiLockObject(&locked.Header);

    LabAssert((word & KI_LOCKED) && KiReadHeader(&locked.Header) == word);
    grid_write();
    KiUnlockObject(&locked.Header, KiWithState(word, 0));
}

static void object_lock_change(void)
{
    ULONG64 word = KiReadHeader(&locked.Header);

    if (!(word & KI_LOCKED))
        KiCompareExchangeHeader(&locked.Header, &word, KiWithState(word, 1));
}

static void object_lock_try(void)
{
    ULONG64 word;

    if (KiTryLockObject(&locked.Header, &word)) {
        grid_write();
        KiUnlockObject(&locked.Header, word);
    }
}

static void object_is_unlocked(void)
{
    LabAssert(!(KiReadHeader(&locked.Header) & KI_LOCKED));
}
GRID(object_lock, make_object_lock, object_is_unlocked, object_lock_use, object_lock_change, object_lock_try);

/*
 * Sleep: a thread offers itself and sleeps, the next one takes the offer and wakes it by KiReadyThread, as a signaler does after it has
 * ended the wait. A thread that nobody has taken may time out, withdraws its offer, and otherwise has to be woken.
 */
static PKTHREAD offered;
static int gifts[LAB_MAXIMUM_THREADS]; /* of the waker, for the thread with that number */
static PKTHREAD gifted[LAB_MAXIMUM_THREADS];

typedef struct sleep_until {
    KI_SLEEP sleep;
    HAL_DEADLINE deadline;
} sleep_until;

static const HAL_DEADLINE *sleep_deadline(PVOID context)
{
    return &((sleep_until *)context)->deadline;
}

static BOOLEAN sleep_on_word(PKTHREAD thread, const HAL_DEADLINE *deadline)
{
    sleep_until until = {.deadline = *deadline};

    return KiParkOnWord(thread, KiParkAsleep, &thread->WakeWord, KI_SLEEPING, KiIsWoken, sleep_deadline, &until);
}

static void sleep_wake(PKTHREAD thread)
{
    for (unsigned i = 0; i < grid_threads; i++)
        if (__atomic_load_n(&gifted[i], __ATOMIC_RELAXED) == thread)
            gifts[i]++;
    KiReadyThread(thread, 0);
}

static void sleep_or_wake(BOOLEAN timed)
{
    static const HAL_DEADLINE never = {HalNoDeadline, 0};
    HAL_DEADLINE soon = {HalInterruptTime, timed ? KeQueryInterruptTime() + 10000 : 0};
    unsigned self = LabCurrentThread();
    PKTHREAD thread = KeGetCurrentThread(), none = NULL, own = thread;
    PKTHREAD other = __atomic_exchange_n(&offered, NULL, __ATOMIC_ACQ_REL);

    if (other != NULL) {
        sleep_wake(other);
        return;
    }
    __atomic_store_n(&gifted[self], thread, __ATOMIC_RELAXED);
    gifts[self] = 0;
    __atomic_store_n(&thread->WakeWord, KI_AWAKE, __ATOMIC_RELAXED);
    if (!timed || !__atomic_compare_exchange_n(&offered, &none, thread, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    if (!sleep_on_word(thread, &soon)) {
        if (__atomic_compare_exchange_n(&offered, &own, NULL, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return;
        LabAssert(sleep_on_word(thread, &never));
    }
    LabAssert(gifts[self] == 1);
    gifts[self] = 0;
}

static void sleep_timed(void)
{
    sleep_or_wake(TRUE);
}

static void sleep_wakes(void)
{
    sleep_or_wake(FALSE);
}
GRID(sleep, NULL, NULL, sleep_timed, sleep_wakes);
