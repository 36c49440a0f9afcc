/*
 * dbg.h: assertions, debug output, breakpoints, and the check of pageable code. The macros that are active in checked
 * builds depend on DBG, as on Windows: compile the code under test with -DDBG=1 to have them.
 */
#ifndef INTERLOCK_DBG_H
#define INTERLOCK_DBG_H

#include <stdarg.h>

#include <interlock/dpfilter.h>
#include <interlock/ex.h>

#ifndef DBG
#define DBG 0
#endif

INTERLOCK_BEGIN

/*
 * Debug output. Goes to standard error and to the callbacks, one call at a time as a whole, at any IRQL. A call prints at
 * most 511 bytes; longer text is cut and ends with a newline. Beside the formats of C: %wZ and %Z for a pointer to a
 * UNICODE_STRING and an ANSI_STRING, %ws, %S and %C for wide text, %I64x, %I32x, %Ix; l is 32 bits; %p has 16 digits.
 */

/* Prints with component DPFLTR_DEFAULT_ID and level DPFLTR_INFO_LEVEL. Returns STATUS_SUCCESS. Differs: shown unless
   DbgSetDebugFilterState says otherwise. Since NT 3.1. */
NTSYSAPI ULONG DbgPrint(PCSTR Format, ...);

/* Prints the text if a kernel debugger is attached, and stores the line typed there in Response. There is never one
   here, so it does neither: it stores an empty string if Length permits it, and returns 0. Since NT 3.1. */
NTSYSAPI ULONG DbgPrompt(PCCH Prompt, PCH Response, ULONG Length);

/* Prints if the mask of the component, or that of all components (INTERLOCK_DEBUG_FILTER), has the level's bit. Returns
   STATUS_SUCCESS, also if it prints nothing. Since XP. */
NTSYSAPI ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, ...);
NTSYSAPI ULONG vDbgPrintEx(ULONG ComponentId, ULONG Level, PCCH Format, va_list Arguments);

/* The same, with a text in front. Since XP. */
NTSYSAPI ULONG vDbgPrintExWithPrefix(PCCH Prefix, ULONG ComponentId, ULONG Level, PCCH Format, va_list Arguments);

/* Returns TRUE if the component's mask has the level's bit, FALSE if not, STATUS_INVALID_PARAMETER_1 for an unknown
   component. Since XP. */
NTSYSAPI NTSTATUS DbgQueryDebugFilterState(ULONG ComponentId, ULONG Level);

/* Sets or clears the level's bit in the component's mask. Returns STATUS_INVALID_PARAMETER_1 for an unknown component.
   Differs: needs no privilege. Since XP. */
NTSYSAPI NTSTATUS DbgSetDebugFilterState(ULONG ComponentId, ULONG Level, BOOLEAN State);

typedef VOID (*PDEBUG_PRINT_CALLBACK)(PSTRING Output, ULONG ComponentId, ULONG Level);

/* Registers or removes a routine that receives all output, at the caller's IRQL. A removed routine no longer runs.
   Returns STATUS_INSUFFICIENT_RESOURCES if eight are registered, STATUS_INVALID_PARAMETER to register one twice,
   STATUS_NOT_FOUND to remove one that is not registered. The routine must not remove itself. Since Vista. */
NTSYSAPI NTSTATUS DbgSetDebugPrintCallback(PDEBUG_PRINT_CALLBACK DebugPrintCallback, BOOLEAN Enable);

/* Breakpoints. */

/* Breaks into the debugger, and returns when it continues. Without one it raises STATUS_BREAKPOINT, which is a bugcheck
   if uncaught. Since NT 3.1. */
NTSYSAPI VOID DbgBreakPoint(VOID);

/* The same; the debugger sees the status. Since NT 4.0. */
NTSYSAPI VOID DbgBreakPointWithStatus(ULONG Status);

/* TRUE if no debugger is attached, and if one is. Differs: up to date after KdRefreshDebuggerNotPresent, which
   KD_DEBUGGER_ENABLED and KD_DEBUGGER_NOT_PRESENT call. Since NT 4.0. */
extern NTKERNELAPI PBOOLEAN KdDebuggerNotPresent;
extern NTKERNELAPI PBOOLEAN KdDebuggerEnabled;

/* Returns TRUE if no debugger of the host is attached. Since Server 2003. */
NTKERNELAPI BOOLEAN KdRefreshDebuggerNotPresent(VOID);
#define KD_DEBUGGER_ENABLED ((BOOLEAN)!KdRefreshDebuggerNotPresent())
#define KD_DEBUGGER_NOT_PRESENT KdRefreshDebuggerNotPresent()

#if DBG
#define KdPrint(Arguments) DbgPrint Arguments
#define KdPrintEx(Arguments) DbgPrintEx Arguments
#define vKdPrintEx(Arguments) vDbgPrintEx Arguments
#define vKdPrintExWithPrefix(Arguments) vDbgPrintExWithPrefix Arguments
#define KdBreakPoint() DbgBreakPoint()
#define KdBreakPointWithStatus(Status) DbgBreakPointWithStatus(Status)
#else
#define KdPrint(Arguments) ((void)0)
#define KdPrintEx(Arguments) ((void)0)
#define vKdPrintEx(Arguments) ((void)0)
#define vKdPrintExWithPrefix(Arguments) ((void)0)
#define KdBreakPoint() ((void)0)
#define KdBreakPointWithStatus(Status) ((void)0)
#endif

/* Assertions. */

/* Prints the failed assertion and breaks into the debugger. Without one it raises STATUS_BREAKPOINT, which is a
   bugcheck if uncaught. Differs: does not ask what to do. Since NT 3.1. */
NTSYSAPI VOID RtlAssert(PVOID VoidFailedAssertion, PVOID VoidFileName, ULONG LineNumber, PSTR MutableMessage);

