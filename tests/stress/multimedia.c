/* Timers of winmm that are killed while their callbacks run: afterwards none runs or begins. Also callbacks that are
   bound to descriptors whose handles are closed. */
#include "../win32/tptest.h"

#include <interlock/io.h>

typedef struct beat {
    volatile ULONG runs;
    volatile ULONG over;
} beat;

static void CALLBACK note(UINT id, UINT message, DWORD_PTR user, DWORD_PTR first, DWORD_PTR second)
{
    beat *b = (beat *)user;
    (void)message;
    (void)first;
    (void)second;
    check(id != 0 && !count_of(&b->over));
    add_one(&b->runs);
    check(!count_of(&b->over));
}

static void kill_timers(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(300);
    test_random random;
    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = 0; i < rounds; i += 1) {
        BOOLEAN periodic = random_below(&random, 2) != 0;
        beat b = {.runs = 0};
        UINT id = timeSetEvent(1, 0, note, (DWORD_PTR)&b, (periodic ? TIME_PERIODIC : 0) | TIME_KILL_SYNCHRONOUS);
        check(id != 0);
        if (random_below(&random, 4) == 0) {
            await(count_of(&b.runs) >= 1);
        }
        /* a timer without a period is gone after its callback */
        check(timeKillEvent(id) == TIMERR_NOERROR || (!periodic && count_of(&b.runs) == 1));
        check(periodic || count_of(&b.runs) <= 1);
        b.over = 1;
    }
}

static void test_kill(void **state)
{
    (void)state;
    run_threads(4, 120, kill_timers, NULL);
}

static volatile ULONG taken;

/* It leaves the data where it is: the descriptor stays ready until the handle is closed. */
static void WINAPI take(DWORD error, DWORD bytes, LPOVERLAPPED overlapped)
{
    check(error == NO_ERROR && bytes == 0 && overlapped == NULL);
    add_one(&taken);
}

static void bind_and_close(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(200);
    test_random random;
    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = 0; i < rounds; i += 1) {
        HANDLE handle;
        int ends[2];
        check(pipe(ends) == 0);
        check(NT_SUCCESS(IoCreateDescriptorObject(&handle, SYNCHRONIZE, NULL, ends[0], IO_DESCRIPTOR_READABLE)));
        check(BindIoCompletionCallback(handle, take, 0));
        check(write(ends[1], "x", 1) == 1);
        if (random_below(&random, 2)) {
            pause_briefly();
        }
        check(NT_SUCCESS(NtClose(handle)));
        close(ends[0]);
        close(ends[1]);
    }
}

/* All bindings have ended, though their descriptors were ready. */
static void test_bind(void **state)
{
    ULONG last;
    (void)state;
    run_threads(3, 120, bind_and_close, NULL);
    do {
        last = count_of(&taken);
        pause_briefly();
    } while (count_of(&taken) != last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_bind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
