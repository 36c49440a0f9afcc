#ifndef INTERLOCK_OLD_WIN32_TLS_H
#define INTERLOCK_OLD_WIN32_TLS_H

#include <interlock/win32/thread.h>

#endif
