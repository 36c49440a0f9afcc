/* wop.h: the layout of a world, its lock and its journal. The theory is in wo.h. All multi-byte fields are the host's. */
#ifndef INTERLOCK_WOP_H
#define INTERLOCK_WOP_H

#include "wo.h"

#define WO_MAGIC 0x646c726f576b6c49ull /* "IlkWorld" */
#define WO_VERSION 1
#define WO_UNIT 64                     /* records begin at multiples of this */
#define WO_CLASSES 12                  /* sizes of records: 64 bytes << class */
#define WO_BUCKETS 65536               /* of the names; untouched pages of the table use no memory */
#define WO_JOURNAL 512                 /* words that one transaction changes at most */
#ifndef WO_POSTS                       /* the explorer has 1: every release is a chain of transactions */
#define WO_POSTS 64                    /* waits that one transaction grants at most */
#endif
#define WO_MACHINE_NAME "/interlock%d-machine-%llx" /* version, PID namespace; in HAL_COMMON_MEMORY */
#define WO_MAXIMUM_SIZE (1ull << 30)

/* In front of each record. Kind is 0 while the record is free; Next links it in the free list of its class. */
typedef enum _WO_KIND { WoFree, WoObjectRecord, WoWaiterRecord, WoProcessRecord, WoReferenceRecord, WoNameRecord, WoTicketRecord,
    WoRequestRecord } WO_KIND;
typedef struct _WO_RECORD {
    UCHAR Kind;
    UCHAR Class;
    USHORT Reserved;
    WO_INDEX Next;
} WO_RECORD, *PWO_RECORD;

/*
 * The state word of an object.
 *
 *      63                    32 31                 8 7      2  1   0
 *     +------------------------+--------------------+--------+---+---+
 *     |         Value          |         0          |  Type  | A | W |
 *     +------------------------+--------------------+--------+---+---+
 *
 * Value: event, timer: 0 or 1; semaphore: the count; mutant: the waiter record of its owner, 0 if it is free.
 * A: mutant: abandoned, and not reported yet. W: frozen: see wo.h, 4.
 */
#define WO_W 1ull
#define WO_ABANDONED 2ull

typedef struct _WO_LINKS { WO_INDEX First, Last; } WO_LINKS;  /* changed as one 8-byte word */

typedef struct _WO_OBJECT {
    WO_RECORD Record;
    volatile ULONG64 Word;
    union { WO_LINKS Waiters; ULONG64 WaitersWord; }; /* blocks, oldest first */
    LONG Limit;                /* semaphore */
    ULONG Recursion;           /* mutant: acquires beyond the first; only the owner's thread, or a grant to it, changes it */
    ULONG64 DueTime;           /* timer; 0: not set */
    ULONG64 Arming;            /* timer: changes whenever it is set or canceled */
    ULONG Period;
    BOOLEAN Absolute;
    ULONG Handles;             /* of all processes */
    ULONG References;          /* processes that have a reference record */
    WO_INDEX Name;             /* 0: none */
    ULONG Attributes;          /* OBJ_PERMANENT, OBJ_EXCLUSIVE */
    WO_INDEX FirstEntry, LastEntry; /* directory: its names in order of insertion */
    WO_INDEX Target;           /* symbolic link: a name record that holds the text */
    WO_INDEX FirstReference;
    /* mutant: in its owner's list, see WO_WAITER.FirstOwned. They change without the lock: nothing that is journaled shares
       their 8 bytes. */
    WO_INDEX NextOwned DECLSPEC_ALIGN(8), PreviousOwned;
} WO_OBJECT, *PWO_OBJECT;
C_ASSERT(FIELD_OFFSET(WO_OBJECT, NextOwned) % 8 == 0 && FIELD_OFFSET(WO_OBJECT, PreviousOwned) % 8 == 4);

/* A block is Waiter * WO_BLOCKS + number. */
#define WO_BLOCKS 64
#define WO_KEYED_WAIT 3    /* kinds of wait besides WO_WAIT_KIND */
#define WO_KEYED_RELEASE 4
typedef struct _WO_BLOCK {
    union { struct { ULONG Next, Previous; }; ULONG64 LinksWord; }; /* in the object's list; blocks, 0: none */
    WO_INDEX Object;
    ULONG Linked;
} WO_BLOCK, *PWO_BLOCK;

