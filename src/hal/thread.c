/* thread.c: host threads, their ids, their start and their end. */
#include "halp.h"

#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define HOST_NAME_SIZE 16
/* Room for the host's own needs (thread-local storage, signal frames with every vector register) and for routines that
   run on top of an interrupted thread. */
#define SMALLEST_STACK (256 * 1024)

__thread struct _KTHREAD *HalCurrentThread __attribute__((tls_model("initial-exec")));

HALP_THREAD_LOCAL ULONG HalpThreadId;
HALP_THREAD_LOCAL BOOLEAN HalpExitDeferred;
static ULONG HalpProcessId;
static pthread_key_t HalpExitKey;

typedef struct _HALP_START {
    VOID (*Routine)(PVOID);
    PVOID Context;
    CHAR Name[HOST_NAME_SIZE];
} HALP_START;

ULONG HalCurrentThreadId(VOID)
{
    if (HalpThreadId == 0) {
        HalpThreadId = (ULONG)HalpCall(SYS_gettid);
    }
    return HalpThreadId;
}

ULONG HalCurrentProcessId(VOID)
{
    return HalpProcessId;
}

/* Both questions can be answered without the right to do anything to the thread. */
BOOLEAN HalIsThreadOfOtherProcess(ULONG ThreadId)
{
    pid_t Thread = (pid_t)ThreadId;
    if (Thread <= 0 || HalpCall(SYS_tgkill, getpid(), Thread, 0) == 0) {
        return FALSE;
    }
    /* by the system call: a C library that keeps to POSIX refuses to ask for threads */
    return HalpCall(SYS_sched_getscheduler, Thread) >= 0;
}

static VOID *HalpRunThread(VOID *Argument)
{
    HALP_START Start = *(HALP_START *)Argument;

    HalFree(Argument);
    if (Start.Name[0] != '\0') {
        HalpCall(SYS_prctl, PR_SET_NAME, Start.Name);
    }
    HalpUnblockInterrupt();
    Start.Routine(Start.Context);
    return NULL;
}

static int HalpSetStackSize(pthread_attr_t *Attributes, SIZE_T StackSize)
{
    SIZE_T Page = (SIZE_T)sysconf(_SC_PAGESIZE);
    SIZE_T Smallest = SMALLEST_STACK > PTHREAD_STACK_MIN ? SMALLEST_STACK : (SIZE_T)PTHREAD_STACK_MIN;

    if (StackSize == 0) {
        return 0;
    }
    if (StackSize > SIZE_MAX - Page) {
        return ENOMEM;
    }
    StackSize = StackSize < Smallest ? Smallest : StackSize;
    return pthread_attr_setstacksize(Attributes, (StackSize + Page - 1) / Page * Page);
}

static int HalpStartDetached(HALP_START *Start, SIZE_T StackSize)
{
    pthread_attr_t Attributes;
    pthread_t Thread;
    int Error = pthread_attr_init(&Attributes);

    if (Error != 0) {
        return Error;
    }
    pthread_attr_setdetachstate(&Attributes, PTHREAD_CREATE_DETACHED);
    Error = HalpSetStackSize(&Attributes, StackSize);
    if (Error == 0) {
        Error = pthread_create(&Thread, &Attributes, HalpRunThread, Start);
    }
    pthread_attr_destroy(&Attributes);
    return Error;
}

NTSTATUS HalCreateThread(VOID (*StartRoutine)(PVOID), PVOID Context, SIZE_T StackSize, PCSTR Name)
{
    HALP_HOST_CALLS;
    HALP_START *Start = calloc(1, sizeof(*Start));
    int Error;

    if (Start == NULL) {
        return STATUS_NO_MEMORY;
    }
    Start->Routine = StartRoutine;
    Start->Context = Context;
    if (Name != NULL) {
        strncpy(Start->Name, Name, HOST_NAME_SIZE - 1);
    }
    Error = HalpStartDetached(Start, StackSize);
    if (Error == 0) {
        return STATUS_SUCCESS;
    }
    free(Start);
    return Error == ENOMEM ? STATUS_NO_MEMORY : STATUS_INSUFFICIENT_RESOURCES;
}

VOID HalExitThread(VOID)
{
    pthread_exit(NULL);
}

/*
 * The thread's stack may serve another thread once it has been joined, and the host takes for granted that an ended
 * thread has cleared its values: the other one would find them, and its end would call their destructors, ours too.
 */
static VOID HalpForgetValues(VOID)
{
    for (pthread_key_t Key = 0; Key < PTHREAD_KEYS_MAX; Key++) {
        pthread_setspecific(Key, NULL);
    }
}

VOID HalTerminateThread(VOID)
{
    HalpCancelInterruptLater();
    HalpForgetValues();
    for (;;) {
        HalpCall(SYS_exit, 0);
    }
}

/*
 * The host calls the destructors of all keys in rounds, as long as one of them set a value again, a few times. The
 * first call asks for another round, so that other libraries' destructors, which may still call in, come first. A
 * thread does so once: what a late destructor adopts again ends in the very next call, since no further round may come.
 */
static VOID HalpThreadExits(VOID *Thread)
{
    if (!HalpExitDeferred) {
        HalpExitDeferred = TRUE;
        if (pthread_setspecific(HalpExitKey, Thread) == 0) {
            return;
        }
    }
    HalCurrentThread = Thread;
    if (HalpCallbacks.ThreadExit != NULL) {
        HalpCallbacks.ThreadExit(Thread);
    }
    HalCurrentThread = NULL;
    HalpCancelInterruptLater();
}

VOID HalWatchThreadExit(struct _KTHREAD *Thread)
{
    HALP_HOST_CALLS;
    int Error = pthread_setspecific(HalpExitKey, Thread);

    if (Error != 0) {
        HalPrint("interlock: the end of thread %u will not be noticed (error %d)\n", HalCurrentThreadId(), Error);
    }
    HalpUnblockInterrupt();
}

VOID HalpInitializeThreads(VOID)
{
    HalpProcessId = (ULONG)getpid();
    if (pthread_key_create(&HalpExitKey, HalpThreadExits) != 0) {
        HalPrint("interlock: the host has no thread-specific key left\n");
        HalAbort();
    }
}

VOID HalpForkChildThread(VOID)
{
    HalpThreadId = 0;
    HalpProcessId = (ULONG)getpid();
}
