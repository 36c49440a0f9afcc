/*
 * bitmap.c: bitmaps.
 *
 * All searches are built on RtlpFindBit, which finds the next bit of a value at or after a position. It skips words
 * that cannot contain one. Set bits are searched as clear bits of the inverted words.
 */
#include <interlock/rtl.h>

#define RTLP_BITS 32u
#define RTLP_NOT_FOUND 0xFFFFFFFFu

VOID RtlInitializeBitMap(PRTL_BITMAP BitMapHeader, PULONG BitMapBuffer, ULONG SizeOfBitMap)
{
    BitMapHeader->SizeOfBitMap = SizeOfBitMap;
    BitMapHeader->Buffer = BitMapBuffer;
}

static BOOLEAN RtlpIsInside(const RTL_BITMAP *BitMap, ULONG Start, ULONG Length)
{
    return Start <= BitMap->SizeOfBitMap && Length <= BitMap->SizeOfBitMap - Start;
}

/* The bits of a word from First to the end of the range or of the word. */
static ULONG RtlpMask(ULONG First, ULONG Left)
{
    ULONG Mask = MAXULONG << First;
    return Left < RTLP_BITS - First ? Mask & ~(MAXULONG << (First + Left)) : Mask;
}

/* Stores Bits, 0 or all ones, into a range that is inside. */
static VOID RtlpStoreBits(const RTL_BITMAP *BitMap, ULONG Start, ULONG Length, ULONG Bits)
{
    while (Length != 0) {
        PULONG Word = &BitMap->Buffer[Start / RTLP_BITS];
        ULONG First = Start % RTLP_BITS;
        ULONG Count = Length < RTLP_BITS - First ? Length : RTLP_BITS - First;
        ULONG Mask = RtlpMask(First, Count);
        *Word = (*Word & ~Mask) | (Bits & Mask);
        Start += Count;
        Length -= Count;
    }
}

VOID RtlClearBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber)
{
    RtlClearBits(BitMapHeader, BitNumber, 1);
}

VOID RtlSetBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber)
{
    RtlSetBits(BitMapHeader, BitNumber, 1);
}

VOID RtlClearBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToClear)
{
    if (RtlpIsInside(BitMapHeader, StartingIndex, NumberToClear)) {
        RtlpStoreBits(BitMapHeader, StartingIndex, NumberToClear, 0);
    }
}

VOID RtlSetBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToSet)
{
    if (RtlpIsInside(BitMapHeader, StartingIndex, NumberToSet)) {
        RtlpStoreBits(BitMapHeader, StartingIndex, NumberToSet, MAXULONG);
    }
}

VOID RtlClearAllBits(PRTL_BITMAP BitMapHeader)
{
    RtlpStoreBits(BitMapHeader, 0, BitMapHeader->SizeOfBitMap, 0);
}

VOID RtlSetAllBits(PRTL_BITMAP BitMapHeader)
{
    RtlpStoreBits(BitMapHeader, 0, BitMapHeader->SizeOfBitMap, MAXULONG);
}

BOOLEAN RtlTestBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber)
{
    return BitNumber < BitMapHeader->SizeOfBitMap && RtlCheckBit(BitMapHeader, BitNumber);
}

static VOID RtlpCopyBits(PRTL_BITMAP Source, ULONG From, PRTL_BITMAP Destination, ULONG To, ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index++) {
        RtlpStoreBits(Destination, To + Index, 1, RtlCheckBit(Source, From + Index) ? MAXULONG : 0);
    }
}

/* How many bits there are from Start on in one bitmap, but not more than in another one. */
static ULONG RtlpCommonBits(const RTL_BITMAP *Shifted, ULONG Start, const RTL_BITMAP *Other)
{
    ULONG Left = Start < Shifted->SizeOfBitMap ? Shifted->SizeOfBitMap - Start : 0;
    return Left < Other->SizeOfBitMap ? Left : Other->SizeOfBitMap;
}

VOID RtlCopyBitMap(PRTL_BITMAP Source, PRTL_BITMAP Destination, ULONG TargetBit)
{
    RtlpCopyBits(Source, 0, Destination, TargetBit, RtlpCommonBits(Destination, TargetBit, Source));
}

VOID RtlExtractBitMap(PRTL_BITMAP Source, PRTL_BITMAP Destination, ULONG TargetBit, ULONG NumberOfBits)
{
    ULONG Common = RtlpCommonBits(Source, TargetBit, Destination);
    RtlpCopyBits(Source, TargetBit, Destination, 0, NumberOfBits < Common ? NumberOfBits : Common);
}

