#ifndef INTERLOCK_WIN32_INCLUDE_SAL_H
#define INTERLOCK_WIN32_INCLUDE_SAL_H

#include <interlock/annotations.h>
#include <interlock/win32/sal1.h>

#endif
