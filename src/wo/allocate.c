/*
 * allocate.c: records. Sizes are powers of two; a free record is in the list of its size; if the list is empty, the
 * record comes from the end of the world, which grows.
 */
#include "wop.h"

#include <string.h>

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
    __atomic_store_n(&View->Known, World->Size, __ATOMIC_RELAXED); /* relaxed: read when nothing is in order any more */
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
