#ifndef INTERLOCK_OLD_WIN32_PROCESS_H
#define INTERLOCK_OLD_WIN32_PROCESS_H

#include <interlock/win32/thread.h>

#endif
