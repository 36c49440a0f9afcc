/*
 * fls.c: fiber-local storage: thread-local storage with a callback for each value that is not NULL when its thread ends
 * or its index is freed.
 *
 * 1. A value is given to its callback once: whoever calls has taken it out of its slot before, under BasepFls.Lock. The
 *    thread that ends does so for its own values, in the order of the indexes; who frees an index, for that of every
 *    thread, on its own thread.
 * 2. No lock is held while a callback runs: it may call every function here.
 * 3. FlsFree returns when no callback of that index runs any more: what the callback is made of may then be unloaded.
 *    A callback that frees its own index does not wait for itself.
 * 4. An index that is being freed is not given away and takes no values.
 * 5. A thread that was terminated has no callbacks; its values are dropped. If it was in one, that runs no more.
 */
#include <interlock/win32/tls.h>

#include "local.h"

typedef enum _BASE_FLS_STATE { BaseFlsFree, BaseFlsUsed, BaseFlsClosing } BASE_FLS_STATE;

typedef struct _BASE_FLS_INDEX {
    PFLS_CALLBACK_FUNCTION Callback;
    volatile UCHAR State; /* BASE_FLS_STATE; changes under the lock */
    KEVENT Idle;          /* signaled when a callback of a thread that ends is over, for the one who closes */
} BASE_FLS_INDEX, *PBASE_FLS_INDEX;

/* Index 0 is never given away. */
static struct {
    KI_LOCK Lock;
    BASE_FLS_INDEX Index[FLS_MAXIMUM_AVAILABLE];
} BasepFls;

static VOID BasepLockFls(VOID)
{
    BasepLockStorage(&BasepFls.Lock);
}

static VOID BasepUnlockFls(VOID)
{
    BasepUnlockStorage(&BasepFls.Lock);
}

/* relaxed: a value of an index that is freed meanwhile is lost in one way or the other */
static BOOLEAN BasepIsFlsUsed(DWORD Index)
{
    return Index != 0 && Index < FLS_MAXIMUM_AVAILABLE &&
           __atomic_load_n(&BasepFls.Index[Index].State, __ATOMIC_RELAXED) == BaseFlsUsed;
}

static VOID BasepSetFlsState(PBASE_FLS_INDEX Index, BASE_FLS_STATE State)
{
    __atomic_store_n(&Index->State, (UCHAR)State, __ATOMIC_RELAXED);
}

DWORD FlsAlloc(PFLS_CALLBACK_FUNCTION lpCallback)
{
    DWORD Found = FLS_OUT_OF_INDEXES;
    BasepWatchThreadExits();
    BasepLockFls();
    for (DWORD Number = 1; Number < FLS_MAXIMUM_AVAILABLE && Found == FLS_OUT_OF_INDEXES; Number++) {
        PBASE_FLS_INDEX Index = &BasepFls.Index[Number];
        if (Index->State == BaseFlsFree) {
            Index->Callback = lpCallback;
            KeInitializeEvent(&Index->Idle, SynchronizationEvent, FALSE);
            BasepSetFlsState(Index, BaseFlsUsed);
            Found = Number;
        }
    }
    BasepUnlockFls();
    if (Found == FLS_OUT_OF_INDEXES) {
        BaseSetLastError(ERROR_NOT_ENOUGH_MEMORY);
    }
    return Found;
}

PVOID FlsGetValue(DWORD dwFlsIndex)
{
    PVOID *Slots = BaseCurrentThread()->FlsSlots;
    if (dwFlsIndex == 0 || dwFlsIndex >= FLS_MAXIMUM_AVAILABLE) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    BaseSetLastError(ERROR_SUCCESS);
    /* relaxed: the thread's own, or taken by who frees the index */
    return Slots != NULL ? __atomic_load_n(&Slots[dwFlsIndex], __ATOMIC_RELAXED) : NULL;
}

/* In a service, as in BasepExpandTls. */
static PVOID *BasepMakeFlsSlots(PKTHREAD Thread)
{
    PBASE_THREAD Own = BaseThread(Thread);
    PVOID *Slots;
    KiEnterService(Thread);
    Slots = HalAllocate(FLS_MAXIMUM_AVAILABLE * sizeof(PVOID), MEMORY_ALLOCATION_ALIGNMENT);
    /* release: pairs with the acquire in BasepTakeValue, the array is clear */
    __atomic_store_n(&Own->FlsSlots, Slots, __ATOMIC_RELEASE);
    KiExitService(Thread);
    return Slots;
}

BOOL FlsSetValue(DWORD dwFlsIndex, PVOID lpFlsData)
{
    PVOID *Slots = BaseCurrentThread()->FlsSlots;
    if (!BasepIsFlsUsed(dwFlsIndex)) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (Slots == NULL) {
        Slots = BasepMakeFlsSlots(KiCurrentThread());
    }
    if (Slots == NULL) {
        BaseSetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return FALSE;
    }
    /* release: pairs with the exchange in BasepTakeValue, for who calls the callback on another thread */
    __atomic_store_n(&Slots[dwFlsIndex], lpFlsData, __ATOMIC_RELEASE);
    return TRUE;
}

