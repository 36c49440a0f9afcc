#ifndef INTERLOCK_OLD_NTALERT_H
#define INTERLOCK_OLD_NTALERT_H

#include <interlock/nt.h>

#endif
