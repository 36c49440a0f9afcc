/*
 * runonce.c: call-once initialization, for kernel and user mode. Waiters sleep on events on their stacks. (User mode of NT
 * uses the global keyed event. Its release blocks until the waiter arrives: completing would wait for threads that are
 * not yet asleep, and in a forked child forever for those that stayed behind.)
 *
 *      63          48 47                               2   1   0
 *     +--------------------------------------------------+-------+
 *     |                        0                         | 0   0 |    idle
 *     +--------------+-----------------------------------+-------+
 *     |   fork tag   | newest waiter's block, or all 0   | 0   1 |    one thread runs it, others wait
 *     +--------------+-----------------------------------+-------+
 *     |                        0                         | 1   1 |    any number of threads race to be first
 *     +--------------------------------------------------+-------+
 *     |                     context                      | 1   0 |    done
 *     +--------------------------------------------------+-------+
 *
 * 1. One of the threads that begin synchronously runs it (STATUS_PENDING), the others wait until it completes. If it
 *    fails the word is idle again and the waiters start over, so that one of them runs it.
 * 2. All threads that begin asynchronously run it, and the first to complete sets the context; the others get
 *    STATUS_UNSUCCESSFUL.
 * 3. Done is final, and a thread that sees it sees everything that was done before the completion.
 * 4. A call that does not fit the state, or with incompatible flags, changes nothing and fails.
 * 5. The completion takes the chain of waiters with the same compare-exchange that changes the state, and accesses neither
 *    the word afterwards nor a block after its wakeup.
 * 6. Zeroed memory is idle. Nothing is allocated.
 * 7. In a forked child an inherited chain (ke/fork.h) is empty. If the forking thread runs it, it completes in the child.
 */
#include <interlock/ke.h>
#include <interlock/rtl.h>

#include "../ke/fork.h"

#define RTLP_STATE_MASK RTLP_RUN_ONCE_STATE
#define RTLP_IDLE 0
#define RTLP_SYNC 1
#define RTLP_DONE RTLP_RUN_ONCE_DONE
#define RTLP_ASYNC 3

C_ASSERT(RTLP_STATE_MASK == (1 << RTL_RUN_ONCE_CTX_RESERVED_BITS) - 1);

typedef struct _RTLP_RUN_ONCE_WAITER {
    struct _RTLP_RUN_ONCE_WAITER *Older;
    KEVENT Completed;
} RTLP_RUN_ONCE_WAITER, *PRTLP_RUN_ONCE_WAITER;

static ULONG_PTR RtlpReadRunOnce(PRTL_RUN_ONCE RunOnce)
{
    /* acquire: pairs with the release of the completion, requirement 3 */
    return (ULONG_PTR)__atomic_load_n(&RunOnce->Ptr, __ATOMIC_ACQUIRE);
}

/* release: what was done before completing, and a waiter's block; acquire: their counterparts. On failure *Word is the
   current value. */
