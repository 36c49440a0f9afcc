/* random.c: pseudo-random numbers. */
#include <interlock/rtldriver.h>

#define RTLP_RANDOM_RANGE 0x7FFFFFFFu /* a prime */

/* Lehmer's generator with an increment. */
ULONG RtlUniform(PULONG Seed)
{
    *Seed = (ULONG)(((ULONGLONG)*Seed * 0x7FFFFFED + 0x7FFFFFC3) % RTLP_RANDOM_RANGE);
    return *Seed;
}

/* A step of the seed with full period, whose low bits are weak, and a permutation that mixes them (PCG, RXS-M-XS). */
ULONG RtlRandomEx(PULONG Seed)
{
    ULONG State = *Seed;
    ULONG Mixed = ((State >> ((State >> 28) + 4)) ^ State) * 277803737u;
    *Seed = State * 747796405u + 2891336453u;
    return ((Mixed >> 22) ^ Mixed) % RTLP_RANDOM_RANGE;
}

ULONG RtlRandom(PULONG Seed)
{
    return RtlRandomEx(Seed);
}
