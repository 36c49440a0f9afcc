/*
 * linkage.h: how the library's functions are declared, and the 16-bit character. Below windef.h: the C library's headers under
 * `interlock cc` include it, and they must not define BOOL, DWORD and their like.
 */
#ifndef INTERLOCK_LINKAGE_H
#define INTERLOCK_LINKAGE_H

#include <stddef.h>

/* The prefix of the library's symbols. A build with one (docs/building.md) installs a copy of this file in which each exported
   function and variable gets its name for the linker here. The names in sources stay as they are. */
#define INTERLOCK_SYMBOL_PREFIX ""

/* Every public header puts its prototypes between INTERLOCK_BEGIN and INTERLOCK_END. */
#ifdef __cplusplus
#define INTERLOCK_BEGIN extern "C" {
#define INTERLOCK_END   }
#else
#define INTERLOCK_BEGIN
#define INTERLOCK_END
#endif

#define INTERLOCK_API __attribute__((visibility("default")))
#ifndef WINBASEAPI
#define WINBASEAPI INTERLOCK_API
#endif
#define INTERLOCK_INLINE static __inline__ /* C89 has no inline */

/* UTF-16 code units: char16_t, or wchar_t with -fshort-wchar. */
#if __SIZEOF_WCHAR_T__ == 2
typedef wchar_t WCHAR;
#elif defined(__cplusplus)
typedef char16_t WCHAR;
#else
typedef __CHAR16_TYPE__ WCHAR;
#endif

#endif