/* The first bit at or after From that differs from those of Skip (0 or all ones), but not after End. */
static ULONG RtlpFindBit(const RTL_BITMAP *BitMap, ULONG From, ULONG End, ULONG Skip)
{
    while (From < End) {
        ULONG Word = (BitMap->Buffer[From / RTLP_BITS] ^ Skip) & (MAXULONG << From % RTLP_BITS);
        ULONG Base = From - From % RTLP_BITS;
        if (Word != 0) {
            ULONG Found = Base + (ULONG)__builtin_ctz(Word);
            return Found < End ? Found : End;
        }
        if (End - Base <= RTLP_BITS) {
            break;
        }
        From = Base + RTLP_BITS;
    }
    return End;
}

static BOOLEAN RtlpAreBits(const RTL_BITMAP *BitMap, ULONG Start, ULONG Length, ULONG Bits)
{
    return Length != 0 && RtlpIsInside(BitMap, Start, Length) &&
           RtlpFindBit(BitMap, Start, Start + Length, Bits) == Start + Length;
}

BOOLEAN RtlAreBitsClear(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length)
{
    return RtlpAreBits(BitMapHeader, StartingIndex, Length, 0);
}

BOOLEAN RtlAreBitsSet(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length)
{
    return RtlpAreBits(BitMapHeader, StartingIndex, Length, MAXULONG);
}

ULONG RtlNumberOfSetBitsInRange(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length)
{
    ULONG Count = 0;
    if (!RtlpIsInside(BitMapHeader, StartingIndex, Length)) {
        return 0;
    }
    while (Length != 0) {
        ULONG First = StartingIndex % RTLP_BITS;
        ULONG Here = Length < RTLP_BITS - First ? Length : RTLP_BITS - First;
        Count += (ULONG)__builtin_popcount(BitMapHeader->Buffer[StartingIndex / RTLP_BITS] & RtlpMask(First, Here));
        StartingIndex += Here;
        Length -= Here;
    }
    return Count;
}

ULONG RtlNumberOfClearBitsInRange(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length)
{
    return RtlpIsInside(BitMapHeader, StartingIndex, Length)
               ? Length - RtlNumberOfSetBitsInRange(BitMapHeader, StartingIndex, Length)
               : 0;
}

ULONG RtlNumberOfSetBits(PRTL_BITMAP BitMapHeader)
{
    return RtlNumberOfSetBitsInRange(BitMapHeader, 0, BitMapHeader->SizeOfBitMap);
}

ULONG RtlNumberOfClearBits(PRTL_BITMAP BitMapHeader)
{
    return BitMapHeader->SizeOfBitMap - RtlNumberOfSetBits(BitMapHeader);
}

ULONG RtlNumberOfSetBitsUlongPtr(ULONG_PTR Target)
{
    return (ULONG)__builtin_popcountl(Target);
}

CCHAR RtlFindMostSignificantBit(ULONGLONG Set)
{
    return Set == 0 ? -1 : (CCHAR)(63 - __builtin_clzll(Set));
}

CCHAR RtlFindLeastSignificantBit(ULONGLONG Set)
{
    return Set == 0 ? -1 : (CCHAR)__builtin_ctzll(Set);
}

/* The first run of these bits at or after From: its length, 0 if there is none. */
static ULONG RtlpFindRun(const RTL_BITMAP *BitMap, ULONG From, ULONG Bits, PULONG Start)
{
    ULONG Size = BitMap->SizeOfBitMap;
    *Start = RtlpFindBit(BitMap, From, Size, ~Bits);
    return *Start < Size ? RtlpFindBit(BitMap, *Start, Size, Bits) - *Start : 0;
}

static ULONG RtlpFindRange(const RTL_BITMAP *BitMap, ULONG Count, ULONG From, ULONG Bits)
{
    ULONG Start, Length;
    while ((Length = RtlpFindRun(BitMap, From, Bits, &Start)) != 0 && Length < Count) {
        From = Start + Length;
    }
    return Length != 0 ? Start : RTLP_NOT_FOUND;
}

static ULONG RtlpFindBits(const RTL_BITMAP *BitMap, ULONG Count, ULONG Hint, ULONG Bits)
{
    ULONG Found;
    Hint = Hint < BitMap->SizeOfBitMap ? Hint : 0;
    if (Count == 0) {
        return Hint;
    }
    Found = RtlpFindRange(BitMap, Count, Hint, Bits);
    return Found == RTLP_NOT_FOUND && Hint != 0 ? RtlpFindRange(BitMap, Count, 0, Bits) : Found;
}

