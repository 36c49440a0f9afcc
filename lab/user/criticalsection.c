/* Critical sections: exclusion and wakes, by address and by event, waits that time out, memory freed at once. */
#include <interlock/lab.h>

#include <ntddk.h>

#include <interlock/exception.h>
#include <interlock/rtl.h>

#include "rtl/criticalsection.h"

#include "four.h"

static RTL_CRITICAL_SECTION section;
static int entered;
static int given_up;

static void initialize(LONGLONG longest_wait)
{
    RtlpTimeout = longest_wait;
    RtlInitializeCriticalSection(&section);
    RtlSetCriticalSectionSpinCount(&section, 0);
}

static void initialize_patient(void)
{
    initialize(0);
}

static void initialize_impatient(void)
{
    initialize(RTLP_SECOND);
}

static void initialize_with_event(void)
{
    RtlpForceCSToUseEvents = TRUE;
    initialize_patient();
}

static void initialize_impatient_with_event(void)
{
    RtlpForceCSToUseEvents = TRUE;
    initialize_impatient();
}

static void user(void)
{
    RtlEnterCriticalSection(&section);
    LabAssert(section.RecursionCount == 1);
    entered += 1;
    RtlLeaveCriticalSection(&section);
}

static void nested_user(void)
{
    RtlEnterCriticalSection(&section);
    RtlEnterCriticalSection(&section);
    entered += 1;
    RtlLeaveCriticalSection(&section);
    RtlLeaveCriticalSection(&section);
}

static void trier(void)
{
    if (RtlTryEnterCriticalSection(&section)) {
        entered += 1;
        RtlLeaveCriticalSection(&section);
    } else {
        __atomic_fetch_add(&given_up, 1, __ATOMIC_RELAXED);
    }
}

static void impatient_user(void)
{
    __try {
        user();
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        LabAssert(GetExceptionCode() == STATUS_POSSIBLE_DEADLOCK);
        __atomic_fetch_add(&given_up, 1, __ATOMIC_RELAXED);
    }
}

static void is_free(void)
{
    LabAssert(section.LockCount == -1);
    LabAssert(section.RecursionCount == 0);
    LabAssert(section.OwningThread == NULL);
}

static void two_came(void)
{
    is_free();
    LabAssert(entered + given_up == 2);
}

static void three_came(void)
{
    is_free();
    LabAssert(entered + given_up == 3);
}

LAB_SCENARIO(section_two, .Setup = initialize_patient, .Threads = {user, user}, .Finish = two_came, .SpuriousWakes = 1);
LAB_SCENARIO(section_two_c11, .Setup = initialize_patient, .Threads = {user, user}, .Finish = two_came, .Model = "c11",
             .StaleReads = 2);
LAB_SCENARIO(section_nested, .Setup = initialize_patient, .Threads = {nested_user, user}, .Finish = two_came);
LAB_SCENARIO(section_three, .Setup = initialize_patient, .Threads = {user, user, user}, .Finish = three_came,
             .Flags = LAB_LARGE);
LAB_SCENARIO(section_try, .Setup = initialize_patient, .Threads = {user, trier, user}, .Finish = three_came,
             .Flags = LAB_LARGE);
LAB_SCENARIO(section_event_two, .Setup = initialize_with_event, .Threads = {user, user}, .Finish = two_came);
LAB_SCENARIO(section_event_three, .Setup = initialize_with_event, .Threads = {user, user, user}, .Finish = three_came,
             .Flags = LAB_LARGE);
LAB_SCENARIO(section_event_or_not, .Setup = initialize_with_event, .Threads = {user, user}, .Finish = two_came,
             .AllocationFailures = 1);
LAB_SCENARIO(section_give_up_two, .Setup = initialize_impatient, .Threads = {impatient_user, impatient_user},
             .Finish = two_came);
LAB_SCENARIO(section_give_up_three, .Setup = initialize_impatient,
             .Threads = {impatient_user, impatient_user, impatient_user}, .Finish = three_came, .Flags = LAB_LARGE);
LAB_SCENARIO(section_event_give_up, .Setup = initialize_impatient_with_event,
             .Threads = {impatient_user, impatient_user, impatient_user}, .Finish = three_came, .Flags = LAB_LARGE);

/* The woken thread does not run: it is suspended, or has exited. Others answer the wake instead, even though it stays
   in the count. */
static void initialize_woken(void)
{
    initialize_patient();
    RtlEnterCriticalSection(&section);
    section.LockCount -= RTLP_NONE_WOKEN;
}

/* Leaves the section that Setup entered for it. */
static void leaver(void)
{
    __atomic_store_n(&section.OwningThread, PsGetCurrentThreadId(), __ATOMIC_RELAXED);
    RtlLeaveCriticalSection(&section);
}

