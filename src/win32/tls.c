/*
 * tls.c: thread-local and fiber-local storage.
 *
 * Thread-local storage. Only the thread itself uses its values, with one exception: freeing an index clears it in every
 * thread, so that the index's next owner finds NULL everywhere. Values are read and written without a lock:
 *
 * 1. The first 64 are in one array, the others in a second one. The thread allocates an array when it first sets one of
 *    its values, and its end frees it. Both freeing an array and freeing an index happen under BasepTls.Lock, so an
 *    array seen under the lock exists. (Rejected: the first 64 in each thread's slot, half a kilobyte that few threads
 *    use.)
 * 2. A thread that sets a value while another one frees the index has lost the race either way.
 *
 * Fiber-local storage has a callback for each value that is not NULL when its fiber or thread ends or its index is freed.
 * The values of a fiber are an array, BASE_FLS, that its first FlsSetValue allocates. The thread that runs the fiber
 * has a pointer to it; a fiber that does not run keeps it (fiber.c). A thread that is not a fiber has such an array
 * too.
 *
 * 3. A value is passed to its callback once: the caller has removed it from its slot under BasepFls.Lock. An ending
 *    thread or deleted fiber loses its own values, in the order of the indexes; FlsFree removes the index's value from
 *    every array, and calls back on its own thread. All arrays are on a list under the lock.
 * 4. No lock is held while a callback runs: it may call every function here.
 * 5. FlsFree returns when no callback of that index is running, so the callback's code may then be unloaded. A callback
 *    that frees its own index does not wait for itself.
 * 6. An index that is being freed is not allocated. Any index in range takes a value, allocated or not; such a value has
 *    no callback, and is dropped when the index is allocated.
 * 7. A thread that was terminated runs no callbacks; its values are dropped. If it stopped inside a callback, that one
 *    counts as finished.
 */
#include "base.h"

#define BASE_TLS_EXPANSION 1024
#define BASE_TLS_INDEXES (TLS_MINIMUM_AVAILABLE + BASE_TLS_EXPANSION)

/* Index 0 is never allocated: programs use it for "none". */
static struct {
    KI_LOCK Lock;
    ULONG64 Used[BASE_TLS_INDEXES / 64];
} BasepTls = {.Used = {1}};

C_ASSERT(BASE_TLS_INDEXES % 64 == 0);

static VOID BasepThreadExits(PETHREAD Thread, BOOLEAN WasTerminated);

VOID BaseWatchThreadExits(VOID)
{
    static volatile ULONG Registered;
    /* relaxed: the index, however another thread learns of it, publishes the registration */
    if (__atomic_load_n(&Registered, __ATOMIC_RELAXED) == 0 &&
        __atomic_exchange_n(&Registered, 1, __ATOMIC_RELAXED) == 0) {
        PspRegisterThreadExit(BasepThreadExits);
    }
}

DWORD TlsAlloc(VOID)
{
    DWORD Index = TLS_OUT_OF_INDEXES;
    BaseWatchThreadExits();
    PKTHREAD Thread = KiEnterLocked(&BasepTls.Lock);
    for (DWORD Word = 0; Word < ARRAYSIZE(BasepTls.Used) && Index == TLS_OUT_OF_INDEXES; Word++) {
        if (~BasepTls.Used[Word] != 0) {
            ULONG Bit = (ULONG)__builtin_ctzll(~BasepTls.Used[Word]);
            BasepTls.Used[Word] |= 1ULL << Bit;
            Index = Word * 64 + Bit;
        }
    }
    KiExitLocked(&BasepTls.Lock, Thread);
    if (Index == TLS_OUT_OF_INDEXES) {
        RtlSetLastWin32Error(ERROR_NO_MORE_ITEMS);
    }
    return Index;
}

/* NULL: the thread has never set a value in that array. */
static PVOID volatile *BasepTlsSlot(PBASE_THREAD Own, DWORD Index)
{
    BOOLEAN First = Index < TLS_MINIMUM_AVAILABLE;
    /* acquire: pairs with the release in BasepAllocateSlots, for TlsFree on another thread */
    PVOID *Slots = __atomic_load_n(First ? &Own->TlsSlots : &Own->TlsExpansionSlots, __ATOMIC_ACQUIRE);
    return Slots != NULL ? &Slots[First ? Index : Index - TLS_MINIMUM_AVAILABLE] : NULL;
}

