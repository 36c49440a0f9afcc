/* string.c: counted strings. They compare as the names of objects do (ex/upcase.h). */
#include <interlock/rtl.h>

#include "../ex/upcase.h"

#define RTLP_LONGEST_STRING (UNICODE_STRING_MAX_CHARS - 1) /* with its terminating zero */

static VOID RtlpSetString(PUNICODE_STRING Destination, PCWSTR Source, SIZE_T Length)
{
    Destination->Length = (USHORT)(Length * sizeof(WCHAR));
    Destination->MaximumLength = (USHORT)((Length + 1) * sizeof(WCHAR));
    Destination->Buffer = (PWSTR)Source;
}

NTSTATUS RtlInitUnicodeStringEx(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    SIZE_T Length = 0;
    if (SourceString == NULL) {
        *DestinationString = (UNICODE_STRING){0};
        return STATUS_SUCCESS;
    }
    while (SourceString[Length] != 0) {
        Length++;
    }
    if (Length > RTLP_LONGEST_STRING) {
        return STATUS_NAME_TOO_LONG;
    }
    RtlpSetString(DestinationString, SourceString, Length);
    return STATUS_SUCCESS;
}

VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    if (!NT_SUCCESS(RtlInitUnicodeStringEx(DestinationString, SourceString))) {
        RtlpSetString(DestinationString, SourceString, RTLP_LONGEST_STRING);
    }
}

LONG RtlCompareUnicodeStrings(PCWCH String1, SIZE_T String1Length, PCWCH String2, SIZE_T String2Length,
                              BOOLEAN CaseInSensitive)
{
    return ExpCompareStrings(String1, String1Length, String2, String2Length, CaseInSensitive);
}

LONG RtlCompareUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive)
{
    return ExpCompareStrings(String1->Buffer, String1->Length / sizeof(WCHAR), String2->Buffer,
                             String2->Length / sizeof(WCHAR), CaseInSensitive);
}

BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive)
{
    return String1->Length == String2->Length && RtlCompareUnicodeString(String1, String2, CaseInSensitive) == 0;
}

WCHAR RtlUpcaseUnicodeChar(WCHAR SourceCharacter)
{
    return ExpUpcase(SourceCharacter);
}
