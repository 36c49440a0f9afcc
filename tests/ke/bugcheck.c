#include "machine.h"

#include <pthread.h>
#include <signal.h>

#include "ke/bugcheck.h"
#include "ke/ki.h"

#include <interlock/ex.h>
#include <interlock/verifier.h>

/* What the child wrote to standard error; it must have ended by SIGABRT. */
static void report_of(void (*function)(void), char *text, size_t size)
{
    int out[2], status;
    ssize_t got;
    size_t used = 0;
    pid_t child;

    assert_int_equal(pipe(out), 0);
    child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        alarm(20 * test_slowdown());
        dup2(out[1], STDERR_FILENO);
        close(out[0]);
        close(out[1]);
        function();
        _exit(0);
    }
    close(out[1]);
    while (used < size - 1 && (got = read(out[0], text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;

    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        count++;
    }
    return count;
}

static void known_code(void)
{
    KfRaiseIrql(DISPATCH_LEVEL);
    KeBugCheckEx(SPIN_LOCK_NOT_OWNED, 0x1234, 0xFFFFFFFFFFFFFFFF, 3, 4);
}

static void verifier_code(void)
{
    KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, 0x40, 0, 0x5678, 0);
}

static void unknown_code(void)
{
    KeBugCheck(0xDEAD);
}

static void the_report(void **state)
{
    char text[16384];

    (void)state;
    report_of(known_code, text, sizeof(text));
    assert_memory_equal(text,
                        "*** STOP: 0x00000010 (0x0000000000001234, 0xFFFFFFFFFFFFFFFF, 0x0000000000000003, "
                        "0x0000000000000004)\nSPIN_LOCK_NOT_OWNED: ",
                        sizeof("*** STOP: 0x00000010 (0x0000000000001234, 0xFFFFFFFFFFFFFFFF, 0x0000000000000003, "
                               "0x0000000000000004)\nSPIN_LOCK_NOT_OWNED: ") - 1);
    assert_non_null(strstr(text, "1: 0x0000000000001234  spin lock\n"));
    assert_non_null(strstr(text, "3: 0x0000000000000003  owner\n"));
    assert_null(strstr(text, "4: 0x"));
    assert_non_null(strstr(text, "IRQL 2 (DISPATCH_LEVEL), processor "));

    report_of(verifier_code, text, sizeof(text));
    assert_non_null(strstr(text, "DRIVER_VERIFIER_DETECTED_VIOLATION: KeAcquireSpinLockAtDpcLevel below DISPATCH"));
    assert_non_null(strstr(text, "3: 0x0000000000005678  spin lock\n"));

    report_of(unknown_code, text, sizeof(text));
    assert_memory_equal(text, "*** STOP: 0x0000DEAD (", 22);
    assert_non_null(strstr(text, "unknown code"));
    assert_non_null(strstr(text, "IRQL 0 (PASSIVE_LEVEL), owns no processor"));
}

/* Explanations. */

static KEVENT an_event;
static KSPIN_LOCK a_spin_lock;

static void wait_at_dispatch_level(void)
{
    KfRaiseIrql(DISPATCH_LEVEL);
    KeWaitForSingleObject(&an_event, Executive, KernelMode, FALSE, NULL);
    __asm__ volatile("");
}

static void wait_above_dispatch_level(void)
{
    KfRaiseIrql(HIGH_LEVEL);
    KeWaitForSingleObject(&an_event, Executive, KernelMode, FALSE, NULL);
    __asm__ volatile("");
}

static void raise_a_status(void)
{
    ExRaiseStatus(STATUS_ACCESS_VIOLATION);
}

static void raise_an_unknown_status(void)
{
    ExRaiseStatus((NTSTATUS)0xE1234567);
}

static void free_with_a_wrong_tag(void)
{
    ExFreePoolWithTag(ExAllocatePoolWithTag(NonPagedPool, 32, 0x74736554), 0x64644f01);
    __asm__ volatile("");
}

static void allocate_without_a_tag(void)
{
    ExAllocatePoolWithTag(PagedPool, 32, 0);
    __asm__ volatile("");
}

static void name_a_lock(void)
{
    KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)&a_spin_lock, (ULONG_PTR)KeGetCurrentThread(), 0, 0);
}

/* As far from the first thread as other threads are, but in the program's data. */
static char no_threads[2 * sizeof(KI_THREAD_SLOT)];

