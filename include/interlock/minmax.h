/* minmax.h: min, max and _countof, for sources that expect them of windows.h or wdm.h. */
#ifndef INTERLOCK_MINMAX_H
#define INTERLOCK_MINMAX_H

#include <interlock/windef.h>

/* Not in C++, where they break the standard library. */
#if !defined(__cplusplus) && !defined(NOMINMAX)
#ifndef min
#define min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#endif
#define __max(a, b) (((a) > (b)) ? (a) : (b))
#define __min(a, b) (((a) < (b)) ? (a) : (b))

#ifndef _countof
#define _countof(Array) RTL_NUMBER_OF(Array)
#endif

#endif
