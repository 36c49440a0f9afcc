/* psp.h: the executive's view of threads and processes. */
#ifndef INTERLOCK_PSP_H
#define INTERLOCK_PSP_H

#include <interlock/ps.h>

#include <interlock/ex.h>

#include "../hal/hal.h"
#include "../io/watch.h"
#include "../ob/obp.h"

/* A thread's slot from its KTHREAD on. */
typedef struct _ETHREAD {
    KTHREAD Tcb;
    PKSTART_ROUTINE StartRoutine;    /* of a system thread, or */
    NTSTATUS (*UserStartRoutine)(PVOID Context); /* of one that NtCreateThreadEx created */
    PVOID StartContext;
    PCLIENT_ID StartClientId;        /* where the new thread first writes its id; NULL: nowhere */
    PVOID Win32StartAddress;
    BOOLEAN Terminating;             /* PspExitThread was called; written by the thread itself */
    BOOLEAN HideFromDebugger;
    EX_PUSH_LOCK NameLock;
    UNICODE_STRING ThreadName;       /* under NameLock; the thread object owns Buffer */
    LIST_ENTRY IrpList;              /* requests of the thread, under IrpListLock; zero: never had any (io/irp.c) */
    KI_LOCK IrpListLock;
    struct _IRP *TopLevelIrp;
} ETHREAD;

C_ASSERT(sizeof(ETHREAD) <= sizeof(KTHREAD) + sizeof(((KI_THREAD_SLOT *)0)->Ps));
C_ASSERT(FIELD_OFFSET(KI_THREAD_SLOT, Ps) == FIELD_OFFSET(KI_THREAD_SLOT, Tcb) + (LONG)sizeof(KTHREAD));

/* The members of a thread that the debugger reads. */
#define PSP_LAYOUT                                                                                                     \
    sizeof(ETHREAD), KDP_MEMBER(ETHREAD, ThreadName), KDP_MEMBER(ETHREAD, StartRoutine),                               \
        KDP_MEMBER(ETHREAD, UserStartRoutine), KDP_MEMBER(ETHREAD, Win32StartAddress)

/* For this process only Pcb exists; the other members are those of another process. */
typedef struct _EPROCESS {
    KPROCESS Pcb;
    IOP_WATCH Watch;                 /* its descriptor becomes readable when the process ends */
    LIST_ENTRY ProcessListEntry;     /* under PspProcessLock */
    BOOLEAN Child;                   /* created here: we reap it, and keep the object until then */
    volatile BOOLEAN Ending;         /* claimed by the thread that publishes the end */
    volatile BOOLEAN Ended;
    BOOLEAN ExitStatusKnown;
    volatile BOOLEAN TerminationRequested; /* with the exit status in RequestedStatus */
    NTSTATUS RequestedStatus;
    ULONG64 Start;                   /* when the host started it; with the id it is unique. 0: unknown */
    HAL_PROCESS_TIMES Times;         /* of a process that has ended, before it was reaped */
    ULONGLONG ExitTime;
} EPROCESS;

/* process.c */
struct _OBP_HEIRLOOMS; /* ob/share.h */
/* Two handles of the process: the second one stands for its first thread. Heirlooms NULL: it inherits no handle. */
NTSTATUS PspCreateProcess(const HAL_SPAWN *Spawn, const struct _OBP_HEIRLOOMS *Heirlooms, ULONG Attributes,
                          PHANDLE ProcessHandle, PHANDLE ThreadHandle, PCLIENT_ID ClientId);
NTSTATUS PspOpenProcess(KPROCESSOR_MODE AccessMode, HANDLE ProcessId, ULONG Attributes, ACCESS_MASK DesiredAccess,
                        PHANDLE ProcessHandle);
NTSTATUS PspTerminateProcess(PEPROCESS Process, NTSTATUS ExitStatus);
NTSTATUS PspSuspendProcess(PEPROCESS Process);
NTSTATUS PspResumeProcess(PEPROCESS Process);
NTSTATUS PspQueryExitStatus(PEPROCESS Process, PNTSTATUS ExitStatus); /* STATUS_NOT_SUPPORTED: unknown to the host */

/*
 * thread.c. An exit routine runs when a thread ends, in the order of registration: on the thread itself while
 * everything still works, and again at the very end, for state that a host destructor may have recreated. For a thread
 * that another one terminated it runs on the reaper, after Thread has stopped, with WasTerminated; then it must not
 * call the program.
 */
typedef VOID PSP_EXIT_ROUTINE(PETHREAD Thread, BOOLEAN WasTerminated);
VOID PspRegisterThreadExit(PSP_EXIT_ROUTINE *Routine);

/* Called by each thread that runs a program's routine, before it does. There is one such routine. */
typedef VOID PSP_START_ROUTINE(PETHREAD Thread);
VOID PspSetThreadStart(PSP_START_ROUTINE *Routine);
VOID PspNotifyThreadStart(PETHREAD Thread);
DECLSPEC_NORETURN VOID PspExitThread(PETHREAD Thread, NTSTATUS ExitStatus); /* the current one */
BOOLEAN PspHasEnded(PETHREAD Thread);

typedef struct _PSP_CREATE {
    PKSTART_ROUTINE StartRoutine;
    NTSTATUS (*UserStartRoutine)(PVOID Context);
    PVOID StartContext;
    SIZE_T StackSize;                /* 0: the host's default */
    BOOLEAN Suspended;
    BOOLEAN HideFromDebugger;
    const GROUP_AFFINITY *Affinity;  /* where it may run; NULL: anywhere */
    ULONG IdealProcessor;            /* MAXULONG: any */
    PCLIENT_ID ClientId;             /* receives its id, or NULL */
    PVOID *TebAddress;               /* receives the address of its TEB, or NULL */
} PSP_CREATE, *PPSP_CREATE;

/* The handle and the id are written before the thread runs. */
NTSTATUS PspCreateThread(PPSP_CREATE Create, ULONG Attributes, ACCESS_MASK DesiredAccess, KPROCESSOR_MODE AccessMode,
                         PHANDLE ThreadHandle);
/* STATUS_ACCESS_DENIED: threads can be created in this process only. */
NTSTATUS PspCheckThreadProcess(HANDLE ProcessHandle, KPROCESSOR_MODE AccessMode);

typedef struct _PSP_TIMES {
    ULONGLONG CreateTime;
    ULONGLONG ExitTime;              /* 0: still running */
    ULONGLONG KernelTime;
    ULONGLONG UserTime;
} PSP_TIMES, *PPSP_TIMES;

VOID PspQueryTimes(PETHREAD Thread, PPSP_TIMES Times);
VOID PspQueryProcessTimes(PEPROCESS Process, PPSP_TIMES Times);
NTSTATUS PspSetName(PETHREAD Thread, PCUNICODE_STRING Name);
NTSTATUS PspQueryName(PETHREAD Thread, PWSTR Buffer, ULONG Room, PUSHORT Length); /* *Length: bytes needed */
BOOLEAN PspIsLastThread(VOID); /* no other thread of the program is alive */

/* The address that services report as the thread's TEB: user mode's room, whose structure ps does not know. */
FORCEINLINE PVOID PspTebAddress(PETHREAD Thread)
{
    return KiSlotOfThread(&Thread->Tcb)->Rtl;
}

#endif
