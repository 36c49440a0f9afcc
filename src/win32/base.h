/* base.h: what the Win32 functions share: the last error, timeouts, strings. */
#ifndef INTERLOCK_WIN32_BASE_PRIVATE_H
#define INTERLOCK_WIN32_BASE_PRIVATE_H

#include <interlock/nt.h>
#include <interlock/rtl.h>
#include <interlock/win32/base.h>

#include "../ex/utf8.h"

/* error.c */
VOID BaseSetLastError(ULONG Error);
ULONG BaseSetLastNTError(NTSTATUS Status); /* returns the Win32 error */
BOOL BaseBoolStatus(NTSTATUS Status);      /* TRUE, or FALSE with the last error set */

#define BASE_MILLISECONDS_TO_1970 11644473600000LL /* from 1601 */

/* time.c. NULL: no timeout. */
PLARGE_INTEGER BaseFormatTimeOut(PLARGE_INTEGER Timeout, ULONG Milliseconds);

/* thread.c. FALSE, with the last error set: one of them is NULL. */
BOOL BaseStoreTimes(const KERNEL_USER_TIMES *Times, LPFILETIME Creation, LPFILETIME Exit, LPFILETIME Kernel,
                    LPFILETIME User);

/* wait.c. Win32 has no alerts, so an alertable wait that an alert ended starts over with the rest of its time. */
typedef struct _BASE_WAIT_TIME {
    LARGE_INTEGER Interval;
    PLARGE_INTEGER Timeout;          /* for the Nt service */
    ULONGLONG End;                   /* in interrupt time, if the wait may start over and does not poll */
    BOOLEAN Alertable;
} BASE_WAIT_TIME, *PBASE_WAIT_TIME;

VOID BaseBeginWait(PBASE_WAIT_TIME Time, ULONG Milliseconds, BOOL Alertable);
BOOLEAN BaseWaitAgain(PBASE_WAIT_TIME Time, NTSTATUS Status); /* FALSE: Status is the result of the wait */

/* attributes.c: the handles that a child inherits. FALSE: the list, which may be NULL, does not have the attribute. */
struct _PROC_THREAD_ATTRIBUTE_LIST;
BOOLEAN BaseFindHandleList(struct _PROC_THREAD_ATTRIBUTE_LIST *AttributeList, const HANDLE **List, PULONG Count);

/* namespace.c: a name that begins with the prefix of a private namespace. Returns the namespace, and how many characters
   the prefix and its separator have. NULL: the name begins with none. */
HANDLE BaseFindNamespace(LPCWSTR Name, PSIZE_T Prefix);

/* process.c. An array of strings in one block of memory, ended by NULL; NULL: no memory. HalFree frees it. */
PSTR *BaseSplitCommandLine(PCSTR CommandLine);
PSTR *BaseSplitEnvironment(PCSTR Block);

#endif
