/*
 * A writer and a checkpoint take two locks in opposite order. The barrier makes sure of what otherwise happens once a
 * month: each has its first lock when it asks for the second. The program hangs; while it does:
 *
 *     interlock deadlocks PID
 */
#define _GNU_SOURCE /* pthread_setname_np */
#include <windows.h>
#include <pthread.h>

static CRITICAL_SECTION cache, journal;
static pthread_barrier_t both_have_one;

static void *checkpoint(void *unused)
{
    pthread_setname_np(pthread_self(), "checkpoint");
    EnterCriticalSection(&journal);
    pthread_barrier_wait(&both_have_one);
    EnterCriticalSection(&cache);
    return unused;
}

int main(void)
{
    pthread_t thread;

    pthread_setname_np(pthread_self(), "writer");
    InitializeCriticalSection(&cache);
    InitializeCriticalSection(&journal);
    pthread_barrier_init(&both_have_one, NULL, 2);
    EnterCriticalSection(&cache);
    pthread_create(&thread, NULL, checkpoint, NULL);
    pthread_barrier_wait(&both_have_one);
    EnterCriticalSection(&journal);
    return 0;
}
