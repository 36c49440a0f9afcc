/* random.c: bits that nobody can guess. A file of its own: the explorer has its own, which it can repeat. */
#include "halp.h"

#include <sys/random.h>

BOOLEAN HalQueryRandom(PVOID Buffer, SIZE_T Size)
{
    /* Up to 256 bytes are not interrupted, and before the host has collected any, we do not wait for them. */
    return HalpCall(SYS_getrandom, Buffer, Size, GRND_NONBLOCK) == (LONG_PTR)Size;
}
