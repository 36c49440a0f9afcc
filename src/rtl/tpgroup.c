/*
 * tpgroup.c: cleanup groups.
 *
 * An object is in a list of its group until it is deleted. So a group also waits for objects that were closed one by
 * one and still have a callback. A group lives as long as it is open or has objects.
 *
 * Releasing the members moves them one by one to the list of released objects and closes them. Each is held meanwhile;
 * the hold is taken under the group's lock, under which objects also leave, and an object that is being deleted cannot
 * be held. A released object leaves when its callbacks have ended, and the last one signals Emptied. An object that
 * joins during a release is released with the others, or stays a member that no thread waits for until it is closed.
 *
 * A cancel callback may free what the member's callbacks use, and a callback may close its own object. So cancel
 * callbacks are called after all callbacks of released objects have returned, and not for objects that the program has
 * closed by then. An object whose cancel callback is due leaves the list of released objects for the list of cancelled
 * ones; only its memory remains. The thread that released it removes it from there (Release identifies the thread) and
 * frees it before it calls the cancel callback. So if the thread ends in a cancel callback or while it waits, the
 * objects are still deleted, and the group frees the memory of those that remain in the list.
 *
 * In a forked child released objects become members again (ForkDepth): the thread that released them may not have
 * closed them yet. The next release there calls the remaining cancel callbacks.
 */
#include "tpp.h"

struct _TP_CLEANUP_GROUP {
    volatile LONG References;
    KI_LOCK Lock;
    ULONG ForkDepth; /* KiForkDepth at the last release */
    LIST_ENTRY MemberListHead;
    LIST_ENTRY ReleasedListHead;
    LIST_ENTRY CancelledListHead;
    ULONG LastRelease; /* numbers the releases that cancel; 0, of an object: whichever thread comes first */
    KEVENT Emptied;    /* signaled while ReleasedListHead is empty */
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
        InitializeListHead(&Group->CancelledListHead);
        KeInitializeEvent(&Group->Emptied, NotificationEvent, TRUE);
        *CleanupGroupReturn = Group;
    }
    KiExitService(Thread);
    return Group != NULL ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

