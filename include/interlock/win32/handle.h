#ifndef INTERLOCK_OLD_WIN32_HANDLE_H
#define INTERLOCK_OLD_WIN32_HANDLE_H

#include <interlock/win32/base.h>

#endif
