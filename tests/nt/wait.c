/* Waits by handle: what is checked, in which order, what is consumed, and what keeps the object alive. */
#include "handles.h"

static void close_all(HANDLE *handles, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        close_handle(handles[i]);
    }
    assert_int_equal(live_objects(), 0);
}

static void test_single(void **state)
{
    PKEVENT event;
    HANDLE handle = make_event(SynchronizationEvent, FALSE, &event);
    LARGE_INTEGER timeout = relative(MILLISECOND);
    (void)state;
    assert_int_equal(poll_handle(handle), STATUS_TIMEOUT);
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, &timeout), STATUS_TIMEOUT);
    KeSetEvent(event, 0, FALSE);
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(KeReadStateEvent(event), 0);
    KeSetEvent(event, 0, FALSE);
    assert_int_equal(poll_handle(handle), STATUS_WAIT_0);
    assert_int_equal(poll_handle(handle), STATUS_TIMEOUT);
    close_all(&handle, 1);
}

static void test_absolute_timeout(void **state)
{
    HANDLE handle = make_event(SynchronizationEvent, FALSE, NULL);
    LARGE_INTEGER past = {.QuadPart = 1};
    LARGE_INTEGER soon = absolute(2 * MILLISECOND);
    (void)state;
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, &past), STATUS_TIMEOUT);
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, &soon), STATUS_TIMEOUT);
    assert_true((LONGLONG)HalDispatch.QuerySystemTime() >= soon.QuadPart);
    close_all(&handle, 1);
}

static HANDLE pseudo(LONG_PTR value)
{
    return (HANDLE)value;
}

static void test_invalid_handles(void **state)
{
    HANDLE handle[] = {NULL, pseudo(-3), pseudo(-4), pseudo(-5), pseudo(-6), pseudo(MAXLONG), closed_handle()};
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(handle); i += 1) {
        assert_int_equal(NtWaitForSingleObject(handle[i], FALSE, NULL), STATUS_INVALID_HANDLE);
        assert_int_equal(NtWaitForSingleObject(handle[i], TRUE, NULL), STATUS_INVALID_HANDLE);
        assert_int_equal(NtWaitForMultipleObjects(1, &handle[i], WaitAny, FALSE, NULL), STATUS_INVALID_HANDLE);
        assert_int_equal(NtWaitForMultipleObjects(1, &handle[i], WaitAll, FALSE, NULL), STATUS_INVALID_HANDLE);
        assert_int_equal(ZwWaitForSingleObject(handle[i], FALSE, NULL), STATUS_INVALID_HANDLE);
    }
}

static void test_low_bits_are_ignored(void **state)
{
    HANDLE handle = make_event(NotificationEvent, TRUE, NULL);
    (void)state;
    for (ULONG_PTR bits = 0; bits < 4; bits += 1) {
        HANDLE same = (HANDLE)((ULONG_PTR)handle | bits);
        assert_int_equal(poll_handle(same), STATUS_WAIT_0);
        assert_int_equal(NtWaitForMultipleObjects(1, &same, WaitAny, FALSE, NO_TIME), STATUS_WAIT_0);
    }
    close_all(&handle, 1);
}

/* The process and the thread itself have not ended; waits for several objects accept no pseudo handle. */
static void test_pseudo_handles(void **state)
{
    PKEVENT event;
    HANDLE handle = make_event(SynchronizationEvent, TRUE, &event);
    (void)state;
    assert_int_equal(poll_handle(NtCurrentProcess()), STATUS_TIMEOUT);
    assert_int_equal(poll_handle(NtCurrentThread()), STATUS_TIMEOUT);
    for (LONG_PTR value = -1; value >= -6; value -= 1) {
        for (ULONG place = 0; place < 3; place += 1) {
            HANDLE handles[3] = {handle, handle, handle};
            handles[place] = pseudo(value);
            assert_int_equal(NtWaitForMultipleObjects(3, handles, WaitAny, FALSE, NULL), STATUS_INVALID_HANDLE);
            assert_int_equal(NtWaitForMultipleObjects(3, handles, WaitAll, FALSE, NULL), STATUS_INVALID_HANDLE);
        }
    }
    assert_int_equal(KeReadStateEvent(event), 1);
    close_all(&handle, 1);
}

