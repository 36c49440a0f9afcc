#ifndef INTERLOCK_WIN32_WCT_H
#define INTERLOCK_WIN32_WCT_H

#include <windows.h>

#endif
