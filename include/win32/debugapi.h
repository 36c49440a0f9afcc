#ifndef INTERLOCK_WIN32_DEBUGAPI_H
#define INTERLOCK_WIN32_DEBUGAPI_H

#include <windows.h>

#endif
