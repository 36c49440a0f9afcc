/*
 * corecrt.h: what Microsoft's C library has in the standard headers and the host's lacks. windows.h, intrin.h and
 * tchar.h include it, and under `interlock cc` stdio.h, stdlib.h, string.h, time.h and wchar.h: a source that includes none
 * of windows.h must not find its types, so there are none here but WCHAR. Wide strings have 16-bit characters.
 */
#ifndef INTERLOCK_WIN32_INCLUDE_CORECRT_H
#define INTERLOCK_WIN32_INCLUDE_CORECRT_H

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <interlock/widestring.h>
#include <interlock/win32/crt.h>

#ifndef STRUNCATE
#define STRUNCATE 80
#endif
#ifndef _TRUNCATE
#define _TRUNCATE ((size_t)-1)
#endif
#ifndef _countof
#define _countof(Array) (sizeof(Array) / sizeof((Array)[0]))
#endif
#ifndef __cplusplus /* names of the standard library's own there; language.h has them for sources that include windows.h */
#define __max(a, b) (((a) > (b)) ? (a) : (b))
#define __min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#define _MAX_PATH 260
#define _MAX_DRIVE 3
#define _MAX_DIR 256
#define _MAX_FNAME 256
#define _MAX_EXT 256

INTERLOCK_BEGIN

#ifndef __cplusplus /* -std=c89 and -std=c99 hide these declarations of the host's headers */
extern long long atoll(const char *Text);
extern long long llabs(long long Value);
extern long long strtoll(const char *Text, char **End, int Base);
extern unsigned long long strtoull(const char *Text, char **End, int Base);
extern void *aligned_alloc(size_t Alignment, size_t Size);
extern int fileno(FILE *Stream);
extern FILE *fdopen(int Descriptor, const char *Mode);
extern FILE *popen(const char *Command, const char *Mode);
extern int pclose(FILE *Stream);
extern int setenv(const char *Name, const char *Value, int Replace);
extern int unsetenv(const char *Name);
extern char *asctime_r(const struct tm *Time, char *Buffer);
extern time_t timegm(struct tm *Time);
#endif

typedef size_t rsize_t;

/* Internal: what a function does with an invalid parameter. */
INTERLOCK_INLINE errno_t InterlockInvalidParameter(errno_t Error)
{
    errno = Error;
    _invalid_parameter_noinfo();
    return Error;
}

/* errno. */

