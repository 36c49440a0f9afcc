/* upcase.h: comparing names without regard to case. */
#ifndef INTERLOCK_UPCASE_H
#define INTERLOCK_UPCASE_H

#include <interlock/ntdef.h>

/*
 * The upper case of a UTF-16 unit: the simple mapping of Unicode 14 within the basic multilingual plane. As on Windows,
 * it leaves out mappings that turn a letter into an ASCII one or the micro sign into a Greek letter: distinct names
 * would match.
 */
WCHAR ExpUpcase(WCHAR Character);

/* The lower case: the simple mapping of Unicode 14 where the upper case of the result is the character again. */
WCHAR ExpDowncase(WCHAR Character);

/* <0, 0, >0. Lengths are in characters. */
LONG ExpCompareStrings(PCWCH First, SIZE_T FirstLength, PCWCH Second, SIZE_T SecondLength, BOOLEAN CaseInsensitive);

#endif
