#ifndef INTERLOCK_OLD_WIN32_MEMORY_H
#define INTERLOCK_OLD_WIN32_MEMORY_H

#include <interlock/win32/base.h>

#endif
