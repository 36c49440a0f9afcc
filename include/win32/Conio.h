#ifndef INTERLOCK_WIN32_SPELLED_Conio_h
#define INTERLOCK_WIN32_SPELLED_Conio_h

#include <conio.h>

#endif
