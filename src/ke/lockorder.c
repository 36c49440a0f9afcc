/* lockorder.c: the verifier's lock order. Theory in lockorder.h. */
#include "lockorder.h"

#include "irql.h"

#include <stdio.h>

#define KI_ORDER_SITE 8          /* return addresses that make a class */
#define KI_ORDER_FRAMES 16       /* of a stack that is kept */
#define KI_ORDER_HELD_LOCKS 60   /* of one thread; further ones are not watched */
#define KI_ORDER_CYCLE 8         /* edges of a cycle that are printed */
#define KI_ORDER_NEAR 1024       /* bytes between two calls that may be in one function */
#define KI_ORDER_LOCK_BUCKETS 4096
#define KI_ORDER_CLASS_BUCKETS 1024
#define KI_ORDER_ARENA_SIZE (256 * 1024)
#define KI_ORDER_STACK_RANGE (256 * 1024) /* above the current frame: assumed to be this thread's stack */

/* The first parameter of DRIVER_VERIFIER_DETECTED_VIOLATION. */
#define KI_ACQUIRED_AGAIN 0x1000
#define KI_ORDER_VIOLATED 0x1001
#define KI_ENDED_WITH_LOCK 0x100A

/* Strengths of an edge: how the first lock was held, E or S, and how the second was acquired: overtaking writers that
   wait for other sharers, R, or not, N. */
#define KI_EDGE_EN 1u
#define KI_EDGE_ER 2u
#define KI_EDGE_SN 4u
#define KI_EDGE_SR 8u
#define KI_EDGE_EXCLUSIVE (KI_EDGE_EN | KI_EDGE_ER)
#define KI_EDGE_BLOCKED (KI_EDGE_EN | KI_EDGE_SN)

/* Theory 8: how the addresses of the two locks compared, whenever the edge was used. */
#define KI_EDGE_ASCENDING 1u
#define KI_EDGE_DESCENDING 2u

typedef struct _KI_ORDER_STACK {
    ULONG ThreadId;
    ULONG Count;
    ULONG64 Frame[KI_ORDER_FRAMES];
} KI_ORDER_STACK, *PKI_ORDER_STACK;

typedef struct _KI_ORDER_EDGE {
    struct _KI_ORDER_EDGE *Next; /* of the edges from From, or of the free ones */
    struct _KI_ORDER_NODE *From;
    struct _KI_ORDER_NODE *To;
    ULONG Strength;
    ULONG Directions;            /* KI_EDGE_ASCENDING, KI_EDGE_DESCENDING */
    PVOID Held;                  /* the two locks by which it was first seen, */
    PVOID Site;                  /* where the first of them was acquired, */
    PVOID Acquired;
    UCHAR HeldKind;
    UCHAR AcquiredKind;
    KI_ORDER_STACK Stack;        /* and the second */
} KI_ORDER_EDGE, *PKI_ORDER_EDGE;

/* A search visits a node in up to two ways: 0, by an edge that ends in a blocked acquire; 1, only by passing sharers. */
typedef struct _KI_ORDER_VISIT {
    ULONG Search;
    UCHAR FromWay;
    PKI_ORDER_EDGE Edge;
    struct _KI_ORDER_NODE *Next; /* in the queue */
    UCHAR NextWay;
} KI_ORDER_VISIT;

/* A class at one of its levels; or one lock, for the order among locks of its class. */
typedef struct _KI_ORDER_NODE {
    struct _KI_ORDER_NODE *Next; /* in the bucket of classes, or of the locks of a class that have their own node */
    struct _KI_ORDER_NODE *Locks; /* of a class: those nodes */
    PKI_ORDER_EDGE Edges;
    KI_ORDER_VISIT Visit[2];
    PCSTR Name;                  /* of a named class; interned, so equal names are equal pointers */
    ULONG Level;
    UCHAR Kind;
    UCHAR LowestHeld;            /* the lowest level at which a lock of the class was held, */
    UCHAR HighestInterrupt;      /* and the highest at which an interrupting routine acquired one; 0: none */
    ULONG SiteCount;             /* 0: a class of one lock */
    ULONG CallFrames;            /* of the site, up to the program's call */
    ULONG64 Site[KI_ORDER_SITE];
    PVOID Lock;                  /* the only lock, or the one that the class was created for */
    KI_ORDER_STACK LowestStack;
    KI_ORDER_STACK InterruptStack;
} KI_ORDER_NODE, *PKI_ORDER_NODE;

typedef struct _KI_ORDER_LOCK {
    struct _KI_ORDER_LOCK *Next; /* in its bucket, or of the free ones */
    PVOID Address;
    PKI_ORDER_NODE Class;        /* NULL: not watched */
    PKI_ORDER_NODE Own;          /* NULL: never acquired with another lock of its class */
    ULONG Holders;
    UCHAR Kind;                  /* KiOrderKinds: it has a named class, and was not acquired yet */
} KI_ORDER_LOCK, *PKI_ORDER_LOCK;

typedef struct _KI_ORDER_ENTRY {
    PKI_ORDER_LOCK Lock;
    PVOID Site;
    ULONG Count;                 /* acquires */
    ULONG Wait;                  /* of a mutant: OrderWait of its thread then */
    USHORT Context;              /* 0: the thread itself; else a DPC or service routine on it */
    UCHAR Mode;
} KI_ORDER_ENTRY, *PKI_ORDER_ENTRY;

typedef struct _KI_ORDER_HELD {
    struct _KI_ORDER_HELD *Next; /* of all, or of the free ones */
    PKTHREAD Thread;
    volatile ULONG Count;
    KI_ORDER_ENTRY Entry[KI_ORDER_HELD_LOCKS];
} KI_ORDER_HELD, *PKI_ORDER_HELD;

typedef enum _KI_ORDER_ACTION { KiOrderOff, KiOrderPrints, KiOrderStops } KI_ORDER_ACTION;

typedef struct _KI_ORDER_NAME {
    struct _KI_ORDER_NAME *Next;
    CHAR Text[];
} KI_ORDER_NAME;

static KI_LOCK KiOrderLock;
static ULONG KiOrderAction = KiOrderStops;
static PUCHAR KiOrderArena;
static SIZE_T KiOrderArenaLeft;
static BOOLEAN KiOrderArenaRefused;
static PKI_ORDER_LOCK KiOrderLocks[KI_ORDER_LOCK_BUCKETS];
static PKI_ORDER_NODE KiOrderClasses[KI_ORDER_CLASS_BUCKETS];
static PKI_ORDER_LOCK KiFreeOrderLocks;
static PKI_ORDER_EDGE KiFreeOrderEdges;
static PKI_ORDER_NODE KiFreeOrderNodes;
static PKI_ORDER_HELD KiFreeOrderHeld;
static PKI_ORDER_HELD KiAllOrderHeld;
static KI_ORDER_NAME *KiOrderNames;
static ULONG KiOrderSearch;
static BOOLEAN KiOrderWatchesWaits; /* every thread has KI_WAIT_NEXT_VERIFIED */