BOOL TlsFree(DWORD dwTlsIndex)
{
    ULONG64 Bit = 1ULL << dwTlsIndex % 64;
    BOOLEAN Used = FALSE;
    if (dwTlsIndex != 0 && dwTlsIndex < BASE_TLS_INDEXES) {
        PKTHREAD Current = KiEnterLocked(&BasepTls.Lock);
        PKTHREAD Thread;
        Used = (BasepTls.Used[dwTlsIndex / 64] & Bit) != 0;
        for (ULONG Number = 0; Used && (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
            PVOID volatile *Slot = BasepTlsSlot(BaseThread(Thread), dwTlsIndex);
            if (Slot != NULL) {
                /* relaxed: users of the reallocated index synchronize with its allocation, not with this */
                __atomic_store_n(Slot, NULL, __ATOMIC_RELAXED);
            }
        }
        BasepTls.Used[dwTlsIndex / 64] &= ~Bit;
        KiExitLocked(&BasepTls.Lock, Current);
    }
    if (!Used) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
    }
    return Used;
}

/* NULL is a valid value, so the last error reports success. */
LPVOID TlsGetValue(DWORD dwTlsIndex)
{
    PVOID volatile *Slot;
    if (dwTlsIndex >= BASE_TLS_INDEXES) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    RtlSetLastWin32Error(ERROR_SUCCESS);
    Slot = BasepTlsSlot(BaseCurrentThread(), dwTlsIndex);
    /* relaxed: the thread's own value, or cleared */
    return Slot != NULL ? __atomic_load_n(Slot, __ATOMIC_RELAXED) : NULL;
}

/* In a service: a thread that is terminated here would leak the array, or leave the heap locked. */
static PVOID *BasepAllocateSlots(PVOID **Place, ULONG Count)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    PVOID *Slots = HalAllocate(Count * sizeof(PVOID), MEMORY_ALLOCATION_ALIGNMENT);
    /* release: pairs with the acquire in BasepTlsSlot and BasepTakeValue, the array is clear */
    __atomic_store_n(Place, Slots, __ATOMIC_RELEASE);
    KiExitService(Thread);
    if (Slots == NULL) {
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
    }
    return Slots;
}

BOOL TlsSetValue(DWORD dwTlsIndex, LPVOID lpTlsValue)
{
    PBASE_THREAD Own = BaseCurrentThread();
    PVOID volatile *Slot;
    if (dwTlsIndex >= BASE_TLS_INDEXES) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    Slot = BasepTlsSlot(Own, dwTlsIndex);
    if (Slot == NULL) {
        PVOID *Slots = dwTlsIndex < TLS_MINIMUM_AVAILABLE
                           ? BasepAllocateSlots(&Own->TlsSlots, TLS_MINIMUM_AVAILABLE)
                           : BasepAllocateSlots(&Own->TlsExpansionSlots, BASE_TLS_EXPANSION);
        if (Slots == NULL) {
            return FALSE;
        }
        Slot = BasepTlsSlot(Own, dwTlsIndex);
    }
    __atomic_store_n(Slot, lpTlsValue, __ATOMIC_RELAXED);
    return TRUE;
}

/* Fiber-local storage. */

typedef enum _BASE_FLS_STATE { BaseFlsFree, BaseFlsUsed, BaseFlsClosing } BASE_FLS_STATE;

typedef struct _BASE_FLS_INDEX {
    PFLS_CALLBACK_FUNCTION Callback;
    volatile UCHAR State; /* BASE_FLS_STATE; changes under the lock */
    KEVENT Idle;          /* set when an ending thread's callback returns, for FlsFree */
} BASE_FLS_INDEX, *PBASE_FLS_INDEX;

typedef struct _BASE_FLS {
    LIST_ENTRY ListEntry;
    PVOID Value[FLS_MAXIMUM_AVAILABLE];
} BASE_FLS, *PBASE_FLS;

