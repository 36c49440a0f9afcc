/* Cleanup groups that are cancelled while callbacks of their members run. The context of a member is freed by its
   callback, if that closes the member, or by the cancel callback: exactly once, and after the last use. */
#include "../win32/tptest.h"

#include <stdlib.h>

#define MEMBERS 6

typedef struct shared {
    volatile ULONG alive;
    volatile ULONG running;
} shared;

typedef struct member {
    shared *group;
    ULONG kind;
    volatile ULONG uses;
} member;

static void forget(member *m)
{
    subtract_one(&m->group->alive);
    free(m);
}

static void cancelled(PVOID context, PVOID cleanup)
{
    shared *s = cleanup;
    member *m = context;
    check(m->group == s && count_of(&s->running) == 0);
    forget(m);
}

static void run(PTP_CALLBACK_INSTANCE instance, PVOID context, PTP_WORK work)
{
    member *m = context;
    shared *s = m->group;
    add_one(&s->running);
    if (m->kind & 1) {
        DisassociateCurrentThreadFromCallback(instance);
    }
    add_one(&m->uses);
    if (m->kind & 2) {
        CloseThreadpoolWork(work);
        pause_briefly();
        forget(m);
    } else {
        add_one(&m->uses);
    }
    subtract_one(&s->running);
}

static void run_once(PTP_CALLBACK_INSTANCE instance, PVOID context)
{
    member *m = context;
    shared *s = m->group;
    (void)instance;
    add_one(&s->running);
    forget(m);
    subtract_one(&s->running);
}

static void add_member(shared *s, PTP_CALLBACK_ENVIRON environment, test_random *random)
{
    member *m = calloc(1, sizeof(*m));
    check(m != NULL);
    *m = (member){.group = s, .kind = random_below(random, 5)};
    add_one(&s->alive);
    if (m->kind == 4) {
        check(TrySubmitThreadpoolCallback(run_once, m, environment));
        return;
    }
    PTP_WORK work = CreateThreadpoolWork(run, m, environment);
    check(work != NULL);
    /* a member that closes itself is submitted once: afterwards it is gone */
    for (ULONG i = m->kind & 2 ? 1 : random_below(random, 3); i != 0; i -= 1) {
        SubmitThreadpoolWork(work);
    }
}

static void cancel_groups(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(600);
    test_random random;
    (void)argument;
    random_seed(&random, index);
    for (unsigned long i = 0; i < rounds; i += 1) {
        PTP_CLEANUP_GROUP group = CreateThreadpoolCleanupGroup();
        TP_CALLBACK_ENVIRON environment;
        shared s = {.alive = 0};
        InitializeThreadpoolEnvironment(&environment);
        SetThreadpoolCallbackCleanupGroup(&environment, group, cancelled);
        for (ULONG n = 0; n < MEMBERS; n += 1) {
            add_member(&s, &environment, &random);
        }
        if (random_below(&random, 2)) {
            pause_briefly();
        }
        CloseThreadpoolCleanupGroupMembers(group, TRUE, &s);
        check(count_of(&s.alive) == 0 && count_of(&s.running) == 0);
        CloseThreadpoolCleanupGroup(group);
    }
}

static void test_cancel(void **state)
{
    (void)state;
    run_threads(3, 120, cancel_groups, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
