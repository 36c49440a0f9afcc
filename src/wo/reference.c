/* reference.c: the references that processes have to objects. Theory in wo.h; the lists are in wop.h. */
#include "wop.h"

static PWO_OBJECT WopReferencedObject(PWO_VIEW View, const WO_REFERENCE *Reference)
{
    return WopRecord(View, Reference->Object, WoObjectRecord);
}

/* With the lock held. NULL: the process has none, or the world is poisoned. */
PWO_REFERENCE WopFindReference(PWO_VIEW View, WO_INDEX Process, WO_INDEX Object)
{
    PWO_OBJECT Record = WopRecord(View, Object, WoObjectRecord);
    WO_INDEX Index = Record != NULL ? Record->FirstReference : 0;
    for (ULONG Left = Record != NULL ? WopBound(View, Record->References) : 0; Index != 0; Left -= 1) {
        PWO_REFERENCE Reference = WopRecord(View, Index, WoReferenceRecord);
        if (Reference == NULL || Reference->Process == Process) {
            return Reference;
        }
        if (Left == 0) {
            WopPoison(View, "an object's list of references is endless");
            return NULL;
        }
        Index = Reference->NextOfObject;
    }
    return NULL;
}

static VOID WopLinkReference(PWO_VIEW View, WO_INDEX Index, PWO_PROCESS Process, PWO_OBJECT Object)
{
    PWO_REFERENCE Reference = WopAt(View, Index);
    PWO_REFERENCE OfProcess = Process->FirstReference != 0
                                  ? WopRecord(View, Process->FirstReference, WoReferenceRecord) : NULL;
    PWO_REFERENCE OfObject = Object->FirstReference != 0
                                 ? WopRecord(View, Object->FirstReference, WoReferenceRecord) : NULL;
    Reference->NextOfProcess = Process->FirstReference;
    Reference->NextOfObject = Object->FirstReference;
    if (OfProcess != NULL) {
        WopEditUlong(View, &OfProcess->PreviousOfProcess, Index);
    }
    if (OfObject != NULL) {
        WopEditUlong(View, &OfObject->PreviousOfObject, Index);
    }
    WopEditUlong(View, &Process->FirstReference, Index);
    WopEditUlong(View, &Object->FirstReference, Index);
    WopEditUlong(View, &Object->References, Object->References + 1);
}

WO_INDEX WopAddReference(PWO_VIEW View, WO_INDEX Process, WO_INDEX Object, ULONG Handles)
{
    PWO_PROCESS Owner = WopRecord(View, Process, WoProcessRecord);
    PWO_OBJECT Target = WopRecord(View, Object, WoObjectRecord);
    PWO_REFERENCE Reference = Owner != NULL && Target != NULL ? WopFindReference(View, Process, Object) : NULL;
    WO_INDEX Index = Reference != NULL ? WopIndexOf(View, Reference) : 0;
    if (Owner == NULL || Target == NULL || WoIsPoisoned(View)) {
        return 0;
    }
    if (Reference == NULL) {
        Index = WopAllocate(View, WoReferenceRecord, sizeof(WO_REFERENCE));
        if (Index == 0) {
            return 0;
        }
        Reference = WopAt(View, Index);
        Reference->Process = Process;
        Reference->Object = Object;
        WopLinkReference(View, Index, Owner, Target);
    }
    if (Handles != 0) {
        WopEditUlong(View, &Reference->Handles, Reference->Handles + Handles);
        WopEditUlong(View, &Target->Handles, Target->Handles + Handles);
    }
    return Index;
}

VOID WopDropHandles(PWO_VIEW View, PWO_REFERENCE Reference, ULONG Handles)
{
    PWO_OBJECT Object = WopReferencedObject(View, Reference);
    if (Object == NULL) {
        return;
    }
    if (Handles > Reference->Handles || Handles > Object->Handles) {
        WopPoison(View, "more handles are closed than were open");
        return;
    }
    if (Handles != 0) {
        WopEditUlong(View, &Reference->Handles, Reference->Handles - Handles);
        WopEditUlong(View, &Object->Handles, Object->Handles - Handles);
        if (Object->Handles == 0 && (Object->Attributes & OBJ_PERMANENT) == 0) {
            WopRemoveName(View, Reference->Object);
        }
    }
}

