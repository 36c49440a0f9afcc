#ifndef INTERLOCK_WIN32_CONSOLEAPI_H
#define INTERLOCK_WIN32_CONSOLEAPI_H

#include <windows.h>

#endif
