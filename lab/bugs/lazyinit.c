/* Lazy initialization: check and creation in two steps. */
#include <interlock/lab.h>

typedef struct thing {
    int value;
} thing;

static thing *the_thing;

static thing *make(void)
{
    thing *t = LabAllocate(sizeof(*t));
    t->value = 42;
    return t;
}

/* Both threads find nothing, both create one, and one is leaked. */
static void get_twice_made(void)
{
    thing *t = __atomic_load_n(&the_thing, __ATOMIC_ACQUIRE);
    if (t == NULL) {
        t = make();
        __atomic_store_n(&the_thing, t, __ATOMIC_RELEASE);
    }
    LabAssert(t->value == 42);
}

static void finish(void)
{
    LabFree(the_thing);
}
LAB_SCENARIO(lazy_made_twice, .Threads = {get_twice_made, get_twice_made}, .Finish = finish, .Flags = LAB_CHECK_LEAKS,
             .Expect = "leak");

/* Published by a plain store. */
static void get_plainly(void)
{
    if (the_thing == NULL)
        the_thing = make();
    LabAssert(the_thing->value == 42);
}
LAB_SCENARIO(lazy_published_plainly, .Threads = {get_plainly, get_plainly}, .Expect = "race");

/* Published without release: on some machines the pointer becomes visible before the data. */
static void get_relaxed(void)
{
    thing *t = __atomic_load_n(&the_thing, __ATOMIC_RELAXED);
    if (t == NULL) {
        thing *expected = NULL;
        t = make();
        if (!__atomic_compare_exchange_n(&the_thing, &expected, t, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            LabFree(t);
            t = expected;
        }
    }
    LabAssert(t->value == 42);
}
LAB_SCENARIO(lazy_published_relaxed, .Threads = {get_relaxed, get_relaxed}, .Expect = "race");

static void get_right(void)
{
    thing *t = __atomic_load_n(&the_thing, __ATOMIC_ACQUIRE);
    if (t == NULL) {
        thing *expected = NULL;
        t = make();
        if (!__atomic_compare_exchange_n(&the_thing, &expected, t, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            LabFree(t);
            t = expected;
        }
    }
    LabAssert(t->value == 42);
}
LAB_SCENARIO(lazy_correct, .Threads = {get_right, get_right, get_right}, .Finish = finish, .Flags = LAB_CHECK_LEAKS,
             .Model = "c11");
