#include "haltest.h"

#include <execinfo.h>

#include "hal/hal.h"

extern BOOLEAN HalpSwitchByContext;

static HAL_FIBER home, fiber;
static int visits, depth;
static uintptr_t frame;

static DECLSPEC_NORETURN VOID run(PVOID context)
{
    void *frames[64];

    HalFinishSwitch(&fiber, &home);
    assert_ptr_equal(context, &visits);
    frame = (uintptr_t)__builtin_frame_address(0);
    assert_true(HalIsOnStack(&fiber));
    depth = backtrace(frames, 64); /* ends at the first frame of the fiber */
    for (;;) {
        visits++;
        HalSwitchFiber(&fiber, &home);
        HalFinishSwitch(&fiber, &home);
    }
}

static void visit(void)
{
    HalSwitchFiber(&home, &fiber);
    HalFinishSwitch(&home, &fiber);
}

/* Preserved registers hold what they held, in numbers that the compiler cannot keep elsewhere. */
static __attribute__((noinline)) unsigned long sum_over_visits(unsigned long a, unsigned long b, double c)
{
    unsigned long d = a * 3, e = b * 5, f = a ^ b, g = a + 7 * b;
    double h = c * 1.5;

    visit();
    return a + b + d + e + f + g + (unsigned long)(c + h);
}

static void switch_back_and_forth(void)
{
    visits = 0;
    HalInitializeThreadFiber(&home, FALSE);
    assert_false(HalIsOnStack(&home));
    assert_int_equal(HalCreateFiber(&fiber, 1, FALSE, run, &visits), STATUS_SUCCESS);
    assert_true(fiber.StackSize >= 256 * 1024);
    for (int round = 1; round <= 100; round++) {
        visit();
        assert_int_equal(visits, round);
        assert_false(HalIsOnStack(&fiber));
    }
    assert_true(frame > (uintptr_t)fiber.Stack && frame < (uintptr_t)fiber.Stack + fiber.StackSize);
    assert_in_range(depth, 1, 8);
    assert_int_equal(sum_over_visits(11, 13, 4.0), 11 + 13 + 33 + 65 + (11 ^ 13) + (11 + 91) + 10);
    HalDeleteFiber(&fiber);
    HalFree(home.Host);
}

static void by_the_machine(void **state)
{
    (void)state;
    switch_back_and_forth();
}

/* As on a machine with a shadow stack. */
static void by_the_c_library(void **state)
{
    (void)state;
    HalpSwitchByContext = TRUE;
    switch_back_and_forth();
    HalpSwitchByContext = FALSE;
}

static void no_memory(void **state)
{
    (void)state;
    assert_int_equal(HalCreateFiber(&fiber, (SIZE_T)1 << 50, FALSE, run, NULL), STATUS_NO_MEMORY);
    assert_int_equal(HalCreateFiber(&fiber, SIZE_MAX, FALSE, run, NULL), STATUS_NO_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_machine),
        cmocka_unit_test(by_the_c_library),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests_name("hal/fiber", tests, NULL, NULL);
}
