#ifndef INTERLOCK_WIN32_MINWINBASE_H
#define INTERLOCK_WIN32_MINWINBASE_H

#include <windows.h>

#endif
