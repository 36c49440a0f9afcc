/* System calls that the C library makes itself. PART chooses; 1 to 5 end the run, with 6 and 7 nothing is wrong. */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int descriptors[2];
static char text[100000];
static size_t total;
static struct stat status;

static void *work(void *unused)
{
#if PART == 1
    FILE *file = popen("true", "r");
    assert(file == NULL);
#elif PART == 2
    assert(system("true") != 0);
#elif PART == 3
    eventfd_t value;
    eventfd_read(descriptors[0], &value);
#elif PART == 4
    assert(write(descriptors[1], "", 1) == 1);
#elif PART == 5
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(34L /* pause */) : "rcx", "r11", "memory");
#elif PART == 6 /* each schedule opens a file and leaves it open */
    FILE *file = fopen("/proc/self/exe", "r");
    assert(file != NULL);
    pthread_mutex_lock(&lock);
    total += fread(text, 1, sizeof(text), file);
    pthread_mutex_unlock(&lock);
#elif PART == 7
    pthread_mutex_lock(&lock);
    total++;
    pthread_mutex_unlock(&lock);
#endif
    return unused;
}

#if PART == 7
static void handle(int number)
{
    total += number != SIGUSR1;
}
#endif

int main(void)
{
    pthread_t thread;

#if PART == 3
    descriptors[0] = eventfd(0, 0);
#elif PART == 4
    assert(pipe(descriptors) == 0); /* into memory that was not written yet */
#elif PART == 7
    sigset_t all;
    sigfillset(&all);
    signal(SIGUSR1, handle);
    assert(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    raise(SIGUSR1);
    assert(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
#endif
    assert(stat("/proc/self/exe", &status) == 0 && status.st_size != 0);
    pthread_create(&thread, NULL, work, NULL);
    work(NULL);
    pthread_join(thread, NULL);
#if PART == 6
    assert(total == 2 * sizeof(text));
#elif PART == 7
    assert(total == 2);
#endif
    return 0;
}
