/*
 * memory.c: heaps and the older allocators. Every block comes from the C library and has a header with its heap and
 * size in front; the blocks of a heap that can be destroyed are on its list.
 */
#include "../ke/ki.h"
#include "base.h"

typedef struct _BASE_HEAP {
    ULONG Signature;
    KI_LOCK Lock;
    LIST_ENTRY ListEntry;            /* under BaseHeapsLock; not the process heap's */
    RTL_CRITICAL_SECTION UserLock;   /* of HeapLock */
    LIST_ENTRY Blocks;
    SIZE_T Maximum; /* 0: no limit */
    SIZE_T Used;
    DWORD Options; /* of HeapCreate: HEAP_GENERATE_EXCEPTIONS applies to every call */
} BASE_HEAP, *PBASE_HEAP;

typedef struct _BASE_BLOCK {
    LIST_ENTRY ListEntry;
    PBASE_HEAP Heap;
    SIZE_T Size;
    UCHAR Data[] DECLSPEC_ALIGN(MEMORY_ALLOCATION_ALIGNMENT);
} BASE_BLOCK, *PBASE_BLOCK;

C_ASSERT(sizeof(BASE_BLOCK) % MEMORY_ALLOCATION_ALIGNMENT == 0);

#define BASE_HEAP_SIGNATURE 0x70616548u /* "Heap" */

static BASE_HEAP BaseProcessHeap = {
    .Signature = BASE_HEAP_SIGNATURE,
    .UserLock = {.LockCount = -1},
    .Blocks = {&BaseProcessHeap.Blocks, &BaseProcessHeap.Blocks},
};
static KI_LOCK BaseHeapsLock;
static LIST_ENTRY BaseHeaps = {&BaseHeaps, &BaseHeaps};

static PBASE_BLOCK BaseBlockOf(LPCVOID Memory)
{
    return CONTAINING_RECORD(Memory, BASE_BLOCK, Data);
}

/* FALSE: the block exceeds the heap's limit. */
static BOOLEAN BaseLinkBlock(PBASE_HEAP Heap, PBASE_BLOCK Block)
{
    BOOLEAN Fits = TRUE;
    if (Heap != &BaseProcessHeap) {
        PKTHREAD Thread = KiEnterLocked(&Heap->Lock);
        Fits = Heap->Maximum == 0 || Block->Size <= Heap->Maximum - Heap->Used;
        if (Fits) {
            Heap->Used += Block->Size;
            InsertTailList(&Heap->Blocks, &Block->ListEntry);
        }
        KiExitLocked(&Heap->Lock, Thread);
    }
    return Fits;
}

static VOID BaseFreeBlock(PBASE_BLOCK Block)
{
    PBASE_HEAP Heap = Block->Heap;
    if (Heap != &BaseProcessHeap) {
        PKTHREAD Thread = KiEnterLocked(&Heap->Lock);
        Heap->Used -= Block->Size;
        RemoveEntryList(&Block->ListEntry);
        KiExitLocked(&Heap->Lock, Thread);
    }
    Block->Heap = NULL;
    HalFree(Block);
}

/* Zeroed, or NULL. */
static PVOID BaseAllocate(PBASE_HEAP Heap, SIZE_T Bytes)
{
    PBASE_BLOCK Block = NULL;
    if (Bytes <= MAXSIZE_T - sizeof(BASE_BLOCK)) {
        Block = HalAllocate(sizeof(BASE_BLOCK) + Bytes, MEMORY_ALLOCATION_ALIGNMENT);
    }
    if (Block == NULL) {
        return NULL;
    }
    Block->Heap = Heap;
    Block->Size = Bytes;
    if (!BaseLinkBlock(Heap, Block)) {
        HalFree(Block);
        return NULL;
    }
    return Block->Data;
}

static PVOID BaseAllocationFailed(DWORD Flags)
{
    if (Flags & HEAP_GENERATE_EXCEPTIONS) {
        RtlRaiseStatus(STATUS_NO_MEMORY);
    }
    RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
    return NULL;
}

HANDLE GetProcessHeap(VOID)
{
    return &BaseProcessHeap;
}

