/*
 * rtldriver.h: the runtime of drivers beside rtl.h. Integers and blocks of memory, bitmaps, ordered tables and splay trees,
 * pseudo-random numbers, the version of Windows.
 *
 * Integers and memory: byte order, unaligned integers, 64-bit arithmetic by name, memory filled and compared by words, all of
 * it at any IRQL; ntintsafe.h has arithmetic that checks for overflow.
 *
 * Tables copy the elements of their user into nodes that the user's routines allocate and free, and order them by the user's
 * compare routine. RTL_GENERIC_TABLE is a splay tree: a search moves what it finds to the root. RTL_AVL_TABLE is a balanced
 * tree; with RTL_USE_AVL_TABLES defined, the names of generic tables mean it. Tables have no lock: the caller serializes
 * access, also to searches in a splay tree. At any IRQL that the routines and the memory allow.
 */
#ifndef INTERLOCK_RTLDRIVER_H
#define INTERLOCK_RTLDRIVER_H

#include <interlock/interlocked.h>
#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/* Byte order. */

/* Returns the integer with its bytes in the opposite order. Since XP. */
FORCEINLINE USHORT RtlUshortByteSwap(USHORT Source)
{
    return __builtin_bswap16(Source);
}
FORCEINLINE ULONG RtlUlongByteSwap(ULONG Source)
{
    return __builtin_bswap32(Source);
}
FORCEINLINE ULONGLONG RtlUlonglongByteSwap(ULONGLONG Source)
{
    return __builtin_bswap64(Source);
}

/* Unaligned integers. */

