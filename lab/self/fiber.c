/*
 * fiber.c: the context switch by itself, for fiber.py: two fibers alternate, and each finds its own registers and stack
 * as it left them. Runs without the rest of the explorer, and so on any machine.
 */
#include "../engine/engine.h"

#include <stdio.h>
#include <stdlib.h>

#define TURNS 1000

lab_engine *lab;
static void *main_sp;
static lab_thread fibers[2];
static uint64_t sums[2];

/* Enough of each kind alive across the switch that every register that is preserved is in use. */
__attribute__((noinline)) static uint64_t mix(unsigned self, uint64_t seed, double part)
{
    uint64_t a = seed + 1, b = seed + 2, c = seed + 3, d = seed + 4, e = seed + 5, f = seed + 6;
    double u = part + 1, v = part + 2, w = part + 3, x = part + 4;

    lab_fiber_switch(&fibers[self].sp, fibers[1 - self].sp);
    return a * 3 + b * 5 + c * 7 + d * 11 + e * 13 + f * 17 + (uint64_t)(u * 2 + v * 3 + w * 5 + x * 7);
}

static uint64_t expected(uint64_t seed, uint64_t part)
{
    return (seed + 1) * 3 + (seed + 2) * 5 + (seed + 3) * 7 + (seed + 4) * 11 + (seed + 5) * 13 + (seed + 6) * 17 +
           (part + 1) * 2 + (part + 2) * 3 + (part + 3) * 5 + (part + 4) * 7;
}

static void run(unsigned self)
{
    if ((uintptr_t)__builtin_frame_address(0) % 16 != 0)
        abort();
    for (uint64_t turn = 0; turn < TURNS; turn++)
        sums[self] += mix(self, turn * 10 + self, (double)turn) == expected(turn * 10 + self, turn);
    lab_fiber_switch(&fibers[self].sp, self == 0 ? fibers[1].sp : main_sp);
    abort();
}

static void run_first(void)
{
    run(0);
}

static void run_second(void)
{
    run(1);
}

int main(void)
{
    for (unsigned i = 0; i < 2; i++) {
        fibers[i].stack = aligned_alloc(4096, STACK_SIZE);
        lab_fiber_prepare(&fibers[i], i == 0 ? run_first : run_second);
    }
    lab_fiber_switch(&main_sp, fibers[0].sp);
    printf("%lu %lu\n", (unsigned long)sums[0], (unsigned long)sums[1]);
    return sums[0] == TURNS && sums[1] == TURNS ? 0 : 1;
}
