/*
 * Descriptor objects while data arrives and is read. Data that a thread has read is not reported to it again; available
 * data is seen by every waiter; a watch that several threads begin at once is started once.
 */
#include "stress.h"

#include <windows.h>

#include <interlock/io.h>

#include <fcntl.h>
#include <unistd.h>

#define THREADS 4

static HANDLE readable_object(int descriptor)
{
    HANDLE handle = NULL;

    require(IoCreateDescriptorObject(&handle, IO_DESCRIPTOR_ALL_ACCESS, NULL, descriptor, IO_DESCRIPTOR_READABLE) == 0);
    return handle;
}

static void one_byte_at_a_time(void *argument, unsigned index)
{
    int ends[2];
    HANDLE readable;
    char byte;

    (void)argument;
    require(pipe(ends) == 0);
    readable = readable_object(ends[0]);
    for (unsigned long i = test_rounds(3000); i > 0; i--) {
        require(write(ends[1], "x", 1) == 1);
        require(WaitForSingleObject(readable, (i + index) % 2 ? INFINITE : 0) == WAIT_OBJECT_0);
        require(read(ends[0], &byte, 1) == 1);
        require(WaitForSingleObject(readable, i % 16 == 0) == WAIT_TIMEOUT);
    }
    require(CloseHandle(readable));
    close(ends[0]);
    close(ends[1]);
}

static void nothing_is_announced_twice(void **state)
{
    (void)state;
    run_threads(THREADS, HANG_SECONDS, one_byte_at_a_time, NULL);
}

/* One thread writes bytes; the others wait for them and read without blocking. Each byte is read once. */
static struct {
    int ends[2];
    HANDLE readable;
    unsigned long sent, received, target;
} shared;

static void share(void *argument, unsigned index)
{
    char byte;

    (void)argument;
    if (index == 0) {
        for (; shared.sent < shared.target; shared.sent++) {
            require(write(shared.ends[1], "x", 1) == 1);
            if (shared.sent % 4 == 0)
                await(load(&shared.received) + 2 >= shared.sent);
        }
        return;
    }
    while (load(&shared.received) < shared.target) {
        DWORD result = WaitForSingleObject(shared.readable, 20);

        require(result == WAIT_OBJECT_0 || result == WAIT_TIMEOUT);
        if (read(shared.ends[0], &byte, 1) == 1)
            add(&shared.received, 1);
    }
}

static void every_byte_is_read_once(void **state)
{
    (void)state;
    shared.target = test_rounds(10000);
    assert_int_equal(pipe2(shared.ends, O_NONBLOCK), 0);
    shared.readable = readable_object(shared.ends[0]);
    run_threads(THREADS, HANG_SECONDS, share, NULL);
    assert_int_equal(shared.received, shared.target);
    assert_true(CloseHandle(shared.readable));
    close(shared.ends[0]);
    close(shared.ends[1]);
}

/* Many threads begin to wait for a new object at once: no data is there, and none is reported. */
static struct {
    HANDLE readable;
    unsigned long arrived, left;
} fresh;

static void wait_for_nothing(void *argument, unsigned index)
{
    unsigned long rounds = *(unsigned long *)argument;
    int ends[2];

    if (index == 0)
        require(pipe(ends) == 0);
    for (unsigned long i = 1; i <= rounds; i++) {
        if (index == 0)
            fresh.readable = readable_object(ends[0]);
        add(&fresh.arrived, 1);
        await(load(&fresh.arrived) >= i * THREADS);
        require(WaitForSingleObject(fresh.readable, 0) == WAIT_TIMEOUT);
        add(&fresh.left, 1);
        await(load(&fresh.left) >= i * THREADS);
        if (index == 0)
            require(CloseHandle(fresh.readable));
    }
    if (index == 0) {
        close(ends[0]);
        close(ends[1]);
    }
}

static void many_begin_to_watch_at_once(void **state)
{
    unsigned long rounds = test_rounds(3000);

    (void)state;
    run_threads(THREADS, HANG_SECONDS, wait_for_nothing, &rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_announced_twice),
        cmocka_unit_test(every_byte_is_read_once),
        cmocka_unit_test(many_begin_to_watch_at_once),
    };

    return cmocka_run_group_tests_name("stress/descriptors", tests, NULL, NULL);
}
