/* io.h: the I/O manager. Interrupt objects; their locks are in ke.h, which also has KeFireInterrupt. */
#ifndef INTERLOCK_IO_H
#define INTERLOCK_IO_H

#include <interlock/ke.h>

INTERLOCK_BEGIN

NTKERNELAPI NTSTATUS IoConnectInterrupt(PKINTERRUPT *InterruptObject, PKSERVICE_ROUTINE ServiceRoutine,
                                        PVOID ServiceContext, PKSPIN_LOCK SpinLock, ULONG Vector, KIRQL Irql,
                                        KIRQL SynchronizeIrql, KINTERRUPT_MODE InterruptMode, BOOLEAN ShareVector,
                                        KAFFINITY ProcessorEnableMask, BOOLEAN FloatingSave);
NTKERNELAPI VOID IoDisconnectInterrupt(PKINTERRUPT InterruptObject);

INTERLOCK_END

#endif