/* State: the low 8 bits say which, the rest is the number of the wait. */
#define WO_STATE_MASK 0xffull
typedef enum _WO_WAITER_STATE { WoIdle, WoWaiting, WoClaimed, WoGranted, WoLocallyEnded } WO_WAITER_STATE;

FORCEINLINE ULONG64 WopStateOf(ULONG64 Number, WO_WAITER_STATE State)
{
    return (Number & ~WO_STATE_MASK) | State;
}

/* WakeWord: changes with every wake. WO_ASLEEP: the thread sleeps on it, or is about to. */
#define WO_ASLEEP 1u

/*
 * The mutants that a thread owns, so that the cost of its end, or of its process's end, is proportional to what it
 * owned:
 *
 * 1. FirstOwned lists them. Only the owner's thread changes the list, without the lock and without the journal, in an order
 *    that keeps the forward links (NextOwned) intact between any two stores. After its end a cleaner removes the first one
 *    from the list in the transaction that frees the mutant: from then on its links are the next owner's.
 * 2. Before a thread takes a free mutant or releases one, Pending names it. So a mutant that is not in the list yet, or
 *    no longer, is found there. One that a grant has just handed off is among the blocks of the waiter, whose State is
 *    not Idle.
 * 3. An owned mutant is not freed, even if no process refers to it any more: the end of its owner does that.
 */
typedef struct _WO_WAITER {
    WO_RECORD Record;
    volatile ULONG64 State;
    volatile ULONG WakeWord;
    volatile ULONG Recheck;
    WO_INDEX Process;
    ULONG ThreadId;
    NTSTATUS Status;           /* of a granted wait */
    UCHAR Kind;                /* WO_WAIT_KIND, WO_KEYED_ */
    UCHAR Count;
    UCHAR Timers;              /* how many of its objects are timers */
    UCHAR Mixed;               /* any of more objects than these ends the wait. Its own thread writes it, while idle */
    ULONG64 Key;               /* keyed events */
    WO_INDEX NextOfProcess, PreviousOfProcess;
    ULONG64 Age;               /* of its wait: from WO_WORLD.WaitNumber. A list of blocks is in this order */
    WO_INDEX FirstOwned, Pending;
    ULONG64 Notification;      /* 0: a thread's. Otherwise its process delivers this, and is woken by GuardWord */
    ULONG WakerProcessor;      /* the host's number of the processor that granted the last wait, plus 1: a hint */
    WO_BLOCK Block[WO_BLOCKS];
} WO_WAITER, *PWO_WAITER;

/* A process's reference to an object; in the list of the process and in that of the object. */
typedef struct _WO_REFERENCE {
    WO_RECORD Record;
    WO_INDEX Process, Object;
    ULONG Handles, Reserved;
    WO_INDEX NextOfProcess, PreviousOfProcess;
    WO_INDEX NextOfObject, PreviousOfObject;
} WO_REFERENCE, *PWO_REFERENCE;

#define WO_EXITING 1u          /* runs its exit handlers: its handles are already closed */
#define WO_FORKED 2u           /* has not used the world since the fork: perhaps it is about to call exec */
#define WO_STARTED 4u          /* a program that has not taken its ticket yet, and perhaps never will */
typedef struct _WO_PROCESS {
    WO_RECORD Record;
    ULONG64 Key;               /* HalQueryProcessKey; 0: prepared for a child that does not run yet */
    ULONG ProcessId;
    ULONG Flags;
    WO_INDEX Next, Previous;   /* in the ring; the two behind it guard it. A prepared one: NextPrepared */
    WO_INDEX FirstWaiter;
    WO_INDEX FirstReference;
    WO_INDEX FirstPrepared;    /* for children of this one */
    WO_INDEX FirstEntry;       /* ticket: the handles that the child gets, see process.c */
    ULONG64 Nonce;             /* of a prepared one: unique in this world */
    WO_INDEX FirstRequest, LastRequest; /* to this process */
    WO_INDEX FirstSent, ReservedIndex;  /* by this process */
    volatile ULONG GuardWord;  /* its session thread sleeps here: changes when the ring, the mailbox or a notification does */
    ULONG Reserved;            /* GuardWord changes without the lock: nothing that is journaled shares its 8 bytes */
} WO_PROCESS, *PWO_PROCESS;

