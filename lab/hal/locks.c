/*
 * locks.c: proven locks and sleeps as single steps (--abstract-locks).
 *
 * A thread that finds a lock held looks, tries, fails and spins, and a thread that is about to sleep marks its word, reads its
 * deadline again, sleeps, and is woken or was passed by. None of this changes anything but the thread's own position, and each position
 * multiplies the states of the other threads. With --abstract-locks these are single steps:
 *
 *     acquisition    of a spinlock, a KI_LOCK, or an object's lock bit: a step that is possible while the lock is free, and takes it
 *     sleep          of a thread whose wait is committed: a step that is possible once WakeWord is KI_WOKEN; or the timeout
 *
 * The word keeps its meaning and its place. Everything else runs unchanged: releases, attempts that may fail (KeTryToAcquire...,
 * a WaitAll that finds a lock held), accesses of a locked word by others, the signaler's exchange of WakeWord. So the wait engine itself
 * can be explored over it.
 *
 * Why that loses nothing:
 * 1. Acquisition. Until the compare-exchange succeeds the thread has only read the word, without acquire, and has written nothing. An
 *    execution with failed attempts differs from one without them in nothing that another thread sees.
 * 2. Order. The step acquires, as the compare-exchange does, and releases nothing. Under c11 it comes after the newest value: the
 *    compare-exchange comes right after the release of the lock or a later change, and every value that is unlocked is the newest or has
 *    been taken by a compare-exchange. (Its own relaxed look before could be old: then the attempt fails.)
 * 3. Sleep. The thread's own mark only tells the signaler whether to wake. A wakeup that was lost would be found where the mark is
 *    explored, in the rows of sleeps; here the signaler's exchange is what ends the sleep. It is acquired, as in KiParkOnWord.
 * 4. The rows of these locks and of the sleep (lab/grid/locks.c, and spinlocks) run without it, and docs/proof.md names for each row over
 *    proven locks how far those were explored.
 * 5. A thread that spins serves the interrupts of its processor (KiParkForSpinLock), or two processors that wait for each other would
 *    deadlock. While the lock is held and such an interrupt is pending, the step is a failed attempt, and the library's own code
 *    continues. The same where the lock belongs to an object that has moved outside, which is never unlocked.
 *
 * For the search an acquisition could not have come before the release of the lock, but before the acquisition that was released
 * (order_acquisition in engine/step.c).
 *
 * 6. A host interrupt runs on a thread that waits for a lock or sleeps, as everywhere, and the wait continues after it.
 * 7. Another thread may change the deadline of a sleeper: a lightweight suspension, or timers that lose their clock. Then the sleep
 *    ends, and from then on that thread sleeps by the library's own code.
 */
#include "labhal.h"

#include "ke/ki.h"
#include "ke/wait.h"

/* Acquisition. */

static ULONG64 LabhalWordOf(const lab_thread *Thread)
{
    return Thread->op.size == sizeof(ULONG64) ? *(volatile ULONG64 *)Thread->op.address : *(volatile ULONG *)Thread->op.address;
}

static bool LabhalIsFree(const lab_thread *Thread)
{
    return (LabhalWordOf(Thread) & (ULONG64)Thread->operand) == 0;
}

/* As KiIsOutside. */
static bool LabhalIsOutside(const lab_thread *Thread)
{
    ULONG64 Word = LabhalWordOf(Thread);

    return Thread->operand == KI_LOCKED && KI_STATE(Word) == (KI_TYPE(Word) == MutantObject ? 2 : -1);
}

/* The processor of a thread that serves its interrupts while it spins; NULL: it does not. */
static PKPRCB LabhalServedBy(const lab_thread *Thread)
{
    struct _KTHREAD *Object = Thread == lab->current ? HalCurrentThread : LabhalThreadObject(Thread);

    return Object != NULL && Object->Irql < IPI_LEVEL && Thread->operand != KI_LOCKED ? Object->Prcb : NULL;
}

static bool LabhalMayAcquire(const lab_thread *Thread)
{
    PKPRCB Prcb = LabhalServedBy(Thread);

    return LabhalIsFree(Thread) || LabhalIsOutside(Thread) ||
           (Prcb != NULL && (*(volatile ULONG_PTR *)&Prcb->Owner & KI_PRCB_INTERRUPT) != 0);
}

static void LabhalDescribeLock(const lab_thread *Thread, char *Buffer, size_t Size)
{
    LabhalDescribeWord(Thread, "the lock in", Buffer, Size);
}

static const lab_gate LabhalLockGate = {LabhalMayAcquire, LabhalDescribeLock};

