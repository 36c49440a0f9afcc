#ifndef INTERLOCK_WIN32_SPELLED_SynchAPI_h
#define INTERLOCK_WIN32_SPELLED_SynchAPI_h

#include <synchapi.h>

#endif