#define KI_ORDER_KIND_NAME(Kind, Name, Flags) [Kind] = Name,
#define KI_ORDER_KIND_FLAGS(Kind, Name, Flags) [Kind] = Flags,
static const PCSTR KiOrderKindName[KiOrderKinds] = {KI_ORDER_KIND_LIST(KI_ORDER_KIND_NAME)};
static const UCHAR KiOrderKindFlags[KiOrderKinds] = {KI_ORDER_KIND_LIST(KI_ORDER_KIND_FLAGS)};

VOID KiOrderReadSettings(VOID)
{
    KiOrderWatchesWaits = KiVerifierEnabled;
    KiOrderAction = KiReadSetting("INTERLOCK_LOCK_ORDER", KiOrderOff, KiOrderStops, KiOrderStops);
}

/* The section around everything below. Returns the level at which to leave it. */
static KIRQL KiEnterOrder(PKTHREAD Thread)
{
    KIRQL Irql = Thread->Irql;
    KiEnterDispatcher(Thread);
    if (Irql >= DISPATCH_LEVEL) {
        KiSetIrql(Thread, HIGH_LEVEL); /* a service routine would enter here again */
    }
    KiAcquireLock(&KiOrderLock);
    return Irql;
}

static VOID KiLeaveOrder(PKTHREAD Thread, KIRQL Irql)
{
    KiReleaseLock(&KiOrderLock);
    if (Irql >= DISPATCH_LEVEL) {
        KiSetIrql(Thread, Irql);
        KiPollInterrupts(Thread);
    }
    KiExitDispatcher(Thread);
}

/* Memory. */

static PVOID KiAllocateOrder(SIZE_T Size)
{
    Size = (Size + MEMORY_ALLOCATION_ALIGNMENT - 1) & ~(SIZE_T)(MEMORY_ALLOCATION_ALIGNMENT - 1);
    if (Size > KiOrderArenaLeft && !KiOrderArenaRefused) {
        KiOrderArena = HalAllocatePages(KI_ORDER_ARENA_SIZE);
        KiOrderArenaLeft = KiOrderArena != NULL ? KI_ORDER_ARENA_SIZE : 0;
        KiOrderArenaRefused = KiOrderArena == NULL;
    }
    if (Size > KiOrderArenaLeft) {
        return NULL;
    }
    PVOID Memory = KiOrderArena;
    KiOrderArena += Size;
    KiOrderArenaLeft -= Size;
    return Memory;
}

/* From a free list, zeroed, or new. All of these structures begin with Next. */
#define KI_TAKE_ORDER(Type, FreeList)                                                                                  \
    static Type *KiTake##FreeList(VOID)                                                                                \
    {                                                                                                                  \
        Type *Taken = KiFree##FreeList;                                                                                \
        if (Taken == NULL) {                                                                                           \
            return KiAllocateOrder(sizeof(Type));                                                                      \
        }                                                                                                              \
        KiFree##FreeList = Taken->Next;                                                                                \
        memset(Taken, 0, sizeof(*Taken));                                                                              \
        return Taken;                                                                                                  \
    }

KI_TAKE_ORDER(KI_ORDER_LOCK, OrderLocks)
KI_TAKE_ORDER(KI_ORDER_EDGE, OrderEdges)
KI_TAKE_ORDER(KI_ORDER_NODE, OrderNodes)
KI_TAKE_ORDER(KI_ORDER_HELD, OrderHeld)

/* Stacks. */

static DECLSPEC_NOINLINE VOID KiCaptureOrderStack(PKTHREAD Thread, PKI_ORDER_STACK Stack)
{
    Stack->ThreadId = Thread->ThreadId;
    Stack->Count = HalCaptureStack(2, Stack->Frame, KI_ORDER_FRAMES);
}

/* Classes and locks. */

static ULONG64 KiHashOrder(ULONG64 Hash, ULONG64 Value)
{
    return (Hash ^ Value) * 0x9E3779B97F4A7C15ULL >> 7 ^ Hash << 9;
}

static PKI_ORDER_LOCK *KiOrderBucket(PVOID Lock)
{
    return &KiOrderLocks[KiHashOrder(0, (ULONG_PTR)Lock >> 3) % KI_ORDER_LOCK_BUCKETS];
}

static PKI_ORDER_LOCK KiFindOrderLock(PVOID Lock)
{
    PKI_ORDER_LOCK Found = *KiOrderBucket(Lock);
    while (Found != NULL && Found->Address != Lock) {
        Found = Found->Next;
    }
    return Found;
}

typedef struct _KI_ORDER_KEY {
    PCSTR Name;
    ULONG Level;
    UCHAR Kind;
    PVOID Lock; /* without a site */
    ULONG SiteCount;
    ULONG CallFrames;
    ULONG64 Site[KI_ORDER_SITE];
} KI_ORDER_KEY;

static BOOLEAN KiIsOrderClass(PKI_ORDER_NODE Class, const KI_ORDER_KEY *Key)
{
    if (Key->Name != NULL || Class->Name != NULL) {
        return Class->Name == Key->Name && Class->Level == Key->Level;
    }
    return Class->Kind == Key->Kind && Class->SiteCount == Key->SiteCount &&
           (Key->SiteCount != 0 ? memcmp(Class->Site, Key->Site, Key->SiteCount * sizeof(ULONG64)) == 0
                                : Class->Lock == Key->Lock);
}

/* NULL: no memory. */
static PKI_ORDER_NODE KiOrderClassOf(const KI_ORDER_KEY *Key)
{
    ULONG64 Hash = Key->Name != NULL ? (ULONG_PTR)Key->Name : Key->Kind;
    for (ULONG Index = 0; Key->Name == NULL && Index < Key->SiteCount; Index++) {
        Hash = KiHashOrder(Hash, Key->Site[Index]);
    }
    if (Key->Name == NULL && Key->SiteCount == 0) {
        Hash = KiHashOrder(Hash, (ULONG_PTR)Key->Lock);
    }
    PKI_ORDER_NODE *Bucket = &KiOrderClasses[Hash % KI_ORDER_CLASS_BUCKETS];
    PKI_ORDER_NODE Class = *Bucket;
    while (Class != NULL && !KiIsOrderClass(Class, Key)) {
        Class = Class->Next;
    }
    if (Class == NULL && (Class = KiTakeOrderNodes()) != NULL) {
        Class->Name = Key->Name;
        Class->Level = Key->Level;
        Class->Kind = Key->Kind;
        Class->LowestHeld = MAXUCHAR;
        Class->SiteCount = Key->SiteCount;
        Class->CallFrames = Key->CallFrames;
        memcpy(Class->Site, Key->Site, sizeof(Class->Site));
        Class->Lock = Key->Lock;
        Class->Next = *Bucket;
        *Bucket = Class;
    }
    return Class;
}

