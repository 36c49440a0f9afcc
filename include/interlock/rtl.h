/* rtl.h: the runtime. RtlFailFast is in ntdef.h, because the list operations use it. */
#ifndef INTERLOCK_RTL_H
#define INTERLOCK_RTL_H

#include <interlock/addresswait.h>
#include <interlock/barrier.h>
#include <interlock/conditionvariable.h>
#include <interlock/criticalsection.h>
#include <interlock/ntdef.h>
#include <interlock/rtlerror.h>
#include <interlock/rtlexception.h>
#include <interlock/rtlresource.h>
#include <interlock/rtlstring.h>
#include <interlock/rtltime.h>
#include <interlock/srwlock.h>
#include <interlock/threadpool.h>
#include <interlock/winerror.h>

INTERLOCK_BEGIN

/* What is raised is caught by __try/__except (interlock/exception.h); uncaught it is a bugcheck. */
NTSYSAPI DECLSPEC_NORETURN VOID RtlRaiseStatus(NTSTATUS Status);

/*
 * One-time initialisation; zeroed memory is one that nobody has begun. The low RTL_RUN_ONCE_CTX_RESERVED_BITS bits of a
 * context must be clear.
 */

#define RTL_RUN_ONCE_INIT {0}
#define RTL_RUN_ONCE_CHECK_ONLY 0x00000001UL
#define RTL_RUN_ONCE_ASYNC 0x00000002UL
#define RTL_RUN_ONCE_INIT_FAILED 0x00000004UL
#define RTL_RUN_ONCE_CTX_RESERVED_BITS 2

typedef union _RTL_RUN_ONCE {
    PVOID Ptr;
} RTL_RUN_ONCE, *PRTL_RUN_ONCE;

C_ASSERT(sizeof(RTL_RUN_ONCE) == 8);

typedef ULONG RTL_RUN_ONCE_INIT_FN(PRTL_RUN_ONCE RunOnce, PVOID Parameter, PVOID *Context);
typedef RTL_RUN_ONCE_INIT_FN *PRTL_RUN_ONCE_INIT_FN;

NTSYSAPI VOID RtlRunOnceInitialize(PRTL_RUN_ONCE RunOnce);
NTSYSAPI NTSTATUS RtlRunOnceExecuteOnce(PRTL_RUN_ONCE RunOnce, PRTL_RUN_ONCE_INIT_FN InitFn, PVOID Parameter,
                                        PVOID *Context);
NTSYSAPI NTSTATUS RtlRunOnceComplete(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID Context);

/* Where it is not done yet, or flags are given. */
NTSYSAPI NTSTATUS RtlpRunOnceBegin(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context);

/* The state of one that is done, in the bits that a context leaves free. */
#define RTLP_RUN_ONCE_STATE ((ULONG_PTR)3)
#define RTLP_RUN_ONCE_DONE ((ULONG_PTR)2)

/* Inline, and exported too for whoever takes its address or calls from another language. */
NTSYSAPI inline NTSTATUS RtlRunOnceBeginInitialize(PRTL_RUN_ONCE RunOnce, ULONG Flags, PVOID *Context)
{
    /* acquire: pairs with the release of who completed; whoever sees that it is done sees all that was done */
    ULONG_PTR Word = __atomic_load_n((volatile ULONG_PTR *)RunOnce, __ATOMIC_ACQUIRE);
    if (__builtin_expect((Word & RTLP_RUN_ONCE_STATE) != RTLP_RUN_ONCE_DONE || Flags != 0, 0)) {
        return RtlpRunOnceBegin(RunOnce, Flags, Context);
    }
    if (Context != NULL) {
        *Context = (PVOID)(Word & ~RTLP_RUN_ONCE_STATE);
    }
    return STATUS_SUCCESS;
}

INTERLOCK_END

#endif
