/*
 * format.h: formatted text with NT's conversions, narrow (UTF-8) and wide (UTF-16). The one formatter of the library:
 * DbgPrint, the Rtl string functions and the wide printf of Win32 use it. Allocates nothing, takes no lock; at any
 * IRQL.
 *
 * In addition to those of C:
 *   %s %c        a string or character of the format's own kind; %S %C the other kind
 *   %hs %hc      narrow; %ls %ws %lc %wc wide
 *   %Z %hZ       an ANSI_STRING; %wZ %lZ a UNICODE_STRING. Both are counted; the precision limits them further
 *   %I64d %I32d  64 and 32 bits; %Id %Iu %Ix pointer size, as z, t
 *   %ld          32 bits, as Windows has it
 *   %p           16 uppercase hexadecimal digits
 * NULL for a string, or a counted string without a buffer, is (null). %n is not supported.
 */
#ifndef INTERLOCK_FORMAT_H
#define INTERLOCK_FORMAT_H

#include <stdarg.h>

#include <interlock/ntdef.h>

/* A character outside a conversion is copied. */
#define EXP_FORMAT_NT 0x0
/* It is a failure. */
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

#endif