/* With the lock held, under which alone the array goes. */
static PVOID BasepTakeValue(PBASE_THREAD Own, DWORD Index)
{
    PVOID *Slots = __atomic_load_n(&Own->FlsSlots, __ATOMIC_ACQUIRE);
    return Slots != NULL ? __atomic_exchange_n(&Slots[Index], NULL, __ATOMIC_ACQUIRE) : NULL;
}

/* Freeing. */

static BOOLEAN BasepBeginClosing(DWORD Number)
{
    BOOLEAN Used;
    BasepLockFls();
    Used = BasepIsFlsUsed(Number);
    if (Used) {
        BasepSetFlsState(&BasepFls.Index[Number], BaseFlsClosing);
    }
    BasepUnlockFls();
    return Used;
}

/* The value of one more thread, counted from *Slot on; NULL: there is none. */
static PVOID BasepTakeNextValue(DWORD Number, PULONG Slot)
{
    PVOID Value = NULL;
    PKTHREAD Thread;
    BasepLockFls();
    while (Value == NULL && (Thread = KiThreadFromNumber(*Slot)) != NULL) {
        Value = BasepTakeValue(BaseThread(Thread), Number);
        *Slot += 1;
    }
    BasepUnlockFls();
    return Value;
}

/* With the lock held: is one running on another thread? Not on those that a fork has left behind. */
static BOOLEAN BasepIsCallbackRunning(DWORD Number)
{
    PKTHREAD Current = KiCurrentThread();
    PKTHREAD Thread;
    for (ULONG Slot = 0; (Thread = KiThreadFromNumber(Slot)) != NULL; Slot++) {
        /* relaxed, both: with the lock, but for a slot that is given to a new thread or orphaned by a fork */
        if (Thread != Current && __atomic_load_n(&BaseThread(Thread)->FlsCallback, __ATOMIC_RELAXED) == Number &&
            __atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) == KiSlotUsed) {
            return TRUE;
        }
    }
    return FALSE;
}

static VOID BasepAwaitCallbacks(DWORD Number)
{
    PBASE_FLS_INDEX Index = &BasepFls.Index[Number];
    BasepLockFls();
    while (BasepIsCallbackRunning(Number)) {
        BasepUnlockFls();
        KeWaitForSingleObject(&Index->Idle, UserRequest, UserMode, FALSE, NULL);
        BasepLockFls();
    }
    BasepSetFlsState(Index, BaseFlsFree);
    BasepUnlockFls();
}

BOOL FlsFree(DWORD dwFlsIndex)
{
    PFLS_CALLBACK_FUNCTION Callback;
    ULONG Slot = 0;
    PVOID Value;
    if (!BasepBeginClosing(dwFlsIndex)) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    Callback = BasepFls.Index[dwFlsIndex].Callback;
    while ((Value = BasepTakeNextValue(dwFlsIndex, &Slot)) != NULL) {
        if (Callback != NULL) {
            Callback(Value);
        }
    }
    BasepAwaitCallbacks(dwFlsIndex);
    return TRUE;
}

/* A thread ends. */

/* NULL: nothing to call. Otherwise the callback counts as running, by FlsCallback, which is written under the lock. */
static PFLS_CALLBACK_FUNCTION BasepBeginCallback(PBASE_THREAD Own, DWORD Number, PVOID *Value)
{
    PBASE_FLS_INDEX Index = &BasepFls.Index[Number];
    PFLS_CALLBACK_FUNCTION Callback = NULL;
    BasepLockFls();
    *Value = BasepTakeValue(Own, Number);
    if (*Value != NULL && Index->State != BaseFlsFree && Index->Callback != NULL) {
        Callback = Index->Callback;
        __atomic_store_n(&Own->FlsCallback, Number, __ATOMIC_RELAXED);
    }
    BasepUnlockFls();
    return Callback;
}

static VOID BasepFinishCallback(PBASE_THREAD Own, DWORD Number)
{
    PBASE_FLS_INDEX Index = &BasepFls.Index[Number];
    BasepLockFls();
    __atomic_store_n(&Own->FlsCallback, 0, __ATOMIC_RELAXED);
    KeSetEvent(&Index->Idle, 0, FALSE);
    BasepUnlockFls();
}

static VOID BasepCallFlsCallbacks(PBASE_THREAD Own)
{
    for (DWORD Number = 1; Number < FLS_MAXIMUM_AVAILABLE; Number++) {
        PVOID Value;
        PFLS_CALLBACK_FUNCTION Callback = BasepBeginCallback(Own, Number, &Value);
        if (Callback != NULL) {
            Callback(Value);
            BasepFinishCallback(Own, Number);
        }
    }
}

VOID BasepEndFls(PETHREAD Thread, BOOLEAN WasTerminated)
{
    PVOID *Slots;
    if (BaseThread(&Thread->Tcb)->FlsSlots == NULL) {
        return;
    }
    if (!WasTerminated) {
        BasepCallFlsCallbacks(BaseThread(&Thread->Tcb));
    } else if (BaseThread(&Thread->Tcb)->FlsCallback != 0) {
        BasepFinishCallback(BaseThread(&Thread->Tcb), BaseThread(&Thread->Tcb)->FlsCallback);
    }
    BasepLockFls();
    Slots = BaseThread(&Thread->Tcb)->FlsSlots;
    __atomic_store_n(&BaseThread(&Thread->Tcb)->FlsSlots, NULL, __ATOMIC_RELAXED);
    BasepUnlockFls();
    HalFree(Slots);
}
