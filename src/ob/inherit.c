/* inherit.c: handles that a child process inherits. The theory is in inherit.h. */
#include "inherit.h"

#include <stdio.h>
#include <stdlib.h>

#include "../ke/park.h"
#include "../ps/psp.h"

#define OBP_VARIABLE "INTERLOCK_INHERITED"
#define OBP_PROCESS_TEXT 96 /* at most, of one process */

/* The parent. */

typedef struct _OBP_COLLECTION {
    PVOID *Objects;                  /* a reference each, until the tickets exist */
    ULONG ObjectCount;
    PWO_INHERITED Handles[OBP_WORLDS];
    ULONG Count[OBP_WORLDS];
    PWO_VIEW View[OBP_WORLDS];
    PSTR Processes;                  /* their part of the text */
    SIZE_T ProcessesLength, ProcessesRoom;
    ULONG Room;                      /* of the arrays */
} OBP_COLLECTION, *POBP_COLLECTION;

static BOOLEAN ObpGrow(PVOID *Array, SIZE_T Used, SIZE_T Size)
{
    PVOID Fresh = HalAllocate(Size, MEMORY_ALLOCATION_ALIGNMENT);
    if (Fresh == NULL) {
        return FALSE;
    }
    memcpy(Fresh, *Array != NULL ? *Array : Fresh, Used);
    HalFree(*Array);
    *Array = Fresh;
    return TRUE;
}

static BOOLEAN ObpMakeRoom(POBP_COLLECTION Collection)
{
    ULONG Room = 2 * Collection->Room + 32;
    if (Collection->ObjectCount < Collection->Room) {
        return TRUE;
    }
    if (!ObpGrow((PVOID *)&Collection->Objects, Collection->ObjectCount * sizeof(PVOID), Room * sizeof(PVOID))) {
        return FALSE;
    }
    for (ULONG World = 0; World < OBP_WORLDS; World++) {
        if (!ObpGrow((PVOID *)&Collection->Handles[World], Collection->Count[World] * sizeof(WO_INHERITED),
                     Room * sizeof(WO_INHERITED))) {
            return FALSE;
        }
    }
    Collection->Room = Room;
    return TRUE;
}

static VOID ObpDropCollection(POBP_COLLECTION Collection)
{
    while (Collection->ObjectCount != 0) {
        ObpDereferenceObjectEx(Collection->Objects[--Collection->ObjectCount], 1);
    }
    HalFree(Collection->Objects);
    HalFree(Collection->Processes);
    for (ULONG World = 0; World < OBP_WORLDS; World++) {
        HalFree(Collection->Handles[World]);
    }
}

static VOID ObpCollectShared(POBP_COLLECTION Collection, POBP_SHARE Share, const WO_INHERITED *Handle)
{
    ULONG World = 0;
    while (Collection->View[World] != NULL && Collection->View[World] != ObpViewOf(Share)) {
        World += 1;
    }
    Collection->View[World] = ObpViewOf(Share);
    Collection->Handles[World][Collection->Count[World]] = *Handle;
    Collection->Handles[World][Collection->Count[World]].Object = Share->Outside.Index;
    Collection->Count[World] += 1;
}

static BOOLEAN ObpCollectProcess(POBP_COLLECTION Collection, PEPROCESS Process, const WO_INHERITED *Handle)
{
    ULONG ProcessId = Process->Pcb.ProcessId;
    SIZE_T Room = Collection->ProcessesRoom;
    if (Collection->ProcessesLength + OBP_PROCESS_TEXT > Room) {
        Room = 2 * Room + 2 * OBP_PROCESS_TEXT;
        if (!ObpGrow((PVOID *)&Collection->Processes, Collection->ProcessesLength, Room)) {
            return FALSE;
        }
        Collection->ProcessesRoom = Room;
    }
    Collection->ProcessesLength +=
        (SIZE_T)snprintf(Collection->Processes + Collection->ProcessesLength, OBP_PROCESS_TEXT, " P%x:%x:%llx:%x:%x",
                         Handle->Handle, ProcessId, (unsigned long long)HalQueryProcessStart(ProcessId),
                         Handle->GrantedAccess, Handle->Attributes);
    return TRUE;
}

