/* spin.c: whether a thread may spin at all, for loops that do not go through KiParkUntil. Theory in park.h. */
#include "wait.h"

BOOLEAN KiMaySpin(PKTHREAD Thread)
{
    KI_PATIENCE Patience;
    KiBeginPatience(&Patience, Thread, KiParkForAddress);
    return Patience.Spins != 0;
}
