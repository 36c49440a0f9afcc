/* reach.c: for the mutation check: counts in a file which of the changed functions a scenario reaches. Not
   instrumented, so the explorer does not see it. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUNCTIONS 4096

static uint32_t none[FUNCTIONS];
static uint32_t *reached = none;

__attribute__((constructor)) static void map_counters(void)
{
    const char *path = getenv("MUTATION_REACH");
    int file = path != NULL ? open(path, O_RDWR) : -1;

    if (file < 0)
        return;
    void *memory = mmap(NULL, sizeof(none), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED)
        reached = memory;
    close(file);
}

void mutation_reached(unsigned function);

void mutation_reached(unsigned function)
{
    reached[function] += 1;
}
