#ifndef INTERLOCK_WIN32_SYSINFOAPI_H
#define INTERLOCK_WIN32_SYSINFOAPI_H

#include <windows.h>

#endif
