#ifndef INTERLOCK_WIN32_SPELLED_Mmsystem_h
#define INTERLOCK_WIN32_SPELLED_Mmsystem_h

#include <mmsystem.h>

#endif
