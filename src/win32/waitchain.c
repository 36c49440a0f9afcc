/*
 * waitchain.c: wait chain traversal, within the process and through shared mutexes into others.
 *
 * 1. While the local part of a chain is taken, no thread is in a dispatcher section, as during a fork (ke/fork.c).
 *    Beginning and ending a wait go through one, so a committed wait lasts until the others continue. The object cannot be
 *    freed meanwhile: the waiter relies on it, or holds a reference on it.
 * 2. At a shared object the local part ends, the others continue, and the world provides the owner and what the owner
 *    waits for. An owner in this process begins another local part. Nothing is held meanwhile, so a thread may have
 *    continued. A cycle through the world counts only if it is found a second time with the same waits: then all of
 *    them were waiting at the same time in between.
 * 3. A wait that the world has granted has ended, even if its thread has not noticed yet.
 */
#include <interlock/win32/extra.h>

#include "../ke/wait.h"
#include "../ob/obp.h"
#include "../ob/share.h"
#include "../rtl/criticalsection.h"
#include "../wo/wo.h"
#include "base.h"

typedef struct _BASE_WAIT_CHAIN_SESSION {
    ULONG_PTR Magic;
} BASE_WAIT_CHAIN_SESSION, *PBASE_WAIT_CHAIN_SESSION;

#define BASE_WAIT_CHAIN_MAGIC ((ULONG_PTR)0x54435748)

typedef struct _BASE_WAIT_CHAIN {
    PWAITCHAIN_NODE_INFO Nodes;
    ULONG Capacity;
    ULONG Count;
    BOOLEAN IsCycle;
    BOOLEAN IsCut;            /* Capacity was too small */
    BOOLEAN IntoOthers;       /* WCT_OUT_OF_PROC_FLAG */
    BOOLEAN WentOutside;
    ULONG Home;               /* the process of the first thread */
    ULONG LocalThread;        /* that waits for */
    KI_OUTSIDE Outside;       /* where the local part has ended; View is NULL: at its end */
    ULONG64 Waits[WCT_MAX_NODE_COUNT]; /* of thread nodes: which wait */
} BASE_WAIT_CHAIN, *PBASE_WAIT_CHAIN;

#define BASE_WAIT_CHAIN_ATTEMPTS 8

static PWAITCHAIN_NODE_INFO BaseAddNode(PBASE_WAIT_CHAIN Chain, WCT_OBJECT_TYPE Type, WCT_OBJECT_STATUS Status)
{
    if (Chain->Count == Chain->Capacity) {
        Chain->IsCut = TRUE;
        return NULL;
    }
    PWAITCHAIN_NODE_INFO Node = &Chain->Nodes[Chain->Count++];
    memset(Node, 0, sizeof(*Node));
    Node->ObjectType = Type;
    Node->ObjectStatus = Status;
    return Node;
}

static BOOLEAN BaseHasEnded(PKTHREAD Thread)
{
    UCHAR State = __atomic_load_n(&Thread->State, __ATOMIC_RELAXED);
    return State == Terminated || State == Transition;
}

static BOOLEAN BaseIsInChain(PBASE_WAIT_CHAIN Chain, ULONG ProcessId, ULONG ThreadId)
{
    for (ULONG Index = 0; Index < Chain->Count; Index += 1) {
        if (Chain->Nodes[Index].ObjectType == WctThreadType &&
            Chain->Nodes[Index].ThreadObject.ThreadId == ThreadId &&
            Chain->Nodes[Index].ThreadObject.ProcessId == ProcessId) {
            return TRUE;
        }
    }
    return FALSE;
}

static BOOLEAN BaseAddThread(PBASE_WAIT_CHAIN Chain, PKTHREAD Thread)
{
    ULONG Register = __atomic_load_n(&Thread->WaitRegister, __ATOMIC_RELAXED);
    BOOLEAN Blocked = (Register & KI_WAIT_ACTIVE) != 0 && (Register & KI_WAIT_STATE_MASK) != WaitInProgress;
    PWAITCHAIN_NODE_INFO Node = BaseAddNode(Chain, WctThreadType, Blocked ? WctStatusBlocked : WctStatusRunning);
    if (Node == NULL) {
        return FALSE;
    }
    Node->ThreadObject.ProcessId = KiInitialProcess.ProcessId;
    Node->ThreadObject.ThreadId = Thread->ThreadId;
    if (Blocked) {
        ULONG64 Since = (ULONG64)Thread->WaitTime * KI_TICK;
        ULONG64 Now = HalDispatch.QueryInterruptTime();
        Node->ThreadObject.WaitTime = (ULONG)((Now > Since ? Now - Since : 0) / RTLP_MILLISECOND);
        Node->ThreadObject.ContextSwitches = Thread->ContextSwitches;
        Chain->Waits[Chain->Count - 1] = Thread->ContextSwitches;
    }
    return Blocked;
}

