#ifndef INTERLOCK_WIN32_MMSYSTEM_H
#define INTERLOCK_WIN32_MMSYSTEM_H

#include <windows.h>

#endif
