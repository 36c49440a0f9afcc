#ifndef INTERLOCK_WIN32_WINNT_H
#define INTERLOCK_WIN32_WINNT_H

#include <windows.h>

#endif
