/*
 * chaos.h: the ledger. It is separate memory, not part of the code under test, in which every thread of every worker
 * records what it is about to do, so that the parent knows what a killed thread may have held.
 */
#ifndef CHAOS_H
#define CHAOS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define MUTEXES 8
#define SEMAPHORES 8
#define EVENTS 8     /* each is a token: signaled, or held by one thread */
#define PAIRS 4      /* of semaphores that are taken together */
#define TOKENS 3     /* of each semaphore */
#define SLOTS 256

typedef enum chaos_phase {
    PHASE_IDLE,
    PHASE_ACQUIRING,
    PHASE_HELD,
    PHASE_RELEASING,
    PHASE_RELEASING_SECOND, /* of a pair: the first half is released */
} chaos_phase;

typedef enum chaos_kind { KIND_NONE, KIND_MUTEX, KIND_SEMAPHORE, KIND_EVENT, KIND_PAIR, KINDS } chaos_kind;

/* What a thread does, as one word: kind, object, phase. */
#define DOING(kind, object, phase) ((unsigned)(kind) << 16 | (unsigned)(object) << 8 | (unsigned)(phase))
#define DOING_KIND(doing) ((doing) >> 16)
#define DOING_OBJECT(doing) ((doing) >> 8 & 0xff)
#define DOING_PHASE(doing) ((doing)&0xff)

typedef struct chaos_slot {
    _Atomic pid_t process; /* 0: unused */
    atomic_uint doing;
    atomic_ulong operations;
    atomic_bool parked;
} chaos_slot;

/* What the dead held of one object: minimum and maximum. */
typedef struct chaos_loss {
    unsigned held, acquiring, releasing, releasing_second;
} chaos_loss;

typedef struct chaos_ledger {
    atomic_bool pause, stop, anchored, stop_anchor;
    bool rubbish;                    /* the world is being corrupted: a worker that notices exits */
    chaos_slot slot[SLOTS];
    atomic_uint owner[MUTEXES];      /* the slot of the thread inside, plus 1 */
    unsigned long counter[MUTEXES];  /* written inside only */
    atomic_ulong acquired[MUTEXES];
    atomic_ulong abandoned[MUTEXES]; /* how often a thread got WAIT_ABANDONED */
    chaos_loss loss[KINDS][8];       /* by the parent, after a death */
    atomic_ulong passed, met;        /* handles that went to another process and back; meetings at a keyed event */
    atomic_bool failed;
} chaos_ledger;

extern chaos_ledger *ledger;

void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void worker(unsigned seed) __attribute__((noreturn));
void anchor(void) __attribute__((noreturn));  /* keeps every object alive; is not killed */
int audit(void);                              /* while all workers are parked; the exit code */
int claim_slot(void);                         /* below 0: none is free */

#endif
