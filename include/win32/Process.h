#ifndef INTERLOCK_WIN32_SPELLED_Process_h
#define INTERLOCK_WIN32_SPELLED_Process_h

#include <process.h>

#endif
