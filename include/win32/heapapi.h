#ifndef INTERLOCK_WIN32_HEAPAPI_H
#define INTERLOCK_WIN32_HEAPAPI_H

#include <windows.h>

#endif
