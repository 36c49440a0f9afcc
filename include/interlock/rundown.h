#ifndef INTERLOCK_OLD_RUNDOWN_H
#define INTERLOCK_OLD_RUNDOWN_H

#include <interlock/ex.h>

#endif
