/*
 * safe.h: functions of Windows headers that check sizes: strings in buffers of known size (strsafe.h, ntstrsafe.h), conversions and
 * arithmetic of integers (intsafe.h, ntintsafe.h). Those headers include it once for each kind, and define
 *
 *     INTERLOCK_SAFE_STATUS         HRESULT or NTSTATUS, with the value INTERLOCK_SAFE_OK; and for strings
 *
 *     INTERLOCK_SAFE_CHAR           the character
 *     INTERLOCK_SAFE_NAME(Name)     the name of a function, from StringCchCopy
 *     INTERLOCK_SAFE_TOO_SMALL      the statuses; INTERLOCK_SAFE_INVALID; INTERLOCK_SAFE_NO_ROOM: for text that goes to a target of size 0
 *     INTERLOCK_SAFE_FORMAT         vsnprintf for these characters; INTERLOCK_SAFE_CHECK(Format, First) its attribute
 *     INTERLOCK_SAFE_KEEP           STRSAFE_NO_TRUNCATION leaves the target of a copy alone; otherwise it empties it
 *
 * or for integers
 *
 *     INTERLOCK_SAFE_INTEGER(Name)  the name of a function, from ULongAdd
 *     INTERLOCK_SAFE_OVERFLOW       the status
 *
 * The result of an overflow is the type's error value: all ones, but 0 for CHAR and UCHAR. Pointers are 64 bits wide, so
 * some of the conversions, which programs for 32 and 64 bits use, cannot fail.
 */
#ifndef INTERLOCK_SAFE_H
#define INTERLOCK_SAFE_H

#include <interlock/windef.h>

#endif

#ifdef INTERLOCK_SAFE_CHAR

#ifndef INTERLOCK_SAFE_STRING_H
#define INTERLOCK_SAFE_STRING_H

#define STRSAFE_IGNORE_NULLS       0x00000100
#define STRSAFE_FILL_BEHIND_NULL   0x00000200
#define STRSAFE_FILL_ON_FAILURE    0x00000400
#define STRSAFE_NULL_ON_FAILURE    0x00000800
#define STRSAFE_NO_TRUNCATION      0x00001000
#define STRSAFE_VALID_FLAGS        (0x000000FF | 0x00001F00)
#define STRSAFE_FILL_BYTE(Byte)    ((DWORD)(((Byte)&0x000000FF) | STRSAFE_FILL_BEHIND_NULL))
#define STRSAFE_FAILURE_BYTE(Byte) ((DWORD)(((Byte)&0x000000FF) | STRSAFE_FILL_ON_FAILURE))

#define INTERLOCK_SAFE_JOIN(First, Second) First##Second
#define INTERLOCK_SAFE_MAX_CCH             2147483647

#endif

#define INTERLOCK_SAFE_PARAMETERS INTERLOCK_SAFE_CHAR *pszDest, size_t cchDest
#define INTERLOCK_SAFE_BYTES      INTERLOCK_SAFE_CHAR *pszDest, size_t cbDest
#define INTERLOCK_SAFE_END        INTERLOCK_SAFE_CHAR **ppszDestEnd

/* Internal: the characters that are left, in bytes, with those of the size that make no whole character. */
static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(InterlockSafeBytes)(INTERLOCK_SAFE_STATUS Result,
                                                                            size_t *Remaining, size_t Size)
{
    if (Remaining != NULL && (Result >= 0 || Result == INTERLOCK_SAFE_TOO_SMALL)) {
        *Remaining = *Remaining * sizeof(INTERLOCK_SAFE_CHAR) + Size % sizeof(INTERLOCK_SAFE_CHAR);
    }
    return Result;
}

/* The length of a string of at most Limit characters with its terminator. */
static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(InterlockSafeLength)(const INTERLOCK_SAFE_CHAR *String,
                                                                             size_t Limit, size_t *Length)
{
    size_t length = 0;
    while (length < Limit && String[length] != 0) {
        length++;
    }
    *Length = length < Limit ? length : 0;
    return length < Limit ? INTERLOCK_SAFE_OK : INTERLOCK_SAFE_INVALID;
}

/* Where the Ex forms are: the target, its size in characters, and what is used of it. */
typedef struct {
    INTERLOCK_SAFE_CHAR *Target;
    size_t Size;
    size_t Used;
    DWORD Flags;
    BOOL Append;
} INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET);

static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(InterlockSafeBegin)(INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) *
                                                                            Where)
{
    const BOOL ignore = (Where->Flags & STRSAFE_IGNORE_NULLS) != 0;
    Where->Used = 0;
    if ((Where->Flags & ~(DWORD)STRSAFE_VALID_FLAGS) != 0 || Where->Size > INTERLOCK_SAFE_MAX_CCH ||
        (Where->Target == NULL && (Where->Size != 0 || !ignore)) || (Where->Size == 0 && !ignore)) {
        return INTERLOCK_SAFE_INVALID;
    }
    if (Where->Append && Where->Size != 0) {
        return INTERLOCK_SAFE_NAME(InterlockSafeLength)(Where->Target, Where->Size, &Where->Used);
    }
    return INTERLOCK_SAFE_OK;
}

