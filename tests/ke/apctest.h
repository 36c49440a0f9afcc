/* apctest.h: APCs that record that they ran. */
#ifndef INTERLOCK_TESTS_APCTEST_H
#define INTERLOCK_TESTS_APCTEST_H

#include "waittest.h"

/* A journal of what ran, in order: one letter per call. */
static char journal[64];
static volatile ULONG journal_length;

static inline void note(char letter)
{
    ULONG at = __atomic_fetch_add(&journal_length, 1, __ATOMIC_RELAXED);
    check(at < sizeof(journal) - 1);
    journal[at] = letter;
}

static inline void clear_journal(void)
{
    memset(journal, 0, sizeof(journal));
    __atomic_store_n(&journal_length, 0, __ATOMIC_RELEASE);
}

static inline ULONG notes(void)
{
    return __atomic_load_n(&journal_length, __ATOMIC_ACQUIRE);
}

/* An APC that writes its letter: lower case from the kernel routine, upper case from the normal routine. */
typedef struct test_apc {
    KAPC apc;
    char letter;
    KIRQL kernel_irql, normal_irql;
    PVOID argument1, argument2, context;
    BOOLEAN drop_normal;                /* the kernel routine clears the normal routine */
    void (*during)(struct test_apc *a); /* in the normal routine, or in a special one's kernel routine */
    void *data;
    NTSTATUS status;
    PKTHREAD ran_on;
} test_apc;

static inline void kernel_routine(PKAPC apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1,
                                  PVOID *argument2)
{
    test_apc *a = CONTAINING_RECORD(apc, test_apc, apc);
    a->kernel_irql = KeGetCurrentIrql();
    a->ran_on = KeGetCurrentThread();
    a->argument1 = *argument1;
    a->argument2 = *argument2;
    a->context = *context;
    check(!apc->Inserted);
    if (a->drop_normal) {
        *routine = NULL;
    } else if (*routine != NULL) {
        *context = a;
    } else if (a->during != NULL) {
        a->during(a);
    }
    note(a->letter);
}

static inline void normal_routine(PVOID context, PVOID argument1, PVOID argument2)
{
    test_apc *a = context;
    a->normal_irql = KeGetCurrentIrql();
    check(argument1 == a->argument1 && argument2 == a->argument2);
    if (a->during != NULL) {
        a->during(a);
    }
    note((char)(a->letter - 'a' + 'A'));
}

static inline void rundown_routine(PKAPC apc)
{
    test_apc *a = CONTAINING_RECORD(apc, test_apc, apc);
    check(!apc->Inserted);
    note('!');
    note(a->letter);
}

typedef enum apc_kind { SPECIAL, NORMAL, USER } apc_kind;

static inline void make_apc(test_apc *a, PKTHREAD thread, apc_kind kind, char letter)
{
    memset(a, 0, sizeof(*a));
    a->letter = letter;
    KeInitializeApc(&a->apc, thread, OriginalApcEnvironment, kernel_routine, rundown_routine,
                    kind == SPECIAL ? NULL : normal_routine, kind == USER ? UserMode : KernelMode, a);
}

static inline BOOLEAN insert(test_apc *a)
{
    return KeInsertQueueApc(&a->apc, (PVOID)1, (PVOID)2, 0);
}

static inline void queue_apc(test_apc *a, PKTHREAD thread, apc_kind kind, char letter)
{
    make_apc(a, thread, kind, letter);
    assert_true(insert(a));
}

/* What disables which APCs, and that they run when it ends. */

static inline void raise_to_apc_level(void)
{
    KfRaiseIrql(APC_LEVEL);
}

static inline void raise_to_dispatch_level(void)
{
    KfRaiseIrql(DISPATCH_LEVEL);
}

static inline void lower_to_passive_level(void)
{
    KfLowerIrql(PASSIVE_LEVEL);
}

static inline void enter_both_regions(void)
{
    KeEnterCriticalRegion();
    KeEnterGuardedRegion();
}

static inline void leave_both_regions(void)
{
    KeLeaveGuardedRegion();
    KeLeaveCriticalRegion();
}

static inline void enter_twice(void)
{
    KeEnterCriticalRegion();
    KeEnterCriticalRegion();
}

static inline void leave_twice(void)
{
    KeLeaveCriticalRegion();
    KeLeaveCriticalRegion();
}

static const struct barrier {
    const char *name;
    void (*enter)(void);
    void (*leave)(void);
    BOOLEAN holds_special;
    BOOLEAN apcs_disabled, all_apcs_disabled; /* the results of the two queries */
} barriers[] = {
    {"critical region", KeEnterCriticalRegion, KeLeaveCriticalRegion, FALSE, TRUE, FALSE},
    {"nested critical regions", enter_twice, leave_twice, FALSE, TRUE, FALSE},
    {"guarded region", KeEnterGuardedRegion, KeLeaveGuardedRegion, TRUE, TRUE, TRUE},
    {"both regions", enter_both_regions, leave_both_regions, TRUE, TRUE, TRUE},
    {"APC_LEVEL", raise_to_apc_level, lower_to_passive_level, TRUE, FALSE, TRUE},
    {"DISPATCH_LEVEL", raise_to_dispatch_level, lower_to_passive_level, TRUE, FALSE, TRUE},
};

#endif
