/*
 * names.c: names of objects, and the references that processes have to objects.
 *
 * A name is a record in three places: a chain of the hash table, which every directory shares;
 * the list of its directory, in order of insertion; and Name of its object.
 *
 * A name disappears with the last handle, so a name that is found has a handle in some process. That process may be
 * dead and not cleaned up yet: its guard may be slower than the shell that starts its successor. So a lookup makes sure
 * that one of the processes with handles lives, and cleans up after the dead ones itself.
 */
#include "wop.h"

#include "../ex/text.h"

#include <string.h>

#define WO_LONGEST_NAME (65532 / sizeof(WCHAR))
#define WO_MOST_DEAD 100000u

static ULONG WopHashName(const WO_LOOKUP *Lookup)
{
    ULONG64 Hash = Lookup->Directory;
    SIZE_T Length = Lookup->Name->Length / sizeof(WCHAR);
    for (SIZE_T Index = 0; Index < Length; Index += 1) {
        Hash = (Hash ^ ExpUpcase(Lookup->Name->Buffer[Index])) * 0x9e3779b97f4a7c15ull;
        Hash ^= Hash >> 32;
    }
    return (ULONG)(Hash >> 7);
}

/* NULL: poisoned. */
static PWO_NAME WopName(PWO_VIEW View, WO_INDEX Index)
{
    PWO_NAME Name = WopRecord(View, Index, WoNameRecord);
    if (Name != NULL && sizeof(WO_NAME) + Name->Length * sizeof(WCHAR) > (SIZE_T)WO_UNIT << Name->Record.Class) {
        WopPoison(View, "a name is longer than its record");
        return NULL;
    }
    return Name;
}

/* With the lock held. NULL: there is none, or the world is poisoned. */
static PWO_NAME WopSearchChain(PWO_VIEW View, const WO_LOOKUP *Lookup, ULONG Hash)
{
    WO_INDEX Index = View->World->Bucket[Hash % WO_BUCKETS];
    for (ULONG Left = WopBound(View, View->World->Names); Index != 0; Left -= 1) {
        PWO_NAME Name = Left != 0 ? WopName(View, Index) : NULL;
        if (Name == NULL) {
            WopPoison(View, "a chain of names is endless");
            return NULL;
        }
        if (Name->Hash == Hash && Name->Directory == Lookup->Directory &&
            ExpCompareStrings(Name->Text, Name->Length, Lookup->Name->Buffer, Lookup->Name->Length / sizeof(WCHAR),
                              Lookup->CaseInsensitive) == 0) {
            return Name;
        }
        Index = Name->HashNext;
    }
    return NULL;
}

/* With the lock held. TRUE: a living process has a handle, or nothing needs one. Otherwise Dead is one to clean up after. */
static BOOLEAN WopIsKeptAlive(PWO_VIEW View, PWO_OBJECT Object, PWO_LISTED Dead)
{
    WO_INDEX Index = Object->FirstReference;
    if ((Object->Attributes & OBJ_PERMANENT) != 0) {
        return TRUE;
    }
    for (ULONG Left = WopBound(View, Object->References); Index != 0 && Left != 0; Left -= 1) {
        PWO_REFERENCE Reference = WopRecord(View, Index, WoReferenceRecord);
        PWO_PROCESS Process = Reference != NULL ? WopRecord(View, Reference->Process, WoProcessRecord) : NULL;
        if (Process == NULL) {
            return TRUE;
        }
        if (Reference->Handles != 0) {
            /* A prepared one may start, and a fork that has not used the world may have called exec. */
            if (Reference->Process == View->Self || Process->Key == 0 ||
                ((Process->Flags & WO_FORKED) != 0 ? HalIsProcessAlive(Process->Key) : !HalIsProcessGone(Process->Key))) {
                return TRUE;
            }
            *Dead = (WO_LISTED){Reference->Process, Process->Flags, Process->Key};
        }
        Index = Reference->NextOfObject;
    }
    return Dead->Index == 0;
}

