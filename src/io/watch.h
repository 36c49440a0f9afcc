/*
 * watch.h: host descriptors that the library keeps, and waiting for them. One thread watches all of them and calls back
 * once for each armed watch.
 *
 * 1. A watch keeps nothing alive: deleting its object removes the watch first, under IopWatchLock. The watching thread
 *    takes a reference under that lock, unless the object is being deleted.
 * 2. The host gets a slot number and its generation, never an address: an event that was in flight while the object was
 *    deleted finds another generation and is ignored.
 * 3. An event may be stale: the routine checks whether the descriptor is ready, and arms the watch again if not.
 * 4. The host is not called under the lock.
 * 5. A forked child has no watching thread and no keeper (hal/descriptor.c): the first use there creates both and lets
 *    every routine check.
 * 6. The program may have closed the descriptor, or put another file in its place. So a number to read, write or
 *    signal comes from IopDescriptorOf, which asks the host whether it is ours and, if not, repairs: a lost keeper is
 *    opened again, each watch whose descriptor is lost opens another one if it can (Reopen), and every routine checks
 *    again. A watch that cannot has no descriptor from then on.
 */
#ifndef INTERLOCK_IO_WATCH_H
#define INTERLOCK_IO_WATCH_H

#include "../ob/obp.h"

typedef struct _IOP_WATCH {
    volatile LONG Descriptor;        /* below 0: it has none */
    HAL_FILE_ID Id;                  /* the file's, or of all files of its kind */
    BOOLEAN AlwaysReady;             /* a file or directory: it cannot be a member of the keeper, and need not be */
    ULONG Events;
    ULONG Slot;
    PVOID Object;
    VOID (*Routine)(PVOID Object);   /* on any thread of the library, at PASSIVE_LEVEL; may arm again */
    LONG (*Reopen)(PVOID Object);    /* below 0: the file cannot be opened again. NULL: it never can */
} IOP_WATCH, *PIOP_WATCH;

/* To ask the host with, which notices if it is no longer ours. acquire: pairs with the release in IopEnterKeeper; a
   thread that sees the number sees the object as it was when the descriptor was attached */
FORCEINLINE LONG IopNumberOf(PIOP_WATCH Watch)
{
    return __atomic_load_n(&Watch->Descriptor, __ATOMIC_ACQUIRE);
}

NTSTATUS IopInitializeWatch(PIOP_WATCH Watch, ULONG Events, PVOID Object, VOID (*Routine)(PVOID Object),
                            LONG (*Reopen)(PVOID Object)); /* without a descriptor */
NTSTATUS IopPrepareKeeper(VOID);          /* afterwards IopAttachDescriptor fails only if the host has no memory */
NTSTATUS IopAttachDescriptor(PIOP_WATCH Watch, LONG Descriptor); /* takes it over, unless that fails */
LONG IopDescriptorOf(PIOP_WATCH Watch);   /* at PASSIVE_LEVEL; below 0: it is lost */
NTSTATUS IopArmWatch(PIOP_WATCH Watch);   /* STATUS_FILE_CLOSED: it has no descriptor */
VOID IopDeleteWatch(PIOP_WATCH Watch);    /* while the object is being deleted; closes the descriptor */

extern OBJECT_TYPE IopDescriptorType;     /* descriptor.c, as the next */

/* A descriptor object has at most one binding (else STATUS_INVALID_PARAMETER). Unbind is called when its last handle is
   closed. */
NTSTATUS IopBindDescriptor(PVOID Object, PVOID Binding, VOID (*Unbind)(PVOID Binding));
BOOLEAN IopIsDescriptorLost(PVOID Object); /* the program has closed it: it stays ready forever */
LONG IopDescriptorOfObject(PVOID Object); /* below 0: it is lost */

#endif
