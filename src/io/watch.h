/*
 * watch.h: waiting for descriptors of the host. One thread watches all of them and calls back once
 * for each watch that was armed.
 *
 * 1. A watch keeps nothing alive: whoever deletes its object takes the watch away first, under IopWatchLock, and the
 *    watching thread takes a reference under that lock, if the object is not on its way out.
 * 2. The host is told a slot number and its generation, never an address: an event that was on its way while the object
 *    went away finds another generation and means nothing.
 * 3. An event may be stale: the routine looks for itself whether the descriptor is ready, and arms the watch again if
 *    not.
 * 4. No call of the host is made under the lock.
 * 5. A forked child has no such thread and must not touch the set of descriptors that it shares with its parent: the
 *    first use there makes both anew and arms every watch there is (see 3).
 */
#ifndef INTERLOCK_IO_WATCH_H
#define INTERLOCK_IO_WATCH_H

#include "../ob/obp.h"

typedef struct _IOP_WATCH {
    LONG Descriptor;
    ULONG Events;
    ULONG Slot;
    PVOID Object;
    VOID (*Routine)(PVOID Object);   /* on the watching thread, at PASSIVE_LEVEL; may arm again */
} IOP_WATCH, *PIOP_WATCH;

/* The watch takes the descriptor over, unless that fails. */
NTSTATUS IopInitializeWatch(PIOP_WATCH Watch, LONG Descriptor, ULONG Events, PVOID Object,
                            VOID (*Routine)(PVOID Object));
NTSTATUS IopArmWatch(PIOP_WATCH Watch);   /* STATUS_NOT_SUPPORTED: such a descriptor is always ready */
VOID IopDeleteWatch(PIOP_WATCH Watch);    /* while the object is being deleted; closes the descriptor */

extern OBJECT_TYPE IopDescriptorType;     /* descriptor.c */

#endif
