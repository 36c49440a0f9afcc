/*
 * real.h: included before every file of the explorer. The program's calls of these functions are accesses (strings.c); the
 * explorer's own are not.
 */
#ifndef LAB_REAL_H
#define LAB_REAL_H

#include <stdarg.h>
#include <stddef.h>

#define REAL(type, name, ...) extern type name(__VA_ARGS__) __asm__("__real_" #name)

REAL(void *, memcpy, void *, const void *, size_t);
REAL(void *, memmove, void *, const void *, size_t);
REAL(void *, memset, void *, int, size_t);
REAL(int, memcmp, const void *, const void *, size_t);
REAL(void *, memchr, const void *, int, size_t);
REAL(size_t, strlen, const char *);
REAL(size_t, strnlen, const char *, size_t);
REAL(int, strcmp, const char *, const char *);
REAL(int, strncmp, const char *, const char *, size_t);
REAL(char *, strcpy, char *, const char *);
REAL(char *, strncpy, char *, const char *, size_t);
REAL(char *, strcat, char *, const char *);
REAL(char *, strncat, char *, const char *, size_t);
REAL(char *, strchr, const char *, int);
REAL(char *, strrchr, const char *, int);
REAL(char *, strstr, const char *, const char *);
REAL(int, vsnprintf, char *, size_t, const char *, va_list);
REAL(int, snprintf, char *, size_t, const char *, ...);

#undef REAL
#endif
