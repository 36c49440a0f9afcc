#ifndef INTERLOCK_WIN32_PROCESSENV_H
#define INTERLOCK_WIN32_PROCESSENV_H

#include <windows.h>

#endif
