#ifndef INTERLOCK_OLD_SLIST_H
#define INTERLOCK_OLD_SLIST_H

#include <interlock/interlocked.h>

#endif
