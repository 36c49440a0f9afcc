#ifndef INTERLOCK_WDK_CONCURRENCYSAL_H
#define INTERLOCK_WDK_CONCURRENCYSAL_H

#define INTERLOCK_OLD_ANNOTATIONS
#include <interlock/annotations.h>

#endif
