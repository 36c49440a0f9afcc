/*
 * stdio.h of the host, and what Microsoft's adds. `interlock cc` leaves out the checked forms of _FORTIFY_SOURCE, inline functions
 * that call the host's own printf, and the attributes by which compilers check formats against the host's.
 */
#ifndef INTERLOCK_WIN32_STDIO_H
#define INTERLOCK_WIN32_STDIO_H

#pragma GCC system_header /* include_next */

#ifdef __INTERLOCK_CC__
#include <features.h>
#pragma push_macro("__USE_FORTIFY_LEVEL")
#pragma push_macro("__format__")
#undef __USE_FORTIFY_LEVEL
#define __USE_FORTIFY_LEVEL 0
#undef __format__
#define __format__(Kind, Format, First) __unused__
#include_next <stdio.h>
#pragma pop_macro("__format__")
#pragma pop_macro("__USE_FORTIFY_LEVEL")

#include <corecrt.h>
#else
#include_next <stdio.h>
#endif

#endif
