/* init.c: the start of the kernel, when the library is loaded. */
#include "debugdata.h"
#include "dispatch.h"
#include "irql.h"
#include "lockorder.h"
#include "park.h"
#include "spinlock.h"

#include "../trace/trace.h"

#include <string.h>

/* The block that a debugger finds first. */

extern const KD_ROOT __start_interlock_kd[] __attribute__((visibility("hidden")));
extern const KD_ROOT __stop_interlock_kd[] __attribute__((visibility("hidden")));

KD_DEBUGGER_DATA KdDebuggerDataBlock = {
    .Magic = KD_DEBUGGER_DATA_MAGIC,
    .Self = &KdDebuggerDataBlock,
    .Size = sizeof(KD_DEBUGGER_DATA),
    .Version = INTERLOCK_VERSION,
    .FirstRoot = __start_interlock_kd,
    .EndOfRoots = __stop_interlock_kd,
};

KD_REGISTER_ROOT(KiThreadChunk);
KD_REGISTER_ROOT(KiThreadSlotsUsed);
KD_REGISTER_ROOT(KiProcessorBlock);
KD_REGISTER_ROOT(KeNumberProcessors);
KD_REGISTER_ROOT(KiInitialProcessSlot);
KD_REGISTER_ROOT(KiForkDepth);
KD_REGISTER_ROOT(KiVerifierEnabled);

/* The start. */

#define KI_MAJOR_VERSION 10
#define KI_MINOR_VERSION 0

/*
 * Initialization. Every layer registers its initializers (KI_INITIALIZER). KiInitializeSystem runs them once, layer by
 * layer, whatever the linker's order: from its constructor, or earlier, when the first thread calls in.
 *
 *     0 -> the id of the initializing thread -> KI_INITIALIZED
 *
 * 1. Other threads wait until it is done. The initializing thread may call in again: initialization calls the C library,
 *    which calls malloc, which the program may have replaced by one that uses locks of this library.
 * 2. So nothing before KiSystemIsUsable allocates, and what may allocate comes after it.
 * 3. If the thread calls in again before that, the program has replaced some other function. The thread can neither wait
 *    nor continue.
 */
#define KI_INITIALIZED MAXULONG

static volatile ULONG KiInitializationState;
BOOLEAN KiSystemIsUsable;

extern const KI_INITIALIZER __start_interlock_init[] __attribute__((visibility("hidden")));
extern const KI_INITIALIZER __stop_interlock_init[] __attribute__((visibility("hidden")));

BOOLEAN KiVerifierEnabled;
#ifdef INTERLOCK_HOST
BOOLEAN KiUnderValgrind;
#endif
ULONG KiDisableLightWeightSuspend;

ULONG KiReadSetting(PCSTR Name, ULONG Minimum, ULONG Maximum, ULONG Default)
{
    PCSTR Text = HalGetEnvironment(Name);
    PCSTR Digit = Text;
    ULONG Value = 0;
    if (Text == NULL || Text[0] == '\0') {
        return Default;
    }
    while (*Digit >= '0' && *Digit <= '9' && Value <= (MAXULONG - 9) / 10) {
        Value = Value * 10 + (ULONG)(*Digit++ - '0');
    }
    if (*Digit != '\0' || Value < Minimum || Value > Maximum) {
        HalPrint("interlock: %s=%s is not a number from %u to %u; using %u\n", Name, Text, Minimum, Maximum, Default);
        return Default;
    }
    return Value;
}

static VOID KiReadSettings(VOID)
{
    ULONG Processors = HalProcessorCount();
    Processors = Processors < INTERLOCK_MAXIMUM_PROCESSORS ? Processors : INTERLOCK_MAXIMUM_PROCESSORS;
    KeNumberProcessors = KiReadSetting("INTERLOCK_PROCESSORS", 1, INTERLOCK_MAXIMUM_PROCESSORS, Processors);
    KiVerifierEnabled = KiReadSetting("INTERLOCK_VERIFIER", 0, 1, 0) != 0;
    KiDisableLightWeightSuspend = KiReadSetting("INTERLOCK_DISABLE_LIGHTWEIGHT_SUSPEND", 0, 1, 0);
#ifdef INTERLOCK_DEBUG
    KiVerifierEnabled = TRUE;
#endif
#ifdef INTERLOCK_HOST
    PCSTR Preloaded = HalGetEnvironment("LD_PRELOAD"); /* valgrind adds its part that runs inside the program */
    KiUnderValgrind = Preloaded != NULL && strstr(Preloaded, "/vgpreload_") != NULL;
#endif
    KiOrderReadSettings();
}

