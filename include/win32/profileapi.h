#ifndef INTERLOCK_WIN32_PROFILEAPI_H
#define INTERLOCK_WIN32_PROFILEAPI_H

#include <windows.h>

#endif
