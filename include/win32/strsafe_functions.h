/*
 * strsafe_functions.h: the functions of strsafe.h for one kind of character. strsafe.h includes it twice:
 * INTERLOCK_SAFE_CHAR is the character, INTERLOCK_SAFE_NAME(StringCchCopy) the name of a function.
 */
#include <stddef.h> /* a translation unit of this header alone must declare something */

#ifdef INTERLOCK_SAFE_CHAR

#define INTERLOCK_SAFE_PARAMETERS INTERLOCK_SAFE_CHAR *pszDest, size_t cchDest
#define INTERLOCK_SAFE_BYTES INTERLOCK_SAFE_CHAR *pszDest, size_t cbDest
#define INTERLOCK_SAFE_END INTERLOCK_SAFE_CHAR **ppszDestEnd

/* The length of a string of at most Limit characters with its terminator. */
static inline HRESULT INTERLOCK_SAFE_NAME(InterlockSafeLength)(const INTERLOCK_SAFE_CHAR *String, size_t Limit,
                                                               size_t *Length)
{
    size_t length = 0;
    while (length < Limit && String[length] != 0) {
        length++;
    }
    *Length = length < Limit ? length : 0;
    return length < Limit ? S_OK : STRSAFE_E_INVALID_PARAMETER;
}

/* Where the Ex forms are: the target, its size in characters, and what is used of it. */
typedef struct {
    INTERLOCK_SAFE_CHAR *Target;
    size_t Size;
    size_t Used;
    DWORD Flags;
} INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET);

static inline HRESULT INTERLOCK_SAFE_NAME(InterlockSafeBegin)(INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) * Where,
                                                              BOOL Append)
{
    const BOOL ignore = (Where->Flags & STRSAFE_IGNORE_NULLS) != 0;
    Where->Used = 0;
    if ((Where->Flags & ~(DWORD)STRSAFE_VALID_FLAGS) != 0 || Where->Size > STRSAFE_MAX_CCH ||
        (Where->Target == NULL && (Where->Size != 0 || !ignore)) || (Where->Size == 0 && !ignore)) {
        return STRSAFE_E_INVALID_PARAMETER;
    }
    if (Append && Where->Size != 0) {
        return INTERLOCK_SAFE_NAME(InterlockSafeLength)(Where->Target, Where->Size, &Where->Used);
    }
    return S_OK;
}

/* Puts up to Count characters behind those that are there, terminated. */
static inline HRESULT INTERLOCK_SAFE_NAME(InterlockSafePut)(INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) * Where,
                                                            const INTERLOCK_SAFE_CHAR *Source, size_t Count)
{
    static const INTERLOCK_SAFE_CHAR nothing[1] = {0};
    size_t i = 0;
    const INTERLOCK_SAFE_CHAR *from =
        Source == NULL && (Where->Flags & STRSAFE_IGNORE_NULLS) != 0 ? nothing : Source;
    for (; i < Count && from[i] != 0; i++) {
        if (Where->Used + 1 >= Where->Size) {
            if (Where->Size != 0) {
                Where->Target[Where->Used] = 0;
            }
            return STRSAFE_E_INSUFFICIENT_BUFFER;
        }
        Where->Target[Where->Used++] = from[i];
    }
    if (Where->Size != 0) {
        Where->Target[Where->Used] = 0;
    }
    return S_OK;
}

INTERLOCK_SAFE_CHECK(2, 0)
static inline HRESULT INTERLOCK_SAFE_NAME(InterlockSafePrint)(INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) * Where,
                                                              const INTERLOCK_SAFE_CHAR *Format, va_list Arguments)
{
    int length;
    if (Format == NULL && (Where->Flags & STRSAFE_IGNORE_NULLS) != 0) {
        return INTERLOCK_SAFE_NAME(InterlockSafePut)(Where, NULL, 0);
    }
    if (Where->Size == 0) {
        return *Format == 0 ? S_OK : STRSAFE_E_INSUFFICIENT_BUFFER;
    }
    length = INTERLOCK_SAFE_FORMAT(Where->Target, Where->Size, Format, Arguments);
    if (length < 0 || (size_t)length >= Where->Size) {
        Where->Target[Where->Size - 1] = 0;
        Where->Used = Where->Size - 1;
        return STRSAFE_E_INSUFFICIENT_BUFFER;
    }
    Where->Used = (size_t)length;
    return S_OK;
}

