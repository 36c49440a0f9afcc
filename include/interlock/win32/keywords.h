/*
 * win32/keywords.h: what Microsoft's compilers know before the first header. Macros only: `interlock cc` includes it before
 * every source, language.h for sources that other compilers compile. windef.h, which drivers include too, has the few
 * that its own declarations need.
 */
#ifndef INTERLOCK_WIN32_KEYWORDS_H
#define INTERLOCK_WIN32_KEYWORDS_H

#ifndef __ASSEMBLER__
struct interlock_keywords; /* a translation unit of this header alone must declare something */
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
