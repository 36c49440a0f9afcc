#ifndef INTERLOCK_WIN32_SPELLED_CrtDbg_h
#define INTERLOCK_WIN32_SPELLED_CrtDbg_h

#include <crtdbg.h>

#endif
