/* heap.c: a heap that refuses the allocations of chosen threads. The linker redirects the library's calls to here
   (--wrap).
 */
#include "soak.h"

#include <errno.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);

/* How many more allocations the thread gets; negative: any number. */
static __thread volatile int allocations_left = -1;
static volatile LONG refusals;

void heap_refuses(int left)
{
    allocations_left = left;
}

void heap_gives(void)
{
    allocations_left = -1;
}

unsigned long heap_refusals(void)
{
    return (unsigned long)load(&refusals);
}

static bool refused(void)
{
    if (allocations_left > 0) {
        allocations_left -= 1;
    } else if (allocations_left == 0) {
        add(&refusals, 1);
        errno = ENOMEM;
        return true;
    }
    return false;
}

void *__wrap_malloc(size_t size)
{
    return refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refused() ? NULL : __real_calloc(count, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    return refused() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}
