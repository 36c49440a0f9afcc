#ifndef INTERLOCK_WIN32_NAMESPACEAPI_H
#define INTERLOCK_WIN32_NAMESPACEAPI_H

#include <windows.h>

#endif
