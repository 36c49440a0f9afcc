#ifndef INTERLOCK_OLD_WIN32_COMPLETION_H
#define INTERLOCK_OLD_WIN32_COMPLETION_H

#include <interlock/win32/sync.h>

#endif
