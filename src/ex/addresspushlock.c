/*
 * addresspushlock.c: address-based pushlocks: waiting until a value has changed.
 *
 * The word is the list of the waiters' blocks, newest first, and its lock:
 *
 *      63          48 47                               4   3   2   1   0
 *     +--------------+-----------------------------------+-----------+---+
 *     |   fork tag   |         newest wait block         |     0     | L |
 *     +--------------+-----------------------------------+-----------+---+
 *
 * 1. The list changes only under L, inside a dispatcher section, for as long as a walk of the list takes. So a wake
 *    finds every waiter: no other wake removes one temporarily.
 * 2. No lost wakeup: a waiter locks the list to add its block and then compares the value; a waker changes the value and
 *    then reads the list. Both access the word by a read-modify-write, so one comes second and sees what the other did.
 * 3. The thread that removes a block from the list wakes its waiter, and accesses neither the block nor the word
 *    afterwards. A waiter that times out removes its own block. If the block is already off the list, the wake wins:
 *    the waiter waits until the wake completes and returns as woken.
 * 4. The oldest waiter is woken first.
 * 5. In a forked child an inherited list (ke/fork.h) is empty. A block that was announced before the fork counts as woken.
 *
 * A wake walks every block of this pushlock, also those of other addresses, and a timeout walks the newer ones: the
 * word has room for one list, and a wake without an address needs all of it. For addresses with many waiters, use one
 * pushlock each.
 */
#include "pushlock.h"
#include "waiterhash.h"

#include "../ke/fork.h"
#include "../ke/park.h"

/* The list. */

static PEXP_WAIT_BLOCK ExpLockBlockList(PEX_PUSH_LOCK PushLock, PKTHREAD Thread)
{
    ULONG_PTR Word;
    KI_PATIENCE Patience;
    KiEnterDispatcher(Thread);
    /* acquire: see 2, pairs with ExpWakeBlocksOf; and the list as the last owner of L left it */
    if ((Word = __atomic_fetch_or(PushLock, EX_PUSH_LOCK_LOCK, __ATOMIC_ACQUIRE)) & EX_PUSH_LOCK_LOCK) {
        KiBeginPatience(&Patience, Thread, KiParkForSpinLock);
        do {
            KiStayAwake(&Patience, Thread, KiParkForSpinLock);
        } while ((Word = __atomic_fetch_or(PushLock, EX_PUSH_LOCK_LOCK, __ATOMIC_ACQUIRE)) & EX_PUSH_LOCK_LOCK);
    }
    return KiIsInherited(Word) ? NULL : (PEXP_WAIT_BLOCK)(Word & ~KI_FORK_TAG_MASK);
}

static VOID ExpUnlockBlockList(PEX_PUSH_LOCK PushLock, PKTHREAD Thread, PEXP_WAIT_BLOCK Newest)
{
    __atomic_store_n(PushLock, Newest != NULL ? (ULONG_PTR)Newest | KiForkTag : 0, __ATOMIC_RELEASE);
    KiExitDispatcher(Thread);
}

/* FALSE: another thread has removed it, and wakes or has woken its waiter. */
static BOOLEAN ExpTakeBlock(PEX_PUSH_LOCK PushLock, PEXP_WAIT_BLOCK Block)
{
    PKTHREAD Thread = KiCurrentThread();
    PEXP_WAIT_BLOCK Newest = ExpLockBlockList(PushLock, Thread);
    PEXP_WAIT_BLOCK *Link = &Newest;
    while (*Link != NULL && *Link != Block) {
        Link = &(*Link)->Next;
    }
    BOOLEAN Found = *Link == Block;
    if (Found) {
        *Link = Block->Next;
    }
    ExpUnlockBlockList(PushLock, Thread, Newest);
    return Found;
}

static VOID ExpAnnounceBlock(PEX_PUSH_LOCK PushLock, PEXP_WAIT_BLOCK Block, PVOID Address)
{
    PKTHREAD Thread = KiCurrentThread();
    Block->AutoBoost = FALSE;
    Block->ProcessId = KiInitialProcess.ProcessId;
    Block->State = ExpAwake;
    Block->Address = Address;
    ExpPushLockMethods.Prepare(Block);
    Block->Next = ExpLockBlockList(PushLock, Thread);
    ExpUnlockBlockList(PushLock, Thread, Block);
}

