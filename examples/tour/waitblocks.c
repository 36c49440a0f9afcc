/*
 * Figure 8-39, from a live process: thread 1 waits for object B, thread 2 for A and B. Each object heads a list of wait
 * blocks, and each block knows its thread and its object. The thread's side of it is private: this program looks at it
 * as a debugger would.
 */
#include "tour.h"

#include "ke/ki.h"

static KEVENT object_a, object_b;
static PVOID thread_1, thread_2;

static void wait_for_b(PVOID unused)
{
    UNREFERENCED_PARAMETER(unused);
    KeWaitForSingleObject(&object_b, UserRequest, UserMode, FALSE, NULL);
}

static void wait_for_a_and_b(PVOID unused)
{
    PVOID objects[] = {&object_a, &object_b};

    UNREFERENCED_PARAMETER(unused);
    KeWaitForMultipleObjects(2, objects, WaitAll, UserRequest, UserMode, FALSE, NULL, NULL);
}

static void await_committed(PKTHREAD thread)
{
    ULONG state;

    do {
        sleep_for(1);
        state = __atomic_load_n(&thread->WaitRegister, __ATOMIC_ACQUIRE);
    } while (!(state & KI_WAIT_ACTIVE) || (state & KI_WAIT_STATE_MASK) != WaitCommitted);
}

static const char *name_of(PVOID pointer)
{
    if (pointer == &object_a)
        return "object A";
    if (pointer == &object_b)
        return "object B";
    return pointer == thread_1 ? "thread 1" : pointer == thread_2 ? "thread 2" : "?";
}

static void print_block(const KWAIT_BLOCK *block)
{
    PKTHREAD thread = block->Thread;

    printf("    wait block %u of %s: %s, key %u, %s, for %s\n", (unsigned)(block - thread->WaitBlockList),
           name_of(thread), block->WaitType == WaitAll ? "WaitAll" : "WaitAny", block->WaitKey,
           block->BlockState == WaitBlockActive ? "WaitBlockActive" : "not active", name_of(block->Object));
}

static unsigned print_object(KEVENT *event)
{
    PLIST_ENTRY head = &event->Header.WaitListHead;
    unsigned count = 0;

    printf("%s: signal state %d, wait list:\n", name_of(event), (int)KeReadStateEvent(event));
    for (PLIST_ENTRY entry = head->Flink; entry != head; entry = entry->Flink, count++) {
        expect(entry->Flink->Blink == entry && entry->Blink->Flink == entry);
        print_block(CONTAINING_RECORD(entry, KWAIT_BLOCK, WaitListEntry));
    }
    if (count == 0)
        printf("    empty\n");
    return count;
}

static void print_thread(PKTHREAD thread)
{
    printf("%s: WaitCommitted, wait blocks for", name_of(thread));
    for (unsigned i = 0; i < thread->WaitBlockCount; i++) {
        expect(thread->WaitBlockList[i].Thread == thread);
        printf(" %s%s", name_of(thread->WaitBlockList[i].Object), i + 1 < thread->WaitBlockCount ? "," : "\n");
    }
}

int main(void)
{
    KeInitializeEvent(&object_a, SynchronizationEvent, FALSE);
    KeInitializeEvent(&object_b, SynchronizationEvent, FALSE);
    thread_1 = start_thread(wait_for_b, NULL);
    await_committed(thread_1);
    thread_2 = start_thread(wait_for_a_and_b, NULL);
    await_committed(thread_2);

    expect(print_object(&object_a) == 1);
    expect(print_object(&object_b) == 2);
    print_thread(thread_1);
    print_thread(thread_2);

    printf("\nA is set: thread 2 needs B as well and stays. B is set: thread 1 was first, and takes it.\n");
    KeSetEvent(&object_a, EVENT_INCREMENT, FALSE);
    KeSetEvent(&object_b, EVENT_INCREMENT, FALSE);
    join_thread(thread_1);
    expect(print_object(&object_a) == 1);
    expect(print_object(&object_b) == 1);

    KeSetEvent(&object_b, EVENT_INCREMENT, FALSE);
    join_thread(thread_2);
    printf("\nB is set again: thread 2 has both.\n");
    expect(print_object(&object_a) + print_object(&object_b) == 0);
    return 0;
}