static VOID KiInitializeProcessors(VOID)
{
    PKPRCB Prcbs = HalAllocatePages(KeNumberProcessors * sizeof(KPRCB));
    if (Prcbs == NULL) {
        HalPrint("interlock: no memory for %u processors\n", KeNumberProcessors);
        HalAbort();
    }
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        PKPRCB Prcb = &Prcbs[Number];
        Prcb->Number = Number;
        Prcb->Group = (USHORT)(Number / MAXIMUM_PROC_PER_GROUP);
        Prcb->GroupIndex = (UCHAR)(Number % MAXIMUM_PROC_PER_GROUP);
        Prcb->MajorVersion = KI_MAJOR_VERSION;
        Prcb->MinorVersion = KI_MINOR_VERSION;
        Prcb->BuildType = (USHORT)((KiVerifierEnabled ? PRCB_BUILD_DEBUG : 0) |
                                   (KeNumberProcessors == 1 ? PRCB_BUILD_UNIPROCESSOR : 0));
        KiInitializeDpcs(Prcb);
        KiInitializeLockQueues(Prcb);
        KiProcessorBlock[Number] = Prcb;
    }
}

#ifdef INTERLOCK_DEBUG
/* Requirement 5 of fork.c. */
static VOID KiCheckHeapUse(VOID)
{
    PKTHREAD Thread = HalCurrentThread;
    /* relaxed: the forking thread itself is in sections, with the heap's lock */
    if (Thread != NULL && Thread->DispatcherDepth != 0 && __atomic_load_n(&KiForkPending, __ATOMIC_RELAXED) == 0) {
        HalPrint("interlock: the heap is used inside a dispatcher section\n");
        HalAbort();
    }
}
#endif

static VOID KiInitialize(VOID)
{
    static const HAL_CALLBACKS Callbacks = {
        .ThreadExit = KiThreadExit,
        .Interrupt = KiHostInterrupt,
        .ForkPrepare = KiForkPrepareWithHooks,
        .ForkParent = KiForkParentWithHooks,
        .ForkParentLate = KiForkParentLate,
        .ForkChild = KiForkChild,
        .ForkChildLate = KiForkChildLate,
#ifdef INTERLOCK_DEBUG
        .HeapUse = KiCheckHeapUse,
#endif
    };
    HalInitialize(&Callbacks);
    KiReadSettings();
    KiInitializeProcessors();
    KiInitializeInterrupts();
    KiInitializeCallDpc();
    KiInitialProcess.ProcessId = HalCurrentProcessId();
    KiDispatcherFence = !HalBarrierAllThreads();
    KdDebuggerDataBlock.LayoutHash = KdpLayoutHash();
    KdDebuggerDataBlock.Ready = TRUE; /* the roots are valid from now on */
}
KI_INITIALIZER(KiInitializeKernel, KiInitialize);

static VOID KiInitializeLayers(VOID)
{
    for (ULONG Layer = 0; Layer < KiInitializeLayerCount; Layer++) {
        for (const KI_INITIALIZER *Entry = __start_interlock_init; Entry != __stop_interlock_init; Entry++) {
            if (Entry->Layer == Layer) {
                Entry->Routine();
            }
        }
    }
    KiSystemIsUsable = TRUE;
    HalCompleteInitialization();
    KTRACE_INITIALIZE();
    KiInitializeFaults();
}

static VOID KiAwaitInitialization(ULONG ThreadId)
{
    ULONG State;
    /* acquire: pairs with the release in KiInitializeSystem */
    for (ULONG Round = 0; (State = __atomic_load_n(&KiInitializationState, __ATOMIC_ACQUIRE)) != KI_INITIALIZED; Round++) {
        if (State != ThreadId) {
            KiBackOff(Round);
        } else if (KiSystemIsUsable) {
            return;
        } else {
            HalPrint("interlock: called by a function that its own initialisation calls. Of the C library's functions, "
                     "only malloc and related functions may be replaced by versions that use Interlock\n");
            HalAbort();
        }
    }
}

/* Before the constructors of the program, which begin at 101. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
#endif
__attribute__((constructor(100))) VOID KiInitializeSystem(VOID)
{
    ULONG ThreadId = HalCurrentThreadId();
    ULONG State = 0;
    /* relaxed: the data to publish is stored below */
    if (__atomic_compare_exchange_n(&KiInitializationState, &State, ThreadId, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        KiInitializeLayers();
        /* release: pairs with the acquire in KiAwaitInitialization */
        __atomic_store_n(&KiInitializationState, KI_INITIALIZED, __ATOMIC_RELEASE);
    } else {
        KiAwaitInitialization(ThreadId);
    }
}
