/*
 * freedmemory.h: the verifier's search for objects still in use in memory that is freed: a block of pool, an object,
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
#ifndef INTERLOCK_FREEDMEMORY_H
#define INTERLOCK_FREEDMEMORY_H

#include "ki.h"

/* Kinds of DRIVER_VERIFIER_DETECTED_VIOLATION. */
#define KI_FREED_RESOURCE 0xD2
#define KI_FREED_HELD_LOCK 0x100B
#define KI_FREED_QUEUED_APC 0x494C0001
#define KI_FREED_WAITED_OBJECT 0x494C0002

/* Before the memory is freed, while KiVerifierEnabled. Anything that they find is a bugcheck. IRQL <=
   DISPATCH_LEVEL. */
VOID KiVerifyFreedMemory(PVOID Base, SIZE_T Size);
VOID KiNoteNewMemory(PVOID Base, SIZE_T Size); /* forgets locks in memory that the program freed itself */
VOID KiVerifyFreedObject(PVOID Base, SIZE_T Size); /* its mutant may have an owner, and is abandoned */
VOID KiVerifyStackAtExit(PKTHREAD Thread);
VOID KiVerifyLeftFrames(PVOID Caller); /* the stack below Caller, a variable of the routine's caller */

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

#endif
