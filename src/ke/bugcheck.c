/* bugcheck.c: ends the process with a report. */
#include "park.h"
#include "../trace/trace.h"

#define KI_BUGCHECK_PARAMETERS 4

typedef struct _KI_BUGCODE {
    ULONG Code;
    PCSTR Name;
    PCSTR Parameter[KI_BUGCHECK_PARAMETERS];
} KI_BUGCODE, *PKI_BUGCODE;

typedef struct _KI_VIOLATION {
    ULONG_PTR Kind;
    PCSTR Parameter[KI_BUGCHECK_PARAMETERS - 1];
    PCSTR Description;
} KI_VIOLATION, *PKI_VIOLATION;

#define KI_BUGCODE_ENTRY(Name, First, Second, Third, Fourth) {Name, #Name, {First, Second, Third, Fourth}},
#define KI_VIOLATION_ENTRY(Kind, Second, Third, Fourth, Description) {Kind, {Second, Third, Fourth}, Description},

static const KI_BUGCODE KiBugCodes[] = {INTERLOCK_BUGCODE_LIST(KI_BUGCODE_ENTRY)};
static const KI_VIOLATION KiViolations[] = {INTERLOCK_VERIFIER_LIST(KI_VIOLATION_ENTRY)};
static const KI_VIOLATION KiIoViolations[] = {INTERLOCK_IO_VERIFIER_LIST(KI_VIOLATION_ENTRY)};
static const KI_BUGCODE KiUnknownBugCode = {0, "unknown code", {"", "", "", ""}};

static LIST_ENTRY KiBugCheckCallbacks = {&KiBugCheckCallbacks, &KiBugCheckCallbacks};
static KI_LOCK KiBugCheckCallbackLock;
static volatile ULONG KiBugCheckThreadId; /* of the thread that reports; 0: none yet */

/* Callbacks. The checksum shows whether a record is still what was registered. */

static ULONG_PTR KiChecksum(const KBUGCHECK_CALLBACK_RECORD *Record)
{
    return (ULONG_PTR)Record->CallbackRoutine + (ULONG_PTR)Record->Buffer + Record->Length +
           (ULONG_PTR)Record->Component;
}

BOOLEAN KeRegisterBugCheckCallback(PKBUGCHECK_CALLBACK_RECORD CallbackRecord,
                                   PKBUGCHECK_CALLBACK_ROUTINE CallbackRoutine, PVOID Buffer, ULONG Length,
                                   PUCHAR Component)
{
    PKTHREAD Thread = KiEnterLocked(&KiBugCheckCallbackLock);
    BOOLEAN Registered = CallbackRecord->State == BufferEmpty;
    if (Registered) {
        CallbackRecord->CallbackRoutine = CallbackRoutine;
        CallbackRecord->Buffer = Buffer;
        CallbackRecord->Length = Length;
        CallbackRecord->Component = Component;
        CallbackRecord->Checksum = KiChecksum(CallbackRecord);
        CallbackRecord->State = BufferInserted;
        InsertTailList(&KiBugCheckCallbacks, &CallbackRecord->Entry);
    }
    KiExitLocked(&KiBugCheckCallbackLock, Thread);
    return Registered;
}

BOOLEAN KeDeregisterBugCheckCallback(PKBUGCHECK_CALLBACK_RECORD CallbackRecord)
{
    PKTHREAD Thread = KiEnterLocked(&KiBugCheckCallbackLock);
    BOOLEAN Registered = CallbackRecord->State == BufferInserted;
    if (Registered) {
        RemoveEntryList(&CallbackRecord->Entry);
        CallbackRecord->State = BufferEmpty;
    }
    KiExitLocked(&KiBugCheckCallbackLock, Thread);
    return Registered;
}

/* The report. */

static const KI_BUGCODE *KiFindBugCode(ULONG Code)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(KiBugCodes); Index++) {
        if (KiBugCodes[Index].Code == Code) {
            return &KiBugCodes[Index];
        }
    }
    return &KiUnknownBugCode;
}

