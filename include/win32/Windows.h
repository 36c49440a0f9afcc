#ifndef INTERLOCK_WIN32_SPELLED_Windows_h
#define INTERLOCK_WIN32_SPELLED_Windows_h

#include <windows.h>

#endif
