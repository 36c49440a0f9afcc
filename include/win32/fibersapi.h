#ifndef INTERLOCK_WIN32_FIBERSAPI_H
#define INTERLOCK_WIN32_FIBERSAPI_H

#include <windows.h>

#endif
