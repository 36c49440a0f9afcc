#ifndef INTERLOCK_WIN32_SPELLED_Strsafe_h
#define INTERLOCK_WIN32_SPELLED_Strsafe_h

#include <strsafe.h>

#endif
