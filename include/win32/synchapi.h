#ifndef INTERLOCK_WIN32_SYNCHAPI_H
#define INTERLOCK_WIN32_SYNCHAPI_H

#include <windows.h>

#endif
