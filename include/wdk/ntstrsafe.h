/*
 * ntstrsafe.h: strings in buffers of known size, for drivers. Sizes are in characters (Cch) or bytes (Cb). The
 * functions are inline; formats are those of DbgPrint.
 *
 * A string that does not fit is truncated, and the status is STATUS_BUFFER_OVERFLOW; STATUS_INVALID_PARAMETER is a NULL
 * pointer, a size of 0 or above NTSTRSAFE_MAX_CCH, a target that is not terminated or no valid UNICODE_STRING, an
 * unknown flag. The results of the UnicodeString functions have no terminator.
 */
#ifndef INTERLOCK_WDK_NTSTRSAFE_H
#define INTERLOCK_WDK_NTSTRSAFE_H

#include <stdarg.h>
#include <string.h>

#include <interlock/rtl.h>

#define NTSTRSAFE_MAX_CCH                  INTERLOCK_SAFE_MAX_CCH
#define NTSTRSAFE_MAX_LENGTH               (NTSTRSAFE_MAX_CCH - 1)
#define NTSTRSAFE_UNICODE_STRING_MAX_CCH   (0xffff / sizeof(WCHAR))
#define STRSAFE_MAX_CCH                    NTSTRSAFE_MAX_CCH
#define STRSAFE_MAX_LENGTH                 NTSTRSAFE_MAX_LENGTH
#define STRSAFE_FILL_BEHIND                STRSAFE_FILL_BEHIND_NULL
#define STRSAFE_ZERO_LENGTH_ON_FAILURE     STRSAFE_NULL_ON_FAILURE
#define STRSAFE_UNICODE_STRING_VALID_FLAGS STRSAFE_VALID_FLAGS
#define NTSTRSAFEDDI                       static inline NTSTATUS

typedef char *NTSTRSAFE_PSTR;
typedef const char *NTSTRSAFE_PCSTR;
typedef WCHAR *NTSTRSAFE_PWSTR;
typedef const WCHAR *NTSTRSAFE_PCWSTR, *NTSTRSAFE_PCUWSTR;

INTERLOCK_BEGIN

#define INTERLOCK_SAFE_STATUS    NTSTATUS
#define INTERLOCK_SAFE_OK        STATUS_SUCCESS
#define INTERLOCK_SAFE_TOO_SMALL STATUS_BUFFER_OVERFLOW
#define INTERLOCK_SAFE_INVALID   STATUS_INVALID_PARAMETER
#define INTERLOCK_SAFE_NO_ROOM   STATUS_INVALID_PARAMETER
#define INTERLOCK_SAFE_KEEP      TRUE
#define INTERLOCK_SAFE_CHECK(Format, First)

#define INTERLOCK_SAFE_CHAR       char
#define INTERLOCK_SAFE_NAME(Name) INTERLOCK_SAFE_JOIN(Rtl##Name, A)
#define INTERLOCK_SAFE_FORMAT     InterlockFormatBytes
#include <interlock/safe.h>
#undef INTERLOCK_SAFE_CHAR
#undef INTERLOCK_SAFE_NAME
#undef INTERLOCK_SAFE_FORMAT

#define INTERLOCK_SAFE_CHAR       WCHAR
#define INTERLOCK_SAFE_NAME(Name) INTERLOCK_SAFE_JOIN(Rtl##Name, W)
#define INTERLOCK_SAFE_FORMAT     InterlockFormatUnicode
#include <interlock/safe.h>
#undef INTERLOCK_SAFE_CHAR
#undef INTERLOCK_SAFE_NAME
#undef INTERLOCK_SAFE_FORMAT

#undef INTERLOCK_SAFE_STATUS
#undef INTERLOCK_SAFE_OK
#undef INTERLOCK_SAFE_TOO_SMALL
#undef INTERLOCK_SAFE_INVALID
#undef INTERLOCK_SAFE_NO_ROOM
#undef INTERLOCK_SAFE_KEEP
#undef INTERLOCK_SAFE_CHECK

#define RtlUnalignedStringCchLengthW RtlStringCchLengthW
#define RtlUnalignedStringCbLengthW  RtlStringCbLengthW

#ifndef NTSTRSAFE_NO_UNICODE_STRING_FUNCTIONS

