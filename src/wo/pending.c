/* pending.c: in place of object.c and wait.c until they are here. Weak: theirs win. */
#include "wop.h"

#define WO_PENDING __attribute__((weak))

WO_PENDING VOID WopWake(PWO_VIEW View, PWO_WAITER Waiter, BOOLEAN Surely)
{
    UNREFERENCED_PARAMETER(View);
    UNREFERENCED_PARAMETER(Surely);
    __atomic_fetch_add(&Waiter->WakeWord, 1, __ATOMIC_RELEASE);
    HalWakeShared(&Waiter->WakeWord, MAXULONG);
}

WO_PENDING VOID WopCompleteIntention(PWO_VIEW View)
{
    View->World->Intention = 0;
}

WO_PENDING VOID WopEndWaiter(PWO_VIEW View, WO_INDEX Waiter)
{
    UNREFERENCED_PARAMETER(View);
    UNREFERENCED_PARAMETER(Waiter);
}

WO_PENDING VOID WopFreeUnused(PWO_VIEW View, WO_INDEX Object)
{
    WopFree(View, Object);
}

WO_PENDING BOOLEAN WopIsOwned(PWO_OBJECT Object)
{
    UNREFERENCED_PARAMETER(Object);
    return FALSE;
}

WO_PENDING VOID WopDeliverNotifications(PWO_VIEW View)
{
    UNREFERENCED_PARAMETER(View);
}

WO_PENDING WO_INDEX WopNewObject(PWO_VIEW View, const WO_NEW *New)
{
    WO_INDEX Index = WopAllocate(View, WoObjectRecord, sizeof(WO_OBJECT));
    if (Index != 0) {
        ((PWO_OBJECT)WopAt(View, Index))->Word = (ULONG64)New->Type << 2;
        WopEditUlong(View, &View->World->Objects, View->World->Objects + 1);
    }
    return Index;
}

WO_PENDING VOID WopTakeInitialOwnership(PWO_VIEW View, WO_INDEX Owner, WO_INDEX Mutant)
{
    UNREFERENCED_PARAMETER(View);
    UNREFERENCED_PARAMETER(Owner);
    UNREFERENCED_PARAMETER(Mutant);
}

WO_PENDING WO_TYPE WoTypeOf(PWO_VIEW View, WO_INDEX Object)
{
    PWO_OBJECT Record = WopRecord(View, Object, WoObjectRecord);
    return Record != NULL ? (WO_TYPE)(Record->Word >> 2 & 0x3f) : 0;
}
