/* descriptor.c: file descriptors as objects, and objects as file descriptors. */
#include <windows.h>

#include <interlock/io.h>
#include <interlock/nt.h>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define LONG_ENOUGH 60000

static int ends[2]; /* what is written to ends[1] can be read from ends[0] */

static int open_pair(void **state)
{
    (void)state;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

static int close_pair(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static HANDLE object_of(int descriptor, ULONG events)
{
    HANDLE handle = NULL;
    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, descriptor, events), STATUS_SUCCESS);
    return handle;
}

static void send_byte(void)
{
    assert_int_equal(write(ends[1], "x", 1), 1);
}

static void receive_byte(void)
{
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 1);
}

static int is_readable(int descriptor, int milliseconds)
{
    struct pollfd poll_one = {.fd = descriptor, .events = POLLIN};
    return poll(&poll_one, 1, milliseconds) == 1;
}

static void an_object_is_signaled_while_its_descriptor_is_ready(void **state)
{
    (void)state;
    HANDLE handle = object_of(ends[0], IO_DESCRIPTOR_READABLE);
    ULONG ready;
    assert_int_equal(WaitForSingleObject(handle, 0), WAIT_TIMEOUT);
    assert_int_equal(WaitForSingleObject(handle, 5), WAIT_TIMEOUT);
    send_byte();
    assert_int_equal(WaitForSingleObject(handle, 0), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(handle, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(IoQueryDescriptorObject(handle, &ready, NULL), STATUS_SUCCESS);
    assert_int_equal(ready, IO_DESCRIPTOR_READABLE);
    receive_byte();
    assert_int_equal(WaitForSingleObject(handle, 0), WAIT_TIMEOUT);
    assert_true(CloseHandle(handle));
}

static void send_later(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    usleep(20000);
    send_byte();
}

static void a_waiter_sleeps_until_the_descriptor_is_ready(void **state)
{
    (void)state;
    HANDLE handle = object_of(ends[0], IO_DESCRIPTOR_READABLE);
    for (int round = 0; round < 3; round++) {
        test_threads *threads = start_threads(1, send_later, NULL);
        assert_int_equal(WaitForSingleObject(handle, LONG_ENOUGH), WAIT_OBJECT_0);
        join_threads(threads, 60);
        receive_byte();
    }
    assert_true(CloseHandle(handle));
}

static void it_is_one_of_several_objects(void **state)
{
    (void)state;
    HANDLE handles[2] = {CreateEventA(NULL, FALSE, FALSE, NULL), object_of(ends[0], IO_DESCRIPTOR_READABLE)};
    assert_int_equal(WaitForMultipleObjects(2, handles, FALSE, 0), WAIT_TIMEOUT);
    test_threads *threads = start_threads(1, send_later, NULL);
    assert_int_equal(WaitForMultipleObjects(2, handles, FALSE, LONG_ENOUGH), WAIT_OBJECT_0 + 1);
    join_threads(threads, 60);
    assert_int_equal(WaitForMultipleObjects(2, handles, TRUE, 5), WAIT_TIMEOUT);
    SetEvent(handles[0]);
    assert_int_equal(WaitForMultipleObjects(2, handles, TRUE, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(handles[0], 0), WAIT_TIMEOUT);
    receive_byte();
    assert_true(CloseHandle(handles[0]));
    assert_true(CloseHandle(handles[1]));
}

static void writable_and_closed_are_events_too(void **state)
{
    (void)state;
    HANDLE writable = object_of(ends[0], IO_DESCRIPTOR_WRITABLE);
    HANDLE readable = object_of(ends[0], IO_DESCRIPTOR_READABLE);
    ULONG ready;
    assert_int_equal(WaitForSingleObject(writable, 0), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(readable, 0), WAIT_TIMEOUT);
    close(ends[1]);
    assert_int_equal(WaitForSingleObject(readable, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(IoQueryDescriptorObject(readable, &ready, NULL), STATUS_SUCCESS);
    assert_true(ready & IO_DESCRIPTOR_CLOSED);
    ends[1] = dup(ends[0]);
    assert_true(CloseHandle(writable));
    assert_true(CloseHandle(readable));
}

static void the_original_descriptor_may_be_closed(void **state)
{
    (void)state;
    HANDLE handle = object_of(ends[0], IO_DESCRIPTOR_READABLE);
    int own;
    assert_int_equal(IoQueryDescriptorObject(handle, NULL, &own), STATUS_SUCCESS);
    assert_int_not_equal(own, ends[0]);
    assert_true(fcntl(own, F_GETFD) & FD_CLOEXEC);
    close(ends[0]);
    send_byte();
    assert_int_equal(WaitForSingleObject(handle, LONG_ENOUGH), WAIT_OBJECT_0);
    ends[0] = dup(own);
    assert_true(CloseHandle(handle));
    assert_int_equal(fcntl(own, F_GETFD), -1);
}

static void a_file_is_always_ready(void **state)
{
    (void)state;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    HANDLE handle = object_of(file, IO_DESCRIPTOR_READABLE);
    assert_int_equal(WaitForSingleObject(handle, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(CloseHandle(handle));
    close(file);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    HANDLE handle = NULL, event = CreateEventA(NULL, TRUE, FALSE, NULL);
    int descriptor;
    assert_int_equal(IoCreateDescriptorObject(NULL, IO_DESCRIPTOR_ALL_ACCESS, NULL, 0, 1), STATUS_ACCESS_VIOLATION);
    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, -1, IO_DESCRIPTOR_READABLE),
                     STATUS_INVALID_HANDLE);
    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, 0, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, 0, 0x8000),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(IoQueryDescriptorObject(event, NULL, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(IoExportObject(event, NULL, &descriptor), STATUS_ACCESS_VIOLATION);
    assert_int_equal(IoExportObject(event, &handle, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(IoExportObject(NULL, &handle, &descriptor), STATUS_INVALID_HANDLE);
    assert_int_equal(IoAcceptExport(event), STATUS_OBJECT_TYPE_MISMATCH);
    HANDLE mutex = CreateMutexA(NULL, FALSE, NULL);
    assert_int_equal(IoExportObject(mutex, &handle, &descriptor), STATUS_OBJECT_TYPE_MISMATCH);
    CloseHandle(mutex);
    CloseHandle(event);
}

/* Least of all the one that the last call read. */
static void what_is_no_descriptor_is_not_read(void **state)
{
    HANDLE handle, event = CreateEventA(NULL, TRUE, FALSE, NULL);
    char byte;
    DWORD done = 9;

    (void)state;
    assert_int_equal(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, ends[0], IO_DESCRIPTOR_READABLE),
                     STATUS_SUCCESS);
    send_byte();
    send_byte();
    assert_true(ReadFile(handle, &byte, 1, &done, NULL));
    assert_int_equal(done, 1);
    assert_false(ReadFile(event, &byte, 1, &done, NULL));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
    assert_int_equal(done, 0);
    receive_byte();
    CloseHandle(handle);
    CloseHandle(event);
}

static void an_exported_event_is_taken_once_for_each_accept(void **state)
{
    (void)state;
    HANDLE event = CreateEventA(NULL, FALSE, FALSE, NULL), export;
    int descriptor;
    assert_int_equal(IoExportObject(event, &export, &descriptor), STATUS_SUCCESS);
    assert_false(is_readable(descriptor, 0));
    assert_int_equal(IoAcceptExport(export), STATUS_TIMEOUT);
    SetEvent(event);
    assert_true(is_readable(descriptor, LONG_ENOUGH));
    assert_int_equal(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
    SetEvent(event);
    assert_int_equal(IoAcceptExport(export), STATUS_SUCCESS);
    assert_true(is_readable(descriptor, LONG_ENOUGH));
    assert_int_equal(IoAcceptExport(export), STATUS_SUCCESS);
    assert_false(is_readable(descriptor, 0));
    assert_int_equal(IoAcceptExport(export), STATUS_TIMEOUT);
    assert_true(CloseHandle(export));
    assert_true(CloseHandle(event));
}

static void a_manual_reset_event_stays_readable(void **state)
{
    (void)state;
    HANDLE event = CreateEventA(NULL, TRUE, TRUE, NULL), export;
    int descriptor;
    assert_int_equal(IoExportObject(event, &export, &descriptor), STATUS_SUCCESS);
    for (int round = 0; round < 3; round++) {
        assert_true(is_readable(descriptor, LONG_ENOUGH));
        assert_int_equal(IoAcceptExport(export), STATUS_SUCCESS);
    }
    ResetEvent(event);
    assert_int_equal(IoAcceptExport(export), STATUS_SUCCESS);
    assert_int_equal(IoAcceptExport(export), STATUS_TIMEOUT);
    assert_true(CloseHandle(event));
    assert_true(CloseHandle(export));
}

static void what_was_not_accepted_is_given_back(void **state)
{
    (void)state;
    HANDLE event = CreateEventA(NULL, FALSE, TRUE, NULL), semaphore = CreateSemaphoreA(NULL, 2, 2, NULL), export;
    int descriptor;
    assert_int_equal(IoExportObject(event, &export, &descriptor), STATUS_SUCCESS);
    assert_true(is_readable(descriptor, LONG_ENOUGH));
    assert_true(CloseHandle(export));
    assert_int_equal(WaitForSingleObject(event, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(IoExportObject(semaphore, &export, &descriptor), STATUS_SUCCESS);
    assert_true(is_readable(descriptor, LONG_ENOUGH));
    assert_true(CloseHandle(export));
    assert_int_equal(WaitForSingleObject(semaphore, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(semaphore, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(WaitForSingleObject(semaphore, 0), WAIT_TIMEOUT);
    assert_true(CloseHandle(event));
    assert_true(CloseHandle(semaphore));
}

static void a_process_and_a_descriptor_object_can_be_exported(void **state)
{
    (void)state;
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION child;
    char line[] = "true";
    HANDLE readable = object_of(ends[0], IO_DESCRIPTOR_READABLE), exports[2];
    int descriptors[2];
    assert_true(CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &child));
    assert_int_equal(IoExportObject(child.hProcess, &exports[0], &descriptors[0]), STATUS_SUCCESS);
    assert_int_equal(IoExportObject(readable, &exports[1], &descriptors[1]), STATUS_SUCCESS);
    assert_true(is_readable(descriptors[0], LONG_ENOUGH));
    assert_false(is_readable(descriptors[1], 0));
    send_byte();
    assert_true(is_readable(descriptors[1], LONG_ENOUGH));
    receive_byte();
    CloseHandle(child.hProcess);
    CloseHandle(child.hThread);
    CloseHandle(readable);
    CloseHandle(exports[0]);
    CloseHandle(exports[1]);
}

static HANDLE raced;

static void set_often(void *argument, unsigned index)
{
    (void)argument;
    (void)index;
    for (unsigned round = 0; round < test_rounds(20000); round++) {
        SetEvent(raced);
    }
}

/* Exports are opened and closed while the event is being set; at the end the event can be taken by a plain wait. */
static void closing_an_export_against_signals_loses_nothing(void **state)
{
    (void)state;
    raced = CreateEventA(NULL, FALSE, FALSE, NULL);
    test_threads *threads = start_threads(1, set_often, NULL);
    for (unsigned round = 0; round < test_rounds(5000); round++) {
        HANDLE export;
        int descriptor;
        assert_int_equal(IoExportObject(raced, &export, &descriptor), STATUS_SUCCESS);
        if (round % 3 == 0) {
            IoAcceptExport(export);
        }
        assert_true(CloseHandle(export));
    }
    join_threads(threads, 120);
    SetEvent(raced);
    assert_int_equal(WaitForSingleObject(raced, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_true(CloseHandle(raced));
}

static void closing_handles_against_readiness(void **state)
{
    (void)state;
    for (unsigned round = 0; round < test_rounds(2000); round++) {
        HANDLE handle = object_of(ends[0], IO_DESCRIPTOR_READABLE);
        WaitForSingleObject(handle, 0);
        send_byte();
        if (round % 2 == 0) {
            assert_int_equal(WaitForSingleObject(handle, LONG_ENOUGH), WAIT_OBJECT_0);
        }
        assert_true(CloseHandle(handle));
        receive_byte();
    }
}

static void a_forked_child_watches_for_itself(void **state)
{
    (void)state;
    HANDLE handle = object_of(ends[0], IO_DESCRIPTOR_READABLE);
    int status, told[2];
    char byte;
    assert_int_equal(WaitForSingleObject(handle, 5), WAIT_TIMEOUT);
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        DWORD early = WaitForSingleObject(handle, 5);
        if (write(told[1], "x", 1) != 1) {
            _exit(2);
        }
        DWORD late = WaitForSingleObject(handle, LONG_ENOUGH);
        _exit(early == WAIT_TIMEOUT && late == WAIT_OBJECT_0 ? 0 : 1);
    }
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    usleep(20000); /* so that it sleeps, most of the time */
    send_byte();
    assert_int_equal(WaitForSingleObject(handle, LONG_ENOUGH), WAIT_OBJECT_0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    receive_byte();
    assert_int_equal(WaitForSingleObject(handle, 5), WAIT_TIMEOUT);
    assert_true(CloseHandle(handle));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_object_is_signaled_while_its_descriptor_is_ready, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(a_waiter_sleeps_until_the_descriptor_is_ready, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(it_is_one_of_several_objects, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(writable_and_closed_are_events_too, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(the_original_descriptor_may_be_closed, open_pair, close_pair),
        cmocka_unit_test(a_file_is_always_ready),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test_setup_teardown(what_is_no_descriptor_is_not_read, open_pair, close_pair),
        cmocka_unit_test(an_exported_event_is_taken_once_for_each_accept),
        cmocka_unit_test(a_manual_reset_event_stays_readable),
        cmocka_unit_test(what_was_not_accepted_is_given_back),
        cmocka_unit_test_setup_teardown(a_process_and_a_descriptor_object_can_be_exported, open_pair, close_pair),
        cmocka_unit_test(closing_an_export_against_signals_loses_nothing),
        cmocka_unit_test_setup_teardown(closing_handles_against_readiness, open_pair, close_pair),
        cmocka_unit_test_setup_teardown(a_forked_child_watches_for_itself, open_pair, close_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
