#ifndef INTERLOCK_WIN32_LIBLOADERAPI_H
#define INTERLOCK_WIN32_LIBLOADERAPI_H

#include <windows.h>

#endif
