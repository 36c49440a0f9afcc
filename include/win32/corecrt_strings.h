/*
 * corecrt_strings.h: the string functions that check their parameters, for one kind of character. corecrt.h includes it
 * twice: INTERLOCK_CRT_CHAR is the character, INTERLOCK_CRT_NAME(cpy_s) the name of a function, INTERLOCK_CRT_OWN(lwr) that
 * of one with an underscore, and INTERLOCK_CRT_PRINT(v, s, printf_s) that of one which formats. INTERLOCK_CRT_CHECK lets the compiler check the format.
 *
 * An invalid parameter, and a string that does not fit, go to the handler of invalid parameters. If it returns, the
 * target is empty and the result is the error.
 */
#include <stddef.h> /* a translation unit of this header alone must declare something */

#ifdef INTERLOCK_CRT_CHAR

/* The length of a string, or Size if it does not end within Size characters. */
INTERLOCK_INLINE size_t INTERLOCK_CRT_NAME(nlen_s)(const INTERLOCK_CRT_CHAR *String, size_t Size)
{
    size_t length = 0;
    if (String == NULL) {
        return 0;
    }
    while (length < Size && String[length] != 0) {
        length++;
    }
    return length;
}

/* Puts up to Count characters after the first Used ones, which must leave room for a terminator. */
INTERLOCK_INLINE errno_t INTERLOCK_CRT_PUT(INTERLOCK_CRT_CHAR *Target, size_t Size, size_t Used,
                                        const INTERLOCK_CRT_CHAR *Source, size_t Count)
{
    size_t i, room = Size - Used;
    if (Source == NULL || Used >= Size) {
        Target[0] = 0;
        return InterlockInvalidParameter(EINVAL);
    }
    for (i = 0; i < Count && i < room && Source[i] != 0; i++) {
        Target[Used + i] = Source[i];
    }
    if (i < room) {
        Target[Used + i] = 0;
        return 0;
    }
    if (Count == _TRUNCATE) {
        Target[Size - 1] = 0;
        return STRUNCATE;
    }
    Target[0] = 0;
    return InterlockInvalidParameter(ERANGE);
}

