#ifndef INTERLOCK_WIN32_FILEAPI_H
#define INTERLOCK_WIN32_FILEAPI_H

#include <windows.h>

#endif
