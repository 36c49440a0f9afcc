/*
 * tpgroup.c: cleanup groups.
 *
 * An object is in a list of its group until it is deleted. So a group also waits for objects that were closed one by
 * one and still have a callback. A group lives as long as it is open or has objects.
 *
 * Releasing the members moves them one by one to the list of released objects and closes them. Each is held meanwhile;
 * the hold is taken under the group's lock, under which objects also leave, and an object that is being deleted cannot
 * be held. A released object leaves when its callbacks are over, and the last one signals Emptied. An object that joins
 * during a release is released with the others or stays a member, and nobody waits for it before it is closed. No hold
 * is kept while the program's code runs or the thread waits: the thread may end in either.
 *
 * In a forked child released objects become members again (ForkDepth): the thread that released them may not have
 * closed them yet.
 */
#include "tpp.h"

struct _TP_CLEANUP_GROUP {
    volatile LONG References;
    KI_LOCK Lock;
    ULONG ForkDepth; /* KiForkDepth at the last release */
    LIST_ENTRY MemberListHead;
    LIST_ENTRY ReleasedListHead;
    KEVENT Emptied; /* signaled while ReleasedListHead is empty */
};

NTSTATUS TpAllocCleanupGroup(PTP_CLEANUP_GROUP *CleanupGroupReturn)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    PTP_CLEANUP_GROUP Group = HalAllocate(sizeof(*Group), __alignof__(*Group));
    if (Group != NULL) {
        Group->References = 1;
        Group->ForkDepth = KiForkDepth;
        InitializeListHead(&Group->MemberListHead);
        InitializeListHead(&Group->ReleasedListHead);
        KeInitializeEvent(&Group->Emptied, NotificationEvent, TRUE);
        *CleanupGroupReturn = Group;
    }
    KiExitService(Thread);
    return Group != NULL ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static VOID TppDropGroup(PTP_CLEANUP_GROUP Group)
{
    /* acq_rel: the free comes after every other thread's last access */
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
    Object->Group = NULL; /* under the lock: a forked child may delete the object again */
    if (IsListEmpty(&Group->ReleasedListHead)) {
        KeSetEvent(&Group->Emptied, 0, FALSE);
    }
    KiExitLocked(&Group->Lock, Thread);
    TppDropGroup(Group);
}

/* In a forked child, before any member is held: repairing a pool resets the holds of its objects. */
static VOID TppEnterPools(PTP_CLEANUP_GROUP Group)
{
    PTP_POOL Pool;
    do {
        PKTHREAD Thread = KiEnterLocked(&Group->Lock);
        if (Group->ForkDepth != KiForkDepth) {
            while (!IsListEmpty(&Group->ReleasedListHead)) {
                InsertTailList(&Group->MemberListHead, RemoveHeadList(&Group->ReleasedListHead));
            }
            Group->ForkDepth = KiForkDepth;
            KeSetEvent(&Group->Emptied, 0, FALSE);
        }
        PLIST_ENTRY Head = &Group->MemberListHead;
        Pool = NULL;
        for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Pool == NULL; Entry = Entry->Flink) {
            PTP_POOL Next = CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry)->Pool;
            if (!TppIsPoolReady(Next)) {
                __atomic_fetch_add(&Next->References, 1, __ATOMIC_RELAXED); /* relaxed: the member has one */
                Pool = Next;
            }
        }
        KiExitLocked(&Group->Lock, Thread);
        if (Pool != NULL) {
            TppEnterPool(Pool);
            TppDropPool(Pool);
        }
    } while (Pool != NULL);
}

/* Moves a member to the released ones and holds it; NULL: there are none. */
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

VOID TpReleaseCleanupGroupMembers(PTP_CLEANUP_GROUP CleanupGroup, LOGICAL CancelPendingCallbacks,
                                  PVOID CleanupParameter)
{
    PKTHREAD Thread = KiCurrentThread();
    PTPP_OBJECT Object;
    KiEnterService(Thread);
    TppEnterPools(CleanupGroup);
    while ((Object = TppHoldNextMember(CleanupGroup)) != NULL) {
        PTP_CLEANUP_GROUP_CANCEL_CALLBACK CancelCallback = NULL;
        PVOID Context = Object->Context;
        BOOLEAN WasClosed = TppIsClosed(Object);
        ULONG Cancelled = 0;
        if (!CancelPendingCallbacks) {
            TppReadyPool(Object->Pool); /* pending callbacks need a thread, also in a forked child */
        }
        TppClose(Object, CancelPendingCallbacks ? &Cancelled : NULL);
        if (CancelPendingCallbacks && (!WasClosed || Cancelled != 0)) {
            CancelCallback = Object->CancelCallback;
        }
        TppDropHold(Object);
        KiExitService(Thread);
        if (CancelCallback != NULL) {
            CancelCallback(Context, CleanupParameter);
        }
        KiEnterService(Thread);
    }
    KiExitService(Thread);
    KeWaitForSingleObject(&CleanupGroup->Emptied, UserRequest, KernelMode, FALSE, NULL);
}