typedef struct _WO_NAME {
    WO_RECORD Record;
    WO_INDEX HashNext;
    ULONG Hash;                /* of the directory and the name in upper case */
    WO_INDEX Directory, Object;
    WO_INDEX NextSibling, PreviousSibling;
    USHORT Length;             /* in characters */
    USHORT Flags;
    WCHAR Text[];
} WO_NAME, *PWO_NAME;

/* A chain of transactions that the owner of the lock has begun. The lock is held from its first to its last. */
typedef enum _WO_INTENTION {
    WoNoIntention,
    WoSettle,                  /* grants waits while the object is signaled */
    WoPulse,                   /* the same; then the object is no longer signaled */
    WoNudge                    /* wakes all linked waiters, to check their timers again */
} WO_INTENTION;

typedef enum _WO_PHASE { WoPhaseIdle, WoPhaseEditing, WoPhaseFinishing } WO_PHASE;
typedef struct _WO_EDIT { ULONG64 Offset, Old; } WO_EDIT; /* Offset: of the word, in the file */
/* A claimed wait. State: Waiting, with the number of the wait; entered before the claim. */
typedef struct _WO_POST { ULONG64 State; WO_INDEX Waiter; ULONG Reserved; } WO_POST;

typedef enum _WO_WORLD_STATE { WoBeingMade, WoLive, WoEnded, WoDamaged } WO_WORLD_STATE;

/*
 * The lock: the key of the process that holds it (hal.h), 0: free; and a bit: threads sleep on LockWake. The key of a
 * dead process is never reused, so the compare-exchange that takes the lock over from it needs no other number.
 */
#define WO_LOCK_SLEEPERS (1ull << 63)

typedef struct _WO_WORLD {
    ULONG64 Magic;
    ULONG Version, Bits;       /* Bits: of a pointer */
    volatile ULONG State;      /* WO_WORLD_STATE; ended: the file was removed */
    ULONG64 Size;              /* of the file */
    ULONG64 Top;               /* records end here */
    ULONG64 Used;              /* bytes in records that are not free */
    WO_INDEX FreeRecord[WO_CLASSES];
    WO_INDEX AnyProcess;       /* of the ring */
    WO_INDEX Reserved;
    WO_INDEX FirstEntry, LastEntry; /* of the root directory */
    ULONG64 LastNonce;
    ULONG64 Removals;          /* of names */
    ULONG Permanents;          /* names that need no handle */
    ULONG ReservedUlong;
    ULONG Processes, Waiters, Objects, Names; /* how many records: the bound of every walk */

    volatile ULONG64 Lock DECLSPEC_ALIGN(64);
    volatile ULONG LockWake;
    volatile ULONG Phase;
    ULONG Edits;               /* incremented before the word changes */
    ULONG Posts;
    ULONG64 Intention;         /* WO_INTENTION: what the repairer completes (WopCompleteIntention), with */
    ULONG64 IntentionArgument; /* this object */
    ULONG64 WaitNumber;        /* of the last wait that was linked */
    WO_EDIT Edit[WO_JOURNAL];
    WO_POST Post[WO_POSTS];
    WO_INDEX Bucket[WO_BUCKETS] DECLSPEC_ALIGN(4096);
} WO_WORLD, *PWO_WORLD;

/* Where an enumeration stopped. */
typedef struct _WO_CURSOR { WO_INDEX Directory; ULONG Number; WO_INDEX Name; ULONG64 Removals; } WO_CURSOR;

#define WO_VIEW_LOST 1u        /* the file was cut off: HalGuardMapping */
#define WO_VIEW_POISONED 2u

/* This process's mapping. The explorer makes several, each of which is a process. */
struct _WO_VIEW {
    PWO_WORLD World;
    SIZE_T Mapped;             /* bytes of address space; the file may be shorter, and grow up to this */
    ULONG64 Writable;          /* the size of the file up to which the mapping can be written; with the lock held */
    ULONG64 Known;             /* the size of the file when this process last made a record at its end */
    ULONG64 Key;               /* of this process */
    WO_INDEX Self;             /* this process's record; 0: not attached */
    volatile ULONG Poisoned;   /* 0, or WO_VIEW_ */
    BOOLEAN MayHaveEnded;      /* while this process attaches, and from its exit on; relaxed: its session reads it */
    BOOLEAN ToldStuck;         /* that the lock is held for long */
    WO_CURSOR Cursor;          /* under the lock */
    HAL_FILE_ID File;
    BOOLEAN Machine;           /* an administrator's: only the administrator removes it */
    CHAR Path[HAL_LONGEST_PATH]; /* empty: memory without a file, which does not grow */
};

