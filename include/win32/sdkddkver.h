#ifndef INTERLOCK_WIN32_INCLUDE_SDKDDKVER_H
#define INTERLOCK_WIN32_INCLUDE_SDKDDKVER_H

#include <interlock/win32/version.h>

#endif
