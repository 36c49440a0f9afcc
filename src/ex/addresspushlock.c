/*
 * addresspushlock.c: address-based pushlocks: waiting until somebody says that a value has changed.
 *
 * The word is the list of the waiters' blocks, newest first, and a lock for it:
 *
 *      63                                              4   3   2   1   0
 *     +-------------------------------------------------+-----------+---+
 *     |                newest wait block                |     0     | L |
 *     +-------------------------------------------------+-----------+---+
 *
 * 1. The list is changed only by who has set L, inside a dispatcher section and for as long as a look through the list
 *    takes. So a wake finds everybody who waits: nobody is out of the list for a moment on account of another wake.
 * 2. No lost wake: a waiter locks the list to put its block in, and then looks at the value; who changes the value then
 *    looks at the list. Both come to the word by a read-modify-write, so one comes second and sees what the other did
 *    before.
 * 3. Who takes a block out of the list tells its waiter, and touches neither the block nor the word afterwards. A
 *    waiter whose time is up takes its block out itself; if it is not there any more a wake was delivered, and wins:
 *    the waiter waits for the end of it and returns as woken.
 * 4. The oldest waiter is told first.
 *
 * A wake looks at every block of this pushlock, also at those of other addresses, and a timeout at those that are newer: the
 * word has room for one list, and a wake without an address needs all of it. Addresses that many wait for at a time do
 * better with a pushlock each.
 */
#include "addressvalue.h"
#include "pushlock.h"

#include "../ke/irql.h"

#define L EX_PUSH_LOCK_LOCK

typedef PEX_PUSH_LOCK_WAIT_BLOCK BLOCK;

/* The list. */

static BLOCK ExpLockList(PEX_PUSH_LOCK PushLock, PKTHREAD Thread)
{
    ULONG Spins = 0;
    ULONG_PTR Word;
    KiEnterDispatcher(Thread);
    /* acquire: see 2, pairs with ExpUnblock; and the list as the last owner of L left it */
    while ((Word = __atomic_fetch_or(PushLock, L, __ATOMIC_ACQUIRE)) & L) {
        KiSpin(Thread, &Spins);
    }
    return (BLOCK)Word;
}

static VOID ExpUnlockList(PEX_PUSH_LOCK PushLock, PKTHREAD Thread, BLOCK Newest)
{
    __atomic_store_n(PushLock, (ULONG_PTR)Newest, __ATOMIC_RELEASE);
    KiExitDispatcher(Thread);
}

/* Takes out the blocks of Address, or all if that is NULL. Returns them oldest first. */
static BLOCK ExpTakeBlocksOf(PEX_PUSH_LOCK PushLock, PVOID Address)
{
    PKTHREAD Thread = KiCurrentThread();
    BLOCK Newest = ExpLockList(PushLock, Thread);
    BLOCK Taken = NULL;
    BLOCK *Link = &Newest;
    while (*Link != NULL) {
        BLOCK Block = *Link;
        if (Address == NULL || Block->Address == Address) {
            *Link = Block->Next;
            Block->Next = Taken;
            Taken = Block;
        } else {
            Link = &Block->Next;
        }
    }
    ExpUnlockList(PushLock, Thread, Newest);
    return Taken;
}

/* FALSE: somebody else has taken it out and tells, or has told. */
static BOOLEAN ExpTakeBlock(PEX_PUSH_LOCK PushLock, BLOCK Block)
{
    PKTHREAD Thread = KiCurrentThread();
    BLOCK Newest = ExpLockList(PushLock, Thread);
    BLOCK *Link = &Newest;
    while (*Link != NULL && *Link != Block) {
        Link = &(*Link)->Next;
    }
    BOOLEAN Found = *Link == Block;
    if (Found) {
        *Link = Block->Next;
    }
    ExpUnlockList(PushLock, Thread, Newest);
    return Found;
}

static VOID ExpAnnounce(PEX_PUSH_LOCK PushLock, BLOCK Block, PVOID Address)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpPushLockMethods.Prepare(Block);
    Block->State = ExpAwake;
    Block->Address = Address;
    Block->Next = ExpLockList(PushLock, Thread);
    ExpUnlockList(PushLock, Thread, Block);
}

