/* Win32 completion ports: results, what is written, last errors. */
#include "../nt/handles.h"

#include <unistd.h>

#include <interlock/io.h>
#include <interlock/win32.h>

#define UNTOUCHED 4711

#define expect(call, result, error)                                                                                    \
    do {                                                                                                               \
        SetLastError(UNTOUCHED);                                                                                       \
        assert_true((call) == (result));                                                                               \
        assert_int_equal(GetLastError(), (error));                                                                     \
    } while (0)

static HANDLE make_port(void)
{
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    check(port != NULL);
    return port;
}

static void test_create(void **state)
{
    HANDLE port = make_port();
    HANDLE event = make_event(NotificationEvent, FALSE, NULL);
    HANDLE closed = closed_handle();
    HANDLE descriptor;
    (void)state;
    expect(CreateIoCompletionPort(INVALID_HANDLE_VALUE, port, 0, 0), NULL, ERROR_INVALID_PARAMETER);
    expect(CreateIoCompletionPort(NULL, port, 0, 0), NULL, ERROR_INVALID_HANDLE);
    expect(CreateIoCompletionPort(closed, port, 0, 0), NULL, ERROR_INVALID_HANDLE);
    expect(CreateIoCompletionPort(event, port, 0, 0), NULL, ERROR_INVALID_HANDLE);
    expect(CreateIoCompletionPort(event, NULL, 0, 0), NULL, ERROR_INVALID_HANDLE);
    assert_int_equal(IoCreateDescriptorObject(&descriptor, IO_DESCRIPTOR_ALL_ACCESS, NULL, STDERR_FILENO,
                                              IO_DESCRIPTOR_WRITABLE),
                     STATUS_SUCCESS);
    expect(CreateIoCompletionPort(descriptor, port, 0, 0), NULL, ERROR_INVALID_PARAMETER);
    expect(CreateIoCompletionPort(descriptor, NULL, 0, 0), NULL, ERROR_INVALID_PARAMETER);
    close_handle(descriptor);
    SetLastError(UNTOUCHED);
    HANDLE other = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 7, 3);
    assert_non_null(other);
    assert_int_equal(GetLastError(), UNTOUCHED);
    close_handle(other);
    close_handle(event);
    close_handle(port);
}

static void test_post_and_get(void **state)
{
    HANDLE port = make_port();
    OVERLAPPED overlapped;
    LPOVERLAPPED got;
    ULONG_PTR key;
    DWORD bytes;
    (void)state;
    expect(PostQueuedCompletionStatus(port, 5, 6, &overlapped), TRUE, UNTOUCHED);
    expect(PostQueuedCompletionStatus(port, MAXULONG, MAXULONG_PTR, NULL), TRUE, UNTOUCHED);
    expect(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE), TRUE, UNTOUCHED);
    assert_int_equal(bytes, 5);
    assert_int_equal(key, 6);
    assert_ptr_equal(got, &overlapped);
    expect(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE), TRUE, UNTOUCHED);
    assert_int_equal(bytes, MAXULONG);
    assert_true(key == MAXULONG_PTR);
    assert_null(got);
    close_handle(port);
}

/* Without a packet only the overlapped pointer is written, as NULL. */
static void test_no_packet(void **state)
{
    HANDLE port = make_port();
    HANDLE closed = closed_handle();
    HANDLE query_only = same_object(port, IO_COMPLETION_QUERY_STATE);
    LPOVERLAPPED got = (LPOVERLAPPED)8;
    ULONG_PTR key = 9;
    DWORD bytes = 10;
    (void)state;
    expect(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0), FALSE, WAIT_TIMEOUT);
    assert_null(got);
    got = (LPOVERLAPPED)8;
    expect(GetQueuedCompletionStatus(port, &bytes, &key, &got, 1), FALSE, WAIT_TIMEOUT);
    assert_null(got);
    got = (LPOVERLAPPED)8;
    expect(GetQueuedCompletionStatus(closed, &bytes, &key, &got, 0), FALSE, ERROR_INVALID_HANDLE);
    assert_null(got);
    expect(GetQueuedCompletionStatus(query_only, &bytes, &key, &got, 0), FALSE, ERROR_ACCESS_DENIED);
    assert_int_equal(key, 9);
    assert_int_equal(bytes, 10);
    expect(PostQueuedCompletionStatus(closed, 0, 0, NULL), FALSE, ERROR_INVALID_HANDLE);
    expect(PostQueuedCompletionStatus(query_only, 0, 0, NULL), FALSE, ERROR_ACCESS_DENIED);
    expect(GetQueuedCompletionStatus(port, NULL, &key, &got, 0), FALSE, ERROR_NOACCESS);
    expect(GetQueuedCompletionStatus(port, &bytes, NULL, &got, 0), FALSE, ERROR_NOACCESS);
    expect(GetQueuedCompletionStatus(port, &bytes, &key, NULL, 0), FALSE, ERROR_NOACCESS);
    close_handle(query_only);
    close_handle(port);
}

