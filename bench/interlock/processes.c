/* Named objects, also between two processes, each compared with the same object without a name. */
#include "../processes.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>
#include <interlock/win32.h>

#include <stdio.h>
#include <unistd.h>

#define MANY 64

static HANDLE pair_events[2][2], named_event, local_event, named_semaphore, local_semaphore, named_mutex, local_mutex;
static HANDLE named_any[MANY], named_all[MANY], local_any[MANY], local_all[MANY];

static char *name_of(const char *what, unsigned number)
{
    static char name[80];

    snprintf(name, sizeof(name), "interlock-bench-%ld-%s-%u", (long)getpid(), what, number);
    return name;
}

static void make_pair(unsigned place)
{
    for (unsigned side = 0; side < 2; side++)
        pair_events[place][side] = CreateEventA(NULL, FALSE, FALSE, name_of("pair", 2 * place + side));
}

static void pair_signal(unsigned place, unsigned side)
{
    NtSetEvent(pair_events[place][side], NULL);
}

static void pair_await(unsigned place, unsigned side)
{
    NtWaitForSingleObject(pair_events[place][side], FALSE, NULL);
}

static void wait_any(unsigned count, HANDLE *handles)
{
    NtSetEvent(handles[count - 1], NULL);
    NtWaitForMultipleObjects(count, handles, WaitAny, FALSE, NULL);
}

BENCH_PAIR(run_pair, .prepare = make_pair, .signal = pair_signal, .await = pair_await)
BENCH_LOOP(run_named_event, NtSetEvent(named_event, NULL); NtWaitForSingleObject(named_event, FALSE, NULL))
BENCH_LOOP(run_local_event, NtSetEvent(local_event, NULL); NtWaitForSingleObject(local_event, FALSE, NULL))
BENCH_LOOP(run_named_semaphore, NtReleaseSemaphore(named_semaphore, 1, NULL);
           NtWaitForSingleObject(named_semaphore, FALSE, NULL))
BENCH_LOOP(run_local_semaphore, NtReleaseSemaphore(local_semaphore, 1, NULL);
           NtWaitForSingleObject(local_semaphore, FALSE, NULL))
BENCH_LOOP(run_named_mutex, NtWaitForSingleObject(named_mutex, FALSE, NULL); NtReleaseMutant(named_mutex, NULL))
BENCH_LOOP(run_local_mutex, NtWaitForSingleObject(local_mutex, FALSE, NULL); NtReleaseMutant(local_mutex, NULL))
BENCH_LOOP(run_named_any, wait_any(row->number, named_any))
BENCH_LOOP(run_local_any, wait_any(row->number, local_any))
BENCH_LOOP(run_named_all, NtWaitForMultipleObjects(row->number, named_all, WaitAll, FALSE, NULL))
BENCH_LOOP(run_local_all, NtWaitForMultipleObjects(row->number, local_all, WaitAll, FALSE, NULL))

static void make_objects(void)
{
    named_event = CreateEventA(NULL, FALSE, FALSE, name_of("event", 0));
    local_event = CreateEventA(NULL, FALSE, FALSE, NULL);
    named_semaphore = CreateSemaphoreA(NULL, 0, 10, name_of("semaphore", 0));
    local_semaphore = CreateSemaphoreA(NULL, 0, 10, NULL);
    named_mutex = CreateMutexA(NULL, FALSE, name_of("mutex", 0));
    local_mutex = CreateMutexA(NULL, FALSE, NULL);
    for (unsigned i = 0; i < MANY; i++) {
        named_any[i] = CreateEventA(NULL, FALSE, FALSE, name_of("any", i));
        named_all[i] = CreateEventA(NULL, TRUE, TRUE, name_of("all", i));
        local_any[i] = CreateEventA(NULL, FALSE, FALSE, NULL);
        local_all[i] = CreateEventA(NULL, TRUE, TRUE, NULL);
    }
}

BENCH_CONTENDERS(named, NULL)
{
    make_objects();
    bench_add_loop("process-event", BENCH_INTERLOCK, "named event", 0, run_pair);
    bench_add_loop("named-event", BENCH_INTERLOCK, "named", 0, run_named_event);
    bench_add_loop("named-event", BENCH_INTERLOCK, "without a name", 0, run_local_event);
    bench_no_target();
    bench_add_loop("named-semaphore", BENCH_INTERLOCK, "named", 0, run_named_semaphore);
    bench_add_loop("named-semaphore", BENCH_INTERLOCK, "without a name", 0, run_local_semaphore);
    bench_no_target();
    bench_add_loop("named-mutex", BENCH_INTERLOCK, "named", 0, run_named_mutex);
    bench_add_loop("named-mutex", BENCH_INTERLOCK, "without a name", 0, run_local_mutex);
    bench_no_target();
    bench_add_loop("named-any", BENCH_INTERLOCK, "named", 0, run_named_any);
    bench_add_loop("named-any", BENCH_INTERLOCK, "without a name", 0, run_local_any);
    bench_no_target();
    bench_add_loop("named-all", BENCH_INTERLOCK, "named", 0, run_named_all);
    bench_add_loop("named-all", BENCH_INTERLOCK, "without a name", 0, run_local_all);
    bench_no_target();
}