/* Applies the flags, and stores the end of the string and the characters that are left. */
static inline HRESULT INTERLOCK_SAFE_NAME(InterlockSafeFinish)(INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) * Where,
                                                               HRESULT Result, INTERLOCK_SAFE_END,
                                                               size_t *pcchRemaining)
{
    const DWORD flags = Where->Flags;
    if (FAILED(Result) && Where->Size != 0 && Where->Target != NULL && Where->Size <= STRSAFE_MAX_CCH) {
        if ((flags & STRSAFE_FILL_ON_FAILURE) != 0) {
            memset(Where->Target, (int)(flags & 0xFF), Where->Size * sizeof(*Where->Target));
            Where->Used = (flags & 0xFF) != 0 ? Where->Size - 1 : 0;
            Where->Target[Where->Size - 1] = 0;
        }
        if ((flags & (STRSAFE_NULL_ON_FAILURE | STRSAFE_NO_TRUNCATION)) != 0) {
            Where->Used = 0;
            Where->Target[0] = 0;
        }
    } else if (SUCCEEDED(Result) && (flags & STRSAFE_FILL_BEHIND_NULL) != 0 && Where->Size > Where->Used + 1) {
        memset(Where->Target + Where->Used + 1, (int)(flags & 0xFF),
               (Where->Size - Where->Used - 1) * sizeof(*Where->Target));
    }
    if (SUCCEEDED(Result) || Result == STRSAFE_E_INSUFFICIENT_BUFFER) {
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
static inline HRESULT INTERLOCK_SAFE_NAME(InterlockSafeCopy)(INTERLOCK_SAFE_PARAMETERS, BOOL Append,
                                                             const INTERLOCK_SAFE_CHAR *pszSrc, size_t Count,
                                                             INTERLOCK_SAFE_END, size_t *pcchRemaining, DWORD dwFlags)
{
    INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) where = {pszDest, cchDest, 0, dwFlags};
    HRESULT result = INTERLOCK_SAFE_NAME(InterlockSafeBegin)(&where, Append);
    if (SUCCEEDED(result)) {
        result = Count > STRSAFE_MAX_CCH && Count != (size_t)-1
                     ? STRSAFE_E_INVALID_PARAMETER
                     : INTERLOCK_SAFE_NAME(InterlockSafePut)(&where, pszSrc, Count);
    }
    return INTERLOCK_SAFE_NAME(InterlockSafeFinish)(&where, result, ppszDestEnd, pcchRemaining);
}

INTERLOCK_SAFE_CHECK(6, 0)
static inline HRESULT INTERLOCK_SAFE_NAME(StringCchVPrintfEx)(INTERLOCK_SAFE_PARAMETERS, INTERLOCK_SAFE_END,
                                                              size_t *pcchRemaining, DWORD dwFlags,
                                                              const INTERLOCK_SAFE_CHAR *pszFormat, va_list argList)
{
    INTERLOCK_SAFE_NAME(INTERLOCK_SAFE_TARGET) where = {pszDest, cchDest, 0, dwFlags};
    HRESULT result = INTERLOCK_SAFE_NAME(InterlockSafeBegin)(&where, FALSE);
    if (SUCCEEDED(result)) {
        result = INTERLOCK_SAFE_NAME(InterlockSafePrint)(&where, pszFormat, argList);
    }
    return INTERLOCK_SAFE_NAME(InterlockSafeFinish)(&where, result, ppszDestEnd, pcchRemaining);
}

/* Copying and appending: the plain forms, those with a count, and the Ex forms. */
#define INTERLOCK_SAFE_FAMILY(Kind, Append)                                                                            \
    static inline HRESULT INTERLOCK_SAFE_NAME(StringCch##Kind##Ex)(                                                    \
        INTERLOCK_SAFE_PARAMETERS, const INTERLOCK_SAFE_CHAR *pszSrc, INTERLOCK_SAFE_END, size_t *pcchRemaining,       \
        DWORD dwFlags)                                                                                                 \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(InterlockSafeCopy)(pszDest, cchDest, Append, pszSrc, (size_t)-1, ppszDestEnd,       \
                                                      pcchRemaining, dwFlags);                                         \
    }                                                                                                                  \
    static inline HRESULT INTERLOCK_SAFE_NAME(StringCch##Kind##NEx)(                                                   \
        INTERLOCK_SAFE_PARAMETERS, const INTERLOCK_SAFE_CHAR *pszSrc, size_t cchSrc, INTERLOCK_SAFE_END,               \
        size_t *pcchRemaining, DWORD dwFlags)                                                                          \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(InterlockSafeCopy)(pszDest, cchDest, Append, pszSrc, cchSrc, ppszDestEnd,           \
                                                      pcchRemaining, dwFlags);                                         \
    }                                                                                                                  \
    static inline HRESULT INTERLOCK_SAFE_NAME(StringCch##Kind)(INTERLOCK_SAFE_PARAMETERS,                              \
                                                               const INTERLOCK_SAFE_CHAR *pszSrc)                      \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(StringCch##Kind##Ex)(pszDest, cchDest, pszSrc, NULL, NULL, 0);                      \
    }                                                                                                                  \
    static inline HRESULT INTERLOCK_SAFE_NAME(StringCch##Kind##N)(INTERLOCK_SAFE_PARAMETERS,                           \
                                                                  const INTERLOCK_SAFE_CHAR *pszSrc, size_t cchSrc)    \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(StringCch##Kind##NEx)(pszDest, cchDest, pszSrc, cchSrc, NULL, NULL, 0);             \
    }                                                                                                                  \
    static inline HRESULT INTERLOCK_SAFE_NAME(StringCb##Kind##Ex)(                                                     \
        INTERLOCK_SAFE_BYTES, const INTERLOCK_SAFE_CHAR *pszSrc, INTERLOCK_SAFE_END, size_t *pcbRemaining,             \
        DWORD dwFlags)                                                                                                 \
    {                                                                                                                  \
        HRESULT result = INTERLOCK_SAFE_NAME(StringCch##Kind##Ex)(pszDest, cbDest / sizeof(*pszDest), pszSrc,          \
                                                                  ppszDestEnd, pcbRemaining, dwFlags);                 \
        return InterlockSafeBytes(result, pcbRemaining, cbDest, sizeof(*pszDest));                                     \
    }                                                                                                                  \
    static inline HRESULT INTERLOCK_SAFE_NAME(StringCb##Kind##NEx)(                                                    \
        INTERLOCK_SAFE_BYTES, const INTERLOCK_SAFE_CHAR *pszSrc, size_t cbSrc, INTERLOCK_SAFE_END,                     \
        size_t *pcbRemaining, DWORD dwFlags)                                                                           \
    {                                                                                                                  \
        HRESULT result = INTERLOCK_SAFE_NAME(StringCch##Kind##NEx)(pszDest, cbDest / sizeof(*pszDest), pszSrc,         \
                                                                   cbSrc / sizeof(*pszDest), ppszDestEnd,              \
                                                                   pcbRemaining, dwFlags);                             \
        return InterlockSafeBytes(result, pcbRemaining, cbDest, sizeof(*pszDest));                                     \
    }                                                                                                                  \
    static inline HRESULT INTERLOCK_SAFE_NAME(StringCb##Kind)(INTERLOCK_SAFE_BYTES, const INTERLOCK_SAFE_CHAR *pszSrc) \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(StringCb##Kind##Ex)(pszDest, cbDest, pszSrc, NULL, NULL, 0);                        \
    }                                                                                                                  \
    static inline HRESULT INTERLOCK_SAFE_NAME(StringCb##Kind##N)(INTERLOCK_SAFE_BYTES,                                 \
                                                                 const INTERLOCK_SAFE_CHAR *pszSrc, size_t cbSrc)      \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(StringCb##Kind##NEx)(pszDest, cbDest, pszSrc, cbSrc, NULL, NULL, 0);                \
    }

