#include "support.h"

#include <interlock/ps.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ps/psp.h"

struct run {
    KEVENT go;
    PETHREAD thread;
    HANDLE id;
    HANDLE process;
    BOOLEAN system;
    NTSTATUS exit_status;
};

static VOID tell_about_itself(PVOID context)
{
    struct run *run = context;

    run->thread = PsGetCurrentThread();
    run->id = PsGetCurrentThreadId();
    run->process = PsGetCurrentProcessId();
    run->system = PsIsSystemThread(run->thread);
    KeWaitForSingleObject(&run->go, Executive, KernelMode, FALSE, NULL);
    if (run->exit_status != STATUS_SUCCESS)
        PsTerminateSystemThread(run->exit_status);
}

static PETHREAD reference_thread(HANDLE handle)
{
    PVOID thread;

    assert_int_equal(ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, *PsThreadType, KernelMode, &thread, NULL), 0);
    return thread;
}

static void wait_for(PVOID object)
{
    LARGE_INTEGER timeout = {.QuadPart = -600000000};

    assert_int_equal(KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &timeout), STATUS_SUCCESS);
}

/* A thread drops its own reference shortly after it is signaled. */
static void wait_until_gone(HANDLE id)
{
    PETHREAD found;

    watchdog_start(20);
    while (NT_SUCCESS(PsLookupThreadByThreadId(id, &found))) {
        ObDereferenceObject(found);
        HalDispatch.Yield();
    }
    watchdog_stop();
}

static void a_thread_from_birth_to_end(void **state)
{
    static const NTSTATUS rows[] = {STATUS_SUCCESS, STATUS_UNSUCCESSFUL, STATUS_PENDING + 1, STATUS_TIMEOUT};

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        struct run run = {.exit_status = rows[i]};
        CLIENT_ID id = {0};
        HANDLE handle;
        PETHREAD thread, found;

        KeInitializeEvent(&run.go, NotificationEvent, FALSE);
        assert_int_equal(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, &id, tell_about_itself, &run), 0);
        thread = reference_thread(handle);
        assert_ptr_equal(id.UniqueThread, PsGetThreadId(thread));
        assert_ptr_equal(id.UniqueProcess, PsGetCurrentProcessId());
        assert_int_equal(PsLookupThreadByThreadId(id.UniqueThread, &found), STATUS_SUCCESS);
        assert_ptr_equal(found, thread);
        ObDereferenceObject(found);
        assert_int_equal(PsGetThreadExitStatus(thread), STATUS_PENDING);
        assert_false(PsIsThreadTerminating(thread));
        assert_true(PsIsSystemThread(thread));
        assert_int_equal(ZwClose(handle), STATUS_SUCCESS);

        KeSetEvent(&run.go, 0, FALSE);
        wait_for(thread);
        assert_int_equal(PsGetThreadExitStatus(thread), rows[i]);
        assert_true(PsIsThreadTerminating(thread));
        assert_ptr_equal(run.thread, thread);
        assert_ptr_equal(run.id, id.UniqueThread);
        assert_ptr_equal(run.process, id.UniqueProcess);
        assert_true(run.system);
        assert_int_equal(PsLookupThreadByThreadId(id.UniqueThread, &found), STATUS_SUCCESS);
        ObDereferenceObject(found);
        ObDereferenceObject(thread);
        wait_until_gone(id.UniqueThread);
    }
}

static void the_process(void **state)
{
    PEPROCESS process = PsGetCurrentProcess();

    (void)state;
    assert_ptr_equal(process, PsInitialSystemProcess);
    assert_int_equal((uintptr_t)PsGetProcessId(process), getpid());
    assert_ptr_equal(PsGetCurrentProcessId(), PsGetProcessId(process));
    assert_ptr_equal(ObGetObjectType(process), *PsProcessType);
    assert_int_equal(((PKPROCESS)process)->Header.Type, ProcessObject);
}

static void an_adopted_thread_is_no_system_thread(void **state)
{
    PETHREAD found;

    (void)state;
    assert_int_equal(PsTerminateSystemThread(STATUS_SUCCESS), STATUS_INVALID_PARAMETER);
    assert_false(PsIsSystemThread(PsGetCurrentThread()));
    assert_false(PsIsThreadTerminating(PsGetCurrentThread()));
    assert_int_equal((uintptr_t)PsGetCurrentThreadId(), gettid());
    assert_int_equal(PsLookupThreadByThreadId(PsGetCurrentThreadId(), &found), STATUS_SUCCESS);
    assert_ptr_equal(found, PsGetCurrentThread());
    ObDereferenceObject(found);
    assert_int_equal(PsLookupThreadByThreadId(NULL, &found), STATUS_INVALID_PARAMETER);
    assert_int_equal(PsLookupThreadByThreadId(ULongToHandle(0x7fffffff), &found), STATUS_INVALID_PARAMETER);
}

static VOID do_nothing(PVOID context)
{
    (void)context;
}

