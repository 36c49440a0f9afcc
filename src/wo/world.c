/* world.c: a new world, and a larger one. */
#include "wop.h"

#define WO_PIECE (256 * 1024ull) /* by which a file grows */

VOID WopInitializeWorld(PWO_WORLD World, ULONG64 Size)
{
    World->Magic = WO_MAGIC;
    World->Version = WO_VERSION;
    World->Bits = sizeof(PVOID) * 8;
    World->Size = Size;
    World->Top = (ULONG64)WO_FIRST_RECORD * WO_UNIT;
    /* release: pairs with the acquire of a process that maps it */
    __atomic_store_n(&World->State, WoLive, __ATOMIC_RELEASE);
}

/* Size needs no journal: a file that is larger than it says is legal, and one process at a time makes it larger. */
BOOLEAN WopGrow(PWO_VIEW View, ULONG64 Size)
{
    ULONG64 Wanted = (Size + WO_PIECE - 1) / WO_PIECE * WO_PIECE;
    if (View->Path[0] == '\0' || Wanted > View->Mapped || !HalGrowSharedFile(View->Path, &View->File, Wanted)) {
        return FALSE;
    }
    View->World->Size = Wanted;
    return TRUE;
}
