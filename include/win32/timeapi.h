#ifndef INTERLOCK_WIN32_TIMEAPI_H
#define INTERLOCK_WIN32_TIMEAPI_H

#include <windows.h>

#endif
