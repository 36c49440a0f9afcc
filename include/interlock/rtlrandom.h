/* rtlrandom.h: pseudo-random numbers. */
#ifndef INTERLOCK_RTLRANDOM_H
#define INTERLOCK_RTLRANDOM_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/* Pseudo-random numbers. A seed is the whole state: the same seed gives the same numbers, and threads with seeds of their own
   do not disturb each other. Not for secrets. */

/* Returns the next number from 0 to MAXLONG - 1 and changes the seed. Differs: the numbers are not those of Windows, where
   all callers share a table. At any IRQL. Since NT 3.1, XP. */
NTSYSAPI ULONG RtlRandom(PULONG Seed);
NTSYSAPI ULONG RtlRandomEx(PULONG Seed);

/* Returns the next number of Lehmer's generator, from 0 to MAXLONG - 1, which is also the new seed. At any IRQL. Since NT
   3.1. */
NTSYSAPI ULONG RtlUniform(PULONG Seed);

INTERLOCK_END

#endif
