/*
 * win32/language.h: keywords and names that Microsoft's compilers and C library add to C and C++. windows.h and tchar.h
 * include it; win32.h does not.
 */
#ifndef INTERLOCK_WIN32_LANGUAGE_H
#define INTERLOCK_WIN32_LANGUAGE_H

#include <stdlib.h>
#include <strings.h>

#include <interlock/minmax.h>
#include <interlock/widenames.h>
#include <interlock/win32/base.h>
#include <interlock/win32/keywords.h>
#ifndef __cplusplus
#include <interlock/win32/sal1.h>
#endif
#include <interlock/win32/longs.h>
#include <interlock/win32/version.h>

#define DECLSPEC_THREAD __declspec(thread)

/* Microsoft's names of functions of the host's C library. */
#define _stricmp strcasecmp
#define _strnicmp strncasecmp
#define _strdup strdup

#endif
