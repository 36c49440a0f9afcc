/*
 * Figure 8-39: thread 1 waits for object B, thread 2 for A and B, both on a processor's list of waiting threads.
 * The wait blocks are shown as the kernel debugger shows them, and every link is followed both ways.
 */
#include "waittest.h"

#include <interlock/ps.h>

typedef struct figure {
    KEVENT a, b;
    waiter thread1, thread2;
} figure;

static void build(figure *f)
{
    KeInitializeEvent(&f->a, SynchronizationEvent, FALSE);
    KeInitializeEvent(&f->b, SynchronizationEvent, FALSE);
    start_waiters(&f->thread1, 1);
    start_waiters(&f->thread2, 1);
    f->thread1.call = (wait_call){.count = 1, .object = {&f->b}, .mode = UserMode, .reason = UserRequest};
    f->thread2.call =
        (wait_call){.count = 2, .object = {&f->a, &f->b}, .all = TRUE, .mode = UserMode, .reason = UserRequest};
    begin_wait(&f->thread1);
    begin_wait(&f->thread2);
}

static void take_apart(figure *f)
{
    end_waiters(&f->thread1, 1);
    end_waiters(&f->thread2, 1);
}

/* How !thread and dx print it; every line begins as a comment of the test's output. */

static const char *object_name(PVOID object)
{
    switch (KI_TYPE(KiReadSettledHeader(object))) {
    case EventNotificationObject:
        return "NotificationEvent";
    case EventSynchronizationObject:
        return "SynchronizationEvent";
    default:
        return "?";
    }
}

static void show_block(FILE *out, const KWAIT_BLOCK *block)
{
    fprintf(out, "# (nt!_KWAIT_BLOCK*)0x%016llx\n", (unsigned long long)(ULONG_PTR)block);
    fprintf(out, "#     [+0x000] WaitListEntry    : [0x%016llx - 0x%016llx]\n",
            (unsigned long long)(ULONG_PTR)block->WaitListEntry.Flink,
            (unsigned long long)(ULONG_PTR)block->WaitListEntry.Blink);
    fprintf(out, "#     [+0x010] WaitType         : 0x%x\n", block->WaitType);
    fprintf(out, "#     [+0x011] BlockState       : 0x%x\n", block->BlockState);
    fprintf(out, "#     [+0x012] WaitKey          : 0x%x\n", block->WaitKey);
    fprintf(out, "#     [+0x018] Thread           : 0x%016llx\n", (unsigned long long)(ULONG_PTR)block->Thread);
    fprintf(out, "#     [+0x020] Object           : 0x%016llx\n", (unsigned long long)(ULONG_PTR)block->Object);
}

static void show_thread(FILE *out, PKTHREAD thread)
{
    fprintf(out, "# THREAD %016llx  Cid %04x.%04x  WAIT: (%s) %s %s\n", (unsigned long long)(ULONG_PTR)thread,
            HandleToULong(PsGetCurrentProcessId()), thread->ThreadId,
            thread->WaitReason == UserRequest ? "UserRequest" : "?",
            thread->WaitMode == UserMode ? "UserMode" : "KernelMode",
            thread->Alertable ? "Alertable" : "Non-Alertable");
    for (ULONG i = 0; i < thread->WaitBlockCount; i += 1) {
        PVOID object = thread->WaitBlockList[i].Object;
        fprintf(out, "#     %016llx  %s\n", (unsigned long long)(ULONG_PTR)object, object_name(object));
    }
    fprintf(out, "#     WaitRegister.State : %u  WaitIrql : %u  WaitMode : %d  WaitTime : 0x%x  WaitBlockCount : 0x%x"
                 "  WaitReason : 0x%x\n",
            thread->WaitRegister & KI_WAIT_STATE_MASK, thread->WaitIrql, thread->WaitMode, thread->WaitTime,
            thread->WaitBlockCount, thread->WaitReason);
    for (ULONG i = 0; i < thread->WaitBlockCount; i += 1) {
        show_block(out, &thread->WaitBlockList[i]);
    }
}

