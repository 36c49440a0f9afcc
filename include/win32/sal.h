#ifndef INTERLOCK_WIN32_INCLUDE_SAL_H
#define INTERLOCK_WIN32_INCLUDE_SAL_H

#define INTERLOCK_OLD_ANNOTATIONS
#include <interlock/annotations.h>

#endif