/* Where records begin. */
#define WO_FIRST_RECORD ((WO_INDEX)((sizeof(WO_WORLD) + WO_UNIT - 1) / WO_UNIT))

#define WO_FIRST_SIZE (512 * 1024ull)  /* of a new file */

/* The memory is zeroed. Also for the command that makes the machine's world, which is not linked with the library. */
FORCEINLINE VOID WopInitializeWorld(PWO_WORLD World, ULONG64 Size)
{
    World->Magic = WO_MAGIC;
    World->Version = WO_VERSION;
    World->Bits = sizeof(PVOID) * 8;
    World->Size = Size;
    World->Top = (ULONG64)WO_FIRST_RECORD * WO_UNIT;
    /* release: pairs with the acquire of a process that maps it */
    __atomic_store_n(&World->State, WoLive, __ATOMIC_RELEASE);
}

FORCEINLINE PVOID WopAt(PWO_VIEW View, WO_INDEX Index)
{
    return (PUCHAR)View->World + (SIZE_T)Index * WO_UNIT;
}

/* For an address in the world. */
FORCEINLINE WO_INDEX WopIndexOf(PWO_VIEW View, const volatile VOID *Record)
{
    return (WO_INDEX)((SIZE_T)((const volatile UCHAR *)Record - (PUCHAR)View->World) / WO_UNIT);
}

/* The bound of a walk that takes Count steps according to the world. */
FORCEINLINE ULONG WopBound(PWO_VIEW View, ULONG Count)
{
    ULONG64 Most = View->Mapped / WO_UNIT;
    ULONG64 Records = __atomic_load_n(&View->World->Top, __ATOMIC_RELAXED) / WO_UNIT;
    Most = Records < Most ? Records : Most;
    return Count < Most ? Count : (ULONG)Most;
}

/*
 * Checked access: NULL poisons the world. Another process may change anything between a check and a use, so a length or
 * a count that bounds writes outside the world is read once. What is read or written inside stays inside: the largest
 * record fits after the last one.
 */
PVOID WopRecord(PWO_VIEW View, WO_INDEX Index, WO_KIND Kind);
BOOLEAN WopIsRecord(PWO_VIEW View, WO_INDEX Index, WO_KIND Kind); /* poisons nothing: for an index that may be old */
VOID WopPoison(PWO_VIEW View, PCSTR Reason);

/* map.c: after the file has grown to Size, or may have. */
VOID WopMakeWritable(PWO_VIEW View, ULONG64 Size);
/* With the lock held: only under the lock does a process learn of records that another one made at the end. */
FORCEINLINE VOID WopFollowSize(PWO_VIEW View)
{
    if (View->World->Size > View->Writable) {
        WopMakeWritable(View, View->World->Size);
        View->Writable = View->World->Size;
    }
}

/* lock.c, map.c: wake all sleepers of a damaged world; the second, if the file was truncated and the words on which they sleep no
   longer exist. */
VOID WopWakeEverybody(PWO_VIEW View);
VOID WopWakeBehindEnd(PWO_VIEW View);

/* lock.c. FALSE: poisoned, and the lock is not held. Repairs after a dead owner before it returns TRUE. From WopLock to
   WopUnlock the thread is in a dispatcher section: it is not suspended or terminated, and no fork happens. */
BOOLEAN WopLock(PWO_VIEW View);
VOID WopUnlock(PWO_VIEW View);

/* With the lock held: WopBegin, any number of edits and claims, then WopCommit or WopCancel. A transaction may
   begin after another one under the same lock. */
VOID WopBegin(PWO_VIEW View);
VOID WopEdit(PWO_VIEW View, volatile VOID *Word, ULONG64 New);       /* Word: 8 bytes, aligned, in the world */
VOID WopEditUlong(PWO_VIEW View, volatile VOID *Field, ULONG New);   /* 4 bytes; journals the 8 bytes around it */
BOOLEAN WopHasRoom(PWO_VIEW View, ULONG Edits, ULONG Posts);         /* FALSE: commit, and continue in another
                                                                        transaction */
