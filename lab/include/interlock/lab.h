/*
 * lab.h: how a test for the explorer is written. A test is a plain C file: functions that run as threads, perhaps one
 * that prepares, one that holds at every step, one that holds at the end. Nothing is written around memory accesses:
 * the file is compiled with -fsanitize=thread and linked with the lab in place of the sanitizer.
 *
 *     static KEVENT Done;
 *     static int Data;
 *     static void setup(void) { KeInitializeEvent(&Done, NotificationEvent, FALSE); }
 *     static void writer(void) { Data = 1; KeSetEvent(&Done, 0, FALSE); }
 *     static void reader(void)
 *     {
 *         KeWaitForSingleObject(&Done, Executive, KernelMode, FALSE, NULL);
 *         LabAssert(Data == 1);
 *     }
 *     LAB_SCENARIO(handover, .Setup = setup, .Threads = {writer, reader});
 *
 * Setup runs once; every schedule starts from the memory that it left. Invariant and Finish see a machine that stands
 * still, and must not block.
 */
#ifndef INTERLOCK_LAB_H
#define INTERLOCK_LAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAB_MAXIMUM_THREADS 8

/* Flags of a scenario. */
#define LAB_RUN_EXIT    0x1u /* a thread that returns ends as a host thread does: its mutants are abandoned, ... */
#define LAB_CHECK_LEAKS 0x2u /* what was allocated during the schedule must be free at its end */
#define LAB_MAY_BLOCK   0x4u /* a schedule in which threads stay blocked is no deadlock, Finish looks at it */
#define LAB_LARGE       0x8u /* too large to be exhausted: not tried, and a third of the time for the rest */

typedef struct _LAB_SCENARIO {
    const char *Name;
    void (*Setup)(void);
    void (*Threads[LAB_MAXIMUM_THREADS])(void);
    void (*Invariant)(void); /* after every step */
    void (*Finish)(void);    /* at the end of every schedule */
    unsigned Flags;
    /* How often, in one schedule, the machine may do what it may do at any time. */
    unsigned SpuriousWakes;
    unsigned AllocationFailures;
    unsigned Deaths;       /* of threads that have called LabMayDie */
    unsigned WeakFailures; /* of weak compare-exchanges, for no reason; 0: what the command line says */
    unsigned Timeouts;     /* that come while others could run; 0: the default, which is 2 */
    /* What is known about it: */
    const char *Expect;        /* the verdict that must be found, or NULL: none may be */
    const char *Model;         /* "sc", "tso" or "c11"; NULL: whatever the command line says */
    unsigned MaximumSchedules; /* an exhaustive search that needs more goes on at random; 0: the default */
    unsigned Processors;       /* of the machine; 0: what the command line says, or 2 */
    unsigned StaleReads;       /* tso, c11: loads of one schedule that may not see the newest store; 0: the default */
} LAB_SCENARIO;

#define LAB_SCENARIO(Identifier, ...) LAB_SCENARIO_NAMED(Identifier, #Identifier, __VA_ARGS__)
#define LAB_SCENARIO_NAMED(Identifier, Text, ...)                                                                      \
    static const LAB_SCENARIO LabScenario_##Identifier = {.Name = Text, __VA_ARGS__};                                  \
    static const LAB_SCENARIO *const LabRegistered_##Identifier __attribute__((used, section("lab_scenarios"))) =      \
        &LabScenario_##Identifier

/* A failure of the schedule that runs. */
#define LabAssert(Condition) ((Condition) ? (void)0 : LabFail("assertion", #Condition, __FILE__, __LINE__))
void LabFail(const char *Verdict, const char *Text, const char *File, int Line) __attribute__((noreturn));

/* 0 .. Count - 1; every one of them is explored. */
unsigned LabChoose(unsigned Count);

/* Another thread, from inside of one. It is waited for at the end of the schedule. Returns its number. */
unsigned LabSpawn(void (*Routine)(void *), void *Argument);
/* Until that thread has ended. */
void LabJoin(unsigned Thread);
/* The calling thread ends here, as a host thread does. */
void LabExitThread(void) __attribute__((noreturn));
/*
 * From here on the calling thread may end, as by LabExitThread, before any step that its own function makes (LabYield
 * is one), but not inside of what it calls: .Deaths times in a schedule.
 */
