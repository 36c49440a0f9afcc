#ifndef INTERLOCK_OLD_WIN32_WAIT_H
#define INTERLOCK_OLD_WIN32_WAIT_H

#include <interlock/win32/sync.h>

#endif
