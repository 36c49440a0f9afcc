/*
 * map.c: the memory of a world: finding its file, attaching this process to it, detaching, and the records in it.
 *
 * The file of a new world is complete before it has a name (hal/sharedfile.c). A process that finds a file maps it, takes
 * the lock, and only then checks whether the world is still in use: its last process marks it as ended under the lock,
 * and then removes the name. A process that finds it ended, or poisoned, removes the name as well and tries again.
 *
 * At its exit a process closes its handles at once: a successor must not find the names of a program that has exited. Its
 * references and waiters stay, because other threads still run; the guards clean them up when the process has ended.
 */
#include "session.h"

#include "../ke/park.h"
#include "../ke/ki.h"

#include <stdio.h>
#include <string.h>

#define WO_LARGEST_RECORD ((SIZE_T)WO_UNIT << WO_CLASSES)
#define WO_ADDRESS_SPACE (WO_MAXIMUM_SIZE + WO_LARGEST_RECORD) /* see WopRecord */
#define WO_ATTEMPTS 100
#define WO_LONGEST_SESSION 100

C_ASSERT(sizeof(WO_WORLD) < WO_FIRST_SIZE);

WO_PLACE WopPlaces[WO_PLACES] = {[WoMachine] = {.View.Machine = TRUE}};
KD_REGISTER_ROOT(WopPlaces);
KD_REGISTER_LAYOUT(WopLayout, WO_LAYOUT);

/* Letters, digits and - _ . of the name as they are, the rest as hexadecimal numbers. FALSE: it is too long. */
static BOOLEAN WopSpellSession(PCSTR Name, CHAR Text[WO_LONGEST_SESSION])
{
    SIZE_T Length = 0;
    for (; *Name != '\0'; Name += 1) {
        UCHAR Character = (UCHAR)*Name;
        BOOLEAN Plain = (Character >= '0' && Character <= '9') || ((Character | 32) >= 'a' && (Character | 32) <= 'z') ||
                        Character == '-' || Character == '_' || Character == '.';
        if (Length + 4 > WO_LONGEST_SESSION) {
            return FALSE;
        }
        Length += (SIZE_T)snprintf(Text + Length, WO_LONGEST_SESSION - Length, Plain ? "%c" : "%%%02X", Character);
    }
    Text[Length] = '\0';
    return TRUE;
}

/* STATUS_NOT_SUPPORTED: INTERLOCK_SESSION=private. */
static NTSTATUS WopMakePath(BOOLEAN Machine, CHAR Path[HAL_LONGEST_PATH])
{
    PCSTR Session = HalGetEnvironment("INTERLOCK_SESSION");
    CHAR Text[WO_LONGEST_SESSION] = "default";
    HAL_SHARED_PLACE Place;
    if (Session != NULL && strcmp(Session, "private") == 0) {
        return STATUS_NOT_SUPPORTED;
    }
    if (Session != NULL && Session[0] != '\0' && !WopSpellSession(Session, Text)) {
        HalPrint("interlock: INTERLOCK_SESSION is too long\n");
        return STATUS_NOT_SUPPORTED;
    }
    HalQuerySharedPlace(&Place);
    if (Machine) {
        snprintf(Path, HAL_LONGEST_PATH, HAL_COMMON_MEMORY WO_MACHINE_NAME, WO_VERSION,
                 (unsigned long long)Place.Namespace);
    } else {
        snprintf(Path, HAL_LONGEST_PATH, "%s/interlock%d-%u-%llx-%s", Place.Directory, WO_VERSION, Place.User,
                 (unsigned long long)Place.Namespace, Text);
    }
    return STATUS_SUCCESS;
}

static VOID WopInitializeFile(PVOID Memory, ULONG64 Size)
{
    WopInitializeWorld(Memory, Size);
}

/* Damage that no process can repair. */
static BOOLEAN WopIsUsable(const HAL_SHARED_MAPPING *Mapping)
{
    const WO_WORLD *World = Mapping->Memory;
    return Mapping->Size >= WO_FIRST_SIZE && Mapping->Size <= WO_MAXIMUM_SIZE && World->Magic == WO_MAGIC &&
           World->Version == WO_VERSION && World->Bits == sizeof(PVOID) * 8 && World->Size <= Mapping->Size &&
           /* acquire: pairs with the release in WopInitializeWorld */
           __atomic_load_n(&World->State, __ATOMIC_ACQUIRE) != WoDamaged;
}

