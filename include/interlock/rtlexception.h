#ifndef INTERLOCK_OLD_RTLEXCEPTION_H
#define INTERLOCK_OLD_RTLEXCEPTION_H

#include <interlock/rtl.h>

#endif
