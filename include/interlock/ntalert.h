/* ntalert.h: alerts by thread id. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTALERT_H
#define INTERLOCK_NTALERT_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

INTERLOCK_END

#endif