/* Does STRSAFE_NO_TRUNCATION leave the target as it was? */
static inline BOOL INTERLOCK_SAFE_NAME(InterlockSafeKeeps)(const INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) * Where)
{
    return (Where->Flags & STRSAFE_NO_TRUNCATION) != 0 && (Where->Append || INTERLOCK_SAFE_KEEP);
}

/* Appends up to Count characters and a terminator. */
static inline INTERLOCK_SAFE_STATUS
INTERLOCK_SAFE_NAME(InterlockSafePut)(INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) * Where,
                                      const INTERLOCK_SAFE_CHAR *Source, size_t Count)
{
    static const INTERLOCK_SAFE_CHAR nothing[1] = {0};
    size_t i = 0;
    const INTERLOCK_SAFE_CHAR *from = Source == NULL && (Where->Flags & STRSAFE_IGNORE_NULLS) != 0 ? nothing : Source;
    if (from == NULL) {
        return INTERLOCK_SAFE_INVALID;
    }
    if (Where->Size == 0) {
        return Count == 0 || from[0] == 0 ? INTERLOCK_SAFE_OK : INTERLOCK_SAFE_NO_ROOM;
    }
    if (INTERLOCK_SAFE_NAME(InterlockSafeKeeps)(Where)) {
        while (i < Count && Where->Used + i < Where->Size && from[i] != 0) {
            i++;
        }
        if (i != 0 && Where->Used + i >= Where->Size) {
            return INTERLOCK_SAFE_TOO_SMALL;
        }
    }
    for (i = 0; i < Count && from[i] != 0; i++) {
        if (Where->Used + 1 >= Where->Size) {
            Where->Target[Where->Used] = 0;
            return INTERLOCK_SAFE_TOO_SMALL;
        }
        Where->Target[Where->Used++] = from[i];
    }
    Where->Target[Where->Used] = 0;
    return INTERLOCK_SAFE_OK;
}

INTERLOCK_SAFE_CHECK(2, 0)
static inline INTERLOCK_SAFE_STATUS
INTERLOCK_SAFE_NAME(InterlockSafePrint)(INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) * Where,
                                        const INTERLOCK_SAFE_CHAR *Format, va_list Arguments)
{
    int length;
    if (Format == NULL || Where->Size == 0) {
        return INTERLOCK_SAFE_NAME(InterlockSafePut)(Where, Format, (size_t)-1);
    }
    if (INTERLOCK_SAFE_NAME(InterlockSafeKeeps)(Where)) {
        va_list again;
        va_copy(again, Arguments);
        length = INTERLOCK_SAFE_FORMAT(NULL, 0, Format, again);
        va_end(again);
        if (length < 0 || (size_t)length >= Where->Size) {
            return INTERLOCK_SAFE_TOO_SMALL;
        }
    }
    length = INTERLOCK_SAFE_FORMAT(Where->Target, Where->Size, Format, Arguments);
    if (length < 0 || (size_t)length >= Where->Size) {
        Where->Target[Where->Size - 1] = 0;
        Where->Used = Where->Size - 1;
        return INTERLOCK_SAFE_TOO_SMALL;
    }
    Where->Used = (size_t)length;
    return INTERLOCK_SAFE_OK;
}

/* Applies the flags, and stores the end of the string and the characters that are left. */
static inline INTERLOCK_SAFE_STATUS
INTERLOCK_SAFE_NAME(InterlockSafeFinish)(INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) * Where,
                                         INTERLOCK_SAFE_STATUS Result, INTERLOCK_SAFE_END, size_t *pcchRemaining)
{
    const DWORD flags = Where->Flags;
    if (Result < 0 && Where->Size != 0 && Where->Target != NULL && Where->Size <= INTERLOCK_SAFE_MAX_CCH) {
        if ((flags & STRSAFE_FILL_ON_FAILURE) != 0) {
            memset(Where->Target, (int)(flags & 0xFF), Where->Size * sizeof(*Where->Target));
            Where->Used = (flags & 0xFF) != 0 ? Where->Size - 1 : 0;
            Where->Target[Where->Size - 1] = 0;
        }
        if ((flags & STRSAFE_NULL_ON_FAILURE) != 0 ||
            ((flags & STRSAFE_NO_TRUNCATION) != 0 && !INTERLOCK_SAFE_NAME(InterlockSafeKeeps)(Where))) {
            Where->Used = 0;
            Where->Target[0] = 0;
        }
    } else if (Result >= 0 && (flags & STRSAFE_FILL_BEHIND_NULL) != 0 && Where->Size > Where->Used + 1) {
        memset(Where->Target + Where->Used + 1, (int)(flags & 0xFF),
               (Where->Size - Where->Used - 1) * sizeof(*Where->Target));
    }
    if (Result >= 0 || Result == INTERLOCK_SAFE_TOO_SMALL) {
        if (ppszDestEnd != NULL) {
            *ppszDestEnd = Where->Target != NULL ? Where->Target + Where->Used : NULL;
        }
        if (pcchRemaining != NULL) {
            *pcchRemaining = Where->Size - Where->Used;
        }
    }
    return Result;
}

