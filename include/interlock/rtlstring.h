/*
 * rtlstring.h: counted strings. UNICODE_STRING has 16-bit characters, STRING (ANSI_STRING, OEM_STRING, UTF8_STRING) bytes;
 * lengths are in bytes. The ANSI and OEM code pages are UTF-8.
 *
 * Functions that allocate take paged pool with the tag Strg, so ExFreePool frees such a buffer too, and the free functions
 * here free a buffer that a driver took from pool. All of them can be called at any IRQL if they allocate nothing and the
 * memory of the strings is not pageable; allocating needs APC_LEVEL or below.
 */
#ifndef INTERLOCK_RTLSTRING_H
#define INTERLOCK_RTLSTRING_H

#include <stdarg.h>

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/* Describing strings. Sets up the structure; the characters stay where they are. */

/* Describes a terminated string, truncated to 32766 characters; NULL is the empty string. The Ex form returns
   STATUS_NAME_TOO_LONG instead of truncating. Since NT 3.1, XP. */
NTSYSAPI VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString);
NTSYSAPI NTSTATUS RtlInitUnicodeStringEx(PUNICODE_STRING DestinationString, PCWSTR SourceString);

/* Describes a terminated string of bytes, truncated to 65534; NULL is the empty string. The Ex forms return
   STATUS_NAME_TOO_LONG instead of truncating. Since NT 3.1, 10, NT 3.1, XP, 10, 10. */
NTSYSAPI VOID RtlInitString(PSTRING DestinationString, PCSZ SourceString);
NTSYSAPI NTSTATUS RtlInitStringEx(PSTRING DestinationString, PCSZ SourceString);
NTSYSAPI VOID RtlInitAnsiString(PANSI_STRING DestinationString, PCSZ SourceString);
NTSYSAPI NTSTATUS RtlInitAnsiStringEx(PANSI_STRING DestinationString, PCSZ SourceString);
NTSYSAPI VOID RtlInitUTF8String(PUTF8_STRING DestinationString, PCSZ SourceString);
NTSYSAPI NTSTATUS RtlInitUTF8StringEx(PUTF8_STRING DestinationString, PCSZ SourceString);

/* Describes an empty string in a buffer of this many bytes. Since 2000. */
FORCEINLINE VOID RtlInitEmptyUnicodeString(PUNICODE_STRING UnicodeString, PWCHAR Buffer, USHORT BufferSize)
{
    UnicodeString->Length = 0;
    UnicodeString->MaximumLength = BufferSize;
    UnicodeString->Buffer = Buffer;
}
FORCEINLINE VOID RtlInitEmptyAnsiString(PANSI_STRING AnsiString, PCHAR Buffer, USHORT BufferSize)
{
    AnsiString->Length = 0;
    AnsiString->MaximumLength = BufferSize;
    AnsiString->Buffer = Buffer;
}

/* Returns STATUS_INVALID_PARAMETER if a string is malformed: an odd length, a length above the maximum, a length without a
   buffer. NULL is valid. Flags must be 0. Since XP. */
NTSYSAPI NTSTATUS RtlValidateUnicodeString(ULONG Flags, PCUNICODE_STRING String);

/* Copying strings. */

/* Copies as many characters as fit; RtlCopyUnicodeString also a terminator, if there is room. A NULL source empties the
   destination. Since NT 3.1. */
NTSYSAPI VOID RtlCopyUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString);
NTSYSAPI VOID RtlCopyString(PSTRING DestinationString, const STRING *SourceString);

/* Appends a string; 16-bit characters with a terminator, if there is room for it. Returns STATUS_BUFFER_TOO_SMALL, and appends
   nothing, if the string does not fit. A NULL source is empty. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlAppendUnicodeStringToString(PUNICODE_STRING Destination, PCUNICODE_STRING Source);
NTSYSAPI NTSTATUS RtlAppendUnicodeToString(PUNICODE_STRING Destination, PCWSTR Source);
NTSYSAPI NTSTATUS RtlAppendStringToString(PSTRING Destination, const STRING *Source);
NTSYSAPI NTSTATUS RtlAppendAsciizToString(PSTRING Destination, PCSZ Source);

/* Allocates a terminated copy. Returns FALSE if memory is exhausted or the string is too long. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlCreateUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString);

#define RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE 0x00000001
#define RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING 0x00000002

/* Allocates a copy of a string, terminated if asked; an empty one without memory, unless asked. Returns STATUS_NO_MEMORY,
   STATUS_NAME_TOO_LONG or STATUS_INVALID_PARAMETER on failure. Since XP. */
NTSYSAPI NTSTATUS RtlDuplicateUnicodeString(ULONG Flags, PCUNICODE_STRING StringIn, PUNICODE_STRING StringOut);

