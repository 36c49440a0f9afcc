/*
 * virtual.c: virtual memory.
 *
 * The host does not distinguish reserved pages from committed ones without access, and does not know which mappings
 * were one reservation. So every reservation has a record: a list of spans, which are runs of pages with the same
 * protection, 0 for reserved. Spans cover the reservation without gaps, in order, and neighbours differ.
 *
 * 1. Records and the host's mappings change together, under the lock, in a dispatcher section. A fork waits for the end
 *    of the section, and a thread is not stopped inside.
 * 2. The heap is not used in a section. A change splits at most two spans, which the caller has allocated before;
 *    unused spans are freed afterwards.
 * 3. Memory without a record is the host's own. VirtualProtect and VirtualQuery query the host for it.
 */
#include "../hal/hal.h"
#include "../ke/ki.h"
#include "base.h"

#define BASE_GRANULARITY 0x10000ULL
#define BASE_LAST_ADDRESS 0x7FFFFFFFFFFFULL
#define BASE_ALLOCATION_TYPES (MEM_COMMIT | MEM_RESERVE | MEM_RESET | MEM_TOP_DOWN)
#define BASE_REFUSED_TYPES (MEM_WRITE_WATCH | MEM_PHYSICAL | MEM_RESET_UNDO)
#define BASE_PROTECTION_MODIFIERS (PAGE_GUARD | PAGE_NOCACHE | PAGE_WRITECOMBINE)

typedef struct _BASE_SPAN {
    struct _BASE_SPAN *Next;
    ULONG_PTR Begin;
    ULONG_PTR End;
    DWORD Protect;                   /* 0: reserved */
} BASE_SPAN, *PBASE_SPAN;

typedef struct _BASE_REGION {
    ULONG_PTR Begin;
    ULONG_PTR End;
    DWORD Protect;                   /* with which it was allocated */
    PBASE_SPAN Spans;
} BASE_REGION, *PBASE_REGION;

/* Sorted by address. */
static struct {
    KI_LOCK Lock;
    ULONG Count;
    ULONG Room;
    PBASE_REGION *Region;
} BaseRegions;

/* A range of pages, and the spans of rule 2. */
typedef struct _BASE_CHANGE {
    ULONG_PTR Begin;
    ULONG_PTR End;
    PBASE_SPAN Spare;
} BASE_CHANGE, *PBASE_CHANGE;

static ULONG_PTR BaseRoundDown(ULONG_PTR Address, ULONG_PTR Unit)
{
    return Address / Unit * Unit;
}

static ULONG_PTR BaseGranularity(VOID)
{
    ULONG Page = HalQueryPageSize();
    return Page > BASE_GRANULARITY ? Page : BASE_GRANULARITY;
}

/* Every page with a byte of the range. FALSE: there is no such range. */
static BOOLEAN BaseSetRange(PBASE_CHANGE Change, LPCVOID Address, SIZE_T Size, ULONG_PTR Unit)
{
    ULONG_PTR Begin = (ULONG_PTR)Address;
    if (Begin > BASE_LAST_ADDRESS || Size > BASE_LAST_ADDRESS - Begin) {
        return FALSE;
    }
    Change->Begin = BaseRoundDown(Begin, Unit);
    Change->End = BaseRoundDown(Begin + Size + HalQueryPageSize() - 1, HalQueryPageSize());
    return TRUE;
}

/* Protections. */

/* MAXULONG: there is no such protection. */
static ULONG BaseAccessOf(DWORD Protect)
{
    switch (Protect & ~(DWORD)(PAGE_NOCACHE | PAGE_WRITECOMBINE)) {
    case PAGE_NOACCESS:
    case PAGE_READONLY | PAGE_GUARD:
    case PAGE_READWRITE | PAGE_GUARD:
    case PAGE_EXECUTE | PAGE_GUARD:
    case PAGE_EXECUTE_READ | PAGE_GUARD:
    case PAGE_EXECUTE_READWRITE | PAGE_GUARD:
        return 0;
    case PAGE_READONLY:
        return HAL_ACCESS_READ;
    case PAGE_READWRITE:
        return HAL_ACCESS_READ | HAL_ACCESS_WRITE;
    case PAGE_EXECUTE:
        return HAL_ACCESS_EXECUTE;
    case PAGE_EXECUTE_READ:
        return HAL_ACCESS_READ | HAL_ACCESS_EXECUTE;
    case PAGE_EXECUTE_READWRITE:
        return HAL_ACCESS_READ | HAL_ACCESS_WRITE | HAL_ACCESS_EXECUTE;
    default:
        return MAXULONG;
    }
}

