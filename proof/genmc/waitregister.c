/*
 * waitregister.c: the wait status register. One thread waits for any of two objects, alertable if ALERT and with a
 * deadline if TIMED; SIGNALS threads signal an object each and one alerts. The wait is ended once, for one reason: each
 * signal is consumed or still there, and so is the alert; no wakeup is lost.
 */
#include "shim.h"

#ifndef SIGNALS
#define SIGNALS 2
#endif
#ifndef ALERT
#define ALERT 0
#endif
#ifndef TIMED
#define TIMED 0
#endif

typedef enum { HalNoDeadline, HalInterruptTime } HAL_CLOCK;
typedef struct {
    HAL_CLOCK Clock;
    ULONGLONG Time;
} HAL_DEADLINE;

struct _KTHREAD {
    volatile ULONG WaitRegister;
    volatile ULONG WakeWord;
    LONG_PTR WaitStatus;
    HAL_DEADLINE WaitDeadline;
    ULONG64 OutsideNumber;
    UCHAR State;
    ULONG WakerProcessor;
    BOOLEAN WokeSleeper;
};

typedef struct {
    PKTHREAD Thread;
    BOOLEAN Spun;
} KI_WAIT, *PKI_WAIT;

/* Neither queues nor objects of other processes, and the clock is there. No machine that sleeps for the thread. */
static BOOLEAN KiClaimOutside(PKTHREAD Thread)
{
    (void)Thread;
    return FALSE;
}
typedef enum { KiOutsideGranted, KiOutsideClaimed, KiOutsideOtherWait } KI_OUTSIDE_CLAIM;
static struct { KI_OUTSIDE_CLAIM (*Claim)(PKTHREAD Thread, ULONG64 Number); } *KiOutsideOperations;
#define KiWakeOutside(thread) ((void)(thread))
#define KiUnblockFromQueue(thread) ((void)(thread))
#define KiBoostWokenThread(thread, increment) ((void)(increment))
#define KiEnterWaitState(wait) ((void)(wait))
#define KiSpinForWake(thread) ((void)(thread))
#define HalSimulateSleep(word, value, deadline, reached) FALSE
#define HAL_SIMULATED FALSE
#define KiIsClockMissing() FALSE
#define KiShortenToNap(thread, until, nap) (until)
#define KTRACE_WAKE(thread) ((void)(thread))
#define KTRACE_WAIT_BEGIN(wait) ((void)(wait))
#define KTRACE_WAIT_END(wait, result) ((void)(wait))
enum { DeferredReady = 7 };

/* KiParkOnWord sleeps at once. */
typedef enum { KiParkAsleep } KI_PARK_USE;
typedef struct {
    int Unused;
} KI_PATIENCE;
static const struct { ULONG SpinCycles; } KiParkPolicy[1];
#define KiBeginPatience(patience, thread, use) ((void)(thread))
#define KiStayAwake(patience, thread, use) FALSE

static BOOLEAN host_wait(volatile ULONG *word, ULONG value, const HAL_DEADLINE *deadline)
{
    return shim_wait(word, value, deadline->Clock != HalNoDeadline);
}

static VOID host_wake(volatile ULONG *word, ULONG count)
{
    (void)count;
    shim_wake(word);
}

static ULONG host_processor(void)
{
    return 0;
}

static const struct {
    BOOLEAN (*Wait)(volatile ULONG *word, ULONG value, const HAL_DEADLINE *deadline);
    VOID (*Wake)(volatile ULONG *word, ULONG count);
    ULONG (*CurrentProcessor)(void);
} HalDispatch = {host_wait, host_wake, host_processor};

//! take KiBeginWait KiCommitAndSleep KiEndWait KiEndOwnWait KiInterruptWait KiReadyThread
//! fault 1 KiEndOwnWait: !(Register & KI_WAIT_ACTIVE) || => FALSE ||
//! fault 2 KiCommitWait: (KI_WAIT_ACTIVE | KI_WAIT_INTERRUPTIONS | KI_WAIT_OUTSIDE)) => (KI_WAIT_ACTIVE | KI_WAIT_OUTSIDE))
//! fault 3 KiReadyThread: KI_WOKEN, __ATOMIC_ACQ_REL => KI_WOKEN, __ATOMIC_RELAXED

enum { OBJECTS = 2, NOTHING = -1 };

typedef struct {
    pthread_mutex_t lock;
    int signaled;
    PKTHREAD waiter; /* whose wait can be ended through the object */
} OBJECT;

