/* Address waits against wakes and timeouts. */
#include "stress.h"

#include <interlock/nt.h>
#include <interlock/rtl.h>

#include "rtl/rtlp.h"

/* Ping-pong: each side waits for its own value and changes the other's with a plain store. A wake that reads the hash
   before its store is visible, and finds it empty, hangs here. Both values are on the stack. */
typedef struct rally {
    volatile UCHAR *place[2];
    SIZE_T size;
    unsigned long rounds;
} rally;

static void read_value(volatile UCHAR *place, SIZE_T size, ULONG64 *value)
{
    *value = 0;
    switch (size) {
    case 1:
        *(PUCHAR)value = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        break;
    case 2:
        *(PUSHORT)value = __atomic_load_n((volatile USHORT *)(volatile void *)place, __ATOMIC_ACQUIRE);
        break;
    case 4:
        *(PULONG)value = __atomic_load_n((volatile ULONG *)(volatile void *)place, __ATOMIC_ACQUIRE);
        break;
    default:
        *value = __atomic_load_n((volatile ULONG64 *)(volatile void *)place, __ATOMIC_ACQUIRE);
    }
}

static void write_value(volatile UCHAR *place, SIZE_T size, ULONG64 value)
{
    switch (size) {
    case 1:
        __atomic_store_n(place, (UCHAR)value, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((volatile USHORT *)(volatile void *)place, (USHORT)value, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store_n((volatile ULONG *)(volatile void *)place, (ULONG)value, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n((volatile ULONG64 *)(volatile void *)place, value, __ATOMIC_RELEASE);
    }
}

static void await_value(volatile UCHAR *place, SIZE_T size, ULONG64 before)
{
    ULONG64 value;

    for (;;) {
        read_value(place, size, &value);
        if (value != before)
            return;
        require(RtlWaitOnAddress(place, &value, size, NULL) == STATUS_SUCCESS);
    }
}

/* No wake has left an alert pending that the thread did not sleep for. */
static void require_no_alert(void)
{
    LARGE_INTEGER now = no_time();

    require(NtWaitForAlertByThreadId(NULL, &now) == STATUS_TIMEOUT);
}

static void play_rally(void *argument, unsigned index)
{
    rally *r = argument;

    for (unsigned long round = 0; round < r->rounds; round++) {
        ULONG64 ball = round % 2;

        if (index == 0) {
            write_value(r->place[1], r->size, !ball);
            RtlWakeAddressSingle((PVOID)r->place[1]);
            await_value(r->place[0], r->size, ball);
        } else {
            await_value(r->place[1], r->size, ball);
            write_value(r->place[0], r->size, !ball);
            RtlWakeAddressAll((PVOID)r->place[0]);
        }
    }
    require_no_alert();
}

static void there_and_back(void **state)
{
    (void)state;
    for (SIZE_T size = 1; size <= 8; size *= 2) {
        ULONG64 words[2] = {0};
        rally r = {.place = {(UCHAR *)&words[0], (UCHAR *)&words[1]}, .size = size, .rounds = test_rounds(50000)};

        run_threads(2, HANG_SECONDS, play_rally, &r);
    }
}

/* Two waiters and a wake that begins with the bucket quiet, so that it is a plain store and a plain load: a wake that is
   not ordered by the waiters' barrier hangs here. */
static struct {
    volatile ULONG value;
    volatile ULONG ready;
    unsigned long rounds;
} hush;

static void break_the_quiet(void *argument, unsigned index)
{
    ULONG waiters = 2;
    (void)argument;
    for (ULONG round = 0; round < hush.rounds; round++) {
        if (index < waiters) {
            __atomic_add_fetch(&hush.ready, 1, __ATOMIC_SEQ_CST);
            while (load(&hush.value) == round)
                require(RtlWaitOnAddress(&hush.value, &round, sizeof(round), NULL) == STATUS_SUCCESS);
        } else {
            for (int i = 0; i < RTLP_QUIET_AFTER; i++)
                RtlWakeAddressAll((PVOID)&hush.value);
            while (load(&hush.ready) != waiters * (round + 1))
                YieldProcessor();
            __atomic_store_n(&hush.value, round + 1, __ATOMIC_RELEASE);
            RtlWakeAddressAll((PVOID)&hush.value);
        }
    }
}

static void a_quiet_bucket(void **state)
{
    (void)state;
    hush.rounds = test_rounds(10000);
    run_threads(3, HANG_SECONDS, break_the_quiet, NULL);
}

/* Tokens lie at a few addresses. A thread that finds none at its address waits there; one that adds a token wakes one
   waiter. Every token that was added is taken. */
#define PLACES 3

static struct {
    ULONG tokens[PLACES];
    unsigned long rounds;
    unsigned long timeouts;
} market;

static void take_token(ULONG *place, test_random *random)
{
    for (;;) {
        ULONG tokens = load(place);
        LARGE_INTEGER timeout = in_microseconds(random_below(random, 300));
        NTSTATUS status;

        while (tokens != 0) {
            if (__atomic_compare_exchange_n(place, &tokens, tokens - 1, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                return;
        }
        status = RtlWaitOnAddress(place, &tokens, sizeof(tokens), random_below(random, 2) ? &timeout : NULL);
        require(status == STATUS_SUCCESS || status == STATUS_TIMEOUT);
        add(&market.timeouts, status == STATUS_TIMEOUT);
    }
}

static void trade(void *argument, unsigned index)
{
    ULONG *place = &market.tokens[index / 2 % PLACES];
    test_random random;

    (void)argument;
    random_seed(&random, index + 1);
    want_exact_timeouts();
    for (unsigned long round = 0; round < market.rounds; round++) {
        if (index % 2 == 0) {
            spin_for(random_below(&random, 30));
            add(place, 1);
            RtlWakeAddressSingle(place);
        } else {
            take_token(place, &random);
        }
    }
    require_no_alert();
}

static void no_token_is_left(void **state)
{
    static const unsigned counts[] = {2, 4, 16};

    (void)state;
    for (unsigned i = 0; i < RTL_NUMBER_OF(counts); i++) {
        memset(&market, 0, sizeof(market));
        market.rounds = test_rounds(100000 / counts[i]);
        run_threads(counts[i], HANG_SECONDS, trade, NULL);
        for (unsigned place = 0; place < PLACES; place++)
            assert_int_equal(market.tokens[place], 0);
    }
}

/* One waiter is about to time out, one behind it has no timeout, and one wake comes. If the first reports a timeout,
   the wake was for the second, which would hang without it; otherwise the second still waits. */
static struct {
    ULONG value;
    unsigned long rounds;
    unsigned long begun[2];
    unsigned long returned[2];
    unsigned long rounds_over;
    NTSTATUS status;     /* of the first */
    PKTHREAD second;
} queue;

static void wait_first(test_random *random)
{
    for (unsigned long round = 1; round <= queue.rounds; round++) {
        LARGE_INTEGER timeout = in_microseconds(random_below(random, 120) + 1);
        ULONG zero = 0;

        await(load(&queue.rounds_over) == round - 1);
        store(&queue.begun[0], round);
        queue.status = RtlWaitOnAddress(&queue.value, &zero, sizeof(zero), &timeout);
        require(queue.status == STATUS_SUCCESS || queue.status == STATUS_TIMEOUT);
        store(&queue.returned[0], round);
    }
}

static void wait_second(void)
{
    store(&queue.second, KeGetCurrentThread());
    for (unsigned long round = 1; round <= queue.rounds; round++) {
        ULONG zero = 0;

        await(load(&queue.begun[0]) == round);
        store(&queue.begun[1], round);
        require(RtlWaitOnAddress(&queue.value, &zero, sizeof(zero), NULL) == STATUS_SUCCESS);
        store(&queue.returned[1], round);
    }
}

static void wake_both(test_random *random)
{
    for (unsigned long round = 1; round <= queue.rounds; round++) {
        await(load(&queue.begun[1]) == round && is_in_wait(queue.second, WaitCommitted));
        spin_for(random_below(random, 2000));
        RtlWakeAddressSingle(&queue.value);
        await(load(&queue.returned[0]) == round);
        if (queue.status == STATUS_SUCCESS) {
            require(is_in_wait(queue.second, WaitCommitted));
            RtlWakeAddressSingle(&queue.value);
        }
        await(load(&queue.returned[1]) == round);
        store(&queue.rounds_over, round);
    }
}

static void stand_in_queue(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index + 1);
    want_exact_timeouts();
    if (index == 0)
        wait_first(&random);
    else if (index == 1)
        wait_second();
    else
        wake_both(&random);
}

static void a_wake_and_a_timeout_have_one_winner(void **state)
{
    (void)state;
    memset(&queue, 0, sizeof(queue));
    queue.rounds = test_rounds(3000);
    run_threads(3, HANG_SECONDS, stand_in_queue, NULL);
}

/* All threads wait for the next number and are woken together. */
#define CROWD 8

static struct {
    USHORT number;
    unsigned long rounds;
    unsigned long seen;
} announcement;

static void follow(void *argument, unsigned index)
{
    (void)argument;
    for (unsigned long round = 0; round < announcement.rounds; round++) {
        USHORT number = (USHORT)round;

        if (index == 0) {
            await(load(&announcement.seen) == CROWD * round);
            store(&announcement.number, (USHORT)(round + 1));
            RtlWakeAddressAll(&announcement.number);
        } else {
            while (load(&announcement.number) == number)
                require(RtlWaitOnAddress(&announcement.number, &number, sizeof(number), NULL) == STATUS_SUCCESS);
            add(&announcement.seen, 1);
        }
    }
}

static void all_are_told(void **state)
{
    (void)state;
    memset(&announcement, 0, sizeof(announcement));
    announcement.rounds = test_rounds(3000);
    run_threads(CROWD + 1, HANG_SECONDS, follow, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(a_quiet_bucket),
        cmocka_unit_test(no_token_is_left),
        cmocka_unit_test(a_wake_and_a_timeout_have_one_winner),
        cmocka_unit_test(all_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
