#ifndef INTERLOCK_OLD_WIN32_LOCK_H
#define INTERLOCK_OLD_WIN32_LOCK_H

#include <interlock/win32/sync.h>

#endif