/* Index 0 is never allocated. */
static struct {
    KI_LOCK Lock;
    LIST_ENTRY Arrays;
    BASE_FLS_INDEX Index[FLS_MAXIMUM_AVAILABLE];
} BasepFls = {.Arrays = {&BasepFls.Arrays, &BasepFls.Arrays}};

static BOOLEAN BasepIsFlsIndex(DWORD Index)
{
    return Index != 0 && Index < FLS_MAXIMUM_AVAILABLE;
}

static VOID BasepSetFlsState(PBASE_FLS_INDEX Index, BASE_FLS_STATE State)
{
    __atomic_store_n(&Index->State, (UCHAR)State, __ATOMIC_RELAXED);
}

/* With the lock held: the array is freed under it. */
static PVOID BasepTakeValue(PBASE_FLS Fls, DWORD Index)
{
    return __atomic_exchange_n(&Fls->Value[Index], NULL, __ATOMIC_ACQUIRE);
}

DWORD FlsAlloc(PFLS_CALLBACK_FUNCTION lpCallback)
{
    DWORD Found = FLS_OUT_OF_INDEXES;
    BaseWatchThreadExits();
    PKTHREAD Thread = KiEnterLocked(&BasepFls.Lock);
    for (DWORD Number = 1; Number < FLS_MAXIMUM_AVAILABLE && Found == FLS_OUT_OF_INDEXES; Number++) {
        PBASE_FLS_INDEX Index = &BasepFls.Index[Number];
        if (Index->State == BaseFlsFree) {
            Index->Callback = lpCallback;
            KeInitializeEvent(&Index->Idle, SynchronizationEvent, FALSE);
            for (PLIST_ENTRY Entry = BasepFls.Arrays.Flink; Entry != &BasepFls.Arrays; Entry = Entry->Flink) {
                BasepTakeValue(CONTAINING_RECORD(Entry, BASE_FLS, ListEntry), Number); /* of an earlier use */
            }
            BasepSetFlsState(Index, BaseFlsUsed);
            Found = Number;
        }
    }
    KiExitLocked(&BasepFls.Lock, Thread);
    if (Found == FLS_OUT_OF_INDEXES) {
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
    }
    return Found;
}

PVOID FlsGetValue(DWORD dwFlsIndex)
{
    PBASE_FLS Fls = BaseCurrentThread()->Fls;
    if (!BasepIsFlsIndex(dwFlsIndex)) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    RtlSetLastWin32Error(ERROR_SUCCESS);
    /* relaxed: the thread's own value, or taken by FlsFree */
    return Fls != NULL ? __atomic_load_n(&Fls->Value[dwFlsIndex], __ATOMIC_RELAXED) : NULL;
}

/* In a service, as BasepAllocateSlots. */
static PBASE_FLS BasepCreateFls(PBASE_THREAD Own)
{
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    PBASE_FLS Fls = HalAllocate(sizeof(*Fls), MEMORY_ALLOCATION_ALIGNMENT);
    if (Fls != NULL) {
        KiEnterLocked(&BasepFls.Lock);
        InsertTailList(&BasepFls.Arrays, &Fls->ListEntry);
        KiExitLocked(&BasepFls.Lock, Thread);
        Own->Fls = Fls;
    }
    KiExitService(Thread);
    if (Fls == NULL) {
        RtlSetLastWin32Error(ERROR_NOT_ENOUGH_MEMORY);
    }
    return Fls;
}

BOOL FlsSetValue(DWORD dwFlsIndex, PVOID lpFlsData)
{
    PBASE_THREAD Own = BaseCurrentThread();
    PBASE_FLS Fls = Own->Fls;
    if (!BasepIsFlsIndex(dwFlsIndex)) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (Fls == NULL) {
        Fls = BasepCreateFls(Own);
        if (Fls == NULL) {
            return FALSE;
        }
    }
    /* release: pairs with the exchange in BasepTakeValue, for a callback on another thread */
    __atomic_store_n(&Fls->Value[dwFlsIndex], lpFlsData, __ATOMIC_RELEASE);
    return TRUE;
}