#define RtlStoreUshort(Address, Value)                                                                                 \
    do {                                                                                                               \
        const USHORT interlockValue = (USHORT)(Value);                                                                 \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlong(Address, Value)                                                                                  \
    do {                                                                                                               \
        const ULONG interlockValue = (ULONG)(Value);                                                                   \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlonglong(Address, Value)                                                                              \
    do {                                                                                                               \
        const ULONGLONG interlockValue = (ULONGLONG)(Value);                                                           \
        memcpy((Address), &interlockValue, sizeof(interlockValue));                                                    \
    } while (0)
#define RtlStoreUlongPtr(Address, Value)                RtlStoreUlonglong(Address, Value)
#define RtlRetrieveUshort(DestAddress, SourceAddress)   memcpy((DestAddress), (SourceAddress), sizeof(USHORT))
#define RtlRetrieveUlong(DestAddress, SourceAddress)    memcpy((DestAddress), (SourceAddress), sizeof(ULONG))

/* Sizes and pointers, rounded to the size of a type. ntdef.h has the forms with a number. */

#define ALIGN_DOWN(Length, Type)                  ALIGN_DOWN_BY(Length, sizeof(Type))
#define ALIGN_UP(Length, Type)                    ALIGN_UP_BY(Length, sizeof(Type))
#define ALIGN_DOWN_POINTER_BY(Address, Alignment) ((PVOID)ALIGN_DOWN_BY(Address, Alignment))
#define ALIGN_UP_POINTER_BY(Address, Alignment)   ((PVOID)ALIGN_UP_BY(Address, Alignment))
#define ALIGN_DOWN_POINTER(Address, Type)         ALIGN_DOWN_POINTER_BY(Address, sizeof(Type))
#define ALIGN_UP_POINTER(Address, Type)           ALIGN_UP_POINTER_BY(Address, sizeof(Type))
#define ROUND_TO_SIZE(Length, Alignment)          (((Length) + ((Alignment)-1)) & ~((Alignment)-1))

/* Bits of shared flags. */

#define RtlInterlockedSetBits(Flags, Flag)                 InterlockedOr((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedAndBits(Flags, Flag)                 InterlockedAnd((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedClearBits(Flags, Flag)               RtlInterlockedAndBits((Flags), ~(Flag))
#define RtlInterlockedXorBits(Flags, Flag)                 InterlockedXor((volatile LONG *)(Flags), (LONG)(Flag))
#define RtlInterlockedSetBitsDiscardReturn(Flags, Flag)    ((void)RtlInterlockedSetBits((Flags), (Flag)))
#define RtlInterlockedAndBitsDiscardReturn(Flags, Flag)    ((void)RtlInterlockedAndBits((Flags), (Flag)))
#define RtlInterlockedClearBitsDiscardReturn(Flags, Flag)  ((void)RtlInterlockedClearBits((Flags), (Flag)))

/* Locally unique identifiers. */

#define RtlEqualLuid(Luid1, Luid2)                                                                                     \
    ((BOOLEAN)((Luid1)->LowPart == (Luid2)->LowPart && (Luid1)->HighPart == (Luid2)->HighPart))
#define RtlIsZeroLuid(Luid) ((BOOLEAN)((Luid)->LowPart == 0 && (Luid)->HighPart == 0))

/* 64-bit integers. Arithmetic wraps around. */

/* Internal: a LARGE_INTEGER of the value. */
FORCEINLINE LARGE_INTEGER InterlockLargeInteger(ULONGLONG Value)
{
    LARGE_INTEGER result;
    result.QuadPart = (LONGLONG)Value;
    return result;
}

/* Returns the integer as a LARGE_INTEGER. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlConvertLongToLargeInteger(LONG SignedInteger)
{
    return InterlockLargeInteger((ULONGLONG)(LONGLONG)SignedInteger);
}
FORCEINLINE LARGE_INTEGER RtlConvertUlongToLargeInteger(ULONG UnsignedInteger)
{
    return InterlockLargeInteger(UnsignedInteger);
}

/* Adds, subtracts, negates. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerAdd(LARGE_INTEGER Addend1, LARGE_INTEGER Addend2)
{
    return InterlockLargeInteger((ULONGLONG)Addend1.QuadPart + (ULONGLONG)Addend2.QuadPart);
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerSubtract(LARGE_INTEGER Minuend, LARGE_INTEGER Subtrahend)
{
    return InterlockLargeInteger((ULONGLONG)Minuend.QuadPart - (ULONGLONG)Subtrahend.QuadPart);
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerNegate(LARGE_INTEGER Subtrahend)
{
    return InterlockLargeInteger(0 - (ULONGLONG)Subtrahend.QuadPart);
}

/* Shifts by ShiftCount modulo 64; the arithmetic shift keeps the sign. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerShiftLeft(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)LargeInteger.QuadPart << (ShiftCount & 63));
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerShiftRight(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)LargeInteger.QuadPart >> (ShiftCount & 63));
}
FORCEINLINE LARGE_INTEGER RtlLargeIntegerArithmeticShift(LARGE_INTEGER LargeInteger, CCHAR ShiftCount)
{
    return InterlockLargeInteger((ULONGLONG)(LargeInteger.QuadPart >> (ShiftCount & 63)));
}

/* Multiplies two 32-bit integers to 64 bits. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlEnlargedIntegerMultiply(LONG Multiplicand, LONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)((LONGLONG)Multiplicand * Multiplier));
}
FORCEINLINE LARGE_INTEGER RtlEnlargedUnsignedMultiply(ULONG Multiplicand, ULONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)Multiplicand * Multiplier);
}

/* Multiplies a 64-bit and a 32-bit integer. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlExtendedIntegerMultiply(LARGE_INTEGER Multiplicand, LONG Multiplier)
{
    return InterlockLargeInteger((ULONGLONG)Multiplicand.QuadPart * (ULONGLONG)(LONGLONG)Multiplier);
}

/* Divides, and stores the remainder unless the pointer is NULL. A divisor of 0 is the processor's exception. Since NT
   3.1. */
FORCEINLINE LARGE_INTEGER RtlLargeIntegerDivide(LARGE_INTEGER Dividend, LARGE_INTEGER Divisor, PLARGE_INTEGER Remainder)
{
    if (Remainder != NULL)
        Remainder->QuadPart = Dividend.QuadPart % Divisor.QuadPart;
    return InterlockLargeInteger((ULONGLONG)(Dividend.QuadPart / Divisor.QuadPart));
}
FORCEINLINE LARGE_INTEGER RtlExtendedLargeIntegerDivide(LARGE_INTEGER Dividend, ULONG Divisor, PULONG Remainder)
{
    if (Remainder != NULL)
        *Remainder = (ULONG)((ULONGLONG)Dividend.QuadPart % Divisor);
    return InterlockLargeInteger((ULONGLONG)Dividend.QuadPart / Divisor);
}
FORCEINLINE ULONG RtlEnlargedUnsignedDivide(ULARGE_INTEGER Dividend, ULONG Divisor, PULONG Remainder)
{
    if (Remainder != NULL)
        *Remainder = (ULONG)(Dividend.QuadPart % Divisor);
    return (ULONG)(Dividend.QuadPart / Divisor);
}

/* Divides by a constant: multiplies by its 64-bit reciprocal, takes the upper half and shifts it. Since NT 3.1. */
FORCEINLINE LARGE_INTEGER RtlExtendedMagicDivide(LARGE_INTEGER Dividend, LARGE_INTEGER MagicDivisor, CCHAR ShiftCount)
{
    __extension__ typedef unsigned __int128 wide;
    const ULONGLONG magnitude = Dividend.QuadPart < 0 ? 0 - (ULONGLONG)Dividend.QuadPart : (ULONGLONG)Dividend.QuadPart;
    const ULONGLONG high = (ULONGLONG)(((wide)magnitude * (ULONGLONG)MagicDivisor.QuadPart) >> 64);
    const ULONGLONG result = high >> (ShiftCount & 63);
    return InterlockLargeInteger(Dividend.QuadPart < 0 ? 0 - result : result);
}

#define RtlLargeIntegerAnd(Result, Source, Mask)      ((Result).QuadPart = (Source).QuadPart & (Mask).QuadPart)
#define RtlLargeIntegerEqualTo(X, Y)                  ((X).QuadPart == (Y).QuadPart)
#define RtlLargeIntegerNotEqualTo(X, Y)               ((X).QuadPart != (Y).QuadPart)
#define RtlLargeIntegerGreaterThan(X, Y)              ((X).QuadPart > (Y).QuadPart)
#define RtlLargeIntegerGreaterThanOrEqualTo(X, Y)     ((X).QuadPart >= (Y).QuadPart)
#define RtlLargeIntegerLessThan(X, Y)                 ((X).QuadPart < (Y).QuadPart)
#define RtlLargeIntegerLessThanOrEqualTo(X, Y)        ((X).QuadPart <= (Y).QuadPart)
#define RtlLargeIntegerEqualToZero(X)                 ((X).QuadPart == 0)
#define RtlLargeIntegerNotEqualToZero(X)              ((X).QuadPart != 0)
#define RtlLargeIntegerGreaterThanZero(X)             ((X).QuadPart > 0)
#define RtlLargeIntegerGreaterOrEqualToZero(X)        ((X).QuadPart >= 0)
#define RtlLargeIntegerLessThanZero(X)                ((X).QuadPart < 0)
#define RtlLargeIntegerLessOrEqualToZero(X)           ((X).QuadPart <= 0)

/* Memory by words. */

/* Fills memory with a pattern; what makes no whole word at the end is left alone. Since NT 3.1, XP. */
NTSYSAPI VOID RtlFillMemoryUlong(PVOID Destination, SIZE_T Length, ULONG Pattern);
NTSYSAPI VOID RtlFillMemoryUlonglong(PVOID Destination, SIZE_T Length, ULONGLONG Pattern);

/* Returns the number of leading bytes that repeat the pattern, in whole words. Since NT 3.1. */
NTSYSAPI SIZE_T RtlCompareMemoryUlong(PVOID Source, SIZE_T Length, ULONG Pattern);

/* Returns TRUE if all bytes are 0. Since 10. */
NTSYSAPI BOOLEAN RtlIsZeroMemory(PVOID Buffer, SIZE_T Length);

/* Copies memory that will not be read soon. Differs: through the caches. Since XP. */
FORCEINLINE VOID RtlCopyMemoryNonTemporal(VOID UNALIGNED *Destination, const VOID UNALIGNED *Source, SIZE_T Length)
{
    memcpy(Destination, Source, Length);
}

/* Prefetches memory that will be read once. Since XP. */
FORCEINLINE VOID RtlPrefetchMemoryNonTemporal(PVOID Source, SIZE_T Length)
{
    SIZE_T offset;
    for (offset = 0; offset < Length; offset += SYSTEM_CACHE_ALIGNMENT_SIZE)
        __builtin_prefetch((const CHAR *)Source + offset, 0, 0);
}
#define PreFetchCacheLine(Level, Address) __builtin_prefetch(Address)

/*
 * Bitmaps. An RTL_BITMAP describes a buffer of the caller, which is an array of ULONG; bit 0 is the lowest of the first one. A
 * range outside of the bitmap is not changed, and is neither clear nor set. A run is a range of equal bits that cannot be
 * extended.
 *
 * At any IRQL if the buffer is not pageable. Bitmaps have no lock; the caller serializes access.
 */

typedef struct _RTL_BITMAP {
    ULONG SizeOfBitMap; /* in bits */
    PULONG Buffer;
} RTL_BITMAP, *PRTL_BITMAP;

typedef struct _RTL_BITMAP_RUN {
    ULONG StartingIndex;
    ULONG NumberOfBits;
} RTL_BITMAP_RUN, *PRTL_BITMAP_RUN;

C_ASSERT(sizeof(RTL_BITMAP) == 16 && sizeof(RTL_BITMAP_RUN) == 8);

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

/* Bitmaps: looking at bits. */

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

/* Bitmaps: finding ranges. */

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

/* Tables. */

typedef struct _RTL_SPLAY_LINKS {
    struct _RTL_SPLAY_LINKS *Parent; /* the root's is itself */
    struct _RTL_SPLAY_LINKS *LeftChild;
    struct _RTL_SPLAY_LINKS *RightChild;
} RTL_SPLAY_LINKS, *PRTL_SPLAY_LINKS;

typedef struct _RTL_BALANCED_LINKS {
    struct _RTL_BALANCED_LINKS *Parent; /* the root's is the BalancedRoot of the table */
    struct _RTL_BALANCED_LINKS *LeftChild;
    struct _RTL_BALANCED_LINKS *RightChild;
    CHAR Balance; /* depth of the right subtree minus that of the left one */
    UCHAR Reserved[3];
} RTL_BALANCED_LINKS, *PRTL_BALANCED_LINKS;

typedef enum _TABLE_SEARCH_RESULT {
    TableEmptyTree,
    TableFoundNode,
    TableInsertAsLeft,
    TableInsertAsRight
} TABLE_SEARCH_RESULT;

typedef enum _RTL_GENERIC_COMPARE_RESULTS { GenericLessThan, GenericGreaterThan, GenericEqual } RTL_GENERIC_COMPARE_RESULTS;

struct _RTL_AVL_TABLE;
typedef RTL_GENERIC_COMPARE_RESULTS NTAPI RTL_AVL_COMPARE_ROUTINE(struct _RTL_AVL_TABLE *Table, PVOID FirstStruct,
                                                                  PVOID SecondStruct);
typedef RTL_AVL_COMPARE_ROUTINE *PRTL_AVL_COMPARE_ROUTINE;
typedef PVOID NTAPI RTL_AVL_ALLOCATE_ROUTINE(struct _RTL_AVL_TABLE *Table, CLONG ByteSize);
typedef RTL_AVL_ALLOCATE_ROUTINE *PRTL_AVL_ALLOCATE_ROUTINE;
typedef VOID NTAPI RTL_AVL_FREE_ROUTINE(struct _RTL_AVL_TABLE *Table, PVOID Buffer);
typedef RTL_AVL_FREE_ROUTINE *PRTL_AVL_FREE_ROUTINE;
typedef NTSTATUS NTAPI RTL_AVL_MATCH_FUNCTION(struct _RTL_AVL_TABLE *Table, PVOID UserData, PVOID MatchData);
typedef RTL_AVL_MATCH_FUNCTION *PRTL_AVL_MATCH_FUNCTION;

typedef struct _RTL_AVL_TABLE {
    RTL_BALANCED_LINKS BalancedRoot; /* its right child is the root */
    PVOID OrderedPointer;
    ULONG WhichOrderedElement;
    ULONG NumberGenericTableElements;
    ULONG DepthOfTree;
    PRTL_BALANCED_LINKS RestartKey;
    ULONG DeleteCount;
    PRTL_AVL_COMPARE_ROUTINE CompareRoutine;
    PRTL_AVL_ALLOCATE_ROUTINE AllocateRoutine;
    PRTL_AVL_FREE_ROUTINE FreeRoutine;
    PVOID TableContext;
} RTL_AVL_TABLE, *PRTL_AVL_TABLE;

struct _RTL_GENERIC_TABLE;
typedef RTL_GENERIC_COMPARE_RESULTS NTAPI RTL_GENERIC_COMPARE_ROUTINE(struct _RTL_GENERIC_TABLE *Table,
                                                                      PVOID FirstStruct, PVOID SecondStruct);
typedef RTL_GENERIC_COMPARE_ROUTINE *PRTL_GENERIC_COMPARE_ROUTINE;
typedef PVOID NTAPI RTL_GENERIC_ALLOCATE_ROUTINE(struct _RTL_GENERIC_TABLE *Table, CLONG ByteSize);
typedef RTL_GENERIC_ALLOCATE_ROUTINE *PRTL_GENERIC_ALLOCATE_ROUTINE;
typedef VOID NTAPI RTL_GENERIC_FREE_ROUTINE(struct _RTL_GENERIC_TABLE *Table, PVOID Buffer);
typedef RTL_GENERIC_FREE_ROUTINE *PRTL_GENERIC_FREE_ROUTINE;

typedef struct _RTL_GENERIC_TABLE {
    PRTL_SPLAY_LINKS TableRoot;
    LIST_ENTRY InsertOrderList;
    PLIST_ENTRY OrderedPointer;
    ULONG WhichOrderedElement;
    ULONG NumberGenericTableElements;
    PRTL_GENERIC_COMPARE_ROUTINE CompareRoutine;
    PRTL_GENERIC_ALLOCATE_ROUTINE AllocateRoutine;
    PRTL_GENERIC_FREE_ROUTINE FreeRoutine;
    PVOID TableContext;
} RTL_GENERIC_TABLE, *PRTL_GENERIC_TABLE;

C_ASSERT(sizeof(RTL_SPLAY_LINKS) == 24 && sizeof(RTL_BALANCED_LINKS) == 32);
C_ASSERT(sizeof(RTL_GENERIC_TABLE) == 72 && sizeof(RTL_AVL_TABLE) == 104);

typedef struct _UNICODE_PREFIX_TABLE_ENTRY {
    CSHORT NodeTypeCode;
    CSHORT NameLength;
    struct _UNICODE_PREFIX_TABLE_ENTRY *NextPrefixTree;
    struct _UNICODE_PREFIX_TABLE_ENTRY *CaseMatch; /* a ring of the entries that differ in case only */
    RTL_SPLAY_LINKS Links;
    PUNICODE_STRING Prefix;
} UNICODE_PREFIX_TABLE_ENTRY, *PUNICODE_PREFIX_TABLE_ENTRY;

typedef struct _UNICODE_PREFIX_TABLE {
    CSHORT NodeTypeCode;
    CSHORT NameLength;
    PUNICODE_PREFIX_TABLE_ENTRY NextPrefixTree;
    PUNICODE_PREFIX_TABLE_ENTRY LastNextEntry;
} UNICODE_PREFIX_TABLE, *PUNICODE_PREFIX_TABLE;

C_ASSERT(sizeof(UNICODE_PREFIX_TABLE_ENTRY) == 56 && sizeof(UNICODE_PREFIX_TABLE) == 24);

/* Splay links. The caller links nodes with the macros, and orders them. */

#define RtlInitializeSplayLinks(Links)                                                                                 \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockLinks = (PRTL_SPLAY_LINKS)(Links);                                                   \
        interlockLinks->Parent = interlockLinks;                                                                       \
        interlockLinks->LeftChild = NULL;                                                                              \
        interlockLinks->RightChild = NULL;                                                                             \
    } while (0)
#define RtlParent(Links)       ((PRTL_SPLAY_LINKS)(Links)->Parent)
#define RtlLeftChild(Links)    ((PRTL_SPLAY_LINKS)(Links)->LeftChild)
#define RtlRightChild(Links)   ((PRTL_SPLAY_LINKS)(Links)->RightChild)
#define RtlIsRoot(Links)       (RtlParent(Links) == (PRTL_SPLAY_LINKS)(Links))
#define RtlIsLeftChild(Links)  (RtlLeftChild(RtlParent(Links)) == (PRTL_SPLAY_LINKS)(Links))
#define RtlIsRightChild(Links) (RtlRightChild(RtlParent(Links)) == (PRTL_SPLAY_LINKS)(Links))
#define RtlInsertAsLeftChild(ParentLinks, ChildLinks)                                                                  \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockParent = (PRTL_SPLAY_LINKS)(ParentLinks);                                            \
        PRTL_SPLAY_LINKS interlockChild = (PRTL_SPLAY_LINKS)(ChildLinks);                                              \
        interlockParent->LeftChild = interlockChild;                                                                   \
        interlockChild->Parent = interlockParent;                                                                      \
    } while (0)
