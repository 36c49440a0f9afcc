/*
 * keptport.c: the port that a thread keeps from one call to the next (nt/iocompletion.c). One thread calls with each of HANDLES
 * handles of one port in turn, while CLOSERS threads close a handle each. A call never uses a freed port, and the port is freed
 * with its last handle. The host has no barrier on all threads, so the order is by KiDispatcherFence.
 */
#include "shim.h"

#ifndef HANDLES
#define HANDLES 0, 1, 1
#endif
#ifndef CLOSERS
#define CLOSERS 2
#endif

struct _KTHREAD {
    int Number;
};

enum { IN_USE = 1, ALL = 0xf };

typedef struct _NTP_PORT {
    LONG references;
    int alive; /* not atomic: a call that is not ordered before the end is a race */
} __attribute__((aligned(16))) NTP_PORT, *PNTP_PORT;

typedef struct _NTP_THREAD {
    volatile ULONG UsesKeptPort;
} NTP_THREAD, *PNTP_THREAD;

typedef struct _KI_SLOT {
    volatile ULONG Use;
} KI_SLOT;

#define KiDispatcherFence TRUE
#define KiSlotUsed IN_USE
#define HalBarrierAllThreads() ((void)0)
#define KiThreadFromNumber(number) (&callers[number])
#define KiSlotOfThread(thread) (&slots[(thread)->Number])
#define NtpThread(thread) (&rooms[(thread)->Number])
#define NtpThreadKept(thread) (&kept[(thread)->Number])
#define KiThreadSlotsUsed slots_used
#define KI_LOCK pthread_mutex_t
#define KiAcquireLock(lock) pthread_mutex_lock(lock)
#define KiReleaseLock(lock) pthread_mutex_unlock(lock)
#define ObpReferenceByHandle(handle, access, type, mode, object) reference(handle, object)
#define ObpDereferenceObject(object) dereference(object)
#define ObpEntryOfHandle(handle) (&entries[(ULONG_PTR)(handle)])
#define NtpPortType type

static KTHREAD callers[1 + CLOSERS];
static KI_SLOT slots[1 + CLOSERS];
static NTP_THREAD rooms[1 + CLOSERS];
static volatile ULONG slots_used = 1 + CLOSERS;
static int type;
static NTSTATUS reference(HANDLE handle, PVOID *object);
static VOID dereference(PVOID object);

//! take NTP_THREAD_KEPT OBP_HANDLE_ENTRY

static NTP_THREAD_KEPT kept[1 + CLOSERS];
static OBP_HANDLE_ENTRY entries[CLOSERS + 1]; /* of the handles: 0 is the first; the last one stays closed */

//! take NtpReferencePort NtpReturnPort NtpTakeKeptPorts
//! fault 1 NtpTakeKeptPorts: KiAcquireLock(&NtpCloserLock); =>
//! fault 1 NtpTakeKeptPorts: KiReleaseLock(&NtpCloserLock); =>
//! fault 2 KiStoreBeforeLook: __atomic_exchange_n(Word, Value, __ATOMIC_SEQ_CST) => (void)0
//! fault 4 NtpTakeBackPort: __ATOMIC_ACQUIRE => __ATOMIC_RELAXED
//! fault 3 NtpTakeUnusedPorts: && !NtpIsSlotInUse(Thread) =>

static const int handles[] = {HANDLES};
static NTP_PORT port;
static pthread_mutex_t table; /* ObpReferenceByHandle is not a part of this */

static NTSTATUS reference(HANDLE handle, PVOID *object)
{
    NTSTATUS status = STATUS_INVALID_HANDLE;
    pthread_mutex_lock(&table);
    if (ObpObjectOf(__atomic_load_n(&ObpEntryOfHandle(handle)->Object, __ATOMIC_RELAXED)) == &port) {
        __atomic_fetch_add(&port.references, 1, __ATOMIC_RELAXED);
        *object = &port;
        status = STATUS_SUCCESS;
    }
    pthread_mutex_unlock(&table);
    return status;
}

static VOID dereference(PVOID object)
{
    assert(object == &port);
    if (__atomic_sub_fetch(&port.references, 1, __ATOMIC_ACQ_REL) == 0) {
        port.alive = 0;
    }
}

static void *call(void *argument)
{
    (void)argument;
    shim_thread = &callers[0];
    for (unsigned i = 0; i < sizeof(handles) / sizeof(*handles); i++) {
        HANDLE handle = (HANDLE)(ULONG_PTR)handles[i];
        NTP_PORT_USE use;
        if (NtpReferencePort(&callers[0], handle, ALL, &use) == STATUS_SUCCESS) {
            int alive = use.Port->alive;
            assert(alive);
            NtpReturnPort(&callers[0], handle, &use);
        }
    }
    return NULL;
}

static void *close_handle(void *argument)
{
    int number = (int)(intptr_t)argument;
    OBP_HANDLE_ENTRY *entry = &entries[number - 1];
    shim_thread = &callers[number];
    pthread_mutex_lock(&table);
    __atomic_exchange_n(&entry->Object, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&table);
    NtpTakeKeptPorts(&port);
    dereference(&port);
    return NULL;
}

static void setup(void)
{
    pthread_mutex_init(&table, NULL);
    port.references = CLOSERS;
    port.alive = 1;
    for (int i = 0; i <= CLOSERS; i++) {
        callers[i].Number = i;
        slots[i].Use = IN_USE;
        rooms[i].UsesKeptPort = FALSE;
        kept[i].KeptPort = 0;
        entries[i].Object = i < CLOSERS ? (ULONG_PTR)&port : 0;
        entries[i].Access = ALL;
    }
}

static void finish(void)
{
    assert(port.references == 0 && !port.alive && kept[0].KeptPort == 0);
}

#if CLOSERS == 2
SHIM_RUN(setup, finish, call, close_handle, close_handle)
#else
SHIM_RUN(setup, finish, call, close_handle)
#endif
