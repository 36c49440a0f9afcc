/*
 * text.h: narrow (UTF-8) and wide (UTF-16) text: formatting, converting one to the other, upper and lower case. Nothing
 * allocates or takes a lock; at any IRQL.
 *
 * This is the one formatter of the library: DbgPrint, the Rtl string functions and the wide printf of Win32 use it. In
 * addition to the conversions of C:
 *   %s %c        a string or character of the format's own kind; %S %C the other kind
 *   %hs %hc      narrow; %ls %ws %lc %wc wide
 *   %Z %hZ       an ANSI_STRING; %wZ %lZ a UNICODE_STRING. Both are counted; the precision limits them further
 *   %I64d %I32d  64 and 32 bits; %Id %Iu %Ix pointer size, as z, t
 *   %ld          32 bits, as Windows has it
 *   %p           16 uppercase hexadecimal digits
 * NULL for a string, or a counted string without a buffer, is (null). %n is not supported.
 */
#ifndef INTERLOCK_TEXT_H
#define INTERLOCK_TEXT_H

#include <interlock/ntdef.h>

#include <stdarg.h>

/* An unknown conversion: its letter is copied. */
#define EXP_FORMAT_NT 0x0
/* An unknown conversion is a failure. */
#define EXP_FORMAT_STRICT 0x1

/* Where text goes: it is counted in full, in units of its kind, and stored as far as there is room. */
typedef struct _EXP_OUTPUT {
    PVOID Buffer; /* CHAR or WCHAR */
    SIZE_T Room;
    SIZE_T Length;
    BOOLEAN Wide;
    BOOLEAN Failed;
    BOOLEAN (*Write)(PVOID Context, PCCH Text, SIZE_T Length); /* or it goes here, in UTF-8; FALSE is a failure */
    PVOID Context;
} EXP_OUTPUT, *PEXP_OUTPUT;

/* Adds formatted text to the output. Arguments are indeterminate afterwards, as with vsnprintf. */
VOID ExpFormatNarrow(PEXP_OUTPUT Output, ULONG Flags, PCSTR Format, va_list Arguments);
VOID ExpFormatWide(PEXP_OUTPUT Output, ULONG Flags, PCWSTR Format, va_list Arguments);

/* Add text as it is. */
VOID ExpPutNarrow(PEXP_OUTPUT Output, PCCH Text, SIZE_T Length);
VOID ExpPutWide(PEXP_OUTPUT Output, PCWCH Text, SIZE_T Length);

/* NT's formats to a string: stores what fits, and a terminating zero unless Room is 0. Returns the length of the whole
   text without the zero, so that a result >= Room is truncated; MAXSIZE_T if a number is too long to be formatted. */
SIZE_T ExpFormatNarrowString(PSTR Buffer, SIZE_T Room, PCSTR Format, va_list Arguments);
SIZE_T ExpFormatWideString(PWSTR Buffer, SIZE_T Room, PCWSTR Format, va_list Arguments);

/* UTF-8 and UTF-16. */

/*
 * Converts Length units of Source and returns how many the whole result has; stores the characters that fit into Room.
 * Malformed input becomes U+FFFD and sets *Invalid, unless that is NULL: a byte that begins no character, a truncated or
 * overlong sequence, a surrogate in UTF-8, half of a surrogate pair. In UTF-8 each maximal piece that could have begun a
 * character becomes one U+FFFD.
 */
SIZE_T ExpUtf8ToWide(PCCH Source, SIZE_T Length, PWCH Target, SIZE_T Room, PBOOLEAN Invalid);
SIZE_T ExpWideToUtf8(PCWCH Source, SIZE_T Length, PCHAR Target, SIZE_T Room, PBOOLEAN Invalid);

/* Comparing names without regard to case. */

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