#define RtlInsertAsRightChild(ParentLinks, ChildLinks)                                                                 \
    do {                                                                                                               \
        PRTL_SPLAY_LINKS interlockParent = (PRTL_SPLAY_LINKS)(ParentLinks);                                            \
        PRTL_SPLAY_LINKS interlockChild = (PRTL_SPLAY_LINKS)(ChildLinks);                                              \
        interlockParent->RightChild = interlockChild;                                                                  \
        interlockChild->Parent = interlockParent;                                                                      \
    } while (0)

/* Moves a node to the root of its tree by rotations, and returns it. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlSplay(PRTL_SPLAY_LINKS Links);

/* Removes a node and moves its parent to the root. Returns the root; NULL if the tree is empty. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlDelete(PRTL_SPLAY_LINKS Links);

/* Removes a node and leaves the rest where it is, except for one that takes its place. Updates *Root. Since NT 3.1. */
NTSYSAPI VOID RtlDeleteNoSplay(PRTL_SPLAY_LINKS Links, PRTL_SPLAY_LINKS *Root);

/* Returns the next or previous node in the order of the tree, among those below the node; NULL if there is none. Since NT
   3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlSubtreeSuccessor(PRTL_SPLAY_LINKS Links);
NTSYSAPI PRTL_SPLAY_LINKS RtlSubtreePredecessor(PRTL_SPLAY_LINKS Links);

/* Returns the next or previous node in the order of the tree; NULL if there is none. Since NT 3.1. */
NTSYSAPI PRTL_SPLAY_LINKS RtlRealSuccessor(PRTL_SPLAY_LINKS Links);
NTSYSAPI PRTL_SPLAY_LINKS RtlRealPredecessor(PRTL_SPLAY_LINKS Links);

