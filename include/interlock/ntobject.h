/* ntobject.h: handles, names, directories and symbolic links. Part of nt.h, which includes it. */
#ifndef INTERLOCK_NTOBJECT_H
#define INTERLOCK_NTOBJECT_H

#include <interlock/ps.h>

INTERLOCK_BEGIN

INTERLOCK_END

#endif