static DWORD BaseProtectionOf(ULONG Access)
{
    static const DWORD Protections[] = {PAGE_NOACCESS, PAGE_READONLY,     PAGE_READWRITE,         PAGE_READWRITE,
                                        PAGE_EXECUTE,  PAGE_EXECUTE_READ, PAGE_EXECUTE_READWRITE, PAGE_EXECUTE_READWRITE};
    return Protections[Access];
}

/* Caching modes exclude each other, and pages without access have none. */
static BOOLEAN BaseIsProtection(DWORD Protect)
{
    DWORD Caching = Protect & (PAGE_NOCACHE | PAGE_WRITECOMBINE);
    BOOLEAN Plain = (Protect & BASE_PROTECTION_MODIFIERS) == 0;
    return BaseAccessOf(Protect) != MAXULONG && Caching != (PAGE_NOCACHE | PAGE_WRITECOMBINE) &&
           (Plain || (Protect & 0xff) != PAGE_NOACCESS);
}

/* Records. */

/* With the lock held: how many regions begin at or below the address. */
static ULONG BaseCountRegionsTo(ULONG_PTR Address)
{
    ULONG Low = 0;
    ULONG High = BaseRegions.Count;
    while (Low < High) {
        ULONG Middle = Low + (High - Low) / 2;
        if (BaseRegions.Region[Middle]->Begin <= Address) {
            Low = Middle + 1;
        } else {
            High = Middle;
        }
    }
    return Low;
}

/* With the lock held; NULL: there is none. */
static PBASE_REGION BaseRegionAt(ULONG_PTR Address)
{
    ULONG Count = BaseCountRegionsTo(Address);
    PBASE_REGION Region = Count != 0 ? BaseRegions.Region[Count - 1] : NULL;
    return Region != NULL && Address < Region->End ? Region : NULL;
}

static VOID BaseGiveSpare(PBASE_CHANGE Change, PBASE_SPAN Span)
{
    Span->Next = Change->Spare;
    Change->Spare = Span;
}

/* A span begins at the address then, unless it is the end of the region. */
static VOID BaseSplitSpan(PBASE_CHANGE Change, PBASE_SPAN Span, ULONG_PTR Address)
{
    while (Span != NULL && Span->End <= Address) {
        Span = Span->Next;
    }
    if (Span != NULL && Span->Begin < Address) {
        PBASE_SPAN Rest = Change->Spare;
        Change->Spare = Rest->Next;
        *Rest = *Span;
        Rest->Begin = Address;
        Span->End = Address;
        Span->Next = Rest;
    }
}

static VOID BaseMergeSpans(PBASE_CHANGE Change, PBASE_SPAN Span)
{
    while (Span->Next != NULL) {
        PBASE_SPAN Next = Span->Next;
        if (Next->Protect == Span->Protect) {
            Span->End = Next->End;
            Span->Next = Next->Next;
            BaseGiveSpare(Change, Next);
        } else {
            Span = Next;
        }
    }
}

static VOID BaseSetSpans(PBASE_REGION Region, PBASE_CHANGE Change, DWORD Protect)
{
    BaseSplitSpan(Change, Region->Spans, Change->Begin);
    BaseSplitSpan(Change, Region->Spans, Change->End);
    for (PBASE_SPAN Span = Region->Spans; Span != NULL && Span->Begin < Change->End; Span = Span->Next) {
        if (Span->Begin >= Change->Begin) {
            Span->Protect = Protect;
        }
    }
    BaseMergeSpans(Change, Region->Spans);
}

static PBASE_SPAN BaseSpanAt(PBASE_REGION Region, ULONG_PTR Address)
{
    PBASE_SPAN Span = Region->Spans;
    while (Span->End <= Address) {
        Span = Span->Next;
    }
    return Span;
}

