/* process.c: the process: settings that all of its threads share, and its end. */
#include "irql.h"
#include "park.h"

/*
 * The process-wide settings of threads: base priority, boosts, processors.
 *
 * 1. A setting is stored in KiInitialProcess, Settings is incremented, and the setting is applied to every thread in the
 *    table. A thread that starts applies all settings to itself unless Settings is still 0. So each thread is reached by
 *    one or the other: a slot is marked used before its thread reads Settings.
 * 2. Applying rereads the setting. If two threads change it concurrently, the one that stores last applies last.
 * 3. The library's own threads are not affected. They are adopted as all others are, so they undo the settings. (A change at
 *    the moment in which such a thread starts may still reach it.)
 */

static VOID KiForEachThread(VOID (*Apply)(PKTHREAD Thread))
{
    PKTHREAD Thread;
    /* seq_cst: pairs with KiAllocateThread */
    __atomic_fetch_add(&KiInitialProcess.Settings, 1, __ATOMIC_SEQ_CST);
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
    KeSetDisableBoostThread(Thread, __atomic_load_n(&KiInitialProcess.DisableBoost, __ATOMIC_RELAXED));
}

static VOID KiApplyAffinity(PKTHREAD Thread)
{
    GROUP_AFFINITY Affinity = {.Mask = __atomic_load_n(&KiInitialProcess.Affinity, __ATOMIC_RELAXED)};
    GROUP_AFFINITY Previous;
    if (Affinity.Mask != 0) {
        KiSetUserAffinityThread(Thread, &Affinity, &Previous);
    }
}

VOID KiSetProcessBasePriority(KPRIORITY BasePriority)
{
    __atomic_store_n(&KiInitialProcess.BasePriority, (SCHAR)BasePriority, __ATOMIC_RELAXED);
    KiForEachThread(KiApplyBasePriority);
}

VOID KiSetProcessDisableBoost(BOOLEAN Disable)
{
    __atomic_store_n(&KiInitialProcess.DisableBoost, Disable, __ATOMIC_RELAXED);
    KiForEachThread(KiApplyDisableBoost);
}

BOOLEAN KiSetProcessAffinity(KAFFINITY Affinity)
{
    if (Affinity == 0 || (Affinity & ~KeQueryGroupAffinity(0)) != 0) {
        return FALSE;
    }
    __atomic_store_n(&KiInitialProcess.Affinity, Affinity, __ATOMIC_RELAXED);
    KiForEachThread(KiApplyAffinity);
    return TRUE;
}

KAFFINITY KiQueryProcessAffinity(VOID)
{
    KAFFINITY Affinity = __atomic_load_n(&KiInitialProcess.Affinity, __ATOMIC_RELAXED);
    GROUP_AFFINITY OfThread;
    PKTHREAD Thread;
    for (ULONG Number = 0; KeQueryActiveGroupCount() > 1 && (Thread = KiThreadFromNumber(Number)) != NULL; Number++) {
        if (__atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_RELAXED) != KiSlotUsed || Thread->IsIdleThread) {
            continue;
        }
        KiQueryUserAffinityThread(Thread, &OfThread);
        if (OfThread.Group != 0) {
            return 0;
        }
    }
    return Affinity != 0 ? Affinity : KeQueryGroupAffinity(0);
}

BOOLEAN KiMayUseProcessors(const GROUP_AFFINITY *Affinity)
{
    KAFFINITY Permitted = __atomic_load_n(&KiInitialProcess.Affinity, __ATOMIC_RELAXED);
    return Affinity->Group != 0 || Permitted == 0 || (Affinity->Mask & ~Permitted) == 0;
}

VOID KiAdoptProcessSettings(PKTHREAD Thread)
{
    /* seq_cst: after the slot was marked used */
    if (__atomic_load_n(&KiInitialProcess.Settings, __ATOMIC_SEQ_CST) != 0) {
        KiApplyBasePriority(Thread);
        KiApplyDisableBoost(Thread);
        KiApplyAffinity(Thread);
    }
}

PKTHREAD KiBecomeOwnThread(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    /* seq_cst, both: after it, no setting is applied to the thread; before it, one may have been, when it was adopted */
    __atomic_store_n(&Thread->IsIdleThread, TRUE, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&KiInitialProcess.Settings, __ATOMIC_SEQ_CST) != 0) {
        KeSetPriorityThread(Thread, KI_NORMAL_PRIORITY);
        Thread->Affinity = (GROUP_AFFINITY){.Mask = KeQueryGroupAffinity(0)};
        Thread->UserAffinity = Thread->Affinity;
    }
    return Thread;
}

/* The end of the process. The rules are in ki.h. */

#ifdef INTERLOCK_HOST

#define KI_MOST_ROUNDS 100 /* for threads that have ended for the library but not yet for the host: a few
                              milliseconds */

/* KiForkDepth + 1 of the process that had the first handle or packet: this one, or one that it was forked from. 0: none had. */
static ULONG KiEndClaim;

VOID KiClaimProcessEnd(VOID)
{
    ULONG Unclaimed = 0;
    /* relaxed, both: one winner is all that is needed, and a forked child has a copy of the word */
    __atomic_compare_exchange_n(&KiEndClaim, &Unclaimed, KiForkDepth + 1, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

BOOLEAN KiProcessEndsAlone(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    HAL_OTHERS Others = HalOthersForNow;

    /* relaxed: the threads that could claim it have ended, or the answer is FALSE */
    if (__atomic_load_n(&KiEndClaim, __ATOMIC_RELAXED) != KiForkDepth + 1 || Thread->DispatcherDepth != 0 ||
        Thread->HostInterrupts != 0 || Thread->Irql != PASSIVE_LEVEL) {
        return FALSE;
    }
    for (ULONG Round = 0; Others == HalOthersForNow && Round < KI_MOST_ROUNDS; Round++) {
        Others = HalFindOtherThreads();
        if (Others == HalOthersForNow) {
            KiBackOff(Round);
        }
    }
    return Others == HalNoOthers;
}

#endif
