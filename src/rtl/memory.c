/* memory.c: memory by words. The pointers may have any alignment. */
#include <interlock/rtldriver.h>

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
