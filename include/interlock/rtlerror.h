#ifndef INTERLOCK_OLD_RTLERROR_H
#define INTERLOCK_OLD_RTLERROR_H

#include <interlock/rtl.h>

#endif
