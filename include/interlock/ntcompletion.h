/* ntcompletion.h: completion ports and wait completion packets. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTCOMPLETION_H
#define INTERLOCK_NTCOMPLETION_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

INTERLOCK_END

#endif
