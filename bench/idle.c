#include "idle.h"

#include "bench.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 512
#define POLL         20 /* milliseconds */

typedef struct task {
    int id;
    uint64_t switches;
} task;

typedef struct waiter {
    unsigned number;
    int id;
    bench_thread *thread;
} waiter;

static waiter waiters[IDLE_WAITERS];
static task ignored[MOST_THREADS];
static unsigned ignored_count;
static unsigned arrived;
static void (*waits)(unsigned number);
static __thread waiter *own;

void idle_arrive(void)
{
    own->id = (int)gettid();
    __atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
}

static void run_waiter(void *argument)
{
    own = argument;
    waits(own->number);
}

void idle_start(void (*wait)(unsigned number))
{
    waits = wait;
    arrived = 0;
    for (unsigned i = 0; i < IDLE_WAITERS; i++) {
        waiters[i].number = i;
        waiters[i].thread = bench_thread_start(run_waiter, &waiters[i]);
    }
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < IDLE_WAITERS)
        bench_sleep(1);
}

void idle_end(void)
{
    for (unsigned i = 0; i < IDLE_WAITERS; i++)
        bench_thread_join(waiters[i].thread);
}

static int is_waiter(int id)
{
    for (unsigned i = 0; i < IDLE_WAITERS; i++)
        if (waiters[i].id == id)
            return 1;
    return 0;
}

/* Returns whether it sleeps; an ended thread counts as asleep. */
static int read_task(int id, uint64_t *switches)
{
    char path[64], line[128], state = 'S';
    unsigned long long found = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", id);
    FILE *status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "voluntary_ctxt_switches: %llu", &found);
    }
    if (status != NULL)
        fclose(status);
    *switches = found;
    return state == 'S' || state == 'D';
}

static int is_ignored(int id)
{
    for (unsigned i = 0; i < ignored_count; i++)
        if (ignored[i].id == id)
            return 1;
    return 0;
}

/* Reads all counted threads except the caller. */
static unsigned read_tasks(task *tasks, int *all_asleep)
{
    DIR *directory = opendir("/proc/self/task");
    unsigned count = 0;

    if (directory == NULL)
        bench_fail("/proc/self/task");
    *all_asleep = 1;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL && count < MOST_THREADS;) {
        int id = atoi(entry->d_name);

        if (id == 0 || id == (int)gettid() || is_ignored(id))
            continue;
        tasks[count].id = id;
        *all_asleep &= read_task(id, &tasks[count].switches);
        count++;
    }
    closedir(directory);
    return count;
}

void idle_ignore_present(void)
{
    int asleep;

    ignored_count = read_tasks(ignored, &asleep);
}

/* All sleep, and none has been awake since the last check. */
static unsigned settle(task *tasks)
{
    uint64_t last = UINT64_MAX;

    for (;;) {
        int asleep;
        uint64_t sum = 0;
        unsigned count = read_tasks(tasks, &asleep);

        for (unsigned i = 0; i < count; i++)
            sum += is_waiter(tasks[i].id) ? tasks[i].switches : 0;
        if (asleep && sum == last)
            return count;
        last = sum;
        bench_sleep(POLL);
    }
}

static uint64_t switches_before(const task *tasks, unsigned count, int id)
{
    for (unsigned i = 0; i < count; i++)
        if (tasks[i].id == id)
            return tasks[i].switches;
    return 0;
}

idle_counts idle_watch(unsigned (*expirations)(void))
{
    static task before[MOST_THREADS], after[MOST_THREADS];
    idle_counts counts = {.waiters = IDLE_WAITERS};
    int asleep;
    unsigned count = settle(before);

    counts.expirations = expirations();
    bench_sleep(IDLE_MILLISECONDS);
    counts.expirations = expirations() - counts.expirations;
    for (unsigned i = 0, now = read_tasks(after, &asleep); i < now; i++) {
        uint64_t woken = after[i].switches - switches_before(before, count, after[i].id);

        if (is_waiter(after[i].id))
            counts.of_waiters += woken;
        else
            counts.of_others += woken;
    }
    return counts;
}
