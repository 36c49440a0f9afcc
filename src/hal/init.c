/* init.c: starts the host layer, and forks it. */
#include "halp.h"

HAL_CALLBACKS HalpCallbacks;

static VOID HalpForkPrepare(VOID)
{
    if (HalpCallbacks.ForkPrepare != NULL) {
        HalpCallbacks.ForkPrepare();
    }
}

static VOID HalpForkParent(VOID)
{
    if (HalpCallbacks.ForkParent != NULL) {
        HalpCallbacks.ForkParent();
    }
}

static VOID HalpForkChild(VOID)
{
    HalpDeferFrees(TRUE);
    HalpForkChildThread();
    HalpForkChildClock();
    HalpForkChildKeeper();
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
    }
    pthread_mutex_unlock(&Lock);
}

static VOID HalpComplete(VOID)
{
    HalpStayLoaded();
    HalpInitializeStackTrace();
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
