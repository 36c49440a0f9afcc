#ifndef INTERLOCK_OLD_WIN32_TIME_H
#define INTERLOCK_OLD_WIN32_TIME_H

#include <interlock/win32/base.h>

#endif
