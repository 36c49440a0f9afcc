/* Critical sections: exclusion and wakes, by address and by event, waits that give up, memory that goes at once. */
#include <interlock/lab.h>

#include <ntddk.h>

#include <interlock/exception.h>
#include <interlock/rtl.h>

#include "rtl/criticalsection.h"

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

/* Whoever leaves last deletes the section and frees it. */

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
