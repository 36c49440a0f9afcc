/*
 * bugreport.c: the report of a bugcheck: what happened, each parameter in words, the thread, its stack.
 *
 * The texts come from tables (bugtable.c). Addresses are shown with symbols. Nothing here allocates.
 */
#include "bugreport.h"
#include "bugtable.h"

#include <stdio.h>
#include <string.h>

#define KI_LONGEST_EXPLANATION 320

static PCSTR KiSentenceOf(const KI_BUGCHECK *BugCheck, const KI_VIOLATION *Violation)
{
    if (BugCheck->Reason != NULL) {
        return BugCheck->Reason;
    }
    return Violation != NULL ? Violation->Description : KiBugSentence(BugCheck->Code);
}

/* Values. */

static BOOLEAN KiIsThreadAddress(ULONG_PTR Value)
{
    for (ULONG Chunk = 0; Chunk < KI_THREAD_CHUNKS; Chunk++) {
        ULONG_PTR First = (ULONG_PTR)__atomic_load_n(&KiThreadChunk[Chunk], __ATOMIC_RELAXED);
        if (First != 0 && Value - First < KI_THREAD_CHUNK * sizeof(KI_THREAD_SLOT)) {
            return (Value - First) % sizeof(KI_THREAD_SLOT) == FIELD_OFFSET(KI_THREAD_SLOT, Tcb);
        }
    }
    return FALSE;
}

static VOID KiExplainAddress(PCSTR Meaning, ULONG_PTR Value, PSTR Buffer, SIZE_T Size)
{
    PKTHREAD Thread = (PKTHREAD)Value;
    if (Thread == HalCurrentThread) {
        snprintf(Buffer, Size, "this thread");
    } else if (KiIsThreadAddress(Value)) {
        snprintf(Buffer, Size, "thread, id %u", __atomic_load_n(&Thread->ThreadId, __ATOMIC_RELAXED));
    } else if (KiEndsIn(Meaning, "raised at") || KiEndsIn(Meaning, "caller")) {
        HalQueryReturnAddressName(Value, Buffer, Size);
    } else {
        HalQueryAddressName(Value, Buffer, Size);
    }
}

/* The parts of the report. */

static VOID KiPrintParameter(ULONG Number, ULONG_PTR Value, PCSTR Meaning)
{
    CHAR Explanation[KI_LONGEST_EXPLANATION];
    if (Meaning[0] != '\0') {
        if (KiExplainValue(Meaning, Value, Explanation, sizeof(Explanation))) {
            KiExplainAddress(Meaning, Value, Explanation, sizeof(Explanation));
        }
        HalPrint("    %u: 0x%016lX  %s%s%s\n", Number, Value, Meaning, Explanation[0] != '\0' ? ": " : "", Explanation);
    }
}

static VOID KiPrintThread(VOID)
{
    PKTHREAD Thread = HalCurrentThread;
    if (Thread == NULL) {
        HalPrint("Thread %u, unknown to the kernel\n", HalCurrentThreadId());
    } else if (Thread->Irql >= DISPATCH_LEVEL && Thread->Prcb != NULL) {
        HalPrint("Thread %p, id %u, IRQL %u (%s), processor %u%s\n", (PVOID)Thread, HalCurrentThreadId(), Thread->Irql,
                 KiIrqlName(Thread->Irql), Thread->Prcb->Number, Thread->DpcDepth != 0 ? ", in a DPC" : "");
    } else {
        HalPrint("Thread %p, id %u, IRQL %u (%s), owns no processor\n", (PVOID)Thread, HalCurrentThreadId(), Thread->Irql,
                 KiIrqlName(Thread->Irql));
    }
}

VOID KiPrintBugCheck(const KI_BUGCHECK *BugCheck)
{
    const ULONG_PTR *Parameter = BugCheck->Parameter;
    const KI_BUGCODE *BugCode = KiFindBugCode(BugCheck->Code);
    const KI_VIOLATION *Violation = KiFindViolation(BugCheck->Code, Parameter[0]);
    PCSTR Sentence = KiSentenceOf(BugCheck, Violation);
    HalPrint("*** STOP: 0x%08X (0x%016lX, 0x%016lX, 0x%016lX, 0x%016lX)\n", BugCheck->Code, Parameter[0], Parameter[1],
             Parameter[2], Parameter[3]);
    HalPrint("%s%s%s\n", BugCode->Name, Sentence != NULL ? ": " : "", Sentence != NULL ? Sentence : "");
    for (ULONG Index = 0; Index < KI_BUGCHECK_PARAMETERS; Index++) {
        KiPrintParameter(Index + 1, Parameter[Index],
                         Violation != NULL && Index > 0 ? Violation->Parameter[Index - 1] : BugCode->Parameter[Index]);
    }
    KiPrintThread();
    HalPrintStackTrace(BugCheck->Caller);
}