static void test_parameters(void **state)
{
    HANDLE handles[MAXIMUM_WAIT_OBJECTS + 1];
    PKEVENT event;
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(handles); i += 1) {
        handles[i] = i == 0 ? make_event(SynchronizationEvent, TRUE, &event) : NULL;
    }
    assert_int_equal(NtWaitForMultipleObjects(0, handles, WaitAny, FALSE, NULL), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(NtWaitForMultipleObjects(0, NULL, WaitAll, FALSE, NULL), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(NtWaitForMultipleObjects(65, handles, WaitAny, FALSE, NULL), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(NtWaitForMultipleObjects(MAXULONG, NULL, WaitAll, FALSE, NULL), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(NtWaitForMultipleObjects(1, handles, WaitNotification, FALSE, NULL), STATUS_INVALID_PARAMETER_3);
    assert_int_equal(NtWaitForMultipleObjects(1, handles, (WAIT_TYPE)7, FALSE, NULL), STATUS_INVALID_PARAMETER_3);
    assert_int_equal(NtWaitForMultipleObjects(1, NULL, WaitAny, FALSE, NULL), STATUS_ACCESS_VIOLATION);
    assert_int_equal(KeReadStateEvent(event), 1);
    close_all(handles, 1);
}

/* The first handle that is wrong decides, and a failed wait has consumed nothing. */
static void test_handles_come_before_states(void **state)
{
    PKEVENT event;
    HANDLE signaled = make_event(SynchronizationEvent, TRUE, &event);
    HANDLE denied = same_object(signaled, ALL_ACCESS & ~SYNCHRONIZE);
    HANDLE closed = closed_handle();
    HANDLE denied_first[] = {signaled, denied, closed};
    HANDLE closed_first[] = {signaled, closed, denied};
    (void)state;
    for (WAIT_TYPE type = WaitAll; type <= WaitAny; type += 1) {
        assert_int_equal(NtWaitForMultipleObjects(3, denied_first, type, FALSE, NULL), STATUS_ACCESS_DENIED);
        assert_int_equal(NtWaitForMultipleObjects(3, closed_first, type, FALSE, NULL), STATUS_INVALID_HANDLE);
    }
    assert_int_equal(NtWaitForSingleObject(denied, FALSE, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(KeReadStateEvent(event), 1);
    assert_int_equal(ZwWaitForSingleObject(denied, FALSE, NULL), STATUS_WAIT_0);
    KeSetEvent(event, 0, FALSE);
    assert_int_equal(ZwWaitForMultipleObjects(2, denied_first, WaitAny, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(KeReadStateEvent(event), 0);
    close_handle(signaled);
    close_all(&denied, 1);
}

/* In a WaitAll no object may occur twice, by any handle. A WaitAny allows it. */
static void test_duplicates(void **state)
{
    PKEVENT event;
    HANDLE handle = make_event(SynchronizationEvent, TRUE, &event);
    HANDLE other = same_object(handle, SYNCHRONIZE);
    HANDLE constant = make_constant();
    HANDLE same_handle[] = {handle, constant, handle};
    HANDLE two_handles[] = {handle, constant, other};
    HANDLE constants[] = {constant, handle, constant};
    (void)state;
    assert_int_equal(NtWaitForMultipleObjects(3, same_handle, WaitAll, FALSE, NULL), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(NtWaitForMultipleObjects(3, two_handles, WaitAll, FALSE, NULL), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(NtWaitForMultipleObjects(3, constants, WaitAll, FALSE, NULL), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(KeReadStateEvent(event), 1);
    assert_int_equal(NtWaitForMultipleObjects(3, two_handles, WaitAny, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(KeReadStateEvent(event), 0);
    assert_int_equal(NtWaitForMultipleObjects(3, two_handles, WaitAny, FALSE, NULL), STATUS_WAIT_1);
    close_handle(handle);
    close_handle(other);
    close_all(&constant, 1);
}

/* Objects without a dispatcher header are always signaled, also several of them in one WaitAll. */
static void test_always_signaled(void **state)
{
    PKEVENT event;
    HANDLE handles[] = {make_constant(), make_constant(), make_event(SynchronizationEvent, FALSE, &event)};
    (void)state;
    assert_int_equal(NtWaitForSingleObject(handles[0], FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAny, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAll, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(NtWaitForMultipleObjects(3, handles, WaitAll, FALSE, NO_TIME), STATUS_TIMEOUT);
    KeSetEvent(event, 0, FALSE);
    assert_int_equal(NtWaitForMultipleObjects(3, handles, WaitAll, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(KeReadStateEvent(event), 0);
    close_all(handles, 3);
}

static void make_events(HANDLE *handles, PKEVENT *events, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        handles[i] = make_event(SynchronizationEvent, FALSE, &events[i]);
    }
}

/* The lowest signaled index, and nothing else is consumed. */
static void test_any(void **state)
{
    HANDLE handles[MAXIMUM_WAIT_OBJECTS];
    PKEVENT events[MAXIMUM_WAIT_OBJECTS];
    ULONG count = MAXIMUM_WAIT_OBJECTS;
    (void)state;
    make_events(handles, events, count);
    assert_int_equal(NtWaitForMultipleObjects(count, handles, WaitAny, FALSE, NO_TIME), STATUS_TIMEOUT);
    for (ULONG i = 0; i < count; i += 1) {
        KeSetEvent(events[i], 0, FALSE);
        KeSetEvent(events[count - 1], 0, FALSE);
        assert_int_equal(NtWaitForMultipleObjects(count, handles, WaitAny, FALSE, NULL), STATUS_WAIT_0 + (NTSTATUS)i);
        assert_int_equal(KeReadStateEvent(events[i]), 0);
        assert_int_equal(KeReadStateEvent(events[count - 1]), i != count - 1);
    }
    close_all(handles, count);
}

static void test_any_wakes_a_sleeper(void **state)
{
    PKEVENT events[5];
    handle_waiter w;
    (void)state;
    start_handle_waiter(&w);
    w.count = 5;
    w.type = WaitAny;
    make_events(w.handle, events, 5);
    begin_handle_wait(&w);
    KeSetEvent(events[3], 0, FALSE);
    assert_int_equal(end_handle_wait(&w), STATUS_WAIT_3);
    assert_int_equal(KeReadStateEvent(events[3]), 0);
    end_actor(&w.actor);
    close_all(w.handle, 5);
}

/* All at once or nothing. */
static void test_all(void **state)
{
    HANDLE handles[MAXIMUM_WAIT_OBJECTS];
    PKEVENT events[MAXIMUM_WAIT_OBJECTS];
    LARGE_INTEGER timeout = relative(MILLISECOND);
    ULONG count = MAXIMUM_WAIT_OBJECTS;
    (void)state;
    make_events(handles, events, count);
    for (ULONG i = 0; i < count - 1; i += 1) {
        KeSetEvent(events[i], 0, FALSE);
    }
    assert_int_equal(NtWaitForMultipleObjects(count, handles, WaitAll, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(NtWaitForMultipleObjects(count, handles, WaitAll, FALSE, &timeout), STATUS_TIMEOUT);
    for (ULONG i = 0; i < count; i += 1) {
        assert_int_equal(KeReadStateEvent(events[i]), i < count - 1);
    }
    KeSetEvent(events[count - 1], 0, FALSE);
    assert_int_equal(NtWaitForMultipleObjects(count, handles, WaitAll, FALSE, NULL), STATUS_WAIT_0);
    for (ULONG i = 0; i < count; i += 1) {
        assert_int_equal(KeReadStateEvent(events[i]), 0);
    }
    close_all(handles, count);
}

static void abandon(void *argument)
{
    check(NtWaitForSingleObject(*(HANDLE *)argument, FALSE, NULL) == STATUS_WAIT_0);
}

static void abandon_mutant(HANDLE handle)
{
    actor a;
    start_actor(&a);
    run_on(&a, abandon, &handle);
    end_actor(&a);
}

static void test_abandoned_mutants(void **state)
{
    PKEVENT event;
    PKMUTANT mutant;
    HANDLE handles[] = {make_event(SynchronizationEvent, FALSE, &event), make_mutant_object(FALSE, &mutant)};
    (void)state;
    abandon_mutant(handles[1]);
    assert_int_equal(NtWaitForSingleObject(handles[1], FALSE, NULL), STATUS_ABANDONED_WAIT_0);
    assert_int_equal(NtWaitForSingleObject(handles[1], FALSE, NULL), STATUS_WAIT_0);
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
    abandon_mutant(handles[1]);
    assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAny, FALSE, NULL), STATUS_ABANDONED_WAIT_0 + 1);
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
    abandon_mutant(handles[1]);
    assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAll, FALSE, NO_TIME), STATUS_TIMEOUT);
    KeSetEvent(event, 0, FALSE);
    assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAll, FALSE, NULL), STATUS_ABANDONED_WAIT_0);
    assert_int_equal(KeReadStateEvent(event), 0);
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
    close_all(handles, 2);
}

/* One acquire too many is reported by the status; for kernel code it is raised. */
static void test_mutant_limit(void **state)
{
    PKEVENT event;
    PKMUTANT mutant;
    HANDLE handles[] = {make_event(SynchronizationEvent, TRUE, &event), make_mutant_object(TRUE, &mutant)};
    (void)state;
    mutant->Header.SignalState = (LONG)MINLONG;
    assert_int_equal(NtWaitForSingleObject(handles[1], FALSE, NULL), STATUS_MUTANT_LIMIT_EXCEEDED);
    assert_int_equal(poll_handle(handles[1]), STATUS_MUTANT_LIMIT_EXCEEDED);
    assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAll, FALSE, NULL), STATUS_MUTANT_LIMIT_EXCEEDED);
    assert_int_equal(KeReadStateEvent(event), 1);
    assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAny, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAny, FALSE, NULL), STATUS_MUTANT_LIMIT_EXCEEDED);
    assert_int_equal(KeReadStateMutant(mutant), (LONG)MINLONG);
    mutant->Header.SignalState = 0;
    KeReleaseMutant(mutant, 0, FALSE, FALSE);
    close_all(handles, 2);
}

/* Closing the last handle neither wakes the waiter nor frees the object; the end of the wait does. */
static void test_close_under_a_waiter(void **state)
{
    PKEVENT event[2];
    handle_waiter w;
    (void)state;
    for (ULONG count = 1; count <= 2; count += 1) {
        start_handle_waiter(&w);
        w.count = count;
        w.type = WaitAny;
        make_events(w.handle, event, count);
        deleted_objects = 0;
        begin_handle_wait(&w);
        for (ULONG i = 0; i < count; i += 1) {
            close_handle(w.handle[i]);
            assert_int_equal(poll_handle(w.handle[i]), STATUS_INVALID_HANDLE);
        }
        assert_true(is_committed(w.actor.thread));
        assert_int_equal(deleted_objects, 0);
        KeSetEvent(event[count - 1], 0, FALSE);
        assert_int_equal(end_handle_wait(&w), STATUS_WAIT_0 + (NTSTATUS)count - 1);
        assert_int_equal(deleted_objects, count);
        end_actor(&w.actor);
    }
}

/* All that are queued run, the object stays; a wait that is not alertable leaves them alone. */
static void test_user_apcs(void **state)
{
    PKEVENT event;
    HANDLE handles[] = {make_event(SynchronizationEvent, TRUE, &event), make_constant()};
    KAPC apc[3];
    (void)state;
    for (ULONG form = 0; form < 4; form += 1) {
        apcs_run = 0;
        KeSetEvent(event, 0, FALSE);
        for (ULONG i = 0; i < 3; i += 1) {
            queue_user_apc(&apc[i], KeGetCurrentThread(), count_apc, NULL);
        }
        assert_int_equal(NtWaitForSingleObject(handles[0], FALSE, NULL), STATUS_WAIT_0);
        assert_int_equal(apcs_run, 0);
        KeSetEvent(event, 0, FALSE);
        NTSTATUS status = form == 0   ? NtWaitForSingleObject(handles[0], TRUE, NULL)
                          : form == 1 ? NtWaitForSingleObject(handles[1], TRUE, NULL)
                          : form == 2 ? NtWaitForMultipleObjects(2, handles, WaitAny, TRUE, NULL)
                                      : NtWaitForMultipleObjects(2, handles, WaitAll, TRUE, NULL);
        assert_int_equal(status, STATUS_USER_APC);
        assert_int_equal(apcs_run, 3);
        assert_int_equal(KeReadStateEvent(event), 1);
        assert_int_equal(NtWaitForMultipleObjects(2, handles, WaitAll, TRUE, NULL), STATUS_WAIT_0);
    }
    close_all(handles, 2);
}

static void test_user_apc_ends_a_sleep(void **state)
{
    PKEVENT event;
    handle_waiter w;
    KAPC apc;
    (void)state;
    start_handle_waiter(&w);
    w.count = 1;
    w.alertable = TRUE;
    w.handle[0] = make_event(SynchronizationEvent, FALSE, &event);
    begin_handle_wait(&w);
    queue_user_apc(&apc, w.actor.thread, count_apc, NULL);
    assert_int_equal(end_handle_wait(&w), STATUS_USER_APC);
    begin_handle_wait(&w);
    KeSetEvent(event, 0, FALSE);
    assert_int_equal(end_handle_wait(&w), STATUS_WAIT_0);
    end_actor(&w.actor);
    close_all(w.handle, 1);
}

static void close_in_apc(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)argument1, (void)argument2;
    close_handle(context);
    assert_int_equal(live_objects(), 0);
}

/* A wait holds nothing when its APCs run: an APC need not return. */
static void test_apcs_run_after_the_wait(void **state)
{
    (void)state;
    for (ULONG multiple = 0; multiple < 2; multiple += 1) {
        HANDLE handle = make_event(SynchronizationEvent, FALSE, NULL);
        KAPC apc;
        queue_user_apc(&apc, KeGetCurrentThread(), close_in_apc, handle);
        NTSTATUS status = multiple ? NtWaitForMultipleObjects(1, &handle, WaitAny, TRUE, NULL)
                                   : NtWaitForSingleObject(handle, TRUE, NULL);
        assert_int_equal(status, STATUS_USER_APC);
        assert_int_equal(live_objects(), 0);
    }
}

/* The alert of the wait's own mode comes first, then a user APC, then a kernel-mode alert; each only if alertable. */
static void test_alerts(void **state)
{
    HANDLE handle = make_event(NotificationEvent, TRUE, NULL);
    KAPC apc;
    (void)state;
    apcs_run = 0;
    KeAlertThread(KeGetCurrentThread(), UserMode);
    KeAlertThread(KeGetCurrentThread(), KernelMode);
    queue_user_apc(&apc, KeGetCurrentThread(), count_apc, NULL);
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(NtWaitForSingleObject(handle, TRUE, NULL), STATUS_ALERTED);
    assert_int_equal(apcs_run, 0);
    assert_int_equal(NtWaitForMultipleObjects(1, &handle, WaitAll, TRUE, NULL), STATUS_USER_APC);
    assert_int_equal(apcs_run, 1);
    assert_int_equal(NtWaitForMultipleObjects(1, &handle, WaitAny, TRUE, NULL), STATUS_ALERTED);
    assert_int_equal(NtWaitForSingleObject(handle, TRUE, NULL), STATUS_WAIT_0);
    close_all(&handle, 1);
}

/* Kernel code waits in kernel mode: a user APC stays where it is. */
static void test_zw_runs_no_user_apcs(void **state)
{
    HANDLE handle = make_event(NotificationEvent, TRUE, NULL);
    KAPC apc;
    (void)state;
    apcs_run = 0;
    queue_user_apc(&apc, KeGetCurrentThread(), count_apc, NULL);
    assert_int_equal(ZwWaitForSingleObject(handle, TRUE, NULL), STATUS_WAIT_0);
    assert_int_equal(ZwWaitForMultipleObjects(1, &handle, WaitAny, TRUE, NULL), STATUS_WAIT_0);
    assert_int_equal(apcs_run, 0);
    assert_int_equal(NtTestAlert(), STATUS_SUCCESS);
    assert_int_equal(apcs_run, 1);
    close_all(&handle, 1);
}

static VOID end_at_once(PVOID context)
{
    (void)context;
}

static void test_thread_ends(void **state)
{
    HANDLE thread;
    (void)state;
    assert_int_equal(PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, end_at_once, NULL),
                     STATUS_SUCCESS);
    thread = user_handle(thread);
    assert_int_equal(NtWaitForSingleObject(thread, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(NtWaitForMultipleObjects(1, &thread, WaitAll, FALSE, NULL), STATUS_WAIT_0);
    close_handle(thread);
}

static NTSTATUS wait_for_ever(PVOID handles)
{
    return NtWaitForMultipleObjects(2, handles, WaitAny, FALSE, NULL);
}

/* A thread that is terminated while it waits returns its references. */
static void test_terminated_waiter(void **state)
{
    HANDLE handles[2], thread;
    (void)state;
    for (ULONG i = 0; i < 2; i += 1) {
        handles[i] = make_event(SynchronizationEvent, FALSE, NULL);
    }
    assert_int_equal(NtCreateThreadEx(&thread, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(), wait_for_ever, handles, 0,
                                      0, 0, 0, NULL),
                     STATUS_SUCCESS);
    await(is_committed(object_of(thread)));
    close_handle(handles[0]);
    assert_int_equal(NtTerminateThread(thread, STATUS_CANCELLED), STATUS_SUCCESS);
    assert_int_equal(NtWaitForSingleObject(thread, FALSE, NULL), STATUS_WAIT_0);
    close_handle(thread);
    close_all(&handles[1], 1);
}

static HANDLE make_real_event(EVENT_TYPE type, BOOLEAN state, ACCESS_MASK access)
{
    HANDLE handle;
    assert_int_equal(NtCreateEvent(&handle, access, NULL, type, state), STATUS_SUCCESS);
    return handle;
}

static HANDLE make_real_semaphore(LONG count, LONG limit, ACCESS_MASK access)
{
    HANDLE handle;
    assert_int_equal(NtCreateSemaphore(&handle, access, NULL, count, limit), STATUS_SUCCESS);
    return handle;
}

/* The same auto-reset event is signaled and waited for: it is set, then consumed. */
static void test_signal_and_wait(void **state)
{
    HANDLE event = make_real_event(SynchronizationEvent, FALSE, EVENT_ALL_ACCESS);
    HANDLE other = make_real_event(SynchronizationEvent, FALSE, EVENT_ALL_ACCESS);
    (void)state;
    assert_int_equal(NtSignalAndWaitForSingleObject(event, event, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(poll_handle(event), STATUS_TIMEOUT);
    assert_int_equal(NtSignalAndWaitForSingleObject(event, other, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_int_equal(poll_handle(event), STATUS_WAIT_0);
    assert_int_equal(NtSetEvent(other, NULL), STATUS_SUCCESS);
    assert_int_equal(NtSignalAndWaitForSingleObject(event, other, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(poll_handle(other), STATUS_TIMEOUT);
    assert_int_equal(poll_handle(event), STATUS_WAIT_0);
    close_handle(event);
    close_handle(other);
}

/* A semaphore at its limit and a mutant of another thread: the status of the signal, and no wait. */
static void test_signal_that_fails(void **state)
{
    HANDLE semaphore = make_real_semaphore(1, 1, SEMAPHORE_ALL_ACCESS);
    PKMUTANT mutant;
    HANDLE handle = make_mutant_object(FALSE, &mutant);
    HANDLE event = make_real_event(SynchronizationEvent, TRUE, EVENT_ALL_ACCESS);
    (void)state;
    assert_int_equal(NtSignalAndWaitForSingleObject(semaphore, event, FALSE, NULL), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(NtSignalAndWaitForSingleObject(handle, event, FALSE, NULL), STATUS_MUTANT_NOT_OWNED);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_int_equal(poll_handle(event), STATUS_WAIT_0);
    assert_int_equal(poll_handle(semaphore), STATUS_WAIT_0);
    assert_int_equal(NtSignalAndWaitForSingleObject(semaphore, semaphore, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(poll_handle(semaphore), STATUS_TIMEOUT);
    assert_int_equal(poll_handle(handle), STATUS_WAIT_0);
    assert_int_equal(NtSignalAndWaitForSingleObject(handle, event, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(KeReadStateMutant(mutant), 1);
    close_handle(semaphore);
    close_handle(event);
    close_all(&handle, 1);
}

static void test_signal_checks(void **state)
{
    HANDLE event = make_real_event(SynchronizationEvent, TRUE, EVENT_ALL_ACCESS);
    HANDLE no_modify = same_object(event, SYNCHRONIZE);
    HANDLE no_wait = same_object(event, EVENT_MODIFY_STATE);
    HANDLE semaphore = make_real_semaphore(0, 9, SYNCHRONIZE);
    HANDLE signal_only = make_real_semaphore(0, 1, SEMAPHORE_MODIFY_STATE);
    HANDLE padded = make_event(SynchronizationEvent, FALSE, NULL);
    HANDLE closed = closed_handle();
    (void)state;
    assert_int_equal(NtSignalAndWaitForSingleObject(closed, event, FALSE, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtSignalAndWaitForSingleObject(pseudo(-5), event, FALSE, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtSignalAndWaitForSingleObject(event, closed, FALSE, NULL), STATUS_INVALID_HANDLE);
    assert_int_equal(NtSignalAndWaitForSingleObject(event, no_wait, FALSE, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(NtSignalAndWaitForSingleObject(no_modify, event, FALSE, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(NtSignalAndWaitForSingleObject(semaphore, event, FALSE, NULL), STATUS_ACCESS_DENIED);
    assert_int_equal(NtSignalAndWaitForSingleObject(padded, event, FALSE, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(NtSignalAndWaitForSingleObject(NtCurrentThread(), event, FALSE, NULL),
                     STATUS_OBJECT_TYPE_MISMATCH);
    assert_int_equal(poll_handle(semaphore), STATUS_TIMEOUT);
    assert_int_equal(NtSignalAndWaitForSingleObject(no_wait, no_modify, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(poll_handle(event), STATUS_TIMEOUT);
    assert_int_equal(NtSignalAndWaitForSingleObject(signal_only, NtCurrentThread(), FALSE, NO_TIME), STATUS_TIMEOUT);
    close_handle(event);
    close_handle(no_modify);
    close_handle(no_wait);
    close_handle(semaphore);
    close_handle(signal_only);
    close_all(&padded, 1);
}

static KIRQL level_of_procedure;
static ULONG procedures_run;

static void note_level(PVOID object)
{
    (void)object;
    level_of_procedure = KeGetCurrentIrql();
    procedures_run += 1;
}

/* A type may update the state before a wait tests it: in every wait, and never at a raised level. */
static void test_wait_procedure(void **state)
{
    HANDLE handle = make_event(SynchronizationEvent, TRUE, NULL);
    HANDLE event = make_real_event(SynchronizationEvent, FALSE, EVENT_ALL_ACCESS);
    (void)state;
    procedures_run = 0;
    padded_type.WaitProcedure = note_level;
    assert_int_equal(NtWaitForSingleObject(handle, FALSE, NULL), STATUS_WAIT_0);
    assert_int_equal(procedures_run, 1);
    assert_int_equal(NtWaitForMultipleObjects(1, &handle, WaitAny, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(NtWaitForMultipleObjects(1, &handle, WaitAll, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(procedures_run, 3);
    level_of_procedure = HIGH_LEVEL;
    assert_int_equal(NtSignalAndWaitForSingleObject(event, handle, FALSE, NO_TIME), STATUS_TIMEOUT);
    assert_int_equal(procedures_run, 4);
    assert_int_equal(level_of_procedure, PASSIVE_LEVEL);
    padded_type.WaitProcedure = NULL;
    close_handle(event);
    close_all(&handle, 1);
}

/* The signal has happened when an alert or an APC prevents the wait. */
static void test_signal_and_alerted_wait(void **state)
{
    HANDLE event = make_real_event(NotificationEvent, FALSE, EVENT_ALL_ACCESS);
    KAPC apc;
    (void)state;
    apcs_run = 0;
    queue_user_apc(&apc, KeGetCurrentThread(), count_apc, NULL);
    assert_int_equal(NtSignalAndWaitForSingleObject(event, event, TRUE, NULL), STATUS_USER_APC);
    assert_int_equal(apcs_run, 1);
    assert_int_equal(poll_handle(event), STATUS_WAIT_0);
    close_handle(event);
}

/* Round trips between two threads, each a signal and a wait in one call. */
static HANDLE ping, pong;

static void answer(void *argument)
{
    for (ULONG i = 0; i < *(ULONG *)argument; i += 1) {
        check(NtSignalAndWaitForSingleObject(pong, ping, FALSE, NULL) == STATUS_WAIT_0);
    }
}

static void test_rendezvous(void **state)
{
    ULONG rounds = (ULONG)test_rounds(2000);
    actor a;
    (void)state;
    ping = make_real_event(SynchronizationEvent, FALSE, EVENT_ALL_ACCESS);
    pong = make_real_event(SynchronizationEvent, FALSE, EVENT_ALL_ACCESS);
    start_actor(&a);
    tell(&a, answer, &rounds);
    assert_int_equal(NtWaitForSingleObject(pong, FALSE, NULL), STATUS_WAIT_0);
    for (ULONG i = 0; i < rounds - 1; i += 1) {
        assert_int_equal(NtSignalAndWaitForSingleObject(ping, pong, FALSE, NULL), STATUS_WAIT_0);
    }
    assert_int_equal(NtSetEvent(ping, NULL), STATUS_SUCCESS);
    end_actor(&a);
    close_handle(ping);
    close_handle(pong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(test_single),
        WATCHED(test_absolute_timeout),
        WATCHED(test_invalid_handles),
        WATCHED(test_low_bits_are_ignored),
        WATCHED(test_pseudo_handles),
        WATCHED(test_parameters),
        WATCHED(test_handles_come_before_states),
        WATCHED(test_duplicates),
        WATCHED(test_always_signaled),
        WATCHED(test_any),
        WATCHED(test_any_wakes_a_sleeper),
        WATCHED(test_all),
        WATCHED(test_abandoned_mutants),
        WATCHED(test_mutant_limit),
        WATCHED(test_close_under_a_waiter),
        WATCHED(test_user_apcs),
        WATCHED(test_user_apc_ends_a_sleep),
        WATCHED(test_apcs_run_after_the_wait),
        WATCHED(test_alerts),
        WATCHED(test_zw_runs_no_user_apcs),
        WATCHED(test_thread_ends),
        WATCHED(test_terminated_waiter),
        WATCHED(test_signal_and_wait),
        WATCHED(test_signal_that_fails),
        WATCHED(test_signal_checks),
        WATCHED(test_wait_procedure),
        WATCHED(test_signal_and_alerted_wait),
        WATCHED(test_rendezvous),
    };
    return cmocka_run_group_tests_name("nt/wait", tests, NULL, NULL);
}
