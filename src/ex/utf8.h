/* utf8.h: UTF-8 and UTF-16. */
#ifndef INTERLOCK_UTF8_H
#define INTERLOCK_UTF8_H

#include <interlock/ntdef.h>

/*
 * Converts Length units of Source and returns how many the whole result has; stores the characters that fit into Room.
 * Malformed input (a byte that begins no character, a truncated or overlong sequence, a surrogate in UTF-8, half of a
 * surrogate pair) becomes U+FFFD, in UTF-8 one for each maximal piece that could have begun a character, and sets
 * *Invalid, unless that is NULL. At any IRQL.
 */
SIZE_T ExpUtf8ToWide(PCCH Source, SIZE_T Length, PWCH Target, SIZE_T Room, PBOOLEAN Invalid);
SIZE_T ExpWideToUtf8(PCWCH Source, SIZE_T Length, PCHAR Target, SIZE_T Room, PBOOLEAN Invalid);

#endif
