/*
 * corecrt.h: what Microsoft's C library has in the standard headers, and the host's has not. windows.h, intrin.h and
 * tchar.h include it. Wide strings have 16-bit characters.
 */
#ifndef INTERLOCK_WIN32_INCLUDE_CORECRT_H
#define INTERLOCK_WIN32_INCLUDE_CORECRT_H

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <interlock/win32/base.h>
#include <interlock/win32/crt.h>

#ifndef STRUNCATE
#define STRUNCATE 80
#endif
#ifndef _TRUNCATE
#define _TRUNCATE ((size_t)-1)
#endif

INTERLOCK_BEGIN

typedef size_t rsize_t;

/* Internal: what a function does with an invalid parameter. */
FORCEINLINE errno_t InterlockInvalidParameter(errno_t Error)
{
    errno = Error;
    _invalid_parameter_noinfo();
    return Error;
}

/* errno. */

FORCEINLINE errno_t _get_errno(int *Value)
{
    if (Value == NULL) {
        return InterlockInvalidParameter(EINVAL);
    }
    *Value = errno;
    return 0;
}

FORCEINLINE errno_t _set_errno(int Value)
{
    errno = Value;
    return 0;
}

/* Strings and formats. */

#define INTERLOCK_CRT_CHAR char
#define INTERLOCK_CRT_NAME(Name) INTERLOCK_CRT_JOIN(str, Name)
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
#undef INTERLOCK_CRT_PRINT
#undef INTERLOCK_CRT_FORMAT
#undef INTERLOCK_CRT_CHECK
#undef INTERLOCK_CRT_PUT
#undef INTERLOCK_CRT_SPAN
#undef INTERLOCK_CRT_BREAK

#define INTERLOCK_CRT_CHAR WCHAR
#define INTERLOCK_CRT_NAME(Name) INTERLOCK_CRT_JOIN(wcs, Name)
#define INTERLOCK_CRT_PRINT(Before, Letters, Name) Before##Letters##w##Name
#define INTERLOCK_CRT_FORMAT InterlockVsnwprintf
#define INTERLOCK_CRT_CHECK(Format, First)
#define INTERLOCK_CRT_PUT InterlockPutWide
#define INTERLOCK_CRT_SPAN InterlockWcsspn
#define INTERLOCK_CRT_BREAK InterlockWcscspn
#include <corecrt_strings.h>
#undef INTERLOCK_CRT_CHAR
#undef INTERLOCK_CRT_NAME
#undef INTERLOCK_CRT_PRINT
#undef INTERLOCK_CRT_FORMAT
#undef INTERLOCK_CRT_CHECK
#undef INTERLOCK_CRT_PUT
#undef INTERLOCK_CRT_SPAN
#undef INTERLOCK_CRT_BREAK

#define _timezone timezone
#define _daylight daylight
#define _tzname tzname

#define printf_s printf
#define fprintf_s fprintf
#define vprintf_s vprintf
#define vfprintf_s vfprintf

/* Memory. */

FORCEINLINE errno_t memcpy_s(void *Target, rsize_t Size, const void *Source, rsize_t Count)
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

FORCEINLINE errno_t memmove_s(void *Target, rsize_t Size, const void *Source, rsize_t Count)
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

FORCEINLINE void *_aligned_malloc(size_t Size, size_t Alignment)
{
    if (Alignment == 0 || (Alignment & (Alignment - 1)) != 0) {
        InterlockInvalidParameter(EINVAL);
        return NULL;
    }
    /* aligned_alloc wants a multiple of the alignment */
    Alignment = Alignment < sizeof(void *) ? sizeof(void *) : Alignment;
    return Size <= (size_t)-1 - Alignment ? aligned_alloc(Alignment, (Size + Alignment - 1) & ~(Alignment - 1)) : NULL;
}

FORCEINLINE void _aligned_free(void *Memory)
{
    free(Memory);
}

FORCEINLINE void *_aligned_realloc(void *Memory, size_t Size, size_t Alignment)
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

/* Files and the environment. */

FORCEINLINE errno_t fopen_s(FILE **Stream, const char *Name, const char *Mode)
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

/* Stores the size of the value, 0 if there is no such variable, and the value if it fits. */
FORCEINLINE errno_t getenv_s(size_t *Needed, char *Buffer, rsize_t Size, const char *Name)
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
    if (length != 0) {
        memcpy(Buffer, value, length);
    }
    return 0;
}

/* A copy of the value for free(); NULL if there is no such variable. */
FORCEINLINE errno_t _dupenv_s(char **Buffer, size_t *Size, const char *Name)
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

FORCEINLINE errno_t strerror_s(char *Buffer, size_t Size, int Error)
{
    if (Buffer == NULL || Size == 0) {
        return InterlockInvalidParameter(EINVAL);
    }
    strncpy_s(Buffer, Size, strerror(Error), _TRUNCATE);
    return 0;
}

/* Numbers in a base from 2 to 36. */

FORCEINLINE errno_t _ui64toa_s(unsigned __int64 Value, char *Buffer, size_t Size, int Radix)
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

FORCEINLINE errno_t _i64toa_s(__int64 Value, char *Buffer, size_t Size, int Radix)
{
    if (Value >= 0 || Radix != 10 || Buffer == NULL || Size < 2) {
        return _ui64toa_s((unsigned __int64)Value, Buffer, Size, Radix);
    }
    Buffer[0] = '-';
    if (_ui64toa_s(0 - (unsigned __int64)Value, Buffer + 1, Size - 1, Radix) == 0) {
        return 0;
    }
    Buffer[0] = 0;
    return ERANGE;
}

FORCEINLINE errno_t _itoa_s(int Value, char *Buffer, size_t Size, int Radix)
{
    return Radix == 10 ? _i64toa_s(Value, Buffer, Size, Radix) : _ui64toa_s((unsigned)Value, Buffer, Size, Radix);
}

FORCEINLINE errno_t _ultoa_s(ULONG Value, char *Buffer, size_t Size, int Radix)
{
    return _ui64toa_s(Value, Buffer, Size, Radix);
}

/* Bits and bytes. */

FORCEINLINE USHORT _byteswap_ushort(USHORT Value)
{
    return __builtin_bswap16(Value);
}

FORCEINLINE ULONG _byteswap_ulong(ULONG Value)
{
    return __builtin_bswap32(Value);
}

FORCEINLINE UINT64 _byteswap_uint64(UINT64 Value)
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
#define INTERLOCK_ROTATE(Left, Right, Type, Bits)                                                                      \
    FORCEINLINE Type Left(Type Value, int Shift)                                                                       \
    {                                                                                                                  \
        return (Type)(Value << (Shift & (Bits - 1)) | Value >> (-Shift & (Bits - 1)));                                 \
    }                                                                                                                  \
    FORCEINLINE Type Right(Type Value, int Shift)                                                                      \
    {                                                                                                                  \
        return (Type)(Value >> (Shift & (Bits - 1)) | Value << (-Shift & (Bits - 1)));                                 \
    }
INTERLOCK_ROTATE(_rotl, _rotr, unsigned int, 32)
INTERLOCK_ROTATE(_lrotl, _lrotr, ULONG, 32)
INTERLOCK_ROTATE(_rotl64, _rotr64, UINT64, 64)

/* A store fence that later loads do not pass. */
FORCEINLINE VOID __faststorefence(VOID)
{
    __sync_synchronize();
}

INTERLOCK_END

#endif