/* The largest record fits after the last one: see WopRecord. */
VOID WopMakeWritable(PWO_VIEW View, ULONG64 Size)
{
    if (View->Path[0] != '\0') {
        HalMakeSharedWritable(View->World, (Size < View->Mapped ? (SIZE_T)Size : View->Mapped) + WO_LARGEST_RECORD);
    }
}

static NTSTATUS WopMapWorld(PWO_VIEW View)
{
    HAL_SHARED_FILE Wanted = {.Path = View->Path, .Machine = View->Machine, .AddressSpace = WO_ADDRESS_SPACE,
                              .Size = WO_FIRST_SIZE, .Initialize = View->Machine ? NULL : WopInitializeFile};
    HAL_SHARED_MAPPING Mapping;
    NTSTATUS Status = HalMapSharedFile(&Wanted, &Mapping);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    View->World = Mapping.Memory;
    View->Mapped = WO_MAXIMUM_SIZE;
    View->Writable = Mapping.Size < WO_FIRST_SIZE ? WO_FIRST_SIZE : Mapping.Size;
    WopMakeWritable(View, View->Writable);
    __atomic_store_n(&View->Known, Mapping.Size, __ATOMIC_RELAXED);
    View->File = Mapping.File;
    __atomic_store_n(&View->MayHaveEnded, TRUE, __ATOMIC_RELAXED);
    __atomic_store_n(&View->Poisoned, 0, __ATOMIC_RELAXED);
    if (!HalGuardMapping(View->World, WO_ADDRESS_SPACE, &View->Poisoned)) {
        Status = STATUS_INSUFFICIENT_RESOURCES;
    } else if (!WopIsUsable(&Mapping)) {
        WopPoison(View, "its head is wrong"); /* processes attached to it must not continue beside a new one */
        Status = STATUS_FILE_CORRUPT_ERROR;
    }
    return Status;
}

static VOID WopUnmapWorld(PWO_VIEW View)
{
    if (View->World != NULL) {
        HalForgetMapping(View->World);
        HalUnmapSharedFile(View->World, WO_ADDRESS_SPACE);
        View->World = NULL;
        View->Self = 0;
    }
}

/* The host knows a sleeper by the file and the place in it. So the file gets its length back, full of zeros, and the words are
   woken in another mapping. */
VOID WopWakeBehindEnd(PWO_VIEW View)
{
    HAL_SHARED_FILE Wanted = {.Path = View->Path, .Machine = View->Machine, .AddressSpace = WO_ADDRESS_SPACE};
    ULONG64 Known = __atomic_load_n(&View->Known, __ATOMIC_RELAXED); /* relaxed: as in WopWakeEverybody */
    WO_VIEW Again = {.Mapped = View->Mapped, .Known = Known, .Poisoned = WO_VIEW_POISONED};
    HAL_SHARED_MAPPING Mapping;
    if (View->Path[0] == '\0' || !HalGrowSharedFile(View->Path, &View->File, Known) ||
        !NT_SUCCESS(HalMapSharedFile(&Wanted, &Mapping))) {
        return;
    }
    if (Mapping.File.File == View->File.File && HalGuardMapping(Mapping.Memory, WO_ADDRESS_SPACE, &Again.Poisoned)) {
        Again.World = Mapping.Memory;
        HalMakeSharedWritable(Mapping.Memory, WO_ADDRESS_SPACE);
        __atomic_store_n(&Again.World->State, WoDamaged, __ATOMIC_RELAXED); /* WopWakeEverybody publishes it */
        WopWakeEverybody(&Again);
        HalForgetMapping(Mapping.Memory);
    }
    HalUnmapSharedFile(Mapping.Memory, WO_ADDRESS_SPACE);
}

/* STATUS_RETRY: the world has ended. */
static NTSTATUS WopTryAttach(PWO_VIEW View)
{
    NTSTATUS Status = WopMapWorld(View);
    if (NT_SUCCESS(Status)) {
        if (!WopLock(View)) {
            Status = STATUS_FILE_CORRUPT_ERROR;
        } else {
            Status = View->World->State == WoLive ? WopEnterRing(View) : STATUS_RETRY;
            WopUnlock(View);
        }
    }
    if (!View->Machine && (Status == STATUS_FILE_CORRUPT_ERROR || Status == STATUS_RETRY)) {
        HalRemoveSharedFile(View->Path, &View->File);
        Status = STATUS_RETRY;
    }
    if (!NT_SUCCESS(Status)) {
        WopUnmapWorld(View);
    }
    return Status;
}

