/*
 * heap.h: a heap that refuses allocations of chosen threads and counts them. Under a sanitizer it only counts. With
 * HEAP_COUNTS_BLOCKS defined it also counts the blocks that all threads have allocated.
 */
#ifndef INTERLOCK_TESTS_HEAP_H
#define INTERLOCK_TESTS_HEAP_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HEAP_IS_WATCHED_ONLY 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HEAP_IS_WATCHED_ONLY 1
#endif
#endif

/* Allocations that the thread is still granted; negative: any number. */
static __thread volatile int allocations_left __attribute__((tls_model("initial-exec"))) = -1;
static volatile unsigned allocations_refused;
static __thread volatile unsigned allocations_asked __attribute__((tls_model("initial-exec")));
static volatile int refuse_one_only; /* after that the thread is granted any number again */

static inline int refuse_allocation(void)
{
    allocations_asked += 1;
    if (allocations_left > 0) {
        allocations_left -= 1;
    } else if (allocations_left == 0) {
        __atomic_add_fetch(&allocations_refused, 1, __ATOMIC_RELAXED);
        allocations_left = refuse_one_only ? -1 : 0;
        errno = ENOMEM;
        return 1;
    }
    return 0;
}

#ifdef HEAP_IS_WATCHED_ONLY

void __sanitizer_malloc_hook(const volatile void *memory, size_t size);
void __sanitizer_malloc_hook(const volatile void *memory, size_t size)
{
    (void)memory;
    (void)size;
    refuse_allocation();
}

#else

#ifdef __GLIBC__ /* whose dlsym may allocate */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

#else

#include <dlfcn.h>

/* The heap's functions may call each other by their public names: nested calls are not counted. */
static __thread int inside_the_host __attribute__((tls_model("initial-exec")));

#define HEAP_OF_THE_HOST(function, ...)                                                                  \
    __extension__({                                                                                      \
        inside_the_host += 1;                                                                            \
        void *memory_of_the_host = ((__typeof__(&function))dlsym(RTLD_NEXT, #function))(__VA_ARGS__);    \
        inside_the_host -= 1;                                                                            \
        memory_of_the_host;                                                                              \
    })
#define __libc_malloc(size) HEAP_OF_THE_HOST(malloc, size)
#define __libc_calloc(count, size) HEAP_OF_THE_HOST(calloc, count, size)
#define __libc_realloc(memory, size) HEAP_OF_THE_HOST(realloc, memory, size)
#define __libc_memalign(alignment, size) HEAP_OF_THE_HOST(aligned_alloc, alignment, size)
#define refuse_allocation() (inside_the_host == 0 && refuse_allocation())

#endif

#ifdef HEAP_COUNTS_BLOCKS

static volatile long blocks_allocated;

static inline void *count_block(void *memory)
{
    __atomic_fetch_add(&blocks_allocated, memory != NULL, __ATOMIC_RELAXED);
    return memory;
}

extern void __libc_free(void *memory);

void free(void *memory)
{
    __atomic_fetch_sub(&blocks_allocated, memory != NULL, __ATOMIC_RELAXED);
    __libc_free(memory);
}

#else

static inline void *count_block(void *memory)
{
    return memory;
}

#endif

void *malloc(size_t size)
{
    return refuse_allocation() ? NULL : count_block(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return refuse_allocation() ? NULL : count_block(__libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
    if (refuse_allocation()) {
        return NULL;
    }
    return memory == NULL ? count_block(__libc_realloc(memory, size)) : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return refuse_allocation() ? NULL : count_block(__libc_memalign(alignment, size));
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (refuse_allocation()) {
        return ENOMEM;
    }
    *memory = count_block(__libc_memalign(alignment, size));
    return *memory != NULL ? 0 : ENOMEM;
}

#endif

#endif
