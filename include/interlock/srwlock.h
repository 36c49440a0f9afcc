#ifndef INTERLOCK_OLD_SRWLOCK_H
#define INTERLOCK_OLD_SRWLOCK_H

#include <interlock/rtl.h>

#endif