/* An operation that failed: FALSE and its error, and everything is written. */
static void test_failed_operation(void **state)
{
    HANDLE port = make_port();
    OVERLAPPED overlapped;
    LPOVERLAPPED got = NULL;
    ULONG_PTR key = 0;
    DWORD bytes = 0;
    (void)state;
    check(NtSetIoCompletion(port, (PVOID)3, &overlapped, STATUS_END_OF_FILE, 4) == STATUS_SUCCESS);
    expect(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0), FALSE, ERROR_HANDLE_EOF);
    assert_int_equal(bytes, 4);
    assert_int_equal(key, 3);
    assert_ptr_equal(got, &overlapped);
    close_handle(port);
}

static void test_several(void **state)
{
    HANDLE port = make_port();
    OVERLAPPED_ENTRY entries[4];
    OVERLAPPED overlapped[3];
    ULONG removed = 9;
    (void)state;
    expect(GetQueuedCompletionStatusEx(port, entries, 4, &removed, 0, FALSE), FALSE, WAIT_TIMEOUT);
    assert_int_equal(removed, 0);
    expect(GetQueuedCompletionStatusEx(port, entries, 0, &removed, 0, FALSE), FALSE, ERROR_INVALID_PARAMETER);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_true(PostQueuedCompletionStatus(port, 10 + i, 20 + i, &overlapped[i]));
    }
    check(NtSetIoCompletion(port, NULL, NULL, STATUS_END_OF_FILE, 0) == STATUS_SUCCESS);
    expect(GetQueuedCompletionStatusEx(port, entries, 4, &removed, INFINITE, FALSE), TRUE, UNTOUCHED);
    assert_int_equal(removed, 4);
    for (ULONG i = 0; i < 3; i += 1) {
        assert_int_equal(entries[i].lpCompletionKey, 20 + i);
        assert_ptr_equal(entries[i].lpOverlapped, &overlapped[i]);
        assert_int_equal(entries[i].Internal, STATUS_SUCCESS);
        assert_int_equal(entries[i].dwNumberOfBytesTransferred, 10 + i);
    }
    assert_true(entries[3].Internal == (ULONG)STATUS_END_OF_FILE);
    close_handle(port);
}

static void test_alertable(void **state)
{
    HANDLE port = make_port();
    OVERLAPPED_ENTRY entry;
    ULONG removed;
    KAPC apc;
    (void)state;
    apcs_run = 0;
    queue_user_apc(&apc, KeGetCurrentThread(), count_apc, NULL);
    expect(GetQueuedCompletionStatusEx(port, &entry, 1, &removed, 1, FALSE), FALSE, WAIT_TIMEOUT);
    assert_int_equal(apcs_run, 0);
    expect(GetQueuedCompletionStatusEx(port, &entry, 1, &removed, INFINITE, TRUE), FALSE, WAIT_IO_COMPLETION);
    assert_int_equal(apcs_run, 1);
    KeAlertThread(KeGetCurrentThread(), UserMode);
    expect(GetQueuedCompletionStatusEx(port, &entry, 1, &removed, 1, TRUE), FALSE, WAIT_TIMEOUT);
    KeAlertThread(KeGetCurrentThread(), UserMode);
    assert_true(PostQueuedCompletionStatus(port, 0, 1, NULL));
    expect(GetQueuedCompletionStatusEx(port, &entry, 1, &removed, INFINITE, TRUE), TRUE, UNTOUCHED);
    assert_int_equal(removed, 1);
    close_handle(port);
}

typedef struct getter {
    actor actor;
    HANDLE port;
    BOOLEAN several;
    BOOL result;
    DWORD error;
    LPOVERLAPPED overlapped;
} getter;

static void get(void *argument)
{
    getter *g = argument;
    OVERLAPPED_ENTRY entry;
    ULONG_PTR key;
    ULONG number;
    g->overlapped = (LPOVERLAPPED)8;
    g->result = g->several ? GetQueuedCompletionStatusEx(g->port, &entry, 1, &number, INFINITE, TRUE)
                           : GetQueuedCompletionStatus(g->port, &number, &key, &g->overlapped, INFINITE);
    g->error = GetLastError();
}

static void test_close(void **state)
{
    HANDLE port = make_port();
    getter g[2] = {{.port = port}, {.port = port, .several = TRUE}};
    (void)state;
    for (ULONG i = 0; i < 2; i += 1) {
        start_actor(&g[i].actor);
        tell(&g[i].actor, get, &g[i]);
        await(is_committed(g[i].actor.thread));
    }
    close_handle(port);
    for (ULONG i = 0; i < 2; i += 1) {
        await(is_idle(&g[i].actor));
        assert_false(g[i].result);
        assert_int_equal(g[i].error, ERROR_ABANDONED_WAIT_0);
        end_actor(&g[i].actor);
    }
    assert_null(g[0].overlapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_create),
        WATCHED(test_post_and_get),
        WATCHED(test_no_packet),
        WATCHED(test_failed_operation),
        WATCHED(test_several),
        WATCHED(test_alertable),
        WATCHED(test_close),
    };
    return cmocka_run_group_tests_name("win32/completionport", tests, NULL, NULL);
}