static VOID KiFreeEdgesTo(PKI_ORDER_NODE From, PKI_ORDER_NODE To) /* NULL: all */
{
    PKI_ORDER_EDGE *Link = &From->Edges;
    while (*Link != NULL) {
        PKI_ORDER_EDGE Edge = *Link;
        if (To == NULL || Edge->To == To) {
            *Link = Edge->Next;
            Edge->Next = KiFreeOrderEdges;
            KiFreeOrderEdges = Edge;
        } else {
            Link = &Edge->Next;
        }
    }
}

/* Theory 7: a new lock has no order among those of its class. */
static VOID KiForgetOwnOrder(PKI_ORDER_LOCK Lock)
{
    if (Lock->Own == NULL) {
        return;
    }
    PKI_ORDER_NODE *Link = &Lock->Class->Locks;
    while (*Link != NULL) {
        PKI_ORDER_NODE Node = *Link;
        if (Node == Lock->Own) {
            *Link = Node->Next;
        } else {
            KiFreeEdgesTo(Node, Lock->Own);
            Link = &Node->Next;
        }
    }
    KiFreeEdgesTo(Lock->Own, NULL);
    Lock->Own->Next = KiFreeOrderNodes;
    KiFreeOrderNodes = Lock->Own;
    Lock->Own = NULL;
}

/* NULL: no memory. */
static PKI_ORDER_LOCK KiAddOrderLock(PVOID Address, KI_ORDER_KIND Kind)
{
    PKI_ORDER_LOCK *Bucket = KiOrderBucket(Address);
    PKI_ORDER_LOCK Lock = KiTakeOrderLocks();
    if (Lock != NULL) {
        Lock->Address = Address;
        Lock->Kind = (UCHAR)Kind;
        Lock->Next = *Bucket;
        *Bucket = Lock;
    }
    return Lock;
}

static VOID KiRemoveOrderLock(PKI_ORDER_LOCK *Link)
{
    PKI_ORDER_LOCK Lock = *Link;
    KiForgetOwnOrder(Lock);
    *Link = Lock->Next;
    Lock->Next = KiFreeOrderLocks;
    KiFreeOrderLocks = Lock;
}

/* Removes it from the list of each thread that holds it. */
static VOID KiDropOrderHolders(PKI_ORDER_LOCK Lock)
{
    for (PKI_ORDER_HELD Held = KiAllOrderHeld; Held != NULL && Lock->Holders != 0; Held = Held->Next) {
        for (ULONG Index = Held->Count; Index-- != 0;) {
            if (Held->Entry[Index].Lock == Lock) {
                memmove(&Held->Entry[Index], &Held->Entry[Index + 1],
                        (Held->Count - Index - 1) * sizeof(Held->Entry[0]));
                Held->Count -= 1;
                Lock->Holders -= 1;
            }
        }
    }
    Lock->Holders = 0;
}

/* Can this lock, which no call has initialized, be distinguished from a later one at the same address? */
static BOOLEAN KiIsLastingLock(PVOID Lock, KI_ORDER_KIND Kind)
{
    ULONG_PTR Frame = (ULONG_PTR)__builtin_frame_address(0);
    if (HalFindModuleBase(Lock) != NULL) {
        return TRUE;
    }
    return (KiOrderKindFlags[Kind] & KI_ORDER_ANYWHERE) != 0 && (ULONG_PTR)Lock - Frame >= KI_ORDER_STACK_RANGE;
}

/* Enters the section. *Lock is NULL if it is not watched. Only the first use of a lock queries the host. */
static KIRQL KiEnterOrderWith(PKTHREAD Thread, PVOID Address, KI_ORDER_KIND Kind, PKI_ORDER_LOCK *Lock)
{
    KIRQL Irql = KiEnterOrder(Thread);
    *Lock = KiFindOrderLock(Address);
    if (*Lock != NULL && (*Lock)->Kind == KiOrderKinds) {
        (*Lock)->Kind = (UCHAR)Kind;
    }
    if (*Lock == NULL || (*Lock)->Kind != Kind) {
        KiLeaveOrder(Thread, Irql);
        BOOLEAN Lasting = KiIsLastingLock(Address, Kind);
        KI_ORDER_KEY Key = {.Kind = (UCHAR)Kind, .Lock = Address};
        Irql = KiEnterOrder(Thread);
        *Lock = KiFindOrderLock(Address);
        if (*Lock == NULL) {
            *Lock = KiAddOrderLock(Address, Kind);
        }
        if (*Lock != NULL && ((*Lock)->Class == NULL || (*Lock)->Kind != Kind)) {
            KiDropOrderHolders(*Lock);
            KiForgetOwnOrder(*Lock);
            (*Lock)->Kind = (UCHAR)Kind;
            (*Lock)->Class = Lasting ? KiOrderClassOf(&Key) : NULL;
        }
    }
    return Irql;
}

/* Gives the lock a class. */
static VOID KiPutInOrderClass(PKTHREAD Thread, const KI_ORDER_KEY *Key)
{
    KIRQL Irql = KiEnterOrder(Thread);
    PKI_ORDER_LOCK Lock = KiFindOrderLock(Key->Lock);
    if (Lock == NULL) {
        Lock = KiAddOrderLock(Key->Lock, Key->Kind);
    }
    if (Lock != NULL) {
        if (Key->Name == NULL) {
            KiDropOrderHolders(Lock);
            Lock->Kind = Key->Kind;
        }
        KiForgetOwnOrder(Lock);
        Lock->Class = KiOrderClassOf(Key);
    }
    KiLeaveOrder(Thread, Irql);
}

/* The verifier was turned on while threads run. A thread that is about to change its WaitNext may lose the bit: then
   its waits count as waits with a timeout. */
