/* rtl.h: the runtime. RtlFailFast is in ntdef.h, because the list operations use it. */
#ifndef INTERLOCK_RTL_H
#define INTERLOCK_RTL_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/* What is raised is caught by __try/__except (interlock/exception.h); uncaught it is a bugcheck. */
NTSYSAPI DECLSPEC_NORETURN VOID RtlRaiseStatus(NTSTATUS Status);

INTERLOCK_END

#endif
