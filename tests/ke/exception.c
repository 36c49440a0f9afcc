#include "machine.h"

#include <interlock/ex.h>
#include <interlock/exception.h>
#include <interlock/rtl.h>

#include "ke/ki.h"

static void no_frame_is_left(void)
{
    assert_null(KeGetCurrentThread()->ExceptionList);
}

static void raise_deep(int depth, NTSTATUS status)
{
    if (depth > 0)
        raise_deep(depth - 1, status);
    else if (status != STATUS_SUCCESS)
        ExRaiseStatus(status);
}

static void caught(void **state)
{
    volatile int steps = 0;

    (void)state;
    __try {
        steps += 1;
        raise_deep(5, STATUS_MUTANT_LIMIT_EXCEEDED);
        steps += 1000;
    } __except (GetExceptionCode() == STATUS_MUTANT_LIMIT_EXCEEDED ? EXCEPTION_EXECUTE_HANDLER :
                                                                     EXCEPTION_CONTINUE_SEARCH) {
        steps += 10;
        assert_int_equal(GetExceptionCode(), STATUS_MUTANT_LIMIT_EXCEEDED);
    }
    assert_int_equal(steps, 11);
    no_frame_is_left();
}

static void not_raised(void **state)
{
    volatile int steps = 0;

    (void)state;
    __try {
        steps += 1;
    } __except (steps += 1000, EXCEPTION_EXECUTE_HANDLER) {
        steps += 1000;
    }
    assert_int_equal(steps, 1);
    no_frame_is_left();
}

static void every_way_to_raise(void **state)
{
    volatile int way;

    (void)state;
    for (way = 0; way < 4; way++) {
        static const NTSTATUS expected[] = {STATUS_UNSUCCESSFUL, STATUS_ACCESS_VIOLATION, STATUS_DATATYPE_MISALIGNMENT,
                                            STATUS_NO_MEMORY};
        volatile NTSTATUS status = STATUS_SUCCESS;

        __try {
            switch (way) {
            case 0:
                RtlRaiseStatus(STATUS_UNSUCCESSFUL);
            case 1:
                ExRaiseAccessViolation();
            case 2:
                ExRaiseDatatypeMisalignment();
            default:
                ExRaiseStatus(STATUS_NO_MEMORY);
            }
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            status = GetExceptionCode();
        }
        assert_int_equal(status, expected[way]);
    }
}

static void searching_on(void **state)
{
    volatile int filters = 0, outer = 0;

    (void)state;
    __try {
        __try {
            __try {
                ExRaiseStatus(STATUS_TIMEOUT);
            } __except (filters++, EXCEPTION_CONTINUE_SEARCH) {
                fail();
            }
            fail();
        } __except (filters++, EXCEPTION_CONTINUE_SEARCH) {
            fail();
        }
        fail();
    } __except (filters++, EXCEPTION_EXECUTE_HANDLER) {
        outer = GetExceptionCode();
    }
    assert_int_equal(filters, 3);
    assert_int_equal(outer, STATUS_TIMEOUT);
    no_frame_is_left();
}