static VOID KiWatchWaits(VOID)
{
    PKTHREAD Thread;
    for (ULONG Number = 0; (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
        __atomic_fetch_or(&Thread->WaitNext, KI_WAIT_NEXT_VERIFIED, __ATOMIC_RELAXED);
    }
    KiOrderWatchesWaits = TRUE;
}

/* Frames of the library that lead to one of its functions. If the library is linked into the program, its frames cannot
   be distinguished and none are counted. */
static ULONG KiCountOwnFrames(const ULONG64 *Frames, ULONG Count)
{
    PVOID Own = HalFindModuleBase((PVOID)(ULONG_PTR)KiCountOwnFrames);
    ULONG Found = 0;
    while (Found < Count && HalFindModuleBase((PVOID)Frames[Found]) == Own) {
        Found += 1;
    }
    return Found < Count ? Found : 0;
}

DECLSPEC_NOINLINE VOID KiOrderInitialize(PVOID Lock, KI_ORDER_KIND Kind)
{
    KI_ORDER_KEY Key = {.Kind = (UCHAR)Kind, .Lock = Lock};
    if (KiOrderAction == KiOrderOff || !KiSystemIsUsable) {
        return;
    }
    if (!KiOrderWatchesWaits) {
        KiWatchWaits();
    }
    Key.SiteCount = HalCaptureStack(1, Key.Site, KI_ORDER_SITE);
    ULONG Own = KiCountOwnFrames(Key.Site, Key.SiteCount);
    Key.CallFrames = Own != 0 ? Own + 1 : KI_ORDER_SITE;
    KiPutInOrderClass(KiCurrentThread(), &Key);
}

VOID KiOrderForget(PVOID Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL Irql = KiEnterOrder(Thread);
    for (PKI_ORDER_LOCK *Link = KiOrderBucket(Lock); *Link != NULL; Link = &(*Link)->Next) {
        if ((*Link)->Address == Lock) {
            KiDropOrderHolders(*Link);
            KiRemoveOrderLock(Link);
            break;
        }
    }
    KiLeaveOrder(Thread, Irql);
}

PVOID KiOrderForgetRange(PVOID Base, SIZE_T Size, BOOLEAN Abandons)
{
    PKTHREAD Thread = KiCurrentThread();
    PVOID Held = NULL;
    if (KiOrderAction == KiOrderOff) {
        return NULL;
    }
    /* Probes each possible address in a small block, and each lock for a large one. */
    KIRQL Irql = KiEnterOrder(Thread);
    BOOLEAN Small = Size / sizeof(ULONG) < KI_ORDER_LOCK_BUCKETS;
    ULONG_PTR End = (ULONG_PTR)Base + Size;
    for (ULONG Step = 0; Step < (Small ? Size / sizeof(ULONG) : KI_ORDER_LOCK_BUCKETS); Step++) {
        PKI_ORDER_LOCK *Link = Small ? KiOrderBucket((PUCHAR)Base + Step * sizeof(ULONG)) : &KiOrderLocks[Step];
        while (*Link != NULL) {
            ULONG_PTR Address = (ULONG_PTR)(*Link)->Address;
            if (Address < (ULONG_PTR)Base || Address >= End) {
                Link = &(*Link)->Next;
                continue;
            }
            if ((*Link)->Holders != 0) {
                if (!Abandons || !(KiOrderKindFlags[(*Link)->Kind] & KI_ORDER_ABANDONED)) {
                    Held = (*Link)->Address;
                }
                KiDropOrderHolders(*Link);
            }
            KiRemoveOrderLock(Link);
        }
    }
    KiLeaveOrder(Thread, Irql);
    return Held;
}

/* NULL: no memory. */
static PCSTR KiInternName(PCSTR Text)
{
    SIZE_T Size = strlen(Text) + 1;
    KI_ORDER_NAME *Name = KiOrderNames;
    while (Name != NULL && strcmp(Name->Text, Text) != 0) {
        Name = Name->Next;
    }
    if (Name == NULL && (Name = KiAllocateOrder(sizeof(*Name) + Size)) != NULL) {
        memcpy(Name->Text, Text, Size);
        Name->Next = KiOrderNames;
        KiOrderNames = Name;
    }
    return Name != NULL ? Name->Text : NULL;
}

VOID KdSetLockClass(PVOID Lock, PCSTR ClassName, ULONG Level)
{
    PKTHREAD Thread = KiCurrentThread();
    if (!KiVerifierEnabled || KiOrderAction == KiOrderOff) {
        return;
    }
    KIRQL Irql = KiEnterOrder(Thread);
    PKI_ORDER_LOCK Known = KiFindOrderLock(Lock);
    KI_ORDER_KEY Key = {
        .Name = KiInternName(ClassName), .Level = Level, .Kind = Known != NULL ? Known->Kind : KiOrderKinds, .Lock = Lock};
    KiLeaveOrder(Thread, Irql);
    if (Key.Name != NULL) {
        KiPutInOrderClass(Thread, &Key);
    }
}

VOID KdResetLockOrder(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL Irql = KiEnterOrder(Thread);
    for (ULONG Bucket = 0; Bucket < KI_ORDER_CLASS_BUCKETS; Bucket++) {
        for (PKI_ORDER_NODE Class = KiOrderClasses[Bucket]; Class != NULL; Class = Class->Next) {
            KiFreeEdgesTo(Class, NULL);
            Class->LowestHeld = MAXUCHAR;
            Class->HighestInterrupt = 0;
            for (PKI_ORDER_NODE Own = Class->Locks; Own != NULL; Own = Own->Next) {
                KiFreeEdgesTo(Own, NULL);
            }
        }
    }
    KiLeaveOrder(Thread, Irql);
}

/* The report. It is copied inside the section and printed outside, because symbol lookup needs the host's loader. */

typedef struct _KI_ORDER_REPORT {
    PVOID Lock;              /* that is acquired, or NULL: no violation */
    PVOID Held;
    PVOID Site;              /* where Held was acquired */
    KI_ORDER_STACK Initialized[2]; /* Lock and Held, by a call; else no frames */
    UCHAR Kind;
    UCHAR HeldKind;
    UCHAR LowestHeld;        /* of a violation by level */
    UCHAR HighestInterrupt;
    PCSTR Name;
    PCSTR HeldName;
    ULONG Level;
    ULONG HeldLevel;
    ULONG EdgeCount;
    ULONG Length;            /* of the cycle, with the new edge */
    KI_ORDER_EDGE Edge[KI_ORDER_CYCLE];
    PCSTR EdgeName[KI_ORDER_CYCLE][2];
    KI_ORDER_STACK Stack[2]; /* by level: where it was held low, and acquired high */
    KI_ORDER_STACK Now;
} KI_ORDER_REPORT, *PKI_ORDER_REPORT;

static VOID KiPrintOrderStack(const KI_ORDER_STACK *Stack)
{
    ULONG Own = KiCountOwnFrames(Stack->Frame, Stack->Count);
    HalPrintCallers(Stack->Frame + Own, Stack->Count - Own);
}

#define KI_LOCK_TEXT 320

static PCSTR KiDescribeLock(PVOID Lock, UCHAR Kind, PCSTR Class, PSTR Text)
{
    CHAR Symbol[160] = "";
    if (HalQueryAddressName((ULONG_PTR)Lock, Symbol, sizeof(Symbol)) && strchr(Symbol, '!') == NULL) {
        Symbol[0] = '\0';
    }
    snprintf(Text, KI_LOCK_TEXT, "%s %p%s%s%s%s%s%s", KiOrderKindName[Kind], Lock, Symbol[0] != '\0' ? " (" : "", Symbol,
             Symbol[0] != '\0' ? ")" : "", Class != NULL ? " of class \"" : "", Class != NULL ? Class : "",
              Class != NULL ? "\"" : "");
    return Text;
}

static VOID KiPrintSite(PCSTR What, PVOID Site)
{
    CHAR Name[256];
    if (Site != NULL && HalQueryAddressName((ULONG_PTR)Site - 1, Name, sizeof(Name))) {
        HalPrint("    %s %s\n", What, Name);
    }
}

static VOID KiPrintInitialized(PCSTR Lock, const KI_ORDER_STACK *Stack)
{
    CHAR Name[256];
    ULONG Own = KiCountOwnFrames(Stack->Frame, Stack->Count);
    if (Stack->Count > Own && HalQueryAddressName(Stack->Frame[Own] - 1, Name, sizeof(Name))) {
        HalPrint("    %s was initialized by %s\n", Lock, Name);
    }
}

static VOID KiPrintOrderReport(const KI_ORDER_REPORT *Report)
{
    CHAR First[KI_LOCK_TEXT];
    CHAR Second[KI_LOCK_TEXT];
    KiDescribeLock(Report->Lock, Report->Kind, Report->Name, Second);
    if (Report->HighestInterrupt != 0) {
        HalPrint("*** Lock order: %s is acquired by a DPC or interrupt at IRQL %u and held at IRQL %u, where it can be "
                 "interrupted\n",
                 Second, Report->HighestInterrupt, Report->LowestHeld);
        KiPrintInitialized(Second, &Report->Initialized[0]);
        HalPrint("  Acquired at IRQL %u by thread %u:\n", Report->HighestInterrupt, Report->Stack[1].ThreadId);
        KiPrintOrderStack(&Report->Stack[1]);
        HalPrint("  Held at IRQL %u by thread %u, acquired:\n", Report->LowestHeld, Report->Stack[0].ThreadId);
        KiPrintOrderStack(&Report->Stack[0]);
        return;
    }
    KiDescribeLock(Report->Held, Report->HeldKind, Report->HeldName, First);
    if (Report->EdgeCount == 0) {
        HalPrint("*** Lock order: %s, level %u, is acquired under %s, level %u: levels must ascend\n", Second,
                 Report->Level, First, Report->HeldLevel);
    } else {
        HalPrint("*** Lock order: %s is acquired under %s, and the other way round%s\n", Second, First,
                 Report->Length > 2 ? " through other locks" : "");
    }
    KiPrintInitialized(Second, &Report->Initialized[0]);
    KiPrintInitialized(First, &Report->Initialized[1]);
    HalPrint("  Now, by thread %u:\n", Report->Now.ThreadId);
    KiPrintSite("the outer one was acquired by", Report->Site);
    KiPrintOrderStack(&Report->Now);
    for (ULONG Index = 0; Index < Report->EdgeCount; Index++) {
        const KI_ORDER_EDGE *Edge = &Report->Edge[Index];
        KiDescribeLock(Edge->Acquired, Edge->AcquiredKind, Report->EdgeName[Index][1], Second);
        KiDescribeLock(Edge->Held, Edge->HeldKind, Report->EdgeName[Index][0], First);
        HalPrint("  Before, by thread %u: %s was acquired under %s:\n", Edge->Stack.ThreadId, Second, First);
        KiPrintSite("the outer one was acquired by", Edge->Site);
        KiPrintOrderStack(&Edge->Stack);
    }
}

static VOID KiReportOrder(const KI_ORDER_REPORT *Report)
{
    if (Report->Lock == NULL) {
        return;
    }
    KiPrintOrderReport(Report);
    if (KiOrderAction == KiOrderStops) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_ORDER_VIOLATED, (ULONG_PTR)Report->Lock,
                     (ULONG_PTR)Report->Held, 0);
    }
}

