#ifndef INTERLOCK_OLD_WIN32_SEMAPHORE_H
#define INTERLOCK_OLD_WIN32_SEMAPHORE_H

#include <interlock/win32/sync.h>

#endif
