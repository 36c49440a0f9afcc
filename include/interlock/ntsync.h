/* ntsync.h: events, event pairs, mutants, semaphores, timers, keyed events. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTSYNC_H
#define INTERLOCK_NTSYNC_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

INTERLOCK_END

#endif
