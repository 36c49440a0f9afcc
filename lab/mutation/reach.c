/* reach.c: for the mutation check: selects a mutant (schemata.py), and marks in a file which functions and which outcomes of the
   changed conditions a test reaches. Not instrumented, so the explorer does not see it. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reach.h"

#define CASES 512
#define FUNCTIONS 4096
#define MARKS 65536 /* of a case: one for each function, then two for each mutant */

int mutation_chosen; /* const for the library, which starts after it is set */

static uint8_t none[MARKS];
static uint8_t *file_marks;
static uint8_t *marks = none;

/* Both before the library's own constructor: its initialization is changed too, and marks what it reaches. */
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
__attribute__((constructor(99))) static void choose_mutant(void)
{
    const char *number = getenv("MUTATION_CHOSEN");
    mutation_chosen = number != NULL ? atoi(number) : 0;
}

/* A test that executes itself passes on the number of its case. */
__attribute__((constructor(99))) static void map_marks(void)
{
    const char *path = getenv("MUTATION_REACH");
    const char *number = getenv("MUTATION_CASE");
    int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (file < 0)
        return;
    void *memory = mmap(NULL, (size_t)CASES * MARKS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return;
    file_marks = memory;
    mutation_case(number != NULL ? (unsigned)atoi(number) : 0);
}

/* Only the first visit writes: no cache line moves between the threads of a test. */
static void mark(unsigned index)
{
    if (marks[index] == 0)
        marks[index] = 1;
}

void mutation_case(unsigned number)
{
    if (file_marks != NULL && number < CASES)
        marks = file_marks + (size_t)number * MARKS;
}

void mutation_reached(unsigned function)
{
    mark(function);
}

int mutation_seen(unsigned mutant, int outcome)
{
    mark(FUNCTIONS + 2 * mutant + (outcome != 0));
    return outcome;
}
