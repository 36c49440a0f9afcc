#ifndef INTERLOCK_WIN32_WINDEF_H
#define INTERLOCK_WIN32_WINDEF_H

#include <windows.h>

#endif
