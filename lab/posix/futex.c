/* futex.c: syscall(). Futexes are steps of the explorer; other system calls go to the host, unless they block. */
#include "calls.h"
#include "posix.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

static int error(int code)
{
    errno = code;
    return -1;
}

static int futex_wait(uint32_t *word, uint32_t expected, const struct timespec *time, int operation, uintptr_t pc)
{
    uint64_t deadline = 0;
    bool absolute = (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
    clockid_t clock = operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;

    if (time != NULL && absolute) {
        if (!lab_posix_deadline(clock, time, &deadline))
            return error(EINVAL);
    } else if (time != NULL) {
        if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= 1000000000)
            return error(EINVAL);
        uint64_t length = time->tv_sec > 86400 ? 86400ull * 10000000 : (uint64_t)time->tv_sec * 10000000;
        deadline = lab->run.now + length + (uint64_t)(time->tv_nsec + 99) / 100;
        deadline = time->tv_sec > 86400 ? 0 : deadline;
    }
    bool woken = lab_block_wait((uintptr_t)word, expected, deadline, pc);
    if (!woken)
        return error(ETIMEDOUT);
    return lab_sched_active() && lab->current->did_not_block ? error(EAGAIN) : 0;
}

/* An operation of FUTEX_WAKE_OP. TRUE: the old value fulfils its comparison. */
static bool apply_operation(uint32_t *word, uint32_t encoded, uintptr_t pc)
{
    static const lab_rmw_kind kinds[] = {RMW_EXCHANGE, RMW_ADD, RMW_OR, RMW_AND, RMW_XOR};
    uint32_t operation = encoded >> 28 & 7, comparison = encoded >> 24 & 15;
    int32_t operand = (int32_t)(encoded << 8) >> 20, compared = (int32_t)(encoded << 20) >> 20;

    if (encoded >> 31)
        operand = (int32_t)(1u << (operand & 31));
    if (operation == FUTEX_OP_ANDN)
        operand = ~operand;
    int32_t old = (int32_t)lab_atomic_rmw((uintptr_t)word, 4, kinds[operation <= 4 ? operation : 0], (uint32_t)operand,
                                          __ATOMIC_SEQ_CST, pc);
    switch (comparison) {
    case FUTEX_OP_CMP_EQ:
        return old == compared;
    case FUTEX_OP_CMP_NE:
        return old != compared;
    case FUTEX_OP_CMP_LT:
        return old < compared;
    case FUTEX_OP_CMP_LE:
        return old <= compared;
    case FUTEX_OP_CMP_GT:
        return old > compared;
    default:
        return old >= compared;
    }
}

static int futex_wake_operation(uint32_t *word, uint32_t count, uint32_t second, uint32_t *other, uint32_t encoded, uintptr_t pc)
{
    bool wakes = apply_operation(other, encoded, pc);
    uint32_t woken = lab_block_wake_address((uintptr_t)word, count, pc);

    return (int)(woken + (wakes ? lab_block_wake_address((uintptr_t)other, second, pc) : 0));
}

static int futex(const long a[6], uintptr_t pc)
{
    uint32_t *word = (uint32_t *)a[0], *other = (uint32_t *)a[4];
    uint32_t count = (uint32_t)a[2];

    switch (a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT_BITSET:
        if (a[5] == 0)
            return error(EINVAL);
        if ((uint32_t)a[5] != FUTEX_BITSET_MATCH_ANY)
            lab_posix_unsupported("futex(FUTEX_WAIT_BITSET) with a bit set", pc);
        return futex_wait(word, count, (const struct timespec *)a[3], (int)a[1], pc);
    case FUTEX_WAIT:
        return futex_wait(word, count, (const struct timespec *)a[3], (int)a[1], pc);
    case FUTEX_WAKE_BITSET:
        if (a[5] == 0)
            return error(EINVAL);
        return (int)lab_block_wake_address((uintptr_t)word, count, pc);
    case FUTEX_WAKE:
        return (int)lab_block_wake_address((uintptr_t)word, count, pc);
    case FUTEX_CMP_REQUEUE:
    case FUTEX_REQUEUE: {
        bool compares = (a[1] & FUTEX_CMD_MASK) == FUTEX_CMP_REQUEUE;
        lab_requeue how = {.compares = compares, .expected = (uint32_t)a[5], .wakes = count, .moves = (uint32_t)a[3]};
        if (!lab_block_requeue((uintptr_t)word, (uintptr_t)other, &how, pc))
            return error(EAGAIN);
        return (int)(how.woken + (compares ? how.moved : 0));
    }
    case FUTEX_WAKE_OP:
        return futex_wake_operation(word, count, (uint32_t)a[3], other, (uint32_t)a[5], pc);
    default:
        lab_posix_unsupported("futex with an operation for owners or several words", pc);
    }
}

static long call_host(long number, const long a[6], uintptr_t pc)
{
    if (number == SYS_membarrier && lab_sched_active()) {
        lab_atomic_barrier_all();
        return 0;
    }
    if (lab_sched_active() && !lab_calls_may_make(number, a))
        lab_posix_unsupported(lab_calls_name(number), pc);
    return lab_host_result(lab_calls_make(number, a));
}

long syscall(long number, ...)
{
    va_list list;
    long a[6], result;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    bool is_explored = lab != NULL && (lab->running || lab->preparing);
    if (number == SYS_futex && is_explored)
        result = futex(a, CALLER);
    else if (number == SYS_sched_yield && is_explored)
        result = 0;
    else if (number == SYS_gettid && lab != NULL && lab->current != NULL)
        result = 1000 + lab->current->number;
    else if (number == SYS_clock_gettime && is_explored)
        result = clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
    else if (number == SYS_nanosleep && is_explored)
        result = nanosleep((const struct timespec *)a[0], (struct timespec *)a[1]);
    else if (number == SYS_clock_nanosleep && is_explored)
        result = lab_host_result(-clock_nanosleep((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2], NULL));
    else
        result = call_host(number, a, CALLER);
    lab_cycle_sweep();
    return result;
}

/* Unlike getpid, it distinguishes threads. */
pid_t gettid(void)
{
    if (lab != NULL && lab->current != NULL)
        return (pid_t)(1000 + lab->current->number);
    return (pid_t)lab_host_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}
