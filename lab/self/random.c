/*
 * random.c: random programs of three threads, for differential.py: whatever the reduced search finds must be what the
 * full search finds. Every outcome that was not seen before in this process goes to the file LAB_OUTCOMES.
 */
#include <interlock/lab.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define VARIABLES 3
#define THREADS   3
#define LENGTH    4
#define OUTCOMES  65536

static unsigned seed;
static unsigned variable[VARIABLES] __attribute__((aligned(64)));
static unsigned turn;
static unsigned result[THREADS][LENGTH];
static struct outcomes {
    unsigned count;
    uint64_t seen[OUTCOMES];
} * outcomes;
static int file = -1;

static unsigned draw(unsigned thread, unsigned position, unsigned salt, unsigned limit)
{
    uint64_t x = ((uint64_t)seed * 1000003 + thread * 1009 + position * 31 + salt) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 31;
    x *= 0xBF58476D1CE4E5B9ull;
    return (unsigned)((x ^ x >> 29) % limit);
}

static int order(unsigned choice)
{
    static const int orders[] = {__ATOMIC_RELAXED, __ATOMIC_ACQ_REL, __ATOMIC_SEQ_CST};
    return orders[choice];
}

static int load_order(unsigned choice)
{
    return choice == 1 ? __ATOMIC_ACQUIRE : order(choice);
}

static int store_order(unsigned choice)
{
    return choice == 1 ? __ATOMIC_RELEASE : order(choice);
}

static void step(unsigned thread, unsigned position)
{
    unsigned *v = &variable[draw(thread, position, 1, VARIABLES)];
    unsigned strength = draw(thread, position, 2, 3);
    unsigned value = thread * LENGTH + position + 1;
    unsigned *r = &result[thread][position];
    unsigned expected = 0;

    switch (draw(thread, position, 3, 12)) {
    case 0:
    case 1:
    case 2:
        *r = __atomic_load_n(v, load_order(strength));
        break;
    case 3:
    case 4:
        __atomic_store_n(v, value, store_order(strength));
        break;
    case 5:
        *r = __atomic_fetch_add(v, 100, order(strength));
        break;
    case 6:
        *r = (unsigned)__atomic_compare_exchange_n(v, &expected, value, 0, order(strength), load_order(strength));
        break;
    case 7:
        LabWaitOnWord(v, 0);
        *r = 1;
        break;
    case 8:
        __atomic_store_n(v, value, store_order(strength));
        LabWakeWord(v, 1);
        break;
    case 9: /* against the wake, and against the other timeouts */
        *r = 1 + (unsigned)LabWaitOnWordFor(v, 0, 10 + thread);
        break;
    default: /* a small critical section */
        while (__atomic_exchange_n(&turn, 1, __ATOMIC_ACQUIRE) != 0)
            ;
        *r = __atomic_load_n(v, __ATOMIC_RELAXED);
        __atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
        break;
    }
}

static void run(unsigned thread)
{
    for (unsigned i = 0; i < LENGTH; i++)
        step(thread, i);
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

static void setup(unsigned number)
{
    const char *path = getenv("LAB_OUTCOMES");

    seed = number + (unsigned)(getenv("LAB_SEED") != NULL ? atoi(getenv("LAB_SEED")) : 0);
    outcomes = mmap(NULL, sizeof(*outcomes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (path != NULL)
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void finish(void)
{
    uint64_t hash = 0;
    char line[64];

    for (unsigned i = 0; i < THREADS * LENGTH; i++)
        hash = (hash ^ (&result[0][0])[i]) * 0x9E3779B97F4A7C15ull + 1;
    for (unsigned i = 0; i < VARIABLES; i++)
        hash = (hash ^ variable[i]) * 0x9E3779B97F4A7C15ull + 1;
    unsigned slot = (unsigned)(hash >> 40) % OUTCOMES;
    while (outcomes->seen[slot] != 0 && outcomes->seen[slot] != hash)
        slot = (slot + 1) % OUTCOMES;
    if (outcomes->seen[slot] == hash)
        return;
    outcomes->seen[slot] = hash;
    outcomes->count += 1;
    int length = snprintf(line, sizeof(line), "%u %016lx\n", seed, hash);
    if (file >= 0 && write(file, line, (size_t)length) != length)
        abort();
}

#define PROGRAM(n)                                                                                                     \
    static void setup_##n(void)                                                                                        \
    {                                                                                                                  \
        setup(n);                                                                                                      \
    }                                                                                                                  \
    LAB_SCENARIO(random_##n, .Setup = setup_##n, .Threads = {first, second, third}, .Finish = finish,                  \
                 .Flags = LAB_MAY_BLOCK, .SpuriousWakes = 1)

PROGRAM(0);
PROGRAM(1);
PROGRAM(2);
PROGRAM(3);
PROGRAM(4);
PROGRAM(5);
PROGRAM(6);
PROGRAM(7);
PROGRAM(8);
PROGRAM(9);
PROGRAM(10);
PROGRAM(11);
