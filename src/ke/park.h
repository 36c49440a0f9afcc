/*
 * park.h: how a thread waits for another one: it spins, yields, and sleeps.
 *
 * Overview. A wait goes through up to three stages:
 *
 *     spin     The thread pauses and checks again. A handoff between two running processors takes a fraction of a
 *              microsecond, the wakeup of a sleeper a hundred times that. Pointless where no other processor is
 *              available.
 *     yield    The thread yields its processor and checks again: the thread that it waits for may have been
 *              preempted, perhaps by this one.
 *     sleep    On a word, until a waker changes it; in naps, if no waker exists; or not here: the caller
 *              queues the thread and blocks it.
 *
 * How long each stage lasts is a policy, and a policy is a row of KiParkPolicy below. Nothing else above hal spins, yields or
 * calls the host's wait, except for a stall, the clock's own sleep and NtYieldExecution, and threads that await an event from outside
 * the process, by a HalAwait function (tests/checks/layering.py).
 *
 * Use. The condition is a static inline function, so each call compiles to a loop of its own:
 *
 *     static inline BOOLEAN KiIsFinished(PVOID Job) { return __atomic_load_n(&((PJOB)Job)->Done, __ATOMIC_ACQUIRE); }
 *     KiParkUntil(Thread, KiParkForOther, KiIsFinished, Job);
 *
 * A condition may consume what it finds (take the lock, take the signal); it is not evaluated again after it was TRUE.
 * KiParkOnWord is the same for a condition of one 32-bit word that a waker changes and then wakes. KiSleepWhile is the
 * plain case: sleep while the word has this value. A loop that has to do something else between two checks keeps its
 * own KI_PATIENCE and calls KiStayAwake (ex/pushlock.c). A loop that seldom waits at all, and retries a whole
 * operation, counts its rounds and calls KiBackOff: for (ULONG Round = 0; !Try(); Round += 1) KiBackOff(Round);
 * KiSleepShared sleeps on a word in memory that processes share, whose wakers may die: the caller checks again after each
 * sleep and limits its length.
 *
 * What holds for every policy:
 * 1. Suspension and termination. The host interrupt runs on the spinning or sleeping thread; the wait continues after
 *    it. It parks or ends the thread only outside dispatcher sections and services, so a thread never ends in the
 *    middle of a wait that others rely on. A condition that has to notice termination tests for it.
 * 2. Spurious wakeups end here: the condition is evaluated after each.
 * 3. Fork. A parked thread stays behind in the parent. The forking thread is never parked at that moment.
 * 4. errno is untouched: everything goes through HalDispatch and HalGiveWay, which preserve it.
 * 5. At DISPATCH_LEVEL or above the thread owns a processor that others may interrupt. A policy with ServesInterrupts
 *    services them before each check, or two processors that wait for each other would deadlock.
 *
 * History. Spinning delays a signaler that needs this very processor. So a wait whose policy says KiSpinByWaker does not
 * spin if the thread was last woken from the processor on which it runs now. KiSpinForReply adds: a thread that has just
 * woken a sleeper spins for longer than a wakeup takes, KI_REPLY_CYCLES, to be there for the reply. Otherwise two
 * threads that answer each other would both keep sleeping between messages (event-two: 0.16 us instead of tens). Each
 * time that the reply is late, the long spin is tried half as often.
 *
 * Twice. The waiter of a pushlock or SRW lock that has spun in vain queues and sleeps; it does not spin a second time, for
 * its wakeup (KiSleepUntilSignaled, KiWaitForAlertById). That would buy nothing: a woken waiter still has to win the lock.
 * The waiters of fast mutexes and resources do spin again, as for any object. There it pays: mutex-4, fast mutex, 22.7 M/s
 * instead of 18.1; readers-50-4, ERESOURCE, 18.5 instead of 15.1, because a resource is handed off.
 *
 * Gaps. A check takes the cache line away from the thread that is about to write it. The first gap is FirstGap, each
 * further one the time spun so far >> GapShift, at most GreatestGap: with shift 0 the gap doubles, with shift 6 a check
 * is late by at most 1/64 of the wait. 0 stands for a single pause.
 *
 * Near lines. Two hardware threads of one core share their caches: a check costs the owner nothing, so a waiter that
 * checks continuously takes the lock the moment it is free. Between two cores each check makes the section several
 * times longer. The host does not reveal which case applies, and on a virtual machine it changes. So now and then a
 * waiter times the read of a word that another processor has written (KiTimeLook, HalTimeLine). Without it one policy
 * would have to serve both: rare checks leave a near lock idle, frequent ones slow down a far owner. A handoff moves three
 * lines, the lock's and the data's, so gaps grow with the time that a far line takes, which differs by a factor of four
 * between processors (KiStretchGaps): then their transfers take about an eighth of the time on any of them. With 24 lines in a
 * gap instead of 12: mutex-2 on far lines of AMD EPYC, family 26, 25.3 M/s instead of 21.9, mutex-4 24.5 instead of 22.1. Rejected:
 * 36 lines, 25.9 M/s, but tail-lock-4, critical section, 4.4 us instead of 3.4.
 *
 * What the rows buy (the names of measurements are those of bench/rows.c):
 *     SpinLock          growing gaps: 40 cache lines move for an acquire instead of 129, on the lab's 64 processors
 *     QueuedLock        waiters sleep, so the host runs the one whose turn it is
 *     NextInLine        a handoff to a spinning waiter costs a tenth of one to a sleeper
 *     PushLock          rare checks leave the line with a far owner: mutex-2 on Intel Xeon, 16 M/s instead of 6 to 8. The
 *                       own SpinCount of a critical section is added to NT's: mutex-16, 18.9 M/s instead of 13.0
 *                       Gaps by a line's transfer time: mutex-2 on far lines of AMD EPYC, family 26, 25.3 M/s instead of 17.6
 *     NearPushLock      frequent ones take over from a near owner at once: mutex-2, SRW lock, 45.0 M/s instead of 28.7
 *     Object            the spin for a reply: an event round trip between two cores in 0.35 us instead of 35
 *     QueueEntry        the same; gaps leave the line to the threads that insert
 *     Address           NT's count: a change that comes soon is one cache line away, without the bucket's lock
 *     SharedLock        yields: otherwise a round trip of two processes on one processor takes 1.6 times that of a futex
 *     Barrier           the documented SpinCount of the barrier
 *     FarObject         Other with shorter first gaps: with far lines two threads of a queue spend most of the time outside its lock,
 *                       waiting for the lines of entries (port-1x1: 128 ns instead of 179). With near lines the gaps of Other are
 *                       better: queue-1x1, 43 ns instead of 54
 *     Retry             a first gap of a hundred operations, in which the other thread has the list's head for itself; with 344
 *                       cycles, stack-2 takes 52 ns with far lines and 30 with near ones, instead of 24 and 22
 *     Interrupt         a running target takes the interrupt at once, so the sender seldom sleeps
 *     Other             there is no waker, and naps let the other thread run
 *     Asleep            no spin, which would only delay the host: the wait is long
 */
