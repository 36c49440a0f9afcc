#ifndef INTERLOCK_OLD_RTLTIME_H
#define INTERLOCK_OLD_RTLTIME_H

#include <interlock/rtl.h>

#endif