static ULONG occurrences(const char *text, const char *of)
{
    ULONG count = 0;
    for (const char *at = strstr(text, of); at != NULL; at = strstr(at + 1, of)) {
        count += 1;
    }
    return count;
}

static void test_shown_as_in_the_debugger(void **state)
{
    figure f;
    char *text = NULL;
    size_t size = 0;
    (void)state;
    build(&f);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    show_thread(out, f.thread1.actor.thread);
    show_thread(out, f.thread2.actor.thread);
    fclose(out);
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        print_message("%.*s", (int)(end + 1 - line), line);
    }
    assert_int_equal(occurrences(text, "WAIT: (UserRequest) UserMode Non-Alertable"), 2);
    assert_int_equal(occurrences(text, "  SynchronizationEvent\n"), 3);
    assert_int_equal(occurrences(text, "WaitRegister.State : 1  WaitIrql : 0  WaitMode : 1 "), 2);
    assert_int_equal(occurrences(text, "WaitBlockCount : 0x1  WaitReason : 0x6"), 1);
    assert_int_equal(occurrences(text, "WaitBlockCount : 0x2  WaitReason : 0x6"), 1);
    assert_int_equal(occurrences(text, "WaitType         : 0x1\n"), 1); /* WaitAny */
    assert_int_equal(occurrences(text, "WaitType         : 0x0\n"), 2); /* WaitAll */
    assert_int_equal(occurrences(text, "BlockState       : 0x4\n"), 3); /* WaitBlockActive */
    free(text);
    KeSetEvent(&f.b, 0, FALSE);
    KeSetEvent(&f.a, 0, FALSE);
    KeSetEvent(&f.b, 0, FALSE);
    take_apart(&f);
}

/* Object to blocks, forwards and backwards, and from each block to its thread and back to the object. */
static void check_object(PKEVENT object, PKWAIT_BLOCK expected[], ULONG count)
{
    PLIST_ENTRY head = &object->Header.WaitListHead;
    PLIST_ENTRY link = head;
    for (ULONG i = 0; i < count; i += 1) {
        assert_ptr_equal(link->Flink, &expected[i]->WaitListEntry);
        assert_ptr_equal(link->Flink->Blink, link);
        link = link->Flink;
        PKWAIT_BLOCK block = CONTAINING_RECORD(link, KWAIT_BLOCK, WaitListEntry);
        assert_ptr_equal(block->Object, object);
        assert_in_range((ULONG_PTR)block, (ULONG_PTR)block->Thread->WaitBlockList,
                        (ULONG_PTR)(block->Thread->WaitBlockList + block->Thread->WaitBlockCount - 1));
    }
    assert_ptr_equal(link->Flink, head);
    assert_ptr_equal(head->Blink, link);
    assert_int_equal(object->Header.Type,
                     EventSynchronizationObject | (count != 0 ? KOBJECT_WAITERS_BIT : 0));
}

static void check_block(PKWAIT_BLOCK block, PKTHREAD thread, PVOID object, UCHAR type, USHORT key)
{
    assert_ptr_equal(block->Thread, thread);
    assert_ptr_equal(block->Object, object);
    assert_int_equal(block->WaitType, type);
    assert_int_equal(block->WaitKey, key);
    assert_int_equal(block->BlockState, WaitBlockActive);
}

static void check_thread(PKTHREAD thread, UCHAR blocks)
{
    assert_int_equal(wait_state(thread), WaitCommitted);
    assert_int_equal(thread->State, Waiting);
    assert_ptr_equal(thread->WaitBlockList, thread->WaitBlock);
    assert_int_equal(thread->WaitBlockCount, blocks);
    assert_int_equal(thread->WaitReason, UserRequest);
    assert_int_equal(thread->WaitMode, UserMode);
    assert_int_equal(thread->WaitIrql, PASSIVE_LEVEL);
    assert_false(thread->Alertable);
    assert_true(KiIsOnWaitList(thread));
    assert_true(thread->WaitProcessor < KeNumberProcessors);
}