#ifndef INTERLOCK_KE_PARK_H
#define INTERLOCK_KE_PARK_H

#include "irql.h"

typedef enum _KI_PARK_USE {
    KiParkForSpinLock,        /* spinlocks, locks of the kernel's own, processors that wait for each other */
    KiParkForQueuedLock,      /* in a queue of processors that do not all run at a time */
    KiParkForNextInLine,      /* next in that queue; or anywhere in it, with a host processor for every processor */
    KiParkForPushLock,        /* and SRW locks, fast mutexes, resources; critical sections, in addition to their SpinCount */
    KiParkForNearPushLock,    /* the same with a near owner */
    KiParkForObject,          /* dispatcher objects, alerts */
    KiParkForQueueEntry,
    KiParkForAddress,         /* address waits, condition variables */
    KiParkForSharedLock,      /* the lock of a file of shared objects: its holder may be the waker, preempted by this thread */
    KiParkForBarrier,         /* spins for the barrier's own SpinCount */
    KiParkForRetry,           /* a compare-exchange that another thread won: lists */
    KiParkForFarObject,       /* the lock of a dispatcher object with a far owner */
    KiParkForInterrupt,       /* a running thread that takes a host interrupt */
    KiParkForOther,           /* another thread that is about to finish something, without a wake */
    KiParkAsleep,             /* sleeps at once: the wait is long */
    KiParkUses
} KI_PARK_USE;

typedef enum _KI_SPIN_RULE { KiSpinAlways, KiSpinByWaker, KiSpinForReply } KI_SPIN_RULE;

typedef enum _KI_SLEEP_RULE {
    KiSleepElsewhere, /* KiParkUntil returns FALSE, and the caller blocks the thread */
    KiSleepOnWord,    /* until a waker has changed the word */
    KiSleepInNaps     /* there is no waker: a few yields, then naps that grow to 1 ms */
} KI_SLEEP_RULE;

