/* userlocks.c: SRW locks, condition variables, critical sections, run-once, barriers. */
#include "soak.h"

/* SRW locks. */

static SRWLOCK srw;
static soak_cell srw_cell;

static void srw_exclusive(test_random *random)
{
    if (one_in(random, 4)) {
        if (!TryAcquireSRWLockExclusive(&srw))
            return;
    } else {
        AcquireSRWLockExclusive(&srw);
    }
    change_cell(&srw_cell, random);
    ReleaseSRWLockExclusive(&srw);
}

static void srw_shared(test_random *random)
{
    if (one_in(random, 4)) {
        if (!TryAcquireSRWLockShared(&srw))
            return;
    } else {
        AcquireSRWLockShared(&srw);
    }
    read_cell(&srw_cell, random);
    if (one_in(random, 4) && RtlConvertSRWLockSharedToExclusive(&srw)) {
        change_cell(&srw_cell, random);
        RtlConvertSRWLockExclusiveToShared(&srw);
        read_cell(&srw_cell, random);
    }
    ReleaseSRWLockShared(&srw);
}

static void srw_locks_step(test_random *random)
{
    if (one_in(random, 2))
        srw_exclusive(random);
    else
        srw_shared(random);
}

static void srw_locks_check(void)
{
    require(srw.Ptr == NULL);
}

const soak_family srw_locks_family = {
    .name = "SRW locks", .weight = 8, .without_heap = true, .step = srw_locks_step, .check = srw_locks_check};

/* Condition variables: steps wait for tokens, under either lock. Tokens are held inside a step only. */

#define TOKENS 2

typedef struct token_box {
    CONDITION_VARIABLE changed;
    SRWLOCK srw;
    CRITICAL_SECTION section;
    unsigned tokens; /* plain */
} token_box;

static token_box by_srw = {.tokens = TOKENS}, by_section = {.tokens = TOKENS};

static void condition_variables_setup(void)
{
    InitializeCriticalSection(&by_section.section);
}

static void sleep_result(BOOL woken)
{
    require(woken || GetLastError() == ERROR_TIMEOUT);
}

static DWORD a_patience(test_random *random)
{
    return one_in(random, 3) ? random_below(random, 3) : INFINITE;
}

static void wake(token_box *box, test_random *random)
{
    if (one_in(random, 8))
        WakeAllConditionVariable(&box->changed);
    else
        WakeConditionVariable(&box->changed);
}

static void tokens_by_srw(test_random *random)
{
    AcquireSRWLockExclusive(&by_srw.srw);
    while (by_srw.tokens == 0)
        sleep_result(SleepConditionVariableSRW(&by_srw.changed, &by_srw.srw, a_patience(random), 0));
    by_srw.tokens -= 1;
    ReleaseSRWLockExclusive(&by_srw.srw);
    spin_for(random_below(random, 100));
    AcquireSRWLockExclusive(&by_srw.srw);
    by_srw.tokens += 1;
    require(by_srw.tokens <= TOKENS);
    ReleaseSRWLockExclusive(&by_srw.srw);
    wake(&by_srw, random);
}

static void watch_tokens(test_random *random)
{
    AcquireSRWLockShared(&by_srw.srw);
    require(by_srw.tokens <= TOKENS);
    sleep_result(SleepConditionVariableSRW(&by_srw.changed, &by_srw.srw, random_below(random, 2),
                                           CONDITION_VARIABLE_LOCKMODE_SHARED));
    ReleaseSRWLockShared(&by_srw.srw);
    WakeConditionVariable(&by_srw.changed); /* the wake that it may have consumed was for another thread */
}

static void tokens_by_section(test_random *random)
{
    EnterCriticalSection(&by_section.section);
    while (by_section.tokens == 0)
        sleep_result(SleepConditionVariableCS(&by_section.changed, &by_section.section, a_patience(random)));
    by_section.tokens -= 1;
    LeaveCriticalSection(&by_section.section);
    spin_for(random_below(random, 100));
    EnterCriticalSection(&by_section.section);
    by_section.tokens += 1;
    wake(&by_section, random);
    LeaveCriticalSection(&by_section.section);
}

static void condition_variables_step(test_random *random)
{
    switch (random_below(random, 5)) {
    case 0:
        watch_tokens(random);
        break;
    case 1:
    case 2:
        tokens_by_section(random);
        break;
    default:
        tokens_by_srw(random);
        break;
    }
}

static void condition_variables_check(void)
{
    require(by_srw.tokens == TOKENS && by_section.tokens == TOKENS);
    require(by_srw.srw.Ptr == NULL && by_srw.changed.Ptr == NULL && by_section.changed.Ptr == NULL);
    DeleteCriticalSection(&by_section.section);
}

const soak_family condition_variables_family = {.name = "condition variables",
                                                .weight = 8,
                                                .without_heap = true,
                                                .setup = condition_variables_setup,
                                                .step = condition_variables_step,
                                                .check = condition_variables_check};

/* Critical sections. */

static CRITICAL_SECTION section;
static soak_cell section_cell;

static void critical_sections_setup(void)
{
    InitializeCriticalSection(&section);
}

static void section_of_its_own(test_random *random)
{
    CRITICAL_SECTION own;

    require(InitializeCriticalSectionEx(&own, random_below(random, 100),
                                        one_in(random, 2) ? RTL_CRITICAL_SECTION_FLAG_FORCE_DEBUG_INFO : 0));
    EnterCriticalSection(&own);
    LeaveCriticalSection(&own);
    DeleteCriticalSection(&own);
}

