/*
 * runonce.c: one-time initialisation, for kernel and user mode. Those who wait do so on events on their stacks. (User mode
 * of NT uses the global keyed event. Its release blocks until the waiter comes: whoever completes would wait for threads
 * that are not yet asleep, and in a forked child for ever for those that stayed behind.)
 *
 *      63                                              2   1   0
 *     +-------------------------------------------------+-------+
 *     |                        0                        | 0   0 |    idle
 *     |      newest waiter's block, on its stack, or 0  | 0   1 |    somebody runs it, others wait
 *     |                        0                        | 1   1 |    any number of threads race to be first
 *     |                     context                     | 1   0 |    done
 *     +-------------------------------------------------+-------+
 *
 * 1. Of those who begin synchronously one is told to run it (STATUS_PENDING), the others wait until it completes. If it
 *    fails the word is idle again and the waiters begin anew, so that one of them runs it.
 * 2. Of those who begin asynchronously all are told to run it, and the first that completes sets the context; the
 *    others get STATUS_UNSUCCESSFUL.
 * 3. Done is for ever, and whoever sees it sees all that the one who completed has done before.
 * 4. A call that does not fit the state or has flags that do not go together changes nothing and says so.
 * 5. Whoever completes takes the chain of waiters with the same compare-exchange that changes the state, and touches
 *    neither the word afterwards nor a block after telling its owner.
 * 6. Zeroed memory is idle. Nothing is allocated.
 */
#include <interlock/ke.h>
#include <interlock/rtl.h>

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
    /* acquire: pairs with the release of who completed, requirement 3 */
    return (ULONG_PTR)__atomic_load_n(&RunOnce->Ptr, __ATOMIC_ACQUIRE);
}

/* release: what was done before completing, and a waiter's block; acquire: their counterparts. On failure *Word is what
   is there now. */
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
    return (PRTLP_RUN_ONCE_WAITER)(Word & ~RTLP_STATE_MASK);
}

/* *Word: what to wait behind. Returns at once if the word is another one by now. */
static VOID RtlpAwaitCompletion(PRTL_RUN_ONCE RunOnce, ULONG_PTR *Word)
{
    RTLP_RUN_ONCE_WAITER Waiter = {.Older = RtlpNewestWaiter(*Word)};
    KeInitializeEvent(&Waiter.Completed, SynchronizationEvent, FALSE);
    if (RtlpChangeRunOnce(RunOnce, Word, (ULONG_PTR)&Waiter | RTLP_SYNC)) {
        KeWaitForSingleObject(&Waiter.Completed, Executive, KernelMode, FALSE, NULL);
        *Word = RtlpReadRunOnce(RunOnce);
    }
}

static VOID RtlpTellWaiters(PRTLP_RUN_ONCE_WAITER Waiter)
{
    while (Waiter != NULL) {
        PRTLP_RUN_ONCE_WAITER Older = Waiter->Older;
        KeSetEvent(&Waiter->Completed, IO_NO_INCREMENT, FALSE);
        Waiter = Older;
    }
}

VOID RtlRunOnceInitialize(PRTL_RUN_ONCE RunOnce)
{
    __atomic_store_n(&RunOnce->Ptr, NULL, __ATOMIC_RELEASE);
}

static BOOLEAN RtlpMayBegin(ULONG Flags)
{
    return Flags == 0 || Flags == RTL_RUN_ONCE_CHECK_ONLY || Flags == RTL_RUN_ONCE_ASYNC;
}

extern inline NTSTATUS RtlRunOnceBeginInitialize(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context);

