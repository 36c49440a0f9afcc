/*
 * query.c: which thread owns what, and what it waits for: for wait chains. A thread of another process may end at any
 * time, so a dangling index or id is not damage here.
 */
#include "session.h"
#include "waiter.h"

PWO_VIEW WoAttachedView(WO_SCOPE Scope)
{
    PWO_PLACE Place = &WopPlaces[Scope];
    /* acquire: pairs with the release in WopOpenPlace */
    return __atomic_load_n(&Place->State, __ATOMIC_ACQUIRE) == WoPlaceAttached ? &Place->View : NULL;
}

/* With the lock held. */
static VOID WopDescribeWait(PWO_VIEW View, PWO_WAITER Waiter, PWO_THREAD_WAIT Wait, ULONG64 *Key)
{
    PWO_PROCESS Process = WopRecord(View, Waiter->Process, WoProcessRecord);
    ULONG64 State = __atomic_load_n(&Waiter->State, __ATOMIC_RELAXED); /* relaxed: it may end at any time, lock or not */
    *Wait = (WO_THREAD_WAIT){.ThreadId = Waiter->ThreadId};
    if (Process == NULL) {
        return;
    }
    Wait->ProcessId = Process->ProcessId;
    *Key = Process->Key;
    if ((State & WO_STATE_MASK) == WoWaiting) {
        Wait->Number = State;
        Wait->Count = Waiter->Count + Waiter->Mixed;
        Wait->Object = Waiter->Block[0].Object;
    }
}

/* Without the lock, because it queries the host. What a dead process had is about to be cleaned up. */
static BOOLEAN WopIsThere(const WO_THREAD_WAIT *Wait, ULONG64 Key)
{
    return Wait->ProcessId != 0 && HalQueryProcessKey(Wait->ProcessId) == Key;
}

BOOLEAN WoQueryOwner(PWO_VIEW View, WO_INDEX Mutant, PWO_THREAD_WAIT Owner)
{
    ULONG64 Key = 0;
    *Owner = (WO_THREAD_WAIT){0};
    if (!WopLock(View)) {
        return FALSE;
    }
    ULONG64 Word = WopIsRecord(View, Mutant, WoObjectRecord) ? WopReadWord(WopAt(View, Mutant)) : 0;
    BOOLEAN Found = WO_TYPE_OF(Word) == WoMutant;
    if (Found && WopIsRecord(View, WO_VALUE(Word), WoWaiterRecord)) {
        WopDescribeWait(View, WopAt(View, WO_VALUE(Word)), Owner, &Key);
    }
    WopUnlock(View);
    if (!WopIsThere(Owner, Key)) {
        *Owner = (WO_THREAD_WAIT){0};
    }
    return Found;
}

/* With the lock held. */
static PWO_WAITER WopFindWaiterOf(PWO_VIEW View, PWO_PROCESS Process, ULONG ThreadId)
{
    WO_INDEX Index = Process->FirstWaiter;
    for (ULONG Left = WopBound(View, View->World->Waiters); Index != 0 && Left != 0; Left -= 1) {
        PWO_WAITER Waiter = WopRecord(View, Index, WoWaiterRecord);
        if (Waiter == NULL || (Waiter->ThreadId == ThreadId && Waiter->Notification == 0)) {
            return Waiter;
        }
        Index = Waiter->NextOfProcess;
    }
    return NULL;
}

static PWO_WAITER WopFindWaiter(PWO_VIEW View, ULONG ProcessId, ULONG ThreadId)
{
    WO_INDEX First = View->World->AnyProcess;
    WO_INDEX Index = First;
    for (ULONG Left = WopBound(View, View->World->Processes); Index != 0 && Left != 0; Left -= 1) {
        PWO_PROCESS Process = WopRecord(View, Index, WoProcessRecord);
        if (Process == NULL) {
            return NULL;
        }
        PWO_WAITER Waiter = ProcessId == 0 || Process->ProcessId == ProcessId ? WopFindWaiterOf(View, Process, ThreadId) : NULL;
        if (Waiter != NULL) {
            return Waiter;
        }
        Index = Process->Next != First ? Process->Next : 0;
    }
    return NULL;
}

BOOLEAN WoQueryThread(PWO_VIEW View, ULONG ProcessId, ULONG ThreadId, PWO_THREAD_WAIT Wait)
{
    ULONG64 Key = 0;
    *Wait = (WO_THREAD_WAIT){0};
    if (ThreadId == 0 || !WopLock(View)) {
        return FALSE;
    }
    PWO_WAITER Waiter = WopFindWaiter(View, ProcessId, ThreadId);
    if (Waiter != NULL) {
        WopDescribeWait(View, Waiter, Wait, &Key);
    }
    WopUnlock(View);
    return WopIsThere(Wait, Key);
}