static __attribute__((noinline)) ULONG64 LabhalAcquire(uintptr_t Word, ULONG Size, ULONG64 Bit, uintptr_t Pc)
{
    lab_thread *Thread = lab->current;
    ULONG64 Taken = 0;

    lab_step_announce(Thread, OP_CALL, Word, Pc);
    Thread->op.size = (uint8_t)Size;
    Thread->op.order = __ATOMIC_ACQUIRE;
    Thread->op.acquires = true;
    Thread->operand = Bit;
    Thread->desired = 0;
    lab_step_access(Thread, lab_cell_find(Word, Size), true);
    PKPRCB Prcb = LabhalServedBy(Thread);
    if (Prcb != NULL) {
        lab_step_access(Thread, lab_cell_find((uintptr_t)&Prcb->Owner, sizeof(Prcb->Owner)), false);
    }
    lab_gate_pass(Thread, &LabhalLockGate, 0);
    if (LabhalIsFree(Thread)) {
        Taken = (ULONG64)lab_atomic_lock(Thread, Word, Size, Bit, Pc);
        lab->abstracted |= ABSTRACT_LOCKS;
        lab_report_event(OP_RMW, Word, Size, __ATOMIC_ACQUIRE, Taken & ~Bit, Taken, false, Pc);
    } else {
        Thread->op.access[0].write = false;
        lab_step_make(Thread, Thread->op.accesses, Thread->op.access);
        lab_atomic_observe(Thread, Thread->op.access[0].cell);
    }
    lab_cycle_sweep();
    return Taken;
}

ULONG64 HalSimulateAcquire(volatile VOID *Word, ULONG Size, ULONG64 Bit)
{
    return LabhalIsOverLocks() ? LabhalAcquire((uintptr_t)Word, Size, Bit, LABHAL_CALLER) : 0;
}

/* Sleep. */

static ULONG LabhalSleepsForReal[MAX_THREADS];

static bool LabhalIsReached(const lab_thread *Thread)
{
    return *(volatile ULONG *)Thread->op.address == (ULONG)Thread->operand;
}

static bool LabhalMayEndSleep(const lab_thread *Thread)
{
    return LabhalIsReached(Thread) || *(volatile ULONG *)&LabhalSleepsForReal[Thread->number] != 0;
}

static void LabhalDescribeSleep(const lab_thread *Thread, char *Buffer, size_t Size)
{
    bool Satisfied = false;

    if (!lab_describe_wait(&lab->run.threads[Thread->number], Buffer, Size, &Satisfied)) {
        LabhalDescribeLock(Thread, Buffer, Size);
    }
}

static const lab_gate LabhalSleepGate = {LabhalMayEndSleep, LabhalDescribeSleep};

static __attribute__((noinline)) BOOLEAN LabhalSleepUntil(uintptr_t Word, ULONG Value, uint64_t Deadline, PBOOLEAN Reached,
                                                          uintptr_t Pc)
{
    lab_thread *Thread = lab->current;
    uintptr_t Real = (uintptr_t)&LabhalSleepsForReal[Thread->number];
    uint32_t Cell = lab_cell_find(Word, sizeof(Value)), RealCell = lab_cell_find(Real, sizeof(ULONG));

    LabhalCheckSleep(Pc);
    lab->abstracted |= ABSTRACT_SLEEPS;
    lab_step_announce(Thread, OP_CALL, Word, Pc);
    Thread->op.size = sizeof(Value);
    Thread->operand = Value;
    Thread->desired = 0;
    lab_step_access(Thread, Cell, false);
    lab_step_access(Thread, RealCell, false);
    if (Deadline != 0) {
        lab_step_access(Thread, lab_cell_pseudo(PSEUDO_CLOCK), true);
    }
    bool Passed = lab_gate_pass(Thread, &LabhalSleepGate, Deadline);
    *Reached = LabhalIsReached(Thread);
    lab_step_make(Thread, Passed ? 2 : Thread->op.accesses, Thread->op.access);
    if (Passed && *Reached) {
        lab_atomic_acquire(Thread, Cell);
    } else {
        *Reached = FALSE;
        lab_atomic_observe(Thread, Cell);
    }
    lab_report_event(Passed ? OP_RESUME : OP_TIMEOUT, Word, sizeof(Value), 0, 0, 0, false, Pc);
    lab_cycle_sweep();
    return !Passed || *Reached;
}

BOOLEAN HalSimulateSleep(volatile ULONG *Word, ULONG Value, const HAL_DEADLINE *Deadline, PBOOLEAN Reached)
{
    return LabhalIsOverLocks() &&
           LabhalSleepUntil((uintptr_t)Word, Value, LabhalDeadline(Deadline->Clock, Deadline->Time), Reached, LABHAL_CALLER);
}

VOID LabhalSleepForReal(struct _KTHREAD *Object, uintptr_t Pc)
{
    for (uint32_t Number = 0; Number < lab->run.thread_count; Number += 1) {
        const lab_thread *Thread = &lab->run.threads[Number];

        if ((Thread == lab->current ? HalCurrentThread : LabhalThreadObject(Thread)) == Object) {
            lab_atomic_store((uintptr_t)&LabhalSleepsForReal[Number], sizeof(ULONG), TRUE, __ATOMIC_RELEASE, Pc);
        }
    }
}

VOID __real_KiReconsiderDeadline(PKTHREAD Thread);
VOID __wrap_KiReconsiderDeadline(PKTHREAD Thread);
VOID __wrap_KiReconsiderDeadline(PKTHREAD Thread)
{
    if (LabhalIsOverLocks()) {
        LabhalSleepForReal(Thread, LABHAL_CALLER);
    }
    __real_KiReconsiderDeadline(Thread);
}
