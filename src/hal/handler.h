/* handler.h: handlers of this library that stand in front of the program's. The theory is in handler.c. */
#ifndef INTERLOCK_HAL_HANDLER_H
#define INTERLOCK_HAL_HANDLER_H

#include "halp.h"

#include <signal.h>

/* As many handlers as a program may put in front of one another; one more stays in front. */
#define HALP_FOR_EACH_PLACE(X, Name)                                                                                  \
    X(Name, 0) X(Name, 1) X(Name, 2) X(Name, 3) X(Name, 4) X(Name, 5) X(Name, 6) X(Name, 7)
#define HALP_COUNT_PLACE(Name, Place) +1
#define HALP_PLACES (HALP_FOR_EACH_PLACE(HALP_COUNT_PLACE, ))

typedef VOID HALP_HANDLER(int Signal, siginfo_t *Information, VOID *Context);

/* Table: the handlers of all places, each of which calls Name(Place, Signal, Information, Context). */
#define HALP_DEFINE_HANDLER(Name, Place)                                                                              \
    static VOID Name##Place(int Signal, siginfo_t *Information, VOID *Context)                                        \
    {                                                                                                                 \
        Name(Place, Signal, Information, Context);                                                                    \
    }
#define HALP_NAME_HANDLER(Name, Place) Name##Place,
#define HALP_DEFINE_HANDLERS(Table, Name)                                                                             \
    HALP_FOR_EACH_PLACE(HALP_DEFINE_HANDLER, Name)                                                                    \
    static HALP_HANDLER *const Table[HALP_PLACES] = {HALP_FOR_EACH_PLACE(HALP_NAME_HANDLER, Name)}

typedef struct _HALP_PREDECESSOR {
    struct sigaction Action;
    volatile BOOLEAN Spent; /* SA_RESETHAND: it has had its one signal */
} HALP_PREDECESSOR;

typedef struct _HALP_CHAIN {
    int Signal;
    HALP_HANDLER *const *Handler; /* HALP_PLACES of them, each with its place compiled in */
    int Flags;                    /* of ours in any case, */
    int FlagsIfDefault;           /* beside the host's default action, */
    int InheritedFlags;           /* and what else is taken over from the predecessor */
    HALP_PREDECESSOR Predecessor[HALP_PLACES];
    ULONG Used; /* under the lock in handler.c */
} HALP_CHAIN;

BOOLEAN HalpHasHandler(const struct sigaction *Action); /* of the program's: neither the default action nor none */
BOOLEAN HalpIsInFront(const HALP_CHAIN *Chain);
/* One of ours is in front from now on, unless the program puts its own there. FALSE: there is no place left, or the
   host refuses. */
BOOLEAN HalpStandInFront(HALP_CHAIN *Chain);
/* Every signal of this thread is blocked in between: HalpStandInFront wants that. */
VOID HalpLockHandlers(sigset_t *Before);
VOID HalpUnlockHandlers(const sigset_t *Before);
/* FALSE: the predecessor is the host's default action, which was not taken. */
BOOLEAN HalpPassOn(HALP_PREDECESSOR *Predecessor, int Signal, siginfo_t *Information, VOID *Context);

#endif