static void name_no_thread(void)
{
    ULONG_PTR address = (ULONG_PTR)no_threads;

    while ((address - (ULONG_PTR)KiThreadChunk[0]) % sizeof(KI_THREAD_SLOT) != FIELD_OFFSET(KI_THREAD_SLOT, Tcb))
        address++;
    KeBugCheckEx(SPIN_LOCK_ALREADY_OWNED, (ULONG_PTR)&a_spin_lock, address, 0, 0);
}

static void fail_in_section(void *unused)
{
    (void)unused;
    KiEnterDispatcher(KiCurrentThread());
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void expect_in_section(void)
{
    VfExpectBugCheck(fail_in_section, NULL, NULL);
}

static const struct {
    void (*function)(void);
    const char *parts[5];
} explanations[] = {
    {wait_at_dispatch_level,
     {"IRQL_NOT_LESS_OR_EQUAL: waited at DISPATCH_LEVEL\n", "!an_event\n", "current IRQL: DISPATCH_LEVEL\n"}},
    {wait_above_dispatch_level, {"IRQL_NOT_LESS_OR_EQUAL: waited above DISPATCH_LEVEL\n", "current IRQL: HIGH_LEVEL\n"}},
    {raise_a_status, {"a status was raised and not caught\n", "status: STATUS_ACCESS_VIOLATION (0xC0000005)\n"}},
    {raise_an_unknown_status, {"status: no known status (0xE1234567)\n"}},
    {free_with_a_wrong_tag,
     {"BAD_POOL_CALLER: pool block freed with the wrong tag\n", "its tag: 'Test'\n", "given tag: '.Odd'\n"}},
    {allocate_without_a_tag, {"BAD_POOL_CALLER: pool allocation with tag 0\n", "pool type: PagedPool\n"}},
    {name_a_lock, {"spin lock: ke-bugcheck!a_spin_lock\n", "thread: this thread\n"}},
    {name_no_thread, {"thread: ke-bugcheck!no_threads+0x"}},
    {expect_in_section,
     {"interlock: an expected bugcheck is not caught: the thread holds a lock of the library (VfExpectBugCheckInChild catches it)\n"}},
};

/* Each kind of value; FALSE: it may be an address. */
static void values_are_explained(void **state)
{
    static const struct {
        const char *meaning;
        ULONG_PTR value;
        const char *text;
    } rows[] = {
        {"KernelApcDisable", 0xFFFE, "-2"}, {"SpecialApcDisable", 3, "3"},
        {"current IRQL", APC_LEVEL, "APC_LEVEL"}, {"0: none, 1: some", 1, ""},
        {"current IRQL", CMCI_LEVEL + 1, "level of a device"}, {"current IRQL", HIGH_LEVEL, "HIGH_LEVEL"},
        {"current IRQL", HIGH_LEVEL + 1, "no level"}, {"current IRQL", 255, "no level"},
        {"owner", 3, ""},
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        assert_false(KiExplainValue(rows[i].meaning, rows[i].value, text, sizeof(text)));
        assert_string_equal(text, rows[i].text);
    }
    assert_false(KiExplainValue("owner", 0xFFFF, text, sizeof(text)));
    assert_true(KiExplainValue("owner", 0x10000, text, sizeof(text)));
    assert_string_equal(text, "");
}

static void everything_is_explained(void **state)
{
    char text[16384];

    (void)state;
    KeInitializeEvent(&an_event, NotificationEvent, FALSE);
    for (size_t i = 0; i < ARRAYSIZE(explanations); i++) {
        report_of(explanations[i].function, text, sizeof(text));
        for (int part = 0; explanations[i].parts[part] != NULL; part++)
            if (strstr(text, explanations[i].parts[part]) == NULL)
                fail_msg("no \"%s\" in:\n%s", explanations[i].parts[part], text);
    }
}

/* The caller is where its call is: a call at the end of a function returns to what follows the function. */
static void call_before(void)
{
    KeBugCheckEx(BAD_POOL_CALLER, 0x9B, NonPagedPool, 32, (ULONG_PTR)name_a_lock);
}

static void a_caller_is_named_by_its_call(void **state)
{
    char text[16384];

    (void)state;
    report_of(call_before, text, sizeof(text));
    assert_non_null(strstr(text, "  caller: ke-bugcheck"));
    assert_null(strstr(text, "  caller: ke-bugcheck!name_a_lock\n"));
}

/* The frame with number 0. */
static const char *first_frame(const char *text)
{
    static char line[512];
    const char *frame = strstr(text, "\n   0  ");

    snprintf(line, sizeof(line), "%.*s", frame != NULL ? (int)strcspn(frame + 1, "\n") : 0, frame != NULL ? frame + 1 : "");
    return line;
}

static void the_stack_begins_at_the_caller(void **state)
{
    char text[16384];

    (void)state;
    report_of(known_code, text, sizeof(text));
    if (strstr(text, "no stack trace") != NULL)
        return;
    assert_non_null(strstr(first_frame(text), "ke-bugcheck!known_code+0x"));
    report_of(unknown_code, text, sizeof(text));
    assert_non_null(strstr(first_frame(text), "ke-bugcheck!unknown_code+0x"));
    /* not by the library's own functions */
    report_of(free_with_a_wrong_tag, text, sizeof(text));
    assert_non_null(strstr(first_frame(text), "!ExFreePoolWithTag+0x"));
    report_of(raise_a_status, text, sizeof(text));
    assert_non_null(strstr(first_frame(text), "!ExRaiseStatus+0x"));
}

static void *fail_too(void *barrier)
{
    pthread_barrier_wait(barrier);
    KeBugCheckEx(MANUALLY_INITIATED_CRASH, (ULONG_PTR)pthread_self(), 0, 0, 0);
}

static void fail_together(void)
{
    pthread_barrier_t barrier;
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, fail_too, &barrier);
    fail_too(&barrier);
}