static BOOLEAN BaseIsCommitted(PBASE_REGION Region, const BASE_CHANGE *Change)
{
    for (PBASE_SPAN Span = BaseSpanAt(Region, Change->Begin); Span != NULL && Span->Begin < Change->End;
         Span = Span->Next) {
        if (Span->Protect == 0) {
            return FALSE;
        }
    }
    return TRUE;
}

static VOID BaseFreeSpans(PBASE_SPAN Span)
{
    while (Span != NULL) {
        PBASE_SPAN Next = Span->Next;
        HalFree(Span);
        Span = Next;
    }
}

/* Two spans to split with. */
static BOOLEAN BasePrepareChange(PBASE_CHANGE Change)
{
    for (ULONG Count = 0; Count < 2; Count++) {
        PBASE_SPAN Span = HalAllocate(sizeof(*Span), MEMORY_ALLOCATION_ALIGNMENT);
        if (Span == NULL) {
            return FALSE;
        }
        BaseGiveSpare(Change, Span);
    }
    return TRUE;
}

/* Runs Apply with the lock held, if the range is in one region. */
static NTSTATUS BaseChangeRegion(PBASE_CHANGE Change, DWORD Protect,
                                 NTSTATUS (*Apply)(PBASE_REGION Region, PBASE_CHANGE Change, DWORD Protect))
{
    NTSTATUS Status = STATUS_NO_MEMORY;
    if (BasePrepareChange(Change)) {
        PKTHREAD Thread = KiEnterLocked(&BaseRegions.Lock);
        PBASE_REGION Region = BaseRegionAt(Change->Begin);
        BOOLEAN Whole = Region != NULL && Change->End <= Region->End;
        Status = Whole ? Apply(Region, Change, Protect) : STATUS_CONFLICTING_ADDRESSES;
        KiExitLocked(&BaseRegions.Lock, Thread);
    }
    BaseFreeSpans(Change->Spare);
    return Status;
}

/* Reserving. */

/* Room for one more region. The array is only replaced under the lock. */
static BOOLEAN BaseMakeRoom(VOID)
{
    BOOLEAN Enough = FALSE;
    BOOLEAN NoMemory = FALSE;
    while (!Enough && !NoMemory) {
        PKTHREAD Thread = KiEnterLocked(&BaseRegions.Lock);
        ULONG Room = BaseRegions.Room;
        Enough = BaseRegions.Count < Room;
        KiExitLocked(&BaseRegions.Lock, Thread);
        if (!Enough) {
            ULONG Larger = Room != 0 ? 2 * Room : 64;
            PBASE_REGION *Array = HalAllocate(Larger * sizeof(*Array), MEMORY_ALLOCATION_ALIGNMENT);
            NoMemory = Array == NULL;
            Thread = KiEnterLocked(&BaseRegions.Lock);
            if (Array != NULL && BaseRegions.Room == Room) {
                PBASE_REGION *Old = BaseRegions.Region;
                if (Room != 0) {
                    memcpy(Array, Old, Room * sizeof(*Array));
                }
                BaseRegions.Region = Array;
                BaseRegions.Room = Larger;
                Array = Old;
            }
            KiExitLocked(&BaseRegions.Lock, Thread);
            HalFree(Array);
        }
    }
    return Enough;
}

static PBASE_REGION BaseCreateRegion(const BASE_CHANGE *Change, DWORD Protect, DWORD FirstProtect)
{
    PBASE_REGION Region = HalAllocate(sizeof(*Region), MEMORY_ALLOCATION_ALIGNMENT);
    PBASE_SPAN Span = HalAllocate(sizeof(*Span), MEMORY_ALLOCATION_ALIGNMENT);
    if (Region == NULL || Span == NULL) {
        HalFree(Region);
        HalFree(Span);
        return NULL;
    }
    *Span = (BASE_SPAN){.Begin = Change->Begin, .End = Change->End, .Protect = FirstProtect};
    *Region = (BASE_REGION){.Begin = Change->Begin, .End = Change->End, .Protect = Protect, .Spans = Span};
    return Region;
}