/* Frees the buffer of a string and makes it empty. Since NT 3.1, NT 3.1, NT 3.1, 10. */
NTSYSAPI VOID RtlFreeUnicodeString(PUNICODE_STRING UnicodeString);
NTSYSAPI VOID RtlFreeAnsiString(PANSI_STRING AnsiString);
NTSYSAPI VOID RtlFreeOemString(POEM_STRING OemString);
NTSYSAPI VOID RtlFreeUTF8String(PUTF8_STRING Utf8String);

/* Comparing strings. Without regard to case, the upper case of the characters is compared; in strings of bytes, only ASCII
   letters have one. */

/* Compares two strings by the values of their characters, or of their upper case. Returns a negative, zero or positive
   number. Lengths are in characters. Since NT 3.1, Vista. */
NTSYSAPI LONG RtlCompareUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive);
NTSYSAPI LONG RtlCompareUnicodeStrings(PCWCH String1, SIZE_T String1Length, PCWCH String2, SIZE_T String2Length,
                                       BOOLEAN CaseInSensitive);

/* Compares two strings of bytes, as unsigned values. Returns a negative, zero or positive number. Since NT 3.1. */
NTSYSAPI LONG RtlCompareString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive);

/* Returns TRUE if the strings are equal, ignoring case if asked. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlEqualUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive);
NTSYSAPI BOOLEAN RtlEqualString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive);

/* Returns TRUE if the first string begins the second one, ignoring case if asked. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlPrefixUnicodeString(PCUNICODE_STRING String1, PCUNICODE_STRING String2, BOOLEAN CaseInSensitive);
NTSYSAPI BOOLEAN RtlPrefixString(const STRING *String1, const STRING *String2, BOOLEAN CaseInSensitive);

#define HASH_STRING_ALGORITHM_DEFAULT 0
#define HASH_STRING_ALGORITHM_X65599 1
#define HASH_STRING_ALGORITHM_INVALID 0xffffffff

/* Stores a hash of a string: each step multiplies by 65599 and adds a character. Returns STATUS_INVALID_PARAMETER for a NULL
   pointer and an unknown algorithm. Since XP. */
NTSYSAPI NTSTATUS RtlHashUnicodeString(PCUNICODE_STRING String, BOOLEAN CaseInSensitive, ULONG HashAlgorithm,
                                       PULONG HashValue);

/* Upper and lower case. */

/* Returns the upper or lower case of a character. Differs: by Unicode's tables for the basic multilingual plane. Since NT
   3.1, NT 3.5. */
NTSYSAPI WCHAR RtlUpcaseUnicodeChar(WCHAR SourceCharacter);
NTSYSAPI WCHAR RtlDowncaseUnicodeChar(WCHAR SourceCharacter);

/* Stores the upper or lower case of a string, in a buffer that is allocated if asked; there is no terminator. Source and
   destination may be the same. Returns STATUS_BUFFER_OVERFLOW if the destination is too small, STATUS_NO_MEMORY. Since NT
   3.1. */
NTSYSAPI NTSTATUS RtlUpcaseUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,
                                         BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlDowncaseUnicodeString(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,
                                           BOOLEAN AllocateDestinationString);

/* Returns the upper case of an ASCII letter, other bytes as they are. Since NT 3.1. */
NTSYSAPI CHAR RtlUpperChar(CHAR Character);

/* Copies as many bytes as fit, ASCII letters in upper case. Since NT 3.1. */
NTSYSAPI VOID RtlUpperString(PSTRING DestinationString, const STRING *SourceString);

/* Numbers. A base is 2, 8, 10 or 16, or 0 for the default; others are STATUS_INVALID_PARAMETER. */

/* Stores the digits of a number, in upper case, terminated. Base 0 is 10. Returns STATUS_BUFFER_OVERFLOW if they do not fit;
   Length is then the length that they need. Since NT 3.1, 2000. */
NTSYSAPI NTSTATUS RtlIntegerToUnicodeString(ULONG Value, ULONG Base, PUNICODE_STRING String);
NTSYSAPI NTSTATUS RtlInt64ToUnicodeString(ULONGLONG Value, ULONG Base, PUNICODE_STRING String);
#define RtlIntPtrToUnicodeString(Value, Base, String) RtlInt64ToUnicodeString((Value), (Base), (String))

