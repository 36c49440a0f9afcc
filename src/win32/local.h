/* local.h: what thread-local and fiber-local storage share. */
#ifndef INTERLOCK_WIN32_LOCAL_H
#define INTERLOCK_WIN32_LOCAL_H

#include "base.h"

#include "../ps/psp.h"

/* tls.c */
VOID BasepLockStorage(PKI_LOCK Lock);        /* no longer than a walk over the threads takes; a fork finds it free */
VOID BasepUnlockStorage(PKI_LOCK Lock);
VOID BasepWatchThreadExits(VOID);            /* before the first index is given away */

/* fls.c */
VOID BasepEndFls(PETHREAD Thread, BOOLEAN WasTerminated);

#endif