BOOLEAN WopClaim(PWO_VIEW View, PWO_WAITER Waiter, NTSTATUS Status); /* Waiting -> Claimed, and posted; FALSE: it ended */
VOID WopCommit(PWO_VIEW View);                                       /* then Claimed -> Granted, and wakes */
VOID WopCancel(PWO_VIEW View);
VOID WopRepairJournal(PWO_VIEW View);                                /* by the next owner of the lock */

/* The wake of a granted wait, or to check again. Surely: even if an earlier wake may have died between its two
   steps. */
VOID WopWake(PWO_VIEW View, PWO_WAITER Waiter, BOOLEAN Surely);

/* object.c, wait.c: for the repairer and for the cleanup after a process, with the lock held and no transaction. */
VOID WopCompleteIntention(PWO_VIEW View);
VOID WopEndWaiter(PWO_VIEW View, WO_INDEX Waiter); /* unlinks it, abandons its mutants. The record stays */
VOID WopFreeWaiter(PWO_VIEW View, PWO_WAITER Waiter); /* the record of one that has ended */
WO_INDEX WopFindOwnWaiter(PWO_VIEW View);          /* of the calling thread; 0: it has none */
VOID WopGiveUpMutant(PWO_VIEW View, WO_INDEX Self, PWO_OBJECT Object); /* by its owner, if it is one; it has no
                                                                          waiters */
BOOLEAN WopIsOwned(PWO_OBJECT Object);             /* a mutant with an owner must not be freed */
/* Creates an object, inside a transaction; 0: no memory. If New->Owner is not 0, the second follows after the commit,
   before the lock is released. */
WO_INDEX WopNewObject(PWO_VIEW View, const WO_NEW *New);
VOID WopTakeInitialOwnership(PWO_VIEW View, WO_INDEX Owner, WO_INDEX Mutant);
VOID WopDeliverNotifications(PWO_VIEW View);       /* by the session thread, without the lock, when GuardWord has changed */
ULONGLONG WopNextNotification(PWO_VIEW View);      /* and at this interrupt time; 0: no timer has a notification */

/* Ends a transaction and the lock. Done is FALSE: out of memory, and the transaction is undone. */
NTSTATUS WopFinish(PWO_VIEW View, BOOLEAN Done);

/* process.c. With the lock held and no transaction, unless said. */
#define WO_WARDS 2
typedef struct _WO_LISTED { WO_INDEX Index; ULONG Flags; ULONG64 Key; } WO_LISTED, *PWO_LISTED;
NTSTATUS WopEnterRing(PWO_VIEW View);               /* creates the record of this process */
BOOLEAN WopIsLast(PWO_VIEW View);                   /* every other process in the ring is exiting */
/* Without the lock. */
VOID WopCleanProcess(PWO_VIEW View, WO_INDEX Process, ULONG64 Key); /* which is dead */
VOID WopCleanDead(PWO_VIEW View);                   /* after all processes that the host no longer knows */
ULONG WopListWards(PWO_VIEW View, WO_LISTED Wards[WO_WARDS]);
VOID WopWakeSession(PWO_PROCESS Process);

/* names.c. Inside a transaction: a reference and handles more, or fewer, of a process. 0: no memory. */
WO_INDEX WopAddReference(PWO_VIEW View, WO_INDEX Process, WO_INDEX Object, ULONG Handles);
VOID WopDropHandles(PWO_VIEW View, PWO_REFERENCE Reference, ULONG Handles);
VOID WopDropReference(PWO_VIEW View, PWO_REFERENCE Reference);

/* process.c. With the lock held: a prepared record with all that this process refers to, for a fork. 0: no memory. */
WO_INDEX WopPrepareCopy(PWO_VIEW View, ULONG64 *Nonce);
BOOLEAN WopClaimPrepared(PWO_VIEW View, WO_INDEX Prepared, ULONG64 Nonce, ULONG Flags); /* it is now this process's */
VOID WopDropChild(PWO_VIEW View, WO_INDEX Prepared, ULONG64 Nonce); /* without the lock: unless the child has it */
VOID WopServeRequests(PWO_VIEW View);              /* mailbox.c, without the lock: by the session thread */