HANDLE HeapCreate(DWORD flOptions, SIZE_T dwInitialSize, SIZE_T dwMaximumSize)
{
    PBASE_HEAP Heap = NULL;
    if (dwMaximumSize != 0 && dwInitialSize > dwMaximumSize) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    Heap = HalAllocate(sizeof(*Heap), MEMORY_ALLOCATION_ALIGNMENT);
    if (Heap == NULL) {
        return BaseAllocationFailed(flOptions);
    }
    RtlInitializeCriticalSection(&Heap->UserLock);
    InitializeListHead(&Heap->Blocks);
    Heap->Signature = BASE_HEAP_SIGNATURE;
    Heap->Maximum = dwMaximumSize;
    Heap->Options = flOptions;
    PKTHREAD Thread = KiEnterLocked(&BaseHeapsLock);
    InsertTailList(&BaseHeaps, &Heap->ListEntry);
    KiExitLocked(&BaseHeapsLock, Thread);
    return Heap;
}

/* The caller must be the heap's last user, so the list needs no lock. */
BOOL HeapDestroy(HANDLE hHeap)
{
    PBASE_HEAP Heap = hHeap;
    if (Heap == NULL || Heap == &BaseProcessHeap) {
        RtlSetLastWin32Error(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    PKTHREAD Thread = KiEnterLocked(&BaseHeapsLock);
    RemoveEntryList(&Heap->ListEntry);
    KiExitLocked(&BaseHeapsLock, Thread);
    RtlDeleteCriticalSection(&Heap->UserLock);
    Heap->Signature = 0;
    while (!IsListEmpty(&Heap->Blocks)) {
        HalFree(CONTAINING_RECORD(RemoveHeadList(&Heap->Blocks), BASE_BLOCK, ListEntry));
    }
    HalFree(Heap);
    return TRUE;
}

LPVOID HeapAlloc(HANDLE hHeap, DWORD dwFlags, SIZE_T dwBytes)
{
    PBASE_HEAP Heap = hHeap;
    PVOID Memory = Heap != NULL ? BaseAllocate(Heap, dwBytes) : NULL;
    return Memory != NULL ? Memory : BaseAllocationFailed(dwFlags | (Heap != NULL ? Heap->Options : 0));
}

static BOOLEAN BaseIsBlockOf(HANDLE Heap, LPCVOID Memory)
{
    if (Heap != NULL && Memory != NULL && BaseBlockOf(Memory)->Heap == Heap) {
        return TRUE;
    }
    RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
    return FALSE;
}

/* The bytes after the new size are lost until the block is freed: only on request. */
static VOID BaseShrinkBlock(PBASE_BLOCK Block, SIZE_T Bytes)
{
    PBASE_HEAP Heap = Block->Heap;
    if (Heap != &BaseProcessHeap) {
        PKTHREAD Thread = KiEnterLocked(&Heap->Lock);
        Heap->Used -= Block->Size - Bytes;
        Block->Size = Bytes;
        KiExitLocked(&Heap->Lock, Thread);
    } else {
        Block->Size = Bytes;
    }
}

LPVOID HeapReAlloc(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem, SIZE_T dwBytes)
{
    SIZE_T Old;
    PVOID Memory;
    if (!BaseIsBlockOf(hHeap, lpMem)) {
        return NULL;
    }
    Old = BaseBlockOf(lpMem)->Size;
    if (dwBytes == Old) {
        return lpMem;
    }
    if (dwBytes < Old && (dwFlags & HEAP_REALLOC_IN_PLACE_ONLY)) {
        BaseShrinkBlock(BaseBlockOf(lpMem), dwBytes);
        return lpMem;
    }
    Memory = dwFlags & HEAP_REALLOC_IN_PLACE_ONLY ? NULL : BaseAllocate(hHeap, dwBytes);
    if (Memory == NULL) {
        return BaseAllocationFailed(dwFlags | ((PBASE_HEAP)hHeap)->Options);
    }
    memcpy(Memory, lpMem, Old < dwBytes ? Old : dwBytes);
    BaseFreeBlock(BaseBlockOf(lpMem));
    return Memory;
}

BOOL HeapFree(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem)
{
    UNREFERENCED_PARAMETER(dwFlags);
    if (lpMem == NULL) {
        return TRUE;
    }
    if (!BaseIsBlockOf(hHeap, lpMem)) {
        return FALSE;
    }
    BaseFreeBlock(BaseBlockOf(lpMem));
    return TRUE;
}

SIZE_T HeapSize(HANDLE hHeap, DWORD dwFlags, LPCVOID lpMem)
{
    UNREFERENCED_PARAMETER(dwFlags);
    return BaseIsBlockOf(hHeap, lpMem) ? BaseBlockOf(lpMem)->Size : MAXSIZE_T;
}

/* The rest of a heap's functions. */

static PBASE_HEAP BaseHeapOf(HANDLE Handle)
{
    PBASE_HEAP Heap = Handle;
    if (Heap == NULL || Heap->Signature != BASE_HEAP_SIGNATURE) {
        RtlSetLastWin32Error(ERROR_INVALID_HANDLE);
        return NULL;
    }
    return Heap;
}

static BOOLEAN BaseIsHeapIntact(PBASE_HEAP Heap)
{
    BOOLEAN Intact = TRUE;
    SIZE_T Used = 0;
    PKTHREAD Thread = KiEnterLocked(&Heap->Lock);
    for (PLIST_ENTRY Entry = Heap->Blocks.Flink; Intact && Entry != &Heap->Blocks; Entry = Entry->Flink) {
        PBASE_BLOCK Block = CONTAINING_RECORD(Entry, BASE_BLOCK, ListEntry);
        Intact = Block->Heap == Heap && Entry->Flink->Blink == Entry && Entry->Blink->Flink == Entry;
        Used += Block->Size;
    }
    Intact = Intact && Used == Heap->Used;
    KiExitLocked(&Heap->Lock, Thread);
    return Intact;
}

BOOL HeapValidate(HANDLE hHeap, DWORD dwFlags, LPCVOID lpMem)
{
    PBASE_HEAP Heap = BaseHeapOf(hHeap);
    UNREFERENCED_PARAMETER(dwFlags);
    if (Heap == NULL) {
        return FALSE;
    }
    return lpMem != NULL ? BaseBlockOf(lpMem)->Heap == Heap : BaseIsHeapIntact(Heap);
}

SIZE_T HeapCompact(HANDLE hHeap, DWORD dwFlags)
{
    PBASE_HEAP Heap = BaseHeapOf(hHeap);
    SIZE_T Rest;
    UNREFERENCED_PARAMETER(dwFlags);
    if (Heap == NULL) {
        return 0;
    }
    PKTHREAD Thread = KiEnterLocked(&Heap->Lock);
    Rest = Heap->Maximum != 0 ? Heap->Maximum - Heap->Used : (SIZE_T)MAXLONG_PTR;
    KiExitLocked(&Heap->Lock, Thread);
    if (Rest == 0) {
        RtlSetLastWin32Error(ERROR_SUCCESS); /* the documented way to distinguish a full heap from a failure */
    }
    return Rest;
}

BOOL HeapLock(HANDLE hHeap)
{
    PBASE_HEAP Heap = BaseHeapOf(hHeap);
    return Heap != NULL && BaseBoolStatus(RtlEnterCriticalSection(&Heap->UserLock));
}

BOOL HeapUnlock(HANDLE hHeap)
{
    PBASE_HEAP Heap = BaseHeapOf(hHeap);
    if (Heap == NULL) {
        return FALSE;
    }
    if (!RtlIsCriticalSectionLockedByThread(&Heap->UserLock)) {
        RtlSetLastWin32Error(ERROR_NOT_LOCKED);
        return FALSE;
    }
    return BaseBoolStatus(RtlLeaveCriticalSection(&Heap->UserLock));
}

#define BASE_LOW_FRAGMENTATION 2ul

BOOL HeapSetInformation(HANDLE HeapHandle, HEAP_INFORMATION_CLASS HeapInformationClass, PVOID HeapInformation,
                        SIZE_T HeapInformationLength)
{
    if (HeapInformationClass == HeapEnableTerminationOnCorruption) {
        return TRUE;
    }
    if (BaseHeapOf(HeapHandle) == NULL) {
        return FALSE;
    }
    if (HeapInformationClass != HeapCompatibilityInformation || HeapInformationLength < sizeof(ULONG)) {
        return BaseBoolStatus(HeapInformationClass != HeapCompatibilityInformation ? STATUS_INVALID_PARAMETER
                                                                                   : STATUS_BUFFER_TOO_SMALL);
    }
    if (HeapInformation == NULL) {
        return BaseBoolStatus(STATUS_ACCESS_VIOLATION);
    }
    return BaseBoolStatus(*(PULONG)HeapInformation == BASE_LOW_FRAGMENTATION ? STATUS_SUCCESS : STATUS_UNSUCCESSFUL);
}

BOOL HeapQueryInformation(HANDLE HeapHandle, HEAP_INFORMATION_CLASS HeapInformationClass, PVOID HeapInformation,
                          SIZE_T HeapInformationLength, PSIZE_T ReturnLength)
{
    if (BaseHeapOf(HeapHandle) == NULL) {
        return FALSE;
    }
    if (HeapInformationClass != HeapCompatibilityInformation) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    if (ReturnLength != NULL) {
        *ReturnLength = sizeof(ULONG);
    }
    if (HeapInformationLength < sizeof(ULONG) || HeapInformation == NULL) {
        return BaseBoolStatus(HeapInformationLength < sizeof(ULONG) ? STATUS_BUFFER_TOO_SMALL
                                                                    : STATUS_ACCESS_VIOLATION);
    }
    *(PULONG)HeapInformation = BASE_LOW_FRAGMENTATION;
    return TRUE;
}

DWORD GetProcessHeaps(DWORD NumberOfHeaps, PHANDLE ProcessHeaps)
{
    DWORD Count = 1;
    if (NumberOfHeaps != 0) {
        ProcessHeaps[0] = &BaseProcessHeap;
    }
    PKTHREAD Thread = KiEnterLocked(&BaseHeapsLock);
    for (PLIST_ENTRY Entry = BaseHeaps.Flink; Entry != &BaseHeaps; Entry = Entry->Flink) {
        if (Count < NumberOfHeaps) {
            ProcessHeaps[Count] = CONTAINING_RECORD(Entry, BASE_HEAP, ListEntry);
        }
        Count += 1;
    }
    KiExitLocked(&BaseHeapsLock, Thread);
    return Count;
}

HLOCAL LocalAlloc(UINT uFlags, SIZE_T uBytes)
{
    UNREFERENCED_PARAMETER(uFlags);
    return HeapAlloc(&BaseProcessHeap, 0, uBytes);
}

/* Returns NULL, or the handle if it is invalid. */
HLOCAL LocalFree(HLOCAL hMem)
{
    if (hMem == NULL || HeapFree(&BaseProcessHeap, 0, hMem)) {
        return NULL;
    }
    RtlSetLastWin32Error(ERROR_INVALID_HANDLE);
    return hMem;
}

LPVOID LocalLock(HLOCAL hMem)
{
    return hMem;
}

/* Fixed memory has no lock count. */
BOOL LocalUnlock(HLOCAL hMem)
{
    UNREFERENCED_PARAMETER(hMem);
    RtlSetLastWin32Error(ERROR_NOT_LOCKED);
    return FALSE;
}

SIZE_T LocalSize(HLOCAL hMem)
{
    if (BaseIsBlockOf(&BaseProcessHeap, hMem)) {
        return BaseBlockOf(hMem)->Size;
    }
    RtlSetLastWin32Error(ERROR_INVALID_HANDLE);
    return 0;
}

HGLOBAL GlobalAlloc(UINT uFlags, SIZE_T dwBytes)
{
    return LocalAlloc(uFlags, dwBytes);
}

HGLOBAL GlobalFree(HGLOBAL hMem)
{
    return LocalFree(hMem);
}

LPVOID GlobalLock(HGLOBAL hMem)
{
    return LocalLock(hMem);
}

/* For fixed memory this succeeds, unlike LocalUnlock. */
BOOL GlobalUnlock(HGLOBAL hMem)
{
    UNREFERENCED_PARAMETER(hMem);
    return TRUE;
}

SIZE_T GlobalSize(HGLOBAL hMem)
{
    return LocalSize(hMem);
}
