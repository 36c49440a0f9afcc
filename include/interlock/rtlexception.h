/* rtlexception.h: raising exceptions, and the handlers of the whole process. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_RTLEXCEPTION_H
#define INTERLOCK_RTLEXCEPTION_H

#include <interlock/exception.h>

INTERLOCK_BEGIN

/*
 * An exception is what somebody raises; the faults of the machine stay the host's signals. First the vectored handlers
 * are asked, then the frames of __try, then the filter of unhandled exceptions; then it is a bugcheck. Who returns
 * EXCEPTION_CONTINUE_EXECUTION ends the search: the continue handlers are told, and the raise returns. If it cannot be
 * continued, STATUS_NONCONTINUABLE_EXCEPTION goes to the frames. Handlers may register and remove handlers.
 */
typedef LONG(NTAPI *PVECTORED_EXCEPTION_HANDLER)(struct _EXCEPTION_POINTERS *ExceptionInfo);
typedef LONG(NTAPI *PRTLP_UNHANDLED_EXCEPTION_FILTER)(PEXCEPTION_POINTERS ExceptionInfo);

NTSYSAPI VOID RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord);
NTSYSAPI PVOID RtlAddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler);
NTSYSAPI ULONG RtlRemoveVectoredExceptionHandler(PVOID Handle);
NTSYSAPI PVOID RtlAddVectoredContinueHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler);
NTSYSAPI ULONG RtlRemoveVectoredContinueHandler(PVOID Handle);

/* The filter of unhandled exceptions; returns the one before. */
NTSYSAPI PRTLP_UNHANDLED_EXCEPTION_FILTER RtlSetUnhandledExceptionFilter(PRTLP_UNHANDLED_EXCEPTION_FILTER Filter);
NTSYSAPI LONG RtlUnhandledExceptionFilter(PEXCEPTION_POINTERS ExceptionInfo);

INTERLOCK_END

#endif
