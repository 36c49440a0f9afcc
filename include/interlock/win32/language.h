/*
 * win32/language.h: keywords and names that Microsoft's compilers and C library add to C and C++. windows.h, tchar.h and wdm.h
 * include it; win32.h does not.
 */
#ifndef INTERLOCK_WIN32_LANGUAGE_H
#define INTERLOCK_WIN32_LANGUAGE_H

#include <stdlib.h>

#include <interlock/interlocked.h>
#include <interlock/widenames.h>
#include <interlock/win32/keywords.h>
#ifndef __cplusplus
#include <interlock/win32/sal1.h>
#endif

#define DECLSPEC_THREAD __declspec(thread)

#ifndef _countof
#define _countof(Array) RTL_NUMBER_OF(Array)
#endif

/* Not in C++, where they break the standard library. */
#if !defined(__cplusplus) && !defined(NOMINMAX)
#ifndef min
#define min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#endif
#define __max(a, b) (((a) > (b)) ? (a) : (b))
#define __min(a, b) (((a) < (b)) ? (a) : (b))

/*
 * Interlocked functions on the type long. On Windows it has 32 bits, and the functions are used on it; here it has 64, and a
 * function of 32 bits would change one half. A source that `interlock cc` compiles may name both: the type of the argument
 * decides.
 */
#ifdef __INTERLOCK_CC__

/* Internal: InterlockedIncrement of a long. seq_cst: a full barrier. */
FORCEINLINE long InterlockLongIncrement(volatile void *Target)
{
    return __atomic_add_fetch((long volatile *)Target, 1, __ATOMIC_SEQ_CST);
}

/* Internal: InterlockedDecrement of a long. seq_cst: a full barrier. */
FORCEINLINE long InterlockLongDecrement(volatile void *Target)
{
    return __atomic_sub_fetch((long volatile *)Target, 1, __ATOMIC_SEQ_CST);
}

/* Internal: InterlockedExchange of a long. seq_cst: a full barrier. */
FORCEINLINE long InterlockLongExchange(volatile void *Target, long Value)
{
    return __atomic_exchange_n((long volatile *)Target, Value, __ATOMIC_SEQ_CST);
}

/* Internal: InterlockedExchangeAdd of a long. seq_cst: a full barrier. */
FORCEINLINE long InterlockLongExchangeAdd(volatile void *Target, long Value)
{
    return __atomic_fetch_add((long volatile *)Target, Value, __ATOMIC_SEQ_CST);
}

/* Internal: InterlockedAnd of a long. seq_cst: a full barrier. */
FORCEINLINE long InterlockLongAnd(volatile void *Target, long Value)
{
    return __atomic_fetch_and((long volatile *)Target, Value, __ATOMIC_SEQ_CST);
}

/* Internal: InterlockedOr of a long. seq_cst: a full barrier. */
FORCEINLINE long InterlockLongOr(volatile void *Target, long Value)
{
    return __atomic_fetch_or((long volatile *)Target, Value, __ATOMIC_SEQ_CST);
}

/* Internal: InterlockedXor of a long. seq_cst: a full barrier. */
FORCEINLINE long InterlockLongXor(volatile void *Target, long Value)
{
    return __atomic_fetch_xor((long volatile *)Target, Value, __ATOMIC_SEQ_CST);
}

/* Internal: InterlockedCompareExchange of a long. seq_cst: a full barrier. */
FORCEINLINE long InterlockLongCompareExchange(volatile void *Target, long Exchange, long Comperand)
{
    __atomic_compare_exchange_n((long volatile *)Target, &Comperand, Exchange, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return Comperand;
}

#ifdef __cplusplus

extern "C++" {
#define INTERLOCK_LONG_FORMS(Name)                                                                                     \
    template <typename... Values> inline long Interlocked##Name(long volatile *Target, Values... Value)                \
    {                                                                                                                  \
        return InterlockLong##Name(Target, static_cast<long>(Value)...);                                               \
    }                                                                                                                  \
    template <typename... Values> inline long Interlocked##Name(unsigned long volatile *Target, Values... Value)       \
    {                                                                                                                  \
        return InterlockLong##Name(Target, static_cast<long>(Value)...);                                               \
    }
INTERLOCK_LONG_FORMS(Increment)
INTERLOCK_LONG_FORMS(Decrement)
INTERLOCK_LONG_FORMS(Exchange)
INTERLOCK_LONG_FORMS(ExchangeAdd)
INTERLOCK_LONG_FORMS(And)
INTERLOCK_LONG_FORMS(Or)
INTERLOCK_LONG_FORMS(Xor)
INTERLOCK_LONG_FORMS(CompareExchange)
#undef INTERLOCK_LONG_FORMS
}

#else

#define INTERLOCK_BY_TYPE(Target, Long, Function)                                                                      \
    _Generic((Target), long *: Long, long volatile *: Long, unsigned long *: Long, unsigned long volatile *: Long,     \
             default: Function)
#define InterlockedIncrement(Target) INTERLOCK_BY_TYPE(Target, InterlockLongIncrement, InterlockedIncrement)(Target)
#define InterlockedDecrement(Target) INTERLOCK_BY_TYPE(Target, InterlockLongDecrement, InterlockedDecrement)(Target)
#define InterlockedExchange(Target, Value)                                                                             \
    INTERLOCK_BY_TYPE(Target, InterlockLongExchange, InterlockedExchange)(Target, Value)
#define InterlockedExchangeAdd(Target, Value)                                                                          \
    INTERLOCK_BY_TYPE(Target, InterlockLongExchangeAdd, InterlockedExchangeAdd)(Target, Value)
#define InterlockedAnd(Target, Value) INTERLOCK_BY_TYPE(Target, InterlockLongAnd, InterlockedAnd)(Target, Value)
#define InterlockedOr(Target, Value) INTERLOCK_BY_TYPE(Target, InterlockLongOr, InterlockedOr)(Target, Value)
#define InterlockedXor(Target, Value) INTERLOCK_BY_TYPE(Target, InterlockLongXor, InterlockedXor)(Target, Value)
#define InterlockedCompareExchange(Target, Exchange, Comperand)                                                        \
    INTERLOCK_BY_TYPE(Target, InterlockLongCompareExchange, InterlockedCompareExchange)(Target, Exchange, Comperand)

#endif

#endif

#endif
