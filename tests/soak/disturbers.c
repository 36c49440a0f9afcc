/* disturbers.c: threads that only disturb the workers. */
#include "soak.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INTERRUPTING_SIGNAL SIGUSR2

volatile LONG soak_over;

static volatile LONG suspensions, user_apcs_queued, user_apcs_ran, kernel_apcs_queued, kernel_apcs_ran,
    kernel_apcs_lost, alerts, changes, signals_sent;
static volatile LONG signals_taken;

/* Without any lock, since the suspended worker may own it. */
static void host_pause(test_random *random)
{
    struct timespec pause = {.tv_nsec = (long)random_below(random, 1000000)};

    nanosleep(&pause, NULL);
}

static void suspend_worker(HANDLE thread, HANDLE id, long host_id, test_random *random)
{
    DWORD count = SuspendThread(thread);

    (void)id;
    (void)host_id;
    if (count == (DWORD)-1)
        return; /* it has ended, or is about to */
    if (one_in(random, 4))
        host_pause(random);
    require(ResumeThread(thread) != (DWORD)-1);
    add(&suspensions, 1);
}

static VOID note_user_apc(ULONG_PTR argument)
{
    (void)argument;
    add(&user_apcs_ran, 1);
}

/* The routines of a kernel APC run anywhere, even inside the heap: so they do not free. */
typedef struct sent_apc {
    SLIST_ENTRY entry;
    KAPC apc;
} sent_apc;

static SLIST_HEADER used_apcs;

static void free_used_apcs(void)
{
    PSLIST_ENTRY entry = InterlockedFlushSList(&used_apcs);

    while (entry != NULL) {
        PSLIST_ENTRY next = entry->Next;

        free(CONTAINING_RECORD(entry, sent_apc, entry));
        entry = next;
    }
}

static VOID kernel_apc_runs(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *one, PVOID *two)
{
    (void)routine;
    (void)context;
    (void)one;
    (void)two;
    InterlockedPushEntrySList(&used_apcs, &CONTAINING_RECORD(apc, sent_apc, apc)->entry);
    add(&kernel_apcs_ran, 1);
}

static VOID kernel_apc_is_lost(PKAPC apc)
{
    InterlockedPushEntrySList(&used_apcs, &CONTAINING_RECORD(apc, sent_apc, apc)->entry);
    add(&kernel_apcs_lost, 1);
}

static VOID normal_routine(PVOID context, PVOID one, PVOID two)
{
    (void)context;
    (void)one;
    (void)two;
    require(KeGetCurrentIrql() == PASSIVE_LEVEL);
}

static void send_kernel_apc(HANDLE handle, test_random *random)
{
    sent_apc *sent = malloc(sizeof(*sent));
    PVOID thread;

    free_used_apcs();
    require(sent != NULL);
    require(ObReferenceObjectByHandle(handle, 0, *PsThreadType, KernelMode, &thread, NULL) == STATUS_SUCCESS);
    KeInitializeApc(&sent->apc, thread, OriginalApcEnvironment, kernel_apc_runs, kernel_apc_is_lost,
                    one_in(random, 2) ? normal_routine : NULL, KernelMode, NULL);
    if (KeInsertQueueApc(&sent->apc, NULL, NULL, 0))
        add(&kernel_apcs_queued, 1);
    else
        free(sent);
    ObDereferenceObject(thread);
}

static void send_apc(HANDLE thread, HANDLE id, long host_id, test_random *random)
{
    (void)id;
    (void)host_id;
    switch (random_below(random, 4)) {
    case 0:
        send_kernel_apc(thread, random);
        break;
    case 1:
        if (NtAlertThread(thread) == STATUS_SUCCESS)
            add(&alerts, 1);
        break;
    case 2:
        if (NtAlertThreadByThreadId(id) == STATUS_SUCCESS)
            add(&alerts, 1);
        break;
    default:
        if (QueueUserAPC(note_user_apc, thread, 0))
            add(&user_apcs_queued, 1);
        break;
    }
}

static void change_scheduling(HANDLE thread, HANDLE id, long host_id, test_random *random)
{
    static const int priorities[] = {THREAD_PRIORITY_LOWEST, THREAD_PRIORITY_BELOW_NORMAL, THREAD_PRIORITY_NORMAL,
                                     THREAD_PRIORITY_ABOVE_NORMAL, THREAD_PRIORITY_HIGHEST};
    DWORD_PTR processors = (DWORD_PTR)KeQueryActiveProcessors();

    (void)id;
    (void)host_id;
    if (one_in(random, 2)) {
        SetThreadPriority(thread, priorities[random_below(random, ARRAYSIZE(priorities))]);
    } else {
        DWORD_PTR some = processors & random_next(random);

        SetThreadAffinityMask(thread, some != 0 && !one_in(random, 2) ? some : processors);
    }
    add(&changes, 1);
}

static void take_signal(int number)
{
    (void)number;
    __atomic_add_fetch(&signals_taken, 1, __ATOMIC_RELAXED);
}

static void interrupt_worker(HANDLE thread, HANDLE id, long host_id, test_random *random)
{
    (void)thread;
    (void)id;
    (void)random;
    if (host_id != 0 && syscall(SYS_tgkill, getpid(), host_id, INTERRUPTING_SIGNAL) == 0)
        add(&signals_sent, 1);
}

typedef struct disturber {
    void (*act)(HANDLE thread, HANDLE id, long host_id, test_random *random);
    unsigned pause_microseconds; /* at most, between two acts */
    pthread_t thread;
} disturber;

static disturber disturbers[] = {
    {.act = suspend_worker, .pause_microseconds = 2000},   {.act = suspend_worker, .pause_microseconds = 5000},
    {.act = send_apc, .pause_microseconds = 2000},         {.act = change_scheduling, .pause_microseconds = 20000},
    {.act = interrupt_worker, .pause_microseconds = 1000},
};

static void *disturb(void *argument)
{
    disturber *self = argument;
    test_random random;

    random_seed(&random, soak.seed + 1000 + (uint64_t)(self - disturbers));
    while (!load(&soak_over)) {
        struct timespec pause = {.tv_nsec = 1000L * random_below(&random, self->pause_microseconds)};

        nanosleep(&pause, NULL);
        stand_still_begin();
        with_some_worker(&random, self->act);
        stand_still_end();
    }
    return NULL;
}

void disturbers_start(void)
{
    struct sigaction action = {.sa_handler = take_signal};

    require(sigaction(INTERRUPTING_SIGNAL, &action, NULL) == 0);
    for (unsigned i = 0; i < ARRAYSIZE(disturbers); i++)
        require(pthread_create(&disturbers[i].thread, NULL, disturb, &disturbers[i]) == 0);
}

void disturbers_join(void)
{
    for (unsigned i = 0; i < ARRAYSIZE(disturbers); i++)
        require(pthread_join(disturbers[i].thread, NULL) == 0);
}

void disturbers_check(void)
{
    free_used_apcs();
    require(kernel_apcs_ran + kernel_apcs_lost == kernel_apcs_queued);
    require(user_apcs_ran <= user_apcs_queued);
    require(signals_taken <= signals_sent);
}

void disturbers_report(void)
{
    printf("%d suspensions, %d user APCs (%d ran), %d kernel APCs (%d lost by an ending thread), %d alerts, "
           "%d changes of priority or affinity, %d signals\n",
           (int)suspensions, (int)user_apcs_queued, (int)user_apcs_ran, (int)kernel_apcs_queued, (int)kernel_apcs_lost,
           (int)alerts, (int)changes, (int)signals_sent);
}