/* Generic tables. The allocate routine gets the size of an element plus that of an RTL_SPLAY_LINKS and a LIST_ENTRY. */

/* Initializes an empty table. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeGenericTable(PRTL_GENERIC_TABLE Table, PRTL_GENERIC_COMPARE_ROUTINE CompareRoutine,
                                        PRTL_GENERIC_ALLOCATE_ROUTINE AllocateRoutine,
                                        PRTL_GENERIC_FREE_ROUTINE FreeRoutine, PVOID TableContext);

/* Returns the element that equals Buffer, or a new one with a copy of it; NULL if the allocate routine failed. Stores whether
   it is new, unless the pointer is NULL. Since NT 3.1. */
NTSYSAPI PVOID RtlInsertElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                            PBOOLEAN NewElement);

/* Inserts at the place that a search found. Since XP. */
NTSYSAPI PVOID RtlInsertElementGenericTableFull(PRTL_GENERIC_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                                PBOOLEAN NewElement, PVOID NodeOrParent,
                                                TABLE_SEARCH_RESULT SearchResult);

/* Removes the element that equals Buffer and frees it. Returns FALSE if there is none. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlDeleteElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer);

/* Returns the element that equals Buffer; NULL if there is none. Since NT 3.1. */
NTSYSAPI PVOID RtlLookupElementGenericTable(PRTL_GENERIC_TABLE Table, PVOID Buffer);

