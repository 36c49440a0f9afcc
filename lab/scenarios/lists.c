/* SLISTs, rundown protection, fast references. */
#include <interlock/lab.h>

#include <ntifs.h>

static SLIST_HEADER list DECLSPEC_ALIGN(16);
static SLIST_ENTRY entries[3] DECLSPEC_ALIGN(16);

static void setup(void)
{
    InitializeSListHead(&list);
    for (int i = 0; i < 2; i++)
        InterlockedPushEntrySList(&list, &entries[i]);
}

static int owned[3];

static void own(PSLIST_ENTRY entry)
{
    if (entry != NULL)
        LabAssert(__atomic_fetch_add(&owned[entry - entries], 1, __ATOMIC_RELAXED) == 0);
}

static void popper(void)
{
    own(InterlockedPopEntrySList(&list));
}

/* What makes a stack without a sequence number fail. */
static void juggler(void)
{
    PSLIST_ENTRY first = InterlockedPopEntrySList(&list);
    own(InterlockedPopEntrySList(&list));
    if (first != NULL)
        InterlockedPushEntrySList(&list, first);
}
LAB_SCENARIO(slist_pop_against_juggler, .Setup = setup, .Threads = {popper, juggler});
LAB_SCENARIO(slist_two_poppers, .Setup = setup, .Threads = {popper, popper, popper});

static void empty(void)
{
    InitializeSListHead(&list);
}

static void recorded_pusher(void)
{
    for (int i = 0; i < 2; i++) {
        unsigned operation = LabBegin(0, (intptr_t)&entries[i]);
        InterlockedPushEntrySList(&list, &entries[i]);
        LabEnd(operation, 0);
    }
}

static void recorded_popper(void)
{
    for (int i = 0; i < 2; i++) {
        unsigned operation = LabBegin(1, 0);
        LabEnd(operation, (intptr_t)InterlockedPopEntrySList(&list));
    }
}

static void is_a_stack(void)
{
    LabCheckLinearizable(&LabModelStack);
}
LAB_SCENARIO(slist_history, .Setup = empty, .Threads = {recorded_pusher, recorded_popper}, .Finish = is_a_stack);

/* Rundown protection: nobody is inside when the wait is over, nobody gets in after. */
static EX_RUNDOWN_REF rundown;
static int *object;
static int gone;

static void setup_rundown(void)
{
    ExInitializeRundownProtection(&rundown);
    object = LabAllocate(sizeof(*object));
}

static void user(void)
{
    if (ExAcquireRundownProtection(&rundown)) {
        LabAssert(*object == 0);
        ExReleaseRundownProtection(&rundown);
    }
}

static void destroyer(void)
{
    ExWaitForRundownProtectionRelease(&rundown);
    LabFree(object);
    LabAssert(!ExAcquireRundownProtection(&rundown));
    gone = 1;
}
LAB_SCENARIO(rundown_one_user, .Setup = setup_rundown, .Threads = {user, destroyer});
LAB_SCENARIO(rundown_one_user_c11, .Setup = setup_rundown, .Threads = {user, destroyer}, .Model = "c11");
LAB_SCENARIO(rundown_two_users, .Setup = setup_rundown, .Threads = {user, user, destroyer});
