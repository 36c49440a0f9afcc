#ifndef INTERLOCK_WIN32_SPELLED_WinNT_h
#define INTERLOCK_WIN32_SPELLED_WinNT_h

#include <winnt.h>

#endif