/* The search. */

static VOID KiVisit(PKI_ORDER_NODE Node, ULONG Way, PKI_ORDER_EDGE Edge, ULONG FromWay, PKI_ORDER_NODE *Last,
                    ULONG *LastWay)
{
    KI_ORDER_VISIT *Visit = &Node->Visit[Way];
    if (Node->Visit[0].Search == KiOrderSearch || Visit->Search == KiOrderSearch) {
        return;
    }
    *Visit = (KI_ORDER_VISIT){.Search = KiOrderSearch, .FromWay = (UCHAR)FromWay, .Edge = Edge};
    if (*Last != NULL) {
        (*Last)->Visit[*LastWay].Next = Node;
        (*Last)->Visit[*LastWay].NextWay = (UCHAR)Way;
    }
    *Last = Node;
    *LastWay = Way;
}

/* Is there a path from To to From that forms a cycle, by theory 4, with an edge of this strength from From to To?
   Returns the way in which the search reached its end, from which the edges are found, or -1. */
static LONG KiSearchOrder(PKI_ORDER_NODE From, PKI_ORDER_NODE To, ULONG Strength)
{
    PKI_ORDER_NODE Last = NULL;
    ULONG LastWay = 0;
    ULONG Way = Strength & KI_EDGE_BLOCKED ? 0 : 1;
    KiOrderSearch += 1;
    KiVisit(To, Way, NULL, 0, &Last, &LastWay);
    for (PKI_ORDER_NODE Node = To; Node != NULL;) {
        KI_ORDER_VISIT *Visit = &Node->Visit[Way];
        if (Node == From && (Way == 0 || (Strength & KI_EDGE_EXCLUSIVE))) {
            return (LONG)Way;
        }
        for (PKI_ORDER_EDGE Edge = Node->Edges; Edge != NULL; Edge = Edge->Next) {
            ULONG Left = Way == 1 ? Edge->Strength & KI_EDGE_EXCLUSIVE : Edge->Strength;
            if (Left != 0) {
                KiVisit(Edge->To, Left & KI_EDGE_BLOCKED ? 0 : 1, Edge, Way, &Last, &LastWay);
            }
        }
        Node = Visit->Next;
        Way = Visit->NextWay;
    }
    return -1;
}