INTERLOCK_SAFE_FAMILY(Copy, FALSE)
INTERLOCK_SAFE_FAMILY(Cat, TRUE)
#undef INTERLOCK_SAFE_FAMILY

INTERLOCK_SAFE_CHECK(6, 0)
static inline HRESULT INTERLOCK_SAFE_NAME(StringCbVPrintfEx)(INTERLOCK_SAFE_BYTES, INTERLOCK_SAFE_END,
                                                             size_t *pcbRemaining, DWORD dwFlags,
                                                             const INTERLOCK_SAFE_CHAR *pszFormat, va_list argList)
{
    HRESULT result = INTERLOCK_SAFE_NAME(StringCchVPrintfEx)(pszDest, cbDest / sizeof(*pszDest), ppszDestEnd,
                                                             pcbRemaining, dwFlags, pszFormat, argList);
    return InterlockSafeBytes(result, pcbRemaining, cbDest, sizeof(*pszDest));
}

/* Formatting, in characters and in bytes. */
#define INTERLOCK_SAFE_FAMILY(Unit, Parameters, Size)                                                                  \
    INTERLOCK_SAFE_CHECK(3, 0)                                                                                         \
    static inline HRESULT INTERLOCK_SAFE_NAME(String##Unit##VPrintf)(                                                  \
        Parameters, const INTERLOCK_SAFE_CHAR *pszFormat, va_list argList)                                             \
    {                                                                                                                  \
        return INTERLOCK_SAFE_NAME(String##Unit##VPrintfEx)(pszDest, Size, NULL, NULL, 0, pszFormat, argList);         \
    }                                                                                                                  \
    INTERLOCK_SAFE_CHECK(3, 4)                                                                                         \
    static inline HRESULT INTERLOCK_SAFE_NAME(String##Unit##Printf)(Parameters, const INTERLOCK_SAFE_CHAR *pszFormat,  \
                                                                    ...)                                               \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        HRESULT result;                                                                                                \
        va_start(arguments, pszFormat);                                                                                \
        result = INTERLOCK_SAFE_NAME(String##Unit##VPrintf)(pszDest, Size, pszFormat, arguments);                      \
        va_end(arguments);                                                                                             \
        return result;                                                                                                 \
    }                                                                                                                  \
    INTERLOCK_SAFE_CHECK(6, 7)                                                                                         \
    static inline HRESULT INTERLOCK_SAFE_NAME(String##Unit##PrintfEx)(                                                 \
        Parameters, INTERLOCK_SAFE_END, size_t *pRemaining, DWORD dwFlags, const INTERLOCK_SAFE_CHAR *pszFormat, ...)  \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        HRESULT result;                                                                                                \
        va_start(arguments, pszFormat);                                                                                \
        result = INTERLOCK_SAFE_NAME(String##Unit##VPrintfEx)(pszDest, Size, ppszDestEnd, pRemaining, dwFlags,         \
                                                              pszFormat, arguments);                                   \
        va_end(arguments);                                                                                             \
        return result;                                                                                                 \
    }

