/*
 * fault.c: allocations that fail on purpose.
 *
 * A round fails one allocation: the first one whose call stack has not failed before. A stack is identified by a number
 * computed from the modules and offsets of its innermost frames, so it is the same in every run of the same program.
 * VfNextFault begins a round. With INTERLOCK_FAULTS a round is a run of the program: the file lists the stacks that
 * failed in earlier runs. A stack is written to the file before its allocation fails, so a run that crashes has
 * recorded it.
 *
 *     fault RUN STACK innermost < caller < ...
 *     leak RUN BLOCKS
 *
 * `interlock faults` adds lines of its own: how a run ended. With INTERLOCK_FAULTS_RUN several processes form one run,
 * in which one allocation fails. INTERLOCK_FAULTS_ONLY fails only this stack, each time.
 */
#include "ki.h"

#include <interlock/verifier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KI_STACKS 65536 /* a power of 2 */
#define KI_MOST_STACKS (KI_STACKS / 2)
#define KI_FAULT_FRAMES RTL_NUMBER_OF(((PVF_FAULT)0)->Frames)
#define KI_LONGEST_FAULT_LINE 4096
#define KI_LONGEST_FRAME 320

/* A set of numbers other than 0. */
typedef struct _KI_STACK_SET {
    PULONG64 Slots;
    ULONG Count;
} KI_STACK_SET, *PKI_STACK_SET;

static KI_LOCK KiFaultLock;
static volatile BOOLEAN KiFaultArmed;  /* in this round nothing has failed yet */
static KI_STACK_SET KiFailedStacks;    /* under the lock, like everything below: by stable number, and */
static KI_STACK_SET KiPassedStacks;    /* by addresses of this process: stacks known to be among them */
static VF_FAULT KiFault;
static PCSTR KiFaultFile;              /* NULL: rounds are VfNextFault's */
static ULONG KiFaultRun;
static ULONG64 KiFaultOnly;            /* 0: each stack */

/* FALSE: it is already in the set, or the set is full. A full set never grows, so nothing more fails. */
static BOOLEAN KiAddStack(PKI_STACK_SET Set, ULONG64 Number)
{
    ULONG Slot = (ULONG)(Number ^ Number >> 32) & (KI_STACKS - 1);
    while (Set->Slots[Slot] != 0) {
        if (Set->Slots[Slot] == Number) {
            return FALSE;
        }
        Slot = (Slot + 1) & (KI_STACKS - 1);
    }
    if (Set->Count == KI_MOST_STACKS) {
        return FALSE;
    }
    Set->Slots[Slot] = Number;
    Set->Count += 1;
    return TRUE;
}

static BOOLEAN KiMakeStackSets(VOID)
{
    PKI_STACK_SET Sets[] = {&KiFailedStacks, &KiPassedStacks};
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(Sets); Index++) {
        if (Sets[Index]->Slots == NULL) {
            Sets[Index]->Slots = HalAllocatePages(KI_STACKS * sizeof(ULONG64));
        }
        if (Sets[Index]->Slots == NULL) {
            return FALSE;
        }
        memset(Sets[Index]->Slots, 0, KI_STACKS * sizeof(ULONG64));
        Sets[Index]->Count = 0;
    }
    return TRUE;
}

/* The allocation. */

/* Stably: by modules and offsets, as in every run of the program; else by the addresses in this process. */
static ULONG64 KiHashStack(const VF_FAULT *Fault, BOOLEAN Stably)
{
    ULONG64 Hash = 0xcbf29ce484222325ull;
    for (ULONG Frame = 0; Frame < Fault->FrameCount; Frame++) {
        ULONG64 Value = Stably ? HalQueryStableAddress(Fault->Frames[Frame]) : Fault->Frames[Frame];
        Hash = (Hash ^ Value) * 0x100000001b3ull ^ Hash >> 29;
    }
    return Hash | 1;
}

static VOID KiRecordFault(const VF_FAULT *Fault)
{
    CHAR Line[KI_LONGEST_FAULT_LINE], Name[KI_LONGEST_FRAME];
    int Used = snprintf(Line, sizeof(Line), "fault %u %016llx ", KiFaultRun, Fault->Stack);
    ULONG First = HalCountInternalFrames(Fault->Frames, Fault->FrameCount);
    for (ULONG Frame = First; Frame < Fault->FrameCount && Used < (int)(sizeof(Line) - KI_LONGEST_FRAME - 8); Frame++) {
        if (!HalQueryReturnAddressName(Fault->Frames[Frame], Name, sizeof(Name))) {
            snprintf(Name, sizeof(Name), "?");
        }
        Used += snprintf(Line + Used, sizeof(Line) - (SIZE_T)Used, "%s%s", Frame != First ? " < " : "", Name);
    }
    snprintf(Line + Used, sizeof(Line) - (SIZE_T)Used, "\n");
    if (!HalAppendText(KiFaultFile, Line)) {
        HalPrint("interlock: %s cannot be written: an allocation that fails now fails again in the next run\n", KiFaultFile);
    }
}

