/*
 * shapes.c: explores the programs of shapes.h, from number LAB_SEED on, for axioms.py. Every outcome that was not seen
 * before goes to the file LAB_OUTCOMES.
 */
#include <interlock/lab.h>

#include "shapes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUTCOMES 4096

static unsigned number;
static program current;
static unsigned variable[SHAPE_VARIABLES][16] __attribute__((aligned(64)));
static unsigned found[SHAPE_THREADS][SHAPE_LENGTH];
static char (*outcomes)[128];
static int file = -1;

static unsigned make(const shape_access *a)
{
    unsigned *v = &variable[a->variable][0];
    unsigned expected = 0;

    switch (a->kind) {
    case 'W':
        __atomic_store_n(v, a->value, a->order);
        return 0;
    case 'R':
        return __atomic_load_n(v, a->order);
    case 'U':
        return __atomic_fetch_add(v, 10, a->order);
    case 'X':
        return __atomic_exchange_n(v, a->value, a->order);
    case 'C':
        __atomic_compare_exchange_n(v, &expected, a->value, 0, a->order, a->failure);
        return expected;
    default:
        __atomic_thread_fence(a->order);
        return 0;
    }
}

/* The accesses of two rounds do not form a loop: each round is called from a place of its own. */
static void run(unsigned thread)
{
    found[thread][0] = current.at[thread][0].kind != 0 ? make(&current.at[thread][0]) : 0;
    found[thread][1] = current.at[thread][1].kind != 0 ? make(&current.at[thread][1]) : 0;
    found[thread][2] = current.at[thread][2].kind != 0 ? make(&current.at[thread][2]) : 0;
    found[thread][3] = current.at[thread][3].kind != 0 ? make(&current.at[thread][3]) : 0;
}

static void first(void)
{
    run(0);
}

static void second(void)
{
    run(1);
}

static void third(void)
{
    run(2);
}

static void fourth(void)
{
    run(3);
}

static void setup(unsigned offset)
{
    const char *path = getenv("LAB_OUTCOMES"), *from = getenv("LAB_SEED");

    number = offset + (unsigned)(from != NULL ? atoi(from) : 0);
    shape_program(number, &current);
    outcomes = mmap(NULL, OUTCOMES * sizeof(*outcomes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (path != NULL)
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void finish(void)
{
    unsigned last[SHAPE_VARIABLES];
    char text[128], line[160];
    unsigned i = 0;

    for (unsigned v = 0; v < SHAPE_VARIABLES; v++)
        last[v] = variable[v][0];
    shape_write_outcome(&current, found, last, text);
    while (i < OUTCOMES && outcomes[i][0] != '\0' && strcmp(outcomes[i], text) != 0)
        i++;
    if (i == OUTCOMES || outcomes[i][0] != '\0')
        return;
    strcpy(outcomes[i], text);
    int length = snprintf(line, sizeof(line), "%u %s\n", number, text);
    if (file >= 0 && write(file, line, (size_t)length) != length)
        abort();
}

#define SHAPE(n)                                                                                                       \
    static void setup_##n(void)                                                                                        \
    {                                                                                                                  \
        setup(0x##n);                                                                                                  \
    }                                                                                                                  \
    LAB_SCENARIO(shape_##n, .Setup = setup_##n, .Threads = {first, second, third, fourth}, .Finish = finish,           \
                 .Model = "c11");

#define ROW(row)                                                                                                       \
    SHAPE(row##0)                                                                                                      \
    SHAPE(row##1)                                                                                                      \
    SHAPE(row##2)                                                                                                      \
    SHAPE(row##3)                                                                                                      \
    SHAPE(row##4)                                                                                                      \
    SHAPE(row##5)                                                                                                      \
    SHAPE(row##6)                                                                                                      \
    SHAPE(row##7)                                                                                                      \
    SHAPE(row##8)                                                                                                      \
    SHAPE(row##9)                                                                                                      \
    SHAPE(row##a)                                                                                                      \
    SHAPE(row##b)                                                                                                      \
    SHAPE(row##c)                                                                                                      \
    SHAPE(row##d)                                                                                                      \
    SHAPE(row##e)                                                                                                      \
    SHAPE(row##f)

ROW(0)
ROW(1)
ROW(2)
ROW(3)
ROW(4)
ROW(5)
ROW(6)
ROW(7)
ROW(8)
ROW(9)
ROW(a)
ROW(b)
ROW(c)
ROW(d)
ROW(e)
ROW(f)
