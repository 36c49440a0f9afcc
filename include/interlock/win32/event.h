#ifndef INTERLOCK_OLD_WIN32_EVENT_H
#define INTERLOCK_OLD_WIN32_EVENT_H

#include <interlock/win32/sync.h>

#endif
