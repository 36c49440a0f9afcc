#include "counter.h"

#include <windows.h>
#include <process.h>

#define MOST_THREADS 64

const char counter_title[] = "counter";

struct job {
    CRITICAL_SECTION lock;
    unsigned __int32 rounds;
    counter_value value;
};

static unsigned __stdcall work(void *context)
{
    struct job *job = (struct job *)context;

    for (unsigned __int32 i = 0; i < job->rounds; i++) {
        EnterCriticalSection(&job->lock);
        job->value++;
        LeaveCriticalSection(&job->lock);
    }
    return 0;
}

counter_value __stdcall counter_add(unsigned __int32 threads, unsigned __int32 rounds)
{
    struct job job = {.rounds = rounds};
    HANDLE thread[MOST_THREADS];

    InitializeCriticalSection(&job.lock);
    for (unsigned __int32 i = 0; i < threads; i++)
        thread[i] = (HANDLE)_beginthreadex(NULL, 0, work, &job, 0, NULL);
    WaitForMultipleObjects(threads, thread, TRUE, INFINITE);
    for (unsigned __int32 i = 0; i < threads; i++)
        CloseHandle(thread[i]);
    DeleteCriticalSection(&job.lock);
    return job.value;
}