ULONG RtlFindClearBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex)
{
    return RtlpFindBits(BitMapHeader, NumberToFind, HintIndex, 0);
}

ULONG RtlFindSetBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex)
{
    return RtlpFindBits(BitMapHeader, NumberToFind, HintIndex, MAXULONG);
}

ULONG RtlFindClearBitsAndSet(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex)
{
    ULONG Found = RtlFindClearBits(BitMapHeader, NumberToFind, HintIndex);
    if (Found != RTLP_NOT_FOUND) {
        RtlSetBits(BitMapHeader, Found, NumberToFind);
    }
    return Found;
}

ULONG RtlFindSetBitsAndClear(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex)
{
    ULONG Found = RtlFindSetBits(BitMapHeader, NumberToFind, HintIndex);
    if (Found != RTLP_NOT_FOUND) {
        RtlClearBits(BitMapHeader, Found, NumberToFind);
    }
    return Found;
}

ULONG RtlFindNextForwardRunClear(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex)
{
    return RtlpFindRun(BitMapHeader, FromIndex, 0, StartingRunIndex);
}

ULONG RtlFindNextForwardRunSet(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex)
{
    return RtlpFindRun(BitMapHeader, FromIndex, MAXULONG, StartingRunIndex);
}

/* The last bit at or before From that differs from those of Skip, plus 1; 0: there is none. */
static ULONG RtlpFindBitBefore(const RTL_BITMAP *BitMap, ULONG Behind, ULONG Skip)
{
    while (Behind != 0) {
        ULONG Last = (Behind - 1) % RTLP_BITS;
        ULONG Word = (BitMap->Buffer[(Behind - 1) / RTLP_BITS] ^ Skip) & RtlpMask(0, Last + 1);
        if (Word != 0) {
            return Behind - 1 - Last + RTLP_BITS - (ULONG)__builtin_clz(Word);
        }
        Behind -= Last + 1;
    }
    return 0;
}

ULONG RtlFindLastBackwardRunClear(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex)
{
    ULONG Size = BitMapHeader->SizeOfBitMap;
    ULONG End = RtlpFindBitBefore(BitMapHeader, FromIndex < Size ? FromIndex + 1 : Size, MAXULONG);
    *StartingRunIndex = RtlpFindBitBefore(BitMapHeader, End, 0);
    return End - *StartingRunIndex;
}

ULONG RtlFindFirstRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex)
{
    return RtlpFindRun(BitMapHeader, 0, 0, StartingIndex);
}

ULONG RtlFindLongestRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex)
{
    RTL_BITMAP_RUN Run = {0};
    RtlFindClearRuns(BitMapHeader, &Run, 1, TRUE);
    *StartingIndex = Run.StartingIndex;
    return Run.NumberOfBits;
}

/* Inserts a run after those of the same length, if there is room or the run is longer than the last one. Returns the count. */
static ULONG RtlpInsertRun(PRTL_BITMAP_RUN Runs, ULONG Count, ULONG Room, RTL_BITMAP_RUN Run)
{
    if (Count == Room && Runs[Room - 1].NumberOfBits >= Run.NumberOfBits) {
        return Count;
    }
    Count += Count < Room;
    ULONG Index = Count - 1;
    for (; Index > 0 && Runs[Index - 1].NumberOfBits < Run.NumberOfBits; Index--) {
        Runs[Index] = Runs[Index - 1];
    }
    Runs[Index] = Run;
    return Count;
}

ULONG RtlFindClearRuns(PRTL_BITMAP BitMapHeader, PRTL_BITMAP_RUN RunArray, ULONG SizeOfRunArray,
                       BOOLEAN LocateLongestRuns)
{
    RTL_BITMAP_RUN Run = {0};
    ULONG Count = 0;
    while (SizeOfRunArray != 0 && (LocateLongestRuns || Count < SizeOfRunArray)) {
        Run.NumberOfBits = RtlpFindRun(BitMapHeader, Run.StartingIndex, 0, &Run.StartingIndex);
        if (Run.NumberOfBits == 0) {
            break;
        }
        if (LocateLongestRuns) {
            Count = RtlpInsertRun(RunArray, Count, SizeOfRunArray, Run);
        } else {
            RunArray[Count++] = Run;
        }
        Run.StartingIndex += Run.NumberOfBits;
    }
    return Count;
}