static void test_every_link(void **state)
{
    figure f;
    (void)state;
    build(&f);
    PKTHREAD thread1 = f.thread1.actor.thread, thread2 = f.thread2.actor.thread;
    PKWAIT_BLOCK on_a[] = {&thread2->WaitBlock[0]};
    PKWAIT_BLOCK on_b[] = {&thread1->WaitBlock[0], &thread2->WaitBlock[1]};
    check_thread(thread1, 1);
    check_thread(thread2, 2);
    check_block(&thread1->WaitBlock[0], thread1, &f.b, WaitAny, 0);
    check_block(&thread2->WaitBlock[0], thread2, &f.a, WaitAll, 0);
    check_block(&thread2->WaitBlock[1], thread2, &f.b, WaitAll, 1);
    check_object(&f.a, on_a, 1);
    check_object(&f.b, on_b, 2);

    /* Object A alone releases no thread, object B the thread that waits only for it. */
    KeSetEvent(&f.a, 0, FALSE);
    assert_true(still_waits(&f.thread1));
    assert_true(still_waits(&f.thread2));
    check_object(&f.a, on_a, 1);
    KeSetEvent(&f.b, 0, FALSE);
    assert_int_equal(end_wait(&f.thread1), STATUS_WAIT_0);
    assert_true(still_waits(&f.thread2));
    assert_int_equal(KeReadStateEvent(&f.a), 1);
    assert_int_equal(KeReadStateEvent(&f.b), 0);
    assert_int_equal(thread1->WaitBlock[0].BlockState, WaitBlockInactive);
    check_object(&f.b, &on_b[1], 1);
    assert_true(KiIsOnWaitList(thread2));

    KeSetEvent(&f.b, 0, FALSE);
    assert_int_equal(end_wait(&f.thread2), STATUS_WAIT_0);
    assert_int_equal(thread2->WaitBlock[0].BlockState, WaitBlockInactive);
    assert_int_equal(thread2->WaitBlock[1].BlockState, WaitBlockInactive);
    assert_false(KiIsOnWaitList(thread1));
    assert_false(KiIsOnWaitList(thread2));
    check_object(&f.a, NULL, 0);
    check_object(&f.b, NULL, 0);
    assert_int_equal(KeReadStateEvent(&f.a), 0);
    assert_int_equal(KeReadStateEvent(&f.b), 0);
    take_apart(&f);
}

/* The timeout is in the thread's last block, for its own timer. */
static void test_timer_block(void **state)
{
    LARGE_INTEGER long_time = relative(600 * SECOND);
    waiter w;
    KEVENT event;
    (void)state;
    start_waiters(&w, 1);
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    w.call = (wait_call){.count = 1, .object = {&event}, .timeout = &long_time, .reason = UserRequest};
    begin_wait(&w);
    PKTHREAD thread = w.actor.thread;
    assert_ptr_equal(thread->WaitBlock[TIMER_WAIT_BLOCK].Object, &thread->Timer);
    assert_ptr_equal(thread->WaitBlock[TIMER_WAIT_BLOCK].Thread, thread);
    assert_int_equal(thread->WaitBlock[TIMER_WAIT_BLOCK].WaitType, WaitAny);
    assert_int_equal(thread->WaitBlock[TIMER_WAIT_BLOCK].WaitKey, STATUS_TIMEOUT);
    assert_int_equal(thread->Timer.DueTime.QuadPart, thread->WaitDeadline.Time);
    assert_int_equal(thread->WaitBlockCount, 1);
    KeSetEvent(&event, 0, FALSE);
    assert_int_equal(end_wait(&w), STATUS_SUCCESS);
    end_waiters(&w, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_shown_as_in_the_debugger),
        WATCHED(test_every_link),
        WATCHED(test_timer_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
