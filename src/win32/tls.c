/*
 * tls.c: thread-local storage.
 *
 * A thread's values are its own, but for one case: freeing an index clears it in every thread, so that whoever is given
 * the index next finds NULL everywhere. Values are read and written without a lock:
 *
 * 1. The first 64 are in the thread's room, which is in a slot of the table of threads and is never unmapped. Clearing one is a
 *    store; in a slot that is free or belongs to a thread that has just begun it changes nothing.
 * 2. The others are in an array that the thread allocates when it first sets one of them, and that is freed when it
 *    ends. It is freed under BasepTls.Lock, and an index is freed under it, so an array that is seen there is there.
 * 3. A thread that sets a value of an index which another one is freeing has lost its race whatever happens.
 */
#include <interlock/win32/tls.h>

#include "local.h"

#define BASE_TLS_EXPANSION 1024
#define BASE_TLS_INDEXES (TLS_MINIMUM_AVAILABLE + BASE_TLS_EXPANSION)

static struct {
    KI_LOCK Lock;
    ULONG64 Used[BASE_TLS_INDEXES / 64];
} BasepTls;

C_ASSERT(BASE_TLS_INDEXES % 64 == 0);

VOID BasepLockStorage(PKI_LOCK Lock)
{
    KiEnterDispatcher(KiCurrentThread());
    KiAcquireLock(Lock);
}

VOID BasepUnlockStorage(PKI_LOCK Lock)
{
    KiReleaseLock(Lock);
    KiExitDispatcher(KiCurrentThread());
}

/* What the thread is used for after its end begins again with nothing. */
static VOID BasepFreeTls(PETHREAD Thread)
{
    PVOID *Slots;
    BasepLockStorage(&BasepTls.Lock);
    Slots = BaseThread(&Thread->Tcb)->TlsExpansionSlots;
    /* relaxed: who reads it for another thread has the lock */
    __atomic_store_n(&BaseThread(&Thread->Tcb)->TlsExpansionSlots, NULL, __ATOMIC_RELAXED);
    BasepUnlockStorage(&BasepTls.Lock);
    HalFree(Slots);
}

/* The callbacks of fiber-local storage come first: they may still use what is in thread-local storage. */
static VOID BasepThreadExits(PETHREAD Thread, BOOLEAN WasTerminated)
{
    BasepEndFls(Thread, WasTerminated);
    if (BaseThread(&Thread->Tcb)->TlsExpansionSlots != NULL) {
        BasepFreeTls(Thread);
    }
}

VOID BasepWatchThreadExits(VOID)
{
    static volatile ULONG Registered;
    /* relaxed: whoever learns of an index learns of the registration with it */
    if (__atomic_load_n(&Registered, __ATOMIC_RELAXED) == 0 &&
        __atomic_exchange_n(&Registered, 1, __ATOMIC_RELAXED) == 0) {
        PspRegisterThreadExit(BasepThreadExits);
    }
}

/* With the lock held. */
static DWORD BasepTakeTlsIndex(VOID)
{
    for (DWORD Word = 0; Word < ARRAYSIZE(BasepTls.Used); Word++) {
        if (~BasepTls.Used[Word] != 0) {
            ULONG Bit = (ULONG)__builtin_ctzll(~BasepTls.Used[Word]);
            BasepTls.Used[Word] |= 1ULL << Bit;
            return Word * 64 + Bit;
        }
    }
    return TLS_OUT_OF_INDEXES;
}

DWORD TlsAlloc(VOID)
{
    DWORD Index;
    BasepWatchThreadExits();
    BasepLockStorage(&BasepTls.Lock);
    Index = BasepTakeTlsIndex();
    BasepUnlockStorage(&BasepTls.Lock);
    if (Index == TLS_OUT_OF_INDEXES) {
        BaseSetLastError(ERROR_NO_MORE_ITEMS);
    }
    return Index;
}

/* NULL: the thread has never set a value beyond the first 64. relaxed: the owner's own, or under the lock */
static PVOID volatile *BasepTlsSlot(PBASE_THREAD Own, DWORD Index)
{
    PVOID *Expansion;
    if (Index < TLS_MINIMUM_AVAILABLE) {
        return &Own->TlsSlots[Index];
    }
    /* acquire: pairs with the release in BasepExpandTls, for who clears */
    Expansion = __atomic_load_n(&Own->TlsExpansionSlots, __ATOMIC_ACQUIRE);
    return Expansion != NULL ? &Expansion[Index - TLS_MINIMUM_AVAILABLE] : NULL;
}

static VOID BasepClearTls(DWORD Index)
{
    PKTHREAD Thread;
    for (ULONG Number = 0; (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
        PVOID volatile *Slot = BasepTlsSlot(BaseThread(Thread), Index);
        if (Slot != NULL) {
            /* relaxed: whoever learns of the index's next use synchronizes with that, not with this */
            __atomic_store_n(Slot, NULL, __ATOMIC_RELAXED);
        }
    }
}

BOOL TlsFree(DWORD dwTlsIndex)
{
    ULONG64 Bit = 1ULL << dwTlsIndex % 64;
    BOOLEAN Used = FALSE;
    if (dwTlsIndex < BASE_TLS_INDEXES) {
        BasepLockStorage(&BasepTls.Lock);
        Used = (BasepTls.Used[dwTlsIndex / 64] & Bit) != 0;
        if (Used) {
            BasepClearTls(dwTlsIndex);
            BasepTls.Used[dwTlsIndex / 64] &= ~Bit;
        }
        BasepUnlockStorage(&BasepTls.Lock);
    }
    if (!Used) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
    }
    return Used;
}

/* NULL is a value like others, so success is told by the last error. */
LPVOID TlsGetValue(DWORD dwTlsIndex)
{
    PVOID volatile *Slot;
    if (dwTlsIndex >= BASE_TLS_INDEXES) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    BaseSetLastError(ERROR_SUCCESS);
    Slot = BasepTlsSlot(BaseCurrentThread(), dwTlsIndex);
    /* relaxed: the thread's own, or cleared */
    return Slot != NULL ? __atomic_load_n(Slot, __ATOMIC_RELAXED) : NULL;
}

/* In a service: a thread that is ended here would lose the array, or the heap its lock. */
static PVOID volatile *BasepExpandTls(PKTHREAD Thread, DWORD Index)
{
    PBASE_THREAD Own = BaseThread(Thread);
    PVOID *Expansion;
    KiEnterService(Thread);
    Expansion = HalAllocate(BASE_TLS_EXPANSION * sizeof(PVOID), MEMORY_ALLOCATION_ALIGNMENT);
    /* release: pairs with the acquire in BasepTlsSlot, the array is clear */
    __atomic_store_n(&Own->TlsExpansionSlots, Expansion, __ATOMIC_RELEASE);
    KiExitService(Thread);
    return Expansion != NULL ? &Expansion[Index - TLS_MINIMUM_AVAILABLE] : NULL;
}

BOOL TlsSetValue(DWORD dwTlsIndex, LPVOID lpTlsValue)
{
    PVOID volatile *Slot;
    if (dwTlsIndex >= BASE_TLS_INDEXES) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    Slot = BasepTlsSlot(BaseCurrentThread(), dwTlsIndex);
    if (Slot == NULL) {
        Slot = BasepExpandTls(KiCurrentThread(), dwTlsIndex);
    }
    if (Slot == NULL) {
        BaseSetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return FALSE;
    }
    __atomic_store_n(Slot, lpTlsValue, __ATOMIC_RELAXED);
    return TRUE;
}
