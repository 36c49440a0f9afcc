/*
 * win32/language.h: keywords and names that Microsoft's compilers and C library add to C and C++. windows.h and tchar.h
 * include it; win32.h does not.
 */
#ifndef INTERLOCK_WIN32_LANGUAGE_H
#define INTERLOCK_WIN32_LANGUAGE_H

#include <stdlib.h>

#include <interlock/widenames.h>
#include <interlock/win32/base.h>
#include <interlock/win32/keywords.h>
#ifndef __cplusplus
#include <interlock/win32/sal1.h>
#endif
#include <interlock/win32/longs.h>
#include <interlock/win32/version.h>

#define DECLSPEC_THREAD __declspec(thread)

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
#endif