/* Waiting. */

static BOOLEAN ExpIsPoll(PLARGE_INTEGER Timeout)
{
    return Timeout != NULL && Timeout->QuadPart == 0;
}

/* TRUE: told. FALSE: the block says that its waiter sleeps, and the waiter is to do so. */
static BOOLEAN ExpAwaitAwake(BLOCK Block, EXP_PATIENCE Patience)
{
    while (ExpStateOf(Block) == ExpAwake) {
        if (!ExpStayAwake(&Patience) && ExpFallAsleep(Block)) {
            return FALSE;
        }
    }
    return TRUE;
}

NTSTATUS ExTimedWaitForUnblockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock,
                                       PLARGE_INTEGER Timeout)
{
    EXP_PATIENCE Patience = {0};
    if (!ExpIsPoll(Timeout)) {
        Patience = ExpFreshPatience(FALSE);
    }
    if (ExpAwaitAwake(WaitBlock, Patience)) {
        return STATUS_SUCCESS;
    }
    NTSTATUS Status = KeWaitForSingleObject(&WaitBlock->WakeEvent, WrPushLock, KernelMode, FALSE, Timeout);
    if (Status != STATUS_TIMEOUT) {
        return Status;
    }
    if (ExpTakeBlock(PushLock, WaitBlock)) {
        return STATUS_TIMEOUT;
    }
    return KeWaitForSingleObject(&WaitBlock->WakeEvent, WrPushLock, KernelMode, FALSE, NULL);
}

static VOID ExpTakeBack(PEX_PUSH_LOCK PushLock, BLOCK Block)
{
    if (!ExpTakeBlock(PushLock, Block)) {
        ExTimedWaitForUnblockPushLock(PushLock, Block, NULL);
    }
}

static VOID ExpTellAll(BLOCK Oldest)
{
    while (Oldest != NULL) {
        BLOCK Newer = Oldest->Next;
        ExpTell(Oldest, ExpGranted, &ExpPushLockMethods);
        Oldest = Newer;
    }
}

static VOID ExpUnblock(PEX_PUSH_LOCK PushLock, PVOID Address)
{
    /* release: see 2, pairs with ExpLockList. A plain read would not do: it could come before the store to the value. */
    if (__atomic_fetch_or(PushLock, 0, __ATOMIC_RELEASE) != 0) {
        ExpTellAll(ExpTakeBlocksOf(PushLock, Address));
    }
}

/* The calls. */

NTSTATUS ExBlockOnAddressPushLock(PEX_PUSH_LOCK PushLock, PVOID Address, PVOID CompareAddress, SIZE_T Size,
                                  PLARGE_INTEGER Timeout)
{
    EX_PUSH_LOCK_WAIT_BLOCK Block;
    if (!ExpIsValueSize(Size)) {
        return STATUS_INVALID_PARAMETER;
    }
    ExpAnnounce(PushLock, &Block, Address);
    if (ExpIsSameValue(Address, CompareAddress, Size)) {
        return ExTimedWaitForUnblockPushLock(PushLock, &Block, Timeout);
    }
    ExpTakeBack(PushLock, &Block);
    return STATUS_SUCCESS;
}

VOID ExUnblockOnAddressPushLockEx(PEX_PUSH_LOCK PushLock, PVOID Address, ULONG Flags)
{
    ExpVerifyFlags(PushLock, Flags);
    if (Address != NULL) {
        ExpUnblock(PushLock, Address);
    }
}

VOID ExBlockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock)
{
    ExpAnnounce(PushLock, WaitBlock, NULL);
}

VOID ExUnblockPushLockEx(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock, ULONG Flags)
{
    ExpVerifyFlags(PushLock, Flags);
    if (WaitBlock != NULL) {
        ExpTakeBack(PushLock, WaitBlock);
    } else {
        ExpUnblock(PushLock, NULL);
    }
}