/* Stores the digits of a number in a buffer of OutputLength bytes, terminated if there is room. Base 0 is 10. Returns
   STATUS_BUFFER_OVERFLOW if they do not fit, STATUS_ACCESS_VIOLATION for a NULL buffer. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlIntegerToChar(ULONG Value, ULONG Base, ULONG OutputLength, PSTR String);

/* Converts a number: blanks, a sign, digits up to the first other character; no digits are 0. Base 0 takes the prefixes 0x,
   0o and 0b, otherwise it is 10. Overflow wraps around. An empty counted string is STATUS_INVALID_PARAMETER, a NULL value
   STATUS_ACCESS_VIOLATION. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlUnicodeStringToInteger(PCUNICODE_STRING String, ULONG Base, PULONG Value);
NTSYSAPI NTSTATUS RtlCharToInteger(PCSZ String, ULONG Base, PULONG Value);

/* Converts a 64-bit number in the same way, and stores where the number ends, unless EndPointer is NULL. Returns
   STATUS_INVALID_PARAMETER for an empty string. Since 10. */
NTSYSAPI NTSTATUS RtlUnicodeStringToInt64(PCUNICODE_STRING String, ULONG Base, PLONG64 Number, PWSTR *EndPointer);

/* Converts {XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX} to a GUID. Returns STATUS_INVALID_PARAMETER for anything else, and leaves
   the GUID alone. Characters behind the brace are not read. Since 2000. */
NTSYSAPI NTSTATUS RtlGUIDFromString(PCUNICODE_STRING GuidString, GUID *Guid);

/* Allocates the terminated string of a GUID, in upper case. Returns STATUS_NO_MEMORY on failure. Since 2000. */
NTSYSAPI NTSTATUS RtlStringFromGUID(const GUID *Guid, PUNICODE_STRING GuidString);

/*
 * Strings of bytes to and from UNICODE_STRING. Malformed input (an invalid byte sequence, half of a surrogate pair) becomes
 * U+FFFD.
 */

/* Converts a string, terminated, in a buffer that is allocated if asked. Returns STATUS_BUFFER_OVERFLOW if the destination is
   too small: nothing is converted then, and Length is the length that the result needs. STATUS_INVALID_PARAMETER_2: the
   result would be too long. STATUS_NO_MEMORY. Since NT 3.1, NT 3.1, 10. */
