#ifndef INTERLOCK_WIN32_INCLUDE_WINSDKVER_H
#define INTERLOCK_WIN32_INCLUDE_WINSDKVER_H

#include <interlock/win32/version.h>

#endif