static VOID KiCopyInitialized(PKI_ORDER_STACK Stack, PKI_ORDER_NODE Class)
{
    Stack->Count = Class->Name == NULL ? Class->SiteCount : 0;
    memcpy(Stack->Frame, Class->Site, Stack->Count * sizeof(Stack->Frame[0]));
}

static VOID KiFillReport(PKI_ORDER_REPORT Report, PKI_ORDER_LOCK Lock, const KI_ORDER_ENTRY *Held)
{
    Report->Lock = Lock->Address;
    Report->Kind = Lock->Kind;
    Report->Name = Lock->Class->Name;
    Report->Level = Lock->Class->Level;
    KiCopyInitialized(&Report->Initialized[0], Lock->Class);
    if (Held != NULL) {
        Report->Held = Held->Lock->Address;
        Report->HeldKind = Held->Lock->Kind;
        Report->HeldName = Held->Lock->Class->Name;
        Report->HeldLevel = Held->Lock->Class->Level;
        Report->Site = Held->Site;
        KiCopyInitialized(&Report->Initialized[1], Held->Lock->Class);
    }
}

/* The path that the search has found, from its end back. */
static VOID KiFillCycle(PKI_ORDER_REPORT Report, PKI_ORDER_NODE From, ULONG Way)
{
    Report->Length = 1;
    for (PKI_ORDER_NODE Node = From; Node->Visit[Way].Edge != NULL; Report->Length += 1) {
        PKI_ORDER_EDGE Edge = Node->Visit[Way].Edge;
        if (Report->EdgeCount < KI_ORDER_CYCLE) {
            ULONG Index = Report->EdgeCount++;
            Report->Edge[Index] = *Edge;
            Report->EdgeName[Index][0] = Edge->From->Name;
            Report->EdgeName[Index][1] = Edge->To->Name;
        }
        Way = Node->Visit[Way].FromWay;
        Node = Edge->From;
    }
}

/* Theory 8. */

static BOOLEAN KiMayBeSorted(PKI_ORDER_NODE First, PKI_ORDER_NODE Second)
{
    ULONG Differs = 0;
    if (First->Name != NULL || Second->Name != NULL || First->Kind != Second->Kind || First->SiteCount == 0 ||
        Second->SiteCount == 0) {
        return FALSE;
    }
    while (Differs < First->SiteCount && Differs < Second->SiteCount && First->Site[Differs] == Second->Site[Differs]) {
        Differs += 1;
    }
    if (Differs == First->SiteCount || Differs == Second->SiteCount || Differs >= First->CallFrames) {
        return TRUE;
    }
    return First->Site[Differs] - Second->Site[Differs] + KI_ORDER_NEAR < 2 * KI_ORDER_NEAR;
}

/* The path that the search has found, with an edge of these directions: does it go by addresses alone? */
static BOOLEAN KiIsCycleSorted(PKI_ORDER_NODE From, ULONG Way, ULONG Directions)
{
    for (PKI_ORDER_NODE Node = From; Node->Visit[Way].Edge != NULL;) {
        PKI_ORDER_EDGE Edge = Node->Visit[Way].Edge;
        if (!KiMayBeSorted(Edge->From, Edge->To)) {
            return FALSE;
        }
        Directions |= Edge->Directions;
        Way = Node->Visit[Way].FromWay;
        Node = Edge->From;
    }
    return Directions != (KI_EDGE_ASCENDING | KI_EDGE_DESCENDING);
}

static PKI_ORDER_NODE KiOwnOrder(PKI_ORDER_LOCK Lock)
{
    if (Lock->Own == NULL && (Lock->Own = KiTakeOrderNodes()) != NULL) {
        Lock->Own->Kind = Lock->Kind;
        Lock->Own->Name = Lock->Class->Name;
        Lock->Own->Lock = Lock->Address;
        Lock->Own->Next = Lock->Class->Locks;
        Lock->Class->Locks = Lock->Own;
    }
    return Lock->Own;
}

static BOOLEAN KiIsAbove(PKI_ORDER_NODE Held, PKI_ORDER_NODE Acquired)
{
    return Held->Name != NULL && Held->Name == Acquired->Name && Held->Level > Acquired->Level;
}

/* Adds the order of Held and Lock, or fills the report. */
static VOID KiAddOrder(PKTHREAD Thread, const KI_ORDER_ENTRY *Held, PKI_ORDER_LOCK Lock, KI_ORDER_MODE Mode,
                       PKI_ORDER_REPORT Report)
{
    BOOLEAN SameClass = Held->Lock->Class == Lock->Class;
    PKI_ORDER_NODE From = SameClass ? KiOwnOrder(Held->Lock) : Held->Lock->Class;
    PKI_ORDER_NODE To = SameClass ? KiOwnOrder(Lock) : Lock->Class;
    BOOLEAN Passes = Mode == KiOrderSharedPasses;
    ULONG Strength = Held->Mode == KiOrderExclusive ? (Passes ? KI_EDGE_ER : KI_EDGE_EN)
                                                    : (Passes ? KI_EDGE_SR : KI_EDGE_SN);
    if (From == NULL || To == NULL) {
        return;
    }
    ULONG Directions = Held->Lock->Address < Lock->Address ? KI_EDGE_ASCENDING : KI_EDGE_DESCENDING;
    BOOLEAN MayBeSorted = !SameClass && KiMayBeSorted(From, To);
    PKI_ORDER_EDGE Edge = From->Edges;
    while (Edge != NULL && Edge->To != To) {
        Edge = Edge->Next;
    }
    if (Edge != NULL && (Edge->Strength & Strength) && (!MayBeSorted || (Edge->Directions & Directions))) {
        return;
    }
    Directions |= Edge != NULL ? Edge->Directions : 0;
    LONG Way = KiIsAbove(Held->Lock->Class, Lock->Class) ? -1 : KiSearchOrder(From, To, Strength);
    if (Way >= 0 && MayBeSorted && KiIsCycleSorted(From, (ULONG)Way, Directions)) {
        Way = -1;
    }
    if (Way >= 0 || KiIsAbove(Held->Lock->Class, Lock->Class)) {
        KiFillReport(Report, Lock, Held);
        if (Way >= 0) {
            KiFillCycle(Report, From, (ULONG)Way);
        }
        KiCaptureOrderStack(Thread, &Report->Now);
        if (KiOrderAction == KiOrderStops) {
            return; /* a test that expects the report may ask for it again */
        }
    }
    if (Edge != NULL) {
        Edge->Strength |= Strength;
        Edge->Directions = Directions;
    } else if ((Edge = KiTakeOrderEdges()) != NULL) {
        Edge->From = From;
        Edge->To = To;
        Edge->Strength = Strength;
        Edge->Directions = Directions;
        Edge->Held = Held->Lock->Address;
        Edge->Site = Held->Site;
        Edge->Acquired = Lock->Address;
        Edge->HeldKind = Held->Lock->Kind;
        Edge->AcquiredKind = Lock->Kind;
        KiCaptureOrderStack(Thread, &Edge->Stack);
        Edge->Next = From->Edges;
        From->Edges = Edge;
    }
}

