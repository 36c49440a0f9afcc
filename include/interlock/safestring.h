/*
 * safestring.h: strings in buffers of known size, for strsafe.h and ntstrsafe.h. This is one kind of character and of
 * status. The includer defines
 *
 *     INTERLOCK_SAFE_CHAR         the character
 *     INTERLOCK_SAFE_NAME(Name)   the name of a function, from StringCchCopy
 *     INTERLOCK_SAFE_STATUS       HRESULT or NTSTATUS, with the values INTERLOCK_SAFE_OK, _TOO_SMALL and _INVALID
 *     INTERLOCK_SAFE_FORMAT       vsnprintf for these characters; INTERLOCK_SAFE_CHECK(Format, First) its attribute
 *     INTERLOCK_SAFE_NO_ROOM      the status for text that goes to a target of size 0
 *     INTERLOCK_SAFE_KEEP         STRSAFE_NO_TRUNCATION leaves the target of a copy alone; otherwise it empties it
 */
#ifndef INTERLOCK_SAFESTRING_H
#define INTERLOCK_SAFESTRING_H

#include <interlock/windef.h>

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

#ifdef INTERLOCK_SAFE_CHAR

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

/* Puts up to Count characters behind those that are there, terminated. */
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
