/* psp.h: the executive's view of threads and processes. */
#ifndef INTERLOCK_PSP_H
#define INTERLOCK_PSP_H

#include <interlock/ps.h>

#include "../ob/obp.h"

/* What user mode keeps of a thread. It begins as zeroes, and only the thread itself touches it. */
#define TLS_MINIMUM_AVAILABLE 64

typedef struct _TEB {
    ULONG LastErrorValue;
    PVOID TlsSlots[TLS_MINIMUM_AVAILABLE];
    PVOID *TlsExpansionSlots;        /* NULL: none has been set */
    PVOID *FlsSlots;                 /* likewise */
} TEB, *PTEB;

/* A thread's slot from its KTHREAD on. */
typedef struct _ETHREAD {
    KTHREAD Tcb;
    PKSTART_ROUTINE StartRoutine;
    PVOID StartContext;
    BOOLEAN Terminating;             /* PsTerminateSystemThread was called; written by the thread itself */
    TEB Teb;
} ETHREAD;

C_ASSERT(sizeof(ETHREAD) <= sizeof(KTHREAD) + KI_THREAD_SUFFIX);
C_ASSERT(FIELD_OFFSET(KI_THREAD_SLOT, Suffix) == FIELD_OFFSET(KI_THREAD_SLOT, Tcb) + (LONG)sizeof(KTHREAD));

typedef struct _EPROCESS {
    KPROCESS Pcb;
} EPROCESS;

FORCEINLINE PTEB PspCurrentTeb(VOID)
{
    return &((PETHREAD)KiCurrentThread())->Teb;
}

#endif