/* The same, and stores the node, or the parent that it would have, for the insertion. Since XP. */
NTSYSAPI PVOID RtlLookupElementGenericTableFull(PRTL_GENERIC_TABLE Table, PVOID Buffer, PVOID *NodeOrParent,
                                                TABLE_SEARCH_RESULT *SearchResult);

/* Returns the first element, or the one that follows the last one returned, in order; NULL behind the last one. The element
   becomes the root, which is where the enumeration continues: no other call that splays may come between. Since NT 3.1. */
NTSYSAPI PVOID RtlEnumerateGenericTable(PRTL_GENERIC_TABLE Table, BOOLEAN Restart);

/* Returns the elements in order. *RestartKey is NULL for the first one. Since NT 3.5. */
NTSYSAPI PVOID RtlEnumerateGenericTableWithoutSplaying(PRTL_GENERIC_TABLE Table, PVOID *RestartKey);

/* Returns element I, counted from 0 in the order of insertion; NULL if there is none. Since NT 3.1. */
NTSYSAPI PVOID RtlGetElementGenericTable(PRTL_GENERIC_TABLE Table, ULONG I);

/* Returns the number of elements. Since NT 3.1. */
NTSYSAPI ULONG RtlNumberGenericTableElements(PRTL_GENERIC_TABLE Table);

