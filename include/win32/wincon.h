#ifndef INTERLOCK_WIN32_WINCON_H
#define INTERLOCK_WIN32_WINCON_H

#include <windows.h>

#endif
