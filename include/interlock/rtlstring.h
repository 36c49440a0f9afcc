/* rtlstring.h: counted strings. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_RTLSTRING_H
#define INTERLOCK_RTLSTRING_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/* The string up to its terminating zero, at most as much of it as a UNICODE_STRING can hold; the other form refuses to
   cut it: STATUS_NAME_TOO_LONG. */
NTSYSAPI VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString);
NTSYSAPI NTSTATUS RtlInitUnicodeStringEx(PUNICODE_STRING DestinationString, PCWSTR SourceString);

/* By the numbers of the characters; without regard to case by those of their upper case. Lengths are in characters. */
NTSYSAPI LONG RtlCompareUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive);
NTSYSAPI LONG RtlCompareUnicodeStrings(PCWCH String1, SIZE_T String1Length, PCWCH String2, SIZE_T String2Length,
                                       BOOLEAN CaseInSensitive);
NTSYSAPI BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive);
NTSYSAPI WCHAR RtlUpcaseUnicodeChar(WCHAR SourceCharacter);

INTERLOCK_END

#endif