/* Copies or appends. */
static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(InterlockSafeCopy)(INTERLOCK_SAFE_PARAMETERS, BOOL Append,
                                                                           const INTERLOCK_SAFE_CHAR *pszSrc,
                                                                           size_t Count, INTERLOCK_SAFE_END,
                                                                           size_t *pcchRemaining, DWORD dwFlags)
{
    INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) where = {pszDest, cchDest, 0, dwFlags, Append};
    INTERLOCK_SAFE_STATUS result = INTERLOCK_SAFE_NAME(InterlockSafeBegin)(&where);
    if (result >= 0) {
        result = Count > INTERLOCK_SAFE_MAX_CCH && Count != (size_t)-1
                     ? INTERLOCK_SAFE_INVALID
                     : INTERLOCK_SAFE_NAME(InterlockSafePut)(&where, pszSrc, Count);
    }
    return INTERLOCK_SAFE_NAME(InterlockSafeFinish)(&where, result, ppszDestEnd, pcchRemaining);
}

INTERLOCK_SAFE_CHECK(6, 0)
static inline INTERLOCK_SAFE_STATUS
INTERLOCK_SAFE_NAME(StringCchVPrintfEx)(INTERLOCK_SAFE_PARAMETERS, INTERLOCK_SAFE_END, size_t *pcchRemaining,
                                        DWORD dwFlags, const INTERLOCK_SAFE_CHAR *pszFormat, va_list argList)
{
    INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) where = {pszDest, cchDest, 0, dwFlags, FALSE};
    INTERLOCK_SAFE_STATUS result = INTERLOCK_SAFE_NAME(InterlockSafeBegin)(&where);
    if (result >= 0) {
        result = INTERLOCK_SAFE_NAME(InterlockSafePrint)(&where, pszFormat, argList);
    }
    return INTERLOCK_SAFE_NAME(InterlockSafeFinish)(&where, result, ppszDestEnd, pcchRemaining);
}

/* Copying and appending: the plain forms, those with a count, and the Ex forms. */
#define INTERLOCK_SAFE_FAMILY(Kind, Append)                                                                            \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCch##Kind##Ex)(                                      \
        INTERLOCK_SAFE_PARAMETERS, const INTERLOCK_SAFE_CHAR *pszSrc, INTERLOCK_SAFE_END, size_t *pcchRemaining,       \
        DWORD dwFlags)                                                                                                 \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(InterlockSafeCopy)(pszDest, cchDest, Append, pszSrc, (size_t)-1, ppszDestEnd,       \
                                                      pcchRemaining, dwFlags);                                         \
    }                                                                                                                  \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCch##Kind##NEx)(                                     \
        INTERLOCK_SAFE_PARAMETERS, const INTERLOCK_SAFE_CHAR *pszSrc, size_t cchSrc, INTERLOCK_SAFE_END,               \
        size_t *pcchRemaining, DWORD dwFlags)                                                                          \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(InterlockSafeCopy)(pszDest, cchDest, Append, pszSrc, cchSrc, ppszDestEnd,           \
                                                      pcchRemaining, dwFlags);                                         \
    }                                                                                                                  \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCch##Kind)(INTERLOCK_SAFE_PARAMETERS,                \
                                                                             const INTERLOCK_SAFE_CHAR *pszSrc)        \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(StringCch##Kind##Ex)(pszDest, cchDest, pszSrc, NULL, NULL, 0);                      \
    }                                                                                                                  \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCch##Kind##N)(                                       \
        INTERLOCK_SAFE_PARAMETERS, const INTERLOCK_SAFE_CHAR *pszSrc, size_t cchSrc)                                   \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(StringCch##Kind##NEx)(pszDest, cchDest, pszSrc, cchSrc, NULL, NULL, 0);             \
    }                                                                                                                  \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCb##Kind##Ex)(                                       \
        INTERLOCK_SAFE_BYTES, const INTERLOCK_SAFE_CHAR *pszSrc, INTERLOCK_SAFE_END, size_t *pcbRemaining,             \
        DWORD dwFlags)                                                                                                 \
    {                                                                                                                  \
        INTERLOCK_SAFE_STATUS result = INTERLOCK_SAFE_NAME(StringCch##Kind##Ex)(                                       \
            pszDest, cbDest / sizeof(*pszDest), pszSrc, ppszDestEnd, pcbRemaining, dwFlags);                           \
        return INTERLOCK_SAFE_NAME(InterlockSafeBytes)(result, pcbRemaining, cbDest);                                  \
    }                                                                                                                  \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCb##Kind##NEx)(                                      \
        INTERLOCK_SAFE_BYTES, const INTERLOCK_SAFE_CHAR *pszSrc, size_t cbSrc, INTERLOCK_SAFE_END,                     \
        size_t *pcbRemaining, DWORD dwFlags)                                                                           \
    {                                                                                                                  \
        INTERLOCK_SAFE_STATUS result = INTERLOCK_SAFE_NAME(StringCch##Kind##NEx)(                                      \
            pszDest, cbDest / sizeof(*pszDest), pszSrc, cbSrc / sizeof(*pszDest), ppszDestEnd, pcbRemaining, dwFlags); \
        return INTERLOCK_SAFE_NAME(InterlockSafeBytes)(result, pcbRemaining, cbDest);                                  \
    }                                                                                                                  \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCb##Kind)(INTERLOCK_SAFE_BYTES,                      \
                                                                            const INTERLOCK_SAFE_CHAR *pszSrc)         \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(StringCb##Kind##Ex)(pszDest, cbDest, pszSrc, NULL, NULL, 0);                        \
    }                                                                                                                  \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCb##Kind##N)(                                        \
        INTERLOCK_SAFE_BYTES, const INTERLOCK_SAFE_CHAR *pszSrc, size_t cbSrc)                                         \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(StringCb##Kind##NEx)(pszDest, cbDest, pszSrc, cbSrc, NULL, NULL, 0);                \
    }

