#ifndef INTERLOCK_OLD_WIN32_MODULE_H
#define INTERLOCK_OLD_WIN32_MODULE_H

#include <interlock/win32/base.h>

#endif
