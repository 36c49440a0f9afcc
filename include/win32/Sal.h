#ifndef INTERLOCK_WIN32_SPELLED_Sal_h
#define INTERLOCK_WIN32_SPELLED_Sal_h

#include <sal.h>

#endif