/* Returns the owner. NULL: not owned, or the owner has ended. */
static PKTHREAD BaseAddCriticalSection(PBASE_WAIT_CHAIN Chain, PRTL_CRITICAL_SECTION CriticalSection)
{
    ULONG Owner = RtlpReadOwner(CriticalSection);
    PKTHREAD Thread = Owner != 0 ? KiLookupThreadById(Owner) : NULL;
    if (Thread != NULL && BaseHasEnded(Thread)) {
        Thread = NULL;
    }
    BaseAddNode(Chain, WctCriticalSectionType, Owner == 0 ? WctStatusNotOwned
                                               : Thread != NULL ? WctStatusOwned : WctStatusAbandoned);
    return Thread;
}

/* Returns the owner. Only the object of a wait by handle has an object header, and so a name. */
static PKTHREAD BaseAddMutant(PBASE_WAIT_CHAIN Chain, PKTHREAD Waiter, PKMUTANT Mutant)
{
    BOOLEAN ByHandle = Waiter->ServiceDepth != 0 && Waiter->WaitReason == UserRequest;
    WCT_OBJECT_STATUS Status = KI_STATE(KiReadHeader(&Mutant->Header)) > 0 ? WctStatusNotOwned : WctStatusOwned;
    PWAITCHAIN_NODE_INFO Node = BaseAddNode(Chain, WctMutexType, Status);
    if (Node != NULL && ByHandle && ObpHeaderOf(Mutant)->NameInfo != NULL) {
        ULONG Length = 0;
        if (!ObpQueryPath(Mutant, Node->LockObject.ObjectName, WCT_OBJNAME_LENGTH - 1, &Length)) {
            Length = 0;
        }
        Node->LockObject.ObjectName[Length] = u'\0';
    }
    return __atomic_load_n(&Mutant->OwnerThread, __ATOMIC_RELAXED);
}

static PKTHREAD BaseAddObject(PBASE_WAIT_CHAIN Chain, PKTHREAD Waiter, PDISPATCHER_HEADER Header)
{
    if (KiIsOutside(Header)) {
        Chain->Outside = *KiOutsideOf(Header);
        Chain->LocalThread = Waiter->ThreadId;
        return NULL;
    }
    switch (KI_TYPE(KiReadHeader(Header))) {
    case MutantObject:
        return BaseAddMutant(Chain, Waiter, CONTAINING_RECORD(Header, KMUTANT, Header));
    case ThreadObject:
        BaseAddNode(Chain, WctThreadWaitType, WctStatusOwned);
        return CONTAINING_RECORD(Header, KTHREAD, Header);
    case ProcessObject:
        BaseAddNode(Chain, WctProcessWaitType, WctStatusOwned);
        return NULL;
    default:
        BaseAddNode(Chain, WctUnknownType, WctStatusUnknown);
        return NULL;
    }
}

/* What a blocked thread waits for; returns its owner. */
static PKTHREAD BaseAddWait(PBASE_WAIT_CHAIN Chain, PKTHREAD Thread)
{
    PVOID Lock = __atomic_load_n(&Thread->LockWaitedFor, __ATOMIC_RELAXED);
    if (Lock != NULL && (Thread->WaitReason == WrAlertByThreadId || Thread->WaitReason == UserRequest)) {
        return BaseAddCriticalSection(Chain, Lock);
    }
    if (KiObjectBlocks(Thread) == 1) {
        return BaseAddObject(Chain, Thread, Thread->WaitBlockList->Object);
    }
    if (Thread->WaitBlockCount != 0) {
        BaseAddNode(Chain, WctUnknownType, WctStatusUnknown);
    }
    return NULL;
}

/* The local part that begins with a thread. FALSE: no such thread. */
static BOOLEAN BaseFollowLocally(PBASE_WAIT_CHAIN Chain, ULONG ThreadId)
{
    KiForkPrepare();
    PKTHREAD Thread = KiLookupThreadById(ThreadId);
    BOOLEAN Found = Thread != NULL && !BaseHasEnded(Thread);
    Chain->Outside.View = NULL;
    while (Found && Thread != NULL && !Chain->IsCut && !Chain->IsCycle) {
        if (BaseIsInChain(Chain, KiInitialProcess.ProcessId, Thread->ThreadId)) {
            Chain->IsCycle = TRUE;
        } else {
            Thread = BaseAddThread(Chain, Thread) ? BaseAddWait(Chain, Thread) : NULL;
        }
    }
    KiForkParent(TRUE);
    KiForkParentLate();
    return Found;
}

/* The world. */

