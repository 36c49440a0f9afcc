/*
 * debugprint.c: debug output, breakpoints, failed assertions, pageable code.
 *
 * Output. A call formats into a buffer on its stack and writes it with one call of the host, so the texts of two
 * threads do not mix. Nothing is allocated and no lock is held, so a service routine at HIGH_LEVEL may print.
 *
 * Callbacks are in a table of slots. A slot's word counts the calls that are inside its routine:
 * 1. A caller counts itself, then reads the routine. Removing clears the routine, then reads the count. Both are
 *    sequentially consistent, so either the caller finds no routine, or the remover waits for it.
 * 2. A slot is free for another routine when its count has been seen at 0 after the routine was cleared.
 */
#include <interlock/dbg.h>

#include "../ke/irql.h"
#include "../ke/park.h"
#include "exp.h"
#include "text.h"

#define EXP_LONGEST_DEBUG_PRINT 512 /* with its terminating zero */
#define EXP_DEBUG_CALLBACKS     8
#define EXP_EXECUTED            8    /* the third parameter of DRIVER_IRQL_NOT_LESS_OR_EQUAL */
#define EXP_ALL_LEVELS          0xfu /* error, warning, trace, info */

typedef struct _EXP_DEBUG_CALLBACK {
    PDEBUG_PRINT_CALLBACK volatile Routine;
    volatile ULONG Calls;
} EXP_DEBUG_CALLBACK, *PEXP_DEBUG_CALLBACK;

static EXP_DEBUG_CALLBACK ExpDebugCallbacks[EXP_DEBUG_CALLBACKS];
static KI_LOCK ExpDebugCallbackLock; /* for changes */

/* Masks of the components. ExpDebugMaskOfAll applies to all; as on Windows it initially shows errors. */
static volatile ULONG ExpDebugMasks[DPFLTR_ENDOFTABLE_ID] = {[DPFLTR_DEFAULT_ID] = EXP_ALL_LEVELS};
static ULONG ExpDebugMaskOfAll;

static BOOLEAN ExpDebuggerNotPresent = TRUE;
static BOOLEAN ExpDebuggerEnabled;
PBOOLEAN KdDebuggerNotPresent = &ExpDebuggerNotPresent;
PBOOLEAN KdDebuggerEnabled = &ExpDebuggerEnabled;

static VOID ExpReadDebugSettings(VOID)
{
    ExpDebugMaskOfAll = KiReadSetting("INTERLOCK_DEBUG_FILTER", 0, MAXULONG - 9, 1u << DPFLTR_ERROR_LEVEL);
}
KI_INITIALIZER(KiInitializeObjects, ExpReadDebugSettings);

static ULONG ExpBitsOfLevel(ULONG Level)
{
    return Level < 32 ? 1u << Level : Level;
}

NTSTATUS DbgQueryDebugFilterState(ULONG ComponentId, ULONG Level)
{
    if (ComponentId >= DPFLTR_ENDOFTABLE_ID) {
        return STATUS_INVALID_PARAMETER_1;
    }
    /* relaxed: a setting */
    return (__atomic_load_n(&ExpDebugMasks[ComponentId], __ATOMIC_RELAXED) & ExpBitsOfLevel(Level)) != 0;
}

