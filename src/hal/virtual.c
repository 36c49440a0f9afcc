/* virtual.c: address space of the process. */
#include "hal.h"

#include "halp.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define LINES_SIZE 8192

static int HalpProtection(ULONG Access)
{
    return (Access & HAL_ACCESS_READ ? PROT_READ : 0) | (Access & HAL_ACCESS_WRITE ? PROT_WRITE : 0) |
           (Access & HAL_ACCESS_EXECUTE ? PROT_EXEC : 0);
}

/* Without MAP_NORESERVE: the host charges a page when it becomes writable. */
static PVOID HalpMapNothing(PVOID Address, SIZE_T Size, int Flags)
{
    return mmap(Address, Size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | Flags, -1, 0);
}

static NTSTATUS HalpReserveAt(PVOID Address, SIZE_T Size)
{
    PVOID Found = HalpMapNothing(Address, Size, MAP_FIXED_NOREPLACE);

    if (Found == Address) {
        return STATUS_SUCCESS;
    }
    if (Found != MAP_FAILED) {
        munmap(Found, Size); /* a host that does not know the flag */
    } else if (errno == ENOMEM) {
        return STATUS_NO_MEMORY;
    }
    return STATUS_CONFLICTING_ADDRESSES;
}

/* The host aligns to pages: the excess before the alignment and after the size is unmapped. */
static NTSTATUS HalpReserveAnywhere(SIZE_T Size, SIZE_T Alignment, PVOID *Base)
{
    PUCHAR Found = HalpMapNothing(NULL, Size + Alignment, 0);
    SIZE_T Front;

    if (Found == MAP_FAILED) {
        return STATUS_NO_MEMORY;
    }
    Front = (Alignment - (ULONG_PTR)Found % Alignment) % Alignment;
    if (Front != 0) {
        munmap(Found, Front);
    }
    munmap(Found + Front + Size, Alignment - Front);
    *Base = Found + Front;
    return STATUS_SUCCESS;
}

NTSTATUS HalReserveMemory(PVOID Address, SIZE_T Size, SIZE_T Alignment, PVOID *Base)
{
    HALP_HOST_CALLS;

    *Base = Address;
    return Address != NULL ? HalpReserveAt(Address, Size) : HalpReserveAnywhere(Size, Alignment, Base);
}

VOID HalReleaseMemory(PVOID Base, SIZE_T Size)
{
    HALP_HOST_CALLS;
    munmap(Base, Size);
}

NTSTATUS HalProtectMemory(PVOID Base, SIZE_T Size, ULONG Access)
{
    HALP_HOST_CALLS;

    if (mprotect(Base, Size, HalpProtection(Access)) == 0) {
        return STATUS_SUCCESS;
    }
    return errno == ENOMEM ? STATUS_COMMITMENT_LIMIT : STATUS_ACCESS_DENIED;
}

NTSTATUS HalDecommitMemory(PVOID Base, SIZE_T Size)
{
    HALP_HOST_CALLS;
    return HalpMapNothing(Base, Size, MAP_FIXED) == Base ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

VOID HalResetMemory(PVOID Base, SIZE_T Size)
{
    HALP_HOST_CALLS;
    madvise(Base, Size, MADV_FREE);
}

BOOLEAN HalLockMemory(PVOID Base, SIZE_T Size, BOOLEAN Lock)
{
    HALP_HOST_CALLS;
    return (Lock ? mlock(Base, Size) : munlock(Base, Size)) == 0;
}

/* The host's list of mappings, a line each. */

typedef struct _HALP_LINE {
    unsigned long Begin;
    unsigned long End;
    char Access[5];
    unsigned Major;
    unsigned Minor;
    unsigned long File;
} HALP_LINE;

typedef struct _HALP_SEARCH {
    ULONG_PTR Address;
    PHAL_MAPPING Mapping;
    HALP_LINE Last;                  /* the line before */
    ULONG_PTR FileBegin;             /* of its file */
    BOOLEAN Done;
} HALP_SEARCH;

static BOOLEAN HalpIsSameFile(const HALP_LINE *First, const HALP_LINE *Second)
{
    return First->File != 0 && First->File == Second->File && First->Major == Second->Major &&
           First->Minor == Second->Minor;
}

static VOID HalpFoundMapping(HALP_SEARCH *Search, const HALP_LINE *Line)
{
    PHAL_MAPPING Mapping = Search->Mapping;

    Mapping->Begin = Line->Begin;
    Mapping->End = Line->End;
    Mapping->FileBegin = Line->File != 0 ? Search->FileBegin : Line->Begin;
    Mapping->Access = (Line->Access[0] == 'r' ? HAL_ACCESS_READ : 0) | (Line->Access[1] == 'w' ? HAL_ACCESS_WRITE : 0) |
                      (Line->Access[2] == 'x' ? HAL_ACCESS_EXECUTE : 0);
    Mapping->Mapped = TRUE;
    Mapping->File = Line->File != 0;
    Mapping->Shared = Line->Access[3] == 's';
    Search->Done = TRUE;
}

static VOID HalpTakeLine(HALP_SEARCH *Search, PCSTR Text)
{
    HALP_LINE Line = {0};

    if (sscanf(Text, "%lx-%lx %4s %*x %x:%x %lu", &Line.Begin, &Line.End, Line.Access, &Line.Major, &Line.Minor,
               &Line.File) < 5) {
        return;
    }
    if (!HalpIsSameFile(&Line, &Search->Last)) {
        Search->FileBegin = Line.Begin;
    }
    if (Search->Address < Line.Begin) {
        Search->Mapping->Begin = Search->Last.End;
        Search->Mapping->End = Line.Begin;
        Search->Done = TRUE;
    } else if (Search->Address < Line.End) {
        HalpFoundMapping(Search, &Line);
    }
    Search->Last = Line;
}

/* Consumes the whole lines of Text and returns the rest of the last one. */
static SIZE_T HalpTakeLines(HALP_SEARCH *Search, PSTR Text, SIZE_T Length)
{
    PSTR Line = Text;
    PSTR End;

    while (!Search->Done && (End = memchr(Line, '\n', Length - (SIZE_T)(Line - Text))) != NULL) {
        *End = '\0';
        HalpTakeLine(Search, Line);
        Line = End + 1;
    }
    Length -= (SIZE_T)(Line - Text);
    memmove(Text, Line, Length);
    return Length;
}

NTSTATUS HalQueryMapping(ULONG_PTR Address, PHAL_MAPPING Mapping)
{
    HALP_HOST_CALLS;
    HALP_SEARCH Search = {.Address = Address, .Mapping = Mapping};
    CHAR Text[LINES_SIZE];
    SIZE_T Kept = 0;
    SSIZE_T Length;
    int File = HalpOpenFile("/proc/self/maps", O_RDONLY);

    if (File < 0) {
        return HalpStatusOfRefusal(File, STATUS_NOT_SUPPORTED);
    }
    memset(Mapping, 0, sizeof(*Mapping));
    while (!Search.Done && (Length = HalpReadFile(File, Text + Kept, LINES_SIZE - Kept)) > 0) {
        Kept = HalpTakeLines(&Search, Text, Kept + (SIZE_T)Length);
    }
    HalCloseDescriptor(File);
    if (!Search.Done) {
        Mapping->Begin = Search.Last.End;
        Mapping->End = MAXULONG_PTR;
    }
    return STATUS_SUCCESS;
}
