/* handler.h: signal handlers installed in front of the program's. Theory in handler.c. */
#ifndef INTERLOCK_HAL_HANDLER_H
#define INTERLOCK_HAL_HANDLER_H

#include "halp.h"

#include <signal.h>
#include <ucontext.h>

/* How many handlers a program may install over ours; one more stays in front. */
#define HALP_FOR_EACH_PLACE(Do, Name)                                                                                 \
    Do(Name, 0) Do(Name, 1) Do(Name, 2) Do(Name, 3) Do(Name, 4) Do(Name, 5) Do(Name, 6) Do(Name, 7)
#define HALP_COUNT_PLACE(Name, Place) +1
#define HALP_PLACES (HALP_FOR_EACH_PLACE(HALP_COUNT_PLACE, ))

typedef VOID HALP_HANDLER(int Signal, siginfo_t *Information, VOID *Context);

/* Defines Table: one handler for each place, which calls Name(Place, Signal, Information, Context). */
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
    volatile BOOLEAN Spent;       /* SA_RESETHAND: it has had its one signal */
} HALP_PREDECESSOR;

typedef struct _HALP_CHAIN {
    int Signal;
    HALP_HANDLER *const *Handler; /* HALP_PLACES of them, each with its place compiled in */
    int Flags;                    /* always set, */
    int FlagsIfDefault;           /* set in front of the host's default action, */
    int InheritedFlags;           /* copied from a predecessor's handler */
    HALP_PREDECESSOR Predecessor[HALP_PLACES];
    ULONG Used;                   /* under the lock in handler.c */
} HALP_CHAIN;

BOOLEAN HalpHasHandler(const struct sigaction *Action); /* of the program's: neither SIG_DFL nor SIG_IGN */
BOOLEAN HalpIsInFront(const HALP_CHAIN *Chain);
/* Puts one of our handlers in front. FALSE: no place is left, or the host refuses. */
BOOLEAN HalpStandInFront(HALP_CHAIN *Chain);
/* A lock that is held with every signal blocked: 0, or the process id of the holder. A forked child takes its parent's. */
VOID HalpLockMasked(volatile ULONG *Lock, sigset_t *Before);
VOID HalpUnlockMasked(volatile ULONG *Lock, const sigset_t *Before);
/* Around HalpStandInFront: blocks every signal of this thread. */
VOID HalpLockHandlers(sigset_t *Before);
VOID HalpUnlockHandlers(const sigset_t *Before);
/* FALSE: the predecessor is the host's default action, which was not taken. */
BOOLEAN HalpPassOn(HALP_PREDECESSOR *Predecessor, int Signal, siginfo_t *Information, VOID *Context);

/* Where a thread was when a signal interrupted it. */
#if defined(__x86_64__)
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.pc)
#elif defined(__riscv) && __riscv_xlen == 64
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.__gregs[REG_PC])
#else
#error "handler.h: this machine's program counter is not known."
#endif

#endif
