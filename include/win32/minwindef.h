#ifndef INTERLOCK_WIN32_MINWINDEF_H
#define INTERLOCK_WIN32_MINWINDEF_H

#include <windows.h>

#endif
