#ifndef INTERLOCK_WIN32_SPELLED_WinBase_h
#define INTERLOCK_WIN32_SPELLED_WinBase_h

#include <winbase.h>

#endif