INTERLOCK_SAFE_FAMILY(Cch, INTERLOCK_SAFE_PARAMETERS, cchDest)
INTERLOCK_SAFE_FAMILY(Cb, INTERLOCK_SAFE_BYTES, cbDest)
#undef INTERLOCK_SAFE_FAMILY

static inline HRESULT INTERLOCK_SAFE_NAME(StringCchLength)(const INTERLOCK_SAFE_CHAR *psz, size_t cchMax,
                                                           size_t *pcchLength)
{
    size_t length = 0;
    HRESULT result = psz == NULL || cchMax > STRSAFE_MAX_CCH
                         ? STRSAFE_E_INVALID_PARAMETER
                         : INTERLOCK_SAFE_NAME(InterlockSafeLength)(psz, cchMax, &length);
    if (pcchLength != NULL) {
        *pcchLength = length;
    }
    return result;
}

static inline HRESULT INTERLOCK_SAFE_NAME(StringCbLength)(const INTERLOCK_SAFE_CHAR *psz, size_t cbMax,
                                                          size_t *pcbLength)
{
    HRESULT result = INTERLOCK_SAFE_NAME(StringCchLength)(psz, cbMax / sizeof(*psz), pcbLength);
    if (pcbLength != NULL) {
        *pcbLength *= sizeof(*psz);
    }
    return result;
}

#undef INTERLOCK_SAFE_PARAMETERS
#undef INTERLOCK_SAFE_BYTES
#undef INTERLOCK_SAFE_END

#endif
