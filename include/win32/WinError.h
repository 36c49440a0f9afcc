#ifndef INTERLOCK_WIN32_SPELLED_WinError_h
#define INTERLOCK_WIN32_SPELLED_WinError_h

#include <winerror.h>

#endif
