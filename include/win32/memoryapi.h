#ifndef INTERLOCK_WIN32_MEMORYAPI_H
#define INTERLOCK_WIN32_MEMORYAPI_H

#include <windows.h>

#endif
