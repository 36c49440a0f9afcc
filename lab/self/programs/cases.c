/* cases.c: test cases of cmocka, for command.py. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

static atomic_int count;

static void *update(void *unused)
{
    int seen = count;
    count = seen + 1;
    return unused;
}

static void *add(void *unused)
{
    count++;
    return unused;
}

static void run_twice(void *(*routine)(void *))
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, routine, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void torn_update(void **state)
{
    (void)state;
    run_twice(update);
    assert_int_equal(count, 2);
}

static void whole_update(void **state)
{
    (void)state;
    run_twice(add);
    assert_int_equal(count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_update), cmocka_unit_test(torn_update)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