static VOID BaseAddSharedMutex(PBASE_WAIT_CHAIN Chain, const KI_OUTSIDE *Mutex, BOOLEAN Owned)
{
    PWAITCHAIN_NODE_INFO Node = BaseAddNode(Chain, WctMutexType, Owned ? WctStatusOwned : WctStatusNotOwned);
    ULONG Length = 0;
    if (Node == NULL) {
        return;
    }
    if (!ObpQueryPathOfShared(Mutex->View, Mutex->Index, Node->LockObject.ObjectName, WCT_OBJNAME_LENGTH - 1, &Length)) {
        Length = 0;
    }
    Node->LockObject.ObjectName[Length] = u'\0';
}

/* A thread of another process, and where its wait leads to. Its other waits are known only in that process. */
static VOID BaseAddForeignThread(PBASE_WAIT_CHAIN Chain, PVOID View, const WO_THREAD_WAIT *Wait)
{
    BOOLEAN Followed = Chain->IntoOthers || Wait->ProcessId == Chain->Home;
    BOOLEAN Blocked = Followed && Wait->Number != 0;
    PWAITCHAIN_NODE_INFO Node = BaseAddNode(Chain, WctThreadType, Blocked ? WctStatusBlocked : WctStatusUnknown);
    Chain->Outside.View = NULL;
    if (Node == NULL) {
        return;
    }
    Node->ThreadObject.ProcessId = Wait->ProcessId;
    Node->ThreadObject.ThreadId = Wait->ThreadId;
    Chain->Waits[Chain->Count - 1] = Wait->Number;
    if (Blocked && Wait->Count == 1) {
        Chain->Outside = (KI_OUTSIDE){View, Wait->Object};
    } else if (Blocked) {
        BaseAddNode(Chain, WctUnknownType, WctStatusUnknown);
    }
}

/* The last node is a thread of this process that waits for a shared object. FALSE: its wait is granted. */
static BOOLEAN BaseStillWaits(PBASE_WAIT_CHAIN Chain)
{
    WO_THREAD_WAIT Wait;
    BOOLEAN Waits = WoQueryThread(Chain->Outside.View, KiInitialProcess.ProcessId, Chain->LocalThread, &Wait) &&
                    Wait.Number != 0;
    Chain->Nodes[Chain->Count - 1].ObjectStatus = Waits ? WctStatusBlocked : WctStatusRunning;
    Chain->Waits[Chain->Count - 1] = Wait.Number;
    return Waits;
}

/* From Chain->Outside to its owner, and to what that waits for. Returns an owner that is a thread of this process, or 0. */
static ULONG BaseFollowOutside(PBASE_WAIT_CHAIN Chain)
{
    KI_OUTSIDE Mutex = Chain->Outside;
    WO_THREAD_WAIT Owner;
    Chain->WentOutside = TRUE;
    Chain->Outside.View = NULL;
    if (!WoQueryOwner(Mutex.View, Mutex.Index, &Owner)) {
        BaseAddNode(Chain, WctUnknownType, WctStatusUnknown);
        return 0;
    }
    BaseAddSharedMutex(Chain, &Mutex, Owner.ThreadId != 0);
    if (Owner.ThreadId == 0 || Owner.ProcessId == KiInitialProcess.ProcessId) {
        return Owner.ThreadId;
    }
    if (BaseIsInChain(Chain, Owner.ProcessId, Owner.ThreadId)) {
        Chain->IsCycle = TRUE;
    } else {
        BaseAddForeignThread(Chain, Mutex.View, &Owner);
    }
    return 0;
}

/* A thread of another process that has used a world of this one. */
static BOOLEAN BaseStartOutside(PBASE_WAIT_CHAIN Chain, ULONG ThreadId)
{
    WO_THREAD_WAIT Wait;
    for (WO_SCOPE Scope = WoLocal; Scope <= WoMachine; Scope += 1) {
        PWO_VIEW View = WoAttachedView(Scope);
        if (View != NULL && WoQueryThread(View, 0, ThreadId, &Wait) && Wait.ProcessId != KiInitialProcess.ProcessId) {
            Chain->Home = Wait.ProcessId;
            BaseAddForeignThread(Chain, View, &Wait);
            return TRUE;
        }
    }
    return FALSE;
}

/* FALSE: no such thread. */
static BOOLEAN BaseTakeChainOnce(PBASE_WAIT_CHAIN Chain, ULONG ThreadId)
{
    Chain->Home = KiInitialProcess.ProcessId;
    Chain->LocalThread = 0;
    BOOLEAN Found = BaseFollowLocally(Chain, ThreadId) || BaseStartOutside(Chain, ThreadId);
    while (Chain->Outside.View != NULL && !Chain->IsCut && !Chain->IsCycle) {
        if (Chain->LocalThread != 0 && !BaseStillWaits(Chain)) {
            break;
        }
        Chain->LocalThread = 0;
        ULONG Owner = BaseFollowOutside(Chain);
        if (Owner != 0) {
            BaseFollowLocally(Chain, Owner);
        }
    }
    return Found;
}