/* The value of an array that has one; NULL: there is none. */
static PVOID BasepTakeAnyValue(DWORD Number)
{
    PVOID Value = NULL;
    PKTHREAD Current = KiEnterLocked(&BasepFls.Lock);
    for (PLIST_ENTRY Entry = BasepFls.Arrays.Flink; Value == NULL && Entry != &BasepFls.Arrays; Entry = Entry->Flink) {
        Value = BasepTakeValue(CONTAINING_RECORD(Entry, BASE_FLS, ListEntry), Number);
    }
    KiExitLocked(&BasepFls.Lock, Current);
    return Value;
}

/* With the lock held: does another thread run one? Threads that stayed behind in the parent of a fork do not count. */
static BOOLEAN BasepIsCallbackRunning(DWORD Number)
{
    PKTHREAD Current = KiCurrentThread();
    PKTHREAD Thread;
    for (ULONG Slot = 0; (Thread = KiThreadFromNumber(Slot)) != NULL; Slot++) {
        /* relaxed, both: changed under the lock, except for a slot that a new thread takes or a fork orphans */
        if (Thread != Current && __atomic_load_n(&BaseThread(Thread)->FlsCallback, __ATOMIC_RELAXED) == Number &&
            __atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) == KiSlotUsed) {
            return TRUE;
        }
    }
    return FALSE;
}

