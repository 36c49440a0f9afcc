#ifndef INTERLOCK_WIN32_INCLUDE_PROCESS_H
#define INTERLOCK_WIN32_INCLUDE_PROCESS_H

#include <interlock/win32/extra.h>

#endif