/* Internal: is it a valid UNICODE_STRING? NULL is, if the flags allow it. */
NTSTRSAFEDDI InterlockSafeCheckUnicode(PCUNICODE_STRING String, DWORD Flags)
{
    if (String == NULL) {
        return (Flags & STRSAFE_IGNORE_NULLS) != 0 ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
    }
    return RtlValidateUnicodeString(0, String);
}

/* Internal: the target, checked; Used is what stays of it. */
typedef struct _INTERLOCK_SAFE_UNICODE {
    PUNICODE_STRING String;
    PWSTR Target;
    size_t Size;
    size_t Used;
    DWORD Flags;
} INTERLOCK_SAFE_UNICODE;

NTSTRSAFEDDI InterlockSafeBeginUnicode(INTERLOCK_SAFE_UNICODE *Where, PUNICODE_STRING String, BOOL Append, DWORD Flags)
{
    memset(Where, 0, sizeof(*Where));
    if ((Flags & ~(DWORD)STRSAFE_UNICODE_STRING_VALID_FLAGS) != 0 ||
        InterlockSafeCheckUnicode(String, Flags) != STATUS_SUCCESS) {
        return STATUS_INVALID_PARAMETER;
    }
    Where->Flags = Flags;
    if (String != NULL) {
        Where->String = String;
        Where->Target = String->Buffer;
        Where->Size = String->MaximumLength / sizeof(WCHAR);
        Where->Used = Append ? String->Length / sizeof(WCHAR) : 0;
    }
    return STATUS_SUCCESS;
}

