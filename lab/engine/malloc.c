/*
 * malloc.c: the C library's heap, as the test sees it. The linker redirects the test's calls to here (--wrap). During
 * Setup and in a schedule the memory is the machine's: checked, restored between schedules, and it may run out. Memory
 * that the C library allocates for itself is freed by the C library.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLER  ((uintptr_t)__builtin_return_address(0))
#define GARBAGE 0xbe /* the fill of uninitialized memory */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_memalign(size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
void __wrap_free(void *memory);

static bool is_for_program(void)
{
    return lab == NULL || !lab->started || lab->running || lab->preparing;
}

static void *allocate(size_t size, size_t alignment, int garbage, uintptr_t pc)
{
    void *memory = lab_explore_memory_runs_out() ? NULL : lab_memory_allocate(size, alignment, pc);

    if (memory == NULL)
        errno = ENOMEM;
    else
        memset(memory, garbage, size);
    lab_cycle_sweep();
    return memory;
}

static void release(void *memory, uintptr_t pc)
{
    if (!lab_memory_free(memory, pc))
        lab_sched_fail(VERDICT_FREED_MEMORY, pc, "%p freed twice, or never allocated", memory);
}

void *__wrap_malloc(size_t size)
{
    return is_for_program() ? allocate(size, 0, GARBAGE, CALLER) : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    size_t bytes;

    if (!is_for_program() || __builtin_mul_overflow(count, size, &bytes))
        return __real_calloc(count, size);
    return allocate(bytes, 0, 0, CALLER);
}

static void *reallocate(void *memory, size_t size, uintptr_t pc)
{
    if (memory != NULL && !lab_memory_is_heap(memory))
        return __real_realloc(memory, size);
    if (memory == NULL && !is_for_program())
        return __real_malloc(size);
    void *other = allocate(size, 0, GARBAGE, pc);
    if (other == NULL || memory == NULL)
        return other;
    size_t kept = lab_memory_size(memory) < size ? lab_memory_size(memory) : size;
    if (lab_sched_active())
        lab_race_access((uintptr_t)memory, kept, false, false, pc);
    memcpy(other, memory, kept);
    release(memory, pc);
    return other;
}

void *__wrap_realloc(void *memory, size_t size)
{
    return reallocate(memory, size, CALLER);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return reallocate(memory, bytes, CALLER);
}

static void *aligned(size_t alignment, size_t size, uintptr_t pc)
{
    return is_for_program() ? allocate(size, alignment, GARBAGE, pc) : __real_aligned_alloc(alignment, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return aligned(alignment, size, CALLER);
}

void *__wrap_memalign(size_t alignment, size_t size)
{
    return aligned(alignment, size, CALLER);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *found = aligned(alignment, size, CALLER);

    if (found == NULL)
        return ENOMEM;
    *memory = found;
    return 0;
}

static char *copy_text(const char *text, size_t length, uintptr_t pc)
{
    if (length != 0)
        lab_tsan_plain((uintptr_t)text, length, false, pc);
    char *copy = is_for_program() ? allocate(length + 1, 0, GARBAGE, pc) : __real_malloc(length + 1);

    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *__wrap_strndup(const char *text, size_t size)
{
    return copy_text(text, strnlen(text, size), CALLER);
}

char *__wrap_strdup(const char *text)
{
    return copy_text(text, strlen(text), CALLER);
}

void __wrap_free(void *memory)
{
    if (memory == NULL)
        return;
    if (lab_memory_is_heap(memory))
        release(memory, CALLER);
    else
        __real_free(memory);
    lab_cycle_sweep();
}
