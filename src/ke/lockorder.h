/*
 * lockorder.h: the verifier's lock order. Two threads that acquire two locks in opposite orders deadlock only if they
 * run at the same time. The verifier reports the opposite order itself, when it is first used, from the orders that it
 * has seen before.
 *
 * The graph. A vertex is a class of locks, an edge A -> B says that a thread held a lock of class A when it acquired one of
 * class B and would have waited for it. An acquire that would close a cycle is the violation.
 *
 * 1. A class is all locks that were initialized by the same calls: the kind of lock and the innermost KI_ORDER_SITE return
 *    addresses of the initialization. So what is learned from the lock of one object holds for those of all others, and
 *    locks that a wrapper initializes are distinguished by the callers of the wrapper. A lock that no call has
 *    initialized (zeroed static memory, or an inline initializer) is a class of its own. A program may also name the
 *    class of a lock, and its level in it (KdSetLockClass).
 * 2. Two locks of one class have no order by their class, because the class says nothing about which of them comes first:
 *    programs order them by address, or from parent to child. For these the edge is between the two locks themselves,
 *    and only a cycle of such edges is a violation. (lockdep reports each such pair unless it is annotated. That is a
 *    false report for every program that sorts its locks.) Levels of a named class are checked at once: they must
 *    ascend.
 * 3. An acquire that does not wait adds no edge to its lock, but acquires under that lock do. A wait with a timeout, or
 *    for any of several objects, counts as one that does not wait: its end does not depend on the lock.
 * 4. A sharer blocks an exclusive acquire and is blocked by one. Sharers that queue behind a waiting writer also block
 *    each other; those that pass it do not (KiOrderSharedPasses). So an edge has up to four strengths, by how the first
 *    lock is held and how the second is acquired, and a cycle counts only if no passing sharer meets a sharer in it.
 * 5. An acquire of a lock that the thread already has adds nothing, if the lock may be acquired again. If not, it is the
 *    simplest deadlock.
 * 6. Locks of an interrupted thread do not precede those of the DPC or service routine that runs on it: these return
 *    before the thread continues, whatever it holds. For these the levels count: a lock that a DPC or service routine
 *    acquires at some level must not be held at a lower one by anything that they can interrupt.
 * 7. A lock that is initialized again, deleted, or whose pool block is freed is another lock from then on. What is known of
 *    its class stays.
 * 8. The same kind of object may be made in several places, and a compiler unrolls loops: then its locks are of several classes,
 *    and a program that sorts them by address uses all orders of these. So take classes of one kind of lock whose
 *    initializations differ only beyond the program's call, or in calls so near that they may be in one function: a cycle
 *    of these is ignored if all of its edges were used with ascending addresses only, or all with descending ones only.
 *
 * Everything is under KiOrderLock, in a dispatcher section and, where a service routine could interrupt, at HIGH_LEVEL.
 * Memory comes in pages from the host and is never returned. Without memory, new classes are not watched.
 */
#ifndef INTERLOCK_LOCKORDER_H
#define INTERLOCK_LOCKORDER_H

#include "ki.h"

/* X(kind, name, flags). */
#define KI_ORDER_RECURSIVE 1u /* its owner may acquire it again */
#define KI_ORDER_ANYWHERE 2u  /* watched without an initializing call, even outside static memory */
#define KI_ORDER_ABANDONED 4u /* a thread may end with it */
#define KI_ORDER_ALONE 8u     /* its own functions do not detect a recursive acquire */

#define KI_ORDER_KIND_LIST(X)                                                                                          \
    X(KiOrderSpinLock, "spinlock", 0)                                                                                  \
    X(KiOrderQueuedLock, "queued spinlock", 0)                                                                         \
    X(KiOrderSharedSpinLock, "reader/writer spinlock", 0)                                                              \
    X(KiOrderFastMutex, "fast mutex", KI_ORDER_ANYWHERE)                                                               \
    X(KiOrderPushLock, "pushlock", KI_ORDER_ANYWHERE | KI_ORDER_ALONE)                                                 \
    X(KiOrderResource, "resource", KI_ORDER_RECURSIVE)                                                                 \
    X(KiOrderMutant, "mutant", KI_ORDER_RECURSIVE | KI_ORDER_ABANDONED)                                                \
    X(KiOrderSRWLock, "SRW lock", KI_ORDER_ALONE)                                                                      \
    X(KiOrderCriticalSection, "critical section", KI_ORDER_RECURSIVE)                                                  \
    X(KiOrderRtlResource, "RTL resource", KI_ORDER_RECURSIVE)

#define KI_ORDER_KIND_ENTRY(Kind, Name, Flags) Kind,
typedef enum _KI_ORDER_KIND { KI_ORDER_KIND_LIST(KI_ORDER_KIND_ENTRY) KiOrderKinds } KI_ORDER_KIND;

typedef enum _KI_ORDER_MODE {
    KiOrderExclusive,
    KiOrderShared,
    KiOrderSharedPasses /* waiting writers */
} KI_ORDER_MODE;

/* All of these only while KiVerifierEnabled. Site: the return address of the call. */
VOID KiOrderInitialize(PVOID Lock, KI_ORDER_KIND Kind);
VOID KiOrderForget(PVOID Lock);                   /* it is deleted */
/* Before an acquire that may wait forever. Does not return after a violation. */
VOID KiOrderCheck(PKTHREAD Thread, PVOID Lock, KI_ORDER_KIND Kind, KI_ORDER_MODE Mode);
VOID KiOrderHold(PKTHREAD Thread, PVOID Lock, KI_ORDER_KIND Kind, KI_ORDER_MODE Mode, PVOID Site);
/* Also for a lock that another thread acquired. Unknown ones are ignored: the verifier may have been off. */
VOID KiOrderRelease(PKTHREAD Thread, PVOID Lock);
VOID KiOrderConvert(PKTHREAD Thread, PVOID Lock, KI_ORDER_MODE Mode);
VOID KiOrderDisown(PKTHREAD Thread, PVOID Lock);  /* still held, but by no thread: all of Thread's acquires */

FORCEINLINE VOID KiOrderCheckAndHold(PKTHREAD Thread, PVOID Lock, KI_ORDER_KIND Kind, KI_ORDER_MODE Mode, PVOID Site)
{
    KiOrderCheck(Thread, Lock, Kind, Mode);
    KiOrderHold(Thread, Lock, Kind, Mode, Site);
}

/* What a thread holds. */
ULONG KiOrderCountHeld(PKTHREAD Thread);
/* A lock that a thread must not hold when it ends, except for the Older oldest ones; NULL: none. */
PVOID KiOrderFindLeft(PKTHREAD Thread, ULONG Older);
ULONG KiOrderPrintHeld(PKTHREAD Thread, ULONG Older); /* all but the Older oldest ones; returns how many */
VOID KiOrderForgetHeld(PKTHREAD Thread, ULONG Older); /* after a bugcheck that a test expected: all but these */
VOID KiOrderForgetAllHeld(VOID);                  /* the verifier was off: releases meanwhile were not noticed */
VOID KiOrderEndThread(PKTHREAD Thread);           /* a bugcheck if a system thread still holds a lock */
VOID KiOrderDropThread(PKTHREAD Thread);          /* it has ended, or never ran */
/* The memory is freed. Returns a lock in it that is held, or NULL. Abandons: except for a mutant. */
PVOID KiOrderForgetRange(PVOID Base, SIZE_T Size, BOOLEAN Abandons);

VOID KiOrderReadSettings(VOID);
VOID KiOrderForkChild(PKTHREAD Survivor);

#endif
