#ifndef INTERLOCK_WIN32_SPELLED_WinDef_h
#define INTERLOCK_WIN32_SPELLED_WinDef_h

#include <windef.h>

#endif
