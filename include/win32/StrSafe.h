#ifndef INTERLOCK_WIN32_SPELLED_StrSafe_h
#define INTERLOCK_WIN32_SPELLED_StrSafe_h

#include <strsafe.h>

#endif
