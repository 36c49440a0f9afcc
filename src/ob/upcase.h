/* upcase.h: comparing names without regard to case. */
#ifndef INTERLOCK_UPCASE_H
#define INTERLOCK_UPCASE_H

#include <interlock/ntdef.h>

/*
 * The upper case of one UTF-16 unit: the simple mapping of Unicode 14 within the basic multilingual plane. What would
 * turn a letter into one of ASCII, or the micro sign into a Greek letter, is left out, as on Windows: such a name would
 * match another that no keyboard can tell from it.
 */
WCHAR ObpUpcase(WCHAR Character);

/* <0, 0, >0. Lengths are in characters. */
LONG ObpCompareStrings(PCWCH First, SIZE_T FirstLength, PCWCH Second, SIZE_T SecondLength, BOOLEAN CaseInsensitive);

#endif
