#ifndef INTERLOCK_WIN32_SDKDDKVER_H
#define INTERLOCK_WIN32_SDKDDKVER_H

#include <windows.h>

#endif
