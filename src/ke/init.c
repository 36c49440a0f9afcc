/* init.c: the start of the kernel, when the library is loaded. */
#include "dispatch.h"

#include "debugdata.h"
#include "dpc.h"
#include "interrupt.h"
#include "queuedlock.h"
#include "trace.h"

#define KI_MAJOR_VERSION 10
#define KI_MINOR_VERSION 0

typedef enum _KI_INITIALIZATION {
    KiNotInitialized,
    KiInitializing,
    KiInitialized
} KI_INITIALIZATION;

BOOLEAN KiVerifierEnabled;
ULONG KiDisableLightWeightSuspend;
static volatile ULONG KiInitializationState; /* KI_INITIALIZATION */

static BOOLEAN KiParseNumber(PCSTR Text, ULONG *Number)
{
    ULONG Value = 0;
    PCSTR Digit = Text;
    while (*Digit >= '0' && *Digit <= '9' && Value <= (MAXULONG - 9) / 10) {
        Value = Value * 10 + (ULONG)(*Digit++ - '0');
    }
    *Number = Value;
    return Digit != Text && *Digit == '\0';
}

ULONG KiReadSetting(PCSTR Name, ULONG Minimum, ULONG Maximum, ULONG Default)
{
    PCSTR Text = HalGetEnvironment(Name);
    ULONG Value;
    if (Text == NULL || Text[0] == '\0') {
        return Default;
    }
    if (!KiParseNumber(Text, &Value) || Value < Minimum || Value > Maximum) {
        HalPrint("interlock: %s=%s is not a number from %u to %u; using %u\n", Name, Text, Minimum, Maximum, Default);
        return Default;
    }
    return Value;
}

static ULONG KiDefaultProcessors(VOID)
{
    ULONG Count = HalProcessorCount();
    return Count < INTERLOCK_MAXIMUM_PROCESSORS ? Count : INTERLOCK_MAXIMUM_PROCESSORS;
}

static VOID KiReadSettings(VOID)
{
    KeNumberProcessors = KiReadSetting("INTERLOCK_PROCESSORS", 1, INTERLOCK_MAXIMUM_PROCESSORS, KiDefaultProcessors());
    KiVerifierEnabled = KiReadSetting("INTERLOCK_VERIFIER", 0, 1, 0) != 0;
    KiDisableLightWeightSuspend = KiReadSetting("INTERLOCK_DISABLE_LIGHTWEIGHT_SUSPEND", 0, 1, 0);
#ifdef INTERLOCK_DEBUG
    KiVerifierEnabled = TRUE;
#endif
}

static VOID KiInitializeProcessor(PKPRCB Prcb, ULONG Number)
{
    Prcb->Number = Number;
    Prcb->Group = (USHORT)(Number / MAXIMUM_PROC_PER_GROUP);
    Prcb->GroupIndex = (UCHAR)(Number % MAXIMUM_PROC_PER_GROUP);
    Prcb->MajorVersion = KI_MAJOR_VERSION;
    Prcb->MinorVersion = KI_MINOR_VERSION;
    Prcb->BuildType = (USHORT)((KiVerifierEnabled ? PRCB_BUILD_DEBUG : 0) |
                               (KeNumberProcessors == 1 ? PRCB_BUILD_UNIPROCESSOR : 0));
    InitializeListHead(&Prcb->WaitListHead);
    KiInitializeDpcData(Prcb);
    KiInitializeLockQueues(Prcb);
    KiProcessorBlock[Number] = Prcb;
}

static VOID KiInitializeProcessors(VOID)
{
    PKPRCB Prcbs = HalAllocate(KeNumberProcessors * sizeof(KPRCB), KI_CACHE_LINE);
    if (Prcbs == NULL) {
        HalPrint("interlock: no memory for %u processors\n", KeNumberProcessors);
        HalAbort();
    }
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        KiInitializeProcessor(&Prcbs[Number], Number);
    }
}

static VOID KiInitialize(VOID)
{
    static const HAL_CALLBACKS Callbacks = {
        .ThreadExit = KiThreadExit,
        .Interrupt = KiHostInterrupt,
        .ForkPrepare = KiForkPrepare,
        .ForkParent = KiForkParent,
        .ForkChild = KiForkChild,
    };
    HalInitialize(&Callbacks);
    KiReadSettings();
    KiInitializeProcessors();
    KiInitializeInterrupts();
    KiInitializeCallDpc();
    KiInitialProcess.ProcessId = HalCurrentProcessId();
    KiDispatcherFence = !HalBarrierAllThreads();
    KdInitSystem();
    KTRACE_INITIALIZE();
}

/* First among the constructors; one of another library that calls in earlier gets here through KiAdoptThread. */
__attribute__((constructor(101))) VOID KiInitializeSystem(VOID)
{
    ULONG State = KiNotInitialized;
    if (__atomic_compare_exchange_n(&KiInitializationState, &State, KiInitializing, FALSE, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE)) {
        KiInitialize();
        /* release: pairs with the acquires above and below */
        __atomic_store_n(&KiInitializationState, KiInitialized, __ATOMIC_RELEASE);
    }
    for (ULONG Round = 0; __atomic_load_n(&KiInitializationState, __ATOMIC_ACQUIRE) != KiInitialized; Round++) {
        HalLongSpin(Round);
    }
}
