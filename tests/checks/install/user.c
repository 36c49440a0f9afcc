#include <windows.h>

int main(void)
{
    LONG volatile counter = 41;

    return InterlockedIncrement(&counter) == 42 ? 0 : 1;
}
