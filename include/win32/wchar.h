/* wchar.h of the host; under `interlock cc` with what Microsoft's C library has, and in C with functions for 16-bit characters. */
#ifndef INTERLOCK_WIN32_WCHAR_H
#define INTERLOCK_WIN32_WCHAR_H

#pragma GCC system_header /* include_next */

#include_next <wchar.h>

#ifdef __INTERLOCK_CC__
#include <corecrt.h>
#ifndef __cplusplus /* there <cwchar> would undefine the macros again; windows.h has them */
#define INTERLOCK_WIDE_NAMES
#include <interlock/widestring.h>
#endif
#endif

#endif
