/* psp.h: the executive's view of threads and processes. */
#ifndef INTERLOCK_PSP_H
#define INTERLOCK_PSP_H

#include <interlock/ps.h>

#include <interlock/pushlock.h>

#include "../io/watch.h"
#include "../ob/obp.h"

/* A thread's slot from its KTHREAD on. */
typedef struct _ETHREAD {
    KTHREAD Tcb;
    PKSTART_ROUTINE StartRoutine;    /* of a system thread, or */
    NTSTATUS (*UserStartRoutine)(PVOID Context); /* of one that NtCreateThreadEx has made */
    PVOID StartContext;
    PCLIENT_ID StartClientId;        /* where the new thread writes its id before anything else; NULL: nowhere */
    PVOID Win32StartAddress;
    BOOLEAN UserThread;              /* made by NtCreateThreadEx */
    BOOLEAN Terminating;             /* PsTerminateSystemThread was called; written by the thread itself */
    BOOLEAN HideFromDebugger;
    EX_PUSH_LOCK NameLock;
    UNICODE_STRING ThreadName;       /* under NameLock; Buffer is freed with the thread's object */
} ETHREAD;

C_ASSERT(sizeof(ETHREAD) <= sizeof(KTHREAD) + sizeof(((KI_THREAD_SLOT *)0)->Ps));
C_ASSERT(FIELD_OFFSET(KI_THREAD_SLOT, Ps) == FIELD_OFFSET(KI_THREAD_SLOT, Tcb) + (LONG)sizeof(KTHREAD));

/* What a debugger reads of a thread. */
#define PSP_LAYOUT                                                                                                     \
    sizeof(ETHREAD), KDP_MEMBER(ETHREAD, ThreadName), KDP_MEMBER(ETHREAD, StartRoutine),                               \
        KDP_MEMBER(ETHREAD, UserStartRoutine), KDP_MEMBER(ETHREAD, Win32StartAddress)

/* What is behind Pcb is there only for other processes than this one. */
typedef struct _EPROCESS {
    KPROCESS Pcb;
    IOP_WATCH Watch;                 /* its descriptor is readable when the process has ended */
    LIST_ENTRY ProcessListEntry;     /* under PspProcessLock */
    BOOLEAN Child;                   /* created here: ours to reap, and kept until it ends */
    volatile BOOLEAN Ending;         /* somebody has found that it ended and does what follows from that */
    volatile BOOLEAN Ended;
    BOOLEAN ExitStatusKnown;
    volatile BOOLEAN TerminationRequested; /* with the exit status in RequestedStatus */
    NTSTATUS RequestedStatus;
    ULONG64 Start;                   /* when the host started it: no other process has both this and the id; 0: unknown */
} EPROCESS;

/* process.c */
NTSTATUS PspCreateProcess(const HAL_SPAWN *Spawn, ULONG Attributes, ACCESS_MASK DesiredAccess, PHANDLE ProcessHandle,
                          PHANDLE ThreadHandle, PCLIENT_ID ClientId);
NTSTATUS PspOpenProcess(HANDLE ProcessId, ULONG Attributes, ACCESS_MASK DesiredAccess, PHANDLE ProcessHandle);
NTSTATUS PspTerminateProcess(PEPROCESS Process, NTSTATUS ExitStatus);
NTSTATUS PspSuspendProcess(PEPROCESS Process);
NTSTATUS PspResumeProcess(PEPROCESS Process);
NTSTATUS PspQueryExitStatus(PEPROCESS Process, PNTSTATUS ExitStatus); /* STATUS_NOT_SUPPORTED: the host does not tell */

/*
 * exit.c: what is to be done when a thread ends, in the order of registration. Routine runs on the thread itself while
 * everything still works, and once more at the very end, for what a destructor of the host's has brought back. A thread
 * that was terminated by another one has no say: WasTerminated is TRUE, Routine runs on a system thread when Thread has
 * stopped, and may call nothing of the program.
 */
VOID PspRegisterThreadExit(VOID (*Routine)(PETHREAD Thread, BOOLEAN WasTerminated));
VOID PspRunThreadExit(PETHREAD Thread, BOOLEAN WasTerminated);

/* thread.c */
typedef struct _PSP_CREATE {
    PKSTART_ROUTINE StartRoutine;
    NTSTATUS (*UserStartRoutine)(PVOID Context);
    PVOID StartContext;
    SIZE_T StackSize;                /* 0: what the host gives */
    BOOLEAN Suspended;
    BOOLEAN HideFromDebugger;
    const GROUP_AFFINITY *Affinity;  /* NULL, or where it may run */
    ULONG IdealProcessor;            /* MAXULONG: whichever */
    PCLIENT_ID ClientId;             /* NULL, or where its id goes */
    PVOID *TebAddress;               /* likewise its TEB */
} PSP_CREATE, *PPSP_CREATE;

NTSTATUS PspCreateThread(PPSP_CREATE Create, ULONG Attributes, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                         PHANDLE ThreadHandle); /* the handle and the id are written before the thread runs */
DECLSPEC_NORETURN VOID PspExitThread(PETHREAD Thread, NTSTATUS ExitStatus); /* the current one */
BOOLEAN PspHasEnded(PETHREAD Thread);

/* terminate.c */
NTSTATUS PspTerminateThread(PETHREAD Thread, NTSTATUS ExitStatus);

/* information.c */
typedef struct _PSP_TIMES {
    ULONGLONG CreateTime;
    ULONGLONG ExitTime;              /* 0: it runs */
    ULONGLONG KernelTime;
    ULONGLONG UserTime;
} PSP_TIMES, *PPSP_TIMES;

VOID PspQueryTimes(PETHREAD Thread, PPSP_TIMES Times);
NTSTATUS PspSetName(PETHREAD Thread, PCUNICODE_STRING Name);
NTSTATUS PspQueryName(PETHREAD Thread, PWSTR Buffer, ULONG Room, PUSHORT Length); /* STATUS_BUFFER_TOO_SMALL:
                                                        *Length bytes are needed */
BOOLEAN PspIsLastThread(VOID);       /* no other thread of the program lives */

/* The address that services report as the thread's TEB: user mode's room, of which ps knows no more. */
FORCEINLINE PVOID PspTebAddress(PETHREAD Thread)
{
    return KiSlotOfThread(&Thread->Tcb)->Rtl;
}

#endif
