#ifndef INTERLOCK_WIN32_HANDLEAPI_H
#define INTERLOCK_WIN32_HANDLEAPI_H

#include <windows.h>

#endif
