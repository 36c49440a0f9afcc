/*
 * rtlinteger.h: integers and blocks of memory for drivers. Byte order, unaligned integers, 64-bit arithmetic by name, memory
 * filled and compared by words. All of it at any IRQL; ntintsafe.h has arithmetic that checks for overflow.
 */
#ifndef INTERLOCK_RTLINTEGER_H
#define INTERLOCK_RTLINTEGER_H

#include <interlock/interlocked.h>
#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/* Byte order. */

/* Returns the integer with its bytes in the opposite order. Since XP. */
FORCEINLINE USHORT RtlUshortByteSwap(USHORT Source)
{
    return __builtin_bswap16(Source);
}
FORCEINLINE ULONG RtlUlongByteSwap(ULONG Source)
{
    return __builtin_bswap32(Source);
}
FORCEINLINE ULONGLONG RtlUlonglongByteSwap(ULONGLONG Source)
{
    return __builtin_bswap64(Source);
}

/* Unaligned integers. */

#define RtlStoreUshort(Address, Value)                                                                                 \
    do {                                                                                                               \
        const USHORT interlockValue = (USHORT)(Value);                                                                 \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlong(Address, Value)                                                                                  \
    do {                                                                                                               \
        const ULONG interlockValue = (ULONG)(Value);                                                                   \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlonglong(Address, Value)                                                                              \
    do {                                                                                                               \
        const ULONGLONG interlockValue = (ULONGLONG)(Value);                                                           \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlongPtr(Address, Value)                RtlStoreUlonglong(Address, Value)
#define RtlRetrieveUshort(DestAddress, SourceAddress)   memcpy((DestAddress), (SourceAddress), sizeof(USHORT))
#define RtlRetrieveUlong(DestAddress, SourceAddress)    memcpy((DestAddress), (SourceAddress), sizeof(ULONG))

/* Sizes and pointers, rounded to the size of a type. ntdef.h has the forms with a number. */

#define ALIGN_DOWN(Length, Type)                  ALIGN_DOWN_BY(Length, sizeof(Type))
#define ALIGN_UP(Length, Type)                    ALIGN_UP_BY(Length, sizeof(Type))
#define ALIGN_DOWN_POINTER_BY(Address, Alignment) ((PVOID)ALIGN_DOWN_BY(Address, Alignment))
#define ALIGN_UP_POINTER_BY(Address, Alignment)   ((PVOID)ALIGN_UP_BY(Address, Alignment))
#define ALIGN_DOWN_POINTER(Address, Type)         ALIGN_DOWN_POINTER_BY(Address, sizeof(Type))
#define ALIGN_UP_POINTER(Address, Type)           ALIGN_UP_POINTER_BY(Address, sizeof(Type))
#define ROUND_TO_SIZE(Length, Alignment)          (((Length) + ((Alignment)-1)) & ~((Alignment)-1))

/* Bits of shared flags. */

#define RtlInterlockedSetBits(Flags, Flag)                 InterlockedOr((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedAndBits(Flags, Flag)                 InterlockedAnd((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedClearBits(Flags, Flag)               RtlInterlockedAndBits((Flags), ~(Flag))
#define RtlInterlockedXorBits(Flags, Flag)                 InterlockedXor((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedSetBitsDiscardReturn(Flags, Flag)    ((void)RtlInterlockedSetBits((Flags), (Flag)))
#define RtlInterlockedAndBitsDiscardReturn(Flags, Flag)    ((void)RtlInterlockedAndBits((Flags), (Flag)))
#define RtlInterlockedClearBitsDiscardReturn(Flags, Flag)  ((void)RtlInterlockedClearBits((Flags), (Flag)))

/* Locally unique identifiers. */

#define RtlEqualLuid(Luid1, Luid2)                                                                                     \
    ((BOOLEAN)((Luid1)->LowPart == (Luid2)->LowPart && (Luid1)->HighPart == (Luid2)->HighPart))
#define RtlIsZeroLuid(Luid) ((BOOLEAN)((Luid)->LowPart == 0 && (Luid)->HighPart == 0))

/* 64-bit integers. Arithmetic wraps around. */

/* Internal: a LARGE_INTEGER of the value. */
FORCEINLINE LARGE_INTEGER InterlockLargeInteger(ULONGLONG Value)
{
    LARGE_INTEGER result;
    result.QuadPart = (LONGLONG)Value;
    return result;
}

/* Returns the integer as a LARGE_INTEGER. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlConvertLongToLargeInteger(LONG SignedInteger)
{
    return InterlockLargeInteger((ULONGLONG)(LONGLONG)SignedInteger);
}
FORCEINLINE LARGE_INTEGER RtlConvertUlongToLargeInteger(ULONG UnsignedInteger)
{
    return InterlockLargeInteger(UnsignedInteger);
}

/* Adds, subtracts, negates. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerAdd(LARGE_INTEGER Addend1, LARGE_INTEGER Addend2)
{
    return InterlockLargeInteger((ULONGLONG)Addend1.QuadPart + (ULONGLONG)Addend2.QuadPart);
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerSubtract(LARGE_INTEGER Minuend, LARGE_INTEGER Subtrahend)
{
    return InterlockLargeInteger((ULONGLONG)Minuend.QuadPart - (ULONGLONG)Subtrahend.QuadPart);
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerNegate(LARGE_INTEGER Subtrahend)
{
    return InterlockLargeInteger(0 - (ULONGLONG)Subtrahend.QuadPart);
}

/* Shifts by ShiftCount modulo 64; the arithmetic shift keeps the sign. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerShiftLeft(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)LargeInteger.QuadPart << (ShiftCount & 63));
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerShiftRight(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)LargeInteger.QuadPart >> (ShiftCount & 63));
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerArithmeticShift(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)(LargeInteger.QuadPart >> (ShiftCount & 63)));
}

/* Multiplies two 32-bit integers to 64 bits. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlEnlargedIntegerMultiply(LONG Multiplicand, LONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)((LONGLONG)Multiplicand * Multiplier));
}
FORCEINLINE LARGE_INTEGER RtlEnlargedUnsignedMultiply(ULONG Multiplicand, ULONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)Multiplicand * Multiplier);
}

/* Multiplies a 64-bit and a 32-bit integer. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlExtendedIntegerMultiply(LARGE_INTEGER Multiplicand, LONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)Multiplicand.QuadPart * (ULONGLONG)(LONGLONG)Multiplier);
}

/* Divides, and stores the remainder unless the pointer is NULL. A divisor of 0 is the processor's exception. Since NT
   3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerDivide(LARGE_INTEGER Dividend, LARGE_INTEGER Divisor, PLARGE_INTEGER Remainder)
{
    if (Remainder != NULL)
        Remainder->QuadPart = Dividend.QuadPart % Divisor.QuadPart;
    return InterlockLargeInteger((ULONGLONG)(Dividend.QuadPart / Divisor.QuadPart));
}
FORCEINLINE LARGE_INTEGER RtlExtendedLargeIntegerDivide(LARGE_INTEGER Dividend, ULONG Divisor, PULONG Remainder)
{
    if (Remainder != NULL)
        *Remainder = (ULONG)((ULONGLONG)Dividend.QuadPart % Divisor);
    return InterlockLargeInteger((ULONGLONG)Dividend.QuadPart / Divisor);
}
FORCEINLINE ULONG RtlEnlargedUnsignedDivide(ULARGE_INTEGER Dividend, ULONG Divisor, PULONG Remainder)
{
    if (Remainder != NULL)
        *Remainder = (ULONG)(Dividend.QuadPart % Divisor);
    return (ULONG)(Dividend.QuadPart / Divisor);
}

/* Divides by a constant: multiplies by its 64-bit reciprocal, takes the upper half and shifts it. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlExtendedMagicDivide(LARGE_INTEGER Dividend, LARGE_INTEGER MagicDivisor, CCHAR ShiftCount)
{
    __extension__ typedef unsigned __int128 wide;
    const ULONGLONG magnitude = Dividend.QuadPart < 0 ? 0 - (ULONGLONG)Dividend.QuadPart : (ULONGLONG)Dividend.QuadPart;
    const ULONGLONG high = (ULONGLONG)(((wide)magnitude * (ULONGLONG)MagicDivisor.QuadPart) >> 64);
    const ULONGLONG result = high >> (ShiftCount & 63);
    return InterlockLargeInteger(Dividend.QuadPart < 0 ? 0 - result : result);
}

#define RtlLargeIntegerAnd(Result, Source, Mask)      ((Result).QuadPart = (Source).QuadPart & (Mask).QuadPart)
#define RtlLargeIntegerEqualTo(X, Y)                  ((X).QuadPart == (Y).QuadPart)
#define RtlLargeIntegerNotEqualTo(X, Y)               ((X).QuadPart != (Y).QuadPart)
#define RtlLargeIntegerGreaterThan(X, Y)              ((X).QuadPart > (Y).QuadPart)
#define RtlLargeIntegerGreaterThanOrEqualTo(X, Y)     ((X).QuadPart >= (Y).QuadPart)
#define RtlLargeIntegerLessThan(X, Y)                 ((X).QuadPart < (Y).QuadPart)
#define RtlLargeIntegerLessThanOrEqualTo(X, Y)        ((X).QuadPart <= (Y).QuadPart)
#define RtlLargeIntegerEqualToZero(X)                 ((X).QuadPart == 0)
#define RtlLargeIntegerNotEqualToZero(X)              ((X).QuadPart != 0)
#define RtlLargeIntegerGreaterThanZero(X)             ((X).QuadPart > 0)
#define RtlLargeIntegerGreaterOrEqualToZero(X)        ((X).QuadPart >= 0)
#define RtlLargeIntegerLessThanZero(X)                ((X).QuadPart < 0)
#define RtlLargeIntegerLessOrEqualToZero(X)           ((X).QuadPart <= 0)

/* Memory by words. */

/* Fills memory with a pattern; what makes no whole word at the end is left alone. Since NT 3.1, XP. */
NTSYSAPI VOID RtlFillMemoryUlong(PVOID Destination, SIZE_T Length, ULONG Pattern);
NTSYSAPI VOID RtlFillMemoryUlonglong(PVOID Destination, SIZE_T Length, ULONGLONG Pattern);

/* Returns the number of leading bytes that repeat the pattern, in whole words. Since NT 3.1. */
NTSYSAPI SIZE_T RtlCompareMemoryUlong(PVOID Source, SIZE_T Length, ULONG Pattern);

/* Returns TRUE if all bytes are 0. Since 10. */
NTSYSAPI BOOLEAN RtlIsZeroMemory(PVOID Buffer, SIZE_T Length);

/* Copies memory that will not be read soon. Differs: through the caches. Since XP. */
FORCEINLINE VOID RtlCopyMemoryNonTemporal(VOID UNALIGNED *Destination, const VOID UNALIGNED *Source, SIZE_T Length)
{
    memcpy(Destination, Source, Length);
}

/* Prefetches memory that will be read once. Since XP. */
FORCEINLINE VOID RtlPrefetchMemoryNonTemporal(PVOID Source, SIZE_T Length)
{
    SIZE_T offset;
    for (offset = 0; offset < Length; offset += SYSTEM_CACHE_ALIGNMENT_SIZE)
        __builtin_prefetch((const CHAR *)Source + offset, 0, 0);
}
#define PreFetchCacheLine(Level, Address) __builtin_prefetch(Address)

INTERLOCK_END

#endif
