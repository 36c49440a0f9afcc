/* waitlist.c: the order of the blocks on an object's wait list. The theory is in waitlist.h. */
#include "waitlist.h"

#include "wait.h"

volatile ULONG64 KiWaitAllNumber;

/* Of an eligible block. That of a dequeuer is 0: everybody else's place is behind it. */
static ULONG64 KiNumberOf(PKWAIT_BLOCK Block)
{
    return (ULONG_PTR)Block->SparePtr;
}

static VOID KiSetDormant(PKWAIT_BLOCK Block, LONG Dormant)
{
    LONG Marks = __atomic_load_n(&Block->SpareLong, __ATOMIC_RELAXED) & ~KI_DORMANT;
    __atomic_store_n(&Block->SpareLong, Marks | Dormant, __ATOMIC_RELAXED);
}

static VOID KiInsertDormant(PKWAIT_BLOCK Block)
{
    PLIST_ENTRY Head = &((PDISPATCHER_HEADER)Block->Object)->WaitListHead;
    PLIST_ENTRY First = KiEndOfEligible(Block->Object);
    InsertTailList(Head, &Block->WaitListEntry);
    Block->SparePtr = First != Head ? First : &Block->WaitListEntry;
    KiSetDormant(Block, KI_DORMANT);
}

/* The last dormant block that stays knows the first one that stays. */
VOID KiRemoveDormant(PKWAIT_BLOCK Block)
{
    PLIST_ENTRY Entry = &Block->WaitListEntry;
    PKWAIT_BLOCK Last = KiBlockOfEntry(((PDISPATCHER_HEADER)Block->Object)->WaitListHead.Blink);
    if (Last->SparePtr == Entry) {
        Last->SparePtr = Entry->Flink;
    } else if (Last == Block) {
        KiBlockOfEntry(Entry->Blink)->SparePtr = Block->SparePtr;
    }
    RemoveEntryList(Entry);
    KiSetDormant(Block, 0);
}

VOID KiMakeDormant(PKWAIT_BLOCK Block)
{
    RemoveEntryList(&Block->WaitListEntry);
    KiInsertDormant(Block);
}

VOID KiMakeEligible(PKWAIT_BLOCK Block)
{
    PLIST_ENTRY Head = &((PDISPATCHER_HEADER)Block->Object)->WaitListHead;
    ULONG64 Number = Block->Thread->WaitAllNumber;
    if (!KiIsDormant(Block)) {
        return;
    }
    KiRemoveDormant(Block);
    PLIST_ENTRY Older = KiEndOfEligible(Block->Object)->Blink;
    while (Older != Head && KiNumberOf(KiBlockOfEntry(Older)) >= Number) {
        Older = Older->Blink;
    }
    Block->SparePtr = (PVOID)Number;
    InsertHeadList(Older, &Block->WaitListEntry);
}

/* An object that nobody else waits for is signaled for this wait alone. If all are signaled the wait is about to be given
   up, and any will do. */
static PKWAIT_BLOCK KiChooseWatched(PKTHREAD Thread)
{
    PKWAIT_BLOCK Watched = NULL;
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PKWAIT_BLOCK Block = &Thread->WaitBlockList[Index];
        PDISPATCHER_HEADER Header = Block->Object;
        if (KiIsSignaledFor(Header, KiReadHeader(Header), Thread)) {
            continue;
        }
        if (IsListEmpty(&Header->WaitListHead)) {
            return Block;
        }
        Watched = Watched != NULL ? Watched : Block;
    }
    return Watched != NULL ? Watched : Thread->WaitBlockList;
}

VOID KiLinkWaitAll(PKTHREAD Thread)
{
    PKWAIT_BLOCK Watched = KiChooseWatched(Thread);
    Thread->WaitAllNumber = __atomic_add_fetch(&KiWaitAllNumber, 1, __ATOMIC_RELAXED);
    for (ULONG Index = 0; Index < Thread->WaitBlockCount; Index += 1) {
        PKWAIT_BLOCK Block = &Thread->WaitBlockList[Index];
        if (Block == Watched) {
            KiLinkYoungest(Block, Thread->WaitAllNumber);
        } else {
            __atomic_store_n(&Block->BlockState, WaitBlockActive, __ATOMIC_RELAXED);
            KiInsertDormant(Block);
        }
    }
}

PLIST_ENTRY KiLastDequeuer(PDISPATCHER_HEADER Header)
{
    PLIST_ENTRY Head = &Header->WaitListHead;
    PLIST_ENTRY Entry = KiEndOfEligible(Header)->Blink;
    while (Entry != Head && KiBlockOfEntry(Entry)->WaitType != WaitDequeue) {
        Entry = Entry->Blink;
    }
    return Entry;
}
