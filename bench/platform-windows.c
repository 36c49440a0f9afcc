/* For the agent that runs under Wine. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

struct bench_thread {
    HANDLE handle;
    void (*function)(void *);
    void *argument;
};

static ULONG_PTR all_processors;
static LARGE_INTEGER frequency;

void bench_platform_begin(void)
{
    DWORD_PTR system;

    GetProcessAffinityMask(GetCurrentProcess(), &all_processors, &system);
    QueryPerformanceFrequency(&frequency);
}

void bench_fail(const char *what)
{
    fprintf(stderr, "%s: %lu\n", what, GetLastError());
    exit(2);
}

uint64_t bench_now(void)
{
    LARGE_INTEGER now;

    QueryPerformanceCounter(&now);
    return (uint64_t)((double)now.QuadPart * 1e9 / (double)frequency.QuadPart);
}

static DWORD WINAPI run_thread(void *argument)
{
    bench_thread *self = argument;

    self->function(self->argument);
    return 0;
}

bench_thread *bench_thread_start(void (*function)(void *), void *argument)
{
    bench_thread *thread = malloc(sizeof(*thread));

    if (thread == NULL)
        bench_fail("malloc");
    thread->function = function;
    thread->argument = argument;
    thread->handle = CreateThread(NULL, 0, run_thread, thread, 0, NULL);
    if (thread->handle == NULL)
        bench_fail("CreateThread");
    return thread;
}

void bench_thread_join(bench_thread *thread)
{
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
    free(thread);
}

int bench_processors(void)
{
    return __builtin_popcountll(all_processors);
}

void bench_bind(int index)
{
    ULONG_PTR left = all_processors;

    while (index-- > 0)
        left &= left - 1;
    SetThreadAffinityMask(GetCurrentThread(), left & ~(left - 1));
}

void bench_unbind(void)
{
    SetThreadAffinityMask(GetCurrentThread(), all_processors);
}

void bench_yield(void)
{
    SwitchToThread();
}

void bench_sleep(unsigned milliseconds)
{
    Sleep(milliseconds);
}
