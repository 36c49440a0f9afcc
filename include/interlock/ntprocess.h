/* ntprocess.h: processes. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTPROCESS_H
#define INTERLOCK_NTPROCESS_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

INTERLOCK_END

#endif