typedef struct _KI_PARK_POLICY {
    ULONG SpinCycles; /* in NT's cycles, as the gaps; only if another processor is available */
    USHORT SpinCyclesPerProcessor; /* in addition: the turns of the waiters ahead, in a queue of all processors */
    USHORT FirstGap;
    USHORT GreatestGap;
    UCHAR GapShift;
    UCHAR Spin; /* KI_SPIN_RULE */
    BOOLEAN ServesInterrupts;
    BOOLEAN Yields; /* a few times before it sleeps */
    UCHAR Sleep; /* KI_SLEEP_RULE */
} KI_PARK_POLICY;

/* 10240, 1024 and 2000 are NT's. */
static const KI_PARK_POLICY KiParkPolicy[KiParkUses] = {
    /*                             spin   each first  most shift         rule   interrupts yields sleep */
    [KiParkForSpinLock]        = {128000,    0,    0, 2048, 6, KiSpinAlways,   TRUE,  FALSE, KiSleepInNaps},
    [KiParkForQueuedLock]      = {  5120,    0,    0,    0, 0, KiSpinAlways,   TRUE,  FALSE, KiSleepOnWord},
    [KiParkForNextInLine]      = { 80000, 2560,    0,    0, 0, KiSpinAlways,   TRUE,  FALSE, KiSleepOnWord},
    [KiParkForPushLock]        = { 10240,    0, 2048, 2048, 0, KiSpinAlways,   FALSE, TRUE,  KiSleepElsewhere},
    [KiParkForNearPushLock]    = { 10240,    0,    0,  256, 0, KiSpinAlways,   FALSE, TRUE,  KiSleepElsewhere},
    [KiParkForObject]          = { 10240,    0,    0,    0, 0, KiSpinForReply, FALSE, FALSE, KiSleepElsewhere},
    [KiParkForQueueEntry]      = { 10240,    0,    0, 1280, 0, KiSpinForReply, FALSE, FALSE, KiSleepElsewhere},
    [KiParkForAddress]         = {  1024,    0,    0,    0, 0, KiSpinByWaker,  FALSE, FALSE, KiSleepElsewhere},
    [KiParkForSharedLock]      = { 10240,    0, 2048, 2048, 0, KiSpinByWaker,  FALSE, TRUE,  KiSleepElsewhere},
    [KiParkForBarrier]         = {  2000,    0,    0,    0, 0, KiSpinAlways,   FALSE, FALSE, KiSleepElsewhere},
    [KiParkForRetry]           = {128000,    0, 5504,22016, 0, KiSpinAlways,   FALSE, FALSE, KiSleepInNaps},
    [KiParkForFarObject]       = {128000,    0,  500, 2000, 0, KiSpinAlways,   FALSE, FALSE, KiSleepInNaps},
    [KiParkForInterrupt]       = { 20000,    0,    0,    0, 0, KiSpinByWaker,  FALSE, FALSE, KiSleepElsewhere},
    [KiParkForOther]           = {128000,    0, 2000, 2000, 0, KiSpinAlways,   FALSE, FALSE, KiSleepInNaps},
    [KiParkAsleep]             = {     0,    0,    0,    0, 0, KiSpinAlways,   FALSE, FALSE, KiSleepOnWord},
};

/* What is left of a wait's stages. Pauses are counted, not cycles. */
typedef struct _KI_PATIENCE {
    ULONG Spins;       /* pauses left */
    ULONG Spun;        /* pauses so far, and the first gap */
    ULONG Gap;         /* pauses before the next check */
    ULONG GreatestGap;
    ULONG Yields;      /* left */
    ULONG Naps;        /* so far */
    BOOLEAN Reply;     /* the spin is one for a reply */
} KI_PATIENCE, *PKI_PATIENCE;

/* Thread may be NULL where the policy does not need it: KiSpinAlways without ServesInterrupts. */
VOID KiBeginPatience(PKI_PATIENCE Patience, PKTHREAD Thread, KI_PARK_USE Use);
VOID KiBeginSpin(PKI_PATIENCE Patience, PKTHREAD Thread, KI_PARK_USE Use); /* the same after KiMaySpin */
VOID KiEndPatience(const KI_PATIENCE *Patience, PKTHREAD Thread, BOOLEAN Done); /* for KiSpinForReply */