INTERLOCK_SAFE_FAMILY(Copy, FALSE)
INTERLOCK_SAFE_FAMILY(Cat, TRUE)
#undef INTERLOCK_SAFE_FAMILY

INTERLOCK_SAFE_CHECK(6, 0)
static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCbVPrintfEx)(INTERLOCK_SAFE_BYTES, INTERLOCK_SAFE_END,
                                                                           size_t *pcbRemaining, DWORD dwFlags,
                                                                           const INTERLOCK_SAFE_CHAR *pszFormat,
                                                                           va_list argList)
{
    INTERLOCK_SAFE_STATUS result = INTERLOCK_SAFE_NAME(StringCchVPrintfEx)(
        pszDest, cbDest / sizeof(*pszDest), ppszDestEnd, pcbRemaining, dwFlags, pszFormat, argList);
    return INTERLOCK_SAFE_NAME(InterlockSafeBytes)(result, pcbRemaining, cbDest);
}

/* Formatting, in characters and in bytes. */
#define INTERLOCK_SAFE_FAMILY(Unit, Parameters, Size)                                                                  \
    INTERLOCK_SAFE_CHECK(3, 0)                                                                                         \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(String##Unit##VPrintf)(                                    \
        Parameters, const INTERLOCK_SAFE_CHAR *pszFormat, va_list argList)                                             \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(String##Unit##VPrintfEx)(pszDest, Size, NULL, NULL, 0, pszFormat, argList);         \
    }                                                                                                                  \
    INTERLOCK_SAFE_CHECK(3, 4)                                                                                         \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(String##Unit##Printf)(                                     \
        Parameters, const INTERLOCK_SAFE_CHAR *pszFormat, ...)                                                         \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        INTERLOCK_SAFE_STATUS result;                                                                                  \
        va_start(arguments, pszFormat);                                                                                \
        result = INTERLOCK_SAFE_NAME(String##Unit##VPrintf)(pszDest, Size, pszFormat, arguments);                      \
        va_end(arguments);                                                                                             \
        return result;                                                                                                 \
    }                                                                                                                  \
    INTERLOCK_SAFE_CHECK(6, 7)                                                                                         \
    static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(String##Unit##PrintfEx)(                                   \
        Parameters, INTERLOCK_SAFE_END, size_t * pRemaining, DWORD dwFlags, const INTERLOCK_SAFE_CHAR *pszFormat, ...) \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        INTERLOCK_SAFE_STATUS result;                                                                                  \
        va_start(arguments, pszFormat);                                                                                \
        result = INTERLOCK_SAFE_NAME(String##Unit##VPrintfEx)(pszDest, Size, ppszDestEnd, pRemaining, dwFlags,         \
                                                              pszFormat, arguments);                                   \
        va_end(arguments);                                                                                             \
        return result;                                                                                                 \
    }

INTERLOCK_SAFE_FAMILY(Cch, INTERLOCK_SAFE_PARAMETERS, cchDest)
INTERLOCK_SAFE_FAMILY(Cb, INTERLOCK_SAFE_BYTES, cbDest)
#undef INTERLOCK_SAFE_FAMILY