/* Levels: theory 6. */

static USHORT KiOrderContext(PKTHREAD Thread)
{
    return (USHORT)((ULONG)Thread->ServiceRoutines << 8 | Thread->DpcDepth);
}

static VOID KiCheckLevels(PKI_ORDER_LOCK Lock, PKI_ORDER_REPORT Report)
{
    PKI_ORDER_NODE Class = Lock->Class;
    if (Class->LowestHeld < Class->HighestInterrupt) {
        KiFillReport(Report, Lock, NULL);
        Report->LowestHeld = Class->LowestHeld;
        Report->HighestInterrupt = Class->HighestInterrupt;
        Report->Stack[0] = Class->LowestStack;
        Report->Stack[1] = Class->InterruptStack;
        Class->HighestInterrupt = 0; /* once */
    }
}

/* What a thread holds. */

static PKI_ORDER_ENTRY KiFindEntry(PKI_ORDER_HELD Held, PVOID Lock)
{
    for (ULONG Index = Held != NULL ? Held->Count : 0; Index-- != 0;) {
        if (Held->Entry[Index].Lock->Address == Lock) {
            return &Held->Entry[Index];
        }
    }
    return NULL;
}

static VOID KiRemoveEntry(PKI_ORDER_HELD Held, PKI_ORDER_ENTRY Entry)
{
    Entry->Lock->Holders -= 1;
    Held->Count -= 1;
    memmove(Entry, Entry + 1, (SIZE_T)((PUCHAR)&Held->Entry[Held->Count] - (PUCHAR)Entry));
}

VOID KiOrderCheck(PKTHREAD Thread, PVOID Address, KI_ORDER_KIND Kind, KI_ORDER_MODE Mode)
{
    PKI_ORDER_HELD Held = Thread->OrderHeld;
    USHORT Context = KiOrderContext(Thread);
    KI_ORDER_REPORT Report;
    PKI_ORDER_LOCK Lock;
    if (KiOrderAction == KiOrderOff || (Context == 0 && (Held == NULL || Held->Count == 0))) {
        return;
    }
    Report.Lock = NULL;
    Report.HighestInterrupt = 0;
    Report.EdgeCount = 0;
    KIRQL Irql = KiEnterOrderWith(Thread, Address, Kind, &Lock);
    PKI_ORDER_ENTRY Own = KiFindEntry(Held, Address);
    BOOLEAN Alone = Own != NULL && (KiOrderKindFlags[Kind] & KI_ORDER_ALONE) &&
                    (Mode == KiOrderExclusive || Own->Mode == KiOrderExclusive);
    if (Lock != NULL && Lock->Class != NULL && Own == NULL) {
        if (Context != 0 && Irql > Lock->Class->HighestInterrupt) {
            Lock->Class->HighestInterrupt = Irql;
            KiCaptureOrderStack(Thread, &Lock->Class->InterruptStack);
            KiCheckLevels(Lock, &Report);
        }
        for (ULONG Index = Held != NULL ? Held->Count : 0; Index-- != 0 && Report.Lock == NULL;) {
            const KI_ORDER_ENTRY *Entry = &Held->Entry[Index];
            BOOLEAN Together = Kind == KiOrderMutant && Entry->Lock->Kind == KiOrderMutant &&
                               Entry->Wait == Thread->OrderWait;
            if (Entry->Context == Context && Entry->Lock->Class != NULL && !Together) {
                KiAddOrder(Thread, Entry, Lock, Mode, &Report);
            }
        }
    }
    KiLeaveOrder(Thread, Irql);
    if (Alone) {
        KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_ACQUIRED_AGAIN, (ULONG_PTR)Address, (ULONG_PTR)Thread, 0);
    }
    KiReportOrder(&Report);
}

VOID KiOrderHold(PKTHREAD Thread, PVOID Address, KI_ORDER_KIND Kind, KI_ORDER_MODE Mode, PVOID Site)
{
    KI_ORDER_REPORT Report;
    PKI_ORDER_LOCK Lock;
    if (KiOrderAction == KiOrderOff) {
        return;
    }
    Report.Lock = NULL;
    KIRQL Irql = KiEnterOrderWith(Thread, Address, Kind, &Lock);
    PKI_ORDER_HELD Held = Thread->OrderHeld;
    PKI_ORDER_ENTRY Entry = KiFindEntry(Held, Address);
    if (Held == NULL && (Held = KiTakeOrderHeld()) != NULL) {
        Held->Thread = Thread;
        Held->Next = KiAllOrderHeld;
        KiAllOrderHeld = Held;
        Thread->OrderHeld = Held;
    }
    if (Entry != NULL) {
        Entry->Count += 1;
    } else if (Held != NULL && Lock != NULL && Held->Count < KI_ORDER_HELD_LOCKS) {
        Held->Entry[Held->Count] = (KI_ORDER_ENTRY){
            .Lock = Lock,
            .Site = Site,
            .Count = 1,
            .Wait = Thread->OrderWait,
            .Context = KiOrderContext(Thread),
            .Mode = (UCHAR)Mode,
        };
        Held->Count += 1;
        Lock->Holders += 1;
        if (Lock->Class != NULL && Irql < Lock->Class->LowestHeld) {
            Lock->Class->LowestHeld = Irql;
            KiCaptureOrderStack(Thread, &Lock->Class->LowestStack);
            KiCheckLevels(Lock, &Report);
        }
    }
    KiLeaveOrder(Thread, Irql);
    KiReportOrder(&Report);
}

VOID KiOrderRelease(PKTHREAD Thread, PVOID Lock)
{
    PKTHREAD Current = KiCurrentThread(); /* of a forked child, where Thread may have stayed in the parent */
    KIRQL Irql = KiEnterOrder(Current);
    PKI_ORDER_HELD Held = Thread->OrderHeld;
    PKI_ORDER_ENTRY Entry = KiFindEntry(Held, Lock);
    if (Entry == NULL) {
        PKI_ORDER_LOCK Known = KiFindOrderLock(Lock);
        Held = Known != NULL && Known->Holders != 0 ? KiAllOrderHeld : NULL;
        while (Held != NULL && (Entry = KiFindEntry(Held, Lock)) == NULL) {
            Held = Held->Next;
        }
    }
    if (Entry != NULL) {
        Entry->Count -= 1;
        if (Entry->Count == 0) {
            KiRemoveEntry(Held, Entry);
        }
    }
    KiLeaveOrder(Current, Irql);
}