static NTSTATUS WopAttach(PWO_PLACE Place)
{
    PWO_VIEW View = &Place->View;
    NTSTATUS Status = WopMakePath(View->Machine, View->Path);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    View->Key = HalQueryProcessKey(HalCurrentProcessId());
    if (View->Key == 0) {
        return STATUS_NOT_SUPPORTED;
    }
    Status = STATUS_RETRY;
    for (ULONG Attempt = 0; Status == STATUS_RETRY && Attempt < WO_ATTEMPTS; Attempt += 1) {
        Status = WopTryAttach(View);
    }
    if (Status == STATUS_ACCESS_DENIED && !View->Machine) {
        HalPrint("interlock: %s is not a private file of this user: names are not shared with other processes\n",
                 View->Path);
    }
    if (NT_SUCCESS(Status)) {
        Place->ProcessId = HalCurrentProcessId();
        __atomic_store_n(&View->MayHaveEnded, FALSE, __ATOMIC_RELAXED);
        WopCleanDead(View);
        Status = WopStartSession(Place);
        if (!NT_SUCCESS(Status)) {
            WopLeaveWorld(Place);
            WopUnmapWorld(View);
        }
        return Status;
    }
    return Status == STATUS_INSUFFICIENT_RESOURCES ? Status : STATUS_NOT_SUPPORTED;
}