/* Internal: adds characters. */
NTSTRSAFEDDI InterlockSafePutUnicode(INTERLOCK_SAFE_UNICODE *Where, const WCHAR *Source, size_t Count)
{
    const size_t room = Where->Size - Where->Used;
    const size_t fits = Count < room ? Count : room;
    if (Count != 0 && Where->Size == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Count > room && (Where->Flags & STRSAFE_NO_TRUNCATION) != 0) {
        return STATUS_BUFFER_OVERFLOW;
    }
    if (fits != 0) {
        memcpy(Where->Target + Where->Used, Source, fits * sizeof(WCHAR));
        Where->Used += fits;
    }
    return Count > room ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

/* Internal: applies the flags, and stores the length and what is left. */
NTSTRSAFEDDI InterlockSafeFinishUnicode(INTERLOCK_SAFE_UNICODE *Where, NTSTATUS Status, PUNICODE_STRING Remaining)
{
    const DWORD flags = Where->Flags;
    const BOOL kept = Status == STATUS_BUFFER_OVERFLOW && (flags & STRSAFE_NO_TRUNCATION) != 0;
    if (Where->String != NULL) {
        if (Status == STATUS_SUCCESS && (flags & STRSAFE_FILL_BEHIND) != 0 && Where->Size != Where->Used) {
            memset(Where->Target + Where->Used, (int)(flags & 0xFF), (Where->Size - Where->Used) * sizeof(WCHAR));
        }
        if (Status != STATUS_SUCCESS && (flags & STRSAFE_FILL_ON_FAILURE) != 0 && Where->Size != 0) {
            memset(Where->Target, (int)(flags & 0xFF), Where->Size * sizeof(WCHAR));
            Where->Used = (flags & 0xFF) != 0 ? Where->Size : 0;
        }
        if (Status != STATUS_SUCCESS && (flags & STRSAFE_ZERO_LENGTH_ON_FAILURE) != 0) {
            Where->Used = 0;
        }
        if (Status == STATUS_SUCCESS || (flags & (STRSAFE_FILL_ON_FAILURE | STRSAFE_ZERO_LENGTH_ON_FAILURE)) != 0 ||
            (Status == STATUS_BUFFER_OVERFLOW && !kept)) {
            Where->String->Length = (USHORT)(Where->Used * sizeof(WCHAR));
        }
    }
    if (Remaining != NULL && (Status == STATUS_SUCCESS || Status == STATUS_BUFFER_OVERFLOW)) {
        RtlInitEmptyUnicodeString(Remaining, Where->Target != NULL ? Where->Target + Where->Used : NULL,
                                  (USHORT)((Where->Size - Where->Used) * sizeof(WCHAR)));
    }
    return Status;
}

/* Internal: copies or appends a terminated string of at most Count characters. */
NTSTRSAFEDDI InterlockSafeAddString(PUNICODE_STRING String, BOOL Append, const WCHAR *Source, size_t Count,
                                    PUNICODE_STRING Remaining, DWORD Flags)
{
    INTERLOCK_SAFE_UNICODE where;
    size_t length = 0;
    NTSTATUS status = InterlockSafeBeginUnicode(&where, String, Append, Flags);
    if ((Source == NULL && (Flags & STRSAFE_IGNORE_NULLS) == 0) ||
        (Count > NTSTRSAFE_UNICODE_STRING_MAX_CCH && Count != (size_t)-1)) {
        status = STATUS_INVALID_PARAMETER;
    }
    if (status == STATUS_SUCCESS) {
        while (Source != NULL && length < Count && length <= NTSTRSAFE_UNICODE_STRING_MAX_CCH && Source[length] != 0) {
            length++;
        }
        status = InterlockSafePutUnicode(&where, Source, length);
    }
    return InterlockSafeFinishUnicode(&where, status, Remaining);
}

/* Internal: copies or appends a counted string of at most Count characters. */
NTSTRSAFEDDI InterlockSafeAddUnicode(PUNICODE_STRING String, BOOL Append, PCUNICODE_STRING Source, size_t Count,
                                     PUNICODE_STRING Remaining, DWORD Flags)
{
    INTERLOCK_SAFE_UNICODE where;
    size_t length = 0;
    NTSTATUS status = InterlockSafeBeginUnicode(&where, String, Append, Flags);
    if (InterlockSafeCheckUnicode(Source, Flags) != STATUS_SUCCESS ||
        (Count > NTSTRSAFE_UNICODE_STRING_MAX_CCH && Count != (size_t)-1)) {
        status = STATUS_INVALID_PARAMETER;
    }
    if (status == STATUS_SUCCESS) {
        if (Source != NULL) {
            length = Source->Length / sizeof(WCHAR);
        }
        status = InterlockSafePutUnicode(&where, length != 0 ? Source->Buffer : NULL, length < Count ? length : Count);
    }
    return InterlockSafeFinishUnicode(&where, status, Remaining);
}

/* Internal: copying and appending, from both kinds of strings. */
#define INTERLOCK_SAFE_FAMILY(Kind, Append)                                                                            \
    NTSTRSAFEDDI RtlUnicodeString##Kind##StringEx(PUNICODE_STRING DestinationString, NTSTRSAFE_PCWSTR pszSrc,          \
                                                  PUNICODE_STRING RemainingString, DWORD dwFlags)                      \
    {                                                                                                                  \
        return InterlockSafeAddString(DestinationString, Append, pszSrc, (size_t)-1, RemainingString, dwFlags);        \
    }                                                                                                                  \
    NTSTRSAFEDDI RtlUnicodeString##Kind##String(PUNICODE_STRING DestinationString, NTSTRSAFE_PCWSTR pszSrc)            \
    {                                                                                                                  \
        return InterlockSafeAddString(DestinationString, Append, pszSrc, (size_t)-1, NULL, 0);                         \
    }                                                                                                                  \
    NTSTRSAFEDDI RtlUnicodeString##Kind##Ex(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,          \
                                            PUNICODE_STRING RemainingString, DWORD dwFlags)                            \
    {                                                                                                                  \
        return InterlockSafeAddUnicode(DestinationString, Append, SourceString, (size_t)-1, RemainingString, dwFlags); \
    }                                                                                                                  \
    NTSTRSAFEDDI RtlUnicodeString##Kind(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString)              \
    {                                                                                                                  \
        return InterlockSafeAddUnicode(DestinationString, Append, SourceString, (size_t)-1, NULL, 0);                  \
    }
INTERLOCK_SAFE_FAMILY(Copy, FALSE)
INTERLOCK_SAFE_FAMILY(Cat, TRUE)
#undef INTERLOCK_SAFE_FAMILY

