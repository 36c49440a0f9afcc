#ifndef INTERLOCK_OLD_WIN32_WIDE_H
#define INTERLOCK_OLD_WIN32_WIDE_H

#include <interlock/win32/base.h>

#endif
