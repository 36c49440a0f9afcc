/* c11.c: the threads of <threads.h>, by those of pthread.h. Their objects have the same sizes in the C library. */
#include "posix.h"

#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t), "the C library's");

static int result_of(int error)
{
    switch (error) {
    case 0:
        return thrd_success;
    case ENOMEM:
        return thrd_nomem;
    case EBUSY:
        return thrd_busy;
    case ETIMEDOUT:
        return thrd_timedout;
    default:
        return thrd_error;
    }
}

typedef struct start_of_thread {
    thrd_start_t routine;
    void *argument;
} start_of_thread;

static void *run(void *argument)
{
    start_of_thread start = *(start_of_thread *)argument;

    lab_memory_free(argument, 0);
    return (void *)(intptr_t)start.routine(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
    pthread_t made;

    if (lab == NULL)
        lab_posix_unsupported("thrd_create", CALLER);
    start_of_thread *start = lab_memory_allocate(sizeof(*start), 0, (uintptr_t)__builtin_return_address(0));
    *start = (start_of_thread){routine, argument};
    int error = pthread_create(&made, NULL, run, start);
    if (error == 0) {
        *thread = made;
        lab->run.threads[made - 1].entry = (uintptr_t)routine;
    }
    return error == EAGAIN ? thrd_nomem : result_of(error);
}

int thrd_join(thrd_t thread, int *result)
{
    void *value;
    int error = pthread_join(thread, &value);

    if (error == 0 && result != NULL)
        *result = (int)(intptr_t)value;
    return result_of(error);
}

int thrd_detach(thrd_t thread)
{
    return result_of(pthread_detach(thread));
}

void thrd_exit(int result)
{
    pthread_exit((void *)(intptr_t)result);
}

thrd_t thrd_current(void)
{
    return pthread_self();
}

int thrd_equal(thrd_t a, thrd_t b)
{
    return a == b;
}

int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;

    if ((type & ~(mtx_timed | mtx_recursive)) != 0)
        return thrd_error;
    pthread_mutexattr_init(&attributes);
    if (type & mtx_recursive)
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    return result_of(pthread_mutex_init((pthread_mutex_t *)mutex, &attributes));
}

int mtx_lock(mtx_t *mutex)
{
    return result_of(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_trylock(mtx_t *mutex)
{
    return result_of(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict time)
{
    return result_of(pthread_mutex_timedlock((pthread_mutex_t *)mutex, time));
}

int mtx_unlock(mtx_t *mutex)
{
    return result_of(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

void mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int cnd_init(cnd_t *condition)
{
    return result_of(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return result_of(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict time)
{
    return result_of(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, time));
}

int cnd_signal(cnd_t *condition)
{
    return result_of(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
    return result_of(pthread_cond_broadcast((pthread_cond_t *)condition));
}

void cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy((pthread_cond_t *)condition);
}

int tss_create(tss_t *key, tss_dtor_t destructor)
{
    return result_of(pthread_key_create(key, destructor));
}

void *tss_get(tss_t key)
{
    return pthread_getspecific(key);
}

int tss_set(tss_t key, void *value)
{
    return result_of(pthread_setspecific(key, value));
}

void tss_delete(tss_t key)
{
    pthread_key_delete(key);
}

void call_once(once_flag *flag, void (*routine)(void))
{
    pthread_once((pthread_once_t *)flag, routine);
}
