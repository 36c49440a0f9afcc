#ifndef INTERLOCK_WIN32_SPELLED_Intrin_h
#define INTERLOCK_WIN32_SPELLED_Intrin_h

#include <intrin.h>

#endif
