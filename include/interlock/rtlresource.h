#ifndef INTERLOCK_OLD_RTLRESOURCE_H
#define INTERLOCK_OLD_RTLRESOURCE_H

#include <interlock/rtl.h>

#endif
