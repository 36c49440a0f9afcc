/* bugcheck.c: ends the process with a report. */
#include "bugreport.h"
#include "debugdata.h"
#include "park.h"
#include "../trace/trace.h"

static LIST_ENTRY KiBugCheckCallbacks = {&KiBugCheckCallbacks, &KiBugCheckCallbacks};
static KI_LOCK KiBugCheckCallbackLock;
static volatile ULONG KiBugCheckThreadId; /* of the thread that reports; 0: none yet */
static KI_BUGCHECK KiBugCheckData;         /* what it reports, for a debugger that opens the core file */
KD_REGISTER_ROOT(KiBugCheckThreadId);
KD_REGISTER_ROOT(KiBugCheckData);

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

/* Only one thread reports. Other threads that fail meanwhile sleep until the process ends; a failure during the report
   ends the process. */
static DECLSPEC_NORETURN VOID KiStopSystem(const KI_BUGCHECK *BugCheck)
{
    VOID (*Observer)(const KI_BUGCHECK *BugCheck) = KiBugCheckObserver;
    ULONG Own = HalCurrentThreadId();
    ULONG Reporter = 0;
    KiCatchBugCheck(BugCheck);
    if (!__atomic_compare_exchange_n(&KiBugCheckThreadId, &Reporter, Own, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        if (Reporter == Own) {
            HalAbort();
        }
        KiSleepWhile(&KiBugCheckThreadId, Reporter);
    }
    KiBugCheckData = *BugCheck;
    if (Observer != NULL) {
        Observer(BugCheck);
    }
    KiPrintBugCheck(BugCheck);
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

DECLSPEC_NOINLINE VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1, ULONG_PTR BugCheckParameter2,
                                    ULONG_PTR BugCheckParameter3, ULONG_PTR BugCheckParameter4)
{
    const KI_BUGCHECK BugCheck = {
        .Code = BugCheckCode,
        .Parameter = {BugCheckParameter1, BugCheckParameter2, BugCheckParameter3, BugCheckParameter4},
        .Caller = __builtin_return_address(0),
    };
    KiStopSystem(&BugCheck);
}

DECLSPEC_NOINLINE VOID KeBugCheck(ULONG BugCheckCode)
{
    const KI_BUGCHECK BugCheck = {.Code = BugCheckCode, .Caller = __builtin_return_address(0)};
    KiStopSystem(&BugCheck);
}

DECLSPEC_NOINLINE VOID KiBugCheckBecause(PCSTR Reason, ULONG BugCheckCode, ULONG_PTR BugCheckParameter1,
                                         ULONG_PTR BugCheckParameter2, ULONG_PTR BugCheckParameter3,
                                         ULONG_PTR BugCheckParameter4)
{
    const KI_BUGCHECK BugCheck = {
        .Code = BugCheckCode,
        .Parameter = {BugCheckParameter1, BugCheckParameter2, BugCheckParameter3, BugCheckParameter4},
        .Reason = Reason,
        .Caller = __builtin_return_address(0),
    };
    KiStopSystem(&BugCheck);
}
