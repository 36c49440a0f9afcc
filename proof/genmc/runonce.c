/*
 * runonce.c: THREADS threads begin. One at a time initializes; the first attempt fails if FAILS is set, and then another
 * thread tries. All see what the initialization did, and the same context.
 */
#include "shim.h"

#ifndef THREADS
#define THREADS 3
#endif
#ifndef FAILS
#define FAILS 0
#endif

struct _KTHREAD {
    int Unused;
};

//! take RtlRunOnceBeginInitialize RtlRunOnceComplete
//! fault 1 RtlpChangeRunOnce: __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE => __ATOMIC_RELAXED, __ATOMIC_RELAXED
//! fault 2 RtlRunOnceComplete: Waiter = Older => Waiter = NULL
//! fault 3 RtlpRunOnceBegin: if (RtlpChangeRunOnce(RunOnce, &Word, Underway)) => if (RtlpChangeRunOnce(RunOnce, &Word, Underway), TRUE)

static RTL_RUN_ONCE once;
static int attempts;
static int data;

static void *body(void *argument)
{
    PVOID context = NULL;
    (void)argument;
    while (RtlRunOnceBeginInitialize(&once, 0, &context) == STATUS_PENDING) {
        NTSTATUS status;
        attempts += 1;
        if (attempts <= FAILS) {
            status = RtlRunOnceComplete(&once, RTL_RUN_ONCE_INIT_FAILED, NULL);
        } else {
            data = 7;
            status = RtlRunOnceComplete(&once, 0, &data);
        }
        assert(status == STATUS_SUCCESS);
    }
    assert(context == &data && data == 7);
    return NULL;
}

static void setup(void)
{
    once.Ptr = NULL;
    attempts = 0;
    data = 0;
}

static void finish(void)
{
    assert(attempts == FAILS + 1);
}

int main(void)
{
    static SHIM_BODY *const bodies[SHIM_MOST] = {body, body, body, body};
    shim_run(THREADS, bodies, setup, finish);
    return 0;
}
