/* Waits that are set, signaled, timed out, cancelled and closed at the same time. No signal is lost. */
#include "../win32/tptest.h"

typedef struct contested {
    PTP_WAIT wait;
    HANDLE semaphore;
    volatile ULONG signaled;
    volatile ULONG timed_out;
    volatile ULONG forbidden; /* no callback may begin */
} contested;

static void note(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    contested *c = context;
    (void)instance;
    (void)wait;
    check(!count_of(&c->forbidden));
    add_one(result == WAIT_OBJECT_0 ? &c->signaled : &c->timed_out);
}

static void prepare(contested *c)
{
    *c = (contested){.signaled = 0};
    check(NT_SUCCESS(NtCreateSemaphore(&c->semaphore, SEMAPHORE_ALL_ACCESS, NULL, 0, MAXLONG)));
    c->wait = CreateThreadpoolWait(note, c, NULL);
}

static ULONG left_in(HANDLE semaphore)
{
    SEMAPHORE_BASIC_INFORMATION information;
    check(NT_SUCCESS(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), NULL)));
    return (ULONG)information.CurrentCount;
}

/* Every released count remains or has had its callback. */
static void account(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(2000);
    contested c;
    test_random random;
    FILETIME due;
    (void)argument;
    random_seed(&random, index);
    prepare(&c);
    for (unsigned long i = 0; i < rounds; i += 1) {
        uint32_t how = random_below(&random, 4);
        SetThreadpoolWait(c.wait, how == 3 ? NULL : c.semaphore, how == 0 ? in_milliseconds(0, &due) : NULL);
        check(NT_SUCCESS(NtReleaseSemaphore(c.semaphore, 1, NULL)));
        if (random_below(&random, 8) == 0) {
            WaitForThreadpoolWaitCallbacks(c.wait, FALSE);
        }
    }
    SetThreadpoolWait(c.wait, NULL, NULL);
    WaitForThreadpoolWaitCallbacks(c.wait, FALSE);
    check(c.signaled + left_in(c.semaphore) == rounds);
    CloseThreadpoolWait(c.wait);
    NtClose(c.semaphore);
}

static void test_account(void **state)
{
    (void)state;
    run_threads(4, 120, account, NULL);
}

static void cancel_many(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(2000);
    contested c;
    test_random random;
    FILETIME due;
    (void)argument;
    random_seed(&random, index);
    prepare(&c);
    for (unsigned long i = 0; i < rounds; i += 1) {
        SetThreadpoolWait(c.wait, c.semaphore, random_below(&random, 2) ? in_milliseconds(0, &due) : NULL);
        NtReleaseSemaphore(c.semaphore, 1, NULL);
        if (random_below(&random, 4) == 0) {
            pause_briefly();
        }
        SetThreadpoolWait(c.wait, NULL, NULL);
        WaitForThreadpoolWaitCallbacks(c.wait, TRUE);
        c.forbidden = 1;
        if (random_below(&random, 8) == 0) {
            pause_briefly();
        }
        c.forbidden = 0;
    }
    CloseThreadpoolWait(c.wait);
    NtClose(c.semaphore);
}

static void test_cancel(void **state)
{
    (void)state;
    run_threads(4, 120, cancel_many, NULL);
}

/* One thread sets, one signals, the callback sets again; then the wait is closed meanwhile. */
static void set_again(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    contested *c = context;
    (void)instance;
    (void)result;
    add_one(&c->signaled);
    SetThreadpoolWait(wait, c->semaphore, NULL);
}

static void signal_or_set(void *argument, unsigned index)
{
    contested *c = argument;
    unsigned long rounds = test_rounds(2000);
    FILETIME due;
    for (unsigned long i = 0; i < rounds; i += 1) {
        if (index % 2) {
            NtReleaseSemaphore(c->semaphore, 1, NULL);
        } else {
            SetThreadpoolWait(c->wait, c->semaphore, i % 2 ? in_milliseconds(0, &due) : NULL);
        }
    }
}

static void test_shared(void **state)
{
    contested c;
    volatile ULONG gone;
    (void)state;
    prepare(&c);
    CloseThreadpoolWait(c.wait);
    c.wait = CreateThreadpoolWait(set_again, &c, NULL);
    watch_object(&c.wait->Object, &gone);
    run_threads(4, 120, signal_or_set, &c);
    CloseThreadpoolWait(c.wait);
    await(count_of(&gone) == 1);
    NtClose(c.semaphore);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_account),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