/* With the lock held, so that no thread finds the mapping without its record. STATUS_RETRY: there is no room. */
static NTSTATUS BaseReserveRegion(PBASE_REGION Region, PVOID *Base)
{
    SIZE_T Size = Region->End - Region->Begin;
    NTSTATUS Status;
    if (BaseRegions.Count == BaseRegions.Room) {
        return STATUS_RETRY;
    }
    Status = HalReserveMemory((PVOID)Region->Begin, Size, BaseGranularity(), Base);
    if (NT_SUCCESS(Status) && Region->Spans->Protect != 0) {
        Status = HalProtectMemory(*Base, Size, BaseAccessOf(Region->Spans->Protect));
        if (!NT_SUCCESS(Status)) {
            HalReleaseMemory(*Base, Size);
        }
    }
    if (NT_SUCCESS(Status)) {
        Region->Begin = Region->Spans->Begin = (ULONG_PTR)*Base;
        Region->End = Region->Spans->End = (ULONG_PTR)*Base + Size;
        ULONG Place = BaseCountRegionsTo(Region->Begin);
        memmove(&BaseRegions.Region[Place + 1], &BaseRegions.Region[Place],
                (BaseRegions.Count - Place) * sizeof(*BaseRegions.Region));
        BaseRegions.Region[Place] = Region;
        BaseRegions.Count += 1;
    }
    return Status;
}

