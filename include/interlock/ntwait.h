#ifndef INTERLOCK_OLD_NTWAIT_H
#define INTERLOCK_OLD_NTWAIT_H

#include <interlock/nt.h>

#endif
