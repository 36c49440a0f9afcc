#ifndef INTERLOCK_WDK_SPECSTRINGS_H
#define INTERLOCK_WDK_SPECSTRINGS_H

#include <interlock/annotations.h>
#include <interlock/win32/sal1.h>

#endif
