#ifndef INTERLOCK_OLD_PUSHLOCK_H
#define INTERLOCK_OLD_PUSHLOCK_H

#include <interlock/ex.h>

#endif
