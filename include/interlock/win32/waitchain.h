#ifndef INTERLOCK_OLD_WIN32_WAITCHAIN_H
#define INTERLOCK_OLD_WIN32_WAITCHAIN_H

#include <interlock/win32/thread.h>

#endif
