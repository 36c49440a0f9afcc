#ifndef INTERLOCK_OLD_WIN32_THREADPOOL_H
#define INTERLOCK_OLD_WIN32_THREADPOOL_H

#include <interlock/win32/thread.h>

#endif
