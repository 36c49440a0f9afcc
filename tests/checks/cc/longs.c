/* Interlocked functions on long, which has 64 bits here, and on LONG, in C and in C++. Returns 0 if both are
   correct. */
#include <windows.h>

static volatile long wide = -1;
static unsigned long count;
static volatile LONG narrow[2] = {-1, 77};

int main(void)
{
    long first = InterlockedIncrement(&wide);
    LONG second = InterlockedIncrement(&narrow[0]);

    if (first != 0 || wide != 0 || second != 0 || narrow[0] != 0 || narrow[1] != 77)
        return 1;
    if (InterlockedDecrement(&wide) != -1 || wide != -1 || InterlockedDecrement(narrow) != -1)
        return 2;
    if (InterlockedExchange(&wide, 5) != -1 || InterlockedExchangeAdd(&wide, 3) != 5 || wide != 8)
        return 3;
    if (InterlockedCompareExchange(&wide, -2, 8) != 8 || wide != -2 || InterlockedCompareExchange(&wide, 1, 8) != -2)
        return 4;
    if (InterlockedCompareExchange(narrow, 9, -1) != -1 || narrow[0] != 9 || narrow[1] != 77)
        return 5;
    if (InterlockedOr(&wide, 1) != -2 || InterlockedAnd(&wide, 0xf) != -1 || InterlockedXor(&wide, 1) != 15 || wide != 14)
        return 6;
    return InterlockedIncrement(&count) == 1 && count == 1 ? 0 : 7;
}
