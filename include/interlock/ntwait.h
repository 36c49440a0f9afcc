/* ntwait.h: waiting for objects by handle. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTWAIT_H
#define INTERLOCK_NTWAIT_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

INTERLOCK_END

#endif
