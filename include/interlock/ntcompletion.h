#ifndef INTERLOCK_OLD_NTCOMPLETION_H
#define INTERLOCK_OLD_NTCOMPLETION_H

#include <interlock/nt.h>

#endif
