/* Contended critical sections: with waits by address and by event, with timeouts, freed by the last owner. */
#include "freedbylast.h"

#include <fcntl.h>
#include <unistd.h>

#include <interlock/exception.h>

#include "rtl/criticalsection.h"

#define MOST_THREADS 16

/* Exclusion, recursion, tries. The protected memory is plain, for sanitizers to see. */

struct account {
    RTL_CRITICAL_SECTION section;
    unsigned long rounds;
    unsigned long balance;
    unsigned depth;
};

static void deposit(struct account *account, unsigned nested)
{
    require(account->depth == nested);
    account->depth += 1;
    account->balance += 1;
    if (nested < 2) {
        require(RtlTryEnterCriticalSection(&account->section));
        deposit(account, nested + 1);
        require(RtlLeaveCriticalSection(&account->section) == STATUS_SUCCESS);
    }
    account->depth -= 1;
}

static void enter_somehow(struct account *account, test_random *random)
{
    if (random_below(random, 4) == 0) {
        while (!RtlTryEnterCriticalSection(&account->section))
            sched_yield();
    } else {
        require(RtlEnterCriticalSection(&account->section) == STATUS_SUCCESS);
    }
}

static void contend(void *argument, unsigned index)
{
    struct account *account = argument;
    test_random random;

    random_seed(&random, index);
    for (unsigned long i = 0; i < account->rounds; i++) {
        enter_somehow(account, &random);
        require(account->section.OwningThread == ULongToHandle(KeGetCurrentThread()->ThreadId));
        deposit(account, 0);
        if (random_below(&random, 64) == 0)
            sched_yield();
        require(RtlLeaveCriticalSection(&account->section) == STATUS_SUCCESS);
        spin_for(random_below(&random, 50));
    }
}

static void assert_free(RTL_CRITICAL_SECTION *section)
{
    assert_int_equal(section->LockCount, -1);
    assert_int_equal(section->RecursionCount, 0);
    assert_null(section->OwningThread);
}

static void contend_with(unsigned threads, BOOLEAN events)
{
    struct account account = {.rounds = test_rounds(40000) / threads + 1};

    RtlpForceCSToUseEvents = events;
    assert_int_equal(
        RtlInitializeCriticalSectionEx(&account.section, 0, RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO),
        STATUS_SUCCESS);
    run_threads(threads, HANG_SECONDS, contend, &account);
    assert_free(&account.section);
    assert_int_equal(account.balance, 3 * account.rounds * threads);
    assert_int_equal(account.section.DebugInfo->EntryCount, account.section.DebugInfo->ContentionCount);
    assert_int_equal(RtlDeleteCriticalSection(&account.section), STATUS_SUCCESS);
    RtlpForceCSToUseEvents = FALSE;
}

static void two_threads(void **state)
{
    (void)state;
    contend_with(2, FALSE);
    contend_with(2, TRUE);
}

static void four_threads(void **state)
{
    (void)state;
    contend_with(4, FALSE);
    contend_with(4, TRUE);
}

static void sixteen_threads(void **state)
{
    (void)state;
    contend_with(16, FALSE);
    contend_with(16, TRUE);
}

/* Sections that do not spin: every contended enter sleeps and is woken, and a lost wake hangs. */

static void pass_on(void *argument, unsigned index)
{
    struct account *account = argument;

    (void)index;
    for (unsigned long i = 0; i < account->rounds; i++) {
        require(RtlEnterCriticalSection(&account->section) == STATUS_SUCCESS);
        account->balance += 1;
        sched_yield();
        require(RtlLeaveCriticalSection(&account->section) == STATUS_SUCCESS);
    }
}

static void sleepers(void **state)
{
    (void)state;
    for (int events = 0; events < 2; events++) {
        struct account account = {.rounds = test_rounds(2000)};

        RtlpForceCSToUseEvents = events != 0;
        RtlInitializeCriticalSection(&account.section);
        RtlSetCriticalSectionSpinCount(&account.section, 0);
        run_threads(4, HANG_SECONDS, pass_on, &account);
        assert_free(&account.section);
        assert_int_equal(account.balance, 4 * account.rounds);
        RtlDeleteCriticalSection(&account.section);
    }
    RtlpForceCSToUseEvents = FALSE;
}

/* The last thread to leave deletes and frees the section, whatever the one before is still doing. */

typedef struct shared {
    RTL_CRITICAL_SECTION section;
    unsigned users;
} shared;

static void make_section(void *object, unsigned users)
{
    shared *s = object;

    require(RtlInitializeCriticalSection(&s->section) == STATUS_SUCCESS);
    s->users = users;
}

static int is_last(void *object, unsigned index, test_random *random)
{
    shared *s = object;
    int last;

    (void)index;
    (void)random;
    require(RtlEnterCriticalSection(&s->section) == STATUS_SUCCESS);
    last = --s->users == 0;
    require(RtlLeaveCriticalSection(&s->section) == STATUS_SUCCESS);
    return last;
}

static void delete_section(void *object)
{
    require(RtlDeleteCriticalSection(object) == STATUS_SUCCESS);
}

static void freed_by_the_last(void **state)
{
    static const object_kind kind = {sizeof(shared), make_section, is_last, delete_section};

    (void)state;
    for (int events = 0; events < 2; events++) {
        RtlpForceCSToUseEvents = events != 0;
        free_by_the_last(&kind, 3, test_rounds(3000));
    }
    RtlpForceCSToUseEvents = FALSE;
}

/* Timeouts: waits end at the second one, at the same moment as a wake, and no wake is lost or left pending. */

static unsigned long given_up;

static void enter_or_give_up(struct account *account)
{
    __try {
        RtlEnterCriticalSection(&account->section);
        account->balance += 1;
        spin_for(2000);
        RtlLeaveCriticalSection(&account->section);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        require(GetExceptionCode() == STATUS_POSSIBLE_DEADLOCK);
        add(&given_up, 1);
    }
}

static void contend_and_give_up(void *argument, unsigned index)
{
    struct account *account = argument;

    (void)index;
    want_exact_timeouts();
    for (unsigned long i = 0; i < account->rounds; i++)
        enter_or_give_up(account);
}

static void giving_up(void **state)
{
    LONGLONG timeout = RtlpTimeout;
    int errors = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);

    (void)state;
    RtlpTimeout = 200;
    dup2(nowhere, STDERR_FILENO);
    for (int events = 0; events < 2; events++) {
        struct account account = {.rounds = test_rounds(300)};

        RtlpForceCSToUseEvents = events != 0;
        given_up = 0;
        RtlInitializeCriticalSection(&account.section);
        RtlSetCriticalSectionSpinCount(&account.section, 0);
        run_threads(4, HANG_SECONDS, contend_and_give_up, &account);
        assert_free(&account.section);
        assert_int_equal(account.balance + given_up, 4 * account.rounds);
        RtlDeleteCriticalSection(&account.section);
    }
    dup2(errors, STDERR_FILENO);
    close(errors);
    close(nowhere);
    RtlpTimeout = timeout;
    RtlpForceCSToUseEvents = FALSE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads), cmocka_unit_test(four_threads),      cmocka_unit_test(sixteen_threads),
        cmocka_unit_test(sleepers),    cmocka_unit_test(freed_by_the_last), cmocka_unit_test(giving_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