static BOOLEAN RtlpChangeRunOnce(PRTL_RUN_ONCE RunOnce, ULONG_PTR *Word, ULONG_PTR New)
{
    PVOID Expected = (PVOID)*Word;
    BOOLEAN Changed =
        __atomic_compare_exchange_n(&RunOnce->Ptr, &Expected, (PVOID)New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    *Word = (ULONG_PTR)Expected;
    return Changed;
}

static PRTLP_RUN_ONCE_WAITER RtlpNewestWaiter(ULONG_PTR Word)
{
    return KiIsInherited(Word) ? NULL : (PRTLP_RUN_ONCE_WAITER)(Word & ~(RTLP_STATE_MASK | KI_FORK_TAG_MASK));
}

VOID RtlRunOnceInitialize(PRTL_RUN_ONCE RunOnce)
{
    __atomic_store_n(&RunOnce->Ptr, NULL, __ATOMIC_RELEASE);
}

extern inline NTSTATUS RtlRunOnceBeginInitialize(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context);

NTSTATUS RtlpRunOnceBegin(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context)
{
    ULONG_PTR Underway = Flags & RTL_RUN_ONCE_ASYNC ? RTLP_ASYNC : RTLP_SYNC;
    ULONG_PTR Word = RtlpReadRunOnce(RunOnce);
    if (Flags != 0 && Flags != RTL_RUN_ONCE_CHECK_ONLY && Flags != RTL_RUN_ONCE_ASYNC) {
        return STATUS_INVALID_PARAMETER_2;
    }
    while ((Word & RTLP_STATE_MASK) != RTLP_DONE) {
        if (Flags & RTL_RUN_ONCE_CHECK_ONLY) {
            return STATUS_UNSUCCESSFUL;
        }
        if (Word == RTLP_IDLE) {
            if (RtlpChangeRunOnce(RunOnce, &Word, Underway)) {
                return STATUS_PENDING;
            }
        } else if ((Word & RTLP_STATE_MASK) != Underway) {
            return STATUS_INVALID_PARAMETER_2;
        } else if (Underway == RTLP_ASYNC) {
            return STATUS_PENDING;
        } else {
            RTLP_RUN_ONCE_WAITER Waiter = {.Older = RtlpNewestWaiter(Word)};
            KeInitializeEvent(&Waiter.Completed, SynchronizationEvent, FALSE);
            if (RtlpChangeRunOnce(RunOnce, &Word, (ULONG_PTR)&Waiter | KiForkTag | RTLP_SYNC)) {
                KeWaitForSingleObject(&Waiter.Completed, Executive, KernelMode, FALSE, NULL);
                Word = RtlpReadRunOnce(RunOnce);
            }
        }
    }
    if (Context != NULL) {
        *Context = (PVOID)(Word & ~RTLP_STATE_MASK);
    }
    return STATUS_SUCCESS;
}

NTSTATUS RtlRunOnceComplete(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID Context)
{
    ULONG_PTR Underway = Flags & RTL_RUN_ONCE_ASYNC ? RTLP_ASYNC : RTLP_SYNC;
    ULONG_PTR Result = Flags & RTL_RUN_ONCE_INIT_FAILED ? RTLP_IDLE : (ULONG_PTR)Context | RTLP_DONE;
    ULONG_PTR Word = RtlpReadRunOnce(RunOnce);
    if (Flags != 0 && Flags != RTL_RUN_ONCE_ASYNC && Flags != RTL_RUN_ONCE_INIT_FAILED) {
        return STATUS_INVALID_PARAMETER_2;
    }
    if (((ULONG_PTR)Context & RTLP_STATE_MASK) != 0 || ((Flags & RTL_RUN_ONCE_INIT_FAILED) && Context != NULL)) {
        return STATUS_INVALID_PARAMETER;
    }
    do {
        ULONG_PTR State = Word & RTLP_STATE_MASK;
        if (State != Underway) {
            return State == RTLP_SYNC || State == RTLP_ASYNC ? STATUS_INVALID_PARAMETER_2 : STATUS_UNSUCCESSFUL;
        }
    } while (!RtlpChangeRunOnce(RunOnce, &Word, Result));
    if (Underway == RTLP_SYNC && Word != RTLP_SYNC && KiIsTagOfChild(Word)) {
        KiForeignQueue((volatile ULONG_PTR *)(PVOID)&RunOnce->Ptr, Word);
    }
    PRTLP_RUN_ONCE_WAITER Waiter = Underway == RTLP_SYNC ? RtlpNewestWaiter(Word) : NULL;
    while (Waiter != NULL) {
        PRTLP_RUN_ONCE_WAITER Older = Waiter->Older;
        KeSetEvent(&Waiter->Completed, IO_NO_INCREMENT, FALSE);
        Waiter = Older;
    }
    return STATUS_SUCCESS;
}

/* The routine gets the caller's own pointer, with the value that the caller stored there. If it succeeds with a context
   that cannot be stored, it has failed. */
NTSTATUS RtlRunOnceExecuteOnce(PRTL_RUN_ONCE RunOnce, PRTL_RUN_ONCE_INIT_FN InitFn, PVOID Parameter, PVOID *Context)
{
    NTSTATUS Status = RtlRunOnceBeginInitialize(RunOnce, 0, Context);
    if (Status != STATUS_PENDING) {
        return Status;
    }
    Status = STATUS_UNSUCCESSFUL;
    if (InitFn(RunOnce, Parameter, Context)) {
        Status = RtlRunOnceComplete(RunOnce, 0, Context != NULL ? *Context : NULL);
    }
    if (!NT_SUCCESS(Status)) {
        RtlRunOnceComplete(RunOnce, RTL_RUN_ONCE_INIT_FAILED, NULL);
    }
    return Status;
}
