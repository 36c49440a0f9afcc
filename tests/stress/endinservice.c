/*
 * Threads are ended in the middle of services that have looked up a handle. The service comes to its end first: no
 * reference is lost, whatever the moment was.
 */
#include "stress.h"

#include <windows.h>

#include <interlock/nt.h>

#include "ob/obp.h"

enum { EVENT, PORT, TIMER, SEMAPHORE, OBJECTS };

static HANDLE handles[OBJECTS];
static PVOID objects[OBJECTS];

static DWORD WINAPI ask_until_ended(LPVOID argument)
{
    IO_COMPLETION_BASIC_INFORMATION port;
    TIMER_BASIC_INFORMATION timer;
    SEMAPHORE_BASIC_INFORMATION semaphore;

    (void)argument;
    for (;;) {
        SetEvent(handles[EVENT]);
        NtQueryIoCompletion(handles[PORT], IoCompletionBasicInformation, &port, sizeof(port), NULL);
        NtQueryTimer(handles[TIMER], TimerBasicInformation, &timer, sizeof(timer), NULL);
        NtQuerySemaphore(handles[SEMAPHORE], SemaphoreBasicInformation, &semaphore, sizeof(semaphore), NULL);
        WaitForMultipleObjects(OBJECTS, handles, FALSE, 0);
    }
    return 0;
}

static void end_many(void *argument, unsigned index)
{
    test_random random;

    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = test_rounds(800); i > 0; i--) {
        HANDLE thread = CreateThread(NULL, 0x40000, ask_until_ended, NULL, 0, NULL);

        require(thread != NULL);
        for (uint32_t pause = random_below(&random, 4); pause > 0; pause--)
            sched_yield();
        spin_for(random_below(&random, 2000));
        require(TerminateThread(thread, 1));
        require(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
        require(CloseHandle(thread));
    }
}

static void begin(void)
{
    handles[EVENT] = CreateEventA(NULL, FALSE, FALSE, NULL);
    handles[PORT] = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    handles[TIMER] = CreateWaitableTimerA(NULL, FALSE, NULL);
    handles[SEMAPHORE] = CreateSemaphoreA(NULL, 0, 1, NULL);
    for (int i = 0; i < OBJECTS; i++)
        assert_int_equal(ObReferenceObjectByHandle(handles[i], 0, NULL, KernelMode, &objects[i], NULL), 0);
}

static void no_reference_is_lost(void **state)
{
    (void)state;
    begin();
    run_threads(2, HANG_SECONDS, end_many, NULL);
    for (int i = 0; i < OBJECTS; i++) {
        assert_true(CloseHandle(handles[i]));
        assert_int_equal(ObpHeaderOf(objects[i])->PointerCount, 1);
        ObDereferenceObject(objects[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_reference_is_lost),
    };

    return cmocka_run_group_tests_name("stress/endinservice", tests, NULL, NULL);
}
