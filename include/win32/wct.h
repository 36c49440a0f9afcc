#ifndef INTERLOCK_WIN32_INCLUDE_WCT_H
#define INTERLOCK_WIN32_INCLUDE_WCT_H

#include <windows.h>
#include <interlock/win32/extra.h>

#endif