static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCchLength)(const INTERLOCK_SAFE_CHAR *psz, size_t cchMax,
                                                                         size_t *pcchLength)
{
    size_t length = 0;
    INTERLOCK_SAFE_STATUS result = psz == NULL || cchMax > INTERLOCK_SAFE_MAX_CCH
                                       ? INTERLOCK_SAFE_INVALID
                                       : INTERLOCK_SAFE_NAME(InterlockSafeLength)(psz, cchMax, &length);
    if (pcchLength != NULL) {
        *pcchLength = length;
    }
    return result;
}

static inline INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_NAME(StringCbLength)(const INTERLOCK_SAFE_CHAR *psz, size_t cbMax,
                                                                        size_t *pcbLength)
{
    INTERLOCK_SAFE_STATUS result = INTERLOCK_SAFE_NAME(StringCchLength)(psz, cbMax / sizeof(*psz), pcbLength);
    if (pcbLength != NULL) {
        *pcbLength *= sizeof(*psz);
    }
    return result;
}

#undef INTERLOCK_SAFE_PARAMETERS
#undef INTERLOCK_SAFE_BYTES
#undef INTERLOCK_SAFE_END

#endif

#ifdef INTERLOCK_SAFE_INTEGER

#ifndef INTERLOCK_SAFE_INTEGER_H
#define INTERLOCK_SAFE_INTEGER_H

#define UINT8_ERROR 0xff
#define INT8_ERROR (-1)
#define UCHAR_ERROR '\0'
#define CHAR_ERROR '\0'
#define BYTE_ERROR 0xff
#define USHORT_ERROR 0xffff
#define WORD_ERROR 0xffff
#define SHORT_ERROR (-1)
#define UINT_ERROR 0xffffffffU
#define ULONG_ERROR 0xffffffffU
#define DWORD_ERROR 0xffffffffU
#define LONG_ERROR (-1)
#define INT_ERROR (-1)
#define UINT_PTR_ERROR ((UINT_PTR)-1)
#define SIZET_ERROR ((size_t)-1)
#define ULONG_PTR_ERROR ((ULONG_PTR)-1)
#define DWORD_PTR_ERROR ((DWORD_PTR)-1)
#define INT_PTR_ERROR ((INT_PTR)-1)
#define PTRDIFF_T_ERROR ((ptrdiff_t)-1)
#define LONG_PTR_ERROR ((LONG_PTR)-1)
#define SSIZE_T_ERROR ((SSIZE_T)-1)
#define ULONGLONG_ERROR 0xffffffffffffffffULL
#define INT64_ERROR (-1LL)
#define LONGLONG_ERROR (-1LL)

/* The result is computed without limits, then stored if it fits. */
#define INTERLOCK_SAFE_RESULT(Operation, First, Second, Result, Error)                                                 \
    if (__builtin_##Operation##_overflow((First), (Second), (Result))) {                                               \
        *(Result) = Error;                                                                                             \
        return INTERLOCK_SAFE_OVERFLOW;                                                                                \
    }                                                                                                                  \
    return INTERLOCK_SAFE_OK;
#define INTERLOCK_SAFE_CONVERSION(Name, From, To, Error)                                                               \
    FORCEINLINE INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_INTEGER(Name)(From Operand, To * Result)                          \
    {                                                                                                                  \
        INTERLOCK_SAFE_RESULT(add, Operand, 0, Result, Error)                                                          \
    }
