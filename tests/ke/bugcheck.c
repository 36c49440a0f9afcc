#include "machine.h"

#include <pthread.h>
#include <signal.h>

#include "ke/ki.h"

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
                        "0x0000000000000004)\nSPIN_LOCK_NOT_OWNED\n",
                        sizeof("*** STOP: 0x00000010 (0x0000000000001234, 0xFFFFFFFFFFFFFFFF, 0x0000000000000003, "
                               "0x0000000000000004)\nSPIN_LOCK_NOT_OWNED\n") - 1);
    assert_non_null(strstr(text, "1: 0x0000000000001234  spin lock\n"));
    assert_non_null(strstr(text, "3: 0x0000000000000003  owner\n"));
    assert_null(strstr(text, "4: 0x"));
    assert_non_null(strstr(text, "IRQL 2, processor "));

    report_of(verifier_code, text, sizeof(text));
    assert_non_null(strstr(text, "DRIVER_VERIFIER_DETECTED_VIOLATION: KeAcquireSpinLockAtDpcLevel below DISPATCH"));
    assert_non_null(strstr(text, "3: 0x0000000000005678  spin lock\n"));

    report_of(unknown_code, text, sizeof(text));
    assert_memory_equal(text, "*** STOP: 0x0000DEAD (", 22);
    assert_non_null(strstr(text, "unknown code"));
    assert_non_null(strstr(text, "IRQL 0, owns no processor"));
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
    assert_int_equal(count_of(text, "callback"), 1);
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
        cmocka_unit_test(one_report),
        cmocka_unit_test(callbacks),
        cmocka_unit_test(failing_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
