/*
 * strings.c: functions of the C library that access the program's memory. The compiler instruments the program, not them, so
 * the linker leads the program's calls here (--wrap). A call is one access to all that it reads or writes.
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#define CALLER ((uintptr_t)__builtin_return_address(0))

void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_mempcpy(void *to, const void *from, size_t size);
void *__wrap_memset(void *to, int value, size_t size);
void __wrap_bzero(void *to, size_t size);
int __wrap_memcmp(const void *a, const void *b, size_t size);
void *__wrap_memchr(const void *memory, int value, size_t size);
size_t __wrap_strlen(const char *text);
size_t __wrap_strnlen(const char *text, size_t limit);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strncmp(const char *a, const char *b, size_t limit);
char *__wrap_strcpy(char *to, const char *from);
char *__wrap_stpcpy(char *to, const char *from);
char *__wrap_strncpy(char *to, const char *from, size_t size);
char *__wrap_strcat(char *to, const char *from);
char *__wrap_strncat(char *to, const char *from, size_t limit);
char *__wrap_strchr(const char *text, int value);
char *__wrap_strrchr(const char *text, int value);
char *__wrap_strstr(const char *text, const char *part);
__attribute__((format(printf, 3, 0))) int __wrap_vsnprintf(char *to, size_t size, const char *format, va_list list);
__attribute__((format(printf, 2, 0))) int __wrap_vsprintf(char *to, const char *format, va_list list);
__attribute__((format(printf, 3, 4))) int __wrap_snprintf(char *to, size_t size, const char *format, ...);
__attribute__((format(printf, 2, 3))) int __wrap_sprintf(char *to, const char *format, ...);

static void access(const void *memory, size_t size, bool write, uintptr_t pc)
{
    if (size != 0)
        lab_tsan_plain((uintptr_t)memory, size, write, pc);
}

/* Reads the text with its end, or `limit` characters of it. */
static size_t read_text(const char *text, size_t limit, uintptr_t pc)
{
    size_t length = strnlen(text, limit);

    access(text, length < limit ? length + 1 : length, false, pc);
    return length;
}

/* Reads two texts up to their first difference. */
static void read_both(const char *a, const char *b, size_t limit, uintptr_t pc)
{
    size_t length = 0;

    while (length < limit && a[length] == b[length] && a[length] != '\0')
        length++;
    length += length < limit;
    access(a, length, false, pc);
    access(b, length, false, pc);
}

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    access(from, size, false, CALLER);
    access(to, size, true, CALLER);
    return memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
    access(from, size, false, CALLER);
    access(to, size, true, CALLER);
    return memmove(to, from, size);
}

void *__wrap_mempcpy(void *to, const void *from, size_t size)
{
    access(from, size, false, CALLER);
    access(to, size, true, CALLER);
    return (char *)memcpy(to, from, size) + size;
}

void *__wrap_memset(void *to, int value, size_t size)
{
    access(to, size, true, CALLER);
    return memset(to, value, size);
}

void __wrap_bzero(void *to, size_t size)
{
    access(to, size, true, CALLER);
    memset(to, 0, size);
}

int __wrap_memcmp(const void *a, const void *b, size_t size)
{
    access(a, size, false, CALLER);
    access(b, size, false, CALLER);
    return memcmp(a, b, size);
}

void *__wrap_memchr(const void *memory, int value, size_t size)
{
    void *found = memchr(memory, value, size);

    access(memory, found != NULL ? (size_t)((char *)found - (const char *)memory) + 1 : size, false, CALLER);
    return found;
}

size_t __wrap_strlen(const char *text)
{
    return read_text(text, PTRDIFF_MAX, CALLER);
}

size_t __wrap_strnlen(const char *text, size_t limit)
{
    return read_text(text, limit, CALLER);
}

int __wrap_strcmp(const char *a, const char *b)
{
    read_both(a, b, PTRDIFF_MAX, CALLER);
    return strcmp(a, b);
}

int __wrap_strncmp(const char *a, const char *b, size_t limit)
{
    read_both(a, b, limit, CALLER);
    return strncmp(a, b, limit);
}

char *__wrap_strcpy(char *to, const char *from)
{
    access(to, read_text(from, PTRDIFF_MAX, CALLER) + 1, true, CALLER);
    return strcpy(to, from);
}

char *__wrap_stpcpy(char *to, const char *from)
{
    size_t length = read_text(from, PTRDIFF_MAX, CALLER);

    access(to, length + 1, true, CALLER);
    return (char *)memcpy(to, from, length + 1) + length;
}

char *__wrap_strncpy(char *to, const char *from, size_t size)
{
    read_text(from, size, CALLER);
    access(to, size, true, CALLER);
    return strncpy(to, from, size);
}

static void append(char *to, const char *from, size_t limit, uintptr_t pc)
{
    size_t old = read_text(to, PTRDIFF_MAX, pc), length = read_text(from, limit, pc);

    access(to + old, length + 1, true, pc);
    memcpy(to + old, from, length);
    to[old + length] = '\0';
}

char *__wrap_strcat(char *to, const char *from)
{
    append(to, from, PTRDIFF_MAX, CALLER);
    return to;
}

char *__wrap_strncat(char *to, const char *from, size_t limit)
{
    append(to, from, limit, CALLER);
    return to;
}

char *__wrap_strchr(const char *text, int value)
{
    char *found = strchr(text, value);

    access(text, (found != NULL ? (size_t)(found - text) : strlen(text)) + 1, false, CALLER);
    return found;
}

char *__wrap_strrchr(const char *text, int value)
{
    read_text(text, PTRDIFF_MAX, CALLER);
    return strrchr(text, value);
}

char *__wrap_strstr(const char *text, const char *part)
{
    read_text(text, PTRDIFF_MAX, CALLER);
    read_text(part, PTRDIFF_MAX, CALLER);
    return strstr(text, part);
}

/* Of the arguments, those that it prints as text are not accesses. */
__attribute__((format(printf, 3, 0))) static int print(char *to, size_t size, const char *format, va_list list, uintptr_t pc)
{
    va_list measured;

    va_copy(measured, list);
    int length = vsnprintf(NULL, 0, format, measured);
    va_end(measured);
    if (length >= 0)
        access(to, (size_t)length < size ? (size_t)length + 1 : size, true, pc);
    return vsnprintf(to, size, format, list);
}

int __wrap_vsnprintf(char *to, size_t size, const char *format, va_list list)
{
    return print(to, size, format, list, CALLER);
}

int __wrap_vsprintf(char *to, const char *format, va_list list)
{
    return print(to, INT32_MAX, format, list, CALLER);
}

int __wrap_snprintf(char *to, size_t size, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    int length = print(to, size, format, list, CALLER);
    va_end(list);
    return length;
}

int __wrap_sprintf(char *to, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    int length = print(to, INT32_MAX, format, list, CALLER);
    va_end(list);
    return length;
}