VOID KiOrderConvert(PKTHREAD Thread, PVOID Lock, KI_ORDER_MODE Mode)
{
    KIRQL Irql = KiEnterOrder(Thread);
    PKI_ORDER_ENTRY Entry = KiFindEntry(Thread->OrderHeld, Lock);
    if (Entry != NULL) {
        Entry->Mode = (UCHAR)Mode;
    }
    KiLeaveOrder(Thread, Irql);
}

VOID KiOrderDisown(PKTHREAD Thread, PVOID Lock)
{
    KIRQL Irql = KiEnterOrder(Thread);
    PKI_ORDER_ENTRY Entry = KiFindEntry(Thread->OrderHeld, Lock);
    if (Entry != NULL) {
        KiRemoveEntry(Thread->OrderHeld, Entry);
    }
    KiLeaveOrder(Thread, Irql);
}

ULONG KiOrderCountHeld(PKTHREAD Thread)
{
    return Thread->OrderHeld != NULL ? Thread->OrderHeld->Count : 0;
}

PVOID KiOrderFindLeft(PKTHREAD Thread, ULONG Older)
{
    PKTHREAD Current = KiCurrentThread();
    PVOID Found = NULL;
    if (KiOrderCountHeld(Thread) <= Older) {
        return NULL;
    }
    KIRQL Irql = KiEnterOrder(Current);
    for (ULONG Index = Thread->OrderHeld->Count; Index-- > Older;) {
        PKI_ORDER_LOCK Lock = Thread->OrderHeld->Entry[Index].Lock;
        if (!(KiOrderKindFlags[Lock->Kind] & KI_ORDER_ABANDONED)) {
            Found = Lock->Address;
        }
    }
    KiLeaveOrder(Current, Irql);
    return Found;
}

ULONG KiOrderPrintHeld(PKTHREAD Thread, ULONG Older)
{
    PKTHREAD Current = KiCurrentThread();
    KI_ORDER_HELD Copy = {.Count = 0};
    KI_ORDER_LOCK Lock[KI_ORDER_HELD_LOCKS];
    PCSTR Name[KI_ORDER_HELD_LOCKS];
    KIRQL Irql = KiEnterOrder(Current);
    if (Thread->OrderHeld != NULL) {
        Copy = *Thread->OrderHeld;
    }
    for (ULONG Index = 0; Index < Copy.Count; Index++) {
        Lock[Index] = *Copy.Entry[Index].Lock;
        Name[Index] = Lock[Index].Class != NULL ? Lock[Index].Class->Name : NULL;
    }
    KiLeaveOrder(Current, Irql);
    for (ULONG Index = Older; Index < Copy.Count; Index++) {
        CHAR Text[KI_LOCK_TEXT];
        HalPrint("  held: %s%s\n", KiDescribeLock(Lock[Index].Address, Lock[Index].Kind, Name[Index], Text),
                 Copy.Entry[Index].Mode == KiOrderExclusive ? "" : ", shared");
        KiPrintSite("acquired by", Copy.Entry[Index].Site);
    }
    return Copy.Count > Older ? Copy.Count - Older : 0;
}

VOID KiOrderForgetHeld(PKTHREAD Thread, ULONG Older)
{
    KIRQL Irql = KiEnterOrder(Thread);
    while (KiOrderCountHeld(Thread) > Older) {
        KiRemoveEntry(Thread->OrderHeld, &Thread->OrderHeld->Entry[Thread->OrderHeld->Count - 1]);
    }
    KiLeaveOrder(Thread, Irql);
}

VOID KiOrderForgetAllHeld(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    KIRQL Irql = KiEnterOrder(Thread);
    for (PKI_ORDER_HELD Held = KiAllOrderHeld; Held != NULL; Held = Held->Next) {
        while (Held->Count != 0) {
            KiRemoveEntry(Held, &Held->Entry[Held->Count - 1]);
        }
    }
    KiLeaveOrder(Thread, Irql);
}

/* Frees the list of a thread. */
static VOID KiFreeHeld(PKI_ORDER_HELD Held)
{
    PKI_ORDER_HELD *Link = &KiAllOrderHeld;
    while (Held->Count != 0) {
        KiRemoveEntry(Held, &Held->Entry[Held->Count - 1]);
    }
    while (*Link != Held) {
        Link = &(*Link)->Next;
    }
    *Link = Held->Next;
    Held->Next = KiFreeOrderHeld;
    KiFreeOrderHeld = Held;
    Held->Thread->OrderHeld = NULL;
}

/* Threads of the program may do so, as on Windows; the lock is lost. */
VOID KiOrderEndThread(PKTHREAD Thread)
{
    PVOID Kept = Thread->Foreign || Thread->UserThread ? NULL : KiOrderFindLeft(Thread, 0);
    if (Kept != NULL) {
        HalPrint("*** Thread %u ends with locks:\n", Thread->ThreadId);
        KiOrderPrintHeld(Thread, 0);
        if (KiOrderAction == KiOrderStops) {
            KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, KI_ENDED_WITH_LOCK, (ULONG_PTR)Thread, (ULONG_PTR)Kept, 0);
        }
    }
}

VOID KiOrderDropThread(PKTHREAD Thread)
{
    PKTHREAD Current = HalCurrentThread;
    if (Thread->OrderHeld == NULL || Current == NULL) {
        return;
    }
    KIRQL Irql = KiEnterOrder(Current);
    KiFreeHeld(Thread->OrderHeld);
    KiLeaveOrder(Current, Irql);
}

/* What the other threads held stays held, but they do not exist here. */
VOID KiOrderForkChild(PKTHREAD Survivor)
{
    KiOrderLock = 0;
    for (PKI_ORDER_HELD Held = KiAllOrderHeld, Next; Held != NULL; Held = Next) {
        Next = Held->Next;
        if (Held->Thread != Survivor) {
            KiFreeHeld(Held);
        }
    }
}

ULONG KdCheckReleased(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Left = KiOrderPrintHeld(Thread, 0);
    if (Thread->Irql != PASSIVE_LEVEL) {
        HalPrint("  IRQL %u\n", Thread->Irql);
        Left += 1;
    }
    if (Thread->KernelApcDisable != 0) {
        HalPrint("  critical regions: KernelApcDisable %d\n", Thread->KernelApcDisable);
        Left += 1;
    }
    if (Thread->SpecialApcDisable != 0) {
        HalPrint("  guarded regions: SpecialApcDisable %d\n", Thread->SpecialApcDisable);
        Left += 1;
    }
    return Left;
}