NTSTATUS RtlpRunOnceBegin(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context)
{
    ULONG_PTR Running = Flags & RTL_RUN_ONCE_ASYNC ? RTLP_ASYNC : RTLP_SYNC;
    ULONG_PTR Word = RtlpReadRunOnce(RunOnce);
    if (!RtlpMayBegin(Flags)) {
        return STATUS_INVALID_PARAMETER_2;
    }
    while ((Word & RTLP_STATE_MASK) != RTLP_DONE) {
        if (Flags & RTL_RUN_ONCE_CHECK_ONLY) {
            return STATUS_UNSUCCESSFUL;
        }
        if (Word == RTLP_IDLE) {
            if (RtlpChangeRunOnce(RunOnce, &Word, Running)) {
                return STATUS_PENDING;
            }
        } else if ((Word & RTLP_STATE_MASK) != Running) {
            return STATUS_INVALID_PARAMETER_2;
        } else if (Running == RTLP_ASYNC) {
            return STATUS_PENDING;
        } else {
            RtlpAwaitCompletion(RunOnce, &Word);
        }
    }
    if (Context != NULL) {
        *Context = (PVOID)(Word & ~RTLP_STATE_MASK);
    }
    return STATUS_SUCCESS;
}

static BOOLEAN RtlpMayComplete(ULONG Flags)
{
    return Flags == 0 || Flags == RTL_RUN_ONCE_ASYNC || Flags == RTL_RUN_ONCE_INIT_FAILED;
}

/* What completing does to a word in this state: STATUS_SUCCESS, or why nothing. */
static NTSTATUS RtlpCheckCompletion(ULONG_PTR Word, ULONG_PTR Running)
{
    ULONG_PTR State = Word & RTLP_STATE_MASK;
    if (State == Running) {
        return STATUS_SUCCESS;
    }
    return State == RTLP_SYNC || State == RTLP_ASYNC ? STATUS_INVALID_PARAMETER_2 : STATUS_UNSUCCESSFUL;
}

NTSTATUS RtlRunOnceComplete(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID Context)
{
    ULONG_PTR Running = Flags & RTL_RUN_ONCE_ASYNC ? RTLP_ASYNC : RTLP_SYNC;
    ULONG_PTR Result = Flags & RTL_RUN_ONCE_INIT_FAILED ? RTLP_IDLE : (ULONG_PTR)Context | RTLP_DONE;
    ULONG_PTR Word = RtlpReadRunOnce(RunOnce);
    NTSTATUS Status;
    if (!RtlpMayComplete(Flags)) {
        return STATUS_INVALID_PARAMETER_2;
    }
    if (((ULONG_PTR)Context & RTLP_STATE_MASK) != 0 || ((Flags & RTL_RUN_ONCE_INIT_FAILED) && Context != NULL)) {
        return STATUS_INVALID_PARAMETER;
    }
    do {
        Status = RtlpCheckCompletion(Word, Running);
    } while (Status == STATUS_SUCCESS && !RtlpChangeRunOnce(RunOnce, &Word, Result));
    if (Status == STATUS_SUCCESS && Running == RTLP_SYNC) {
        RtlpTellWaiters(RtlpNewestWaiter(Word));
    }
    return Status;
}

/* A routine that succeeds with a context that cannot be kept has failed. */
static NTSTATUS RtlpRunAndComplete(PRTL_RUN_ONCE RunOnce, PRTL_RUN_ONCE_INIT_FN InitFn, PVOID Parameter, PVOID *Context)
{
    PVOID Result = NULL;
    NTSTATUS Status = STATUS_UNSUCCESSFUL;
    if (InitFn(RunOnce, Parameter, &Result)) {
        Status = RtlRunOnceComplete(RunOnce, 0, Result);
    }
    if (!NT_SUCCESS(Status)) {
        RtlRunOnceComplete(RunOnce, RTL_RUN_ONCE_INIT_FAILED, NULL);
    } else if (Context != NULL) {
        *Context = Result;
    }
    return Status;
}

NTSTATUS RtlRunOnceExecuteOnce(PRTL_RUN_ONCE RunOnce, PRTL_RUN_ONCE_INIT_FN InitFn, PVOID Parameter, PVOID *Context)
{
    NTSTATUS Status = RtlRunOnceBeginInitialize(RunOnce, 0, Context);
    return Status == STATUS_PENDING ? RtlpRunAndComplete(RunOnce, InitFn, Parameter, Context) : Status;
}
