/*
 * tpgroup.c: cleanup groups.
 *
 * An object is in a list of its group until it is deleted, so a group also waits for objects that were closed one by
 * one and still have a callback. A group lives as long as it is open or has objects.
 *
 * Releasing the members moves one after the other to the list of those that are released, and closes it, with a hold
 * that is taken under the group's lock, under which they also leave. One that is being deleted cannot be held. All
 * leave on their own when their callbacks are over, and Emptied tells when the last of the released has. An object
 * that joins meanwhile is released too or stays a member: nobody waits for it before somebody closes it. No hold is
 * kept while the program's code runs or the thread waits: both may be the last that the thread does.
 *
 * In a forked child the released ones are members again (ForkDepth): the thread that released them may not have closed
 * them yet.
 */
#include "tpp.h"

#include "../nt/ntp.h"

struct _TP_CLEANUP_GROUP {
    volatile LONG References;
    KI_LOCK Lock;
    ULONG ForkDepth;             /* KiForkDepth at the last release */
    LIST_ENTRY MemberListHead;
    LIST_ENTRY ReleasedListHead;
    KEVENT Emptied;              /* signaled while ReleasedListHead is empty */
};

static NTSTATUS TppAllocateGroup(PTP_CLEANUP_GROUP *CleanupGroupReturn)
{
    PTP_CLEANUP_GROUP Group = HalAllocate(sizeof(*Group), __alignof__(*Group));
    if (Group == NULL) {
        return STATUS_NO_MEMORY;
    }
    Group->References = 1;
    Group->ForkDepth = KiForkDepth;
    InitializeListHead(&Group->MemberListHead);
    InitializeListHead(&Group->ReleasedListHead);
    KeInitializeEvent(&Group->Emptied, NotificationEvent, TRUE);
    *CleanupGroupReturn = Group;
    return STATUS_SUCCESS;
}

NTSTATUS TpAllocCleanupGroup(PTP_CLEANUP_GROUP *CleanupGroupReturn)
{
    return NTP_SERVICE(TppAllocateGroup(CleanupGroupReturn));
}

static VOID TppDropGroup(PTP_CLEANUP_GROUP Group)
{
    /* acq_rel: the last one comes after all the others */
    if (__atomic_sub_fetch(&Group->References, 1, __ATOMIC_ACQ_REL) == 0) {
        HalFree(Group);
    }
}

VOID TpReleaseCleanupGroup(PTP_CLEANUP_GROUP CleanupGroup)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    TppDropGroup(CleanupGroup);
    KiExitService(Thread);
}

VOID TppJoinGroup(PTPP_OBJECT Object, PTP_CLEANUP_GROUP Group)
{
    Object->Group = Group;
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    __atomic_fetch_add(&Group->References, 1, __ATOMIC_RELAXED); /* relaxed: the caller has one */
    InsertTailList(&Group->MemberListHead, &Object->GroupEntry);
    KiExitLocked(&Group->Lock, Thread);
}

VOID TppLeaveGroup(PTPP_OBJECT Object)
{
    PTP_CLEANUP_GROUP Group = Object->Group;
    if (Group == NULL) {
        return;
    }
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    RemoveEntryList(&Object->GroupEntry);
    Object->Group = NULL; /* under the lock: a forked child may have to delete the object once more */
    if (IsListEmpty(&Group->ReleasedListHead)) {
        KeSetEvent(&Group->Emptied, 0, FALSE);
    }
    KiExitLocked(&Group->Lock, Thread);
    TppDropGroup(Group);
}

/* In a forked child, see above. */
static VOID TppTakeBackReleased(PTP_CLEANUP_GROUP Group)
{
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    while (Group->ForkDepth != KiForkDepth && !IsListEmpty(&Group->ReleasedListHead)) {
        InsertTailList(&Group->MemberListHead, RemoveHeadList(&Group->ReleasedListHead));
    }
    if (Group->ForkDepth != KiForkDepth) {
        Group->ForkDepth = KiForkDepth;
        KeSetEvent(&Group->Emptied, 0, FALSE);
    }
    KiExitLocked(&Group->Lock, Thread);
}

