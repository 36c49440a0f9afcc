/*
 * Bugchecks that are expected by a test whose framework leaves a failed test by longjmp, as Unity does: TEST_PROTECT is
 * a setjmp around each test, a failed assertion a longjmp to it. Debian has no package of Unity, so this program
 * implements the mechanism itself. The optional argument is the number of a test that fails by itself.
 */
#include <ntddk.h>
#include <interlock/verifier.h>

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf abort_frame;
static int failures, wanted_failure;

#define TEST_ASSERT(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            longjmp(abort_frame, 1);                                                               \
        }                                                                                          \
    } while (0)

static KEVENT event;

static void wait_at_dispatch_level(void *context)
{
    KIRQL old;

    (void)context;
    KeEnterCriticalRegion();
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
}

static void in_process(int number)
{
    TEST_ASSERT(VfExpectBugCheck(wait_at_dispatch_level, NULL, NULL) == IRQL_NOT_LESS_OR_EQUAL);
    TEST_ASSERT(KeGetCurrentIrql() == PASSIVE_LEVEL && !KeAreApcsDisabled());
    TEST_ASSERT(number != wanted_failure);
}

static void in_a_child(int number)
{
    TEST_ASSERT(VfExpectBugCheckInChild(wait_at_dispatch_level, NULL, NULL) == IRQL_NOT_LESS_OR_EQUAL);
    TEST_ASSERT(number != wanted_failure);
}

static void as_a_statement(int number)
{
    VF_BUGCHECK stop;

    VF_EXPECT_BUGCHECK(&stop) {
        TEST_ASSERT(number != wanted_failure); /* leaves the statement silently */
        wait_at_dispatch_level(NULL);
    }
    TEST_ASSERT(stop.Code == IRQL_NOT_LESS_OR_EQUAL);
}

int main(int argc, char **argv)
{
    static void (*const tests[])(int number) = {in_process, in_a_child, as_a_statement};

    wanted_failure = argc > 1 ? atoi(argv[1]) : -1;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    printf("1..9\n");
    for (volatile int number = 0; number < 9; number++) {
        volatile int failed = 0;

        if (setjmp(abort_frame) == 0)
            tests[number % 3](number);
        else
            failed = 1;
        failures += failed != (number == wanted_failure);
        printf("%sok %d - %s\n", failed != (number == wanted_failure) ? "not " : "", number + 1,
               number == wanted_failure ? "fails, and those after it do not suffer" : "a bugcheck is caught");
    }
    return failures != 0;
}
