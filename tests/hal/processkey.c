/* Which process is which: zombies, exec, and a first thread that has exited. */
#include "haltest.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_sleeper(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        for (;;)
            pause();
    }
    return child;
}

static void a_process_lives_until_it_is_dead(void **state)
{
    ULONG64 own = HalQueryProcessKey((ULONG)getpid());
    pid_t child = start_sleeper();
    ULONG64 key = HalQueryProcessKey((ULONG)child);
    siginfo_t info;

    (void)state;
    assert_true(own != 0 && key != 0 && own != key && (own | key) >> 63 == 0);
    assert_true(HalIsProcessAlive(own) && !HalIsProcessGone(own));
    assert_true(HalIsProcessAlive(key) && HalIsProcessAlive(HalKeyOfAnyProgram(key)));
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_true(HalIsProcessAlive(key));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_false(HalIsProcessAlive(key)); /* a zombie */
    assert_false(HalIsProcessGone(key));
    assert_int_equal(HalQueryProcessKey((ULONG)child), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(!HalIsProcessAlive(key) && HalIsProcessGone(key));
    assert_false(HalIsProcessAlive(own ^ 1ull << 40)); /* another start */
    assert_true(!HalIsProcessAlive(0) && HalIsProcessGone(0));
    assert_int_equal(HalQueryProcessKey(0), 0);
    assert_int_equal(HalQueryProcessKey(1u << HAL_PROCESS_ID_BITS), 0);
}

static void an_exec_is_another_process(void **state)
{
    int gate[2], ready[2];
    char byte;

    (void)state;
    assert_true(pipe(gate) == 0 && pipe2(ready, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (read(gate[0], &byte, 1) == 1)
            execl("/bin/sleep", "sleep", "50", (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    ULONG64 key = HalQueryProcessKey((ULONG)child);
    assert_true(HalIsProcessAlive(key));
    assert_int_equal(write(gate[1], "x", 1), 1);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* closed by the exec */
    while (HalIsProcessAlive(key))
        usleep(1000); /* while it loads, the host does not tell */
    assert_true(HalIsProcessAlive(HalKeyOfAnyProgram(key)));
    assert_true(HalIsProcessAlive(HalQueryProcessKey((ULONG)child)));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(gate[0]);
    close(gate[1]);
    close(ready[0]);
}

static void *sleep_on(void *argument)
{
    (void)argument;
    for (;;)
        pause();
    return NULL;
}

static void a_process_without_its_first_thread_lives(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        pthread_t thread;
        alarm(60);
        pthread_create(&thread, NULL, sleep_on, NULL);
        pthread_exit(NULL);
    }
    ULONG64 key = HalQueryProcessKey((ULONG)child);
    char path[64], line[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
    while (strstr(line, ") Z") == NULL) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof(line), file));
        fclose(file);
    }
    assert_true(HalIsProcessAlive(key));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(HalIsProcessAlive(key));
}

static void a_shared_word_wakes_another_process(void **state)
{
    const HAL_DEADLINE never = {HalNoDeadline, 0}, past = {HalInterruptTime, 1};
    volatile ULONG *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        alarm(60);
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
            HalWaitShared(word, 0, &never);
        _exit(0);
    }
    while (!sleeps_in_the_host((unsigned long)child))
        usleep(1000);
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    HalWakeShared(word, 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(HalWaitShared(word, 1, &past));
    assert_true(HalWaitShared(word, 0, &never));
    munmap((void *)(uintptr_t)word, 4096);
    assert_true(HalWaitShared(word, 0, &never)); /* the memory was unmapped */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_lives_until_it_is_dead),
        cmocka_unit_test(an_exec_is_another_process),
        cmocka_unit_test(a_process_without_its_first_thread_lives),
        cmocka_unit_test(a_shared_word_wakes_another_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
