/* pending.c: in place of object.c and wait.c until they are here. Weak: theirs win. */
#include "wop.h"

#define WO_PENDING __attribute__((weak))

WO_PENDING VOID WopWake(PWO_VIEW View, PWO_WAITER Waiter, BOOLEAN Surely)
{
    UNREFERENCED_PARAMETER(View);
    UNREFERENCED_PARAMETER(Surely);
    __atomic_fetch_add(&Waiter->WakeWord, 1, __ATOMIC_RELEASE);
    HalWakeShared(&Waiter->WakeWord, MAXULONG);
}

WO_PENDING VOID WopCompleteIntention(PWO_VIEW View)
{
    View->World->Intention = 0;
}

WO_PENDING VOID WopEndWaiter(PWO_VIEW View, WO_INDEX Waiter)
{
    UNREFERENCED_PARAMETER(View);
    UNREFERENCED_PARAMETER(Waiter);
}

WO_PENDING BOOLEAN WopIsOwned(PWO_OBJECT Object)
{
    UNREFERENCED_PARAMETER(Object);
    return FALSE;
}

WO_PENDING VOID WopDeliverNotifications(PWO_VIEW View)
{
    UNREFERENCED_PARAMETER(View);
}
