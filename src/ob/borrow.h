/*
 * borrow.h: brief use of a handle's object without a reference.
 *
 * A lookup takes a reference from the handle's entry and returns it to the object: two locked operations, in calls that
 * often need only one more. A handle that is used so often that its prepaid references run out (OBP_BORROWABLE) is
 * borrowed instead: the thread stores its index in BorrowedHandle, reads the entry, changes the object by a single
 * compare-exchange, and clears BorrowedHandle. The closer of such a handle pays with a barrier on all threads and a
 * check of each thread.
 *
 * 1. A borrower stores BorrowedHandle, then loads the entry's Object. A closer sets Object to 0, executes a barrier on
 *    all threads, and then waits for each thread whose BorrowedHandle is this handle. So a borrower that has found the
 *    object is waited for before the handle's reference is dropped, and every other one finds the entry closed.
 * 2. The closer waits before it frees the entry. So the Access that a borrower reads belongs to the Object that it has
 *    found.
 * 3. A borrower is in a dispatcher section: it is neither suspended nor left behind by a fork, no APC runs, and so a closer
 *    never waits for itself. It does not block and takes no lock: what one compare-exchange cannot do is done with a
 *    reference instead. So a closer waits for a few instructions, or until the host lets the borrower run.
 * 4. OBP_BORROWABLE is set when an entry is prepaid again, after thousands of lookups, which amortize the closer's
 *    barrier.
 */
#ifndef INTERLOCK_OB_BORROW_H
#define INTERLOCK_OB_BORROW_H

#include "obp.h"

/* handle.c: requirements 1 and 2, for a closer. */
VOID ObpAwaitBorrowers(ULONG Index);

FORCEINLINE VOID ObpEndBorrowing(PKTHREAD Thread)
{
    /* release: pairs with the acquire in ObpAwaitBorrowers */
    __atomic_store_n(&Thread->BorrowedHandle, 0, __ATOMIC_RELEASE);
    KiExitDispatcher(Thread);
}

/*
 * NULL: not borrowable, not open, not of that type, less access, or the thread already borrows (a signal handler);
 * nothing has happened, and a lookup reports the reason. Otherwise ObpEndBorrowing follows.
 */
FORCEINLINE PVOID ObpTryBorrowByHandle(PKTHREAD Thread, HANDLE Handle, ACCESS_MASK RequiredAccess,
                                       POBJECT_TYPE ObjectType)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    /* relaxed: a hint, read again below */
    if (Entry == NULL || !(__atomic_load_n(&Entry->Object, __ATOMIC_RELAXED) & OBP_BORROWABLE) ||
        Thread->BorrowedHandle != 0) {
        return NULL;
    }
    KiEnterDispatcher(Thread);
    KiStoreBeforeLook(&Thread->BorrowedHandle, ObpIndexOfHandle(Handle));
    /* seq_cst: after BorrowedHandle, with or without a barrier on all threads; also acquires what ObpFillEntry releases */
    ULONG64 Word = __atomic_load_n(&Entry->Object, __ATOMIC_SEQ_CST);
    PVOID Object = ObpObjectOf(Word);
    /* relaxed: requirement 2 */
    if (__builtin_expect((Word & OBP_BORROWABLE) &&
                             !(RequiredAccess & ~(ACCESS_MASK)__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED)) &&
                             (ObjectType == NULL || ObpHeaderOf(Object)->Type == ObjectType), TRUE)) {
        return Object;
    }
    ObpEndBorrowing(Thread);
    return NULL;
}

#endif
