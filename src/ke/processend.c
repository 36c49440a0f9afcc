/* processend.c: is the thread that ends the process the last one of the program? The rules are in processend.h. */
#include "processend.h"

#include "ki.h"
#include "park.h"

#define KI_MOST_ROUNDS 100 /* for threads that have ended for the library but not yet for the host: a few
                              milliseconds */

BOOLEAN KiProcessEndsAlone(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    HAL_OTHERS Others = HalOthersForNow;

    if (KiForkDepth != 0 || Thread->DispatcherDepth != 0 || Thread->HostInterrupts != 0 || Thread->Irql != PASSIVE_LEVEL) {
        return FALSE;
    }
    for (ULONG Round = 0; Others == HalOthersForNow && Round < KI_MOST_ROUNDS; Round++) {
        Others = HalFindOtherThreads();
        if (Others == HalOthersForNow) {
            KiBackOff(Round);
        }
    }
    return Others == HalNoOthers;
}
