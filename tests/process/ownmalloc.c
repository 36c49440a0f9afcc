/*
 * ownmalloc.c: a program that replaces malloc by one that uses locks of the library: the library calls it during
 * initialization and while it adopts threads.
 */
#include <windows.h>

#include <ntddk.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAP_SIZE (256ul << 20)
#define ALIGNMENT 64
#define THREADS 4
#define ROUNDS 2000

typedef struct block {
    size_t size;
    struct block *next;
} block;

static char heap[HEAP_SIZE] __attribute__((aligned(4096)));
static size_t used;
static block *freed[64];
static volatile long calls, depth;

static SRWLOCK srw = SRWLOCK_INIT;
static CRITICAL_SECTION section = {(PRTL_CRITICAL_SECTION_DEBUG)-1, -1, 0, NULL, NULL, 0};
static KEVENT event = {
    .Header = {
        .Type = EventSynchronizationObject,
        .Size = sizeof(KEVENT) / sizeof(LONG),
        .SignalState = 1,
        .WaitListHead = {&event.Header.WaitListHead, &event.Header.WaitListHead},
    },
};

static void lock(void)
{
    EnterCriticalSection(&section);
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    AcquireSRWLockExclusive(&srw);
    calls++;
    if (depth++ != 0) {
        abort();
    }
}

static void unlock(void)
{
    depth--;
    ReleaseSRWLockExclusive(&srw);
    KeSetEvent(&event, 0, FALSE);
    LeaveCriticalSection(&section);
}

static int class_of(size_t size)
{
    return 64 - __builtin_clzl(size | 1);
}

static void *take(size_t size, size_t alignment)
{
    block *found = NULL;
    int class = class_of(size);
    lock();
    if (alignment <= ALIGNMENT && freed[class] != NULL && freed[class]->size >= size) {
        found = freed[class];
        freed[class] = found->next;
    } else if (size < HEAP_SIZE && used + size + 2 * alignment + ALIGNMENT < HEAP_SIZE) {
        uintptr_t place = ((uintptr_t)heap + used + sizeof(block) + alignment - 1) & -(uintptr_t)alignment;
        found = (block *)place - 1;
        found->size = size;
        used = (place + size - (uintptr_t)heap + ALIGNMENT - 1) & -(size_t)ALIGNMENT;
    }
    unlock();
    if (found == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    return found + 1;
}

void *malloc(size_t size)
{
    return take(size, ALIGNMENT);
}

void free(void *memory)
{
    if (memory != NULL) {
        block *given = (block *)memory - 1;
        int class = class_of(given->size);
        lock();
        given->next = freed[class];
        freed[class] = given;
        unlock();
    }
}

void *calloc(size_t count, size_t size)
{
    void *memory = take(count * size, ALIGNMENT);
    return memory != NULL ? memset(memory, 0, count * size) : NULL;
}

void *realloc(void *memory, size_t size)
{
    void *larger = take(size, ALIGNMENT);
    if (memory != NULL && larger != NULL) {
        size_t before = ((block *)memory - 1)->size;
        memcpy(larger, memory, before < size ? before : size);
        free(memory);
    }
    return larger;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return take(size, alignment < ALIGNMENT ? ALIGNMENT : alignment);
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = aligned_alloc(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}

static void *allocate(void *context)
{
    for (int round = 0; round < ROUNDS; round++) {
        void *memory = malloc((size_t)round % 500 + 1);
        HANDLE handle = CreateEventA(NULL, FALSE, FALSE, NULL);
        memset(memory, 0x55, (size_t)round % 500 + 1);
        CloseHandle(handle);
        free(memory);
    }
    return context;
}

static VOID CALLBACK signal(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    (void)instance;
    SetEvent(context);
}

int main(void)
{
    pthread_t threads[THREADS];
    HANDLE done = CreateEventA(NULL, TRUE, FALSE, NULL);
    long before = calls;
    alarm(300);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, allocate, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    if (!TrySubmitThreadpoolCallback(signal, done, NULL) || WaitForSingleObject(done, INFINITE) != WAIT_OBJECT_0) {
        return 1;
    }
    printf("malloc was called %ld times before main\n", before);
    return before == 0 || calls < 2 * THREADS * ROUNDS;
}
