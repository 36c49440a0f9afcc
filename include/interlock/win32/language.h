/*
 * win32/language.h: keywords and names that Microsoft's compilers and C library add to C and C++. windows.h, tchar.h and wdm.h
 * include it; win32.h does not.
 *
 * `interlock cc` includes it before every source, for the keywords alone, which are macros only: it defines
 * INTERLOCK_KEYWORDS_ONLY, which holds for that one time. windef.h, which drivers include too, has the few keywords that its own
 * declarations need.
 */
#ifndef INTERLOCK_WIN32_KEYWORDS_H
#define INTERLOCK_WIN32_KEYWORDS_H

#ifndef __ASSEMBLER__
struct interlock_keywords; /* a translation unit of the keywords alone must declare something */
#endif

/*
 * Under `interlock cc` the printf family is Microsoft's, whether it is called, passed on, or named std::printf. The compiler
 * knows the functions by these names and no longer as its own (-fno-builtin-printf and so on), so it does not check their
 * formats by the host's rules.
 */
#if defined(__INTERLOCK_CC__) && !defined(__ASSEMBLER__)
#pragma redefine_extname printf InterlockPrintf
#pragma redefine_extname fprintf InterlockFprintf
#pragma redefine_extname sprintf InterlockSprintf
#pragma redefine_extname snprintf InterlockSnprintf
#pragma redefine_extname vprintf InterlockVprintf
#pragma redefine_extname vfprintf InterlockVfprintf
#pragma redefine_extname vsprintf InterlockVsprintf
#pragma redefine_extname vsnprintf InterlockVsnprintf
#if __SIZEOF_WCHAR_T__ == 2
#pragma redefine_extname wprintf InterlockWprintf
#pragma redefine_extname fwprintf InterlockFwprintf
#pragma redefine_extname swprintf InterlockSnwprintf
#pragma redefine_extname vwprintf InterlockVwprintf
#pragma redefine_extname vfwprintf InterlockVfwprintf
#pragma redefine_extname vswprintf InterlockVsnwprintf
/* In C++ wcschr and its like are overloaded, with names of their own: only windows.h has those. */
#pragma redefine_extname wcslen InterlockWcslen
#pragma redefine_extname wcsnlen InterlockWcsnlen
#pragma redefine_extname wcscpy InterlockWcscpy
#pragma redefine_extname wcsncpy InterlockWcsncpy
#pragma redefine_extname wcscat InterlockWcscat
#pragma redefine_extname wcsncat InterlockWcsncat
#pragma redefine_extname wcscmp InterlockWcscmp
#pragma redefine_extname wcsncmp InterlockWcsncmp
#pragma redefine_extname wcsspn InterlockWcsspn
#pragma redefine_extname wcscspn InterlockWcscspn
#pragma redefine_extname wcstol InterlockWcstol
#pragma redefine_extname wcstoul InterlockWcstoul
#endif
#endif

/* Calling conventions. There is only one. */
#ifndef __stdcall
#define __stdcall
#endif
#ifndef __cdecl
#define __cdecl
#endif
#ifndef __fastcall
#define __fastcall
#endif

#ifndef __forceinline
#define __forceinline inline __attribute__((always_inline))
#endif
#ifndef __int64
#define __int8 char
#define __int16 short
#define __int32 int
#define __int64 long long
#endif

/*
 * __declspec(name) and __declspec(name(argument)), with one name each. A name expands to an attribute, or to a comma
 * and a storage class.
 */
#ifndef __declspec
#define __declspec(...) INTERLOCK_DECLSPEC(INTERLOCK_DECLSPEC_##__VA_ARGS__)
#endif
#define INTERLOCK_DECLSPEC(...) INTERLOCK_DECLSPEC_CHOOSE(__VA_ARGS__, , )
#define INTERLOCK_DECLSPEC_CHOOSE(Attribute, Storage, ...) __attribute__((Attribute)) Storage
#define INTERLOCK_DECLSPEC_align(Bytes) aligned(Bytes)
#define INTERLOCK_DECLSPEC_allocate(Section)
#define INTERLOCK_DECLSPEC_allocator
#define INTERLOCK_DECLSPEC_code_seg(Section)
#define INTERLOCK_DECLSPEC_deprecated deprecated
#define INTERLOCK_DECLSPEC_dllexport visibility("default")
#define INTERLOCK_DECLSPEC_dllimport visibility("default")
#define INTERLOCK_DECLSPEC_guard(Kind)
#define INTERLOCK_DECLSPEC_noalias
#define INTERLOCK_DECLSPEC_noinline noinline
#define INTERLOCK_DECLSPEC_noreturn noreturn
#define INTERLOCK_DECLSPEC_nothrow nothrow
#define INTERLOCK_DECLSPEC_novtable
#define INTERLOCK_DECLSPEC_restrict
#define INTERLOCK_DECLSPEC_safebuffers
#define INTERLOCK_DECLSPEC_selectany weak
#define INTERLOCK_DECLSPEC_uuid(Text)
#ifdef __cplusplus
#define INTERLOCK_DECLSPEC_thread , thread_local
#else
#define INTERLOCK_DECLSPEC_thread , _Thread_local
#endif

#ifndef _declspec
#define _declspec __declspec
#endif
#if !defined(__clang__) /* which knows them with Microsoft's extensions */
#define __pragma(...) INTERLOCK_PRAGMA(__VA_ARGS__)
#define INTERLOCK_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define __FUNCSIG__ __PRETTY_FUNCTION__
#endif

#ifndef _cdecl
#define _cdecl
#endif
#ifndef _stdcall
#define _stdcall
#endif
#ifndef __vectorcall
#define __vectorcall
#endif
#ifndef __thiscall
#define __thiscall
#endif
#ifndef __ptr64
#define __ptr64
#endif
#ifndef __w64
#define __w64
#endif
#ifndef __unaligned
#define __unaligned
#endif
#ifndef _inline
#define _inline inline
#endif
#ifndef __debugbreak
#define __debugbreak() __builtin_trap()
#endif
#ifndef __assume
#define __assume(Condition) ((Condition) ? (void)0 : __builtin_unreachable())
#endif
#ifndef __noop
#define __noop(...) ((void)0)
#endif

#endif

#ifdef INTERLOCK_KEYWORDS_ONLY
#undef INTERLOCK_KEYWORDS_ONLY
#elif !defined(INTERLOCK_WIN32_LANGUAGE_H)
#define INTERLOCK_WIN32_LANGUAGE_H

#include <stdlib.h>

#include <interlock/interlocked.h>

#define INTERLOCK_WIDE_NAMES
#include <interlock/widestring.h>
#ifndef __cplusplus
#define INTERLOCK_OLD_ANNOTATIONS
#include <interlock/annotations.h>
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