/* Returns TRUE if the table is empty. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlIsGenericTableEmpty(PRTL_GENERIC_TABLE Table);

/* Balanced tables. The allocate routine gets the size of an element plus that of an RTL_BALANCED_LINKS. */

/* Initializes an empty table. Since XP. */
NTSYSAPI VOID RtlInitializeGenericTableAvl(PRTL_AVL_TABLE Table, PRTL_AVL_COMPARE_ROUTINE CompareRoutine,
                                           PRTL_AVL_ALLOCATE_ROUTINE AllocateRoutine, PRTL_AVL_FREE_ROUTINE FreeRoutine,
                                           PVOID TableContext);

/* Returns the element that equals Buffer, or a new one with a copy of it; NULL if the allocate routine failed. Stores whether
   it is new, unless the pointer is NULL. The Full form inserts at the place that a search found. Since XP. */
NTSYSAPI PVOID RtlInsertElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                               PBOOLEAN NewElement);
NTSYSAPI PVOID RtlInsertElementGenericTableFullAvl(PRTL_AVL_TABLE Table, PVOID Buffer, CLONG BufferSize,
                                                   PBOOLEAN NewElement, PVOID NodeOrParent,
                                                   TABLE_SEARCH_RESULT SearchResult);

/* Removes the element that equals Buffer, or that of a node that a search found, and frees it. Returns FALSE if there is
   none. Since XP, 10. */