/* Of KiParkForPushLock, by the time that a far line takes on this machine. NearInCrowd: the owner may be near, see fairness.h. */
VOID KiStretchGaps(PKI_PATIENCE Patience, BOOLEAN NearInCrowd);

/* Once for each wait. FALSE: a spin would be in vain, or delay the waker. */
FORCEINLINE BOOLEAN KiMaySpin(PKTHREAD Thread, KI_PARK_USE Use)
{
    const KI_PARK_POLICY *Policy = &KiParkPolicy[Use];
    if (Policy->Spin != KiSpinAlways) {
        Thread->HasWaited = TRUE;
    }
    /* relaxed: a hint */
    if (!HalOtherProcessorAvailable() ||
        (Policy->Spin != KiSpinAlways &&
         __atomic_load_n(&Thread->WakerProcessor, __ATOMIC_RELAXED) == HalDispatch.CurrentProcessor() + 1)) {
        if (Policy->Spin == KiSpinForReply) {
            Thread->WokeSleeper = FALSE;
        }
        return FALSE;
    }
    return TRUE;
}

/* For an object with its own spin count: replaces the policy's, after KiBeginPatience. */
FORCEINLINE VOID KiSpinFor(PKI_PATIENCE Patience, ULONG Cycles)
{
    Patience->Spins = Cycles != 0 && HalOtherProcessorAvailable() ? HalSpinsForCycles(Cycles) : 0;
}

/* Pauses, yields or naps before the next check. FALSE: it is time to sleep. */
FORCEINLINE BOOLEAN KiStayAwake(PKI_PATIENCE Patience, PKTHREAD Thread, KI_PARK_USE Use)
{
    const KI_PARK_POLICY *Policy = &KiParkPolicy[Use];
    if (Policy->ServesInterrupts) {
        KiPollInterrupts(Thread);
    }
    if (Patience->Spins != 0) {
        ULONG Pauses = Patience->Gap < Patience->Spins ? Patience->Gap : Patience->Spins;
        Patience->Spins -= Pauses;
        Patience->Spun += Pauses;
        if (Pauses == 1) {
            HalPause();
        } else {
            HalPauseFor(Pauses);
        }
        Pauses = Patience->Spun >> Policy->GapShift;
        Patience->Gap = Pauses == 0 ? 1 : Pauses < Patience->GreatestGap ? Pauses : Patience->GreatestGap;
        return TRUE;
    }
    if (Patience->Yields != 0) {
        Patience->Yields -= 1;
        HalDispatch.Yield();
        return TRUE;
    }
    if (Policy->Sleep == KiSleepInNaps) {
        HalGiveWay(Patience->Naps);
        Patience->Naps += 1;
        return TRUE;
    }
    return FALSE;
}

/* The step after Round earlier steps of a wait with the policy KiParkForOther. */
VOID KiBackOff(ULONG Round);

/*
 * Waits until IsDone(Context). FALSE: the spin and the yields are used up, and the caller blocks the thread. With
 * KiSleepElsewhere the caller has just checked, so the wait begins with a pause.
 */
FORCEINLINE BOOLEAN KiParkUntil(PKTHREAD Thread, KI_PARK_USE Use, BOOLEAN (*IsDone)(PVOID Context), PVOID Context)
{
    KI_PATIENCE Patience;
    BOOLEAN Done = KiParkPolicy[Use].Sleep != KiSleepElsewhere && IsDone(Context);
    if (Done) {
        return TRUE;
    }
    if (KiParkPolicy[Use].Spin != KiSpinAlways && !KiParkPolicy[Use].Yields && KiParkPolicy[Use].Sleep == KiSleepElsewhere) {
        if (!KiMaySpin(Thread, Use)) { /* and there is no other stage */
            return FALSE;
        }
        KiBeginSpin(&Patience, Thread, Use);
    } else {
        KiBeginPatience(&Patience, Thread, Use);
    }
    while (!Done && KiStayAwake(&Patience, Thread, Use)) {
        Done = IsDone(Context);
    }
    if (KiParkPolicy[Use].Spin == KiSpinForReply && Patience.Reply) {
        KiEndPatience(&Patience, Thread, Done);
    }
    return Done;
}

/*
 * Waits until IsDone(*Word, Context), asleep on Word after the policy's spin. FALSE: the deadline has passed. Deadline
 * is called before each sleep; NULL: none. Mark, if not 0, is set in *Word before the thread sleeps: a waker that finds
 * it there has to wake.
 */
