/* Heap use of objects, handles and waiters. */
#include "../bench.h"

#include <interlock/nt.h>
#include <interlock/ob.h>
#include <interlock/rtl.h>

#include <stdlib.h>

#include "../heap.h"

#define MANY 64

static HANDLE original, gate_handle;
static KEVENT events[MANY];
static RTL_SRWLOCK gate_lock;
static ULONG word;

static void *new_event(void)
{
    HANDLE made = NULL;

    NtCreateEvent(&made, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    return made;
}

static void *new_semaphore(void)
{
    HANDLE made = NULL;

    NtCreateSemaphore(&made, SEMAPHORE_ALL_ACCESS, NULL, 0, 1);
    return made;
}

static void *new_mutant(void)
{
    HANDLE made = NULL;

    NtCreateMutant(&made, MUTANT_ALL_ACCESS, NULL, FALSE);
    return made;
}

static void *new_timer(void)
{
    HANDLE made = NULL;

    NtCreateTimer(&made, TIMER_ALL_ACCESS, NULL, SynchronizationTimer);
    return made;
}

static void *new_port(void)
{
    HANDLE made = NULL;

    NtCreateIoCompletion(&made, IO_COMPLETION_ALL_ACCESS, NULL, 0);
    return made;
}

static void *new_handle(void)
{
    HANDLE made = NULL;

    NtDuplicateObject(NtCurrentProcess(), original, NtCurrentProcess(), &made, 0, 0, DUPLICATE_SAME_ACCESS);
    return made;
}

static void *new_section(void)
{
    PRTL_CRITICAL_SECTION made = malloc(sizeof(*made));

    if (made != NULL)
        RtlInitializeCriticalSection(made);
    return made;
}

BENCH_HEAP_OF(heap_of_event, new_event)
BENCH_HEAP_OF(heap_of_semaphore, new_semaphore)
BENCH_HEAP_OF(heap_of_mutant, new_mutant)
BENCH_HEAP_OF(heap_of_timer, new_timer)
BENCH_HEAP_OF(heap_of_port, new_port)
BENCH_HEAP_OF(heap_of_handle, new_handle)
BENCH_HEAP_OF(heap_of_section, new_section)

static void use(void)
{
    bench_keep(KeGetCurrentThread());
}

static void wait_by_handle(void)
{
    NtWaitForSingleObject(gate_handle, FALSE, NULL);
}

static void open_handle(void)
{
    NtSetEvent(gate_handle, NULL);
}

static void wait_for_many(void)
{
    PVOID objects[MANY];
    KWAIT_BLOCK blocks[MANY];

    for (unsigned i = 0; i < MANY; i++)
        objects[i] = &events[i];
    KeWaitForMultipleObjects(MANY, objects, WaitAny, Executive, KernelMode, FALSE, NULL, blocks);
}

static void open_last(void)
{
    KeSetEvent(&events[MANY - 1], 0, FALSE);
}

static void wait_for_lock(void)
{
    RtlAcquireSRWLockExclusive(&gate_lock);
    RtlReleaseSRWLockExclusive(&gate_lock);
}

static void release_lock(void)
{
    RtlReleaseSRWLockExclusive(&gate_lock);
}

static void wait_on_address(void)
{
    ULONG none = 0;

    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        RtlWaitOnAddress(&word, &none, sizeof(none), NULL);
}

static void wake_address(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    RtlWakeAddressAll(&word);
}

static double heap_of_handle_waiter(const bench_row *row)
{
    (void)row;
    NtResetEvent(gate_handle, NULL);
    return bench_heap(use, wait_by_handle, open_handle).of_waiter;
}

static double heap_of_many_waiter(const bench_row *row)
{
    (void)row;
    for (unsigned i = 0; i < MANY; i++)
        KeInitializeEvent(&events[i], NotificationEvent, FALSE);
    return bench_heap(use, wait_for_many, open_last).of_waiter;
}

static double heap_of_lock_waiter(const bench_row *row)
{
    (void)row;
    RtlAcquireSRWLockExclusive(&gate_lock);
    return bench_heap(use, wait_for_lock, release_lock).of_waiter;
}

static double heap_of_address_waiter(const bench_row *row)
{
    (void)row;
    word = 0;
    return bench_heap(use, wait_on_address, wake_address).of_waiter;
}

BENCH_CONTENDERS(interlock_memory, "")
{
    NtCreateEvent(&gate_handle, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
    original = new_event();
    bench_add_value("bytes-object", BENCH_INTERLOCK, "event and its handle", 0, heap_of_event);
    bench_add_value("bytes-object", BENCH_INTERLOCK, "semaphore and its handle", 0, heap_of_semaphore);
    bench_add_value("bytes-object", BENCH_INTERLOCK, "mutex and its handle", 0, heap_of_mutant);
    bench_add_value("bytes-object", BENCH_INTERLOCK, "timer and its handle", 0, heap_of_timer);
    bench_add_value("bytes-object", BENCH_INTERLOCK, "completion port and its handle", 0, heap_of_port);
    bench_add_value("bytes-object", BENCH_INTERLOCK, "critical section, allocated", 0, heap_of_section);
    bench_add_value("bytes-handle", BENCH_INTERLOCK, "NtDuplicateObject", 0, heap_of_handle);
    bench_add_value("bytes-waiter", BENCH_INTERLOCK, "NtWaitForSingleObject", 0, heap_of_handle_waiter);
    bench_add_value("bytes-waiter", BENCH_INTERLOCK, "any of 64 objects", 0, heap_of_many_waiter);
    bench_add_value("bytes-waiter", BENCH_INTERLOCK, "SRW lock", 0, heap_of_lock_waiter);
    bench_add_value("bytes-waiter", BENCH_INTERLOCK, "RtlWaitOnAddress", 0, heap_of_address_waiter);
}
