#ifndef INTERLOCK_OLD_WIN32_STRING_H
#define INTERLOCK_OLD_WIN32_STRING_H

#include <interlock/win32/base.h>

#endif
