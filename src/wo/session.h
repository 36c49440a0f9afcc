/* session.h: the worlds of this process, and the thread that serves each. */
#ifndef INTERLOCK_WO_SESSION_H
#define INTERLOCK_WO_SESSION_H

#include "wop.h"

#include "../ke/debugdata.h"
#include "../ke/ki.h"
#include "../ke/outside.h"
#include "../ke/ownthread.h"

typedef enum _WO_PLACE_STATE {
    WoPlaceUnknown,
    WoPlaceAttaching,
    WoPlaceAttached,
    WoPlaceRefused            /* INTERLOCK_SESSION=private, or the host refuses */
} WO_PLACE_STATE;

typedef struct _WO_WARD {
    ULONG64 Key;              /* 0: none */
    PVOID Watch;              /* NULL: the host refuses one */
} WO_WARD, *PWO_WARD;

typedef struct _WO_PLACE {
    volatile ULONG State;     /* WO_PLACE_STATE */
    ULONG ProcessId;          /* which has attached: not a child by vfork */
    WO_VIEW View;
    KI_OWN_THREAD Session;
    WO_WARD Ward[WO_WARDS];   /* of the session thread */
    volatile ULONG Forked;    /* the view has not been opened since the fork */
    WO_INDEX Prepared;        /* during a fork: for the child */
    ULONG64 Nonce;
    LONG Birth[2];
    BOOLEAN HasBirth;
} WO_PLACE, *PWO_PLACE;

#define WO_PLACES 2           /* WO_SCOPE */
extern WO_PLACE WopPlaces[WO_PLACES];

/* For the debugger, which reads the worlds of a process (kd/shared.c). */
#define WO_LAYOUT                                                                                                      \
    WO_VERSION, sizeof(WO_WORLD), sizeof(WO_OBJECT), sizeof(WO_WAITER), sizeof(WO_PROCESS), sizeof(WO_REFERENCE),      \
        sizeof(WO_PLACE), KDP_MEMBER(WO_PLACE, State), KDP_MEMBER(WO_PLACE, ProcessId), KDP_MEMBER(WO_PLACE, View),    \
        KDP_MEMBER(WO_VIEW, World), KDP_MEMBER(WO_VIEW, Key), KDP_MEMBER(WO_VIEW, File), KDP_MEMBER(WO_VIEW, Path),    \
        KDP_MEMBER(KI_OUTSIDE, View), KDP_MEMBER(KI_OUTSIDE, Index)

NTSTATUS WopStartSession(PWO_PLACE Place);
VOID WopProveUse(PWO_PLACE Place);
VOID WopForkThread(PKTHREAD Survivor); /* outside.c: in the child */
VOID WopLeaveWorld(PWO_PLACE Place); /* closes the handles; the rest is for the guards */

#endif
