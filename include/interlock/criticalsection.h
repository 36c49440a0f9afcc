#ifndef INTERLOCK_OLD_CRITICALSECTION_H
#define INTERLOCK_OLD_CRITICALSECTION_H

#include <interlock/rtl.h>

#endif
