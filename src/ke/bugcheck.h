/*
 * bugcheck.h: bugchecks, their report, and the meaning of their codes and parameters. The debugger uses the tables too: it
 * compiles bugtable.c.
 */
#ifndef INTERLOCK_BUGCHECK_H
#define INTERLOCK_BUGCHECK_H

#include "irql.h"

#define KI_BUGCHECK_PARAMETERS 4

typedef struct _KI_BUGCHECK {
    ULONG Code;
    ULONG_PTR Parameter[KI_BUGCHECK_PARAMETERS];
    PCSTR Reason;             /* or NULL: the text of the code and its kind */
    PVOID Caller;             /* return address of the function that stopped the system */
} KI_BUGCHECK, *PKI_BUGCHECK;

typedef struct _KI_BUGCODE {
    ULONG Code;
    PCSTR Name;
    PCSTR Parameter[KI_BUGCHECK_PARAMETERS];
} KI_BUGCODE, *PKI_BUGCODE;

/* A violation, for a code whose first parameter is its kind. */
typedef struct _KI_VIOLATION {
    ULONG Code;
    ULONG_PTR Kind;
    PCSTR Parameter[KI_BUGCHECK_PARAMETERS - 1];
    PCSTR Description;
} KI_VIOLATION, *PKI_VIOLATION;

const KI_BUGCODE *KiFindBugCode(ULONG Code); /* of an unknown code, one without a meaning */
const KI_VIOLATION *KiFindViolation(ULONG Code, ULONG_PTR Kind); /* NULL: the code has no kinds, or this is not one of
                                                                    them */
PCSTR KiBugSentence(ULONG Code);             /* NULL: the name is enough */
PCSTR KiIrqlName(ULONG_PTR Irql);
BOOLEAN KiEndsIn(PCSTR Text, PCSTR End);
/* What a parameter's value is, by its meaning; empty if there is nothing to add. TRUE: it may be an address, which the
   caller explains. */
BOOLEAN KiExplainValue(PCSTR Meaning, ULONG_PTR Value, PSTR Buffer, SIZE_T Size);

#endif
