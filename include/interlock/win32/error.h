#ifndef INTERLOCK_OLD_WIN32_ERROR_H
#define INTERLOCK_OLD_WIN32_ERROR_H

#include <interlock/win32/base.h>

#endif