/* Takes the lock and finds the name. The object is 0 if there is none. FALSE: poisoned, and the lock is not held. */
static BOOLEAN WopLockAndFind(PWO_VIEW View, const WO_LOOKUP *Lookup, ULONG Hash, WO_INDEX *Object)
{
    for (ULONG Left = WO_MOST_DEAD; WopLock(View); Left -= 1) {
        WO_LISTED Dead = {0};
        PWO_NAME Name = WopSearchChain(View, Lookup, Hash);
        PWO_OBJECT Record = Name != NULL ? WopRecord(View, Name->Object, WoObjectRecord) : NULL;
        *Object = Record != NULL ? Name->Object : 0;
        if (!WoIsPoisoned(View) && (Record == NULL || WopIsKeptAlive(View, Record, &Dead))) {
            return TRUE;
        }
        if (Left == 0) {
            WopPoison(View, "a dead process cannot be removed");
        }
        WopUnlock(View);
        if (!WoIsPoisoned(View)) {
            WopCleanProcess(View, Dead.Index, Dead.Key);
        }
    }
    return FALSE;
}

static NTSTATUS WopCheckLookup(PWO_VIEW View, const WO_LOOKUP *Lookup)
{
    if (Lookup->Name->Length == 0 || Lookup->Name->Length % sizeof(WCHAR) != 0 ||
        Lookup->Name->Length / sizeof(WCHAR) > WO_LONGEST_NAME) {
        return STATUS_OBJECT_NAME_INVALID;
    }
    if (Lookup->Directory != 0 && WoTypeOf(View, Lookup->Directory) != WoDirectory) {
        return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : STATUS_OBJECT_TYPE_MISMATCH;
    }
    return STATUS_SUCCESS;
}

