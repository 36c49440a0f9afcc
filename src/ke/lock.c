/* lock.c: waiting for a lock of the kernel that somebody else holds. */
#include "irql.h"

DECLSPEC_NOINLINE VOID KiAcquireLockSlow(PKI_LOCK Lock)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Spins = 0;
    do {
        /* relaxed: a look before the compare-exchange, which has the acquire */
        while (__atomic_load_n(Lock, __ATOMIC_RELAXED) != 0) {
            KiSpin(Thread, &Spins);
        }
    } while (!KiTryAcquireLock(Lock));
}
