#ifndef INTERLOCK_OLD_WIN32_TIMER_H
#define INTERLOCK_OLD_WIN32_TIMER_H

#include <interlock/win32/sync.h>

#endif
