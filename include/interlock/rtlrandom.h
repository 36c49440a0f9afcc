/* rtlrandom.h: pseudo-random numbers and unique identifiers. */
#ifndef INTERLOCK_RTLRANDOM_H
#define INTERLOCK_RTLRANDOM_H

#include <interlock/ntdef.h>

#ifndef UUID_DEFINED
#define UUID_DEFINED
typedef GUID UUID;
#endif
#ifndef RPC_NT_UUID_LOCAL_ONLY
#define RPC_NT_UUID_LOCAL_ONLY ((NTSTATUS)0x40020056)
#endif

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

/* Unique identifiers. */

/* Stores a new identifier, of version 1: made of the time, which never repeats in a process, and of a random node. Returns
   RPC_NT_UUID_LOCAL_ONLY, a success, if the host has no random numbers. Differs: the node is not a network address. At
   PASSIVE_LEVEL. Since 2000. */
NTKERNELAPI NTSTATUS ExUuidCreate(UUID *Uuid);

INTERLOCK_END

#endif
