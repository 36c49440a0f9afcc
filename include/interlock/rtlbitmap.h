/*
 * rtlbitmap.h: bitmaps. An RTL_BITMAP describes a buffer of the caller, which is an array of ULONG; bit 0 is the lowest of the
 * first one. A range outside the bitmap is not changed, and is neither clear nor set. A run is a range of equal bits that
 * cannot be extended.
 *
 * At any IRQL if the buffer is not pageable. Bitmaps have no lock; the caller serializes access.
 */
#ifndef INTERLOCK_RTLBITMAP_H
#define INTERLOCK_RTLBITMAP_H

#include <interlock/ntdef.h>

typedef struct _RTL_BITMAP {
    ULONG SizeOfBitMap; /* in bits */
    PULONG Buffer;
} RTL_BITMAP, *PRTL_BITMAP;

typedef struct _RTL_BITMAP_RUN {
    ULONG StartingIndex;
    ULONG NumberOfBits;
} RTL_BITMAP_RUN, *PRTL_BITMAP_RUN;

C_ASSERT(sizeof(RTL_BITMAP) == 16 && sizeof(RTL_BITMAP_RUN) == 8);

INTERLOCK_BEGIN

/* Describing and changing bitmaps. */

/* Describes a bitmap in a buffer. The bits stay as they are. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeBitMap(PRTL_BITMAP BitMapHeader, PULONG BitMapBuffer, ULONG SizeOfBitMap);

/* Clears or sets one bit, which must be inside. Since XP. */
NTSYSAPI VOID RtlClearBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);
NTSYSAPI VOID RtlSetBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);

/* Clears or sets a range. Since NT 3.1. */
NTSYSAPI VOID RtlClearBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToClear);
NTSYSAPI VOID RtlSetBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToSet);

/* Clears or sets all bits. Since NT 3.1. */
NTSYSAPI VOID RtlClearAllBits(PRTL_BITMAP BitMapHeader);
NTSYSAPI VOID RtlSetAllBits(PRTL_BITMAP BitMapHeader);

/* Copies the bits of a bitmap to another one, from bit TargetBit on, as far as both go. Since 8. */
NTSYSAPI VOID RtlCopyBitMap(PRTL_BITMAP Source, PRTL_BITMAP Destination, ULONG TargetBit);

/* Copies bits TargetBit and following of a bitmap to the beginning of another one, as far as both go. Since 8. */
NTSYSAPI VOID RtlExtractBitMap(PRTL_BITMAP Source, PRTL_BITMAP Destination, ULONG TargetBit, ULONG NumberOfBits);

/* Looking at bits. */

/* Returns TRUE if the bit, which must be inside, is set. Since XP. */
NTSYSAPI BOOLEAN RtlTestBit(PRTL_BITMAP BitMapHeader, ULONG BitNumber);

/* Returns 1 if the bit is set, otherwise 0. Since NT 3.1. */
FORCEINLINE BOOLEAN RtlCheckBit(PRTL_BITMAP BitMapHeader, ULONG BitPosition)
{
    return (BitMapHeader->Buffer[BitPosition / 32] >> (BitPosition % 32)) & 1;
}

/* Returns TRUE if all bits of a range are clear, or set; FALSE for an empty range and one that is not inside. Since NT
   3.1. */
NTSYSAPI BOOLEAN RtlAreBitsClear(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);
NTSYSAPI BOOLEAN RtlAreBitsSet(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);

/* Returns the number of clear or set bits. Since NT 3.1. */
NTSYSAPI ULONG RtlNumberOfClearBits(PRTL_BITMAP BitMapHeader);
NTSYSAPI ULONG RtlNumberOfSetBits(PRTL_BITMAP BitMapHeader);

/* Returns the number of clear or set bits in a range; 0 if it is not inside. Since 10. */
NTSYSAPI ULONG RtlNumberOfClearBitsInRange(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);
NTSYSAPI ULONG RtlNumberOfSetBitsInRange(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length);

/* Returns the number of set bits of an integer. Since 7. */
NTSYSAPI ULONG RtlNumberOfSetBitsUlongPtr(ULONG_PTR Target);

/* Returns the position of the highest or lowest set bit; -1 if there is none. Since XP. */
NTSYSAPI CCHAR RtlFindMostSignificantBit(ULONGLONG Set);
NTSYSAPI CCHAR RtlFindLeastSignificantBit(ULONGLONG Set);

/* Finding ranges. */

/* Returns the first range of NumberToFind clear or set bits at or behind HintIndex, or if there is none, the first one of the
   bitmap; 0xFFFFFFFF if there is none at all. A hint outside the bitmap is 0. NumberToFind 0 returns the hint. The
   AndSet and AndClear forms change the bits that they find. Since NT 3.1. */
NTSYSAPI ULONG RtlFindClearBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
NTSYSAPI ULONG RtlFindSetBits(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
NTSYSAPI ULONG RtlFindClearBitsAndSet(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);
NTSYSAPI ULONG RtlFindSetBitsAndClear(PRTL_BITMAP BitMapHeader, ULONG NumberToFind, ULONG HintIndex);

/* Returns the number of bits of the first clear or set run at or behind FromIndex, and stores where it begins; 0 if there is
   none. Bits before FromIndex do not count. Since 2000, 10. */
NTSYSAPI ULONG RtlFindNextForwardRunClear(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex);
NTSYSAPI ULONG RtlFindNextForwardRunSet(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex);

/* Returns the number of bits of the last clear run at or before FromIndex, up to FromIndex, and stores where it begins; 0 if
   there is none. Since 2000. */
NTSYSAPI ULONG RtlFindLastBackwardRunClear(PRTL_BITMAP BitMapHeader, ULONG FromIndex, PULONG StartingRunIndex);

/* Returns the number of bits of the first or longest clear run, and stores where it begins; 0 if there is none. Since NT
   3.1. */
NTSYSAPI ULONG RtlFindFirstRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex);
NTSYSAPI ULONG RtlFindLongestRunClear(PRTL_BITMAP BitMapHeader, PULONG StartingIndex);

/* Stores up to SizeOfRunArray clear runs and returns how many: the first ones, or the longest ones, longest first. Since NT
   3.1. */
NTSYSAPI ULONG RtlFindClearRuns(PRTL_BITMAP BitMapHeader, PRTL_BITMAP_RUN RunArray, ULONG SizeOfRunArray,
                                BOOLEAN LocateLongestRuns);

INTERLOCK_END

#endif