#define INTERLOCK_SAFE_ARITHMETIC(Name, Type, Error)                                                                   \
    FORCEINLINE INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_INTEGER(Name##Add)(Type First, Type Second, Type * Result)        \
    {                                                                                                                  \
        INTERLOCK_SAFE_RESULT(add, First, Second, Result, Error)                                                       \
    }                                                                                                                  \
    FORCEINLINE INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_INTEGER(Name##Sub)(Type First, Type Second, Type * Result)        \
    {                                                                                                                  \
        INTERLOCK_SAFE_RESULT(sub, First, Second, Result, Error)                                                       \
    }                                                                                                                  \
    FORCEINLINE INTERLOCK_SAFE_STATUS INTERLOCK_SAFE_INTEGER(Name##Mult)(Type First, Type Second, Type * Result)       \
    {                                                                                                                  \
        INTERLOCK_SAFE_RESULT(mul, First, Second, Result, Error)                                                       \
    }

#endif

INTERLOCK_SAFE_CONVERSION(UInt8ToInt8, UINT8, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(UInt8ToChar, UINT8, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToUInt8, INT8, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToUChar, INT8, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToByte, INT8, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToUShort, INT8, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToWord, INT8, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToUInt, INT8, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToULong, INT8, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToDWord, INT8, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToUIntPtr, INT8, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToSizeT, INT8, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToULongPtr, INT8, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToDWordPtr, INT8, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int8ToULongLong, INT8, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ByteToInt8, BYTE, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ByteToChar, BYTE, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(UShortToUInt8, USHORT, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(UShortToInt8, USHORT, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(UShortToUChar, USHORT, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(UShortToChar, USHORT, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(UShortToByte, USHORT, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(UShortToShort, USHORT, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(WordToUInt8, WORD, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(WordToInt8, WORD, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(WordToUChar, WORD, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(WordToChar, WORD, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(WordToByte, WORD, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(WordToShort, WORD, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToUInt8, SHORT, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToInt8, SHORT, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToUChar, SHORT, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToChar, SHORT, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToByte, SHORT, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToUShort, SHORT, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToWord, SHORT, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToUInt, SHORT, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToULong, SHORT, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToDWord, SHORT, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToUIntPtr, SHORT, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToSizeT, SHORT, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToULongPtr, SHORT, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToDWordPtr, SHORT, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ShortToULongLong, SHORT, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToUInt8, UINT, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToInt8, UINT, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToUChar, UINT, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToChar, UINT, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToByte, UINT, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToUShort, UINT, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToWord, UINT, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToShort, UINT, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToLong, UINT, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToInt, UINT, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToIntPtr, UINT, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToPtrdiffT, UINT, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToLongPtr, UINT, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntToSSIZET, UINT, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToUInt8, ULONG, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToInt8, ULONG, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToUChar, ULONG, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToChar, ULONG, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToByte, ULONG, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToUShort, ULONG, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToWord, ULONG, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToShort, ULONG, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToUInt, ULONG, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToLong, ULONG, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToInt, ULONG, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToUIntPtr, ULONG, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToIntPtr, ULONG, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToPtrdiffT, ULONG, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToLongPtr, ULONG, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongToSSIZET, ULONG, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToUInt8, DWORD, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToInt8, DWORD, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToUChar, DWORD, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToChar, DWORD, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToByte, DWORD, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToUShort, DWORD, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToWord, DWORD, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToShort, DWORD, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToUInt, DWORD, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToLong, DWORD, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToInt, DWORD, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToUIntPtr, DWORD, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToIntPtr, DWORD, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToPtrdiffT, DWORD, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToLongPtr, DWORD, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordToSSIZET, DWORD, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToUInt8, LONG, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToInt8, LONG, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToUChar, LONG, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToChar, LONG, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToByte, LONG, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToUShort, LONG, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToWord, LONG, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToShort, LONG, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToUInt, LONG, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToULong, LONG, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToDWord, LONG, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToInt, LONG, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToUIntPtr, LONG, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToSizeT, LONG, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToULongPtr, LONG, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToDWordPtr, LONG, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToIntPtr, LONG, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToPtrdiffT, LONG, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(LongToULongLong, LONG, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToUInt8, INT, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToInt8, INT, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToUChar, INT, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToChar, INT, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToByte, INT, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToUShort, INT, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToWord, INT, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToShort, INT, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToUInt, INT, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToULong, INT, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToDWord, INT, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToUIntPtr, INT, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToSizeT, INT, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToULongPtr, INT, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToDWordPtr, INT, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntToULongLong, INT, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToUInt8, UINT_PTR, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToInt8, UINT_PTR, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToUChar, UINT_PTR, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToChar, UINT_PTR, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToByte, UINT_PTR, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToUShort, UINT_PTR, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToWord, UINT_PTR, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToShort, UINT_PTR, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToUInt, UINT_PTR, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToULong, UINT_PTR, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToDWord, UINT_PTR, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToLong, UINT_PTR, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToInt, UINT_PTR, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToIntPtr, UINT_PTR, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToPtrdiffT, UINT_PTR, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToLongPtr, UINT_PTR, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToSSIZET, UINT_PTR, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToInt64, UINT_PTR, INT64, INT64_ERROR)
INTERLOCK_SAFE_CONVERSION(UIntPtrToLongLong, UINT_PTR, LONGLONG, LONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToUInt8, size_t, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToInt8, size_t, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToUChar, size_t, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToChar, size_t, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToByte, size_t, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToUShort, size_t, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToWord, size_t, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToShort, size_t, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToUInt, size_t, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToULong, size_t, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToDWord, size_t, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToLong, size_t, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToInt, size_t, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToIntPtr, size_t, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToPtrdiffT, size_t, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToLongPtr, size_t, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToSSIZET, size_t, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToInt64, size_t, INT64, INT64_ERROR)
INTERLOCK_SAFE_CONVERSION(SizeTToLongLong, size_t, LONGLONG, LONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToUInt8, ULONG_PTR, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToInt8, ULONG_PTR, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToUChar, ULONG_PTR, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToChar, ULONG_PTR, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToByte, ULONG_PTR, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToUShort, ULONG_PTR, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToWord, ULONG_PTR, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToShort, ULONG_PTR, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToUInt, ULONG_PTR, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToULong, ULONG_PTR, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToDWord, ULONG_PTR, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToLong, ULONG_PTR, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToInt, ULONG_PTR, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToUIntPtr, ULONG_PTR, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToIntPtr, ULONG_PTR, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToPtrdiffT, ULONG_PTR, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToLongPtr, ULONG_PTR, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToSSIZET, ULONG_PTR, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToInt64, ULONG_PTR, INT64, INT64_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongPtrToLongLong, ULONG_PTR, LONGLONG, LONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToUInt8, DWORD_PTR, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToInt8, DWORD_PTR, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToUChar, DWORD_PTR, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToChar, DWORD_PTR, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToByte, DWORD_PTR, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToUShort, DWORD_PTR, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToWord, DWORD_PTR, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToShort, DWORD_PTR, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToUInt, DWORD_PTR, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToULong, DWORD_PTR, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToDWord, DWORD_PTR, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToLong, DWORD_PTR, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToInt, DWORD_PTR, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToUIntPtr, DWORD_PTR, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToIntPtr, DWORD_PTR, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToPtrdiffT, DWORD_PTR, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToLongPtr, DWORD_PTR, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToSSIZET, DWORD_PTR, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToInt64, DWORD_PTR, INT64, INT64_ERROR)
INTERLOCK_SAFE_CONVERSION(DWordPtrToLongLong, DWORD_PTR, LONGLONG, LONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToUInt8, INT_PTR, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToInt8, INT_PTR, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToUChar, INT_PTR, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToChar, INT_PTR, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToByte, INT_PTR, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToUShort, INT_PTR, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToWord, INT_PTR, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToShort, INT_PTR, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToUInt, INT_PTR, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToULong, INT_PTR, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToDWord, INT_PTR, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToLong, INT_PTR, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToInt, INT_PTR, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToUIntPtr, INT_PTR, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToSizeT, INT_PTR, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToULongPtr, INT_PTR, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToDWordPtr, INT_PTR, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToLongPtr, INT_PTR, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(IntPtrToULongLong, INT_PTR, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToUInt8, ptrdiff_t, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToInt8, ptrdiff_t, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToUChar, ptrdiff_t, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToChar, ptrdiff_t, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToByte, ptrdiff_t, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToUShort, ptrdiff_t, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToWord, ptrdiff_t, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToShort, ptrdiff_t, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToUInt, ptrdiff_t, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToULong, ptrdiff_t, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToDWord, ptrdiff_t, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToLong, ptrdiff_t, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToInt, ptrdiff_t, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToUIntPtr, ptrdiff_t, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToSizeT, ptrdiff_t, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToULongPtr, ptrdiff_t, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToDWordPtr, ptrdiff_t, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(PtrdiffTToULongLong, ptrdiff_t, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToUInt8, LONG_PTR, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToInt8, LONG_PTR, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToUChar, LONG_PTR, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToChar, LONG_PTR, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToByte, LONG_PTR, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToUShort, LONG_PTR, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToWord, LONG_PTR, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToShort, LONG_PTR, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToUInt, LONG_PTR, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToULong, LONG_PTR, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToDWord, LONG_PTR, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToLong, LONG_PTR, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToInt, LONG_PTR, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToUIntPtr, LONG_PTR, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToSizeT, LONG_PTR, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToULongPtr, LONG_PTR, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToDWordPtr, LONG_PTR, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToIntPtr, LONG_PTR, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongPtrToULongLong, LONG_PTR, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToUInt8, SSIZE_T, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToInt8, SSIZE_T, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToUChar, SSIZE_T, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToChar, SSIZE_T, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToByte, SSIZE_T, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToUShort, SSIZE_T, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToWord, SSIZE_T, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToShort, SSIZE_T, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToUInt, SSIZE_T, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToULong, SSIZE_T, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToDWord, SSIZE_T, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToLong, SSIZE_T, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToInt, SSIZE_T, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToUIntPtr, SSIZE_T, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToSizeT, SSIZE_T, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToULongPtr, SSIZE_T, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToDWordPtr, SSIZE_T, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToIntPtr, SSIZE_T, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(SSIZETToULongLong, SSIZE_T, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToUInt8, ULONGLONG, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToInt8, ULONGLONG, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToUChar, ULONGLONG, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToChar, ULONGLONG, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToByte, ULONGLONG, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToUShort, ULONGLONG, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToWord, ULONGLONG, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToShort, ULONGLONG, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToUInt, ULONGLONG, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToULong, ULONGLONG, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToDWord, ULONGLONG, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToLong, ULONGLONG, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToInt, ULONGLONG, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToUIntPtr, ULONGLONG, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToSizeT, ULONGLONG, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToULongPtr, ULONGLONG, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToDWordPtr, ULONGLONG, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToIntPtr, ULONGLONG, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToPtrdiffT, ULONGLONG, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToLongPtr, ULONGLONG, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToSSIZET, ULONGLONG, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToInt64, ULONGLONG, INT64, INT64_ERROR)
INTERLOCK_SAFE_CONVERSION(ULongLongToLongLong, ULONGLONG, LONGLONG, LONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToUInt8, INT64, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToInt8, INT64, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToUChar, INT64, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToChar, INT64, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToByte, INT64, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToUShort, INT64, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToWord, INT64, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToShort, INT64, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToUInt, INT64, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToULong, INT64, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToDWord, INT64, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToLong, INT64, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToInt, INT64, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToUIntPtr, INT64, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToSizeT, INT64, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToULongPtr, INT64, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToDWordPtr, INT64, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToIntPtr, INT64, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToPtrdiffT, INT64, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToLongPtr, INT64, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToSSIZET, INT64, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(Int64ToULongLong, INT64, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToUInt8, LONGLONG, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToInt8, LONGLONG, INT8, INT8_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToUChar, LONGLONG, UCHAR, UCHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToChar, LONGLONG, CHAR, CHAR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToByte, LONGLONG, BYTE, BYTE_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToUShort, LONGLONG, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToWord, LONGLONG, WORD, WORD_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToShort, LONGLONG, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToUInt, LONGLONG, UINT, UINT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToULong, LONGLONG, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToDWord, LONGLONG, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToLong, LONGLONG, LONG, LONG_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToInt, LONGLONG, INT, INT_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToUIntPtr, LONGLONG, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToSizeT, LONGLONG, size_t, SIZET_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToULongPtr, LONGLONG, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToDWordPtr, LONGLONG, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToIntPtr, LONGLONG, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToPtrdiffT, LONGLONG, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToLongPtr, LONGLONG, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToSSIZET, LONGLONG, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_CONVERSION(LongLongToULongLong, LONGLONG, ULONGLONG, ULONGLONG_ERROR)

INTERLOCK_SAFE_ARITHMETIC(UInt8, UINT8, UINT8_ERROR)
INTERLOCK_SAFE_ARITHMETIC(Int8, INT8, INT8_ERROR)
INTERLOCK_SAFE_ARITHMETIC(UShort, USHORT, USHORT_ERROR)
INTERLOCK_SAFE_ARITHMETIC(Word, WORD, WORD_ERROR)
INTERLOCK_SAFE_ARITHMETIC(Short, SHORT, SHORT_ERROR)
INTERLOCK_SAFE_ARITHMETIC(UInt, UINT, UINT_ERROR)
INTERLOCK_SAFE_ARITHMETIC(ULong, ULONG, ULONG_ERROR)
INTERLOCK_SAFE_ARITHMETIC(DWord, DWORD, DWORD_ERROR)
INTERLOCK_SAFE_ARITHMETIC(Long, LONG, LONG_ERROR)
INTERLOCK_SAFE_ARITHMETIC(Int, INT, INT_ERROR)
INTERLOCK_SAFE_ARITHMETIC(UIntPtr, UINT_PTR, UINT_PTR_ERROR)
INTERLOCK_SAFE_ARITHMETIC(SizeT, size_t, SIZET_ERROR)
INTERLOCK_SAFE_ARITHMETIC(ULongPtr, ULONG_PTR, ULONG_PTR_ERROR)
INTERLOCK_SAFE_ARITHMETIC(DWordPtr, DWORD_PTR, DWORD_PTR_ERROR)
INTERLOCK_SAFE_ARITHMETIC(IntPtr, INT_PTR, INT_PTR_ERROR)
INTERLOCK_SAFE_ARITHMETIC(PtrdiffT, ptrdiff_t, PTRDIFF_T_ERROR)
INTERLOCK_SAFE_ARITHMETIC(LongPtr, LONG_PTR, LONG_PTR_ERROR)
INTERLOCK_SAFE_ARITHMETIC(SSIZET, SSIZE_T, SSIZE_T_ERROR)
INTERLOCK_SAFE_ARITHMETIC(ULongLong, ULONGLONG, ULONGLONG_ERROR)
INTERLOCK_SAFE_ARITHMETIC(LongLong, LONGLONG, LONGLONG_ERROR)

#endif
