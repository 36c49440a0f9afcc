#ifndef INTERLOCK_WIN32_SPELLED_WinTernl_h
#define INTERLOCK_WIN32_SPELLED_WinTernl_h

#include <winternl.h>

#endif
