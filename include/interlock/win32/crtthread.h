#ifndef INTERLOCK_OLD_WIN32_CRTTHREAD_H
#define INTERLOCK_OLD_WIN32_CRTTHREAD_H

#include <interlock/win32/thread.h>

#endif
