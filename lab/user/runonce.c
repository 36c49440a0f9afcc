/* One-time initialization: run once, even if it fails at first, and asynchronously. */
#include <interlock/lab.h>

#include <ntddk.h>

#include <interlock/rtl.h>

static RTL_RUN_ONCE once;
static int resource DECLSPEC_ALIGN(8);
static int other DECLSPEC_ALIGN(8);
static int runs, failures, losers;

static ULONG initialize(PRTL_RUN_ONCE run_once, PVOID parameter, PVOID *context)
{
    UNREFERENCED_PARAMETER(run_once);
    UNREFERENCED_PARAMETER(parameter);
    runs += 1; /* no race: one thread at a time runs it */
    resource = 1;
    *context = &resource;
    return TRUE;
}

static void user(void)
{
    int *mine = NULL;
    LabAssert(RtlRunOnceExecuteOnce(&once, initialize, NULL, (PVOID *)&mine) == STATUS_SUCCESS);
    LabAssert(mine == &resource && *mine == 1);
}

static void checker(void)
{
    int *mine = NULL;
    NTSTATUS status = RtlRunOnceBeginInitialize(&once, RTL_RUN_ONCE_CHECK_ONLY, (PVOID *)&mine);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_UNSUCCESSFUL);
    if (status == STATUS_SUCCESS)
        LabAssert(mine == &resource && *mine == 1);
}

static void ran_once(void)
{
    LabAssert(runs == 1 && once.Ptr == (PVOID)((ULONG_PTR)&resource | 2));
}
LAB_SCENARIO(run_once_two, .Threads = {user, user}, .Finish = ran_once);
LAB_SCENARIO(run_once_two_c11, .Threads = {user, user}, .Finish = ran_once, .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(run_once_three, .Threads = {user, user, user}, .Finish = ran_once);
LAB_SCENARIO(run_once_check, .Threads = {user, checker, user}, .Finish = ran_once);

/* The first attempt fails: the waiters retry, and one of them runs it. */
static ULONG initialize_at_second(PRTL_RUN_ONCE run_once, PVOID parameter, PVOID *context)
{
    if (failures == 0) {
        failures += 1;
        return FALSE;
    }
    return initialize(run_once, parameter, context);
}

static void user_of_failing(void)
{
    int *mine = NULL;
    NTSTATUS status = RtlRunOnceExecuteOnce(&once, initialize_at_second, NULL, (PVOID *)&mine);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_UNSUCCESSFUL);
    LabAssert((status == STATUS_SUCCESS) == (mine == &resource));
    if (status == STATUS_UNSUCCESSFUL)
        LabAssert(__atomic_fetch_add(&losers, 1, __ATOMIC_RELAXED) == 0);
}

static void failed_once(void)
{
    ran_once();
    LabAssert(failures == 1 && losers == 1);
}
LAB_SCENARIO(run_once_fails, .Threads = {user_of_failing, user_of_failing}, .Finish = failed_once);
LAB_SCENARIO(run_once_fails_three, .Threads = {user_of_failing, user_of_failing, user_of_failing},
             .Finish = failed_once, .Flags = LAB_LARGE);

/* Asynchronously: each creates its own, the first to complete wins, and the loser gets the winner's. */
static void racer(int *made)
{
    int *mine = NULL;
    NTSTATUS status = RtlRunOnceBeginInitialize(&once, RTL_RUN_ONCE_ASYNC, (PVOID *)&mine);
    if (status == STATUS_PENDING) {
        *made = 1;
        status = RtlRunOnceComplete(&once, RTL_RUN_ONCE_ASYNC, made);
        if (status == STATUS_SUCCESS) {
            __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
            return;
        }
        LabAssert(status == STATUS_UNSUCCESSFUL);
        status = RtlRunOnceBeginInitialize(&once, RTL_RUN_ONCE_CHECK_ONLY, (PVOID *)&mine);
    }
    LabAssert(status == STATUS_SUCCESS);
    LabAssert(mine != made && *mine == 1);
}

static void first_racer(void)
{
    racer(&resource);
}

static void second_racer(void)
{
    racer(&other);
}

static void one_won(void)
{
    LabAssert(runs == 1);
}
LAB_SCENARIO(run_once_async, .Threads = {first_racer, second_racer}, .Finish = one_won);
LAB_SCENARIO(run_once_async_c11, .Threads = {first_racer, second_racer}, .Finish = one_won, .Model = "c11");
