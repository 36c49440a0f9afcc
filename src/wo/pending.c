/* pending.c: in place of what is not here yet. Weak: the real one wins. */
#include "wop.h"

__attribute__((weak)) VOID WopDeliverNotifications(PWO_VIEW View)
{
    UNREFERENCED_PARAMETER(View);
}