/* Takes over the reference on the object. */
static NTSTATUS ObpCollect(POBP_COLLECTION Collection, PVOID Object, const WO_INHERITED *Handle)
{
    POBP_SHARE Share;
    NTSTATUS Status;
    if (!ObpMakeRoom(Collection)) {
        ObpDereferenceObjectEx(Object, 1);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Collection->Objects[Collection->ObjectCount++] = Object;
    if (ObpHeaderOf(Object)->Type == &ObpProcessType) {
        return ObpCollectProcess(Collection, Object, Handle) ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
    }
    Status = ObpShareObject(Object, &Share);
    if (NT_SUCCESS(Status)) {
        ObpCollectShared(Collection, Share, Handle);
    }
    return Status == STATUS_NOT_SUPPORTED ? STATUS_SUCCESS : Status;
}

/* STATUS_INVALID_HANDLE: it is not open, or not marked. */
static NTSTATUS ObpCollectHandle(POBP_COLLECTION Collection, HANDLE Handle)
{
    OBJECT_HANDLE_INFORMATION Information;
    WO_INHERITED Inherited = {.Handle = HandleToULong(Handle)};
    PVOID Object;
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, 0, NULL, KernelMode, &Object, &Information);
    if (!NT_SUCCESS(Status)) {
        return STATUS_INVALID_HANDLE;
    }
    if (!(Information.HandleAttributes & OBJ_INHERIT)) {
        ObpDereferenceObjectEx(Object, 1);
        return STATUS_INVALID_HANDLE;
    }
    Inherited.GrantedAccess = Information.GrantedAccess;
    Inherited.Attributes = Information.HandleAttributes;
    return ObpCollect(Collection, Object, &Inherited);
}

static NTSTATUS ObpCollectAll(POBP_COLLECTION Collection)
{
    NTSTATUS Status = STATUS_SUCCESS;
    HANDLE Handle = NULL;
    while (NT_SUCCESS(Status) && (Handle = ObpNextHandle(Handle)) != NULL) {
        Status = ObpCollectHandle(Collection, Handle);
        if (Status == STATUS_INVALID_HANDLE) { /* closed meanwhile */
            Status = STATUS_SUCCESS;
        }
    }
    return Status;
}

static NTSTATUS ObpCollectList(POBP_COLLECTION Collection, const HANDLE *List, ULONG Count)
{
    NTSTATUS Status = STATUS_SUCCESS;
    for (ULONG Index = 0; Index < Count && NT_SUCCESS(Status); Index++) {
        for (ULONG Before = 0; Before < Index; Before++) {
            if (List[Before] == List[Index]) {
                return STATUS_INVALID_PARAMETER;
            }
        }
        Status = ObpCollectHandle(Collection, List[Index]);
    }
    return Status == STATUS_INVALID_HANDLE ? STATUS_INVALID_PARAMETER : Status;
}

static NTSTATUS ObpTakeTickets(POBP_COLLECTION Collection, POBP_BEQUEST Bequest)
{
    NTSTATUS Status = STATUS_SUCCESS;
    for (ULONG World = 0; World < OBP_WORLDS && Collection->View[World] != NULL && NT_SUCCESS(Status); World++) {
        Status = WoPrepareChild(Collection->View[World], Collection->Handles[World], Collection->Count[World],
                                Bequest->World[World].Ticket);
        if (NT_SUCCESS(Status)) {
            Bequest->World[World].View = Collection->View[World];
        }
    }
    return Status;
}

