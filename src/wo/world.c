/* world.c: a larger world. */
#include "wop.h"

#define WO_PIECE (256 * 1024ull) /* by which a file grows */

/* Size needs no journal: a file larger than Size is legal, and one process at a time extends it. */
BOOLEAN WopGrow(PWO_VIEW View, ULONG64 Size)
{
    ULONG64 Wanted = (Size + WO_PIECE - 1) / WO_PIECE * WO_PIECE;
    if (View->Path[0] == '\0' || Wanted > View->Mapped || !HalGrowSharedFile(View->Path, &View->File, Wanted)) {
        return FALSE;
    }
    View->World->Size = Wanted;
    return TRUE;
}
