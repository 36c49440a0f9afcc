#ifndef INTERLOCK_WIN32_WINBASE_H
#define INTERLOCK_WIN32_WINBASE_H

#include <windows.h>

#endif
