#ifndef INTERLOCK_WIN32_SPELLED_TCHAR_h
#define INTERLOCK_WIN32_SPELLED_TCHAR_h

#include <tchar.h>

#endif