static NTSTATUS BaseReserve(LPVOID Address, SIZE_T Size, DWORD Type, DWORD Protect, PVOID *Base)
{
    BASE_CHANGE Change = {0};
    NTSTATUS Status = STATUS_RETRY;
    if (!BaseSetRange(&Change, Address, Size, BaseGranularity())) {
        return STATUS_INVALID_PARAMETER;
    }
    if (Address != NULL && Change.Begin == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    PBASE_REGION Region = BaseCreateRegion(&Change, Protect, Type & MEM_COMMIT ? Protect : 0);
    while (Region != NULL && Status == STATUS_RETRY) {
        if (!BaseMakeRoom()) {
            Status = STATUS_NO_MEMORY;
            break;
        }
        PKTHREAD Thread = KiEnterLocked(&BaseRegions.Lock);
        Status = BaseReserveRegion(Region, Base);
        KiExitLocked(&BaseRegions.Lock, Thread);
    }
    if (Region != NULL && !NT_SUCCESS(Status)) {
        BaseFreeSpans(Region->Spans);
        HalFree(Region);
    }
    return Region != NULL ? Status : STATUS_NO_MEMORY;
}

/* Committing, and what undoes it. */

static NTSTATUS BaseCommit(PBASE_REGION Region, PBASE_CHANGE Change, DWORD Protect)
{
    NTSTATUS Status =
        HalProtectMemory((PVOID)Change->Begin, Change->End - Change->Begin, BaseAccessOf(Protect));
    if (NT_SUCCESS(Status)) {
        BaseSetSpans(Region, Change, Protect);
    }
    return Status;
}

static NTSTATUS BaseReset(PBASE_REGION Region, PBASE_CHANGE Change, DWORD Protect)
{
    UNREFERENCED_PARAMETER(Protect);
    if (!BaseIsCommitted(Region, Change)) {
        return STATUS_NOT_COMMITTED;
    }
    HalResetMemory((PVOID)Change->Begin, Change->End - Change->Begin);
    return STATUS_SUCCESS;
}

static NTSTATUS BaseDecommit(PBASE_REGION Region, PBASE_CHANGE Change, DWORD Protect)
{
    NTSTATUS Status = HalDecommitMemory((PVOID)Change->Begin, Change->End - Change->Begin);
    UNREFERENCED_PARAMETER(Protect);
    if (NT_SUCCESS(Status)) {
        BaseSetSpans(Region, Change, 0);
    }
    return Status;
}

static NTSTATUS BaseCheckAllocation(SIZE_T Size, DWORD Type, DWORD Protect)
{
    DWORD Action = Type & (MEM_COMMIT | MEM_RESERVE | MEM_RESET);
    if (Type & MEM_LARGE_PAGES) {
        return STATUS_PRIVILEGE_NOT_HELD;
    }
    if (Type & BASE_REFUSED_TYPES) {
        return STATUS_NOT_SUPPORTED;
    }
    if (Size == 0 || Action == 0 || (Type & ~(DWORD)BASE_ALLOCATION_TYPES) != 0 ||
        ((Type & MEM_RESET) && Action != MEM_RESET) || !BaseIsProtection(Protect)) {
        return STATUS_INVALID_PARAMETER;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS BaseAllocateVirtual(LPVOID Address, SIZE_T Size, DWORD Type, DWORD Protect, PVOID *Base)
{
    BASE_CHANGE Change = {0};
    NTSTATUS Status = BaseCheckAllocation(Size, Type, Protect);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    if ((Type & MEM_RESERVE) || (Address == NULL && !(Type & MEM_RESET))) {
        return BaseReserve(Address, Size, Type, Protect, Base);
    }
    if (!BaseSetRange(&Change, Address, Size, HalQueryPageSize())) {
        return STATUS_INVALID_PARAMETER;
    }
    *Base = (PVOID)Change.Begin;
    return BaseChangeRegion(&Change, Protect, Type & MEM_RESET ? BaseReset : BaseCommit);
}

LPVOID VirtualAlloc(LPVOID lpAddress, SIZE_T dwSize, DWORD flAllocationType, DWORD flProtect)
{
    PVOID Base = NULL;
    return BaseBoolStatus(BaseAllocateVirtual(lpAddress, dwSize, flAllocationType, flProtect, &Base)) ? Base : NULL;
}

/* Freeing. */

/* With the lock held. */
static PBASE_REGION BaseRemoveRegion(ULONG_PTR Begin)
{
    ULONG Count = BaseCountRegionsTo(Begin);
    PBASE_REGION Region = BaseRegionAt(Begin);
    if (Region == NULL || Region->Begin != Begin) {
        return NULL;
    }
    memmove(&BaseRegions.Region[Count - 1], &BaseRegions.Region[Count],
            (BaseRegions.Count - Count) * sizeof(*BaseRegions.Region));
    BaseRegions.Count -= 1;
    HalReleaseMemory((PVOID)Region->Begin, Region->End - Region->Begin);
    return Region;
}

static NTSTATUS BaseRelease(ULONG_PTR Address)
{
    PKTHREAD Thread = KiEnterLocked(&BaseRegions.Lock);
    PBASE_REGION Region = BaseRemoveRegion(BaseRoundDown(Address, HalQueryPageSize()));
    KiExitLocked(&BaseRegions.Lock, Thread);
    if (Region == NULL) {
        return STATUS_MEMORY_NOT_ALLOCATED;
    }
    BaseFreeSpans(Region->Spans);
    HalFree(Region);
    return STATUS_SUCCESS;
}

/* A size of 0 is the whole region, and the address must be its first. */
static NTSTATUS BaseFindRange(PBASE_CHANGE Change, LPVOID Address, SIZE_T Size)
{
    PBASE_REGION Region;
    NTSTATUS Status = STATUS_MEMORY_NOT_ALLOCATED;
    if (!BaseSetRange(Change, Address, Size, HalQueryPageSize())) {
        return STATUS_INVALID_PARAMETER;
    }
    PKTHREAD Thread = KiEnterLocked(&BaseRegions.Lock);
    Region = BaseRegionAt(Change->Begin);
    if (Region != NULL && Size == 0) {
        Status = Region->Begin == Change->Begin ? STATUS_SUCCESS : STATUS_FREE_VM_NOT_AT_BASE;
        Change->End = Region->End;
    } else if (Region != NULL) {
        Status = Change->End <= Region->End ? STATUS_SUCCESS : STATUS_UNABLE_TO_FREE_VM;
    }
    KiExitLocked(&BaseRegions.Lock, Thread);
    return Status;
}

BOOL VirtualFree(LPVOID lpAddress, SIZE_T dwSize, DWORD dwFreeType)
{
    BASE_CHANGE Change = {0};
    NTSTATUS Status;
    if ((dwFreeType != MEM_DECOMMIT && dwFreeType != MEM_RELEASE) || (dwFreeType == MEM_RELEASE && dwSize != 0)) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    if (dwFreeType == MEM_RELEASE) {
        return BaseBoolStatus(BaseRelease((ULONG_PTR)lpAddress));
    }
    Status = BaseFindRange(&Change, lpAddress, dwSize);
    return BaseBoolStatus(NT_SUCCESS(Status) ? BaseChangeRegion(&Change, 0, BaseDecommit) : Status);
}

/* Protecting. */

static NTSTATUS BaseProtectRegion(PBASE_REGION Region, PBASE_CHANGE Change, DWORD Protect)
{
    return BaseIsCommitted(Region, Change) ? BaseCommit(Region, Change, Protect) : STATUS_NOT_COMMITTED;
}

static NTSTATUS BaseProtectHostMemory(const BASE_CHANGE *Change, DWORD Protect, PDWORD Old)
{
    HAL_MAPPING Mapping = {.End = Change->Begin};
    while (Mapping.End < Change->End) {
        ULONG_PTR Address = Mapping.End;
        NTSTATUS Status = HalQueryMapping(Address, &Mapping);
        if (!NT_SUCCESS(Status) || !Mapping.Mapped) {
            return NT_SUCCESS(Status) ? STATUS_CONFLICTING_ADDRESSES : Status;
        }
        if (Address == Change->Begin) {
            *Old = BaseProtectionOf(Mapping.Access);
        }
    }
    return HalProtectMemory((PVOID)Change->Begin, Change->End - Change->Begin, BaseAccessOf(Protect));
}

BOOL VirtualProtect(LPVOID lpAddress, SIZE_T dwSize, DWORD flNewProtect, PDWORD lpflOldProtect)
{
    BASE_CHANGE Change = {0};
    NTSTATUS Status;
    if (lpflOldProtect == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    if (dwSize == 0 || !BaseIsProtection(flNewProtect) ||
        !BaseSetRange(&Change, lpAddress, dwSize, HalQueryPageSize())) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    PKTHREAD Thread = KiEnterLocked(&BaseRegions.Lock);
    PBASE_REGION Region = BaseRegionAt(Change.Begin);
    DWORD Old = Region != NULL ? BaseSpanAt(Region, Change.Begin)->Protect : 0; /* 0: its page is not committed */
    KiExitLocked(&BaseRegions.Lock, Thread);
    Status = Region != NULL ? BaseChangeRegion(&Change, flNewProtect, BaseProtectRegion)
                            : BaseProtectHostMemory(&Change, flNewProtect, &Old);
    if (Status == STATUS_NOT_COMMITTED || Status == STATUS_CONFLICTING_ADDRESSES) {
        RtlSetLastWin32Error(ERROR_INVALID_ADDRESS);
        return FALSE;
    }
    if (NT_SUCCESS(Status)) {
        *lpflOldProtect = Old;
    }
    return BaseBoolStatus(Status);
}

/* Querying. */

/* FALSE: the address is in no region. */
static BOOLEAN BaseDescribeRegion(ULONG_PTR Page, PMEMORY_BASIC_INFORMATION Information)
{
    PKTHREAD Thread = KiEnterLocked(&BaseRegions.Lock);
    PBASE_REGION Region = BaseRegionAt(Page);
    if (Region != NULL) {
        PBASE_SPAN Span = BaseSpanAt(Region, Page);
        Information->AllocationBase = (PVOID)Region->Begin;
        Information->AllocationProtect = Region->Protect;
        Information->RegionSize = Span->End - Page;
        Information->State = Span->Protect != 0 ? MEM_COMMIT : MEM_RESERVE;
        Information->Protect = Span->Protect;
        Information->Type = MEM_PRIVATE;
    }
    KiExitLocked(&BaseRegions.Lock, Thread);
    return Region != NULL;
}

/* Reservations are mappings of the host, too: a mapping may begin or end with one. */
static NTSTATUS BaseDescribeHostMemory(ULONG_PTR Page, PMEMORY_BASIC_INFORMATION Information)
{
    HAL_MAPPING Mapping;
    NTSTATUS Status = HalQueryMapping(Page, &Mapping);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Mapping.End = Mapping.End < BASE_LAST_ADDRESS ? Mapping.End : BASE_LAST_ADDRESS + 1;
    Information->RegionSize = Mapping.End - Page;
    Information->State = Mapping.Mapped ? MEM_COMMIT : MEM_FREE;
    Information->Protect = Mapping.Mapped ? BaseProtectionOf(Mapping.Access) : PAGE_NOACCESS;
    if (Mapping.Mapped) {
        Information->AllocationBase = (PVOID)Mapping.FileBegin;
        Information->AllocationProtect = Information->Protect;
        Information->Type = Mapping.Shared ? MEM_MAPPED : Mapping.File ? MEM_IMAGE : MEM_PRIVATE;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS BaseQueryMemory(ULONG_PTR Page, PMEMORY_BASIC_INFORMATION Information)
{
    *Information = (MEMORY_BASIC_INFORMATION){.BaseAddress = (PVOID)Page};
    if (Page > BASE_LAST_ADDRESS) {
        return STATUS_INVALID_PARAMETER;
    }
    return BaseDescribeRegion(Page, Information) ? STATUS_SUCCESS : BaseDescribeHostMemory(Page, Information);
}

SIZE_T VirtualQuery(LPCVOID lpAddress, PMEMORY_BASIC_INFORMATION lpBuffer, SIZE_T dwLength)
{
    MEMORY_BASIC_INFORMATION Information;
    NTSTATUS Status;
    if (dwLength < sizeof(Information)) {
        RtlSetLastWin32Error(ERROR_BAD_LENGTH);
        return 0;
    }
    Status = BaseQueryMemory(BaseRoundDown((ULONG_PTR)lpAddress, HalQueryPageSize()), &Information);
    if (NT_SUCCESS(Status) && lpBuffer == NULL) {
        Status = STATUS_ACCESS_VIOLATION;
    }
    if (!BaseBoolStatus(Status)) {
        return 0;
    }
    *lpBuffer = Information;
    return sizeof(Information);
}

/* Locking. */

static BOOL BaseLockPages(LPVOID Address, SIZE_T Size, BOOLEAN Lock)
{
    BASE_CHANGE Change = {0};
    MEMORY_BASIC_INFORMATION Information;
    if (Size == 0 || !BaseSetRange(&Change, Address, Size, HalQueryPageSize())) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    for (ULONG_PTR Page = Change.Begin; Page < Change.End; Page += Information.RegionSize) {
        NTSTATUS Status = BaseQueryMemory(Page, &Information);
        if (Status == STATUS_INVALID_PARAMETER ||
            (NT_SUCCESS(Status) && (Information.State != MEM_COMMIT || BaseAccessOf(Information.Protect) == 0))) {
            Status = STATUS_ACCESS_VIOLATION;
        }
        if (!NT_SUCCESS(Status)) {
            return BaseBoolStatus(Status);
        }
    }
    if (!HalLockMemory((PVOID)Change.Begin, Change.End - Change.Begin, Lock)) {
        RtlSetLastWin32Error(Lock ? ERROR_WORKING_SET_QUOTA : ERROR_NOT_LOCKED);
        return FALSE;
    }
    return TRUE;
}

BOOL VirtualLock(LPVOID lpAddress, SIZE_T dwSize)
{
    return BaseLockPages(lpAddress, dwSize, TRUE);
}

BOOL VirtualUnlock(LPVOID lpAddress, SIZE_T dwSize)
{
    return BaseLockPages(lpAddress, dwSize, FALSE);
}

/* By process. */

static BOOLEAN BaseIsThisProcess(HANDLE Process)
{
    PROCESS_BASIC_INFORMATION Basic;
    NTSTATUS Status = NtQueryInformationProcess(Process, ProcessBasicInformation, &Basic, sizeof(Basic), NULL);
    if (NT_SUCCESS(Status) && Basic.UniqueProcessId != HalCurrentProcessId()) {
        Status = STATUS_NOT_SUPPORTED;
    }
    return BaseBoolStatus(Status) != FALSE;
}

LPVOID VirtualAllocEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize, DWORD flAllocationType, DWORD flProtect)
{
    return BaseIsThisProcess(hProcess) ? VirtualAlloc(lpAddress, dwSize, flAllocationType, flProtect) : NULL;
}

BOOL VirtualFreeEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize, DWORD dwFreeType)
{
    return BaseIsThisProcess(hProcess) && VirtualFree(lpAddress, dwSize, dwFreeType);
}

BOOL VirtualProtectEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize, DWORD flNewProtect, PDWORD lpflOldProtect)
{
    return BaseIsThisProcess(hProcess) && VirtualProtect(lpAddress, dwSize, flNewProtect, lpflOldProtect);
}

SIZE_T VirtualQueryEx(HANDLE hProcess, LPCVOID lpAddress, PMEMORY_BASIC_INFORMATION lpBuffer, SIZE_T dwLength)
{
    return BaseIsThisProcess(hProcess) ? VirtualQuery(lpAddress, lpBuffer, dwLength) : 0;
}
