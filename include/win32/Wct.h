#ifndef INTERLOCK_WIN32_SPELLED_Wct_h
#define INTERLOCK_WIN32_SPELLED_Wct_h

#include <wct.h>

#endif
