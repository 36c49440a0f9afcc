/* utf8.h: strings of UTF-8 to UTF-16 and back. */
#ifndef INTERLOCK_UTF8_H
#define INTERLOCK_UTF8_H

#include <interlock/ntdef.h>

/*
 * Converts Length units, stores each character that fits into Room units, and returns the units of the whole result,
 * which may exceed Room. Malformed input becomes U+FFFD and sets *Invalid, if Invalid is not NULL.
 */
SIZE_T ExpUtf8ToWide(PCSTR Source, SIZE_T Length, PWSTR Target, SIZE_T Room, PBOOLEAN Invalid);
SIZE_T ExpWideToUtf8(PCWSTR Source, SIZE_T Length, PSTR Target, SIZE_T Room, PBOOLEAN Invalid);

#endif
