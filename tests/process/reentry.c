/* reentry.c: a program that replaces a function that the library's initialization needs by one that uses the
   library. */
#include <ntddk.h>

#include <unistd.h>

char *secure_getenv(const char *name);
char *secure_getenv(const char *name)
{
    (void)name;
    alarm(60);
    return KeGetCurrentThread() != NULL ? NULL : NULL;
}

int main(void)
{
    return KeGetCurrentThread() == NULL;
}
