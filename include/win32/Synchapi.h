#ifndef INTERLOCK_WIN32_SPELLED_Synchapi_h
#define INTERLOCK_WIN32_SPELLED_Synchapi_h

#include <synchapi.h>

#endif
