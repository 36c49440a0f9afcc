#ifndef INTERLOCK_OLD_FASTREF_H
#define INTERLOCK_OLD_FASTREF_H

#include <interlock/ex.h>

#endif
