/* stdlib.h of the host; under `interlock cc` with what Microsoft's C library has. */
#ifndef INTERLOCK_WIN32_STDLIB_H
#define INTERLOCK_WIN32_STDLIB_H

#pragma GCC system_header /* include_next */

#include_next <stdlib.h>

#ifdef __INTERLOCK_CC__
#include <limits.h> /* as Microsoft's does */

#include <corecrt.h>
#endif

#endif
