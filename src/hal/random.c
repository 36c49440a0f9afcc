/* random.c: cryptographically random bits. A separate file: the explorer replaces it with bits that it can repeat. */
#include "halp.h"

#include <sys/random.h>

BOOLEAN HalQueryRandom(PVOID Buffer, SIZE_T Size)
{
    /* Up to 256 bytes are not interrupted, and before the host has collected any, we do not wait for them. */
    return HalpCall(SYS_getrandom, Buffer, Size, GRND_NONBLOCK) == (LONG_PTR)Size;
}