static void critical_sections_step(test_random *random)
{
    uint32_t depth = random_below(random, 3);

    if (one_in(random, 8)) {
        section_of_its_own(random);
        return;
    }
    if (one_in(random, 4)) {
        if (!TryEnterCriticalSection(&section))
            return;
    } else {
        EnterCriticalSection(&section);
    }
    for (uint32_t i = 0; i < depth; i++)
        require(TryEnterCriticalSection(&section));
    require(section.RecursionCount == (LONG)depth + 1 && RtlIsCriticalSectionLockedByThread(&section));
    change_cell(&section_cell, random);
    for (uint32_t i = 0; i <= depth; i++)
        LeaveCriticalSection(&section);
}

static void critical_sections_check(void)
{
    require(section.LockCount == -1 && section.RecursionCount == 0 && section.OwningThread == NULL);
    DeleteCriticalSection(&section);
}

const soak_family critical_sections_family = {.name = "critical sections",
                                              .weight = 8,
                                              .setup = critical_sections_setup,
                                              .step = critical_sections_step,
                                              .check = critical_sections_check};

/* Run-once: all threads see what the initialization wrote, and it succeeds once, however often it failed before.
 */

#define ONCES 8

static INIT_ONCE onces[ONCES];
static unsigned long once_values[ONCES], once_runs[ONCES]; /* plain */
static SRWLOCK once_lock;                                  /* shared: they are used; exclusive: they are
                                                              reinitialized */

typedef struct attempt {
    unsigned which;
    bool fails;
} attempt;

static BOOL CALLBACK initialize(PINIT_ONCE once, PVOID parameter, PVOID *context)
{
    attempt *now = parameter;

    (void)once;
    if (now->fails)
        return FALSE;
    once_runs[now->which] += 1;
    once_values[now->which] = now->which + 1;
    *context = &once_values[now->which];
    return TRUE;
}

static void use_once(unsigned which, test_random *random)
{
    attempt now = {.which = which, .fails = one_in(random, 3)};
    PVOID context = NULL;

    if (!InitOnceExecuteOnce(&onces[which], initialize, &now, &context)) {
        require(now.fails);
        return;
    }
    require(context == &once_values[which] && once_values[which] == which + 1 && once_runs[which] == 1);
}

static void use_once_asynchronously(unsigned which)
{
    PVOID context = NULL;
    BOOL pending = FALSE;

    if (!InitOnceBeginInitialize(&onces[which], INIT_ONCE_CHECK_ONLY, &pending, &context))
        return;
    require(!pending && context == &once_values[which] && once_values[which] == which + 1);
}

static void run_once_step(test_random *random)
{
    unsigned which = random_below(random, ONCES);

    if (one_in(random, 16)) {
        AcquireSRWLockExclusive(&once_lock);
        InitOnceInitialize(&onces[which]);
        once_runs[which] = 0;
        once_values[which] = 0;
        ReleaseSRWLockExclusive(&once_lock);
        return;
    }
    AcquireSRWLockShared(&once_lock);
    if (one_in(random, 4))
        use_once_asynchronously(which);
    else
        use_once(which, random);
    ReleaseSRWLockShared(&once_lock);
}

const soak_family run_once_family = {.name = "run-once", .weight = 6, .without_heap = true, .step = run_once_step};

/* Barriers, for which a step brings its own threads. */

#define PARTIES 3
#define ROUNDS  3

typedef struct gathering {
    SYNCHRONIZATION_BARRIER barrier;
    volatile LONG last;
    unsigned long turns[PARTIES]; /* plain: each thread reads the others' behind the barrier */
} gathering;

typedef struct party {
    gathering *at;
    unsigned index;
} party;

static DWORD WINAPI gather(LPVOID argument)
{
    party *self = argument;
    gathering *at = self->at;

    for (unsigned round = 1; round <= ROUNDS; round++) {
        at->turns[self->index] = round;
        if (EnterSynchronizationBarrier(&at->barrier, 0))
            add(&at->last, 1);
        for (unsigned i = 0; i < PARTIES; i++)
            require(at->turns[i] == round);
        if (EnterSynchronizationBarrier(&at->barrier, 0))
            add(&at->last, 1);
    }
    return 0;
}

static void barriers_step(test_random *random)
{
    gathering at = {.last = 0};
    party parties[PARTIES];
    HANDLE threads[PARTIES - 1];

    require(InitializeSynchronizationBarrier(&at.barrier, PARTIES, one_in(random, 2) ? 0 : -1));
    for (unsigned i = 0; i < PARTIES; i++)
        parties[i] = (party){&at, i};
    for (unsigned i = 0; i < PARTIES - 1; i++) {
        threads[i] = CreateThread(NULL, SMALL_STACK, gather, &parties[i], 0, NULL);
        require(threads[i] != NULL);
    }
    gather(&parties[PARTIES - 1]);
    require(WaitForMultipleObjects(PARTIES - 1, threads, TRUE, INFINITE) == WAIT_OBJECT_0);
    require(DeleteSynchronizationBarrier(&at.barrier));
    require(at.last == 2 * ROUNDS);
    for (unsigned i = 0; i < PARTIES - 1; i++)
        require(CloseHandle(threads[i]));
}

const soak_family barriers_family = {.name = "barriers", .weight = 1, .step = barriers_step};
