/*
 * verifier.h: what the verifier checks, apart from the order of locks (lockorder.h): spinlocks that a processor holds, memory
 * that is freed while it is in use, and what a routine of the program leaves behind.
 */
#ifndef INTERLOCK_KE_VERIFIER_H
#define INTERLOCK_KE_VERIFIER_H

#include "ki.h"
#include "lockorder.h"
#include "spinlock.h"

/*
 * The verifier's notes of the spinlocks whose words do not name their owner: queued and reader/writer
 * spinlocks. A processor that acquires a lock it holds would wait for itself; one that releases a lock it does not hold
 * would release another owner's.
 *
 * Each processor has its own notes. An interrupt on the processor acquires and releases locks of its own, so the notes
 * change at HIGH_LEVEL. Locks beyond KI_HELD_LOCKS are only counted: while there are any, a release without a note is
 * not reported.
 */

typedef enum _KI_HOLD {
    KiHoldExclusive,
    KiHoldShared
} KI_HOLD;

VOID KiCheckNotHeld(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind);
VOID KiAddHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind, PVOID Site);
VOID KiRemoveHeldLock(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold);

/* Before the acquire. */
FORCEINLINE VOID KiVerifyAcquire(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind)
{
    KiVerifyAtDispatchLevel(Thread);
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiCheckNotHeld(Thread, Lock, Hold, Kind);
    }
}

/* Site: the return address of the call. */
FORCEINLINE VOID KiNoteAcquiredAt(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind, PVOID Site)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiAddHeldLock(Thread, Lock, Hold, Kind, Site);
    }
}

FORCEINLINE VOID KiNoteAcquired(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold, KI_ORDER_KIND Kind)
{
    KiNoteAcquiredAt(Thread, Lock, Hold, Kind, __builtin_return_address(0));
}

/* Before the release. */
FORCEINLINE VOID KiVerifyRelease(PKTHREAD Thread, PVOID Lock, KI_HOLD Hold)
{
    KiVerifyAtDispatchLevel(Thread);
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiRemoveHeldLock(Thread, Lock, Hold);
    }
}

/*
 * The verifier's search for objects still in use in memory that is freed: a block of pool, an object,
 * the frames of a routine that returns to the system, the stack of a thread. It walks the system's lists, so nothing
 * else pays for it. A walk ends at the first object found: the links in a dead stack frame may be overwritten.
 *
 *     a timer that is set                     TIMER_OR_DPC_INVALID 0
 *     a DPC that is queued, or of such a timer TIMER_OR_DPC_INVALID 1
 *     a work item that is queued              WORKER_INVALID 0
 *     a resource that was not deleted         DRIVER_VERIFIER_DETECTED_VIOLATION 0xD2
 *     a lock that is held                     DRIVER_VERIFIER_DETECTED_VIOLATION 0x100B
 *     an APC that is queued, or an object with a waiter: kinds of Interlock's own, since Windows does not check for
 *     them
 */

/* Kinds of DRIVER_VERIFIER_DETECTED_VIOLATION. */
#define KI_FREED_RESOURCE 0xD2
#define KI_FREED_HELD_LOCK 0x100B
#define KI_FREED_QUEUED_APC 0x494C0001
#define KI_FREED_WAITED_OBJECT 0x494C0002

/* Before the memory is freed, while KiVerifierEnabled. Anything that it finds is a bugcheck, but an object's mutant may have
   an owner, and is abandoned. IRQL <= DISPATCH_LEVEL. */
VOID KiVerifyFreed(PVOID Base, SIZE_T Size, BOOLEAN IsObject);
VOID KiNoteNewMemory(PVOID Base, SIZE_T Size); /* forgets locks in memory that the program freed itself */
VOID KiVerifyStackAtExit(PKTHREAD Thread);

/* The lists of higher layers; the file that owns a list sets its entry when the library is loaded. Returns what is in
   [Base, End), or NULL. */
typedef enum _KI_FREED_LIST { KiFreedResources, KiFreedWorkItems, KiFreedLists } KI_FREED_LIST;
typedef PVOID KI_FIND_FREED(PVOID Base, PVOID End);
extern KI_FIND_FREED *KiFindFreed[KiFreedLists];

