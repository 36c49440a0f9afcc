#ifndef INTERLOCK_OLD_FASTMUTEX_H
#define INTERLOCK_OLD_FASTMUTEX_H

#include <interlock/ex.h>

#endif