/* One of the two lists: First is its head. */
static VOID WopUnlinkFrom(PWO_VIEW View, PULONG First, WO_INDEX Previous, WO_INDEX Next, BOOLEAN OfObject)
{
    PWO_REFERENCE Before = Previous != 0 ? WopRecord(View, Previous, WoReferenceRecord) : NULL;
    PWO_REFERENCE Behind = Next != 0 ? WopRecord(View, Next, WoReferenceRecord) : NULL;
    if (Before != NULL) {
        WopEditUlong(View, OfObject ? &Before->NextOfObject : &Before->NextOfProcess, Next);
    } else {
        WopEditUlong(View, First, Next);
    }
    if (Behind != NULL) {
        WopEditUlong(View, OfObject ? &Behind->PreviousOfObject : &Behind->PreviousOfProcess, Previous);
    }
}

VOID WopDropReference(PWO_VIEW View, PWO_REFERENCE Reference)
{
    PWO_OBJECT Object = WopReferencedObject(View, Reference);
    PWO_PROCESS Process = WopRecord(View, Reference->Process, WoProcessRecord);
    WO_INDEX Target = Reference->Object;
    if (Object == NULL || Process == NULL) {
        return;
    }
    WopDropHandles(View, Reference, Reference->Handles);
    WopUnlinkFrom(View, &Process->FirstReference, Reference->PreviousOfProcess, Reference->NextOfProcess, FALSE);
    WopUnlinkFrom(View, &Object->FirstReference, Reference->PreviousOfObject, Reference->NextOfObject, TRUE);
    WopEditUlong(View, &Object->References, Object->References - 1);
    WopFree(View, WopIndexOf(View, Reference));
    WopFreeUnused(View, Target);
}

/* A directory lives as long as it has entries. */
VOID WopFreeUnused(PWO_VIEW View, WO_INDEX Index)
{
    PWO_OBJECT Object = WopRecord(View, Index, WoObjectRecord);
    if (Object == NULL || Object->References != 0 || Object->Name != 0 || Object->FirstEntry != 0 || WopIsOwned(Object)) {
        return;
    }
    if (Object->Target != 0) {
        WopFree(View, Object->Target);
    }
    WopEditUlong(View, &View->World->Objects, View->World->Objects - 1);
    WopFree(View, Index);
}

/* Services. */

NTSTATUS WoReferenceObject(PWO_VIEW View, WO_INDEX Object)
{
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopBegin(View);
    WO_INDEX Reference = WopAddReference(View, View->Self, Object, 0);
    return WopFinish(View, Reference != 0);
}

NTSTATUS WoChangeHandles(PWO_VIEW View, WO_INDEX Object, LONG Change)
{
    BOOLEAN Done = TRUE;
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopBegin(View);
    if (Change >= 0) {
        Done = WopAddReference(View, View->Self, Object, (ULONG)Change) != 0;
    } else {
        PWO_REFERENCE Reference = WopFindReference(View, View->Self, Object);
        if (Reference != NULL) {
            WopDropHandles(View, Reference, 0u - (ULONG)Change);
        }
    }
    return WopFinish(View, Done);
}

/* A record that has a handle stays: another process has just given it to this one, which has not built a proxy yet.
   A mutant without other references is freed even if the calling thread owns it, as in NT. One that another thread owns stays
   until that thread ends: its list is its own. */
VOID WoDereferenceObject(PWO_VIEW View, WO_INDEX Object)
{
    WO_INDEX Self = WopFindOwnWaiter(View);
    if (!WopLock(View)) {
        return;
    }
    PWO_REFERENCE Reference = WopFindReference(View, View->Self, Object);
    Reference = Reference != NULL && Reference->Handles == 0 ? Reference : NULL;
    PWO_OBJECT Record = Reference != NULL ? WopRecord(View, Object, WoObjectRecord) : NULL;
    if (Record != NULL && Record->References == 1 && Record->Name == 0 && Self != 0) {
        WopGiveUpMutant(View, Self, Record);
    }
    WopBegin(View);
    if (Reference != NULL) {
        WopDropReference(View, Reference);
    }
    WopFinish(View, TRUE);
}

ULONG WoQueryHandleCount(PWO_VIEW View, WO_INDEX Object)
{
    PWO_OBJECT Record = WopRecord(View, Object, WoObjectRecord);
    /* relaxed: a number that may be old when the caller gets it */
    return Record != NULL ? __atomic_load_n(&Record->Handles, __ATOMIC_RELAXED) : 0;
}