/* process.c, mailbox.c: for the cleaner, inside a transaction. */
VOID WopUnlinkPrepared(PWO_VIEW View, WO_INDEX Parent, WO_INDEX Prepared);
VOID WopFreeEntries(PWO_VIEW View, PWO_PROCESS Process);
VOID WopEndRequest(PWO_VIEW View, PWO_PROCESS Process); /* one to or from a process that is dead */

/* names.c: frees an object that no process refers to, if it is not owned; inside a transaction. */
VOID WopFreeUnused(PWO_VIEW View, WO_INDEX Object);

/* map.c: records, inside a transaction. 0: no memory. All but the header of a new record is zero; it needs no
   WopEdit until the transaction ends, because undoing frees the record. */
WO_INDEX WopAllocate(PWO_VIEW View, WO_KIND Kind, SIZE_T Size);
VOID WopFree(PWO_VIEW View, WO_INDEX Index);

/* Objects and waits: the state word, freezing, lists of blocks, granting. */

/* The state word. */

#define WO_VALUE(Word) ((ULONG)((Word) >> 32))
#define WO_TYPE_OF(Word) ((ULONG)((Word) >> 2 & 0x3f))
#define WO_IS_OF_TYPES(Word, Types) (((Types) >> WO_TYPE_OF(Word) & 1) != 0)
#define WO_EVENTS (1ull << WoNotificationEvent | 1ull << WoSynchronizationEvent)
#define WO_TIMERS (1ull << WoNotificationTimer | 1ull << WoSynchronizationTimer)
#define WO_TAKES_SIGNAL (1ull << WoSynchronizationEvent | 1ull << WoSynchronizationTimer)
#define WO_MOST_RECURSION 0x80000000u /* of a mutant: its count is then MINLONG */

FORCEINLINE ULONG64 WopWithValue(ULONG64 Word, ULONG Value)
{
    return (Word & 0xffffffffu) | (ULONG64)Value << 32;
}

/* acquire: what happened before a signal is visible after the wait that it ends */
FORCEINLINE ULONG64 WopReadWord(PWO_OBJECT Object)
{
    return __atomic_load_n(&Object->Word, __ATOMIC_ACQUIRE);
}

