/* init.c: starts the host layer, and forks it. */
#include "halp.h"

#include <sys/random.h>

HAL_CALLBACKS HalpCallbacks;

/*
 * Fork. After a fork, handlers run in the order in which they were registered. An allocator that locks its heap over the
 * fork may have registered its own after ours: ours must not use the heap, nor stop the thread. The late handlers are
 * registered with the first thread, long after the allocator has registered its own. Without them, the remaining work
 * waits for the thread's next call.
 */
HALP_THREAD_LOCAL BOOLEAN HalpForkHasLateHandlers; /* of the fork in progress */

static VOID HalpForkPrepareLate(VOID)
{
    HalpForkHasLateHandlers = TRUE;
}

static VOID HalpForkParentLate(VOID)
{
    HalpForkHasLateHandlers = FALSE;
    if (HalpCallbacks.ForkParentLate != NULL) {
        HalpCallbacks.ForkParentLate();
    }
}

static VOID HalpForkChildLate(VOID)
{
    HalpForkHasLateHandlers = FALSE;
    if (HalpCallbacks.ForkChildLate != NULL) {
        HalpCallbacks.ForkChildLate();
    }
}

VOID HalpRegisterLateForkHandlers(VOID)
{
    (VOID)pthread_atfork(HalpForkPrepareLate, HalpForkParentLate, HalpForkChildLate);
}

static VOID HalpForkPrepare(VOID)
{
    if (HalpCallbacks.ForkPrepare != NULL) {
        HalpCallbacks.ForkPrepare();
    }
}

static VOID HalpForkParent(VOID)
{
    if (HalpCallbacks.ForkParent != NULL) {
        HalpCallbacks.ForkParent(HalpForkHasLateHandlers);
    }
}

static VOID HalpForkChild(VOID)
{
    HalpDeferFrees(TRUE);
    HalpForkChildThread();
    HalpForkChildClock();
    HalpCloseKeeper(); /* the parent uses it, and its guard thread sleeps while the child has the writing end */
    HalpForkChildLibc();
    if (HalpCallbacks.ForkChild != NULL) {
        HalpCallbacks.ForkChild();
    }
    HalpDeferFrees(FALSE);
}

VOID HalInitialize(const HAL_CALLBACKS *Callbacks)
{
    HALP_HOST_CALLS;
    static pthread_mutex_t Lock = PTHREAD_MUTEX_INITIALIZER;
    static BOOLEAN Initialized;

    pthread_mutex_lock(&Lock);
    if (!Initialized) {
        Initialized = TRUE;
        HalpCallbacks = *Callbacks;
        HalpInitializeClocks();
        HalpInitializeProcessors();
        HalpInitializeThreads();
        HalpInitializeInterrupt();
        HalpInitializeBarrier();
        HalpInitializeSections();
    }
    pthread_mutex_unlock(&Lock);
}

static VOID HalpComplete(VOID)
{
    HalpStayLoaded();
    HalpInitializeStackTrace();
    HalpInitializeSizes();
    if (pthread_atfork(HalpForkPrepare, HalpForkParent, HalpForkChild) != 0) {
        HalPrint("interlock: the host refuses fork handlers\n");
        HalAbort();
    }
}

VOID HalCompleteInitialization(VOID)
{
    static pthread_once_t Once = PTHREAD_ONCE_INIT;

    pthread_once(&Once, HalpComplete);
}

/* Cryptographically random bits. */

BOOLEAN HalQueryRandom(PVOID Buffer, SIZE_T Size)
{
    /* Up to 256 bytes are not interrupted, and before the host has collected any, we do not wait for them. */
    return HalpCall(SYS_getrandom, Buffer, Size, GRND_NONBLOCK) == (LONG_PTR)Size;
}