NTSTATUS DbgSetDebugFilterState(ULONG ComponentId, ULONG Level, BOOLEAN State)
{
    if (ComponentId >= DPFLTR_ENDOFTABLE_ID) {
        return STATUS_INVALID_PARAMETER_1;
    }
    /* relaxed, both: a setting */
    if (State) {
        __atomic_fetch_or(&ExpDebugMasks[ComponentId], ExpBitsOfLevel(Level), __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_and(&ExpDebugMasks[ComponentId], ~ExpBitsOfLevel(Level), __ATOMIC_RELAXED);
    }
    return STATUS_SUCCESS;
}

/* Callbacks. */

static PEXP_DEBUG_CALLBACK ExpFindDebugCallback(PDEBUG_PRINT_CALLBACK Routine)
{
    for (ULONG i = 0; i < EXP_DEBUG_CALLBACKS; i++) {
        if (ExpDebugCallbacks[i].Routine == Routine) {
            return &ExpDebugCallbacks[i];
        }
    }
    return NULL;
}

NTSTATUS DbgSetDebugPrintCallback(PDEBUG_PRINT_CALLBACK DebugPrintCallback, BOOLEAN Enable)
{
    PEXP_DEBUG_CALLBACK Removed = NULL;
    NTSTATUS Status = STATUS_SUCCESS;
    if (DebugPrintCallback == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    PKTHREAD Thread = KiEnterLocked(&ExpDebugCallbackLock);
    PEXP_DEBUG_CALLBACK Free = ExpFindDebugCallback(NULL);
    PEXP_DEBUG_CALLBACK Found = ExpFindDebugCallback(DebugPrintCallback);
    if (!Enable && Found == NULL) {
        Status = STATUS_NOT_FOUND;
    } else if (!Enable) {
        Removed = Found;
        /* seq_cst: requirement 1 */
        __atomic_store_n(&Removed->Routine, NULL, __ATOMIC_SEQ_CST);
    } else if (Found != NULL) {
        Status = STATUS_INVALID_PARAMETER;
    } else if (Free == NULL) {
        Status = STATUS_INSUFFICIENT_RESOURCES;
    } else {
        /* release: what the routine uses is visible to its callers */
        __atomic_store_n(&Free->Routine, DebugPrintCallback, __ATOMIC_RELEASE);
    }
    KiExitLocked(&ExpDebugCallbackLock, Thread);
    /* seq_cst: requirement 1; acquire: what the routine did is visible */
    for (ULONG Round = 0; Removed != NULL && __atomic_load_n(&Removed->Calls, __ATOMIC_SEQ_CST) != 0; Round++) {
        KiBackOff(Round);
    }
    return Status;
}

static VOID ExpCallDebugCallbacks(PSTRING Output, ULONG ComponentId, ULONG Level)
{
    for (ULONG i = 0; i < EXP_DEBUG_CALLBACKS; i++) {
        PEXP_DEBUG_CALLBACK Callback = &ExpDebugCallbacks[i];
        /* relaxed: a hint; counted only if there is something to call */
        if (__atomic_load_n(&Callback->Routine, __ATOMIC_RELAXED) != NULL) {
            /* seq_cst, both: requirement 1 */
            __atomic_fetch_add(&Callback->Calls, 1, __ATOMIC_SEQ_CST);
            PDEBUG_PRINT_CALLBACK Routine = __atomic_load_n(&Callback->Routine, __ATOMIC_SEQ_CST);
            if (Routine != NULL) {
                Routine(Output, ComponentId, Level);
            }
            /* release: pairs with the load of the remover */
            __atomic_fetch_sub(&Callback->Calls, 1, __ATOMIC_RELEASE);
        }
    }
}

/* Output. */

ULONG vDbgPrintExWithPrefix(PCCH Prefix, ULONG ComponentId, ULONG Level, PCCH Format, va_list Arguments)
{
    CHAR Text[EXP_LONGEST_DEBUG_PRINT];
    EXP_OUTPUT Output = {.Buffer = Text, .Room = EXP_LONGEST_DEBUG_PRINT - 1};
    STRING String = {.Buffer = Text, .MaximumLength = sizeof(Text)};
    /* An unknown component shows only what every component shows. */
    if (!(ExpDebugMaskOfAll & ExpBitsOfLevel(Level)) && DbgQueryDebugFilterState(ComponentId, Level) != TRUE) {
        return STATUS_SUCCESS;
    }
    ExpPutNarrow(&Output, Prefix, strlen(Prefix));
    ExpFormatNarrow(&Output, EXP_FORMAT_NT, Format, Arguments);
    if (Output.Length > Output.Room) {
        Output.Length = Output.Room;
        Text[Output.Room - 1] = '\n';
    }
    Text[Output.Length] = 0;
    String.Length = (USHORT)Output.Length;
    HalPrint("%s", Text);
    ExpCallDebugCallbacks(&String, ComponentId, Level);
    return STATUS_SUCCESS;
}

ULONG vDbgPrintEx(ULONG ComponentId, ULONG Level, PCCH Format, va_list Arguments)
{
    return vDbgPrintExWithPrefix("", ComponentId, Level, Format, Arguments);
}

ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, ...)
{
    va_list Arguments;
    va_start(Arguments, Format);
    ULONG Status = vDbgPrintEx(ComponentId, Level, Format, Arguments);
    va_end(Arguments);
    return Status;
}

ULONG DbgPrint(PCSTR Format, ...)
{
    va_list Arguments;
    va_start(Arguments, Format);
    ULONG Status = vDbgPrintEx(DPFLTR_DEFAULT_ID, DPFLTR_INFO_LEVEL, Format, Arguments);
    va_end(Arguments);
    return Status;
}

ULONG DbgPrompt(PCCH Prompt, PCH Response, ULONG Length)
{
    UNREFERENCED_PARAMETER(Prompt);
    if (Length != 0) {
        Response[0] = 0;
    }
    return 0;
}

/* Breakpoints and assertions. */

BOOLEAN KdRefreshDebuggerNotPresent(VOID)
{
    BOOLEAN Present = HalIsDebuggerPresent();
    /* relaxed, both: settings of one byte each */
    __atomic_store_n(&ExpDebuggerEnabled, Present, __ATOMIC_RELAXED);
    __atomic_store_n(&ExpDebuggerNotPresent, !Present, __ATOMIC_RELAXED);
    return !Present;
}

static VOID ExpBreakOrRaise(NTSTATUS Status)
{
    if (KdRefreshDebuggerNotPresent()) {
        KiRaiseStatus(Status);
    }
    HalBreakIntoDebugger();
}

VOID DbgBreakPoint(VOID)
{
    ExpBreakOrRaise(STATUS_BREAKPOINT);
}

VOID DbgBreakPointWithStatus(ULONG Status)
{
    DbgPrintEx(DPFLTR_SYSTEM_ID, DPFLTR_ERROR_LEVEL, "Break with status 0x%08x\n", Status);
    ExpBreakOrRaise(STATUS_BREAKPOINT);
}

static VOID ExpReportAssertion(PCSTR Kind, PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message)
{
    DbgPrintEx(DPFLTR_SYSTEM_ID, DPFLTR_ERROR_LEVEL, "*** %s failed: %s%s%s\n***   Source File: %s, line %u\n", Kind,
               Message != NULL ? Message : "", Message != NULL ? ": " : "", Expression, File, Line);
}

VOID RtlAssert(PVOID VoidFailedAssertion, PVOID VoidFileName, ULONG LineNumber, PSTR MutableMessage)
{
    ExpReportAssertion("Assertion", VoidFailedAssertion, VoidFileName, LineNumber, MutableMessage);
    ExpBreakOrRaise(STATUS_BREAKPOINT);
}

VOID RtlpRaiseAssertionFailure(PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message)
{
    ExpReportAssertion("Assertion", Expression, File, Line, Message);
    ExpBreakOrRaise(STATUS_ASSERTION_FAILURE);
}

BOOLEAN RtlpSoftAssert(BOOLEAN Holds, PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message)
{
    if (!Holds) {
        ExpReportAssertion("Soft assertion", Expression, File, Line, Message);
    }
    return Holds;
}

VOID ExpCheckPagedCode(BOOLEAN Checked, PCSTR File, ULONG Line)
{
    KIRQL Irql = KiCurrentThread()->Irql;
    if (Irql <= APC_LEVEL) {
        return;
    }
    if (Checked) {
        DbgPrintEx(DPFLTR_SYSTEM_ID, DPFLTR_ERROR_LEVEL, "EX: Pageable code called at IRQL %u\n", Irql);
        RtlpAssert(FALSE, "KeGetCurrentIrql() <= APC_LEVEL", File, Line, NULL);
    } else if (KiVerifierEnabled) {
        ULONG_PTR Caller = (ULONG_PTR)__builtin_return_address(0);
        KeBugCheckEx(DRIVER_IRQL_NOT_LESS_OR_EQUAL, Caller, Irql, EXP_EXECUTED, Caller);
    }
}
