/*
 * cmocka stores the text of a failed assertion for the thread that runs the test, and prints it when that test has
 * ended. In any other thread a failed assertion ends the program and the text would be lost: here it is printed at
 * once.
 */
#include "support.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

typedef void print_error_function(const char *format, ...);

/* A function of cmocka that its headers do not declare; its assertions call this one instead. */
__attribute__((format(printf, 1, 2))) void cm_print_error(const char *format, ...);

static __thread bool runs_the_tests;
static print_error_function *keep_error;

__attribute__((constructor)) static void find_cmocka(void)
{
    runs_the_tests = true;
    keep_error = (print_error_function *)dlsym(RTLD_NEXT, "cm_print_error");
}

void cm_print_error(const char *format, ...)
{
    char text[4096];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (runs_the_tests && keep_error != NULL)
        keep_error("%s", text);
    else
        fputs(text, stderr);
}
