#ifndef INTERLOCK_WDK_SPECSTRINGS_H
#define INTERLOCK_WDK_SPECSTRINGS_H

#define INTERLOCK_OLD_ANNOTATIONS
#include <interlock/annotations.h>

#endif
