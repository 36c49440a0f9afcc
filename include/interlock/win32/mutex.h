#ifndef INTERLOCK_OLD_WIN32_MUTEX_H
#define INTERLOCK_OLD_WIN32_MUTEX_H

#include <interlock/win32/sync.h>

#endif
