#ifndef INTERLOCK_OLD_RTLSTRING_H
#define INTERLOCK_OLD_RTLSTRING_H

#include <interlock/rtl.h>

#endif