NTSYSAPI BOOLEAN RtlDeleteElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer);
NTSYSAPI VOID RtlDeleteElementGenericTableAvlEx(PRTL_AVL_TABLE Table, PVOID NodeOrParent);

/* Returns the element that equals Buffer; NULL if there is none. The Full form also stores the node, or the parent that it
   would have. Since XP. */
NTSYSAPI PVOID RtlLookupElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer);
NTSYSAPI PVOID RtlLookupElementGenericTableFullAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PVOID *NodeOrParent,
                                                   TABLE_SEARCH_RESULT *SearchResult);

/* Returns the first one, in order, of the elements that equal Buffer, and stores it as a restart key for
   RtlEnumerateGenericTableWithoutSplayingAvl; NULL if there is none. Since XP. */
NTSYSAPI PVOID RtlLookupFirstMatchingElementGenericTableAvl(PRTL_AVL_TABLE Table, PVOID Buffer, PVOID *RestartKey);

/* Returns the first element, or the one that follows the last one returned, in order; NULL behind the last one. The table
   keeps the position, also while elements are inserted and removed. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableAvl(PRTL_AVL_TABLE Table, BOOLEAN Restart);

/* Returns the elements in order. *RestartKey is NULL for the first one. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableWithoutSplayingAvl(PRTL_AVL_TABLE Table, PVOID *RestartKey);

/* Returns the next element that matches, as a directory is read: from *RestartKey, or if it is NULL or elements were deleted
   since, from the element that equals Buffer or would follow it. NextFlag skips the element of the position. MatchFunction,
   if not NULL, returns STATUS_SUCCESS, STATUS_NO_MATCH, or STATUS_NO_MORE_MATCHES to stop. Since XP. */
NTSYSAPI PVOID RtlEnumerateGenericTableLikeADirectory(PRTL_AVL_TABLE Table, PRTL_AVL_MATCH_FUNCTION MatchFunction,
                                                      PVOID MatchData, ULONG NextFlag, PVOID *RestartKey,
                                                      PULONG DeleteCount, PVOID Buffer);

/* Returns element I, counted from 0 in order; NULL if there is none. Since XP. */
NTSYSAPI PVOID RtlGetElementGenericTableAvl(PRTL_AVL_TABLE Table, ULONG I);

/* Returns the number of elements. Since XP. */
NTSYSAPI ULONG RtlNumberGenericTableElementsAvl(PRTL_AVL_TABLE Table);

/* Returns TRUE if the table is empty. Since XP. */
NTSYSAPI BOOLEAN RtlIsGenericTableEmptyAvl(PRTL_AVL_TABLE Table);

/* Prefix tables. Entries are paths, which begin with a backslash; one is a prefix of a path if the path equals it or continues
   with a backslash. The caller keeps the entries and their strings. */

/* Initializes an empty table. Since NT 3.1. */
NTSYSAPI VOID RtlInitializeUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable);

/* Inserts an entry. Returns FALSE if the table has one with the same string, also in case. Since NT 3.1. */
NTSYSAPI BOOLEAN RtlInsertUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_STRING Prefix,
                                        PUNICODE_PREFIX_TABLE_ENTRY PrefixTableEntry);

/* Removes an entry. Since NT 3.1. */
NTSYSAPI VOID RtlRemoveUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_PREFIX_TABLE_ENTRY PrefixTableEntry);

/* Returns the entry with the longest prefix of a path; NULL if there is none. From character CaseInsensitiveIndex on, case is
   ignored. Since NT 3.1. */
