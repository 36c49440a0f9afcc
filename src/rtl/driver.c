/* driver.c: the small functions of rtldriver.h: memory by words, pseudo-random numbers. */
#include <interlock/rtldriver.h>

/* Memory by words. The pointers may have any alignment. */

VOID RtlFillMemoryUlonglong(PVOID Destination, SIZE_T Length, ULONGLONG Pattern)
{
    for (SIZE_T Offset = 0; Length - Offset >= sizeof(Pattern); Offset += sizeof(Pattern)) {
        memcpy((PUCHAR)Destination + Offset, &Pattern, sizeof(Pattern));
    }
}

VOID RtlFillMemoryUlong(PVOID Destination, SIZE_T Length, ULONG Pattern)
{
    for (SIZE_T Offset = 0; Length - Offset >= sizeof(Pattern); Offset += sizeof(Pattern)) {
        memcpy((PUCHAR)Destination + Offset, &Pattern, sizeof(Pattern));
    }
}

SIZE_T RtlCompareMemoryUlong(PVOID Source, SIZE_T Length, ULONG Pattern)
{
    SIZE_T Offset = 0;
    while (Length - Offset >= sizeof(Pattern) && memcmp((PUCHAR)Source + Offset, &Pattern, sizeof(Pattern)) == 0) {
        Offset += sizeof(Pattern);
    }
    return Offset;
}

BOOLEAN RtlIsZeroMemory(PVOID Buffer, SIZE_T Length)
{
    const UCHAR *Bytes = Buffer;
    /* Zero if the first byte is, and each byte equals the one before. */
    return Length == 0 || (Bytes[0] == 0 && memcmp(Bytes, Bytes + 1, Length - 1) == 0);
}

/* Pseudo-random numbers. */

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