void LabMayDie(void);
unsigned LabCurrentThread(void);

/*
 * The calling thread has got on. Only for programs that do not end: if the machine comes back to a state in which it
 * was before, a thread that has not said this (or LabEnd) in between gets nowhere, and may never do.
 */
void LabProgress(void);

/* A point at which other threads may run, though no memory is accessed. */
void LabYield(void);
/* Lets virtual time pass; nobody sleeps. In 100 ns. */
void LabAdvanceTime(uint64_t Time);

/* Memory of the schedule: freed memory is not used again before its end, and using it is a failure. */
void *LabAllocate(size_t Size);
void LabFree(void *Memory);

/* Blocks while *Address == Expected, like a futex; wakes at most Count threads that do. */
void LabWaitOnWord(volatile uint32_t *Address, uint32_t Expected);
/* At most so long, in 100 ns. 0: the time has passed. */
int LabWaitOnWordFor(volatile uint32_t *Address, uint32_t Expected, uint64_t Time);
void LabWakeWord(volatile uint32_t *Address, unsigned Count);

/*
 * Histories. A thread brackets an operation on an object with LabBegin and LabEnd; at the end of the schedule
 * LabCheckLinearizable looks for an order of all operations that respects real time and that the model allows.
 */
typedef struct _LAB_OPERATION {
    unsigned Thread;
    unsigned Name; /* the model's own numbering */
    intptr_t Argument;
    intptr_t Result; /* valid if Returned */
    int Returned;
    unsigned Begin, End; /* ordinal times */
} LAB_OPERATION;

#define LAB_MODEL_STATE 16

typedef struct _LAB_MODEL {
    const char *Name;
    void (*Initialize)(intptr_t State[LAB_MODEL_STATE]);
    /* Carries the operation out on State. 0: the model does not allow it now (with this result, if it returned). */
    int (*Apply)(intptr_t State[LAB_MODEL_STATE], const LAB_OPERATION *Operation);
    const char *const *OperationNames;
} LAB_MODEL;

unsigned LabBegin(unsigned Name, intptr_t Argument);
void LabEnd(unsigned Operation, intptr_t Result);
void LabCheckLinearizable(const LAB_MODEL *Model);

/*
 * The models that come with the lab. A model's operations are numbered from 0 in the order of its OperationNames, which
 * are for the ones that tests want most: event: set, reset, wait; semaphore: release (Argument: how many), wait; mutex:
 * acquire, release, try; stack and queue: push (Argument: an element, not 0), pop (Result: it, or 0 if there was none);
 * reader/writer lock: acquire and release exclusive, acquire and release shared, try exclusive, try shared, convert to
 * exclusive, convert to shared. The Result of a set, reset or release is what the function returns: the state before; of
 * a wait, a try or a conversion, 1 if it got what it wanted.
 */
extern const LAB_MODEL LabModelNotificationEvent;
extern const LAB_MODEL LabModelSynchronizationEvent;
extern const LAB_MODEL LabModelSemaphore;
extern const LAB_MODEL LabModelMutex;
extern const LAB_MODEL LabModelRwLock;
extern const LAB_MODEL LabModelStack;
extern const LAB_MODEL LabModelQueue;
extern const LAB_MODEL LabModelMutant;
extern const LAB_MODEL LabModelNotificationTimer;
extern const LAB_MODEL LabModelSynchronizationTimer;
extern const LAB_MODEL LabModelNarrowQueue;
extern const LAB_MODEL LabModelResource;
extern const LAB_MODEL LabModelRundown;
extern const LAB_MODEL LabModelFastReference;
extern const LAB_MODEL LabModelList;
extern const LAB_MODEL LabModelRunOnce;
extern const LAB_MODEL LabModelKeyedEvent;
extern const LAB_MODEL LabModelBarrierOfTwo;

#ifdef __cplusplus
}
#endif

#endif