/* Under the lock. TRUE: this one fails. */
static BOOLEAN KiChooseFault(PVF_FAULT Fault, ULONG64 Addresses)
{
    if (!KiFaultArmed || !KiAddStack(&KiPassedStacks, Addresses)) {
        return FALSE;
    }
    Fault->Stack = KiHashStack(Fault, TRUE);
    if (KiFaultOnly != 0 ? Fault->Stack != KiFaultOnly : !KiAddStack(&KiFailedStacks, Fault->Stack)) {
        return FALSE;
    }
    Fault->Injected = TRUE;
    Fault->Round = KiFault.Round;
    KiFault = *Fault;
    KiFaultArmed = FALSE;
    return TRUE;
}

/* HalFaultRoutine. Allocations by the library's own threads do not fail. */
static BOOLEAN KiInjectFault(VOID)
{
    VF_FAULT Fault = {.Injected = FALSE};
    PKTHREAD Thread = HalCurrentThread;
    /* relaxed: the lock decides */
    if (!__atomic_load_n(&KiFaultArmed, __ATOMIC_RELAXED) || Thread == NULL || Thread->IsIdleThread) {
        return FALSE;
    }
    Fault.FrameCount = HalCaptureStack(1, Fault.Frames, KI_FAULT_FRAMES);
    KiEnterLocked(&KiFaultLock);
    KiChooseFault(&Fault, KiHashStack(&Fault, FALSE));
    KiExitLocked(&KiFaultLock, Thread);
    if (Fault.Injected && KiFaultFile != NULL) {
        KiRecordFault(&Fault);
    }
    return Fault.Injected;
}

/* A run as a round. */

static VOID KiUseFaultLine(PCSTR Line)
{
    unsigned Run;
    unsigned long long Stack;
    if (sscanf(Line, "fault %u %llx", &Run, &Stack) != 2) {
        return;
    }
    KiAddStack(&KiFailedStacks, Stack);
    if (Run == KiFaultRun && KiFaultRun != 0) {
        KiFaultArmed = FALSE; /* another process of this run had it */
    }
}

VOID KiInitializeFaults(VOID)
{
    PCSTR File = HalGetEnvironment("INTERLOCK_FAULTS");
    PCSTR Only = HalGetEnvironment("INTERLOCK_FAULTS_ONLY");
    if (File == NULL || File[0] == '\0') {
        return;
    }
    if (!KiMakeStackSets()) {
        HalPrint("interlock: no memory for INTERLOCK_FAULTS\n");
        return;
    }
    KiFaultFile = File;
    KiFaultRun = KiReadSetting("INTERLOCK_FAULTS_RUN", 0, MAXULONG / 16, 0);
    KiFaultOnly = Only != NULL ? strtoull(Only, NULL, 16) : 0;
    KiFault.Round = 1;
    KiFaultArmed = TRUE;
    HalReadLines(KiFaultFile, KiUseFaultLine);
    HalFaultRoutine = KiInjectFault;
}

VOID KiNoteLeaks(ULONG64 Blocks)
{
    CHAR Line[64];
    if (KiFaultFile != NULL && Blocks != 0) {
        snprintf(Line, sizeof(Line), "leak %u %llu\n", KiFaultRun, Blocks);
        HalAppendText(KiFaultFile, Line);
    }
}

/* Rounds in one run. */

BOOLEAN VfBeginFaults(VOID)
{
    BOOLEAN Begun;
    PKTHREAD Thread;
    if (KiFaultFile != NULL) {
        return FALSE;
    }
    Thread = KiEnterLocked(&KiFaultLock);
    KiFaultArmed = FALSE;
    memset(&KiFault, 0, sizeof(KiFault));
    Begun = KiMakeStackSets();
    KiExitLocked(&KiFaultLock, Thread);
    __atomic_store_n(&HalFaultRoutine, Begun ? KiInjectFault : NULL, __ATOMIC_RELAXED);
    return Begun;
}

BOOLEAN VfNextFault(VOID)
{
    PKTHREAD Thread = KiEnterLocked(&KiFaultLock);
    BOOLEAN Again = HalFaultRoutine != NULL && (KiFault.Round == 0 || KiFault.Injected);
    if (KiFaultFile != NULL) {
        Again = KiFault.Round == 1; /* the run is the round */
        KiFault.Round += 1;
    } else {
        KiFault.Round += Again;
        KiFault.Injected = FALSE;
        KiFaultArmed = Again;
    }
    KiExitLocked(&KiFaultLock, Thread);
    return Again;
}

VOID VfEndFaults(VOID)
{
    if (KiFaultFile == NULL) {
        __atomic_store_n(&KiFaultArmed, FALSE, __ATOMIC_RELAXED);
        __atomic_store_n(&HalFaultRoutine, NULL, __ATOMIC_RELAXED);
    }
}

VOID VfQueryFault(PVF_FAULT Fault)
{
    PKTHREAD Thread = KiEnterLocked(&KiFaultLock);
    *Fault = KiFault;
    KiExitLocked(&KiFaultLock, Thread);
}
