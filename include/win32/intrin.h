/*
 * intrin.h: intrinsic functions of Microsoft's compilers. The Interlocked and bit functions are those of windows.h, the
 * vector functions and _mm_pause those of the compiler.
 */
#ifndef INTERLOCK_WIN32_INCLUDE_INTRIN_H
#define INTERLOCK_WIN32_INCLUDE_INTRIN_H

#ifdef __x86_64__
#include <x86intrin.h>
/* Its macros; corecrt.h has functions of these names, in which a long has 32 bits. */
#undef _rotl
#undef _rotr
#undef _lrotl
#undef _lrotr
#endif

#include <corecrt.h>
#include <interlock/interlocked.h>

INTERLOCK_BEGIN

/* Loads and stores of one size, neither torn nor merged, without order. */
#define INTERLOCK_ISO_VOLATILE(Bits, Type)                                                                             \
    FORCEINLINE Type __iso_volatile_load##Bits(const volatile Type *Location)                                          \
    {                                                                                                                  \
        return __atomic_load_n(Location, __ATOMIC_RELAXED); /* relaxed: the intrinsic has no order */                  \
    }                                                                                                                  \
    FORCEINLINE VOID __iso_volatile_store##Bits(volatile Type *Location, Type Value)                                   \
    {                                                                                                                  \
        __atomic_store_n(Location, Value, __ATOMIC_RELAXED); /* relaxed: likewise */                                   \
    }
INTERLOCK_ISO_VOLATILE(8, __int8)
INTERLOCK_ISO_VOLATILE(16, __int16)
INTERLOCK_ISO_VOLATILE(32, __int32)
INTERLOCK_ISO_VOLATILE(64, __int64)

#ifdef __x86_64__
#undef __cpuid
#undef __cpuidex

FORCEINLINE VOID __cpuidex(int Information[4], int Function, int SubFunction)
{
    __asm__ volatile("cpuid"
                     : "=a"(Information[0]), "=b"(Information[1]), "=c"(Information[2]), "=d"(Information[3])
                     : "0"(Function), "2"(SubFunction));
}

FORCEINLINE VOID __cpuid(int Information[4], int Function)
{
    __cpuidex(Information, Function, 0);
}
#else
#define __yield() YieldProcessor()
#define __dmb(Kind) __sync_synchronize()
#define __dsb(Kind) __sync_synchronize()
#endif

FORCEINLINE VOID __nop(VOID)
{
    __asm__ volatile("nop");
}

FORCEINLINE unsigned int __popcnt(unsigned int Value)
{
    return (unsigned int)__builtin_popcount(Value);
}

FORCEINLINE unsigned short __popcnt16(unsigned short Value)
{
    return (unsigned short)__builtin_popcount(Value);
}

FORCEINLINE unsigned __int64 __popcnt64(unsigned __int64 Value)
{
    return (unsigned __int64)__builtin_popcountll(Value);
}

FORCEINLINE unsigned int __lzcnt(unsigned int Value)
{
    return Value == 0 ? 32u : (unsigned int)__builtin_clz(Value);
}

#undef __lzcnt64 /* a name of the compiler too, but for machines that have the instruction */
#define __lzcnt64 InterlockLzcnt64
FORCEINLINE unsigned __int64 InterlockLzcnt64(unsigned __int64 Value)
{
    return Value == 0 ? 64u : (unsigned __int64)__builtin_clzll(Value);
}

FORCEINLINE unsigned __int64 _umul128(unsigned __int64 First, unsigned __int64 Second, unsigned __int64 *High)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)First * Second;
    *High = (unsigned __int64)(product >> 64);
    return (unsigned __int64)product;
}

FORCEINLINE __int64 _mul128(__int64 First, __int64 Second, __int64 *High)
{
    __extension__ const __int128 product = (__int128)First * Second;
    *High = (__int64)(product >> 64);
    return (__int64)product;
}

FORCEINLINE unsigned __int64 __umulh(unsigned __int64 First, unsigned __int64 Second)
{
    unsigned __int64 high;
    _umul128(First, Second, &high);
    return high;
}

FORCEINLINE __int64 __mulh(__int64 First, __int64 Second)
{
    __int64 high;
    _mul128(First, Second, &high);
    return high;
}

FORCEINLINE unsigned __int64 __shiftleft128(unsigned __int64 Low, unsigned __int64 High, unsigned char Shift)
{
    return (Shift & 63) == 0 ? High : High << (Shift & 63) | Low >> (64 - (Shift & 63));
}

FORCEINLINE unsigned __int64 __shiftright128(unsigned __int64 Low, unsigned __int64 High, unsigned char Shift)
{
    return (Shift & 63) == 0 ? Low : Low >> (Shift & 63) | High << (64 - (Shift & 63));
}

FORCEINLINE VOID __stosb(unsigned char *Destination, unsigned char Value, size_t Count)
{
    memset(Destination, Value, Count);
}

FORCEINLINE VOID __movsb(unsigned char *Destination, const unsigned char *Source, size_t Count)
{
    size_t i;
    for (i = 0; i < Count; i++) { /* in this order: the regions may overlap */
        Destination[i] = Source[i];
    }
}

#define _ReturnAddress() __builtin_return_address(0)
#define _AddressOfReturnAddress() ((void *)((void **)__builtin_frame_address(0) + 1))
#ifndef __debugbreak
#define __debugbreak() __builtin_trap()
#endif

/* Ends the process at once. */
FORCEINLINE DECLSPEC_NORETURN VOID __fastfail(unsigned int Code)
{
    extern DECLSPEC_NORETURN VOID RtlFailFast(ULONG);
    RtlFailFast(Code);
}

INTERLOCK_END

#endif