/* Internal: the same with a count, in characters or bytes. */
#define INTERLOCK_SAFE_FAMILY(Unit, Kind, Append, Size)                                                                \
    NTSTRSAFEDDI RtlUnicodeString##Unit##Kind##StringNEx(PUNICODE_STRING DestinationString, NTSTRSAFE_PCWSTR pszSrc,   \
                                                         size_t Count, PUNICODE_STRING RemainingString, DWORD dwFlags) \
    {                                                                                                                  \
        return InterlockSafeAddString(DestinationString, Append, pszSrc, Count / (Size), RemainingString, dwFlags);    \
    }                                                                                                                  \
    NTSTRSAFEDDI RtlUnicodeString##Unit##Kind##StringN(PUNICODE_STRING DestinationString, NTSTRSAFE_PCWSTR pszSrc,     \
                                                       size_t Count)                                                   \
    {                                                                                                                  \
        return InterlockSafeAddString(DestinationString, Append, pszSrc, Count / (Size), NULL, 0);                     \
    }                                                                                                                  \
    NTSTRSAFEDDI RtlUnicodeString##Unit##Kind##NEx(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,   \
                                                   size_t Count, PUNICODE_STRING RemainingString, DWORD dwFlags)       \
    {                                                                                                                  \
        return InterlockSafeAddUnicode(DestinationString, Append, SourceString, Count / (Size), RemainingString,       \
                                       dwFlags);                                                                       \
    }                                                                                                                  \
    NTSTRSAFEDDI RtlUnicodeString##Unit##Kind##N(PUNICODE_STRING DestinationString, PCUNICODE_STRING SourceString,     \
                                                 size_t Count)                                                         \
    {                                                                                                                  \
        return InterlockSafeAddUnicode(DestinationString, Append, SourceString, Count / (Size), NULL, 0);              \
    }
INTERLOCK_SAFE_FAMILY(Cch, Copy, FALSE, 1)
INTERLOCK_SAFE_FAMILY(Cb, Copy, FALSE, sizeof(WCHAR))
INTERLOCK_SAFE_FAMILY(Cch, Cat, TRUE, 1)
INTERLOCK_SAFE_FAMILY(Cb, Cat, TRUE, sizeof(WCHAR))
#undef INTERLOCK_SAFE_FAMILY

/* Formats into a UNICODE_STRING. */
NTSTRSAFEDDI RtlUnicodeStringVPrintfEx(PUNICODE_STRING DestinationString, PUNICODE_STRING RemainingString,
                                       DWORD dwFlags, NTSTRSAFE_PCWSTR pszFormat, va_list argList)
{
    INTERLOCK_SAFE_UNICODE where;
    va_list again;
    int length = 0;
    NTSTATUS status = InterlockSafeBeginUnicode(&where, DestinationString, FALSE, dwFlags);
    if (pszFormat == NULL && (dwFlags & STRSAFE_IGNORE_NULLS) == 0) {
        status = STATUS_INVALID_PARAMETER;
    }
    if (status == STATUS_SUCCESS && pszFormat != NULL) {
        va_copy(again, argList);
        length = InterlockFormatUnicode(NULL, 0, pszFormat, again);
        va_end(again);
        if (length < 0 || (size_t)length > where.Size) {
            status = where.Size == 0 ? STATUS_INVALID_PARAMETER : STATUS_BUFFER_OVERFLOW;
        }
        if (status == STATUS_SUCCESS || (where.Size != 0 && (dwFlags & STRSAFE_NO_TRUNCATION) == 0)) {
            InterlockFormatUnterminated(where.Target, where.Size, pszFormat, argList);
            where.Used = length < 0 || (size_t)length > where.Size ? where.Size : (size_t)length;
        }
    }
    return InterlockSafeFinishUnicode(&where, status, RemainingString);
}

NTSTRSAFEDDI RtlUnicodeStringVPrintf(PUNICODE_STRING DestinationString, NTSTRSAFE_PCWSTR pszFormat, va_list argList)
{
    return RtlUnicodeStringVPrintfEx(DestinationString, NULL, 0, pszFormat, argList);
}

NTSTRSAFEDDI RtlUnicodeStringPrintfEx(PUNICODE_STRING DestinationString, PUNICODE_STRING RemainingString, DWORD dwFlags,
                                      NTSTRSAFE_PCWSTR pszFormat, ...)
{
    va_list arguments;
    NTSTATUS status;
    va_start(arguments, pszFormat);
    status = RtlUnicodeStringVPrintfEx(DestinationString, RemainingString, dwFlags, pszFormat, arguments);
    va_end(arguments);
    return status;
}

