/* Descriptors and the thread pool: I/O objects, and waits on descriptor objects. */
#include "tptest.h"

#include <interlock/io.h>

#include <fcntl.h>

typedef struct channel {
    int ends[2];
    HANDLE handle;
    HANDLE ran;
    PTP_IO io;
    volatile ULONG runs;
    volatile ULONG bytes;
    BOOLEAN again; /* the callback starts the next operation */
    BOOLEAN close; /* the callback closes the object */
    BOOLEAN end;   /* its thread ends in it */
} channel;

static void take(channel *c)
{
    char buffer[16];
    ssize_t length = read(c->ends[0], buffer, sizeof(buffer));
    check(length >= 0);
    __atomic_add_fetch(&c->bytes, (ULONG)length, __ATOMIC_SEQ_CST);
}

static void ready(PTP_CALLBACK_INSTANCE instance, PVOID context, PVOID overlapped, ULONG result, ULONG_PTR bytes,
                  PTP_IO io)
{
    channel *c = context;
    check(instance != NULL && overlapped == NULL && result == NO_ERROR && bytes == 0 && io == c->io);
    take(c);
    add_one(&c->runs);
    if (c->again) {
        StartThreadpoolIo(io);
    }
    if (c->close) {
        CloseThreadpoolIo(io);
    }
    BOOLEAN end = c->end; /* a waiter for ran may free it */
    set_event(c->ran);
    if (end) {
        ExitThread(0);
    }
}

static void prepare(channel *c, PTP_CALLBACK_ENVIRON environment)
{
    *c = (channel){.ran = make_event(SynchronizationEvent)};
    assert_int_equal(pipe(c->ends), 0);
    assert_int_equal(
        IoCreateDescriptorObject(&c->handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, c->ends[0], IO_DESCRIPTOR_READABLE),
        STATUS_SUCCESS);
    c->io = CreateThreadpoolIo(c->handle, ready, c, environment);
    assert_non_null(c->io);
}

static void finish(channel *c)
{
    if (!c->close) {
        CloseThreadpoolIo(c->io);
    }
    NtClose(c->handle);
    NtClose(c->ran);
    close(c->ends[0]);
    close(c->ends[1]);
}

static void put(channel *c)
{
    check(write(c->ends[1], "x", 1) == 1);
}

static void test_operations(void **state)
{
    channel c;
    (void)state;
    prepare(&c, NULL);
    for (ULONG i = 1; i <= 20; i += 1) {
        StartThreadpoolIo(c.io);
        put(&c);
        wait_event(c.ran);
        WaitForThreadpoolIoCallbacks(c.io, FALSE);
        assert_int_equal(c.runs, i);
        assert_int_equal(c.bytes, i);
    }
    /* nothing was started: no callback */
    put(&c);
    WaitForThreadpoolIoCallbacks(c.io, FALSE);
    assert_int_equal(c.runs, 20);
    StartThreadpoolIo(c.io);
    wait_event(c.ran);
    finish(&c);
}

/* Each operation has its callback, one at a time. */
static void test_several_started(void **state)
{
    channel c;
    (void)state;
    prepare(&c, NULL);
    for (ULONG i = 0; i < 3; i += 1) {
        StartThreadpoolIo(c.io);
    }
    for (ULONG i = 1; i <= 3; i += 1) {
        put(&c);
        wait_event(c.ran);
        assert_int_equal(count_of(&c.runs), i);
        assert_int_equal(count_of(&c.bytes), i);
    }
    c.again = TRUE;
    StartThreadpoolIo(c.io);
    for (ULONG i = 4; i <= 20; i += 1) {
        put(&c);
        wait_event(c.ran);
        assert_int_equal(count_of(&c.bytes), i);
    }
    finish(&c);
}

static void test_cancel(void **state)
{
    channel c;
    (void)state;
    prepare(&c, NULL);
    CancelThreadpoolIo(c.io);
    StartThreadpoolIo(c.io);
    CancelThreadpoolIo(c.io);
    put(&c);
    WaitForThreadpoolIoCallbacks(c.io, FALSE);
    assert_int_equal(c.runs, 0);
    StartThreadpoolIo(c.io);
    wait_event(c.ran);
    finish(&c);
}

static void test_cancel_pending(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_POOL pool = make_pool(1, &environment);
    channel c;
    gate g;
    (void)state;
    prepare(&c, &environment);
    gate_block(&g, &environment);
    StartThreadpoolIo(c.io);
    StartThreadpoolIo(c.io);
    put(&c);
    await(TppHasBacklog(pool));
    WaitForThreadpoolIoCallbacks(c.io, TRUE);
    set_event(g.opened);
    wait_event(c.ran); /* the second operation: the descriptor is still ready */
    assert_int_equal(count_of(&c.runs), 1);
    WaitForThreadpoolIoCallbacks(c.io, FALSE);
    finish(&c);
    CloseThreadpool(pool);
    gate_close(&g);
}

static void test_close_inside_callback(void **state)
{
    channel c;
    (void)state;
    prepare(&c, NULL);
    c.close = TRUE;
    StartThreadpoolIo(c.io);
    StartThreadpoolIo(c.io);
    put(&c);
    wait_event(c.ran);
    finish(&c);
}

/* The next operation is still served, and the object is deleted when it is closed. */
static void test_thread_ends_inside_callback(void **state)
{
    TP_CALLBACK_ENVIRON environment;
    PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
    channel c;
    (void)state;
    InitializeThreadpoolEnvironment(&environment);
    SetThreadpoolCallbackCleanupGroup(&environment, group, NULL);
    prepare(&c, &environment);
    c.end = TRUE;
    for (ULONG i = 1; i <= 5; i += 1) {
        StartThreadpoolIo(c.io);
        put(&c);
        wait_event(c.ran);
    }
    assert_int_equal(c.runs, 5);
    CloseThreadpoolCleanupGroupMembers(group, FALSE, NULL);
    CloseThreadpoolCleanupGroup(group);
    c.close = TRUE; /* it is */
    finish(&c);
}

static void test_refusals(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    channel c;
    (void)state;
    SetLastError(0);
    assert_null(CreateThreadpoolIo(event, ready, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    SetLastError(0);
    assert_null(CreateThreadpoolIo(NULL, ready, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    prepare(&c, NULL);
    SetLastError(0);
    assert_null(CreateThreadpoolIo(c.handle, NULL, NULL, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    finish(&c);
    NtClose(event);
}

static void note(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WAIT wait, TP_WAIT_RESULT result)
{
    channel *c = context;
    (void)instance;
    (void)wait;
    check(result == WAIT_OBJECT_0);
    take(c);
    set_event(c->ran);
}

static void test_wait_for_descriptor(void **state)
{
    channel c;
    (void)state;
    prepare(&c, NULL);
    PTP_WAIT wait = CreateThreadpoolWait(note, &c, NULL);
    for (ULONG i = 1; i <= 10; i += 1) {
        if (i % 2) {
            put(&c);
        }
        SetThreadpoolWait(wait, c.handle, NULL);
        if (i % 2 == 0) {
            put(&c);
        }
        wait_event(c.ran);
        assert_int_equal(count_of(&c.bytes), i);
    }
    WaitForThreadpoolWaitCallbacks(wait, FALSE);
    CloseThreadpoolWait(wait);
    finish(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_operations),          WATCHED(test_several_started),       WATCHED(test_cancel),
        WATCHED(test_cancel_pending),      WATCHED(test_close_inside_callback), WATCHED(test_refusals),
        WATCHED(test_wait_for_descriptor), WATCHED(test_thread_ends_inside_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
