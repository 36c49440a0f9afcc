/* srwlock.c: the external definitions of the inline functions of win32/lock.h. */
#include <interlock/win32/lock.h>

extern VOID InitializeSRWLock(PSRWLOCK SRWLock);
extern VOID AcquireSRWLockExclusive(PSRWLOCK SRWLock);
extern VOID AcquireSRWLockShared(PSRWLOCK SRWLock);
extern BOOLEAN TryAcquireSRWLockExclusive(PSRWLOCK SRWLock);
extern BOOLEAN TryAcquireSRWLockShared(PSRWLOCK SRWLock);
extern VOID ReleaseSRWLockExclusive(PSRWLOCK SRWLock);
extern VOID ReleaseSRWLockShared(PSRWLOCK SRWLock);