BOOL FlsFree(DWORD dwFlsIndex)
{
    PVOID Value;
    PKTHREAD Thread = KiEnterLocked(&BasepFls.Lock);
    /* relaxed: changes under the lock */
    BOOLEAN Used = BasepIsFlsIndex(dwFlsIndex) &&
                   __atomic_load_n(&BasepFls.Index[dwFlsIndex].State, __ATOMIC_RELAXED) == BaseFlsUsed;
    if (Used) {
        BasepSetFlsState(&BasepFls.Index[dwFlsIndex], BaseFlsClosing);
    }
    KiExitLocked(&BasepFls.Lock, Thread);
    if (!Used) {
        RtlSetLastWin32Error(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    PBASE_FLS_INDEX Index = &BasepFls.Index[dwFlsIndex];
    while ((Value = BasepTakeAnyValue(dwFlsIndex)) != NULL) {
        if (Index->Callback != NULL) {
            Index->Callback(Value);
        }
    }
    Thread = KiEnterLocked(&BasepFls.Lock);
    while (BasepIsCallbackRunning(dwFlsIndex)) {
        KiExitLocked(&BasepFls.Lock, Thread);
        KeWaitForSingleObject(&Index->Idle, UserRequest, UserMode, FALSE, NULL);
        Thread = KiEnterLocked(&BasepFls.Lock);
    }
    BasepSetFlsState(Index, BaseFlsFree);
    KiExitLocked(&BasepFls.Lock, Thread);
    return TRUE;
}

/* The end of a thread or fiber. */

/* Outer: the callback from which this one was called, or 0. */
static VOID BasepFinishCallback(PBASE_THREAD Own, DWORD Number, DWORD Outer)
{
    PKTHREAD Thread = KiEnterLocked(&BasepFls.Lock);
    __atomic_store_n(&Own->FlsCallback, Outer, __ATOMIC_RELAXED);
    KeSetEvent(&BasepFls.Index[Number].Idle, 0, FALSE);
    KiExitLocked(&BasepFls.Lock, Thread);
}

/* FlsCallback, written under the lock, tells FlsFree that the callback is running. */
static VOID BasepCallFlsCallbacks(PBASE_THREAD Own, PBASE_FLS Fls)
{
    DWORD Outer = Own->FlsCallback;
    for (DWORD Number = 1; Number < FLS_MAXIMUM_AVAILABLE; Number++) {
        PBASE_FLS_INDEX Index = &BasepFls.Index[Number];
        PFLS_CALLBACK_FUNCTION Callback = NULL;
        PKTHREAD Thread = KiEnterLocked(&BasepFls.Lock);
        PVOID Value = BasepTakeValue(Fls, Number);
        if (Value != NULL && Index->State != BaseFlsFree && Index->Callback != NULL) {
            Callback = Index->Callback;
            __atomic_store_n(&Own->FlsCallback, Number, __ATOMIC_RELAXED);
        }
        KiExitLocked(&BasepFls.Lock, Thread);
        if (Callback != NULL) {
            Callback(Value);
            BasepFinishCallback(Own, Number, Outer);
        }
    }
}

static VOID BasepFreeFls(PBASE_FLS Fls)
{
    PKTHREAD Thread = KiEnterLocked(&BasepFls.Lock);
    RemoveEntryList(&Fls->ListEntry);
    KiExitLocked(&BasepFls.Lock, Thread);
    HalFree(Fls);
}

VOID BaseEndFls(PBASE_FLS Fls)
{
    if (Fls != NULL) {
        BasepCallFlsCallbacks(BaseCurrentThread(), Fls);
        BasepFreeFls(Fls);
    }
}

/* Under the lock, so that other threads do not find the array. The thread starts over if it uses storage again. */
static VOID BasepFreeSlots(PKI_LOCK Lock, PVOID **Place)
{
    PKTHREAD Thread = KiEnterLocked(Lock);
    PVOID *Slots = *Place;
    /* relaxed: other threads read it under the lock */
    __atomic_store_n(Place, NULL, __ATOMIC_RELAXED);
    KiExitLocked(Lock, Thread);
    HalFree(Slots);
}

/* The callbacks of fiber-local storage come first, then the modules: both may still use thread-local storage. */
static VOID BasepThreadExits(PETHREAD Thread, BOOLEAN WasTerminated)
{
    PBASE_THREAD Own = BaseThread(&Thread->Tcb);
    if (Own->Fls != NULL) {
        PBASE_FLS Fls = Own->Fls;
        if (!WasTerminated) {
            BasepCallFlsCallbacks(Own, Fls);
        } else if (Own->FlsCallback != 0) {
            BasepFinishCallback(Own, Own->FlsCallback, 0);
        }
        Own->Fls = NULL;
        BasepFreeFls(Fls);
    }
    if (!WasTerminated) {
        BaseThreadEnds(Own);
    }
    BaseThreadLeavesFibers(Own, WasTerminated);
    if (Own->TlsSlots != NULL) {
        BasepFreeSlots(&BasepTls.Lock, &Own->TlsSlots);
    }
    if (Own->TlsExpansionSlots != NULL) {
        BasepFreeSlots(&BasepTls.Lock, &Own->TlsExpansionSlots);
    }
}

/* Fiber-local storage with statuses. They leave the last error alone. */

static NTSTATUS BaseFlsStatus(BOOL Succeeded, ULONG LastError, NTSTATUS Failure)
{
    RtlSetLastWin32Error(LastError);
    return Succeeded ? STATUS_SUCCESS : Failure;
}

NTSTATUS RtlFlsAlloc(VOID (*Callback)(PVOID FlsData), PULONG FlsIndex)
{
    ULONG LastError = GetLastError();
    DWORD Index;
    if (FlsIndex == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    Index = FlsAlloc(Callback);
    if (Index != FLS_OUT_OF_INDEXES) {
        *FlsIndex = Index;
    }
    return BaseFlsStatus(Index != FLS_OUT_OF_INDEXES, LastError, STATUS_NO_MEMORY);
}

NTSTATUS RtlFlsFree(ULONG FlsIndex)
{
    ULONG LastError = GetLastError();
    return BaseFlsStatus(FlsFree(FlsIndex), LastError, STATUS_INVALID_PARAMETER);
}

NTSTATUS RtlFlsGetValue(ULONG FlsIndex, PVOID *FlsData)
{
    ULONG LastError = GetLastError();
    PVOID Value;
    if (FlsData == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    Value = FlsGetValue(FlsIndex);
    *FlsData = Value;
    return BaseFlsStatus(Value != NULL || GetLastError() == ERROR_SUCCESS, LastError, STATUS_INVALID_PARAMETER);
}

NTSTATUS RtlFlsSetValue(ULONG FlsIndex, PVOID FlsData)
{
    ULONG LastError = GetLastError();
    BOOL Set = FlsSetValue(FlsIndex, FlsData);
    NTSTATUS Failure = GetLastError() == ERROR_NOT_ENOUGH_MEMORY ? STATUS_NO_MEMORY : STATUS_INVALID_PARAMETER;
    return BaseFlsStatus(Set, LastError, Failure);
}
