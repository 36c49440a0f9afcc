/*
 * inherit.h: handles that a child process inherits.
 *
 * 1. The parent prepares them: local objects become shared, and the world gets the values, one ticket for each world. The
 *    tickets, and the processes that handles refer to, are a text in the child's environment. An object that is neither
 *    shared nor a process is not inherited.
 * 2. The child takes the text out of its environment when the library is loaded, and opens the handles before any other
 *    one: so their values are free. Its own children do not see the text.
 * 3. A child that does not use this library holds the handles until it ends: the world knows them by its id.
 */
#ifndef INTERLOCK_OB_INHERIT_H
#define INTERLOCK_OB_INHERIT_H

#include "share.h"

/* Which handles. List NULL: all that are marked. */
typedef struct _OBP_HEIRLOOMS {
    const HANDLE *List;
    ULONG Count;
} OBP_HEIRLOOMS, *POBP_HEIRLOOMS;

#define OBP_WORLDS 2

typedef struct _OBP_BEQUEST {
    PSTR Text;                       /* for the child's environment; NULL: it inherits nothing */
    struct {
        PWO_VIEW View;               /* NULL: no ticket */
        CHAR Ticket[WO_TICKET_LENGTH];
    } World[OBP_WORLDS];
} OBP_BEQUEST, *POBP_BEQUEST;

/* STATUS_INVALID_PARAMETER: a handle of the list is not marked, or is there twice. */
NTSTATUS ObpPrepareBequest(const OBP_HEIRLOOMS *Heirlooms, POBP_BEQUEST Bequest);
VOID ObpEndBequest(POBP_BEQUEST Bequest, ULONG ProcessId); /* 0: there is no child */

/* In the child, before the first handle is used. */
VOID ObpAdoptHandles(VOID);
extern volatile ULONG ObpAdoptionState;
enum { ObpNothingToAdopt, ObpAdoptionPending, ObpAdopting };

/* handle.c: for the adoption. FALSE: the value is not a valid handle, is in use, or there is no memory. */
BOOLEAN ObpReserveHandleValue(HANDLE Handle);
VOID ObpFreeValuesBelow(HANDLE Highest); /* those that are not open */
HANDLE ObpNextHandle(HANDLE Handle); /* the next one that is open and marked as inherited; NULL: none */

#endif