INTERLOCK_INLINE errno_t _get_errno(int *Value)
{
    if (Value == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Value = errno;
    return 0;
}

INTERLOCK_INLINE errno_t _set_errno(int Value)
{
    errno = Value;
    return 0;
}

/* Strings and formats. */

#define INTERLOCK_CRT_CHAR char
#define INTERLOCK_CRT_NAME(Name) INTERLOCK_CRT_JOIN(str, Name)
#define INTERLOCK_CRT_OWN(Name) INTERLOCK_CRT_JOIN(_str, Name)
#define INTERLOCK_CRT_JOIN(First, Second) First##Second
#define INTERLOCK_CRT_PRINT(Before, Letters, Name) Before##Letters##Name
#define INTERLOCK_CRT_FORMAT vsnprintf
#ifdef __INTERLOCK_CC__ /* the formats are Microsoft's, which compilers for other systems do not know */
#define INTERLOCK_CRT_CHECK(Format, First)
#else
#define INTERLOCK_CRT_CHECK(Format, First) __attribute__((format(printf, Format, First)))
#endif
#define INTERLOCK_CRT_PUT InterlockPutNarrow
#define INTERLOCK_CRT_SPAN strspn
#define INTERLOCK_CRT_BREAK strcspn
#include <corecrt_strings.h>
#undef INTERLOCK_CRT_CHAR
#undef INTERLOCK_CRT_NAME
#undef INTERLOCK_CRT_OWN
#undef INTERLOCK_CRT_PRINT
#undef INTERLOCK_CRT_FORMAT
#undef INTERLOCK_CRT_CHECK
#undef INTERLOCK_CRT_PUT
#undef INTERLOCK_CRT_SPAN
#undef INTERLOCK_CRT_BREAK

#define INTERLOCK_CRT_CHAR WCHAR
#define INTERLOCK_CRT_NAME(Name) INTERLOCK_CRT_JOIN(wcs, Name)
#define INTERLOCK_CRT_OWN(Name) INTERLOCK_CRT_JOIN(_wcs, Name)
#define INTERLOCK_CRT_PRINT(Before, Letters, Name) Before##Letters##w##Name
#define INTERLOCK_CRT_FORMAT InterlockVsnwprintf
#define INTERLOCK_CRT_CHECK(Format, First)
#define INTERLOCK_CRT_PUT InterlockPutWide
#define INTERLOCK_CRT_SPAN InterlockWcsspn
#define INTERLOCK_CRT_BREAK InterlockWcscspn
#include <corecrt_strings.h>
#undef INTERLOCK_CRT_CHAR
#undef INTERLOCK_CRT_NAME
#undef INTERLOCK_CRT_OWN
#undef INTERLOCK_CRT_PRINT
#undef INTERLOCK_CRT_FORMAT
#undef INTERLOCK_CRT_CHECK
#undef INTERLOCK_CRT_PUT
#undef INTERLOCK_CRT_SPAN
#undef INTERLOCK_CRT_BREAK

/* Formats into a buffer that is large enough. */

INTERLOCK_INLINE int _vswprintf(WCHAR *Buffer, const WCHAR *Format, va_list Arguments)
{
    return InterlockVsnwprintf(Buffer, 0x7FFFFFFF, Format, Arguments);
}

INTERLOCK_INLINE int _swprintf(WCHAR *Buffer, const WCHAR *Format, ...)
{
    va_list arguments;
    int length;
    va_start(arguments, Format);
    length = _vswprintf(Buffer, Format, arguments);
    va_end(arguments);
    return length;
}

/* Microsoft's names of functions of the host, as functions: sources define macros of these names, and the other way round. */

INTERLOCK_INLINE int _stricmp(const char *First, const char *Second)
{
    return strcasecmp(First, Second);
}

INTERLOCK_INLINE int _strnicmp(const char *First, const char *Second, size_t Count)
{
    return strncasecmp(First, Second, Count);
}

INTERLOCK_INLINE char *_strdup(const char *String)
{
    const size_t size = strlen(String) + 1;
    char *copy = (char *)malloc(size);
    return copy != NULL ? (char *)memcpy(copy, String, size) : NULL;
}

INTERLOCK_INLINE int _memicmp(const void *First, const void *Second, size_t Count)
{
    const unsigned char *first = (const unsigned char *)First, *second = (const unsigned char *)Second;
    size_t i;
    for (i = 0; i < Count; i++) {
        const int one = first[i] >= 'A' && first[i] <= 'Z' ? first[i] + 32 : first[i];
        const int other = second[i] >= 'A' && second[i] <= 'Z' ? second[i] + 32 : second[i];
        if (one != other) {
            return one - other;
        }
    }
    return 0;
}

#ifdef __INTERLOCK_CC__ /* the older names, which a source for Linux may define itself */
INTERLOCK_INLINE int stricmp(const char *First, const char *Second)
{
    return strcasecmp(First, Second);
}

INTERLOCK_INLINE int strcmpi(const char *First, const char *Second)
{
    return strcasecmp(First, Second);
}

INTERLOCK_INLINE int strnicmp(const char *First, const char *Second, size_t Count)
{
    return strncasecmp(First, Second, Count);
}

INTERLOCK_INLINE char *strlwr(char *String)
{
    return _strlwr(String);
}

INTERLOCK_INLINE char *strupr(char *String)
{
    return _strupr(String);
}

INTERLOCK_INLINE char *strrev(char *String)
{
    return _strrev(String);
}
#endif

#define _timezone timezone
#define _daylight daylight
#define _tzname tzname
#define _tzset tzset
#define _time64 time
#define _mktime64 mktime
#define _localtime64 localtime
#define _gmtime64 gmtime
#define _ctime64 ctime
#define _difftime64 difftime
#define _mkgmtime timegm
#define _mkgmtime64 timegm

#define _fileno fileno
#define _fdopen fdopen
#define _popen popen
#define _pclose pclose
#define _fseeki64 fseek /* long has 64 bits */
#define _ftelli64 ftell
#define _flushall() fflush(NULL)

#define _alloca __builtin_alloca
#define _msize malloc_usable_size
#define _aligned_msize(Memory, Alignment, Offset) malloc_usable_size(Memory)
#define _isnan(Value) __builtin_isnan(Value)
#define _finite(Value) __builtin_isfinite(Value)

#define printf_s printf
#define fprintf_s fprintf
#define vprintf_s vprintf
#define vfprintf_s vfprintf

/* Memory. */

INTERLOCK_INLINE errno_t memcpy_s(void *Target, rsize_t Size, const void *Source, rsize_t Count)
{
    if (Count == 0) {
        return 0;
    }
    if (Target == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    if (Source == NULL || Size < Count) {
        memset(Target, 0, Size);
        return InterlockInvalidParameter(Source == NULL ? EINVAL : ERANGE);
    }
    memcpy(Target, Source, Count);
    return 0;
}

INTERLOCK_INLINE errno_t memmove_s(void *Target, rsize_t Size, const void *Source, rsize_t Count)
{
    if (Count == 0) {
        return 0;
    }
    if (Target == NULL || Source == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    if (Size < Count) {
        return InterlockInvalidParameter(ERANGE);
    }
    memmove(Target, Source, Count);
    return 0;
}

/* Aligned blocks. Here they are blocks of the host's heap, which free() frees too. */

INTERLOCK_INLINE void *_aligned_malloc(size_t Size, size_t Alignment)
{
    if (Alignment == 0 || (Alignment & (Alignment - 1)) != 0) {
        InterlockInvalidParameter(EINVAL);
        return NULL;
    }
    /* aligned_alloc wants a multiple of the alignment */
    Alignment = Alignment < sizeof(void *) ? sizeof(void *) : Alignment;
    return Size <= (size_t)-1 - Alignment ? aligned_alloc(Alignment, (Size + Alignment - 1) & ~(Alignment - 1)) : NULL;
}

INTERLOCK_INLINE void _aligned_free(void *Memory)
{
    free(Memory);
}

INTERLOCK_INLINE void *_aligned_realloc(void *Memory, size_t Size, size_t Alignment)
{
    void *block;
    if (Memory != NULL && Size == 0) {
        free(Memory);
        return NULL;
    }
    block = _aligned_malloc(Size, Alignment);
    if (block != NULL && Memory != NULL) {
        const size_t old = malloc_usable_size(Memory);
        memcpy(block, Memory, old < Size ? old : Size);
        free(Memory);
    }
    return block;
}

/* Dates. */

/* 26 characters; the weekday and the month must be valid. */
INTERLOCK_INLINE errno_t asctime_s(char *Buffer, size_t Size, const struct tm *Time)
{
    if (Buffer == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    Buffer[0] = 0;
    if (Size < 26 || Time == NULL || Time->tm_year < 0 || Time->tm_year > 8099 || Time->tm_mon < 0 || Time->tm_mon > 11 ||
        Time->tm_mday < 1 || Time->tm_mday > 31 || Time->tm_hour < 0 || Time->tm_hour > 23 || Time->tm_min < 0 ||
        Time->tm_min > 59 || Time->tm_sec < 0 || Time->tm_sec > 60 || Time->tm_wday < 0 || Time->tm_wday > 6) {
        return InterlockInvalidParameter(EINVAL);
    }
    asctime_r(Time, Buffer);
    return 0;
}

INTERLOCK_INLINE errno_t ctime_s(char *Buffer, size_t Size, const time_t *Time)
{
    struct tm date;
    if (Buffer == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    Buffer[0] = 0;
    if (Size < 26 || Time == NULL || *Time < 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    return localtime_s(&date, Time) == 0 ? asctime_s(Buffer, Size, &date) : EINVAL;
}

#define _ctime64_s ctime_s

/* Files and the environment. */

INTERLOCK_INLINE errno_t fopen_s(FILE **Stream, const char *Name, const char *Mode)
{
    if (Stream == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Stream = NULL;
    if (Name == NULL || Mode == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Stream = fopen(Name, Mode);
    return *Stream != NULL ? 0 : errno;
}

/* The stream is closed even if the file cannot be opened. */
INTERLOCK_INLINE errno_t freopen_s(FILE **Result, const char *Name, const char *Mode, FILE *Stream)
{
    if (Result == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Result = NULL;
    if (Name == NULL || Name[0] == 0 || Mode == NULL || Stream == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Result = freopen(Name, Mode, Stream);
    return *Result != NULL ? 0 : errno;
}

INTERLOCK_INLINE errno_t tmpfile_s(FILE **Stream)
{
    if (Stream == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Stream = tmpfile();
    return *Stream != NULL ? 0 : errno;
}

INTERLOCK_INLINE errno_t clearerr_s(FILE *Stream)
{
    if (Stream == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    clearerr(Stream);
    return 0;
}

/* fread into a buffer of Size bytes, which must take all that is asked for. */
INTERLOCK_INLINE size_t fread_s(void *Buffer, size_t Size, size_t ElementSize, size_t Count, FILE *Stream)
{
    if (ElementSize == 0 || Count == 0) {
        return 0;
    }
    if (Buffer == NULL || Stream == NULL || Count > Size / ElementSize) {
        if (Buffer != NULL) {
            memset(Buffer, 0, Size);
        }
        InterlockInvalidParameter(Buffer == NULL || Stream == NULL ? EINVAL : ERANGE);
        return 0;
    }
    return fread(Buffer, ElementSize, Count, Stream);
}

/* A line of standard input, without its end; NULL at the end of the input. A line that does not fit is refused. */
INTERLOCK_INLINE char *gets_s(char *Buffer, rsize_t Size)
{
    size_t length = 0;
    int next = 0;
    if (Buffer == NULL || Size == 0) {
        InterlockInvalidParameter(EINVAL);
        return NULL;
    }
    while ((next = getchar()) != EOF && next != '\n') {
        if (length < Size) {
            Buffer[length] = (char)next;
        }
        length += 1;
    }
    if (length >= Size || (next == EOF && length == 0)) {
        Buffer[0] = 0;
        if (length >= Size) {
            InterlockInvalidParameter(ERANGE);
        }
        return NULL;
    }
    Buffer[length] = 0;
    return Buffer;
}

/* An empty value removes the variable. */
INTERLOCK_INLINE errno_t _putenv_s(const char *Name, const char *Value)
{
    if (Name == NULL || Value == NULL || Name[0] == 0 || strchr(Name, '=') != NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    return (Value[0] != 0 ? setenv(Name, Value, 1) : unsetenv(Name)) == 0 ? 0 : errno;
}

/* NAME=VALUE; the text is copied. */
INTERLOCK_INLINE int _putenv(const char *Text)
{
    char *name = Text != NULL ? _strdup(Text) : NULL, *equals = name != NULL ? strchr(name, '=') : NULL;
    errno_t error = EINVAL;
    if (equals != NULL) {
        *equals = 0;
        error = _putenv_s(name, equals + 1);
    }
    free(name);
    return error == 0 ? 0 : -1;
}

/* Stores the size of the value, 0 if there is no such variable, and the value if it fits. */
INTERLOCK_INLINE errno_t getenv_s(size_t *Needed, char *Buffer, rsize_t Size, const char *Name)
{
    const char *value = Name != NULL ? getenv(Name) : NULL;
    const size_t length = value != NULL ? strlen(value) + 1 : 0;
    if (Needed == NULL || Name == NULL || (Buffer == NULL) != (Size == 0)) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Needed = length;
    if (Buffer != NULL) {
        Buffer[0] = 0;
    }
    if (length > Size) {
        return Size == 0 ? 0 : ERANGE;
    }
    if (length != 0 && Buffer != NULL) {
        memcpy(Buffer, value, length);
    }
    return 0;
}

/* A copy of the value for free(); NULL if there is no such variable. */
INTERLOCK_INLINE errno_t _dupenv_s(char **Buffer, size_t *Size, const char *Name)
{
    const char *value;
    size_t length;
    if (Buffer == NULL || Name == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    value = getenv(Name);
    length = value != NULL ? strlen(value) + 1 : 0;
    *Buffer = length != 0 ? (char *)malloc(length) : NULL;
    if (Size != NULL) {
        *Size = *Buffer != NULL ? length : 0;
    }
    if (*Buffer == NULL) {
        return length != 0 ? ENOMEM : 0;
    }
    memcpy(*Buffer, value, length);
    return 0;
}

INTERLOCK_INLINE errno_t strerror_s(char *Buffer, size_t Size, int Error)
{
    if (Buffer == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    strncpy_s(Buffer, Size, strerror(Error), _TRUNCATE);
    return 0;
}

/* Numbers in a base from 2 to 36. */

INTERLOCK_INLINE errno_t _ui64toa_s(unsigned long long Value, char *Buffer, size_t Size, int Radix)
{
    char digits[65];
    size_t first = sizeof(digits) - 1;
    if (Buffer == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    Buffer[0] = 0;
    if (Radix < 2 || Radix > 36) {
        return InterlockInvalidParameter(EINVAL);
    }
    digits[first] = 0;
    do {
        digits[--first] = "0123456789abcdefghijklmnopqrstuvwxyz"[Value % (unsigned)Radix];
        Value /= (unsigned)Radix;
    } while (Value != 0);
    return strcpy_s(Buffer, Size, digits + first);
}

INTERLOCK_INLINE errno_t _i64toa_s(long long Value, char *Buffer, size_t Size, int Radix)
{
    if (Value >= 0 || Radix != 10 || Buffer == NULL || Size < 2) {
        return _ui64toa_s((unsigned long long)Value, Buffer, Size, Radix);
    }
    Buffer[0] = '-';
    if (_ui64toa_s(0 - (unsigned long long)Value, Buffer + 1, Size - 1, Radix) == 0) {
        return 0;
    }
    Buffer[0] = 0;
    return ERANGE;
}

INTERLOCK_INLINE errno_t _itoa_s(int Value, char *Buffer, size_t Size, int Radix)
{
    return Radix == 10 ? _i64toa_s(Value, Buffer, Size, Radix) : _ui64toa_s((unsigned)Value, Buffer, Size, Radix);
}

INTERLOCK_INLINE errno_t _ltoa_s(int Value, char *Buffer, size_t Size, int Radix)
{
    return _itoa_s(Value, Buffer, Size, Radix);
}

INTERLOCK_INLINE errno_t _ultoa_s(unsigned int Value, char *Buffer, size_t Size, int Radix)
{
    return _ui64toa_s(Value, Buffer, Size, Radix);
}

/* Into a buffer that is large enough; 65 characters always are. */

INTERLOCK_INLINE char *_itoa(int Value, char *Buffer, int Radix)
{
    _itoa_s(Value, Buffer, 65, Radix);
    return Buffer;
}

INTERLOCK_INLINE char *_ltoa(int Value, char *Buffer, int Radix)
{
    return _itoa(Value, Buffer, Radix);
}

INTERLOCK_INLINE char *_ultoa(unsigned int Value, char *Buffer, int Radix)
{
    _ultoa_s(Value, Buffer, 65, Radix);
    return Buffer;
}

INTERLOCK_INLINE char *_i64toa(long long Value, char *Buffer, int Radix)
{
    _i64toa_s(Value, Buffer, 65, Radix);
    return Buffer;
}

INTERLOCK_INLINE char *_ui64toa(unsigned long long Value, char *Buffer, int Radix)
{
    _ui64toa_s(Value, Buffer, 65, Radix);
    return Buffer;
}

INTERLOCK_INLINE errno_t _itow_s(int Value, WCHAR *Buffer, size_t Size, int Radix)
{
    char digits[65];
    errno_t error = _itoa_s(Value, digits, sizeof(digits), Radix);
    size_t i;
    if (error != 0 || Buffer == NULL || Size <= strlen(digits)) {
        if (Buffer != NULL && Size != 0) {
            Buffer[0] = 0;
        }
        return error != 0 ? error : InterlockInvalidParameter(Buffer == NULL || Size == 0 ? EINVAL : ERANGE);
    }
    for (i = 0; i <= strlen(digits); i++) {
        Buffer[i] = (WCHAR)digits[i];
    }
    return 0;
}

INTERLOCK_INLINE WCHAR *_itow(int Value, WCHAR *Buffer, int Radix)
{
    _itow_s(Value, Buffer, 65, Radix);
    return Buffer;
}

#ifdef __INTERLOCK_CC__
INTERLOCK_INLINE char *itoa(int Value, char *Buffer, int Radix)
{
    return _itoa(Value, Buffer, Radix);
}

INTERLOCK_INLINE char *ltoa(int Value, char *Buffer, int Radix)
{
    return _itoa(Value, Buffer, Radix);
}

INTERLOCK_INLINE char *ultoa(unsigned int Value, char *Buffer, int Radix)
{
    return _ultoa(Value, Buffer, Radix);
}
#endif

#define _atoi64 atoll
#define _strtoi64 strtoll
#define _strtoui64 strtoull
#define _abs64 llabs

INTERLOCK_INLINE long long _wcstoi64(const WCHAR *String, WCHAR **End, int Radix)
{
    return InterlockWcstol(String, End, Radix); /* long has 64 bits */
}

INTERLOCK_INLINE unsigned long long _wcstoui64(const WCHAR *String, WCHAR **End, int Radix)
{
    return InterlockWcstoul(String, End, Radix);
}

INTERLOCK_INLINE long long _wtoi64(const WCHAR *String)
{
    return InterlockWcstol(String, NULL, 10);
}

INTERLOCK_INLINE int _wtol(const WCHAR *String)
{
    return (int)InterlockWcstol(String, NULL, 10);
}

INTERLOCK_INLINE double _wtof(const WCHAR *String)
{
    char text[400];
    size_t i;
    for (i = 0; i < sizeof(text) - 1 && String[i] != 0 && String[i] < 128; i++) {
        text[i] = (char)String[i];
    }
    text[i] = 0;
    return strtod(text, NULL);
}

/* Narrow strings, which are in UTF-8, and wide ones. */

/* Internal: the converted string, for free(); NULL: it has an invalid character. */
INTERLOCK_INLINE void *InterlockConvert(const void *Source, int IsWide, size_t *Length)
{
    extern int MultiByteToWideChar(unsigned int CodePage, unsigned int Flags, const char *Narrow, int NarrowSize, WCHAR *Wide,
                                   int WideSize);
    extern int WideCharToMultiByte(unsigned int CodePage, unsigned int Flags, const WCHAR *Wide, int WideSize, char *Narrow,
                                   int NarrowSize, const char *Default, int *UsedDefault);
    const int size = IsWide ? WideCharToMultiByte(65001, 0x80, (const WCHAR *)Source, -1, NULL, 0, NULL, NULL)
                            : MultiByteToWideChar(65001, 0x8, (const char *)Source, -1, NULL, 0);
    void *text = size > 0 ? malloc((size_t)size * sizeof(WCHAR)) : NULL;
    if (text == NULL) {
        return NULL;
    }
    if (IsWide) {
        WideCharToMultiByte(65001, 0x80, (const WCHAR *)Source, -1, (char *)text, size, NULL, NULL);
    } else {
        MultiByteToWideChar(65001, 0x8, (const char *)Source, -1, (WCHAR *)text, size);
    }
    *Length = (size_t)size - 1;
    return text;
}

/* How much of a converted string to store: Count at most, but all that fits with _TRUNCATE. */
INTERLOCK_INLINE errno_t InterlockFitConverted(size_t *Length, size_t Size, size_t Count)
{
    if (Count != _TRUNCATE && *Length > Count) {
        *Length = Count;
    }
    if (*Length < Size) {
        return 0;
    }
    *Length = Size - 1;
    return Count == _TRUNCATE ? STRUNCATE : ERANGE;
}

/* Stores at most Count characters and a terminator, and the number of both. Without a buffer it stores the size that is
   needed. A string that does not fit is refused, or with _TRUNCATE cut off. */
INTERLOCK_INLINE errno_t mbstowcs_s(size_t *Converted, WCHAR *Wide, size_t Size, const char *Narrow, size_t Count)
{
    size_t length = 0;
    WCHAR *text;
    errno_t error;
    if (Converted != NULL) {
        *Converted = 0;
    }
    if (Wide != NULL && Size != 0) {
        Wide[0] = 0;
    }
    if (Narrow == NULL || (Wide == NULL) != (Size == 0)) {
        return InterlockInvalidParameter(EINVAL);
    }
    text = (WCHAR *)InterlockConvert(Narrow, 0, &length);
    if (text == NULL) {
        return errno = EILSEQ;
    }
    error = Wide != NULL ? InterlockFitConverted(&length, Size, Count) : 0;
    if (Wide != NULL && error != ERANGE) {
        memcpy(Wide, text, length * sizeof(WCHAR));
        Wide[length] = 0;
    }
    free(text);
    if (error == ERANGE) {
        return InterlockInvalidParameter(ERANGE);
    }
    if (Converted != NULL) {
        *Converted = length + 1;
    }
    return error;
}

INTERLOCK_INLINE errno_t wcstombs_s(size_t *Converted, char *Narrow, size_t Size, const WCHAR *Wide, size_t Count)
{
    size_t length = 0;
    char *text;
    errno_t error;
    if (Converted != NULL) {
        *Converted = 0;
    }
    if (Narrow != NULL && Size != 0) {
        Narrow[0] = 0;
    }
    if (Wide == NULL || (Narrow == NULL) != (Size == 0)) {
        return InterlockInvalidParameter(EINVAL);
    }
    text = (char *)InterlockConvert(Wide, 1, &length);
    if (text == NULL) {
        return errno = EILSEQ;
    }
    error = Narrow != NULL ? InterlockFitConverted(&length, Size, Count) : 0;
    while (Narrow != NULL && length != 0 && ((unsigned char)text[length] & 0xC0) == 0x80) {
        length -= 1; /* no part of a character */
    }
    if (Narrow != NULL && error != ERANGE) {
        memcpy(Narrow, text, length);
        Narrow[length] = 0;
    }
    free(text);
    if (error == ERANGE) {
        return InterlockInvalidParameter(ERANGE);
    }
    if (Converted != NULL) {
        *Converted = length + 1;
    }
    return error;
}

INTERLOCK_INLINE FILE *_wfopen(const WCHAR *Name, const WCHAR *Mode)
{
    size_t length;
    char *name = (char *)InterlockConvert(Name, 1, &length), *mode = (char *)InterlockConvert(Mode, 1, &length);
    FILE *stream = name != NULL && mode != NULL ? fopen(name, mode) : NULL;
    const int error = name != NULL && mode != NULL ? errno : EINVAL;
    free(name);
    free(mode);
    errno = stream != NULL ? errno : error;
    return stream;
}

INTERLOCK_INLINE errno_t _wfopen_s(FILE **Stream, const WCHAR *Name, const WCHAR *Mode)
{
    if (Stream == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Stream = NULL;
    if (Name == NULL || Mode == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Stream = _wfopen(Name, Mode);
    return *Stream != NULL ? 0 : errno;
}

/* C++ takes the size from an array. */
#ifdef __cplusplus
extern "C++" {
template <size_t Size> inline errno_t _itoa_s(int Value, char (&Buffer)[Size], int Radix)
{
    return _itoa_s(Value, Buffer, Size, Radix);
}

template <size_t Size> inline errno_t _i64toa_s(long long Value, char (&Buffer)[Size], int Radix)
{
    return _i64toa_s(Value, Buffer, Size, Radix);
}

template <size_t Size> inline errno_t asctime_s(char (&Buffer)[Size], const struct tm *Time)
{
    return asctime_s(Buffer, Size, Time);
}

template <size_t Size> inline errno_t ctime_s(char (&Buffer)[Size], const time_t *Time)
{
    return ctime_s(Buffer, Size, Time);
}

template <size_t Size>
inline errno_t mbstowcs_s(size_t *Converted, WCHAR (&Wide)[Size], const char *Narrow, size_t Count)
{
    return mbstowcs_s(Converted, Wide, Size, Narrow, Count);
}

template <size_t Size>
inline errno_t wcstombs_s(size_t *Converted, char (&Narrow)[Size], const WCHAR *Wide, size_t Count)
{
    return wcstombs_s(Converted, Narrow, Size, Wide, Count);
}
}
#endif

/* Bits and bytes. */

INTERLOCK_INLINE unsigned short _byteswap_ushort(unsigned short Value)
{
    return __builtin_bswap16(Value);
}

INTERLOCK_INLINE unsigned int _byteswap_ulong(unsigned int Value)
{
    return __builtin_bswap32(Value);
}

INTERLOCK_INLINE unsigned long long _byteswap_uint64(unsigned long long Value)
{
    return __builtin_bswap64(Value);
}

#undef _rotl
#undef _rotr
#undef _lrotl
#undef _lrotr
/* clang with Microsoft's extensions has these itself, and refuses to see them defined: here they have another name. */
#if defined(__clang__) && defined(__has_builtin)
#if __has_builtin(_rotl)
#define _rotl8 InterlockRotl8
#define _rotr8 InterlockRotr8
#define _rotl16 InterlockRotl16
#define _rotr16 InterlockRotr16
#define _rotl InterlockRotl
#define _rotr InterlockRotr
#define _rotl64 InterlockRotl64
#define _rotr64 InterlockRotr64
#define _lrotl InterlockLrotl
#define _lrotr InterlockLrotr
#define __faststorefence InterlockFaststorefence
#define __iso_volatile_load8 InterlockIsoVolatileLoad8
#define __iso_volatile_load16 InterlockIsoVolatileLoad16
#define __iso_volatile_load32 InterlockIsoVolatileLoad32
#define __iso_volatile_load64 InterlockIsoVolatileLoad64
#define __iso_volatile_store8 InterlockIsoVolatileStore8
#define __iso_volatile_store16 InterlockIsoVolatileStore16
#define __iso_volatile_store32 InterlockIsoVolatileStore32
#define __iso_volatile_store64 InterlockIsoVolatileStore64
#define __popcnt InterlockPopcnt
#define __popcnt16 InterlockPopcnt16
#define __popcnt64 InterlockPopcnt64
#define __lzcnt InterlockLzcnt
#define _umul128 InterlockUmul128
#define _mul128 InterlockMul128
#define __umulh InterlockUmulh
#define __mulh InterlockMulh
#define __shiftleft128 InterlockShiftleft128
#define __shiftright128 InterlockShiftright128
#define __stosb InterlockStosb
#define __fastfail InterlockFastfail
#endif
#endif
#define INTERLOCK_ROTATE(Left, Right, Type, Bits, Count)                                                               \
    INTERLOCK_INLINE Type Left(Type Value, Count Shift)                                                                \
    {                                                                                                                  \
        return (Type)(Value << (Shift & (Bits - 1)) | Value >> (-Shift & (Bits - 1)));                                 \
    }                                                                                                                  \
    INTERLOCK_INLINE Type Right(Type Value, Count Shift)                                                               \
    {                                                                                                                  \
        return (Type)(Value >> (Shift & (Bits - 1)) | Value << (-Shift & (Bits - 1)));                                 \
    }
INTERLOCK_ROTATE(_rotl8, _rotr8, unsigned char, 8, unsigned char)
INTERLOCK_ROTATE(_rotl16, _rotr16, unsigned short, 16, unsigned char)
INTERLOCK_ROTATE(_rotl, _rotr, unsigned int, 32, int)
INTERLOCK_ROTATE(_lrotl, _lrotr, unsigned int, 32, int)
INTERLOCK_ROTATE(_rotl64, _rotr64, unsigned long long, 64, int)

/* A store fence that later loads do not pass. */
INTERLOCK_INLINE void __faststorefence(void)
{
    __sync_synchronize();
}

INTERLOCK_END

#endif
