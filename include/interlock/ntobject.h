#ifndef INTERLOCK_OLD_NTOBJECT_H
#define INTERLOCK_OLD_NTOBJECT_H

#include <interlock/nt.h>

#endif