static NTSTATUS ObpWriteText(POBP_COLLECTION Collection, POBP_BEQUEST Bequest)
{
    SIZE_T Room = sizeof(OBP_VARIABLE) + OBP_WORLDS * (WO_TICKET_LENGTH + 16) + Collection->ProcessesLength + 1;
    PWO_VIEW Machine = NULL;
    SIZE_T Length;
    Bequest->Text = HalAllocate(Room, 1);
    if (Bequest->Text == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    (VOID)WoOpenView(WoMachine, &Machine);
    Length = (SIZE_T)snprintf(Bequest->Text, Room, OBP_VARIABLE "=");
    for (ULONG World = 0; World < OBP_WORLDS && Bequest->World[World].View != NULL; World++) {
        Length += (SIZE_T)snprintf(Bequest->Text + Length, Room - Length, " %c%x:%s",
                                   Bequest->World[World].View == Machine ? 'M' : 'L', Collection->Count[World],
                                   Bequest->World[World].Ticket);
    }
    memcpy(Bequest->Text + Length, Collection->Processes != NULL ? Collection->Processes : "",
           Collection->ProcessesLength);
    return STATUS_SUCCESS;
}

NTSTATUS ObpPrepareBequest(const OBP_HEIRLOOMS *Heirlooms, POBP_BEQUEST Bequest)
{
    OBP_COLLECTION Collection = {0};
    NTSTATUS Status;
    memset(Bequest, 0, sizeof(*Bequest));
    Status = Heirlooms->List != NULL ? ObpCollectList(&Collection, Heirlooms->List, Heirlooms->Count)
                                     : ObpCollectAll(&Collection);
    if (NT_SUCCESS(Status)) {
        Status = ObpTakeTickets(&Collection, Bequest);
    }
    if (NT_SUCCESS(Status) && (Bequest->World[0].View != NULL || Collection.ProcessesLength != 0)) {
        Status = ObpWriteText(&Collection, Bequest);
    }
    ObpDropCollection(&Collection);
    if (!NT_SUCCESS(Status)) {
        ObpEndBequest(Bequest, 0);
    }
    return Status;
}

VOID ObpEndBequest(POBP_BEQUEST Bequest, ULONG ProcessId)
{
    for (ULONG World = 0; World < OBP_WORLDS && Bequest->World[World].View != NULL; World++) {
        if (ProcessId != 0) {
            WoStartChild(Bequest->World[World].View, Bequest->World[World].Ticket, ProcessId);
        } else {
            WoAbandonChild(Bequest->World[World].View, Bequest->World[World].Ticket);
        }
    }
    HalFree(Bequest->Text);
    Bequest->Text = NULL;
}

/* The child. */

volatile ULONG ObpAdoptionState;
static PCSTR ObpInheritedText;
static PKTHREAD volatile ObpAdopter;

static VOID ObpTakeInheritedText(VOID)
{
    ObpInheritedText = HalTakeEnvironment(OBP_VARIABLE);
    ObpAdoptionState = ObpInheritedText != NULL ? ObpAdoptionPending : ObpNothingToAdopt;
}
KI_INITIALIZER(KiInitializeObjects, ObpTakeInheritedText);

PVOID ObpBuildHeir(PWO_VIEW View, WO_INDEX Index)
{
    WO_TYPE Kind = WoTypeOf(View, Index);
    POBJECT_TYPE Type = ObpTypeOfKind(Kind);
    ULONG Target = 0;
    if (Type == NULL) {
        return NULL;
    }
    if (Kind == WoSymbolicLink) {
        (VOID)WoQueryTarget(View, Index, NULL, 0, &Target);
    }
    PVOID Heir = ObpBuildProxy(Type, Type->Sharing->BodySize + Target * sizeof(WCHAR), 0);
    if (Heir != NULL && Kind == WoSymbolicLink) {
        ((POBJECT_SYMBOLIC_LINK)Heir)->Length = (USHORT)Target;
    }
    return Heir;
}

PVOID ObpReceiveObject(PWO_VIEW View, WO_INDEX Index)
{
    PVOID Candidate = ObpBuildHeir(View, Index);
    PVOID Proxy;
    if (Candidate == NULL) {
        return NULL;
    }
    PKTHREAD Thread = ObpLockShares();
    Proxy = ObpProxyOf(View, Index, WoTypeOf(View, Index), Candidate);
    ObpUnlockShares(Thread);
    if (Proxy != Candidate) {
        ObpDiscardProxy(Candidate);
    }
    return Proxy;
}

VOID ObpReturnHandle(PWO_VIEW View, WO_INDEX Index)
{
    PKTHREAD Thread = ObpLockShares();
    WoChangeHandles(View, Index, -1);
    ObpReturnRecord(View, Index);
    ObpUnlockShares(Thread);
}

/* The world has counted the handle; one that cannot be opened is returned. */
static ULONG ObpAdoptHandle(PWO_VIEW View, const WO_INHERITED *Inherited)
{
    HANDLE Handle = ULongToHandle(Inherited->Handle);
    PVOID Proxy = ObpReserveHandleValue(Handle) ? ObpReceiveObject(View, Inherited->Object) : NULL;
    if (Proxy == NULL) {
        ObpReturnHandle(View, Inherited->Object);
        return 0;
    }
    ObpOpenCountedHandle(Handle, Proxy, Inherited->Attributes, Inherited->GrantedAccess);
    ObpDereferenceObjectEx(Proxy, 1);
    return Inherited->Handle;
}

static ULONG ObpAdoptFromWorld(WO_SCOPE Scope, PCSTR Ticket, ULONG Count)
{
    PWO_INHERITED Handles = HalAllocate((Count + 1) * sizeof(*Handles), MEMORY_ALLOCATION_ALIGNMENT);
    ULONG Highest = 0;
    PWO_VIEW View;
    if (Handles != NULL && NT_SUCCESS(ObpOpenWorld(Scope, &View)) &&
        NT_SUCCESS(WoAdoptHandles(View, Ticket, Handles, &Count))) {
        for (ULONG Index = 0; Index < Count; Index++) {
            ULONG Adopted = ObpAdoptHandle(View, &Handles[Index]);
            Highest = Adopted > Highest ? Adopted : Highest;
        }
    }
    HalFree(Handles);
    return Highest;
}

static ULONG ObpAdoptProcess(ULONG Handle, ULONG ProcessId, ULONG64 Start, ULONG GrantedAccess, ULONG Attributes)
{
    PEPROCESS Process;
    if (!NT_SUCCESS(PsLookupProcessByProcessId(ULongToHandle(ProcessId), &Process))) {
        return 0;
    }
    BOOLEAN Same = HalQueryProcessStart(ProcessId) == Start && ObpReserveHandleValue(ULongToHandle(Handle));
    if (Same) {
        ObpOpenReservedHandle(ULongToHandle(Handle), Process, Attributes, GrantedAccess);
    }
    ObDereferenceObject(Process);
    return Same ? Handle : 0;
}

/* One word of the text. Returns the handle with the highest value that it opened. */
static ULONG ObpAdoptWord(PCSTR Word)
{
    CHAR Ticket[WO_TICKET_LENGTH];
    ULONG Handle, ProcessId, Access, Attributes, Count;
    unsigned long long Start;
    if (sscanf(Word, "P%x:%x:%llx:%x:%x", &Handle, &ProcessId, &Start, &Access, &Attributes) == 5) {
        return ObpAdoptProcess(Handle, ProcessId, Start, Access, Attributes);
    }
    if (sscanf(Word, "%*1[LM]%x:%63[^ ]", &Count, Ticket) == 2 && Count <= OBP_HANDLE_LIMIT) {
        return ObpAdoptFromWorld(Word[0] == 'M' ? WoMachine : WoLocal, Ticket, Count);
    }
    return 0;
}

C_ASSERT(WO_TICKET_LENGTH == 64); /* the format above */

static VOID ObpAdoptAll(VOID)
{
    ULONG Highest = 0;
    for (PCSTR Word = ObpInheritedText; Word != NULL; Word = strchr(Word, ' ')) {
        Word += *Word == ' ';
        ULONG Adopted = ObpAdoptWord(Word);
        Highest = Adopted > Highest ? Adopted : Highest;
    }
    ObpFreeValuesBelow(ULongToHandle(Highest));
}

VOID ObpAdoptHandles(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Pending = ObpAdoptionPending;
    /* relaxed: finds only its own address */
    if (__atomic_load_n(&ObpAdopter, __ATOMIC_RELAXED) == Thread) {
        return;
    }
    KiEnterService(Thread);
    if (__atomic_compare_exchange_n(&ObpAdoptionState, &Pending, ObpAdopting, FALSE, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
        __atomic_store_n(&ObpAdopter, Thread, __ATOMIC_RELAXED);
        ObpAdoptAll();
        __atomic_store_n(&ObpAdopter, NULL, __ATOMIC_RELAXED);
        /* release: the handles are open */
        __atomic_store_n(&ObpAdoptionState, ObpNothingToAdopt, __ATOMIC_RELEASE);
    }
    for (ULONG Round = 0; __atomic_load_n(&ObpAdoptionState, __ATOMIC_ACQUIRE) != ObpNothingToAdopt; Round++) {
        KiBackOff(Round);
    }
    KiExitService(Thread);
}

/* After the library's own constructor, where the heap may not be used. From now on other processes can reach this
   one.. */
__attribute__((constructor)) static VOID ObpAdoptAtStart(VOID)
{
    if (ObpAdoptionState != ObpNothingToAdopt) {
        ObpAdoptHandles();
    }
}