FORCEINLINE BOOLEAN KiParkOnWord(PKTHREAD Thread, KI_PARK_USE Use, volatile ULONG *Word, ULONG Mark,
                                 BOOLEAN (*IsDone)(ULONG Value, PVOID Context),
                                 const HAL_DEADLINE *(*Deadline)(PVOID Context), PVOID Context)
{
    static const HAL_DEADLINE NoDeadline = {HalNoDeadline, 0};
    KI_PATIENCE Patience;
    if (KiParkPolicy[Use].SpinCycles != 0) {
        KiBeginPatience(&Patience, Thread, Use);
    }
    for (;;) {
        /* acquire: pairs with the release by which the waker changes the word */
        ULONG Value = __atomic_load_n(Word, __ATOMIC_ACQUIRE);
        if (IsDone(Value, Context)) {
            return TRUE;
        }
        if (KiParkPolicy[Use].SpinCycles != 0 && KiStayAwake(&Patience, Thread, Use)) {
            continue;
        }
        /* seq_cst: before Deadline reads what KiReconsiderDeadline's callers have changed */
        if ((Value & Mark) != Mark &&
            !__atomic_compare_exchange_n(Word, &Value, Value | Mark, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            continue;
        }
        if (!HalDispatch.Wait(Word, Value | Mark, Deadline != NULL ? Deadline(Context) : &NoDeadline)) {
            return FALSE;
        }
    }
}

static inline BOOLEAN KiDiffers(ULONG Value, PVOID Old)
{
    return Value != *(ULONG *)Old;
}

/* Sleeps while *Word is Value. What the waker did before it changed the word is visible afterwards. */
FORCEINLINE VOID KiSleepWhile(volatile ULONG *Word, ULONG Value)
{
    KiParkOnWord(NULL, KiParkAsleep, Word, 0, KiDiffers, NULL, &Value);
}

static inline BOOLEAN KiIsNever(ULONG Value, PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    return Value != 0;
}

static inline const HAL_DEADLINE *KiContextIsDeadline(PVOID Deadline)
{
    return Deadline;
}

/* Sleeps until that interrupt time; there is no waker. */
FORCEINLINE VOID KiSleepUntil(ULONGLONG InterruptTime)
{
    HAL_DEADLINE Deadline = {HalInterruptTime, InterruptTime};
    volatile ULONG Word = 0;
    KiParkOnWord(NULL, KiParkAsleep, &Word, 0, KiIsNever, KiContextIsDeadline, &Deadline);
}

/* Sleeps while *Word is Value; may wake up spuriously. FALSE: the deadline has passed. */
FORCEINLINE BOOLEAN KiSleepShared(volatile ULONG *Word, ULONG Value, const HAL_DEADLINE *Deadline)
{
    return HalWaitShared(Word, Value, Deadline);
}

/* Yields once, without a condition: a turn is over (fairness.h), or the program asks for it. */
FORCEINLINE VOID KiYieldOnce(VOID)
{
    HalDispatch.Yield();
}

/* In NT's cycles, a third of a nanosecond each on every machine. A line of a hardware thread of the same core arrives after about
   75 of them, one of another core after 60 if the two share a cache (AMD EPYC, family 26), and otherwise after 120 to 200 (Intel
   Xeon) or 450 (AMD EPYC, family 25). */
#define KI_NEAR_CYCLES 110
#define KI_MOST_NEAR_LOOKS 7 /* outweigh a slow read, which may have been an interrupt */
#define KI_LOOKS_BETWEEN_TIMED 255

FORCEINLINE BOOLEAN KiIsNear(PKTHREAD Thread)
{
    return Thread->NearLooks != 0;
}

/* The thread has found a lock held and spun. Word: a half of the lock that each owner changes. Only a word that another
   processor has changed since the last read is informative. */
FORCEINLINE VOID KiTimeLook(PKTHREAD Thread, const KI_PATIENCE *Patience, const volatile ULONG *Word)
{
    ULONG Cycles;
    if (Thread->UntimedLooks != 0) {
        Thread->UntimedLooks -= 1;
    } else if (HalTimeLine(Word, Patience->GreatestGap, &Cycles)) {
        Thread->UntimedLooks = KI_LOOKS_BETWEEN_TIMED;
        if (Cycles >= KI_NEAR_CYCLES) {
            Thread->NearLooks -= Thread->NearLooks != 0;
            HalNoteFarLine(Cycles);
        } else {
            Thread->NearLooks += Thread->NearLooks < KI_MOST_NEAR_LOOKS;
        }
    }
}

#endif