/* Wakes the waiters of Address, or all if that is NULL, oldest first. */
static VOID ExpWakeBlocksOf(PEX_PUSH_LOCK PushLock, PVOID Address)
{
    PKTHREAD Thread = KiCurrentThread();
    PEXP_WAIT_BLOCK Taken = NULL;
    /* release: see 2, pairs with ExpLockBlockList. A plain read could come before the store to the value. */
    if (__atomic_fetch_or(PushLock, 0, __ATOMIC_RELEASE) == 0) {
        return;
    }
    PEXP_WAIT_BLOCK Newest = ExpLockBlockList(PushLock, Thread);
    PEXP_WAIT_BLOCK *Link = &Newest;
    while (*Link != NULL) {
        PEXP_WAIT_BLOCK Block = *Link;
        if (Address == NULL || Block->Address == Address) {
            *Link = Block->Next;
            Block->Next = Taken;
            Taken = Block;
        } else {
            Link = &Block->Next;
        }
    }
    ExpUnlockBlockList(PushLock, Thread, Newest);
    while (Taken != NULL) {
        PEXP_WAIT_BLOCK Newer = Taken->Next;
        ExpWakeBlock(Taken, ExpGranted, &ExpPushLockMethods);
        Taken = Newer;
    }
}

/* Waiting. */

static inline BOOLEAN ExpIsBlockWoken(PVOID Block)
{
    return ExpStateOfBlock(Block) != ExpAwake;
}

static NTSTATUS ExpAwaitBlock(PEX_PUSH_LOCK PushLock, PEXP_WAIT_BLOCK Block, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    BOOLEAN Poll = Timeout != NULL && Timeout->QuadPart == 0;
    if (Block->ProcessId != KiInitialProcess.ProcessId || ExpIsBlockWoken(Block) ||
        (!Poll && KiParkUntil(Thread, KiParkForPushLock, ExpIsBlockWoken, Block)) || !ExpFallAsleep(Block)) {
        return STATUS_SUCCESS;
    }
    NTSTATUS Status = KeWaitForSingleObject(&Block->WakeEvent, WrPushLock, KernelMode, FALSE, Timeout);
    if (Status != STATUS_TIMEOUT || ExpTakeBlock(PushLock, Block)) {
        return Status;
    }
    return KeWaitForSingleObject(&Block->WakeEvent, WrPushLock, KernelMode, FALSE, NULL);
}

static VOID ExpTakeBlockBack(PEX_PUSH_LOCK PushLock, PEXP_WAIT_BLOCK Block)
{
    if (!ExpTakeBlock(PushLock, Block)) {
        ExpAwaitBlock(PushLock, Block, NULL);
    }
}

static VOID ExpVerifyFlags(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    if (__builtin_expect(KiVerifierEnabled, FALSE)) {
        ExpCheckFlags(PushLock, Flags);
    }
}

NTSTATUS ExBlockOnAddressPushLock(PEX_PUSH_LOCK PushLock, PVOID Address, PVOID CompareAddress, SIZE_T Size,
                                  PLARGE_INTEGER Timeout)
{
    EXP_WAIT_BLOCK Block;
    if (!ExpIsValueSize(Size)) {
        return STATUS_INVALID_PARAMETER;
    }
    ExpAnnounceBlock(PushLock, &Block, Address);
    if (ExpIsSameValue(Address, CompareAddress, Size)) {
        return ExpAwaitBlock(PushLock, &Block, Timeout);
    }
    ExpTakeBlockBack(PushLock, &Block);
    return STATUS_SUCCESS;
}

VOID ExUnblockOnAddressPushLockEx(PEX_PUSH_LOCK PushLock, PVOID Address, ULONG Flags)
{
    ExpVerifyFlags(PushLock, Flags);
    if (Address != NULL) {
        ExpWakeBlocksOf(PushLock, Address);
    }
}

VOID ExBlockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock)
{
    ExpAnnounceBlock(PushLock, (PEXP_WAIT_BLOCK)WaitBlock, NULL);
}

NTSTATUS ExTimedWaitForUnblockPushLock(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock,
                                       PLARGE_INTEGER Timeout)
{
    return ExpAwaitBlock(PushLock, (PEXP_WAIT_BLOCK)WaitBlock, Timeout);
}

VOID ExUnblockPushLockEx(PEX_PUSH_LOCK PushLock, PEX_PUSH_LOCK_WAIT_BLOCK WaitBlock, ULONG Flags)
{
    ExpVerifyFlags(PushLock, Flags);
    if (WaitBlock != NULL) {
        ExpTakeBlockBack(PushLock, (PEXP_WAIT_BLOCK)WaitBlock);
    } else {
        ExpWakeBlocksOf(PushLock, NULL);
    }
}
