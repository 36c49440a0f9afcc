#ifndef INTERLOCK_OLD_NTPROCESS_H
#define INTERLOCK_OLD_NTPROCESS_H

#include <interlock/nt.h>

#endif
