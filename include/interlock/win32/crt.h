/*
 * win32/crt.h: functions of Microsoft's C library that the library has. corecrt.h includes it and has those that are inline.
 * Under `interlock cc` both come with string.h, stdlib.h and stdio.h, so they use no type of windows.h but WCHAR.
 */
#ifndef INTERLOCK_WIN32_CRT_H
#define INTERLOCK_WIN32_CRT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <interlock/linkage.h>

INTERLOCK_BEGIN

typedef int errno_t;

/*
 * Invalid parameters. A function of the C library that checks its parameters calls the handler of the thread, or of the
 * process. It returns an error if the handler returns. Without a handler the process ends, as on Windows.
 */

typedef void (*_invalid_parameter_handler)(const WCHAR *Expression, const WCHAR *Function, const WCHAR *File,
                                           unsigned int Line, uintptr_t Reserved);

/* Sets the handler of the process, or of the thread, and returns the one before; NULL removes it. Since XP, 8.1. */
WINBASEAPI _invalid_parameter_handler _set_invalid_parameter_handler(_invalid_parameter_handler _Handler);
WINBASEAPI _invalid_parameter_handler _set_thread_local_invalid_parameter_handler(_invalid_parameter_handler _Handler);

/* Returns the handler of the process, or of the thread; NULL if there is none. Since XP, 8.1. */
WINBASEAPI _invalid_parameter_handler _get_invalid_parameter_handler(void);
WINBASEAPI _invalid_parameter_handler _get_thread_local_invalid_parameter_handler(void);

/* Calls the handler, without a description; ends the process if there is none. Since XP. */
WINBASEAPI void _invalid_parameter_noinfo(void);

/* Formats. */

/* Formats into a buffer. Returns the length; a negative value if it is more than Count. The text is terminated only if there
   is room for that. A NULL buffer of 0 bytes asks for the length. The conversions are Microsoft's (win32.h). Since NT 3.1. */
WINBASEAPI int _vsnprintf(char *Buffer, size_t Count, const char *Format, va_list Arguments);
WINBASEAPI int _snprintf(char *Buffer, size_t Count, const char *Format, ...);

/* Reads from a stream or a string. %s, %c and %[ take a buffer and its size, as unsigned int; a text that does not fit leaves
   the buffer empty and ends the scan. An l is 32 bits, I64 is 64. Returns how many were stored; EOF at the end of the input.
   Differs: narrow text only. Since XP. */
WINBASEAPI int vscanf_s(const char *Format, va_list Arguments);
WINBASEAPI int scanf_s(const char *Format, ...);
WINBASEAPI int vfscanf_s(FILE *Stream, const char *Format, va_list Arguments);
WINBASEAPI int fscanf_s(FILE *Stream, const char *Format, ...);
WINBASEAPI int vsscanf_s(const char *Buffer, const char *Format, va_list Arguments);
WINBASEAPI int sscanf_s(const char *Buffer, const char *Format, ...);

/* Numbers, sorting and searching. */

/* Stores a random number for cryptographic use. Returns EINVAL for NULL. Since XP. */
WINBASEAPI errno_t rand_s(unsigned int *RandomValue);

/* Sorts, and searches a sorted array; the comparison gets Context first. The search returns NULL if there is none. Since
   XP. */
WINBASEAPI void qsort_s(void *Base, size_t Count, size_t Width, int (*Compare)(void *, const void *, const void *),
                        void *Context);
WINBASEAPI void *bsearch_s(const void *Key, const void *Base, size_t Count, size_t Width,
                           int (*Compare)(void *, const void *, const void *), void *Context);

/* The calendar. */

struct _timeb {
    time_t time;
    unsigned short millitm;
    short timezone; /* minutes that UTC is ahead of standard time */
    short dstflag;  /* nonzero in daylight saving time */
};

/* Stores the date and time of day of a time, in local time or in UTC. Returns EINVAL if it has none; tm_year and the
   others are then -1. Since XP. */
WINBASEAPI errno_t localtime_s(struct tm *_Tm, const time_t *_Time);
WINBASEAPI errno_t gmtime_s(struct tm *_Tm, const time_t *_Time);

/* Stores the time. The second form returns EINVAL for NULL. Since NT 3.1, XP. */
WINBASEAPI void _ftime(struct _timeb *_Time);
WINBASEAPI errno_t _ftime_s(struct _timeb *_Time);

#define _localtime64_s localtime_s
#define _gmtime64_s gmtime_s
#define __timeb64 _timeb
#define _ftime64 _ftime
#define _ftime64_s _ftime_s

INTERLOCK_END

#endif
