/*
 * process.c: the process-wide settings of threads: base priority, boosts, processors.
 *
 * 1. A setting is stored in KiInitialProcess, Settings is incremented, and the setting is applied to every thread in the
 *    table. A thread that starts applies all settings to itself unless Settings is still 0. So each thread is reached by
 *    one or the other: a slot is marked used before its thread reads Settings.
 * 2. Applying reads the setting anew. If two threads change it concurrently, the one that stores last applies last.
 * 3. The library's own threads are not affected.
 */
#include "irql.h"

static PKPROCESS KiThisProcess(VOID)
{
    return &KiInitialProcess;
}

static VOID KiForEachThread(VOID (*Apply)(PKTHREAD Thread))
{
    PKTHREAD Thread;
    /* seq_cst: pairs with KiAllocateThread */
    __atomic_fetch_add(&KiThisProcess()->Settings, 1, __ATOMIC_SEQ_CST);
    for (ULONG Number = 0; (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
        if (__atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_SEQ_CST) == KiSlotUsed && !Thread->IsIdleThread) {
            Apply(Thread);
        }
    }
}

/* The increment stays; the base follows from the process's. */
static VOID KiApplyBasePriority(PKTHREAD Thread)
{
    KeSetBasePriorityThread(Thread, KiQueryBasePriorityThread(Thread));
}

/* relaxed, here and below: rule 1 orders the setting before the threads that it is applied to */
static VOID KiApplyDisableBoost(PKTHREAD Thread)
{
    KeSetDisableBoostThread(Thread, __atomic_load_n(&KiThisProcess()->DisableBoost, __ATOMIC_RELAXED));
}

static VOID KiApplyAffinity(PKTHREAD Thread)
{
    GROUP_AFFINITY Affinity = {.Mask = __atomic_load_n(&KiThisProcess()->Affinity, __ATOMIC_RELAXED)};
    GROUP_AFFINITY Previous;
    if (Affinity.Mask != 0) {
        KiSetUserAffinityThread(Thread, &Affinity, &Previous);
    }
}

VOID KiSetProcessBasePriority(KPRIORITY BasePriority)
{
    __atomic_store_n(&KiThisProcess()->BasePriority, (SCHAR)BasePriority, __ATOMIC_RELAXED);
    KiForEachThread(KiApplyBasePriority);
}

VOID KiSetProcessDisableBoost(BOOLEAN Disable)
{
    __atomic_store_n(&KiThisProcess()->DisableBoost, Disable, __ATOMIC_RELAXED);
    KiForEachThread(KiApplyDisableBoost);
}

BOOLEAN KiSetProcessAffinity(KAFFINITY Affinity)
{
    if (Affinity == 0 || (Affinity & ~KeQueryGroupAffinity(0)) != 0) {
        return FALSE;
    }
    __atomic_store_n(&KiThisProcess()->Affinity, Affinity, __ATOMIC_RELAXED);
    KiForEachThread(KiApplyAffinity);
    return TRUE;
}

static BOOLEAN KiIsThreadElsewhere(PKTHREAD Thread)
{
    GROUP_AFFINITY Affinity;
    if (__atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) != KiSlotUsed || Thread->IsIdleThread) {
        return FALSE;
    }
    KiQueryUserAffinityThread(Thread, &Affinity);
    return Affinity.Group != 0;
}

KAFFINITY KiQueryProcessAffinity(VOID)
{
    KAFFINITY Affinity = __atomic_load_n(&KiThisProcess()->Affinity, __ATOMIC_RELAXED);
    PKTHREAD Thread;
    for (ULONG Number = 0; KeQueryActiveGroupCount() > 1 && (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
        if (KiIsThreadElsewhere(Thread)) {
            return 0;
        }
    }
    return Affinity != 0 ? Affinity : KeQueryGroupAffinity(0);
}

BOOLEAN KiMayUseProcessors(const GROUP_AFFINITY *Affinity)
{
    KAFFINITY Permitted = __atomic_load_n(&KiThisProcess()->Affinity, __ATOMIC_RELAXED);
    return Affinity->Group != 0 || Permitted == 0 || (Affinity->Mask & ~Permitted) == 0;
}

VOID KiAdoptProcessSettings(PKTHREAD Thread)
{
    /* seq_cst: after the slot was marked used */
    if (__atomic_load_n(&KiThisProcess()->Settings, __ATOMIC_SEQ_CST) != 0 && !Thread->IsIdleThread) {
        KiApplyBasePriority(Thread);
        KiApplyDisableBoost(Thread);
        KiApplyAffinity(Thread);
    }
}
