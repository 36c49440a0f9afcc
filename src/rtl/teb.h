/* teb.h: what the runtime keeps of a thread. Zeroed when a thread begins; only the thread itself touches it. */
#ifndef INTERLOCK_RTL_TEB_H
#define INTERLOCK_RTL_TEB_H

#include "../ke/ki.h"

typedef struct _TEB {
    ULONG LastErrorValue;
    NTSTATUS LastStatusValue; /* what RtlNtStatusToDosError last mapped */
    PVOID ThreadPoolData;     /* the pool's record of a worker; NULL: the thread is none */
} TEB, *PTEB;

KI_THREAD_ROOM(TEB, Rtl, RtlpTeb);

FORCEINLINE PTEB RtlpCurrentTeb(VOID)
{
    return RtlpTeb(KiCurrentThread());
}

#endif
