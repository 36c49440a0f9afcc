#ifndef INTERLOCK_WIN32_TIMEZONEAPI_H
#define INTERLOCK_WIN32_TIMEZONEAPI_H

#include <windows.h>

#endif
