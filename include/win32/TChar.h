#ifndef INTERLOCK_WIN32_SPELLED_TChar_h
#define INTERLOCK_WIN32_SPELLED_TChar_h

#include <tchar.h>

#endif
