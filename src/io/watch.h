/*
 * watch.h: the descriptors of the host that the library keeps, and waiting for them. One thread watches all of them and
 * calls back once for each watch that was armed.
 *
 * 1. A watch keeps nothing alive: whoever deletes its object takes the watch away first, under IopWatchLock, and the
 *    watching thread takes a reference under that lock, if the object is not on its way out.
 * 2. The host is told a slot number and its generation, never an address: an event that was on its way while the object
 *    went away finds another generation and means nothing.
 * 3. An event may be stale: the routine looks for itself whether the descriptor is ready, and arms the watch again if
 *    not.
 * 4. No call of the host is made under the lock.
 * 5. A forked child has no such thread and no keeper (hal/descriptor.c): the first use there makes both anew and lets
 *    every watch look.
 * 6. The program may have closed the descriptor, or put another file in its place. So a number to read, write or
 *    signal comes from IopDescriptorOf, which asks the host whether it is ours and, if it is not, repairs: the keeper
 *    is opened anew if it is lost, each watch whose descriptor is gone opens another one if it can (Reopen), and
 *    every routine looks again. A watch that cannot has no descriptor from then on.
 */
#ifndef INTERLOCK_IO_WATCH_H
#define INTERLOCK_IO_WATCH_H

#include "../ob/obp.h"

typedef struct _IOP_WATCH {
    volatile LONG Descriptor;        /* below 0: it has none */
    HAL_FILE_ID Id;                  /* the file's, or of all files of its kind */
    BOOLEAN AlwaysReady;             /* a file or directory: it cannot be a member of the keeper, and need not */
    ULONG Events;
    ULONG Slot;
    PVOID Object;
    VOID (*Routine)(PVOID Object);   /* on any thread of the library, at PASSIVE_LEVEL; may arm again */
    LONG (*Reopen)(PVOID Object);    /* below 0: the file cannot be had again. NULL: it never can */
} IOP_WATCH, *PIOP_WATCH;

/* For a question to the host, which finds out if it is not ours any more. acquire: pairs with the release in
   IopEnterKeeper; whoever sees a number sees the object as it was when that was attached */
FORCEINLINE LONG IopNumberOf(PIOP_WATCH Watch)
{
    return __atomic_load_n(&Watch->Descriptor, __ATOMIC_ACQUIRE);
}

NTSTATUS IopInitializeWatch(PIOP_WATCH Watch, ULONG Events, PVOID Object, VOID (*Routine)(PVOID Object),
                            LONG (*Reopen)(PVOID Object)); /* without a descriptor */
NTSTATUS IopPrepareKeeper(VOID);          /* so that IopAttachDescriptor lacks nothing but memory of the host */
NTSTATUS IopAttachDescriptor(PIOP_WATCH Watch, LONG Descriptor); /* takes it over, unless that fails */
LONG IopDescriptorOf(PIOP_WATCH Watch);   /* at PASSIVE_LEVEL; below 0: it is lost */
BOOLEAN IopOwnsDescriptor(PIOP_WATCH Watch); /* at any level; FALSE: it is lost, or only a repair can tell */
VOID IopRequestRepair(VOID);              /* at DISPATCH_LEVEL too: soon, every routine looks again */
NTSTATUS IopArmWatch(PIOP_WATCH Watch);   /* STATUS_FILE_CLOSED: it has no descriptor */
VOID IopDeleteWatch(PIOP_WATCH Watch);    /* while the object is being deleted; closes the descriptor */

extern OBJECT_TYPE IopDescriptorType;     /* descriptor.c */

#endif