/* The pool of a member that is not ready for this process, with a reference; or NULL. */
static PTP_POOL TppFindForeignPool(PTP_CLEANUP_GROUP Group)
{
    PTP_POOL Pool = NULL;
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    PLIST_ENTRY Head = &Group->MemberListHead;
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Pool == NULL; Entry = Entry->Flink) {
        PTP_POOL Next = CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry)->Pool;
        if (!TppIsPoolReady(Next)) {
            __atomic_fetch_add(&Next->References, 1, __ATOMIC_RELAXED); /* relaxed: the member has one */
            Pool = Next;
        }
    }
    KiExitLocked(&Group->Lock, Thread);
    return Pool;
}

/* In a forked child, before any member is held: making a pool ready takes holds away. */
static VOID TppEnterPools(PTP_CLEANUP_GROUP Group)
{
    PTP_POOL Pool;
    TppTakeBackReleased(Group);
    while ((Pool = TppFindForeignPool(Group)) != NULL) {
        TppEnterPool(Pool);
        TppDropPool(Pool);
    }
}

/* A member, held, that is to be released from now on; or NULL. */
static PTPP_OBJECT TppHoldNextMember(PTP_CLEANUP_GROUP Group)
{
    PTPP_OBJECT Held = NULL;
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    while (Held == NULL && !IsListEmpty(&Group->MemberListHead)) {
        PLIST_ENTRY Entry = RemoveHeadList(&Group->MemberListHead);
        PTPP_OBJECT Object = CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry);
        InsertTailList(&Group->ReleasedListHead, Entry);
        KeClearEvent(&Group->Emptied);
        Held = TppTryHold(Object) ? Object : NULL;
    }
    KiExitLocked(&Group->Lock, Thread);
    return Held;
}

/* Closes one more; FALSE: there is none. CancelCallback: what is to be called for it, or NULL. */
static BOOLEAN TppReleaseNextMember(PTP_CLEANUP_GROUP Group, BOOLEAN Cancel,
                                    PTP_CLEANUP_GROUP_CANCEL_CALLBACK *CancelCallback, PVOID *Context)
{
    ULONG Cancelled = 0;
    PTPP_OBJECT Object = TppHoldNextMember(Group);
    if (Object == NULL) {
        return FALSE;
    }
    BOOLEAN WasClosed = TppIsClosed(Object);
    if (Cancel) {
        TppCancelAndClose(Object, &Cancelled);
    } else {
        TppReadyPool(Object->Pool); /* what is pending needs a thread, in a forked child too */
        TppClose(Object);
    }
    *CancelCallback = Cancel && (!WasClosed || Cancelled != 0) ? Object->CancelCallback : NULL;
    *Context = Object->Context;
    TppDropHold(Object);
    return TRUE;
}

VOID TpReleaseCleanupGroupMembers(PTP_CLEANUP_GROUP CleanupGroup, LOGICAL CancelPendingCallbacks,
                                  PVOID CleanupParameter)
{
    PKTHREAD Thread = KiCurrentThread();
    PTP_CLEANUP_GROUP_CANCEL_CALLBACK CancelCallback;
    PVOID Context;
    KiEnterService(Thread);
    TppEnterPools(CleanupGroup);
    while (TppReleaseNextMember(CleanupGroup, CancelPendingCallbacks != FALSE, &CancelCallback, &Context)) {
        KiExitService(Thread);
        if (CancelCallback != NULL) {
            CancelCallback(Context, CleanupParameter);
        }
        KiEnterService(Thread);
    }
    KiExitService(Thread);
    KeWaitForSingleObject(&CleanupGroup->Emptied, UserRequest, KernelMode, FALSE, NULL);
}