/* One thread attaches; it must not end meanwhile. STATUS_NOT_SUPPORTED is permanent, a lack of resources is not. */
static NTSTATUS WopOpenPlace(PWO_PLACE Place)
{
    PKTHREAD Thread = KiCurrentThread();
    for (ULONG Round = 0;; Round += 1) {
        /* acquire: pairs with the release below */
        ULONG State = __atomic_load_n(&Place->State, __ATOMIC_ACQUIRE);
        if (State == WoPlaceAttached) {
            return STATUS_SUCCESS;
        }
        if (State == WoPlaceRefused) {
            return STATUS_NOT_SUPPORTED;
        }
        KiEnterService(Thread);
        if (State == WoPlaceUnknown && __atomic_compare_exchange_n(&Place->State, &State, WoPlaceAttaching, FALSE,
                                                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            NTSTATUS Status = WopAttach(Place);
            State = NT_SUCCESS(Status) ? WoPlaceAttached : Status == STATUS_NOT_SUPPORTED ? WoPlaceRefused : WoPlaceUnknown;
            __atomic_store_n(&Place->State, State, __ATOMIC_RELEASE);
            KiExitService(Thread);
            return Status;
        }
        KiExitService(Thread);
        KiBackOff(Round);
    }
}

NTSTATUS WoOpenView(WO_SCOPE Scope, PWO_VIEW *View)
{
    PWO_PLACE Place = &WopPlaces[Scope];
    NTSTATUS Status = WopOpenPlace(Place);
    if (Status == STATUS_NOT_SUPPORTED && Scope == WoMachine) {
        return WoOpenView(WoLocal, View);
    }
    if (NT_SUCCESS(Status)) {
        *View = &Place->View;
        WopProveUse(Place);
    }
    return Status;
}

BOOLEAN WoHasMachineWorld(VOID)
{
    CHAR Path[HAL_LONGEST_PATH];
    return NT_SUCCESS(WopMakePath(TRUE, Path)) && HalIsSharedFile(Path, TRUE);
}

/* Leaving. */

/* FALSE: no handle is left. */
static BOOLEAN WopCloseOneHandle(PWO_VIEW View, WO_INDEX *Next)
{
    PWO_REFERENCE Reference = *Next != 0 ? WopRecord(View, *Next, WoReferenceRecord) : NULL;
    if (Reference == NULL) {
        return FALSE;
    }
    *Next = Reference->NextOfProcess;
    WopBegin(View);
    WopDropHandles(View, Reference, Reference->Handles);
    WopCommit(View);
    return TRUE;
}

/* The last process removes the file, unless it contains a permanent object. An administrator's world is not removed. */
VOID WopLeaveWorld(PWO_PLACE Place)
{
    PWO_VIEW View = &Place->View;
    BOOLEAN Last = FALSE;
    __atomic_store_n(&View->MayHaveEnded, TRUE, __ATOMIC_RELAXED);
    if (!WopLock(View)) {
        return;
    }
    PWO_PROCESS Self = WopRecord(View, View->Self, WoProcessRecord);
    WO_INDEX Next = Self != NULL ? Self->FirstReference : 0;
    for (ULONG Left = WopBound(View, MAXULONG); Left != 0 && WopCloseOneHandle(View, &Next); Left -= 1) {
    }
    if (Self != NULL) {
        WopBegin(View);
        WopEditUlong(View, &Self->Flags, Self->Flags | WO_EXITING);
        WopCommit(View);
        Last = !View->Machine && View->World->Permanents == 0 && WopIsLast(View);
    }
    if (Last) {
        __atomic_store_n(&View->World->State, WoEnded, __ATOMIC_RELEASE);
    }
    WopUnlock(View);
    if (Last) {
        HalRemoveSharedFile(View->Path, &View->File);
    }
}

static __attribute__((destructor(KI_END_WORLDS))) VOID WopLeaveAtExit(VOID)
{
    for (ULONG Number = 0; Number < WO_PLACES; Number += 1) {
        PWO_PLACE Place = &WopPlaces[Number];
        if (__atomic_load_n(&Place->State, __ATOMIC_ACQUIRE) == WoPlaceAttached &&
            Place->ProcessId == HalCurrentProcessId()) {
            WopCleanDead(&Place->View);
            WopLeaveWorld(Place);
        }
    }
}

/*
 * Records. Sizes are powers of two; a free record is in the list of its size; if the list is empty, the record comes
 * from the end of the world, which grows.
 */

#define WO_PIECE (256 * 1024ull) /* by which a file grows */

typedef union _WO_RECORD_WORD {
    WO_RECORD Record;
    ULONG64 Word;
} WO_RECORD_WORD;

static const SIZE_T WopSmallestSize[] = {
    [WoFree] = sizeof(WO_RECORD),
    [WoObjectRecord] = sizeof(WO_OBJECT),
    [WoWaiterRecord] = sizeof(WO_WAITER),
    [WoProcessRecord] = sizeof(WO_PROCESS),
    [WoReferenceRecord] = sizeof(WO_REFERENCE),
    [WoNameRecord] = sizeof(WO_NAME),
    [WoTicketRecord] = sizeof(WO_RECORD),
    [WoRequestRecord] = sizeof(WO_RECORD),
};

FORCEINLINE SIZE_T WopSizeOfClass(ULONG Class)
{
    return (SIZE_T)WO_UNIT << Class;
}

/* The header of the record at Index, whatever it is. FALSE: there is no record, or its header is invalid. */
static BOOLEAN WopReadRecord(PWO_VIEW View, WO_INDEX Index, WO_RECORD_WORD *Header)
{
    ULONG64 Top = __atomic_load_n(&View->World->Top, __ATOMIC_RELAXED);
    ULONG64 End = Top < View->Mapped ? Top : View->Mapped;
    if (Index < WO_FIRST_RECORD || (ULONG64)Index >= End / WO_UNIT) {
        return FALSE;
    }
    /* relaxed: a caller without the lock has a reference, so the record does not change its kind */
    Header->Word = __atomic_load_n((volatile ULONG64 *)WopAt(View, Index), __ATOMIC_RELAXED);
    return Header->Record.Class < WO_CLASSES && Header->Record.Kind < RTL_NUMBER_OF(WopSmallestSize) &&
           WopSizeOfClass(Header->Record.Class) >= WopSmallestSize[Header->Record.Kind] &&
           (ULONG64)Index * WO_UNIT + WopSizeOfClass(Header->Record.Class) <= End;
}

BOOLEAN WopIsRecord(PWO_VIEW View, WO_INDEX Index, WO_KIND Kind)
{
    WO_RECORD_WORD Header;
    return WopReadRecord(View, Index, &Header) && Header.Record.Kind == Kind;
}

PVOID WopRecord(PWO_VIEW View, WO_INDEX Index, WO_KIND Kind)
{
    WO_RECORD_WORD Header;
    if (!WopReadRecord(View, Index, &Header) || Header.Record.Kind != Kind) {
        WopPoison(View, "an index does not lead to a record of its kind");
        return NULL;
    }
    return WopAt(View, Index);
}

/* Undoing this transaction restores the record: its contents must stay. */
static BOOLEAN WopWasFreedJustNow(PWO_VIEW View, WO_INDEX Index)
{
    const WO_WORLD *World = View->World;
    for (ULONG Number = 0; Number < World->Edits && Number < WO_JOURNAL; Number += 1) {
        if (World->Edit[Number].Offset == (ULONG64)Index * WO_UNIT) {
            return TRUE;
        }
    }
    return FALSE;
}

static WO_INDEX WopTakeFree(PWO_VIEW View, ULONG Class)
{
    PWO_WORLD World = View->World;
    WO_INDEX Index = World->FreeRecord[Class];
    WO_RECORD_WORD Header;
    if (Index == 0 || WopWasFreedJustNow(View, Index)) {
        return 0;
    }
    if (!WopReadRecord(View, Index, &Header) || Header.Record.Kind != WoFree || Header.Record.Class != Class) {
        WopPoison(View, "a free record is not free");
        return 0;
    }
    WopEditUlong(View, &World->FreeRecord[Class], Header.Record.Next);
    return Index;
}

/* Size needs no journal: a file larger than Size is legal, and one process at a time extends it. */
static BOOLEAN WopGrow(PWO_VIEW View, ULONG64 Size)
{
    ULONG64 Wanted = (Size + WO_PIECE - 1) / WO_PIECE * WO_PIECE;
    if (View->Path[0] == '\0' || Wanted > View->Mapped || !HalGrowSharedFile(View->Path, &View->File, Wanted)) {
        return FALSE;
    }
    View->World->Size = Wanted;
    WopFollowSize(View);
    return TRUE;
}

static WO_INDEX WopTakeFromTop(PWO_VIEW View, ULONG Class)
{
    PWO_WORLD World = View->World;
    ULONG64 Top = World->Top;
    SIZE_T Size = WopSizeOfClass(Class);
    if (Top % WO_UNIT != 0 || Top < sizeof(WO_WORLD) || Top > World->Size || World->Size > View->Mapped) {
        WopPoison(View, "the end of the records is wrong");
        return 0;
    }
    if (Top + Size > World->Size && !WopGrow(View, Top + Size)) {
        return 0;
    }
    WopEdit(View, &World->Top, Top + Size);
    __atomic_store_n(&View->Known, World->Size, __ATOMIC_RELAXED); /* relaxed: read only in a damaged world */
    return (WO_INDEX)(Top / WO_UNIT);
}

WO_INDEX WopAllocate(PWO_VIEW View, WO_KIND Kind, SIZE_T Size)
{
    PWO_WORLD World = View->World;
    WO_RECORD_WORD Header = {.Record = {.Kind = (UCHAR)Kind}};
    ULONG Class = 0;
    while (Class < WO_CLASSES && WopSizeOfClass(Class) < Size) {
        Class += 1;
    }
    if (Class == WO_CLASSES) {
        return 0;
    }
    Header.Record.Class = (UCHAR)Class;
    WO_INDEX Index = WopTakeFree(View, Class);
    if (Index == 0 && !WoIsPoisoned(View)) {
        Index = WopTakeFromTop(View, Class);
    }
    if (Index == 0) {
        return 0;
    }
    memset((PUCHAR)WopAt(View, Index) + sizeof(WO_RECORD), 0, WopSizeOfClass(Class) - sizeof(WO_RECORD));
    WopEdit(View, WopAt(View, Index), Header.Word);
    WopEdit(View, &World->Used, World->Used + WopSizeOfClass(Class));
    return Index;
}

VOID WopFree(PWO_VIEW View, WO_INDEX Index)
{
    PWO_WORLD World = View->World;
    WO_RECORD_WORD Header;
    if (!WopReadRecord(View, Index, &Header) || Header.Record.Kind == WoFree) {
        WopPoison(View, "the record to free is not a record");
        return;
    }
    Header.Record.Kind = WoFree;
    Header.Record.Next = World->FreeRecord[Header.Record.Class];
    WopEdit(View, WopAt(View, Index), Header.Word);
    WopEditUlong(View, &World->FreeRecord[Header.Record.Class], Index);
    WopEdit(View, &World->Used, World->Used - WopSizeOfClass(Header.Record.Class));
}
