/* Figure 8-39 as a live process: thread 1 waits for object B, thread 2 for both A and B. */
#include <windows.h>

#include "live.h"

static HANDLE object_a, object_b;

static void thread_1(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    call_me("thread 1");
    expect(WaitForSingleObject(object_b, INFINITE) == WAIT_OBJECT_0);
}

static void thread_2(PVOID unused)
{
    HANDLE objects[] = {object_a, object_b};

    UNREFERENCED_PARAMETER(unused);
    call_me("thread 2");
    expect(WaitForMultipleObjects(2, objects, TRUE, INFINITE) == WAIT_OBJECT_0);
}

int main(void)
{
    LARGE_INTEGER at_once = {.QuadPart = 0};
    PVOID first, second;

    object_a = CreateEventA(NULL, FALSE, FALSE, "A");
    object_b = CreateEventA(NULL, FALSE, FALSE, "B");
    first = start_thread(thread_1, NULL);
    await_committed(first, UserRequest);
    second = start_thread(thread_2, NULL);
    await_committed(second, UserRequest);
    stand_still();

    /* Thread 2 also needs B and keeps waiting. Thread 1 queued for B first and takes it: thread 2 keeps waiting. */
    SetEvent(object_a);
    SetEvent(object_b);
    join_thread(first);
    expect(KeWaitForSingleObject(second, Executive, KernelMode, FALSE, &at_once) == STATUS_TIMEOUT);
    SetEvent(object_b);
    join_thread(second);
    expect(WaitForSingleObject(object_a, 0) == WAIT_TIMEOUT && WaitForSingleObject(object_b, 0) == WAIT_TIMEOUT);
    return 0;
}