static void one_report(void **state)
{
    char text[65536];

    (void)state;
    for (int round = 0; round < 5; round++) {
        report_of(fail_together, text, sizeof(text));
        assert_int_equal(count_of(text, "*** STOP"), 1);
        assert_int_equal(count_of(text, "MANUALLY_INITIATED_CRASH"), 1);
    }
}

static void say(PVOID buffer, ULONG length)
{
    fprintf(stderr, "callback %.*s\n", (int)length, (char *)buffer);
}

static void fail_again(PVOID buffer, ULONG length)
{
    (void)buffer;
    (void)length;
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static KBUGCHECK_CALLBACK_RECORD records[4];

static void with_callbacks(void)
{
    static char text[4][4] = {"one", "two", "thr", "fou"};

    for (int i = 0; i < 4; i++) {
        KeInitializeCallbackRecord(&records[i]);
        require(KeRegisterBugCheckCallback(&records[i], i == 3 ? fail_again : say, text[i], 3, NULL));
        require(!KeRegisterBugCheckCallback(&records[i], say, text[i], 3, NULL));
    }
    require(KeDeregisterBugCheckCallback(&records[1]));
    require(!KeDeregisterBugCheckCallback(&records[1]));
    records[2].Length = 2; /* no longer what was registered */
    KeBugCheck(MANUALLY_INITIATED_CRASH);
}

static void callbacks(void **state)
{
    char text[16384];

    (void)state;
    report_of(with_callbacks, text, sizeof(text));
    assert_int_equal(count_of(text, "*** STOP"), 1);
    assert_int_equal(count_of(text, "\ncallback"), 1);
    assert_non_null(strstr(text, "callback one\n"));
}

static void fail_fast(void *code)
{
    RtlFailFast((ULONG)(uintptr_t)code);
}

static void corrupt_list(void *unused)
{
    LIST_ENTRY head, entry;

    (void)unused;
    InitializeListHead(&head);
    InsertTailList(&head, &entry);
    head.Blink = &head;
    RemoveEntryList(&entry);
}

static void failing_fast(void **state)
{
    (void)state;
    expect_bugcheck(KERNEL_SECURITY_CHECK_FAILURE, fail_fast, (void *)FAST_FAIL_INVALID_ARG);
    expect_bugcheck(KERNEL_SECURITY_CHECK_FAILURE, corrupt_list, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_report),
        cmocka_unit_test(everything_is_explained),
        cmocka_unit_test(values_are_explained),
        cmocka_unit_test(a_caller_is_named_by_its_call),
        cmocka_unit_test(the_stack_begins_at_the_caller),
        cmocka_unit_test(one_report),
        cmocka_unit_test(callbacks),
        cmocka_unit_test(failing_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
