#ifndef INTERLOCK_OLD_RESOURCE_H
#define INTERLOCK_OLD_RESOURCE_H

#include <interlock/ex.h>

#endif
