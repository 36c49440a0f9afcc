/*
 * exchange128.c: InterlockedCompareExchange128 for machines without such an instruction.
 *
 * The addresses share a few locks, chosen by address. Inside one of them the thread is neither interrupted nor ended,
 * and fork waits until it is out. A load of one half, without the lock, may come between the stores of the two halves:
 * the halves are then of two values, as they may be where the instruction exists and the halves are loaded one after
 * the other.
 */
#include "exp.h"

#ifdef INTERLOCK_EMULATED_CAS128

#define EXP_EXCHANGE_LOCKS 64

typedef struct DECLSPEC_CACHEALIGN _EXP_EXCHANGE_LOCK {
    KI_LOCK Lock;
} EXP_EXCHANGE_LOCK;

static EXP_EXCHANGE_LOCK ExpExchangeLocks[EXP_EXCHANGE_LOCKS];

/* Neighbours, 16 bytes apart, have different locks. */
static PKI_LOCK ExpExchangeLockOf(LONG64 volatile *Destination)
{
    return &ExpExchangeLocks[(ULONG_PTR)Destination / 16 % EXP_EXCHANGE_LOCKS].Lock;
}

UCHAR InterlockedCompareExchange128(LONG64 volatile *Destination, LONG64 ExchangeHigh, LONG64 ExchangeLow,
                                    LONG64 *ComparandResult)
{
    PKI_LOCK Lock = ExpExchangeLockOf(Destination);
    PKTHREAD Thread = KiEnterLocked(Lock);
    LONG64 Low, High;
    BOOLEAN Equal;

    /* An exchange with itself: a barrier before everything that follows, also where nothing will be stored. */
    Low = InterlockedCompareExchange64(&Destination[0], 0, 0);
    High = ReadNoFence64(&Destination[1]); /* no fence: only who has the lock writes it */
    Equal = Low == ComparandResult[0] && High == ComparandResult[1];
    if (Equal) {
        WriteRelease64(&Destination[1], ExchangeHigh); /* release: for who loads the half, see slist.c */
        InterlockedExchange64(&Destination[0], ExchangeLow);
    }
    KiExitLocked(Lock, Thread);
    ComparandResult[0] = Low;
    ComparandResult[1] = High;
    return Equal;
}

#endif
