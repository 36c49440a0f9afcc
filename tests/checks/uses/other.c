#include "other.h"

int CreateEventW(const char *name);
int Sleep(int what);

static int calls;

int CreateEventW(const char *name)
{
    calls += name[0] == 'a';
    return 1;
}

int Sleep(int what)
{
    calls += what;
    return 2;
}

int other_calls(void)
{
    return CreateEventW("abc") + Sleep(10) == 3 ? calls : -1;
}
