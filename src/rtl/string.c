/* string.c: counted strings. They compare as the names of objects do (ex/upcase.h). */
#include <interlock/rtl.h>

#include "../ex/upcase.h"
#include "../hal/hal.h"

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

NTSTATUS RtlDuplicateUnicodeString(ULONG Flags, PCUNICODE_STRING StringIn, PUNICODE_STRING StringOut)
{
    const ULONG Known =
        RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE | RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING;
    USHORT Length = StringIn != NULL ? StringIn->Length : 0;
    ULONG Size = Length + ((Flags & RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE) != 0 ? (ULONG)sizeof(WCHAR) : 0);
    if ((Flags & ~Known) != 0 || Flags == RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING || StringOut == NULL ||
        Length % sizeof(WCHAR) != 0 || (Length != 0 && StringIn->Buffer == NULL)) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Size > UNICODE_STRING_MAX_BYTES) {
        return STATUS_NAME_TOO_LONG;
    }
    if (Length == 0 && (Flags & RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING) == 0) {
        *StringOut = (UNICODE_STRING){0};
        return STATUS_SUCCESS;
    }
    PWSTR Copy = HalAllocate(Size, sizeof(PVOID)); /* zeroed, so terminated */
    if (Copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (Length != 0) {
        memcpy(Copy, StringIn->Buffer, Length);
    }
    *StringOut = (UNICODE_STRING){.Length = Length, .MaximumLength = (USHORT)Size, .Buffer = Copy};
    return STATUS_SUCCESS;
}

VOID RtlFreeUnicodeString(PUNICODE_STRING UnicodeString)
{
    if (UnicodeString->Buffer != NULL) {
        HalFree(UnicodeString->Buffer);
    }
    *UnicodeString = (UNICODE_STRING){0};
}
