/* session.c: a world for each test program, so that tests do not share names. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void choose_session(void)
{
    char name[32];

    snprintf(name, sizeof(name), "test-%d", (int)getpid());
    setenv("INTERLOCK_SESSION", name, 0);
}
