/* withsetting.h: for programs whose cases need a setting of the library, which reads it when it is loaded. They start again
   with it, so they can be started by hand. */
#ifndef INTERLOCK_TESTS_WITHSETTING_H
#define INTERLOCK_TESTS_WITHSETTING_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* First of all in main. A setting that is there counts. */
static inline void default_setting(const char *name, const char *value)
{
    if (getenv(name) == NULL && setenv(name, value, 1) == 0)
        execl("/proc/self/exe", program_invocation_name, (char *)NULL);
}

#endif