static BOOLEAN BaseIsSameChain(const BASE_WAIT_CHAIN *One, const BASE_WAIT_CHAIN *Other)
{
    BOOLEAN Same = One->IsCycle && Other->IsCycle && One->Count == Other->Count;
    for (ULONG Index = 0; Same && Index < One->Count; Index += 1) {
        PWAITCHAIN_NODE_INFO Node = &One->Nodes[Index];
        PWAITCHAIN_NODE_INFO Again = &Other->Nodes[Index];
        Same = Node->ObjectType == Again->ObjectType &&
               (Node->ObjectType != WctThreadType ||
                (Node->ThreadObject.ProcessId == Again->ThreadObject.ProcessId &&
                 Node->ThreadObject.ThreadId == Again->ThreadObject.ThreadId && One->Waits[Index] == Other->Waits[Index]));
    }
    return Same;
}

static BOOLEAN BaseTakeChain(PBASE_WAIT_CHAIN Chain, ULONG ThreadId)
{
    WAITCHAIN_NODE_INFO Nodes[WCT_MAX_NODE_COUNT];
    const BASE_WAIT_CHAIN Empty = *Chain;
    BOOLEAN Found = BaseTakeChainOnce(Chain, ThreadId);
    BOOLEAN Confirmed = !Chain->WentOutside || !Chain->IsCycle;
    for (ULONG Attempt = 0; Found && !Confirmed && Attempt < BASE_WAIT_CHAIN_ATTEMPTS; Attempt += 1) {
        BASE_WAIT_CHAIN Before = *Chain;
        memcpy(Nodes, Chain->Nodes, Chain->Count * sizeof(Nodes[0]));
        Before.Nodes = Nodes;
        *Chain = Empty;
        Found = BaseTakeChainOnce(Chain, ThreadId);
        Confirmed = !Chain->WentOutside || !Chain->IsCycle || BaseIsSameChain(&Before, Chain);
    }
    Chain->IsCycle = Chain->IsCycle && Confirmed;
    return Found;
}

HWCT OpenThreadWaitChainSession(DWORD Flags, PWAITCHAINCALLBACK callback)
{
    PBASE_WAIT_CHAIN_SESSION Session;
    UNREFERENCED_PARAMETER(callback);
    if (Flags != 0) {
        RtlSetLastWin32Error(Flags & ~(DWORD)WCTP_OPEN_ALL_FLAGS ? ERROR_INVALID_PARAMETER : ERROR_NOT_SUPPORTED);
        return NULL;
    }
    Session = HalAllocate(sizeof(*Session), __alignof__(*Session));
    if (Session == NULL) {
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    Session->Magic = BASE_WAIT_CHAIN_MAGIC;
    return Session;
}

static BOOLEAN BaseIsSession(HWCT WctHandle)
{
    return WctHandle != NULL && ((PBASE_WAIT_CHAIN_SESSION)WctHandle)->Magic == BASE_WAIT_CHAIN_MAGIC;
}

VOID CloseThreadWaitChainSession(HWCT WctHandle)
{
    if (BaseIsSession(WctHandle)) {
        ((PBASE_WAIT_CHAIN_SESSION)WctHandle)->Magic = 0;
        HalFree(WctHandle);
    }
}

BOOL GetThreadWaitChain(HWCT WctHandle, DWORD_PTR Context, DWORD Flags, DWORD ThreadId, LPDWORD NodeCount,
                        PWAITCHAIN_NODE_INFO NodeInfoArray, LPBOOL IsCycle)
{
    BASE_WAIT_CHAIN Chain = {.Nodes = NodeInfoArray};
    UNREFERENCED_PARAMETER(Context);
    if (!BaseIsSession(WctHandle) || NodeCount == NULL || *NodeCount == 0 || *NodeCount > WCT_MAX_NODE_COUNT ||
        NodeInfoArray == NULL || IsCycle == NULL ||
        (Flags & ~(DWORD)(WCTP_GETINFO_ALL_FLAGS | WCT_NETWORK_IO_FLAG)) != 0) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    Chain.Capacity = *NodeCount;
    Chain.IntoOthers = (Flags & WCT_OUT_OF_PROC_FLAG) != 0;
    if (!BaseTakeChain(&Chain, ThreadId)) {
        RtlSetLastWin32Error(ERROR_OBJECT_NOT_FOUND);
        return FALSE;
    }
    *NodeCount = Chain.Count;
    *IsCycle = Chain.IsCycle;
    if (Chain.IsCut) {
        RtlSetLastWin32Error(ERROR_MORE_DATA);
    }
    return !Chain.IsCut;
}