static void is_left(void)
{
    LabAssert(!RtlIsCriticalSectionLocked(&section));
}
LAB_SCENARIO(section_woken_stays_away, .Setup = initialize_woken, .Threads = {leaver, user}, .Finish = is_left);
LAB_SCENARIO(section_woken_stays_away_three, .Setup = initialize_woken, .Threads = {leaver, user, user},
             .Finish = is_left, .Flags = LAB_LARGE);

/*
 * A value of LockCount that recurs. The sleeper counts itself while the first waiter is in transit, and before it is in
 * the hash the section changes hands until LockCount has the value that the sleeper saw: held, one woken, one waiter.
 * By now that is the last waiter, and the wake was for the sleeper.
 */
static volatile LONG passed, returned;

static void initialize_held(void)
{
    initialize_patient();
    RtlEnterCriticalSection(&section);
}

static void initialize_held_with_event(void)
{
    RtlpForceCSToUseEvents = TRUE;
    initialize_held();
}

static void await_waiter(void)
{
    while (RtlpWaitersOf(RtlpReadLockCount(&section)) == 0)
        ;
}

static void await_flag(volatile LONG *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        ;
}

static void enter_until_waiter(volatile LONG *flag)
{
    RtlEnterCriticalSection(&section);
    entered += 1;
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    await_waiter();
    RtlLeaveCriticalSection(&section);
}

static void owner_that_passes(void)
{
    await_waiter();
    leaver();
    enter_until_waiter(&passed);
}

static void first_waiter(void)
{
    user();
    enter_until_waiter(&returned);
}

static void sleeper(void)
{
    await_flag(&passed);
    user();
}

static void last_waiter(void)
{
    await_flag(&returned);
    user();
}

static void five_came(void)
{
    is_free();
    LabAssert(entered == 5);
}
LAB_SCENARIO(section_value_returns, .Setup = initialize_held,
             .Threads = {owner_that_passes, first_waiter, sleeper, last_waiter}, .Finish = five_came,
             .Flags = LAB_LARGE);
LAB_SCENARIO(section_value_returns_c11, .Setup = initialize_held,
             .Threads = {owner_that_passes, first_waiter, sleeper, last_waiter}, .Finish = five_came, .Model = "c11",
             .StaleReads = 2, .Flags = LAB_LARGE);
LAB_SCENARIO(section_event_value_returns, .Setup = initialize_held_with_event,
             .Threads = {owner_that_passes, first_waiter, sleeper, last_waiter}, .Finish = five_came,
             .Flags = LAB_LARGE);

/* Four threads, three times each. */
FOUR_REPEAT(user_thrice, 3, user())
FOUR_REPEAT(impatient_user_thrice, 3, impatient_user())

static void twelve_came(void)
{
    is_free();
    LabAssert(entered + given_up == 12);
}
FOUR_SCENARIO(section_4x3, user_thrice, user_thrice, user_thrice, user_thrice, .Setup = initialize_patient,
              .Finish = twelve_came);
FOUR_SCENARIO(section_4x3_c11, user_thrice, user_thrice, user_thrice, user_thrice, .Setup = initialize_patient,
              .Finish = twelve_came, .Model = "c11", .StaleReads = 2);
FOUR_SCENARIO(section_event_4x3, user_thrice, user_thrice, user_thrice, user_thrice, .Setup = initialize_with_event,
              .Finish = twelve_came);
FOUR_SCENARIO(section_give_up_4x3, impatient_user_thrice, impatient_user_thrice, impatient_user_thrice,
              impatient_user_thrice, .Setup = initialize_impatient, .Finish = twelve_came, .Timeouts = 4);
FOUR_SCENARIO(section_event_give_up_4x3, impatient_user_thrice, impatient_user_thrice, impatient_user_thrice,
              impatient_user_thrice, .Setup = initialize_impatient_with_event, .Finish = twelve_came, .Timeouts = 4);

/* The last thread to leave deletes and frees the section. */

typedef struct common {
    RTL_CRITICAL_SECTION section;
    int users;
} common;

static common *shared;

static void initialize_shared(void)
{
    RtlpTimeout = 0;
    shared = LabAllocate(sizeof(*shared));
    shared->users = 2;
    RtlInitializeCriticalSection(&shared->section);
    RtlSetCriticalSectionSpinCount(&shared->section, 0);
}

static void use_and_free(void)
{
    common *mine = shared;
    RtlEnterCriticalSection(&mine->section);
    mine->users -= 1;
    int last = mine->users == 0;
    RtlLeaveCriticalSection(&mine->section);
    if (last) {
        RtlDeleteCriticalSection(&mine->section);
        LabFree(mine);
    }
}
LAB_SCENARIO(section_freed, .Setup = initialize_shared, .Threads = {use_and_free, use_and_free});
