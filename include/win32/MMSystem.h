#ifndef INTERLOCK_WIN32_SPELLED_MMSystem_h
#define INTERLOCK_WIN32_SPELLED_MMSystem_h

#include <mmsystem.h>

#endif
