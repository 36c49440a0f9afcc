/* string.h of the host; under `interlock cc` with what Microsoft's C library has. */
#ifndef INTERLOCK_WIN32_STRING_H
#define INTERLOCK_WIN32_STRING_H

#pragma GCC system_header /* include_next */

#include_next <string.h>

#ifdef __INTERLOCK_CC__
#include <corecrt.h>
#endif

#endif