FORCEINLINE BOOLEAN KiIsInMemory(PVOID Address, PVOID Base, PVOID End)
{
    return (ULONG_PTR)Address >= (ULONG_PTR)Base && (ULONG_PTR)Address < (ULONG_PTR)End;
}

/* Each returns what is in [Base, End), or NULL. */
PKTIMER KiFindSetTimer(PVOID Base, PVOID End, PKDPC *Dpc); /* Dpc: or the DPC of a set timer */
PKDPC KiFindQueuedDpc(PVOID Base, PVOID End);

/*
 * Checks what a routine of the program leaves behind when it returns to the system: a lock, a critical or
 * guarded region, a different IRQL, an object in use in its stack frames. A table in verifier.c has the
 * bugcheck for each kind of routine. The callers of the routines check the levels that Windows always checks.
 */

typedef enum _KI_CALLBACK_KIND {
    KiCallbackDpc,
    KiCallbackService,  /* of an interrupt */
    KiCallbackApc,
    KiCallbackWorker,
    KiCallbackPool,
    KiCallbackDispatch, /* this and the next four: of a driver */
    KiCallbackCompletion,
    KiCallbackCancel,
    KiCallbackStartIo,
    KiCallbackDriver,   /* DriverEntry, DriverUnload */
    KiCallbackNotification, /* of a callback object */
    KiCallbackKinds
} KI_CALLBACK_KIND;

/*
 * A call of a routine of the program that the caller keeps account of, in a variable of the caller. The frames of a thread
 * are a list, innermost first.
 *
 * A routine may be left without a return. A raised status and a bugcheck that a test expects jump to the innermost frame
 * of __try, or place that expects one: the calls that were made since then are dropped. The longjmp of a test framework
 * drops none: then the list begins with frames in memory that has been reused. A frame whose caller is not above the
 * newest one on the stack, or whose Check is wrong, is such a frame, and ends the list. (The address of the variable itself
 * says nothing: AddressSanitizer keeps variables elsewhere.)
 */
typedef struct _KI_CALL_FRAME {
    struct _KI_CALL_FRAME *Outer;
    ULONG_PTR Check;
    PVOID Place;            /* of the caller, on the stack */
    PVOID ExceptionList;    /* of the thread, when the call was made, and */
    PVOID ExpectedBugCheck; /* likewise */
} KI_CALL_FRAME, *PKI_CALL_FRAME;

PKI_CALL_FRAME KiLiveCallFrame(PKI_CALL_FRAME Frame, PVOID Place); /* NULL if it is left, or if there is none */
VOID KiEnterCallFrame(PKTHREAD Thread, PKI_CALL_FRAME Frame, PVOID Place);
VOID KiLeaveCallFrame(PKTHREAD Thread, PKI_CALL_FRAME Frame);
VOID KiDropCallFrames(PKTHREAD Thread, PVOID ExceptionFrame, PVOID Expectation); /* those inside; the other one is NULL */

#define KI_RETURNED_WITH_LOCK 0x494C0003 /* a kind of DRIVER_VERIFIER_DETECTED_VIOLATION, Interlock's own */

typedef struct _KI_CALLBACK {
    ULONG Held;
    SHORT KernelApcDisable;
    SHORT SpecialApcDisable;
    KIRQL Irql;
} KI_CALLBACK, *PKI_CALLBACK;

VOID KiNoteCallback(PKTHREAD Thread, PKI_CALLBACK Callback);
VOID KiVerifyReturned(PKTHREAD Thread, const KI_CALLBACK *Callback, KI_CALLBACK_KIND Kind, PVOID Routine);

FORCEINLINE VOID KiBeginCallback(PKTHREAD Thread, PKI_CALLBACK Callback)
{
    Callback->Irql = HIGH_LEVEL + 1; /* the verifier was off */
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiNoteCallback(Thread, Callback);
    }
}

FORCEINLINE VOID KiEndCallback(PKTHREAD Thread, const KI_CALLBACK *Callback, KI_CALLBACK_KIND Kind, PVOID Routine)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        KiVerifyReturned(Thread, Callback, Kind, Routine);
    }
}

#endif