/* Internal: ASSERT and similar macros. Returns Holds. */
FORCEINLINE BOOLEAN RtlpAssert(BOOLEAN Holds, PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message)
{
    if (__builtin_expect(!Holds, 0)) {
        RtlAssert((PVOID)(ULONG_PTR)Expression, (PVOID)(ULONG_PTR)File, Line, (PSTR)(ULONG_PTR)Message);
    }
    return Holds;
}

/* Internal: NT_ASSERT raises STATUS_ASSERTION_FAILURE. Message may be NULL. */
NTSYSAPI VOID RtlpRaiseAssertionFailure(PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message);

/* Internal: NT_ASSERT and similar macros. Returns Holds. */
FORCEINLINE BOOLEAN RtlpNtAssert(BOOLEAN Holds, PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message)
{
    if (__builtin_expect(!Holds, 0)) {
        RtlpRaiseAssertionFailure(Expression, File, Line, Message);
    }
    return Holds;
}

/* Internal: the RTL_SOFT_ forms only print. Returns Holds. */
NTSYSAPI BOOLEAN RtlpSoftAssert(BOOLEAN Holds, PCSTR Expression, PCSTR File, ULONG Line, PCSTR Message);

/* Internal: the value of a VERIFY macro in free builds. A function, so that the compiler does not warn about an unused
   value. */
FORCEINLINE BOOLEAN RtlpVerified(BOOLEAN Holds)
{
    return Holds;
}

#define RTLP_ASSERT(Form, Message, Expression)                                                                         \
    Form((BOOLEAN)((Expression) ? TRUE : FALSE), #Expression, __FILE__, (ULONG)__LINE__, Message)

#define NT_FRE_ASSERT(Expression) RTLP_ASSERT(RtlpNtAssert, NULL, Expression)
#define NT_FRE_ASSERTMSG(Message, Expression) RTLP_ASSERT(RtlpNtAssert, Message, Expression)

#if DBG
#ifndef ASSERT
#define ASSERT(Expression) RTLP_ASSERT(RtlpAssert, NULL, Expression)
#endif
#ifndef ASSERTMSG
#define ASSERTMSG(Message, Expression) RTLP_ASSERT(RtlpAssert, Message, Expression)
#endif
#define RTL_VERIFY(Expression) RTLP_ASSERT(RtlpAssert, NULL, Expression)
#define RTL_VERIFYMSG(Message, Expression) RTLP_ASSERT(RtlpAssert, Message, Expression)
#define RTL_SOFT_ASSERT(Expression) RTLP_ASSERT(RtlpSoftAssert, NULL, Expression)
#define RTL_SOFT_ASSERTMSG(Message, Expression) RTLP_ASSERT(RtlpSoftAssert, Message, Expression)
#define RTL_SOFT_VERIFY(Expression) RTLP_ASSERT(RtlpSoftAssert, NULL, Expression)
#define RTL_SOFT_VERIFYMSG(Message, Expression) RTLP_ASSERT(RtlpSoftAssert, Message, Expression)
#define NT_ASSERT(Expression) RTLP_ASSERT(RtlpNtAssert, NULL, Expression)
#define NT_ASSERTMSG(Message, Expression) RTLP_ASSERT(RtlpNtAssert, Message, Expression)
#define NT_VERIFY(Expression) RTLP_ASSERT(RtlpNtAssert, NULL, Expression)
#define NT_VERIFYMSG(Message, Expression) RTLP_ASSERT(RtlpNtAssert, Message, Expression)
#else
#ifndef ASSERT
#define ASSERT(Expression) ((void)0)
#endif
#ifndef ASSERTMSG
#define ASSERTMSG(Message, Expression) ((void)0)
#endif
#define RTL_VERIFY(Expression) RtlpVerified((BOOLEAN)((Expression) ? TRUE : FALSE))
#define RTL_VERIFYMSG(Message, Expression) RTL_VERIFY(Expression)
#define RTL_SOFT_ASSERT(Expression) ((void)0)
#define RTL_SOFT_ASSERTMSG(Message, Expression) ((void)0)
#define RTL_SOFT_VERIFY(Expression) RTL_VERIFY(Expression)
#define RTL_SOFT_VERIFYMSG(Message, Expression) RTL_VERIFY(Expression)
#define NT_ASSERT(Expression) ((void)0)
#define NT_ASSERTMSG(Message, Expression) ((void)0)
#define NT_VERIFY(Expression) RTL_VERIFY(Expression)
#define NT_VERIFYMSG(Message, Expression) RTL_VERIFY(Expression)
#endif
#define NT_ANALYSIS_ASSUME(Expression) ((void)0)

/* Pageable code. */

/* Internal: PAGED_CODE. In a checked build prints and fails an assertion above APC_LEVEL. In a free build the verifier
   stops such a call with DRIVER_IRQL_NOT_LESS_OR_EQUAL, the bugcheck that follows on Windows if the code is paged out. */
NTKERNELAPI VOID ExpCheckPagedCode(BOOLEAN Checked, PCSTR File, ULONG Line);

#ifndef NOP_FUNCTION
#define NOP_FUNCTION ((void)0)
#endif
/* A block, so that it needs no semicolon, as on Windows. */
#define PAGED_CODE()                                                                                                   \
    {                                                                                                                  \
        ExpCheckPagedCode(DBG != 0, __FILE__, (ULONG)__LINE__);                                                        \
    }
#define PAGED_CODE_LOCKED() NOP_FUNCTION
#define PAGED_ASSERT(Expression) ASSERT(Expression)

#ifndef CODE_SEG
#define CODE_SEG(Segment) /* sections have no effect */
#endif

INTERLOCK_END

#endif