static void continuing_is_not_possible(void **state)
{
    volatile NTSTATUS status = 0;

    (void)state;
    __try {
        __try {
            ExRaiseStatus(STATUS_TIMEOUT);
        } __except (EXCEPTION_CONTINUE_EXECUTION) {
            fail();
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        status = GetExceptionCode();
    }
    assert_int_equal(status, STATUS_NONCONTINUABLE_EXCEPTION);
}

static void raised_in_handler_and_filter(void **state)
{
    volatile NTSTATUS from_handler = 0, from_filter = 0;

    (void)state;
    __try {
        __try {
            ExRaiseStatus(STATUS_TIMEOUT);
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            ExRaiseStatus(STATUS_NO_MEMORY);
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        from_handler = GetExceptionCode();
    }
    __try {
        __try {
            ExRaiseStatus(STATUS_TIMEOUT);
        } __except (raise_deep(2, STATUS_PENDING), EXCEPTION_EXECUTE_HANDLER) {
            fail();
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        from_filter = GetExceptionCode();
    }
    assert_int_equal(from_handler, STATUS_NO_MEMORY);
    assert_int_equal(from_filter, STATUS_PENDING);
    no_frame_is_left();
}

/* Every exit from a body removes its frame. */

static int return_from_body(void)
{
    __try {
        __try {
            return 5;
        } __except (EXCEPTION_EXECUTE_HANDLER) {
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
    }
    return 0;
}

static int return_from_handler(void)
{
    __try {
        ExRaiseStatus(STATUS_TIMEOUT);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        return 6;
    }
    return 0;
}

static void ways_out(void **state)
{
    volatile int rounds = 0, reached = 0;

    (void)state;
    assert_int_equal(return_from_body(), 5);
    no_frame_is_left();
    assert_int_equal(return_from_handler(), 6);
    no_frame_is_left();
    for (;;) {
        __try {
            if (rounds++ < 3)
                continue;
            break;
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            fail();
        }
    }
    assert_int_equal(rounds, 4);
    no_frame_is_left();
    for (;;) {
        __try {
            ExRaiseStatus(STATUS_TIMEOUT);
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            break;
        }
    }
    no_frame_is_left();
    __try {
        goto out;
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        fail();
    }
out:
    no_frame_is_left();
    __try {
        reached = 1;
        __leave;
        reached = 2;
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        fail();
    }
    assert_int_equal(reached, 1);
    no_frame_is_left();
}

static void without_braces(void **state)
{
    volatile int caught_one = 0;

    (void)state;
    for (volatile int raise = 0; raise < 2; raise++)
        if (raise)
            __try {
                ExRaiseStatus(STATUS_TIMEOUT);
            } __except (EXCEPTION_EXECUTE_HANDLER) {
                caught_one++;
            }
    assert_int_equal(caught_one, 1);
}

static void finally_blocks(void **state)
{
    volatile int normal = 0, left = 0, inner = 0, outer = 0, abnormal = 0;

    (void)state;
    __try {
        normal = 1;
    } __finally {
        normal += AbnormalTermination() ? 100 : 10;
    }
    assert_int_equal(normal, 11);
    __try {
        left = 1;
        __leave;
        left = 100;
    } __finally {
        left += AbnormalTermination() ? 100 : 10;
    }
    assert_int_equal(left, 11);
    __try {
        __try {
            __try {
                ExRaiseStatus(STATUS_TIMEOUT);
            } __finally {
                inner = 1;
                abnormal += AbnormalTermination();
                __try {
                    ExRaiseStatus(STATUS_NO_MEMORY);
                } __except (EXCEPTION_EXECUTE_HANDLER) {
                }
            }
            fail();
        } __finally {
            outer = inner + 1;
            abnormal += AbnormalTermination();
        }
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        assert_int_equal(GetExceptionCode(), STATUS_TIMEOUT);
        outer += 10;
    }
    assert_int_equal(outer, 12);
    assert_int_equal(abnormal, 2);
    no_frame_is_left();
}

static void the_level_stays(void **state)
{
    KIRQL old = KeGetCurrentIrql();

    (void)state;
    __try {
        KfRaiseIrql(DISPATCH_LEVEL);
        ExRaiseStatus(STATUS_TIMEOUT);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
        KeLowerIrql(old);
    }
}

static void raise_and_catch(void *unused, unsigned index)
{
    (void)unused;
    for (unsigned long round = test_rounds(20000); round != 0; round--) {
        volatile NTSTATUS got = 0;
        NTSTATUS status = (NTSTATUS)(index * 1000 + round % 1000);

        __try {
            raise_deep((int)(round % 7), status);
        } __except (EXCEPTION_EXECUTE_HANDLER) {
            got = GetExceptionCode();
        }
        require(got == status);
    }
}

static void threads_do_not_meet(void **state)
{
    (void)state;
    run_threads(4, 60, raise_and_catch, NULL);
}

static void raise_uncaught(void *unused)
{
    (void)unused;
    __try {
    } __except (EXCEPTION_EXECUTE_HANDLER) {
    }
    ExRaiseStatus(STATUS_UNSUCCESSFUL);
}

static void raise_after_search(void *unused)
{
    (void)unused;
    __try {
        ExRaiseStatus(STATUS_UNSUCCESSFUL);
    } __except (EXCEPTION_CONTINUE_SEARCH) {
    }
}

static void leave_nothing(void *unused)
{
    (void)unused;
    __leave;
}

static void uncaught(void **state)
{
    (void)state;
    expect_bugcheck(KMODE_EXCEPTION_NOT_HANDLED, raise_uncaught, NULL);
    expect_bugcheck(KMODE_EXCEPTION_NOT_HANDLED, raise_after_search, NULL);
    expect_bugcheck(KERNEL_SECURITY_CHECK_FAILURE, leave_nothing, NULL);
}

/* The end of a block calls it for a frame that was left before, while another frame is the innermost one. */
static void a_frame_is_left_once(void **state)
{
    KEXCEPTION_FRAME outer, inner, later;

    (void)state;
    KeEnterTryFrame(&outer);
    KeEnterTryFrame(&inner);
    KeExitTryFrame(&inner);
    KeEnterTryFrame(&later);
    KeExitTryFrame(&inner);
    assert_ptr_equal(KiCurrentThread()->ExceptionList, &later);
    KeExitTryFrame(&later);
    KeExitTryFrame(&outer);
    assert_null(KiCurrentThread()->ExceptionList);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(caught),
        cmocka_unit_test(not_raised),
        cmocka_unit_test(every_way_to_raise),
        cmocka_unit_test(searching_on),
        cmocka_unit_test(continuing_is_not_possible),
        cmocka_unit_test(raised_in_handler_and_filter),
        cmocka_unit_test(ways_out),
        cmocka_unit_test(without_braces),
        cmocka_unit_test(finally_blocks),
        cmocka_unit_test(the_level_stays),
        cmocka_unit_test(a_frame_is_left_once),
        cmocka_unit_test(threads_do_not_meet),
        cmocka_unit_test(uncaught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
