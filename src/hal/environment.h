/* environment.h: the program's variables and files. */
#ifndef INTERLOCK_HAL_ENVIRONMENT_H
#define INTERLOCK_HAL_ENVIRONMENT_H

#include "hal.h"

#define HAL_NO_VARIABLE ((SIZE_T)-1)

/* The variables of the host's environment, one thread at a time: the C library does not synchronize setenv and
   getenv. */
/* Returns the length of the value, which is copied if it fits with its terminator; HAL_NO_VARIABLE: there is none. */
SIZE_T HalQueryVariable(PCSTR Name, PSTR Buffer, SIZE_T Size);
BOOLEAN HalSetVariable(PCSTR Name, PCSTR Value); /* Value NULL: removes it. FALSE: no memory */
PSTR HalCopyVariables(PSIZE_T Size);             /* a block that an empty string ends, for HalFree; NULL: no memory */

SIZE_T HalQueryModulePath(HAL_MODULE Module, PSTR Buffer, SIZE_T Size); /* the length; 0: unknown, or too long */

#endif