VOID TppDropGroup(PTP_CLEANUP_GROUP Group)
{
    /* acq_rel: the free comes after every other thread's last access */
    if (__atomic_sub_fetch(&Group->References, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    while (!IsListEmpty(&Group->CancelledListHead)) {
        HalFree(CONTAINING_RECORD(RemoveHeadList(&Group->CancelledListHead), TPP_OBJECT, GroupEntry));
    }
    HalFree(Group);
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

BOOLEAN TppLeaveGroup(PTPP_OBJECT Object)
{
    PTP_CLEANUP_GROUP Group = Object->Group;
    BOOLEAN Kept = Object->Cancelled && !Object->Released && Object->CancelCallback != NULL;
    KiAcquireLock(&Group->Lock);
    RemoveEntryList(&Object->GroupEntry);
    if (Kept) {
        InsertTailList(&Group->CancelledListHead, &Object->GroupEntry);
    }
    if (IsListEmpty(&Group->ReleasedListHead)) {
        KeSetEvent(&Group->Emptied, 0, FALSE);
    }
    KiReleaseLock(&Group->Lock);
    return Kept;
}

/* In a forked child, with the group's lock. */
static VOID TppRepairGroup(PTP_CLEANUP_GROUP Group)
{
    PLIST_ENTRY Head = &Group->CancelledListHead;
    while (!IsListEmpty(&Group->ReleasedListHead)) {
        InsertTailList(&Group->MemberListHead, RemoveHeadList(&Group->ReleasedListHead));
    }
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head; Entry = Entry->Flink) {
        CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry)->Release = 0;
    }
    Group->ForkDepth = KiForkDepth;
    KeSetEvent(&Group->Emptied, 0, FALSE);
}

/* In a forked child, before any member is held: repairing a pool resets the holds of its objects. */
static VOID TppEnterPools(PTP_CLEANUP_GROUP Group)
{
    PTP_POOL Pool;
    do {
        PKTHREAD Thread = KiEnterLocked(&Group->Lock);
        if (Group->ForkDepth != KiForkDepth) {
            TppRepairGroup(Group);
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
static PTPP_OBJECT TppHoldNextMember(PTP_CLEANUP_GROUP Group, ULONG Release)
{
    PTPP_OBJECT Held = NULL;
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    while (Held == NULL && !IsListEmpty(&Group->MemberListHead)) {
        PLIST_ENTRY Entry = RemoveHeadList(&Group->MemberListHead);
        PTPP_OBJECT Object = CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry);
        InsertTailList(&Group->ReleasedListHead, Entry);
        KeClearEvent(&Group->Emptied);
        Object->Release = Release;
        Held = TppTryHold(Object) ? Object : NULL;
    }
    KiExitLocked(&Group->Lock, Thread);
    return Held;
}

static ULONG TppBeginRelease(PTP_CLEANUP_GROUP Group)
{
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    Group->LastRelease += Group->LastRelease != MAXULONG ? 1 : 2; /* never 0 */
    ULONG Release = Group->LastRelease;
    KiExitLocked(&Group->Lock, Thread);
    return Release;
}

/* Removes a cancelled object of this release from its list; NULL: there are none. */
static PTPP_OBJECT TppTakeCancelled(PTP_CLEANUP_GROUP Group, ULONG Release)
{
    PTPP_OBJECT Taken = NULL;
    PKTHREAD Thread = KiEnterLocked(&Group->Lock);
    PLIST_ENTRY Head = &Group->CancelledListHead;
    for (PLIST_ENTRY Entry = Head->Flink; Entry != Head && Taken == NULL; Entry = Entry->Flink) {
        PTPP_OBJECT Object = CONTAINING_RECORD(Entry, TPP_OBJECT, GroupEntry);
        if (Object->Release == Release || Object->Release == 0) {
            RemoveEntryList(Entry);
            Taken = Object;
        }
    }
    KiExitLocked(&Group->Lock, Thread);
    return Taken;
}

/* In a service, which it leaves for each callback: the thread may end in there. */
static VOID TppCallCancelled(PTP_CLEANUP_GROUP Group, ULONG Release, PVOID CleanupParameter)
{
    PKTHREAD Thread = KiCurrentThread();
    PTPP_OBJECT Object;
    while ((Object = TppTakeCancelled(Group, Release)) != NULL) {
        PTP_CLEANUP_GROUP_CANCEL_CALLBACK CancelCallback = Object->CancelCallback;
        PVOID Context = Object->Context;
        HalFree(Object);
        KiExitService(Thread);
        CancelCallback(Context, CleanupParameter);
        KiEnterService(Thread);
    }
}

VOID TpReleaseCleanupGroupMembers(PTP_CLEANUP_GROUP CleanupGroup, LOGICAL CancelPendingCallbacks,
                                  PVOID CleanupParameter)
{
    PKTHREAD Thread = KiCurrentThread();
    PTPP_OBJECT Object;
    KiEnterService(Thread);
    TppEnterPools(CleanupGroup);
    ULONG Release = TppBeginRelease(CleanupGroup);
    while ((Object = TppHoldNextMember(CleanupGroup, Release)) != NULL) {
        TppClose(Object, CancelPendingCallbacks ? TppCancellingGroup : TppGroup);
        TppDropHold(Object);
    }
    KiExitService(Thread);
    KeWaitForSingleObject(&CleanupGroup->Emptied, UserRequest, KernelMode, FALSE, NULL);
    if (CancelPendingCallbacks) {
        KiEnterService(Thread);
        TppCallCancelled(CleanupGroup, Release, CleanupParameter);
        KiExitService(Thread);
    }
}