static const KI_VIOLATION *KiFindViolation(ULONG Code, ULONG_PTR Kind)
{
    for (ULONG Index = 0; Code == DRIVER_VERIFIER_DETECTED_VIOLATION && Index < RTL_NUMBER_OF(KiViolations); Index++) {
        if (KiViolations[Index].Kind == Kind) {
            return &KiViolations[Index];
        }
    }
    for (ULONG Index = 0; Code == DRIVER_VERIFIER_IOMANAGER_VIOLATION && Index < RTL_NUMBER_OF(KiIoViolations); Index++) {
        if (KiIoViolations[Index].Kind == Kind) {
            return &KiIoViolations[Index];
        }
    }
    return NULL;
}

static VOID KiPrintReport(ULONG Code, const ULONG_PTR Parameter[KI_BUGCHECK_PARAMETERS])
{
    const KI_BUGCODE *BugCode = KiFindBugCode(Code);
    const KI_VIOLATION *Violation = KiFindViolation(Code, Parameter[0]);
    PKTHREAD Thread = HalCurrentThread;
    HalPrint("*** STOP: 0x%08X (0x%016lX, 0x%016lX, 0x%016lX, 0x%016lX)\n", Code, Parameter[0], Parameter[1],
             Parameter[2], Parameter[3]);
    HalPrint("%s%s%s\n", BugCode->Name, Violation != NULL ? ": " : "", Violation != NULL ? Violation->Description : "");
    for (ULONG Index = 0; Index < KI_BUGCHECK_PARAMETERS; Index++) {
        PCSTR Meaning = Violation != NULL && Index > 0 ? Violation->Parameter[Index - 1] : BugCode->Parameter[Index];
        if (Meaning[0] != '\0') {
            HalPrint("    %u: 0x%016lX  %s\n", Index + 1, Parameter[Index], Meaning);
        }
    }
    if (Thread == NULL) {
        HalPrint("Thread %u, unknown to the kernel\n", HalCurrentThreadId());
    } else if (Thread->Irql >= DISPATCH_LEVEL && Thread->Prcb != NULL) {
        HalPrint("Thread %p, id %u, IRQL %u, processor %u%s\n", (PVOID)Thread, HalCurrentThreadId(), Thread->Irql,
                 Thread->Prcb->Number, Thread->DpcDepth != 0 ? ", in a DPC" : "");
    } else {
        HalPrint("Thread %p, id %u, IRQL %u, owns no processor\n", (PVOID)Thread, HalCurrentThreadId(), Thread->Irql);
    }
    HalPrintStackTrace(2);
}

/* There is one report: other threads that fail meanwhile sleep until the process ends, a failure in the report ends it. */
DECLSPEC_NOINLINE VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1, ULONG_PTR BugCheckParameter2,
                                    ULONG_PTR BugCheckParameter3, ULONG_PTR BugCheckParameter4)
{
    const ULONG_PTR Parameter[KI_BUGCHECK_PARAMETERS] = {BugCheckParameter1, BugCheckParameter2, BugCheckParameter3,
                                                         BugCheckParameter4};
    ULONG Own = HalCurrentThreadId();
    ULONG Reporter = 0;
    if (!__atomic_compare_exchange_n(&KiBugCheckThreadId, &Reporter, Own, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        if (Reporter == Own) {
            HalAbort();
        }
        KiSleepWhile(&KiBugCheckThreadId, Reporter);
    }
    KiPrintReport(BugCheckCode, Parameter);
    /* Without the lock: its owner may be the thread that ends here. */
    for (PLIST_ENTRY Entry = KiBugCheckCallbacks.Flink; Entry != &KiBugCheckCallbacks; Entry = Entry->Flink) {
        PKBUGCHECK_CALLBACK_RECORD Record = CONTAINING_RECORD(Entry, KBUGCHECK_CALLBACK_RECORD, Entry);
        if (Record->State == BufferInserted && Record->Checksum == KiChecksum(Record)) {
            Record->State = BufferStarted;
            Record->CallbackRoutine(Record->Buffer, Record->Length);
            Record->State = BufferFinished;
        }
    }
    KTRACE_FINISH(FALSE);
    HalAbort();
}

VOID KeBugCheck(ULONG BugCheckCode)
{
    KeBugCheckEx(BugCheckCode, 0, 0, 0, 0);
}