static OBJECT objects[OBJECTS];
static KTHREAD waiting;
static int consumed[OBJECTS];
static int result;

static void *signal_object(void *argument)
{
    OBJECT *object = &objects[(int)(intptr_t)argument - 1];
    KTHREAD self = {0};
    PKTHREAD woken = NULL;
    shim_thread = &self;
    pthread_mutex_lock(&object->lock);
    if (object->waiter != NULL && KiEndWait(object->waiter, object - objects) != KI_NOT_ENDED) {
        woken = object->waiter;
        object->waiter = NULL;
        consumed[object - objects] += 1;
    } else {
        object->signaled += 1;
    }
    pthread_mutex_unlock(&object->lock);
    if (woken != NULL) {
        KiReadyThread(woken, 0);
    }
    return NULL;
}

static void *alert(void *argument)
{
    KTHREAD self = {0};
    (void)argument;
    shim_thread = &self;
    KiInterruptWait(&waiting, KI_WAIT_ALERT | KI_WAIT_ALERTED(KernelMode), 0);
    return NULL;
}

/* Links the waiter to each object, or takes a signal that is there. */
static BOOLEAN link_objects(void)
{
    for (int i = 0; i < OBJECTS; i++) {
        BOOLEAN taken = FALSE;
        pthread_mutex_lock(&objects[i].lock);
        if (objects[i].signaled == 0) {
            objects[i].waiter = &waiting;
        } else if (KiEndOwnWait(&waiting)) {
            objects[i].signaled -= 1;
            consumed[i] += 1;
            result = i;
            taken = TRUE;
        }
        pthread_mutex_unlock(&objects[i].lock);
        if (taken) {
            return TRUE;
        }
    }
    return FALSE;
}

static void *wait_for_any(void *argument)
{
    ULONG how = ALERT ? KI_WAIT_ALERTABLE : 0;
    (void)argument;
    shim_thread = &waiting;
    result = KiBeginWait(&waiting, how);
    if (result == STATUS_PENDING) {
        if (!link_objects()) {
            KI_WAIT wait = {.Thread = &waiting};
            BOOLEAN by_other;
            LONG_PTR ended;
            KiCommitAndSleep(&wait, &by_other, &ended);
            result = (int)ended;
        }
        for (int i = 0; i < OBJECTS; i++) {
            pthread_mutex_lock(&objects[i].lock);
            objects[i].waiter = NULL;
            pthread_mutex_unlock(&objects[i].lock);
        }
    }
    return NULL;
}

#if defined(GENMC) && TIMED
static void *expire(void *argument)
{
    (void)argument;
    __atomic_store_n(&shim_expired, 1, __ATOMIC_RELAXED);
    return NULL;
}
#define CLOCK , expire
#else
#define CLOCK
#endif

static void setup(void)
{
    for (int i = 0; i < OBJECTS; i++) {
        pthread_mutex_init(&objects[i].lock, NULL);
        objects[i].signaled = 0;
        objects[i].waiter = NULL;
        consumed[i] = 0;
    }
    waiting.WaitRegister = 0;
    waiting.WaitDeadline.Clock = TIMED ? HalInterruptTime : HalNoDeadline;
    result = NOTHING;
#ifdef GENMC
    shim_expired = 0;
#endif
}

static void finish(void)
{
    for (int i = 0; i < OBJECTS; i++) {
        assert(consumed[i] == (result == i));
        assert(consumed[i] + objects[i].signaled == (i < SIGNALS));
    }
    assert(result == 0 || result == 1 || (ALERT && result == STATUS_ALERTED) || (TIMED && result == STATUS_TIMEOUT));
    assert(!(waiting.WaitRegister & KI_WAIT_ACTIVE));
    /* The alert is pending unless the wait has taken it. */
    assert(!!(waiting.WaitRegister & KI_WAIT_ALERTED(KernelMode)) == (ALERT && result != STATUS_ALERTED));
}

#if SIGNALS == 2 && ALERT
SHIM_RUN(setup, finish, wait_for_any, signal_object, signal_object, alert CLOCK)
#elif SIGNALS == 2
SHIM_RUN(setup, finish, wait_for_any, signal_object, signal_object CLOCK)
#elif SIGNALS == 1 && ALERT
SHIM_RUN(setup, finish, wait_for_any, signal_object, alert CLOCK)
#elif SIGNALS == 1
SHIM_RUN(setup, finish, wait_for_any, signal_object CLOCK)
#else
SHIM_RUN(setup, finish, wait_for_any, alert CLOCK)
#endif
