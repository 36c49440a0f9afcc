/* Handles that all threads open, duplicate, use and close at once, sometimes twice. */
#include "../nt/objecttest.h"

#include "ob/obp.h"

enum { THREADS = 4, SLOTS = 16 };

static HANDLE volatile slots[SLOTS];

static void use(HANDLE handle)
{
    LONG previous;
    NTSTATUS status = NtSetEvent(handle, &previous);

    /* the handle may be closed, or reused for another object */
    assert_true(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE || status == STATUS_OBJECT_TYPE_MISMATCH ||
                status == STATUS_ACCESS_DENIED);
    if (status == STATUS_SUCCESS)
        assert_true(previous == 0 || previous == 1);
}

static HANDLE make(test_random *random)
{
    HANDLE handle = NULL;

    if (random_below(random, 2))
        assert_int_equal(NtCreateEvent(&handle, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    else
        assert_int_equal(NtCreateSemaphore(&handle, SEMAPHORE_ALL_ACCESS, NULL, 0, 1), STATUS_SUCCESS);
    return handle;
}

static HANDLE duplicate(HANDLE handle)
{
    HANDLE target = NULL;
    NTSTATUS status =
        NtDuplicateObject(NtCurrentProcess(), handle, NtCurrentProcess(), &target, 0, 0, DUPLICATE_SAME_ACCESS);

    assert_true(status == STATUS_SUCCESS || status == STATUS_INVALID_HANDLE);
    return target;
}

/* The thread that takes a handle out of a slot closes it, once; sometimes another thread uses it at that moment. */
static void shuffle(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(100000);
    test_random random;

    (void)argument;
    random_seed(&random, index + 7);
    for (unsigned long i = 0; i < rounds; i++) {
        HANDLE volatile *slot = &slots[random_below(&random, SLOTS)];
        HANDLE handle = __atomic_load_n(slot, __ATOMIC_RELAXED), fresh;

        switch (random_below(&random, 4)) {
        case 0:
            fresh = make(&random);
            handle = __atomic_exchange_n(slot, fresh, __ATOMIC_SEQ_CST);
            if (handle)
                close_handle(handle);
            break;
        case 1:
            fresh = handle ? duplicate(handle) : NULL;
            handle = __atomic_exchange_n(slot, fresh, __ATOMIC_SEQ_CST);
            if (handle)
                close_handle(handle);
            break;
        default:
            use(handle);
            break;
        }
    }
}

static void handles_of_everybody(void **state)
{
    ULONG objects = objects_of("Event") + objects_of("Semaphore");
    ULONG handles = handles_of("Event") + handles_of("Semaphore");

    (void)state;
    run_threads(THREADS, 300, shuffle, NULL);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            close_handle(slots[i]);
    assert_int_equal(objects_of("Event") + objects_of("Semaphore"), objects);
    assert_int_equal(handles_of("Event") + handles_of("Semaphore"), handles);
}

/* Of many threads that close the same handle one succeeds. */
static HANDLE volatile contested;
static volatile LONG closed, ready;

static void close_contested(void *argument, unsigned index)
{
    unsigned long rounds = *(unsigned long *)argument;

    for (unsigned long i = 0; i < rounds; i++) {
        LONG arrived;

        if (index == 0) {
            HANDLE event;

            assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), 0);
            __atomic_store_n(&contested, event, __ATOMIC_SEQ_CST);
        }
        arrived = __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
        while ((arrived = __atomic_load_n(&ready, __ATOMIC_SEQ_CST)) < (LONG)(2 * i * THREADS + THREADS))
            HalDispatch.Yield();
        if (NtClose(contested) == STATUS_SUCCESS)
            __atomic_add_fetch(&closed, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < (LONG)(2 * i * THREADS + 2 * THREADS))
            HalDispatch.Yield();
    }
}

static void one_close_succeeds(void **state)
{
    unsigned long rounds = test_rounds(2000);
    ULONG handles = handles_of("Event");

    (void)state;
    run_threads(THREADS, 300, close_contested, &rounds);
    assert_int_equal(closed, rounds);
    assert_int_equal(handles_of("Event"), handles);
}

/* A handle that is borrowed, and closed meanwhile: the closer frees its object, and no thread uses it afterwards. */
static HANDLE volatile borrowed;
static unsigned long borrowings;

static void borrow(void *argument, unsigned index)
{
    unsigned long rounds = *(unsigned long *)argument;
    LARGE_INTEGER now = {.QuadPart = 0};

    for (unsigned long i = 0; i < rounds; i++) {
        HANDLE handle = __atomic_load_n(&borrowed, __ATOMIC_ACQUIRE);

        if (index == 0) {
            HANDLE fresh;

            assert_int_equal(NtCreateEvent(&fresh, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE), STATUS_SUCCESS);
            __atomic_fetch_or(&ObpEntryOfHandle(fresh)->Object, OBP_BORROWABLE, __ATOMIC_RELAXED);
            __atomic_store_n(&borrowed, fresh, __ATOMIC_RELEASE);
            if (handle != NULL)
                close_handle(handle);
        } else {
            NTSTATUS status = index % 2 ? NtSetEvent(handle, NULL) : NtWaitForSingleObject(handle, FALSE, &now);

            assert_true(status == STATUS_SUCCESS || status == STATUS_TIMEOUT || status == STATUS_INVALID_HANDLE);
            __atomic_add_fetch(&borrowings, status == STATUS_SUCCESS, __ATOMIC_RELAXED);
        }
    }
}

static void borrowed_and_closed(void **state)
{
    unsigned long rounds = test_rounds(20000);
    ULONG objects = objects_of("Event");

    (void)state;
    run_threads(THREADS, 300, borrow, &rounds);
    close_handle(borrowed);
    borrowed = NULL;
    assert_int_equal(objects_of("Event"), objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_everybody),
        cmocka_unit_test(one_close_succeeds),
        cmocka_unit_test(borrowed_and_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
