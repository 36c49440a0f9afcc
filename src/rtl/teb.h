/* teb.h: the runtime's per-thread data. Zeroed when a thread begins; only the thread itself touches it. */
#ifndef INTERLOCK_RTL_TEB_H
#define INTERLOCK_RTL_TEB_H

#include <interlock/rtl.h>

#include "../ke/ki.h"

KI_THREAD_ROOM(TEB, Rtl, RtlpTeb);

FORCEINLINE PTEB RtlpCurrentTeb(VOID)
{
    return RtlpTeb(KiCurrentThread());
}

#endif
