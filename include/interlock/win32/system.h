#ifndef INTERLOCK_OLD_WIN32_SYSTEM_H
#define INTERLOCK_OLD_WIN32_SYSTEM_H

#include <interlock/win32/base.h>

#endif