static void parameters_are_checked(void **state)
{
    static const struct {
        intptr_t process;
        ULONG attributes;
        NTSTATUS expected;
    } rows[] = {
        {0, 0, STATUS_SUCCESS},
        {-1, OBJ_KERNEL_HANDLE, STATUS_SUCCESS},
        {-2, 0, STATUS_OBJECT_TYPE_MISMATCH},
        {0x3fffffc, 0, STATUS_INVALID_HANDLE},
        {0, OBJ_PERMANENT, STATUS_INVALID_PARAMETER},
        {0, OBJ_EXCLUSIVE, STATUS_INVALID_PARAMETER},
        {0, OBJ_OPENIF, STATUS_INVALID_PARAMETER},
        {0, 1, STATUS_INVALID_PARAMETER},
    };
    ULONG objects = __atomic_load_n(&ObpThreadType.TotalNumberOfObjects, __ATOMIC_RELAXED);

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        OBJECT_ATTRIBUTES attributes;
        HANDLE handle;
        NTSTATUS status;

        InitializeObjectAttributes(&attributes, NULL, rows[i].attributes, NULL, NULL);
        status = PsCreateSystemThread(&handle, SYNCHRONIZE, &attributes, (HANDLE)rows[i].process, NULL, do_nothing,
                                      NULL);
        assert_int_equal(status, rows[i].expected);
        if (NT_SUCCESS(status)) {
            OBJECT_HANDLE_INFORMATION information;
            PVOID thread;

            assert_int_equal(ObReferenceObjectByHandle(handle, SYNCHRONIZE, NULL, UserMode, &thread, NULL),
                             STATUS_INVALID_HANDLE);
            assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &thread, &information), 0);
            assert_int_equal(information.GrantedAccess, SYNCHRONIZE);
            wait_for(thread);
            ObDereferenceObject(thread);
            assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
        }
    }
    while (__atomic_load_n(&ObpThreadType.TotalNumberOfObjects, __ATOMIC_RELAXED) > objects)
        HalDispatch.Yield();
}

static void not_in_another_process(void **state)
{
    pid_t child = fork();
    HANDLE process, thread = NULL;

    (void)state;
    if (child == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(PspOpenProcess(UserMode, ULongToHandle((ULONG)child), 0, PROCESS_ALL_ACCESS, &process), STATUS_SUCCESS);
    assert_int_equal(PsCreateSystemThread(&thread, SYNCHRONIZE, NULL, process, NULL, do_nothing, NULL),
                     STATUS_ACCESS_DENIED);
    assert_null(thread);
    assert_int_equal(ZwClose(process), STATUS_SUCCESS);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The host has no room for a stack of this size. */
static NTSTATUS create_with_impossible_stack(void)
{
    pthread_attr_t before, impossible;
    HANDLE handle;
    NTSTATUS status;

    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&impossible), 0);
    assert_int_equal(pthread_attr_setstacksize(&impossible, (size_t)1 << 50), 0);
    assert_int_equal(pthread_setattr_default_np(&impossible), 0);
    status = PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, do_nothing, NULL);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    return status;
}

/* Threads of the library's own, which the case before has made it start, may start meanwhile: fewer than there are
   failures. */
static void a_failure_leaves_nothing_behind(void **state)
{
    ULONG objects = __atomic_load_n(&ObpThreadType.TotalNumberOfObjects, __ATOMIC_RELAXED);
    ULONG handles = ObpThreadType.TotalNumberOfHandles;
    enum { FAILURES = 20 };

    (void)state;
    for (int i = 0; i < FAILURES; i++)
        assert_false(NT_SUCCESS(create_with_impossible_stack()));
    assert_true(__atomic_load_n(&ObpThreadType.TotalNumberOfObjects, __ATOMIC_RELAXED) < objects + FAILURES);
    assert_int_equal(ObpThreadType.TotalNumberOfHandles, handles);
}

static VOID wait_for_creator(PVOID context)
{
    wait_for(context);
}

static void many_threads_in_turn_use_few_slots(void **state)
{
    unsigned long rounds = test_rounds(1000);
    ULONG before;

    (void)state;
    KeGetCurrentThread();
    before = KiThreadSlotsUsed;
    for (unsigned long i = 0; i < rounds; i++) {
        KEVENT event;
        HANDLE handle;
        PETHREAD thread;

        KeInitializeEvent(&event, NotificationEvent, FALSE);
        assert_int_equal(
            PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, wait_for_creator, &event), 0);
        thread = reference_thread(handle);
        assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
        KeSetEvent(&event, 0, FALSE);
        wait_for(thread);
        ObDereferenceObject(thread);
    }
    /* an ended thread frees its slot when the host schedules it: on a busy machine not before the next ones start */
    assert_true(KiThreadSlotsUsed - before <= 8 + rounds / 4);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_from_birth_to_end),
        cmocka_unit_test(the_process),
        cmocka_unit_test(an_adopted_thread_is_no_system_thread),
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(not_in_another_process),
        cmocka_unit_test(a_failure_leaves_nothing_behind),
        cmocka_unit_test(many_threads_in_turn_use_few_slots),
    };

    return cmocka_run_group_tests_name("ps/thread", tests, NULL, NULL);
}
