/* bugreport.h: the report of a bugcheck, in words. */
#ifndef INTERLOCK_BUGREPORT_H
#define INTERLOCK_BUGREPORT_H

#include "prcb.h"

#define KI_BUGCHECK_PARAMETERS 4

typedef struct _KI_BUGCHECK {
    ULONG Code;
    ULONG_PTR Parameter[KI_BUGCHECK_PARAMETERS];
    PCSTR Reason;             /* or NULL: the text of the code and its kind */
    PVOID Caller;             /* return address of the function that stopped the system */
} KI_BUGCHECK, *PKI_BUGCHECK;

VOID KiPrintBugCheck(const KI_BUGCHECK *BugCheck);
PCSTR KiStatusName(NTSTATUS Status); /* NULL: none is known */

/* expect.c: does not return if the current thread expects a bugcheck and can return to its frame. */
VOID KiCatchBugCheck(const KI_BUGCHECK *BugCheck);
extern VOID (*volatile KiBugCheckObserver)(const KI_BUGCHECK *BugCheck); /* or NULL; called instead of the report */

#endif
