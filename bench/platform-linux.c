#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct bench_thread {
    pthread_t id;
    void (*function)(void *);
    void *argument;
};

static cpu_set_t all_processors;

void bench_platform_begin(void)
{
    sched_getaffinity(0, sizeof(all_processors), &all_processors);
}

void bench_fail(const char *what)
{
    perror(what);
    exit(2);
}

uint64_t bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *run_thread(void *argument)
{
    bench_thread *self = argument;

    self->function(self->argument);
    return NULL;
}

bench_thread *bench_thread_start(void (*function)(void *), void *argument)
{
    bench_thread *thread = malloc(sizeof(*thread));

    if (thread == NULL)
        bench_fail("malloc");
    thread->function = function;
    thread->argument = argument;
    if (pthread_create(&thread->id, NULL, run_thread, thread) != 0)
        bench_fail("pthread_create");
    return thread;
}

void bench_thread_join(bench_thread *thread)
{
    pthread_join(thread->id, NULL);
    free(thread);
}

int bench_processors(void)
{
    return CPU_COUNT(&all_processors);
}

void bench_bind(int index)
{
    cpu_set_t one;
    int number = 0;

    while (!CPU_ISSET(number, &all_processors) || index-- > 0)
        number++;
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

void bench_unbind(void)
{
    sched_setaffinity(0, sizeof(all_processors), &all_processors);
}

void bench_yield(void)
{
    sched_yield();
}

void bench_sleep(unsigned milliseconds)
{
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};

    nanosleep(&time, NULL);
}