NTSYSAPI NTSTATUS RtlAnsiStringToUnicodeString(PUNICODE_STRING DestinationString, PCANSI_STRING SourceString,
                                               BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlOemStringToUnicodeString(PUNICODE_STRING DestinationString, PCOEM_STRING SourceString,
                                              BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUTF8StringToUnicodeString(PUNICODE_STRING DestinationString, PCUTF8_STRING SourceString,
                                               BOOLEAN AllocateDestinationString);

/* Converts a string to bytes, in the same way; the Upcase form to upper case. Since NT 3.1, NT 3.1, 10. */
NTSYSAPI NTSTATUS RtlUnicodeStringToAnsiString(PANSI_STRING DestinationString, PCUNICODE_STRING SourceString,
                                               BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeStringToAnsiString(PANSI_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                     BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUnicodeStringToUTF8String(PUTF8_STRING DestinationString, PCUNICODE_STRING SourceString,
                                               BOOLEAN AllocateDestinationString);

/* Converts a string to the OEM code page, in the same way. Returns STATUS_UNMAPPABLE_CHARACTER, and converts nothing, if the
   string is malformed. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlUnicodeStringToOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                              BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeStringToOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                    BOOLEAN AllocateDestinationString);

/* Converts a string in the same way, without a terminator; an empty one becomes a string without a buffer. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlOemStringToCountedUnicodeString(PUNICODE_STRING DestinationString, PCOEM_STRING SourceString,
                                                     BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUnicodeStringToCountedOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                     BOOLEAN AllocateDestinationString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeStringToCountedOemString(POEM_STRING DestinationString, PCUNICODE_STRING SourceString,
                                                           BOOLEAN AllocateDestinationString);

/* Returns the bytes that a converted string needs, with its terminator. Since NT 3.1. */
NTSYSAPI ULONG RtlxAnsiStringToUnicodeSize(PCANSI_STRING AnsiString);
NTSYSAPI ULONG RtlxOemStringToUnicodeSize(PCOEM_STRING OemString);
NTSYSAPI ULONG RtlxUnicodeStringToAnsiSize(PCUNICODE_STRING UnicodeString);
NTSYSAPI ULONG RtlxUnicodeStringToOemSize(PCUNICODE_STRING UnicodeString);
#define NLS_MB_CODE_PAGE_TAG TRUE
#define NLS_MB_OEM_CODE_PAGE_TAG TRUE
#define RtlAnsiStringToUnicodeSize(String) RtlxAnsiStringToUnicodeSize(String)
#define RtlOemStringToUnicodeSize(String) RtlxOemStringToUnicodeSize(String)
#define RtlUnicodeStringToAnsiSize(String) RtlxUnicodeStringToAnsiSize(String)
#define RtlUnicodeStringToOemSize(String) RtlxUnicodeStringToOemSize(String)
#define RtlUnicodeStringToCountedOemSize(String) ((ULONG)(RtlUnicodeStringToOemSize(String) - 1))
#define RtlOemStringToCountedUnicodeSize(String) ((ULONG)(RtlOemStringToUnicodeSize(String) - sizeof(WCHAR)))

/* Buffers of bytes to and from 16-bit characters. Sizes are in bytes; only a terminator of the source gives one to the result,
   and a character that does not fit whole is left out. */

/* Converts as much as fits. Stores the bytes of the result, unless the pointer is NULL. Always STATUS_SUCCESS. Since NT
   3.1. */
NTSYSAPI NTSTATUS RtlMultiByteToUnicodeN(PWCH UnicodeString, ULONG MaxBytesInUnicodeString, PULONG BytesInUnicodeString,
                                         const CHAR *MultiByteString, ULONG BytesInMultiByteString);
NTSYSAPI NTSTATUS RtlUnicodeToMultiByteN(PCHAR MultiByteString, ULONG MaxBytesInMultiByteString,
                                         PULONG BytesInMultiByteString, PCWCH UnicodeString, ULONG BytesInUnicodeString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeToMultiByteN(PCHAR MultiByteString, ULONG MaxBytesInMultiByteString,
                                               PULONG BytesInMultiByteString, PCWCH UnicodeString,
                                               ULONG BytesInUnicodeString);

/* Converts as much as fits, in the OEM code page. Returns STATUS_BUFFER_OVERFLOW if that is not all. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlOemToUnicodeN(PWCH UnicodeString, ULONG MaxBytesInUnicodeString, PULONG BytesInUnicodeString,
                                   PCCH OemString, ULONG BytesInOemString);
NTSYSAPI NTSTATUS RtlUnicodeToOemN(PCHAR OemString, ULONG MaxBytesInOemString, PULONG BytesInOemString,
                                   PCWCH UnicodeString, ULONG BytesInUnicodeString);
NTSYSAPI NTSTATUS RtlUpcaseUnicodeToOemN(PCHAR OemString, ULONG MaxBytesInOemString, PULONG BytesInOemString,
                                         PCWCH UnicodeString, ULONG BytesInUnicodeString);

/* Stores the bytes that a whole conversion needs. Since NT 3.1. */
NTSYSAPI NTSTATUS RtlMultiByteToUnicodeSize(PULONG BytesInUnicodeString, const CHAR *MultiByteString,
                                            ULONG BytesInMultiByteString);
NTSYSAPI NTSTATUS RtlUnicodeToMultiByteSize(PULONG BytesInMultiByteString, PCWCH UnicodeString,
                                            ULONG BytesInUnicodeString);

/* Converts as much as fits, or with a NULL destination stores the bytes that the result needs. Returns
   STATUS_SOME_NOT_MAPPED, a success, if something became U+FFFD, and STATUS_BUFFER_TOO_SMALL if the result did not fit;
   STATUS_INVALID_PARAMETER without a destination or a count, _4 without a source, _5 for an odd number of bytes. Since 7. */
NTSYSAPI NTSTATUS RtlUTF8ToUnicodeN(PWSTR UnicodeStringDestination, ULONG UnicodeStringMaxByteCount,
                                    PULONG UnicodeStringActualByteCount, PCCH UTF8StringSource,
                                    ULONG UTF8StringByteCount);
NTSYSAPI NTSTATUS RtlUnicodeToUTF8N(PCHAR UTF8StringDestination, ULONG UTF8StringMaxByteCount,
                                    PULONG UTF8StringActualByteCount, PCWCH UnicodeStringSource,
                                    ULONG UnicodeStringByteCount);

/* Formatting, for ntstrsafe.h. The formats of DbgPrint: those of C with %wZ and %Z for counted strings, %ws and %hs, %S for the
   other kind of characters, and the sizes I64, I32 and I; l is 32 bits. */

/* Formats into a buffer of Count characters, truncated and terminated, or measures if Count is 0. Returns the length of the
   whole text; -1 on failure. Only in Interlock. */
NTSYSAPI int InterlockFormatBytes(char *Buffer, size_t Count, const char *Format, va_list Arguments);
NTSYSAPI int InterlockFormatUnicode(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments);

/* Formats without a terminator. Returns the length of the whole text; -1 on failure. Only in Interlock. */
NTSYSAPI int InterlockFormatUnterminated(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments);

INTERLOCK_END

#endif
