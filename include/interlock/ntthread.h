/* ntthread.h: threads. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTTHREAD_H
#define INTERLOCK_NTTHREAD_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

INTERLOCK_END

#endif
