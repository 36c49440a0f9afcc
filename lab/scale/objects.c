/*
 * objects.c: queues, completion ports, the pool and timers, which are not locks but are used by all processors at once.
 * Instrumented like locks.c. Per-processor data is on separate lines.
 */
#include "locks.h"

#include <ntifs.h>

#include <interlock/rtl.h>

#define ON_LINES        __attribute__((aligned(64)))
#define MOST_PROCESSORS 2560

/* What a processor inserts, and what it has removed, which it inserts next. */
static struct {
    LIST_ENTRY entry ON_LINES;
} entries[MOST_PROCESSORS];

static struct {
    SLIST_ENTRY entry ON_LINES;
} list_entries[MOST_PROCESSORS];

static struct {
    void *entry ON_LINES;
} held[MOST_PROCESSORS];

static struct {
    KTIMER timer ON_LINES;
} timers[MOST_PROCESSORS];

static struct {
    PTP_WORK work ON_LINES;
} works[MOST_PROCESSORS];

static struct {
    KQUEUE queue ON_LINES;
} queue;

static struct {
    SLIST_HEADER head ON_LINES;
} list;

static struct {
    HANDLE port ON_LINES;
} handles;

void setup_queue(void)
{
    KeInitializeQueue(&queue.queue, 0);
    count_lock(&queue, sizeof(queue));
    for (uint32_t i = 0; i < MOST_PROCESSORS; i++)
        held[i].entry = &entries[i].entry;
}

void round_queue(void)
{
    uint32_t own = count_processor();

    count_begins();
    KeInsertQueue(&queue.queue, held[own].entry);
    held[own].entry = KeRemoveQueue(&queue.queue, KernelMode, NULL);
    count_acquired();
}

void setup_list(void)
{
    InitializeSListHead(&list.head);
    count_lock(&list, sizeof(list));
    for (uint32_t i = 0; i < MOST_PROCESSORS; i++)
        held[i].entry = &list_entries[i].entry;
}

void round_list(void)
{
    uint32_t own = count_processor();

    count_begins();
    InterlockedPushEntrySList(&list.head, held[own].entry);
    held[own].entry = InterlockedPopEntrySList(&list.head);
    count_acquired();
}

void setup_port(void)
{
    NtCreateIoCompletion(&handles.port, IO_COMPLETION_ALL_ACCESS, NULL, 0);
}

void round_port(void)
{
    PVOID key, context;
    IO_STATUS_BLOCK status;

    count_begins();
    NtSetIoCompletion(handles.port, NULL, NULL, STATUS_SUCCESS, 0);
    NtRemoveIoCompletion(handles.port, &key, &context, &status, NULL);
    count_acquired();
}

/* Each processor has a work object. The callback, on a worker, is what is counted. */
static VOID NTAPI serve(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    (void)instance;
    (void)work;
    count_begins();
    count_acquired();
    count_served((uint32_t)(ULONG_PTR)context);
}

void setup_pool(void)
{
    for (uint32_t i = 0; i < count_processors(); i++)
        TpAllocWork(&works[i].work, serve, (PVOID)(ULONG_PTR)i, NULL);
}

void round_pool(void)
{
    uint32_t own = count_processor();

    TpPostWork(works[own].work);
    count_posted();
}

void setup_timers(void)
{
    for (uint32_t i = 0; i < MOST_PROCESSORS; i++)
        KeInitializeTimer(&timers[i].timer);
    count_lock(timers, sizeof(timers));
}

/* An hour from now and a little more, so that they are not all due at the same time. */
void round_timers(void)
{
    uint32_t own = count_processor();
    LARGE_INTEGER due = {.QuadPart = -36000000000LL - (LONGLONG)own * 100000};

    count_begins();
    KeSetTimer(&timers[own].timer, due, NULL);
    KeCancelTimer(&timers[own].timer);
    count_acquired();
}
