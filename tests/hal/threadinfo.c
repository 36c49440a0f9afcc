#include "haltest.h"

#include "hal/halp.h"

#include <pthread.h>
#include <string.h>

struct subject {
    volatile ULONG id;
    volatile ULONG go;
    volatile ULONG burn;
};

static VOID stay(PVOID context)
{
    struct subject *subject = context;

    __atomic_store_n(&subject->id, HalCurrentThreadId(), __ATOMIC_RELEASE);
    while (__atomic_load_n(&subject->burn, __ATOMIC_RELAXED) != 0)
        continue;
    wait_until_set(&subject->go);
}

static void read_name(ULONG id, char *name, size_t size)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%u/comm", id);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(name, (int)size, file));
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
}

static void the_name_of_another_thread(void **state)
{
    static struct subject subject; /* the thread may still read it after the test */
    char name[32];

    (void)state;
    assert_int_equal(HalCreateThread(stay, &subject, 0, "before"), STATUS_SUCCESS);
    wait_until_set(&subject.id);
    read_name(subject.id, name, sizeof(name));
    assert_string_equal(name, "before");
    HalSetThreadName(subject.id, "after");
    read_name(subject.id, name, sizeof(name));
    assert_string_equal(name, "after");
    HalSetThreadName(subject.id, "123456789012345678");
    read_name(subject.id, name, sizeof(name));
    assert_string_equal(name, "123456789012345");
    errno = 77;
    HalSetThreadName(0x7ffffff0, "nobody");
    assert_int_equal(errno, 77);
    set_flag(&subject.go);
}

/* A thread that computes uses time, and one that does not exist has used none. */
static void the_times_of_threads(void **state)
{
    static struct subject subject = {.burn = 1};
    ULONGLONG kernel, user, own_kernel, own_user;

    (void)state;
    assert_int_equal(HalCreateThread(stay, &subject, 0, "a) b (c"), STATUS_SUCCESS);
    wait_until_set(&subject.id);
    watchdog_start(60);
    do {
        HalQueryThreadTimes(subject.id, &kernel, &user);
    } while (kernel + user < 20 * MILLISECOND);
    watchdog_stop();
    __atomic_store_n(&subject.burn, 0, __ATOMIC_RELAXED);
    set_flag(&subject.go);
    HalQueryThreadTimes(HalCurrentThreadId(), &own_kernel, &own_user);
    assert_true(own_kernel + own_user > 0);
    kernel = user = 1;
    HalQueryThreadTimes(0x7ffffff0, &kernel, &user);
    assert_int_equal(kernel, 0);
    assert_int_equal(user, 0);
}

static pthread_key_t key;
static volatile ULONG destroyed, past;
static volatile UCHAR stack_is_left;

static void destroy(void *value)
{
    (void)value;
    set_flag(&destroyed);
}

static void *vanish(void *argument)
{
    pthread_cleanup_push(destroy, NULL);
    pthread_setspecific(key, argument);
    HalTerminateThread(&stack_is_left);
    pthread_cleanup_pop(0);
    set_flag(&past);
    return NULL;
}

/* The host knows that it has ended, and no code of the program has run. */
static void a_thread_that_vanishes(void **state)
{
    pthread_t thread;

    (void)state;
    if (test_slowdown() != 1)
        skip(); /* a sanitizer waits forever for a thread whose end it did not see */
    assert_int_equal(pthread_key_create(&key, destroy), 0);
    assert_int_equal(pthread_create(&thread, NULL, vanish, &key), 0);
    watchdog_start(60);
    assert_int_equal(pthread_join(thread, NULL), 0);
    watchdog_stop();
    assert_int_equal(destroyed, 0);
    assert_int_equal(past, 0);
    assert_true(stack_is_left);
}

static void errors_by_name(void **state)
{
    static const int numbers[] = {
        [HalErrorInvalid] = EINVAL, [HalErrorAccess] = EACCES, [HalErrorMemory] = ENOMEM, [HalErrorAgain] = EAGAIN};

    (void)state;
    for (int error = HalErrorInvalid; error <= HalErrorAgain; error++) {
        HalSetError((HAL_ERROR)error);
        assert_int_equal(errno, numbers[error]);
    }
}

int main(void)
{
    static const HAL_CALLBACKS callbacks;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_of_another_thread),
        cmocka_unit_test(the_times_of_threads),
        cmocka_unit_test(a_thread_that_vanishes),
        cmocka_unit_test(errors_by_name),
    };

    HalInitialize(&callbacks);
    HalCompleteInitialization();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
