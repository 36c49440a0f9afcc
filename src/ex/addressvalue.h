/* addressvalue.h: the values that address-based pushlocks and address waits wait on. */
#ifndef INTERLOCK_ADDRESSVALUE_H
#define INTERLOCK_ADDRESSVALUE_H

#include <interlock/ntdef.h>

BOOLEAN ExpIsValueSize(SIZE_T Size); /* 1, 2, 4 or 8 */

/* For a Size that is one. Whoever changes the value is to wake afterwards. */
BOOLEAN ExpIsSameValue(const volatile VOID *Address, const VOID *CompareAddress, SIZE_T Size);

#endif