/* While W is clear. On failure *Word is the current word. acq_rel: as in WopReadWord, and the other way round */
FORCEINLINE BOOLEAN WopChangeWord(PWO_OBJECT Object, ULONG64 *Word, ULONG64 New)
{
    return __atomic_compare_exchange_n(&Object->Word, Word, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* relaxed: by its own thread, or under the lock, to see which of the states that do not change then it is in */
FORCEINLINE ULONG64 WopReadState(PWO_WAITER Waiter)
{
    return __atomic_load_n(&Waiter->State, __ATOMIC_RELAXED);
}

FORCEINLINE BOOLEAN WopIsSignaledFor(ULONG64 Word, WO_INDEX Waiter)
{
    ULONG Value = WO_VALUE(Word);
    return WO_TYPE_OF(Word) == WoMutant ? Value == 0 || Value == Waiter : Value != 0;
}

/* The word of a signaled object after a wait has consumed it. */
FORCEINLINE ULONG64 WopConsumed(ULONG64 Word, WO_INDEX Waiter)
{
    if (WO_IS_OF_TYPES(Word, WO_TAKES_SIGNAL)) {
        return WopWithValue(Word, 0);
    }
    if (WO_TYPE_OF(Word) == WoSemaphore) {
        return WopWithValue(Word, WO_VALUE(Word) - 1);
    }
    return WO_TYPE_OF(Word) == WoMutant ? WopWithValue(Word & ~WO_ABANDONED, Waiter) : Word;
}

/* A mutant that is free and abandoned: the wait that takes it reports that. */
FORCEINLINE NTSTATUS WopTakingStatus(ULONG64 Word)
{
    return (Word & WO_ABANDONED) && WO_VALUE(Word) == 0 ? STATUS_ABANDONED : STATUS_SUCCESS;
}

/* WopRecord for the kinds that are looked up most often. An index after the records of the world, but inside the
   mapping, leads to zeros, or to a fault that the host turns into zeros. */
FORCEINLINE PVOID WopRecordInline(PWO_VIEW View, WO_INDEX Index, WO_KIND Kind)
{
    PWO_RECORD Record = WopAt(View, Index);
    BOOLEAN Inside = Index >= WO_FIRST_RECORD && Index < View->Mapped / WO_UNIT - sizeof(WO_WAITER) / WO_UNIT;
    /* relaxed: as in WopReadRecord */
    return Inside && __atomic_load_n(&Record->Kind, __ATOMIC_RELAXED) == Kind ? (PVOID)Record
                                                                            : WopRecord(View, Index, Kind);
}

FORCEINLINE PWO_OBJECT WopObject(PWO_VIEW View, WO_INDEX Index)
{
    return WopRecordInline(View, Index, WoObjectRecord);
}

/* For operations that may need no lock. A view that was cut off has zeros instead of records, which poison it when they are
   read. relaxed: a world that is damaged at this moment is found out later */
FORCEINLINE BOOLEAN WopIsUnusable(PWO_VIEW View)
{
    return __atomic_load_n(&View->World->State, __ATOMIC_RELAXED) == WoDamaged;
}

/* Everything below: with the lock held. */

VOID WopFreeze(PWO_OBJECT Object);
VOID WopThaw(PWO_OBJECT Object); /* after the commit: clears W if the object has no waiters */

/*
 * A change that grants waits: a chain of transactions, in which the objects that may have lost their last waiter are
 * noted. Those that do not fit stay frozen, which is legal.
 */
#define WO_MOST_THAWS 192
typedef struct _WOP_CHAIN {
    PWO_VIEW View;
    ULONG Thaws;
    WO_INDEX Thaw[WO_MOST_THAWS];
} WOP_CHAIN, *PWOP_CHAIN;

/* Object is frozen. The first begins a transaction, and records what the repairer has to do if the process dies in the
   chain; the last commits, thaws and clears the record. */
VOID WopBeginChain(PWOP_CHAIN Chain, PWO_VIEW View, PWO_OBJECT Object, WO_INTENTION Intention);
VOID WopReleaseWaiters(PWOP_CHAIN Chain, PWO_OBJECT Object); /* first in, first out, while it is signaled */
VOID WopEndChain(PWOP_CHAIN Chain, PWO_OBJECT Object);

/* Lists of blocks. */
PWO_WAITER WopWaiterOfBlock(PWO_VIEW View, ULONG Block, PULONG Number); /* NULL: poisoned */
VOID WopLinkBlock(PWO_VIEW View, PWO_WAITER Waiter, ULONG Number, PWO_OBJECT Object); /* by age */
VOID WopUnlinkBlocks(PWOP_CHAIN Chain, PWO_WAITER Waiter);
ULONG WopMostBlocks(PWO_VIEW View); /* more in one list are a loop */

/* A wait of the calling thread, which links its blocks in a transaction of its own. */
VOID WopBecomeWaiting(PWO_VIEW View, PWO_WAITER Waiter);

/* Ownership of mutants, by the owner's thread. */
VOID WopTakeOwnership(PWO_VIEW View, PWO_WAITER Owner, PWO_OBJECT Mutant);   /* it has just become Owner's */
VOID WopTakeFrozenMutant(PWO_VIEW View, WO_INDEX Self, PWO_OBJECT Mutant);   /* with the lock held: it is free */
VOID WopAbandonMutants(PWO_VIEW View, PWO_WAITER Owner);
BOOLEAN WopTryAcquire(PWO_VIEW View, PWO_OBJECT Mutant, WO_INDEX Self, NTSTATUS *Status); /* FALSE: not without the lock */
/* WoReleaseSemaphore and WoReleaseMutant without the lock. STATUS_PENDING: the object is frozen, and nothing has happened. */
NTSTATUS WopTryReleaseSemaphore(PWO_OBJECT Semaphore, LONG Adjustment, PLONG Previous);
NTSTATUS WopTryReleaseMutant(PWO_VIEW View, PWO_OBJECT Mutant, WO_INDEX Self, BOOLEAN Abandoned, PLONG Previous);

/* Timers. */
VOID WopExpireIfDue(PWO_VIEW View, PWO_OBJECT Timer); /* with the lock held */
VOID WopExpireDueTimers(PWO_VIEW View, const WO_INDEX Objects[], ULONG Count); /* takes the lock if it has to */
VOID WopNudgeWaiters(PWO_VIEW View, PWO_OBJECT Timer);

#endif
