/* exp.h: the executive's private structures and functions. */
#ifndef INTERLOCK_EXP_H
#define INTERLOCK_EXP_H

#include <interlock/ex.h>

#include "../ke/timer.h"

/* A thread's room: theory in resource.c. */
typedef struct _EXP_THREAD {
    PVOID ResourceOwner;                   /* hint: the owner record that the thread linked last */
    ULONG ResourceOwners;                  /* records and entries that name the thread: those it made itself, and */
    volatile ULONG ResourceOwnersByOthers; /* those that other threads made for it */
} EXP_THREAD, *PEXP_THREAD;

typedef struct _EXP_THREAD_KEPT {
    PVOID SpareOwner;                      /* an owner record, for the next acquire that needs one */
} EXP_THREAD_KEPT, *PEXP_THREAD_KEPT;

KI_THREAD_ROOM(EXP_THREAD, Ex, ExpThread);
KI_THREAD_ROOM(EXP_THREAD_KEPT, ExKept, ExpThreadKept);

/*
 * A timer of the executive is a kernel timer with a DPC that calls back, and ends with ExDeleteTimer. Byte 1 of its header
 * is its state (KI_TIMER2_), which like Running changes under the object's lock.
 *
 * 1. ExDeleteTimer sets Disabled, once. From then on the timer is not set any more.
 * 2. Three things keep a disabled timer alive: it is in a table (Inserted), its DPC is queued (Expiring), a callback runs
 *    (Running). A timer that is Expiring is not queued a second time: expirations in between merge into one callback.
 * 3. The thread that removes the last of the three, or finds none of them when it disables the timer, frees the timer.
 *    None of them can return, so there is exactly one such thread.
 */
typedef struct _EX_TIMER {
    KTIMER Timer;
    KDPC Dpc;
    PEXT_CALLBACK Callback;
    PVOID CallbackContext;
    ULONG Attributes;
    ULONG Running;       /* callbacks that are active */
    PKEVENT DeleteEvent; /* set instead of freeing the timer: its waiter does that */
    PEXT_DELETE_CALLBACK DeleteCallback;
    PVOID DeleteContext;
} EX_TIMER;

/*
 * Keyed events. Programs reach them through the system services; theory in waiterhash.c. The waiters are in the waiter
 * hash. A wait for the object itself finds it signaled.
 */

typedef struct _EX_KEYED_EVENT {
    KEVENT Signaled;
} EX_KEYED_EVENT, *PEX_KEYED_EVENT;

/* The default if a program names none. */
extern EX_KEYED_EVENT ExpCritSecOutOfMemoryEvent;

VOID ExpInitializeKeyedEvent(PEX_KEYED_EVENT KeyedEvent);

/* STATUS_INVALID_PARAMETER_1 for an odd key. NULL for KeyedEvent is ExpCritSecOutOfMemoryEvent. After STATUS_USER_APC the
   caller runs KiDeliverUserApcs, when it has released its references. */
NTSTATUS ExpWaitForKeyedEvent(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout);
NTSTATUS ExpReleaseKeyedEvent(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                              PLARGE_INTEGER Timeout);

/* system.c: the resolution of the clock, in 100 ns. */
#define EXP_COARSEST_RESOLUTION 156250u /* NT's clock tick */
#define EXP_FINEST_RESOLUTION 5000u
BOOLEAN ExpSetProcessResolution(ULONG DesiredTime, BOOLEAN Set, PULONG Current); /* FALSE: none was set before */

/* Work items. */
extern LONGLONG ExpWorkerPatience;     /* a relative timeout: how long an idle worker stays */
ULONG ExpQueryWorkers(ULONG Priority); /* threads of the queue with that priority, idle or not */

/*
 * The use of pool memory by tag (pool.c).
 *
 * The table has a row for each tag and kind of pool, paged or not, as poolmon shows them. The first allocation creates
 * a row, which stays. Counting is always on, so it has to be cheap: a row has several stripes, a thread counts in one
 * of them, and a reader adds them up. Sums are exact while no thread allocates; otherwise a row may show a free without
 * its allocation for a moment. Tags beyond EXP_POOL_TAGS share the row of the tag "Ovfl".
 *
 * With the verifier on, each block has a record: its number, size and the stack that allocated it. Records are in lists,
 * by the address of the block, until the block is freed.
 *
 * The 16 bytes before a block's header are unused by the pool: its size and its record.
 */

#define EXP_POOL_TAGS 512 /* a power of 2 */
#define EXP_POOL_STRIPES 8
#define EXP_POOL_OVERFLOW_TAG 0x6c66764fu /* "Ovfl" */

/* A row's key: 0, or its tag with these. */
#define EXP_POOL_PAGED ((ULONG64)1 << 32)
#define EXP_POOL_USED ((ULONG64)1 << 33)

typedef struct _EXP_POOL_STRIPE {
    volatile ULONG64 Allocations DECLSPEC_ALIGN(KI_CACHE_LINE);
    volatile ULONG64 Frees;
    volatile ULONG64 Bytes; /* allocated less freed here: only the sum of all stripes is meaningful */
} EXP_POOL_STRIPE, *PEXP_POOL_STRIPE;

typedef struct _EXP_POOL_TAG {
    volatile ULONG64 Key;
    volatile ULONG64 PeakBytes; /* with the verifier on */
    EXP_POOL_STRIPE Stripe[EXP_POOL_STRIPES];
} EXP_POOL_TAG, *PEXP_POOL_TAG;

/* Read by the debugger. The table has one more row, for the overflow. */
#define EXP_POOL_LAYOUT sizeof(EXP_POOL_TAG), sizeof(EXP_POOL_STRIPE), EXP_POOL_TAGS, EXP_POOL_STRIPES

#ifdef INTERLOCK_HOST
VOID ExpNotePoolAllocated(PVOID Block, ULONG PoolType, SIZE_T NumberOfBytes, ULONG Tag);
VOID ExpNotePoolFreed(PVOID Block, ULONG PoolType, ULONG Tag); /* the header's */
SIZE_T ExpPoolBytes(PVOID Block, SIZE_T Offset); /* of the block in the host's allocation */
#else
#define ExpNotePoolAllocated(Block, PoolType, NumberOfBytes, Tag) ((VOID)0)
#define ExpNotePoolFreed(Block, PoolType, Tag) ((VOID)0)
#define ExpPoolBytes(Block, Offset) (HalQueryAllocationSize((PUCHAR)(Block) - (Offset)) - (Offset))
#endif

#endif