NTSTATUS WoFindName(PWO_VIEW View, const WO_LOOKUP *Lookup, ULONG Handles, WO_INDEX *Object)
{
    NTSTATUS Status = WopCheckLookup(View, Lookup);
    WO_INDEX Found;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (!WopLockAndFind(View, Lookup, WopHashName(Lookup), &Found)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    if (Found == 0) {
        WopUnlock(View);
        return STATUS_OBJECT_NAME_NOT_FOUND;
    }
    WopBegin(View);
    Status = WopFinish(View, WopAddReference(View, View->Self, Found, Handles) != 0);
    *Object = Found;
    return Status;
}

/* Creating. */

/* The first and the last entry of a directory are in one 8-byte word; those of the root are in the world itself. */
static PULONG WopEntriesOf(PWO_VIEW View, WO_INDEX Directory)
{
    PWO_OBJECT Object = Directory != 0 ? WopRecord(View, Directory, WoObjectRecord) : NULL;
    return Object != NULL ? &Object->FirstEntry : Directory == 0 ? &View->World->FirstEntry : NULL;
}

/* Inside a transaction. 0: no memory. */
static WO_INDEX WopNewText(PWO_VIEW View, PCUNICODE_STRING Text)
{
    WO_INDEX Index = WopAllocate(View, WoNameRecord, sizeof(WO_NAME) + Text->Length);
    if (Index != 0) {
        PWO_NAME Name = WopAt(View, Index);
        Name->Length = Text->Length / sizeof(WCHAR);
        memcpy(Name->Text, Text->Buffer, Text->Length);
    }
    return Index;
}

/* Inside a transaction: enters a name at the end of its directory. */
static BOOLEAN WopEnterName(PWO_VIEW View, const WO_LOOKUP *Lookup, ULONG Hash, WO_INDEX Object)
{
    PWO_WORLD World = View->World;
    PULONG Entries = WopEntriesOf(View, Lookup->Directory);
    WO_INDEX Index = Entries != NULL ? WopNewText(View, Lookup->Name) : 0;
    PWO_NAME Last = Index != 0 && Entries[1] != 0 ? WopName(View, Entries[1]) : NULL;
    if (Index == 0) {
        return FALSE;
    }
    PWO_NAME Name = WopAt(View, Index);
    Name->Hash = Hash;
    Name->Directory = Lookup->Directory;
    Name->Object = Object;
    Name->HashNext = World->Bucket[Hash % WO_BUCKETS];
    Name->PreviousSibling = Entries[1];
    WopEditUlong(View, &World->Bucket[Hash % WO_BUCKETS], Index);
    WopEditUlong(View, Last != NULL ? &Last->NextSibling : &Entries[0], Index);
    WopEditUlong(View, &Entries[1], Index);
    WopEditUlong(View, &World->Names, World->Names + 1);
    ((PWO_OBJECT)WopAt(View, Object))->Name = Index;
    return TRUE;
}

/* Inside a transaction. 0: no memory. */
static WO_INDEX WopCreateNamed(PWO_VIEW View, const WO_LOOKUP *Lookup, ULONG Hash, const WO_NEW *New, ULONG Handles)
{
    WO_INDEX Index = WopNewObject(View, New);
    if (Index == 0 || !WopEnterName(View, Lookup, Hash, Index)) {
        return 0;
    }
    PWO_OBJECT Object = WopAt(View, Index);
    Object->Attributes = New->Attributes;
    if ((New->Attributes & OBJ_PERMANENT) != 0) {
        WopEditUlong(View, &View->World->Permanents, View->World->Permanents + 1);
    }
    if (New->Type == WoSymbolicLink) {
        Object->Target = WopNewText(View, New->Target);
    }
    BOOLEAN Complete = New->Type != WoSymbolicLink || Object->Target != 0;
    return Complete && WopAddReference(View, View->Self, Index, Handles) != 0 ? Index : 0;
}

NTSTATUS WoCreateName(PWO_VIEW View, const WO_LOOKUP *Lookup, const WO_NEW *New, ULONG Handles, WO_INDEX *Object)
{
    NTSTATUS Status = WopCheckLookup(View, Lookup);
    ULONG Hash = WopHashName(Lookup);
    WO_INDEX Found;
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if (!WopLockAndFind(View, Lookup, Hash, &Found)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopBegin(View);
    if (Found != 0) {
        *Object = Found;
        Status = WopFinish(View, WopAddReference(View, View->Self, Found, Handles) != 0);
        return Status == STATUS_SUCCESS ? STATUS_OBJECT_NAME_EXISTS : Status;
    }
    *Object = WopCreateNamed(View, Lookup, Hash, New, Handles);
    if (*Object != 0 && New->Owner != 0 && !WoIsPoisoned(View)) {
        WopCommit(View);
        WopTakeInitialOwnership(View, New->Owner, *Object);
        WopUnlock(View);
        return STATUS_SUCCESS;
    }
    return WopFinish(View, *Object != 0);
}

/* Removing. */

/* Out of its chain, and out of the list of its directory. */
static VOID WopUnlinkName(PWO_VIEW View, WO_INDEX Index, const WO_NAME *Name)
{
    PULONG Link = &View->World->Bucket[Name->Hash % WO_BUCKETS];
    for (ULONG Left = WopBound(View, View->World->Names); *Link != Index; Left -= 1) {
        PWO_NAME Other = Left != 0 && *Link != 0 ? WopName(View, *Link) : NULL;
        if (Other == NULL) {
            WopPoison(View, "a name is not in its chain");
            return;
        }
        Link = &Other->HashNext;
    }
    WopEditUlong(View, Link, Name->HashNext);
    PULONG Entries = WopEntriesOf(View, Name->Directory);
    PWO_NAME Before = Name->PreviousSibling != 0 ? WopName(View, Name->PreviousSibling) : NULL;
    PWO_NAME Behind = Name->NextSibling != 0 ? WopName(View, Name->NextSibling) : NULL;
    if (Entries == NULL) {
        return;
    }
    WopEditUlong(View, Before != NULL ? &Before->NextSibling : &Entries[0], Name->NextSibling);
    WopEditUlong(View, Behind != NULL ? &Behind->PreviousSibling : &Entries[1], Name->PreviousSibling);
}

/* Inside a transaction: of an object without handles. */
static VOID WopRemoveName(PWO_VIEW View, WO_INDEX Index)
{
    PWO_WORLD World = View->World;
    PWO_OBJECT Object = WopRecord(View, Index, WoObjectRecord);
    PWO_NAME Name = Object != NULL && Object->Name != 0 ? WopName(View, Object->Name) : NULL;
    if (Name == NULL) {
        return;
    }
    WO_INDEX Directory = Name->Directory;
    WopUnlinkName(View, Object->Name, Name);
    WopEditUlong(View, &World->Names, World->Names - 1);
    WopEdit(View, &World->Removals, World->Removals + 1);
    WopFree(View, Object->Name);
    WopEditUlong(View, &Object->Name, 0);
    if (Directory != 0 && !WoIsPoisoned(View)) {
        WopFreeUnused(View, Directory);
    }
}

VOID WoRemoveName(PWO_VIEW View, WO_INDEX Object)
{
    if (WopLock(View)) {
        WopBegin(View);
        WopRemoveName(View, Object);
        WopFinish(View, TRUE);
    }
}

NTSTATUS WoSetPermanent(PWO_VIEW View, WO_INDEX Index, BOOLEAN Permanent)
{
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    WopBegin(View);
    PWO_OBJECT Object = WopRecord(View, Index, WoObjectRecord);
    if (Object != NULL && ((Object->Attributes & OBJ_PERMANENT) != 0) != (Permanent != FALSE)) {
        WopEditUlong(View, &Object->Attributes, Object->Attributes ^ OBJ_PERMANENT);
        WopEditUlong(View, &View->World->Permanents, View->World->Permanents + (Permanent ? 1u : MAXULONG));
        if (!Permanent && Object->Handles == 0) {
            WopRemoveName(View, Index);
            WopFreeUnused(View, Index);
        }
    }
    return WopFinish(View, TRUE);
}

ULONG WoQueryAttributes(PWO_VIEW View, WO_INDEX Index)
{
    PWO_OBJECT Object = WopRecord(View, Index, WoObjectRecord);
    /* relaxed: one flag changes, at any time */
    return Object != NULL ? __atomic_load_n(&Object->Attributes, __ATOMIC_RELAXED) : 0;
}

/* Queries. */

/* STATUS_BUFFER_TOO_SMALL: *Length is what it takes. */
static NTSTATUS WopCopyText(const WO_NAME *Name, PWCHAR Text, ULONG Capacity, PULONG Length)
{
    ULONG Characters = __atomic_load_n(&Name->Length, __ATOMIC_RELAXED); /* once: see WopRecord */
    *Length = Characters;
    if (Characters > Capacity) {
        return STATUS_BUFFER_TOO_SMALL;
    }
    memcpy(Text, Name->Text, Characters * sizeof(WCHAR));
    return STATUS_SUCCESS;
}

/* With the lock held: \Directory\Name, filled from its end. Returns its length. A path below a directory that has lost its
   name begins with dots. */
static ULONG WopSpellPath(PWO_VIEW View, PWO_OBJECT Object, PWCHAR Path, ULONG Capacity)
{
    ULONG Length = 0;
    for (ULONG Left = WopBound(View, View->World->Names); Object != NULL && Object->Name != 0 && Left != 0; Left -= 1) {
        PWO_NAME Name = WopName(View, Object->Name);
        if (Name == NULL) {
            return 0;
        }
        ULONG Characters = __atomic_load_n(&Name->Length, __ATOMIC_RELAXED); /* once: see WopRecord */
        if (Length + Characters + 1 <= Capacity) {
            memmove(Path + Characters + 1, Path, Length * sizeof(WCHAR));
            memcpy(Path + 1, Name->Text, Characters * sizeof(WCHAR));
            Path[0] = '\\';
        }
        Length += Characters + 1;
        Object = Name->Directory != 0 ? WopRecord(View, Name->Directory, WoObjectRecord) : NULL;
    }
    if (Object != NULL && Length != 0) {
        static const WCHAR Dots[] = {'.', '.', '.'};
        if (Length + RTL_NUMBER_OF(Dots) <= Capacity) {
            memmove(Path + RTL_NUMBER_OF(Dots), Path, Length * sizeof(WCHAR));
            memcpy(Path, Dots, sizeof(Dots));
        }
        Length += RTL_NUMBER_OF(Dots);
    }
    return Length;
}

NTSTATUS WoQueryName(PWO_VIEW View, WO_INDEX Object, PWCHAR Path, ULONG Capacity, PULONG Length)
{
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    PWO_OBJECT Record = WopIsRecord(View, Object, WoObjectRecord) ? WopAt(View, Object) : NULL;
    *Length = WopSpellPath(View, Record, Path, Capacity);
    WopUnlock(View);
    if (WoIsPoisoned(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    return *Length <= Capacity ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL;
}

NTSTATUS WoQueryTarget(PWO_VIEW View, WO_INDEX SymbolicLink, PWCHAR Target, ULONG Capacity, PULONG Length)
{
    NTSTATUS Status = STATUS_FILE_CORRUPT_ERROR;
    if (!WopLock(View)) {
        return Status;
    }
    PWO_OBJECT Object = WopRecord(View, SymbolicLink, WoObjectRecord);
    if (Object != NULL && Object->Target == 0) {
        Status = STATUS_OBJECT_TYPE_MISMATCH;
    } else if (Object != NULL) {
        PWO_NAME Name = WopName(View, Object->Target);
        Status = Name != NULL ? WopCopyText(Name, Target, Capacity, Length) : Status;
    }
    WopUnlock(View);
    return Status;
}

/* With the lock held. An enumeration continues where the last call stopped, as long as no name was removed. */
static PWO_NAME WopFindEntry(PWO_VIEW View, WO_INDEX Directory, ULONG Number)
{
    WO_CURSOR Cursor = View->Cursor;
    PULONG Entries = WopEntriesOf(View, Directory);
    if (Entries == NULL) {
        return NULL;
    }
    if (Cursor.Name == 0 || Cursor.Directory != Directory || Cursor.Removals != View->World->Removals ||
        Cursor.Number > Number) {
        Cursor = (WO_CURSOR){Directory, 0, Entries[0], View->World->Removals};
    }
    PWO_NAME Name = Cursor.Name != 0 ? WopName(View, Cursor.Name) : NULL;
    while (Name != NULL && Cursor.Number < Number && Cursor.Number < View->World->Names) {
        Cursor.Name = Name->NextSibling;
        Cursor.Number += 1;
        Name = Cursor.Name != 0 ? WopName(View, Cursor.Name) : NULL;
    }
    if (Name != NULL && Cursor.Number == Number) {
        View->Cursor = Cursor;
        return Name;
    }
    return NULL;
}

NTSTATUS WoQueryEntry(PWO_VIEW View, WO_INDEX Directory, ULONG Index, PWCHAR Name, ULONG Capacity, PULONG Length,
                      WO_TYPE *Type)
{
    NTSTATUS Status = STATUS_NO_MORE_ENTRIES;
    if (!WopLock(View)) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    PWO_NAME Found = WopFindEntry(View, Directory, Index);
    if (Found != NULL) {
        *Type = WoTypeOf(View, Found->Object);
        Status = WopCopyText(Found, Name, Capacity, Length);
    }
    WopUnlock(View);
    return WoIsPoisoned(View) ? STATUS_FILE_CORRUPT_ERROR : Status;
}

/* The references that processes have to objects. Theory in wo.h; the lists are in wop.h. */

static PWO_OBJECT WopReferencedObject(PWO_VIEW View, const WO_REFERENCE *Reference)
{
    return WopRecord(View, Reference->Object, WoObjectRecord);
}

/* With the lock held. NULL: the process has none, or the world is poisoned. */
static PWO_REFERENCE WopFindReference(PWO_VIEW View, WO_INDEX Process, WO_INDEX Object)
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
