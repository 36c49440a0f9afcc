#ifndef INTERLOCK_OLD_NTTHREAD_H
#define INTERLOCK_OLD_NTTHREAD_H

#include <interlock/nt.h>

#endif
