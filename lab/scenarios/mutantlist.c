/* The list of a thread's mutants: one that is acquired recursively is in it once, and the others stay in it. */
#include <interlock/lab.h>

#include <ntifs.h>

static KMUTANT first, second;

static void setup(void)
{
    KeInitializeMutant(&first, FALSE);
    KeInitializeMutant(&second, FALSE);
}

static NTSTATUS take(PRKMUTANT mutant)
{
    return KeWaitForSingleObject(mutant, Executive, KernelMode, FALSE, NULL);
}

static void release(PRKMUTANT mutant)
{
    KeReleaseMutant(mutant, IO_NO_INCREMENT, FALSE, FALSE);
}

static void owner_that_ends(void)
{
    take(&first);
    take(&second);
    LabAssert(take(&first) == STATUS_SUCCESS);
    release(&first);
    release(&first);
}

static void heir(void)
{
    NTSTATUS status = take(&second);

    LabAssert(status == STATUS_SUCCESS || status == STATUS_ABANDONED);
    release(&second);
    LabAssert(take(&first) == STATUS_SUCCESS);
    release(&first);
}

static void both_are_free(void)
{
    LabAssert(first.Header.SignalState == 1 && second.Header.SignalState == 1);
    LabAssert(first.OwnerThread == NULL && second.OwnerThread == NULL);
}
LAB_SCENARIO(mutant_twice_in_list, .Setup = setup, .Threads = {owner_that_ends, heir}, .Finish = both_are_free,
             .Flags = LAB_RUN_EXIT);

/* The same with a wait for both. */
static void owner_of_both(void)
{
    PVOID objects[] = {&first, &second};

    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) == STATUS_WAIT_0);
    LabAssert(take(&first) == STATUS_SUCCESS);
    release(&first);
    release(&first);
}

static void holder_of_first(void)
{
    take(&first);
    release(&first);
}
LAB_SCENARIO(mutant_both_in_list, .Setup = setup, .Threads = {owner_of_both, holder_of_first, heir},
             .Finish = both_are_free, .Flags = LAB_RUN_EXIT);

/* A WaitAll that gets an abandoned mutant reports it, whichever thread releases it. */
static KEVENT taken, lamp;

static void setup_abandoned(void)
{
    setup();
    KeInitializeEvent(&taken, NotificationEvent, FALSE);
    KeInitializeEvent(&lamp, NotificationEvent, FALSE);
}

static void owner_that_abandons(void)
{
    take(&first);
    KeSetEvent(&taken, IO_NO_INCREMENT, FALSE);
}

static void heir_with_lamp(void)
{
    PVOID objects[] = {&first, &lamp};

    KeWaitForSingleObject(&taken, Executive, KernelMode, FALSE, NULL);
    LabAssert(KeWaitForMultipleObjects(2, objects, WaitAll, Executive, KernelMode, FALSE, NULL, NULL) ==
              STATUS_ABANDONED);
    release(&first);
}

static void light(void)
{
    KeSetEvent(&lamp, IO_NO_INCREMENT, FALSE);
}
LAB_SCENARIO(mutant_abandoned_wait_all, .Setup = setup_abandoned,
             .Threads = {owner_that_abandons, heir_with_lamp, light}, .Finish = both_are_free, .Flags = LAB_RUN_EXIT);