NTSYSAPI PUNICODE_PREFIX_TABLE_ENTRY RtlFindUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, PUNICODE_STRING FullName,
                                                          ULONG CaseInsensitiveIndex);

/* Returns the first entry, or the one that follows the last one returned; NULL behind the last one. The table keeps the
   position, also while entries are inserted and removed. Since NT 3.1. */
NTSYSAPI PUNICODE_PREFIX_TABLE_ENTRY RtlNextUnicodePrefix(PUNICODE_PREFIX_TABLE PrefixTable, BOOLEAN Restart);

/* Pseudo-random numbers. A seed is the whole state: the same seed gives the same numbers, and threads with seeds of their own
   do not disturb each other. Not for secrets. */

/* Returns the next number from 0 to MAXLONG - 1 and changes the seed. Differs: the numbers are not those of Windows, where
   all callers share a table. At any IRQL. Since NT 3.1, XP. */
NTSYSAPI ULONG RtlRandom(PULONG Seed);
NTSYSAPI ULONG RtlRandomEx(PULONG Seed);

/* Returns the next number of Lehmer's generator, from 0 to MAXLONG - 1, which is also the new seed. At any IRQL. Since NT
   3.1. */
NTSYSAPI ULONG RtlUniform(PULONG Seed);

/* The version of Windows. 10.0, build 19045, a workstation. */

/* Stores the version; dwOSVersionInfoSize, set by the caller, says which of the two structures it is. Since 2000. */
NTSYSAPI NTSTATUS RtlGetVersion(PRTL_OSVERSIONINFOW lpVersionInformation);

/* Compares the members that TypeMask names with the version, by the conditions of ConditionMask. Versions are compared from
   the major number on. Returns STATUS_REVISION_MISMATCH if a condition is not true, STATUS_INVALID_PARAMETER if there is
   nothing to compare or no condition for it. Since 2000. */
NTSYSAPI NTSTATUS RtlVerifyVersionInfo(PRTL_OSVERSIONINFOEXW VersionInfo, ULONG TypeMask, ULONGLONG ConditionMask);

/* Returns the mask with the condition for the members of TypeMask. Since 2000. */
NTSYSAPI ULONGLONG VerSetConditionMask(ULONGLONG ConditionMask, ULONG TypeMask, UCHAR Condition);
#define VER_SET_CONDITION(ConditionMask, TypeBitMask, ComparisonType)                                                  \
    ((ConditionMask) = VerSetConditionMask((ConditionMask), (TypeBitMask), (ComparisonType)))

INTERLOCK_END

#ifdef RTL_USE_AVL_TABLES
#define RTL_GENERIC_COMPARE_ROUTINE             RTL_AVL_COMPARE_ROUTINE
#define PRTL_GENERIC_COMPARE_ROUTINE            PRTL_AVL_COMPARE_ROUTINE
#define RTL_GENERIC_ALLOCATE_ROUTINE            RTL_AVL_ALLOCATE_ROUTINE
#define PRTL_GENERIC_ALLOCATE_ROUTINE           PRTL_AVL_ALLOCATE_ROUTINE
#define RTL_GENERIC_FREE_ROUTINE                RTL_AVL_FREE_ROUTINE
#define PRTL_GENERIC_FREE_ROUTINE               PRTL_AVL_FREE_ROUTINE
#define RTL_GENERIC_TABLE                       RTL_AVL_TABLE
#define PRTL_GENERIC_TABLE                      PRTL_AVL_TABLE
#define RtlInitializeGenericTable               RtlInitializeGenericTableAvl
#define RtlInsertElementGenericTable            RtlInsertElementGenericTableAvl
#define RtlInsertElementGenericTableFull        RtlInsertElementGenericTableFullAvl
#define RtlDeleteElementGenericTable            RtlDeleteElementGenericTableAvl
#define RtlLookupElementGenericTable            RtlLookupElementGenericTableAvl
#define RtlLookupElementGenericTableFull        RtlLookupElementGenericTableFullAvl
#define RtlEnumerateGenericTable                RtlEnumerateGenericTableAvl
#define RtlEnumerateGenericTableWithoutSplaying RtlEnumerateGenericTableWithoutSplayingAvl
#define RtlGetElementGenericTable               RtlGetElementGenericTableAvl
#define RtlNumberGenericTableElements           RtlNumberGenericTableElementsAvl
#define RtlIsGenericTableEmpty                  RtlIsGenericTableEmptyAvl
#endif

#endif
