#ifndef INTERLOCK_OLD_BARRIER_H
#define INTERLOCK_OLD_BARRIER_H

#include <interlock/rtl.h>

#endif