INTERLOCK_INLINE errno_t INTERLOCK_CRT_NAME(cpy_s)(INTERLOCK_CRT_CHAR *Target, rsize_t Size,
                                                const INTERLOCK_CRT_CHAR *Source)
{
    if (Target == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    return INTERLOCK_CRT_PUT(Target, Size, 0, Source, _TRUNCATE - 1);
}

INTERLOCK_INLINE errno_t INTERLOCK_CRT_NAME(ncpy_s)(INTERLOCK_CRT_CHAR *Target, rsize_t Size,
                                                 const INTERLOCK_CRT_CHAR *Source, rsize_t Count)
{
    if (Count == 0 && Target == NULL && Size == 0) {
        return 0;
    }
    if (Target == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    if (Count == 0) {
        Target[0] = 0;
        return 0;
    }
    return INTERLOCK_CRT_PUT(Target, Size, 0, Source, Count);
}

INTERLOCK_INLINE errno_t INTERLOCK_CRT_NAME(cat_s)(INTERLOCK_CRT_CHAR *Target, rsize_t Size,
                                                const INTERLOCK_CRT_CHAR *Source)
{
    if (Target == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    return INTERLOCK_CRT_PUT(Target, Size, INTERLOCK_CRT_NAME(nlen_s)(Target, Size), Source, _TRUNCATE - 1);
}

INTERLOCK_INLINE errno_t INTERLOCK_CRT_NAME(ncat_s)(INTERLOCK_CRT_CHAR *Target, rsize_t Size,
                                                 const INTERLOCK_CRT_CHAR *Source, rsize_t Count)
{
    static const INTERLOCK_CRT_CHAR nothing[1] = {0};
    if (Count == 0 && Target == NULL && Size == 0) {
        return 0;
    }
    if (Target == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    return INTERLOCK_CRT_PUT(Target, Size, INTERLOCK_CRT_NAME(nlen_s)(Target, Size), Count == 0 ? nothing : Source,
                             Count);
}

/* Letters: those of ASCII. */

INTERLOCK_INLINE INTERLOCK_CRT_CHAR *INTERLOCK_CRT_OWN(lwr)(INTERLOCK_CRT_CHAR *String)
{
    INTERLOCK_CRT_CHAR *at;
    for (at = String; *at != 0; at++) {
        *at = (INTERLOCK_CRT_CHAR)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
    }
    return String;
}

INTERLOCK_INLINE INTERLOCK_CRT_CHAR *INTERLOCK_CRT_OWN(upr)(INTERLOCK_CRT_CHAR *String)
{
    INTERLOCK_CRT_CHAR *at;
    for (at = String; *at != 0; at++) {
        *at = (INTERLOCK_CRT_CHAR)(*at >= 'a' && *at <= 'z' ? *at - 32 : *at);
    }
    return String;
}

INTERLOCK_INLINE INTERLOCK_CRT_CHAR *INTERLOCK_CRT_OWN(rev)(INTERLOCK_CRT_CHAR *String)
{
    size_t first = 0, end = INTERLOCK_CRT_NAME(nlen_s)(String, _TRUNCATE);
    for (; first + 1 < end; first++, end--) {
        const INTERLOCK_CRT_CHAR character = String[first];
        String[first] = String[end - 1];
        String[end - 1] = character;
    }
    return String;
}

INTERLOCK_INLINE errno_t INTERLOCK_CRT_OWN(lwr_s)(INTERLOCK_CRT_CHAR *String, size_t Size)
{
    if (String == NULL || INTERLOCK_CRT_NAME(nlen_s)(String, Size) >= Size) {
        return InterlockInvalidParameter(EINVAL);
    }
    INTERLOCK_CRT_OWN(lwr)(String);
    return 0;
}

INTERLOCK_INLINE errno_t INTERLOCK_CRT_OWN(upr_s)(INTERLOCK_CRT_CHAR *String, size_t Size)
{
    if (String == NULL || INTERLOCK_CRT_NAME(nlen_s)(String, Size) >= Size) {
        return InterlockInvalidParameter(EINVAL);
    }
    INTERLOCK_CRT_OWN(upr)(String);
    return 0;
}

/* The next token, and where the search continues; NULL if there is none. */
INTERLOCK_INLINE INTERLOCK_CRT_CHAR *INTERLOCK_CRT_NAME(tok_s)(INTERLOCK_CRT_CHAR *String,
                                                            const INTERLOCK_CRT_CHAR *Delimiters,
                                                            INTERLOCK_CRT_CHAR **Context)
{
    INTERLOCK_CRT_CHAR *token;
    if (Delimiters == NULL || Context == NULL || (String == NULL && *Context == NULL)) {
        InterlockInvalidParameter(EINVAL);
        return NULL;
    }
    token = String != NULL ? String : *Context;
    token += INTERLOCK_CRT_SPAN(token, Delimiters);
    *Context = token + INTERLOCK_CRT_BREAK(token, Delimiters);
    if (**Context != 0) {
        *(*Context)++ = 0;
    }
    return *token != 0 ? token : NULL;
}

INTERLOCK_CRT_CHECK(3, 0)
INTERLOCK_INLINE int INTERLOCK_CRT_PRINT(v, s, printf_s)(INTERLOCK_CRT_CHAR *Target, size_t Size,
                                                      const INTERLOCK_CRT_CHAR *Format, va_list Arguments)
{
    int length;
    if (Target == NULL || Size == 0 || Format == NULL) {
        InterlockInvalidParameter(EINVAL);
        return -1;
    }
    length = INTERLOCK_CRT_FORMAT(Target, Size, Format, Arguments);
    if (length < 0 || (size_t)length >= Size) {
        Target[0] = 0;
        InterlockInvalidParameter(ERANGE);
        return -1;
    }
    return length;
}

INTERLOCK_CRT_CHECK(3, 4)
INTERLOCK_INLINE int INTERLOCK_CRT_PRINT(, s, printf_s)(INTERLOCK_CRT_CHAR *Target, size_t Size,
                                                     const INTERLOCK_CRT_CHAR *Format, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, Format);
    length = INTERLOCK_CRT_PRINT(v, s, printf_s)(Target, Size, Format, arguments);
    va_end(arguments);
    return length;
}

/* The length of the whole text; -1 if it cannot be formatted. */
INTERLOCK_CRT_CHECK(1, 0)
INTERLOCK_INLINE int INTERLOCK_CRT_PRINT(_v, sc, printf)(const INTERLOCK_CRT_CHAR *Format, va_list Arguments)
{
    size_t size;
    for (size = 256; Format != NULL && size <= (size_t)1 << 26; size *= 8) { /* a wide text that does not fit has no length */
        INTERLOCK_CRT_CHAR *text = (INTERLOCK_CRT_CHAR *)malloc(size * sizeof(INTERLOCK_CRT_CHAR));
        va_list copy;
        int length;
        if (text == NULL) {
            return -1;
        }
        __builtin_va_copy(copy, Arguments);
        length = INTERLOCK_CRT_FORMAT(text, size, Format, copy);
        va_end(copy);
        free(text);
        if (length >= 0) {
            return length;
        }
    }
    InterlockInvalidParameter(EINVAL);
    return -1;
}

INTERLOCK_CRT_CHECK(1, 2)
INTERLOCK_INLINE int INTERLOCK_CRT_PRINT(_, sc, printf)(const INTERLOCK_CRT_CHAR *Format, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, Format);
    length = INTERLOCK_CRT_PRINT(_v, sc, printf)(Format, arguments);
    va_end(arguments);
    return length;
}

/* At most Count characters; -1 if the text is longer. It must fit if Count is not below Size, unless _TRUNCATE. */
INTERLOCK_CRT_CHECK(4, 0)
INTERLOCK_INLINE int INTERLOCK_CRT_PRINT(_v, sn, printf_s)(INTERLOCK_CRT_CHAR *Target, size_t Size, size_t Count,
                                                        const INTERLOCK_CRT_CHAR *Format, va_list Arguments)
{
    const size_t room = Count < Size ? Count + 1 : Size;
    int length;
    if (Target == NULL && Size == 0 && Count == 0) {
        return 0;
    }
    if (Count != _TRUNCATE && Count >= Size) {
        return INTERLOCK_CRT_PRINT(v, s, printf_s)(Target, Size, Format, Arguments);
    }
    if (Target == NULL || Size == 0 || Format == NULL) {
        InterlockInvalidParameter(EINVAL);
        return -1;
    }
    length = INTERLOCK_CRT_FORMAT(Target, room, Format, Arguments);
    return length < 0 || (size_t)length >= room ? -1 : length;
}

INTERLOCK_CRT_CHECK(4, 5)
INTERLOCK_INLINE int INTERLOCK_CRT_PRINT(_, sn, printf_s)(INTERLOCK_CRT_CHAR *Target, size_t Size, size_t Count,
                                                       const INTERLOCK_CRT_CHAR *Format, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, Format);
    length = INTERLOCK_CRT_PRINT(_v, sn, printf_s)(Target, Size, Count, Format, arguments);
    va_end(arguments);
    return length;
}

/* C++ takes the size from an array. */
#ifdef __cplusplus
extern "C++" {
template <size_t Size>
inline errno_t INTERLOCK_CRT_NAME(cpy_s)(INTERLOCK_CRT_CHAR (&Target)[Size], const INTERLOCK_CRT_CHAR *Source)
{
    return INTERLOCK_CRT_NAME(cpy_s)(Target, Size, Source);
}

template <size_t Size>
inline errno_t INTERLOCK_CRT_NAME(ncpy_s)(INTERLOCK_CRT_CHAR (&Target)[Size], const INTERLOCK_CRT_CHAR *Source,
                                          rsize_t Count)
{
    return INTERLOCK_CRT_NAME(ncpy_s)(Target, Size, Source, Count);
}

template <size_t Size>
inline errno_t INTERLOCK_CRT_NAME(cat_s)(INTERLOCK_CRT_CHAR (&Target)[Size], const INTERLOCK_CRT_CHAR *Source)
{
    return INTERLOCK_CRT_NAME(cat_s)(Target, Size, Source);
}

template <size_t Size>
inline errno_t INTERLOCK_CRT_NAME(ncat_s)(INTERLOCK_CRT_CHAR (&Target)[Size], const INTERLOCK_CRT_CHAR *Source,
                                          rsize_t Count)
{
    return INTERLOCK_CRT_NAME(ncat_s)(Target, Size, Source, Count);
}

template <size_t Size>
INTERLOCK_CRT_CHECK(2, 0)
inline int INTERLOCK_CRT_PRINT(v, s, printf_s)(INTERLOCK_CRT_CHAR (&Target)[Size], const INTERLOCK_CRT_CHAR *Format,
                                               va_list Arguments)
{
    return INTERLOCK_CRT_PRINT(v, s, printf_s)(Target, Size, Format, Arguments);
}

template <size_t Size>
INTERLOCK_CRT_CHECK(2, 3)
inline int INTERLOCK_CRT_PRINT(, s, printf_s)(INTERLOCK_CRT_CHAR (&Target)[Size], const INTERLOCK_CRT_CHAR *Format, ...)
{
    va_list arguments;
    va_start(arguments, Format);
    int length = INTERLOCK_CRT_PRINT(v, s, printf_s)(Target, Size, Format, arguments);
    va_end(arguments);
    return length;
}

template <size_t Size>
INTERLOCK_CRT_CHECK(3, 0)
inline int INTERLOCK_CRT_PRINT(_v, sn, printf_s)(INTERLOCK_CRT_CHAR (&Target)[Size], size_t Count,
                                                 const INTERLOCK_CRT_CHAR *Format, va_list Arguments)
{
    return INTERLOCK_CRT_PRINT(_v, sn, printf_s)(Target, Size, Count, Format, Arguments);
}

template <size_t Size> inline errno_t INTERLOCK_CRT_OWN(lwr_s)(INTERLOCK_CRT_CHAR (&String)[Size])
{
    return INTERLOCK_CRT_OWN(lwr_s)(String, Size);
}

template <size_t Size> inline errno_t INTERLOCK_CRT_OWN(upr_s)(INTERLOCK_CRT_CHAR (&String)[Size])
{
    return INTERLOCK_CRT_OWN(upr_s)(String, Size);
}

template <size_t Size>
INTERLOCK_CRT_CHECK(3, 4)
inline int INTERLOCK_CRT_PRINT(_, sn, printf_s)(INTERLOCK_CRT_CHAR (&Target)[Size], size_t Count,
                                                const INTERLOCK_CRT_CHAR *Format, ...)
{
    va_list arguments;
    va_start(arguments, Format);
    int length = INTERLOCK_CRT_PRINT(_v, sn, printf_s)(Target, Size, Count, Format, arguments);
    va_end(arguments);
    return length;
}
}
#endif

#endif