NTSTRSAFEDDI RtlUnicodeStringPrintf(PUNICODE_STRING DestinationString, NTSTRSAFE_PCWSTR pszFormat, ...)
{
    va_list arguments;
    NTSTATUS status;
    va_start(arguments, pszFormat);
    status = RtlUnicodeStringVPrintfEx(DestinationString, NULL, 0, pszFormat, arguments);
    va_end(arguments);
    return status;
}

/* Describes a terminated string of at most NTSTRSAFE_UNICODE_STRING_MAX_CCH - 1 characters; NULL is empty. */
NTSTRSAFEDDI RtlUnicodeStringInitEx(PUNICODE_STRING DestinationString, NTSTRSAFE_PCWSTR pszSrc, DWORD dwFlags)
{
    if ((dwFlags & ~(DWORD)STRSAFE_IGNORE_NULLS) != 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (DestinationString == NULL) {
        return (dwFlags & STRSAFE_IGNORE_NULLS) != 0 && (pszSrc == NULL || *pszSrc == 0) ? STATUS_SUCCESS
                                                                                         : STATUS_INVALID_PARAMETER;
    }
    return RtlInitUnicodeStringEx(DestinationString, pszSrc) == STATUS_SUCCESS ? STATUS_SUCCESS
                                                                               : STATUS_INVALID_PARAMETER;
}

NTSTRSAFEDDI RtlUnicodeStringInit(PUNICODE_STRING DestinationString, NTSTRSAFE_PCWSTR pszSrc)
{
    return RtlUnicodeStringInitEx(DestinationString, pszSrc, 0);
}

/* Returns STATUS_INVALID_PARAMETER if a string is malformed. NULL is, without STRSAFE_IGNORE_NULLS. */
NTSTRSAFEDDI RtlUnicodeStringValidateEx(PCUNICODE_STRING SourceString, DWORD dwFlags)
{
    return (dwFlags & ~(DWORD)STRSAFE_IGNORE_NULLS) != 0 ? STATUS_INVALID_PARAMETER
                                                         : InterlockSafeCheckUnicode(SourceString, dwFlags);
}

NTSTRSAFEDDI RtlUnicodeStringValidate(PCUNICODE_STRING SourceString)
{
    return RtlUnicodeStringValidateEx(SourceString, 0);
}

/* Copies a UNICODE_STRING to a terminated string. */
NTSTRSAFEDDI RtlStringCchCopyUnicodeStringEx(NTSTRSAFE_PWSTR pszDest, size_t cchDest, PCUNICODE_STRING SourceString,
                                             NTSTRSAFE_PWSTR *ppszDestEnd, size_t *pcchRemaining, DWORD dwFlags)
{
    static const WCHAR nothing[1] = {0};
    const size_t length = SourceString != NULL ? SourceString->Length / sizeof(WCHAR) : 0;
    if (InterlockSafeCheckUnicode(SourceString, dwFlags) != STATUS_SUCCESS) {
        return STATUS_INVALID_PARAMETER;
    }
    return RtlStringCchCopyNExW(pszDest, cchDest, length != 0 ? SourceString->Buffer : nothing, length, ppszDestEnd,
                                pcchRemaining, dwFlags);
}

NTSTRSAFEDDI RtlStringCchCopyUnicodeString(NTSTRSAFE_PWSTR pszDest, size_t cchDest, PCUNICODE_STRING SourceString)
{
    return RtlStringCchCopyUnicodeStringEx(pszDest, cchDest, SourceString, NULL, NULL, 0);
}

NTSTRSAFEDDI RtlStringCbCopyUnicodeStringEx(NTSTRSAFE_PWSTR pszDest, size_t cbDest, PCUNICODE_STRING SourceString,
                                            NTSTRSAFE_PWSTR *ppszDestEnd, size_t *pcbRemaining, DWORD dwFlags)
{
    NTSTATUS status = RtlStringCchCopyUnicodeStringEx(pszDest, cbDest / sizeof(WCHAR), SourceString, ppszDestEnd,
                                                      pcbRemaining, dwFlags);
    return RtlInterlockSafeBytesW(status, pcbRemaining, cbDest);
}

NTSTRSAFEDDI RtlStringCbCopyUnicodeString(NTSTRSAFE_PWSTR pszDest, size_t cbDest, PCUNICODE_STRING SourceString)
{
    return RtlStringCbCopyUnicodeStringEx(pszDest, cbDest, SourceString, NULL, NULL, 0);
}

#endif

INTERLOCK_END

#endif
