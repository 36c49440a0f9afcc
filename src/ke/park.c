/* park.c: how long a wait spins. Theory in park.h. */
#include "park.h"

#define KI_REPLY_CYCLES 200000
#define KI_REPLY_LEAST_OFTEN 6 /* once in 64 */

VOID KiEndPatience(const KI_PATIENCE *Patience, PKTHREAD Thread, BOOLEAN Done)
{
    if (Patience->Reply && Done) {
        Thread->SpinFailures = 0;
    } else if (Patience->Reply && Thread->SpinFailures < KI_REPLY_LEAST_OFTEN) {
        Thread->SpinFailures += 1;
    }
}

VOID KiBeginPatience(PKI_PATIENCE Patience, PKTHREAD Thread, KI_PARK_USE Use)
{
    if (KiMaySpin(Thread, Use)) {
        KiBeginSpin(Patience, Thread, Use);
    } else {
        *Patience = (KI_PATIENCE){.Yields = KiParkPolicy[Use].Yields ? HalYieldsBeforeSleep() : 0};
    }
}

VOID KiBeginSpin(PKI_PATIENCE Patience, PKTHREAD Thread, KI_PARK_USE Use)
{
    const KI_PARK_POLICY *Policy = &KiParkPolicy[Use];
    *Patience = (KI_PATIENCE){.Yields = Policy->Yields ? HalYieldsBeforeSleep() : 0};
    if (Policy->Spin == KiSpinForReply && Thread->WokeSleeper) { /* spin for the reply to the wakeup that it has sent? */
        Thread->WokeSleeper = FALSE;
        Thread->SpinSkipped += 1;
        Patience->Reply = (Thread->SpinSkipped & ((1u << Thread->SpinFailures) - 1)) == 0;
    }
    Patience->Spins = HalSpinsForCycles(Patience->Reply ? KI_REPLY_CYCLES
                                                        : Policy->SpinCycles +
                                                              Policy->SpinCyclesPerProcessor * KeNumberProcessors);
    Patience->Gap = Policy->FirstGap != 0 ? HalSpinsForCycles(Policy->FirstGap) : 1;
    Patience->Spun = Patience->Gap; /* so that the gaps double from the first on */
    Patience->GreatestGap = Policy->GreatestGap != 0 ? HalSpinsForCycles(Policy->GreatestGap) : 1;
}

/* A gap is at least that many times the transfer of a line, and at most that many times the policy's. */
#define KI_LINES_IN_GAP 24
#define KI_LONGEST_GAP 8
#define KI_GAPS_IN_CROWD 2

VOID KiStretchGaps(PKI_PATIENCE Patience, BOOLEAN NearInCrowd)
{
    ULONG Gap = KiParkPolicy[KiParkForPushLock].FirstGap;
    ULONG Least = NearInCrowd ? KI_GAPS_IN_CROWD * Gap : Gap;
    ULONG Wanted = KI_LINES_IN_GAP * HalFarLineCycles();
    Wanted = Wanted > Least ? Wanted : Least;
    if (Wanted > Gap) {
        Wanted = Wanted < KI_LONGEST_GAP * Gap ? Wanted : KI_LONGEST_GAP * Gap;
        Patience->Spins = (ULONG)((ULONG64)Patience->Spins * Wanted / Gap);
        Patience->Gap = Patience->Spun = Patience->GreatestGap = HalSpinsForCycles(Wanted);
    }
}

VOID KiBackOff(ULONG Round)
{
    const KI_PARK_POLICY *Policy = &KiParkPolicy[KiParkForOther];
    ULONG SpinningRounds = HalOtherProcessorAvailable() ? Policy->SpinCycles / Policy->GreatestGap : 0;
    if (Round < SpinningRounds) {
        HalPauseFor(HalSpinsForCycles(Policy->GreatestGap));
    } else {
        HalGiveWay(Round - SpinningRounds);
    }
}
