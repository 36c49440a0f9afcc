#ifndef INTERLOCK_WIN32_SPELLED_WinApiFamily_h
#define INTERLOCK_WIN32_SPELLED_WinApiFamily_h

#include <winapifamily.h>

#endif
