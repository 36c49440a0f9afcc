/* lockorder.h: a program's interface to the verifier's lock order and held locks. */
#ifndef INTERLOCK_LOCKORDER_PUBLIC_H
#define INTERLOCK_LOCKORDER_PUBLIC_H

#include <interlock/windef.h>

INTERLOCK_BEGIN

/* The verifier's lock order. docs/locks.md describes it. */

/* Names the class of a lock in the lock order, and its level in that class. Locks of one class at different levels have to
   be acquired in the order of their levels, lowest first; at the same level, in any order that is always the same. Call it
   after the lock was initialized and before it is acquired. Without the verifier it does nothing. IRQL <= DISPATCH_LEVEL.
   Only in Interlock. */
NTSYSAPI VOID KdSetLockClass(PVOID Lock, PCSTR ClassName, ULONG Level);

/* Forgets the orders seen so far, as between tests that use the same locks differently. Locks that are held stay known.
   IRQL <= DISPATCH_LEVEL. Only in Interlock. */
NTSYSAPI VOID KdResetLockOrder(VOID);

/* Returns how many things the calling thread has not released: locks that the verifier watches, a raised IRQL, critical
   and guarded regions. Lists them on standard error, each with the place where it was acquired. At the end of a test it
   should return 0. Only in Interlock. */
NTSYSAPI ULONG KdCheckReleased(VOID);

INTERLOCK_END

#endif
