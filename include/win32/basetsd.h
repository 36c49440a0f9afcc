#ifndef INTERLOCK_WIN32_BASETSD_H
#define INTERLOCK_WIN32_BASETSD_H

#include <windows.h>

#endif
