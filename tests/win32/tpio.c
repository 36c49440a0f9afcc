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

/* BindIoCompletionCallback: the routine has no context. */
static channel bound;
static volatile ULONG bound_inside;

static void WINAPI bound_ready(DWORD error, DWORD bytes, LPOVERLAPPED overlapped)
{
    check(error == NO_ERROR && bytes == 0 && overlapped == NULL);
    check(add_one(&bound_inside) == 1);
    take(&bound);
    if (bound.close) {
        NtClose(bound.handle);
    }
    add_one(&bound.runs);
    subtract_one(&bound_inside);
    set_event(bound.ran);
}

static void prepare_bound(void)
{
    bound = (channel){.ran = make_event(SynchronizationEvent)};
    assert_int_equal(pipe(bound.ends), 0);
    assert_int_equal(
        IoCreateDescriptorObject(&bound.handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, bound.ends[0], IO_DESCRIPTOR_READABLE),
        STATUS_SUCCESS);
    assert_true(BindIoCompletionCallback(bound.handle, bound_ready, 0));
}

/* The object is closed: no callback follows. */
static void finish_bound(ULONG runs)
{
    put(&bound);
    pause_briefly();
    assert_int_equal(count_of(&bound.runs), runs);
    NtClose(bound.ran);
    close(bound.ends[0]);
    close(bound.ends[1]);
}

static void test_bind(void **state)
{
    (void)state;
    prepare_bound();
    for (ULONG i = 1; i <= 20; i += 1) {
        put(&bound);
        wait_event(bound.ran);
        assert_int_equal(count_of(&bound.runs), i);
    }
    SetLastError(0);
    assert_false(BindIoCompletionCallback(bound.handle, bound_ready, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    await(count_of(&bound_inside) == 0);
    NtClose(bound.handle);
    finish_bound(20);
}

/* One of two handles may be closed. The end of the file stays ready: the routine closes the handle. */
static void test_bind_until_closed(void **state)
{
    HANDLE other;
    (void)state;
    prepare_bound();
    assert_int_equal(
        NtDuplicateObject(NtCurrentProcess(), bound.handle, NtCurrentProcess(), &other, 0, 0, DUPLICATE_SAME_ACCESS),
        STATUS_SUCCESS);
    NtClose(bound.handle);
    bound.handle = other;
    put(&bound);
    wait_event(bound.ran);
    assert_int_equal(count_of(&bound.runs), 1);
    bound.close = TRUE;
    put(&bound);
    wait_event(bound.ran);
    assert_int_equal(count_of(&bound.runs), 2);
    finish_bound(2);
}

static void test_bind_refusals(void **state)
{
    HANDLE event = make_event(SynchronizationEvent);
    (void)state;
    SetLastError(0);
    assert_false(BindIoCompletionCallback(event, bound_ready, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    SetLastError(0);
    assert_false(BindIoCompletionCallback(event, bound_ready, 1));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    prepare_bound();
    HANDLE second;
    assert_int_equal(
        IoCreateDescriptorObject(&second, IO_DESCRIPTOR_ALL_ACCESS, NULL, bound.ends[0], IO_DESCRIPTOR_READABLE),
        STATUS_SUCCESS);
    SetLastError(0);
    assert_false(BindIoCompletionCallback(second, NULL, 0));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    NtClose(second);
    NtClose(bound.handle);
    finish_bound(0);
    NtClose(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_operations),
        WATCHED(test_several_started),
        WATCHED(test_cancel),
        WATCHED(test_cancel_pending),
        WATCHED(test_close_inside_callback),
        WATCHED(test_refusals),
        WATCHED(test_wait_for_descriptor),
        WATCHED(test_thread_ends_inside_callback),
        WATCHED(test_bind),
        WATCHED(test_bind_until_closed),
        WATCHED(test_bind_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
