/*
 * waitchain.c: wait chain traversal within the process.
 *
 * While the chain is taken no thread is in a dispatcher section, as during a fork (ke/fork.c). Beginning and ending a
 * wait go through one, so a committed wait lasts until the others continue. The object cannot be freed meanwhile: the
 * waiter relies on it, or holds a reference on it.
 */
#include <interlock/win32/wct.h>

#include "base.h"

#include "../ke/wait.h"
#include "../ob/namespace.h"
#include "../rtl/criticalsection.h"

typedef struct _BASE_WAIT_CHAIN_SESSION {
    ULONG_PTR Magic;
} BASE_WAIT_CHAIN_SESSION, *PBASE_WAIT_CHAIN_SESSION;

#define BASE_WAIT_CHAIN_MAGIC ((ULONG_PTR)0x54435748)

typedef struct _BASE_WAIT_CHAIN {
    PWAITCHAIN_NODE_INFO Nodes;
    ULONG Capacity;
    ULONG Count;
    BOOLEAN IsCycle;
    BOOLEAN IsCut; /* Capacity was too small */
} BASE_WAIT_CHAIN, *PBASE_WAIT_CHAIN;

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

static BOOLEAN BaseIsInChain(PBASE_WAIT_CHAIN Chain, PKTHREAD Thread)
{
    for (ULONG Index = 0; Index < Chain->Count; Index += 1) {
        if (Chain->Nodes[Index].ObjectType == WctThreadType &&
            Chain->Nodes[Index].ThreadObject.ThreadId == Thread->ThreadId) {
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

/* FALSE: no such thread. */
static BOOLEAN BaseTakeChain(PBASE_WAIT_CHAIN Chain, ULONG ThreadId)
{
    KiForkPrepare();
    PKTHREAD Thread = KiLookupThreadById(ThreadId);
    BOOLEAN Found = Thread != NULL && !BaseHasEnded(Thread);
    while (Found && Thread != NULL && !Chain->IsCut && !Chain->IsCycle) {
        if (BaseIsInChain(Chain, Thread)) {
            Chain->IsCycle = TRUE;
        } else {
            Thread = BaseAddThread(Chain, Thread) ? BaseAddWait(Chain, Thread) : NULL;
        }
    }
    KiForkParent(TRUE);
    KiForkParentLate();
    return Found;
}

HWCT OpenThreadWaitChainSession(DWORD Flags, PWAITCHAINCALLBACK callback)
{
    PBASE_WAIT_CHAIN_SESSION Session;
    UNREFERENCED_PARAMETER(callback);
    if (Flags != 0) {
        BaseSetLastError(Flags & ~(DWORD)WCTP_OPEN_ALL_FLAGS ? ERROR_INVALID_PARAMETER : ERROR_NOT_SUPPORTED);
        return NULL;
    }
    Session = HalAllocate(sizeof(*Session), __alignof__(*Session));
    if (Session == NULL) {
        BaseSetLastError(ERROR_NOT_ENOUGH_MEMORY);
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
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    Chain.Capacity = *NodeCount;
    if (!BaseTakeChain(&Chain, ThreadId)) {
        BaseSetLastError(ERROR_OBJECT_NOT_FOUND);
        return FALSE;
    }
    *NodeCount = Chain.Count;
    *IsCycle = Chain.IsCycle;
    if (Chain.IsCut) {
        BaseSetLastError(ERROR_MORE_DATA);
    }
    return !Chain.IsCut;
}
