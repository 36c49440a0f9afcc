/* session.h: the worlds of this process, and the thread that serves each. */
#ifndef INTERLOCK_WO_SESSION_H
#define INTERLOCK_WO_SESSION_H

#include "wop.h"

#include "../ke/ki.h"
#include "../ke/ownthread.h"

typedef enum _WO_PLACE_STATE {
    WoPlaceUnknown,
    WoPlaceAttaching,
    WoPlaceAttached,
    WoPlaceRefused            /* INTERLOCK_SESSION=private, or the host refuses */
} WO_PLACE_STATE;

typedef struct _WO_WARD {
    ULONG64 Key;              /* 0: none */
    PVOID Watch;              /* NULL: the host gives none */
} WO_WARD, *PWO_WARD;

typedef struct _WO_PLACE {
    volatile ULONG State;     /* WO_PLACE_STATE */
    ULONG ProcessId;          /* which has attached: not a child by vfork */
    WO_VIEW View;
    KI_OWN_THREAD Session;
    WO_WARD Ward[WO_WARDS];   /* of the session thread */
    volatile ULONG Forked;    /* since the fork nobody has opened the view */
    WO_INDEX Prepared;        /* during a fork: for the child */
    ULONG64 Nonce;
    LONG Birth[2];
    BOOLEAN HasBirth;
} WO_PLACE, *PWO_PLACE;

#define WO_PLACES 2           /* WO_SCOPE */
extern WO_PLACE WopPlaces[WO_PLACES];

NTSTATUS WopStartSession(PWO_PLACE Place);
VOID WopProveUse(PWO_PLACE Place);
VOID WopForkThread(PKTHREAD Survivor); /* outside.c: in the child */
VOID WopLeaveWorld(PWO_PLACE Place); /* closes the handles; the rest is for the guards */

#endif
