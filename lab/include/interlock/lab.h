/*
 * lab.h: how to write a test for the explorer. A test is a plain C file: functions that run as threads, and optionally
 * one that prepares, one that checks an invariant after every step, and one that checks the end. Memory accesses need
 * no annotation: the file is compiled with -fsanitize=thread and linked with the lab in place of the sanitizer.
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
 * Setup runs once; every schedule starts from the memory that it left. No thread runs during Invariant and Finish,
 * which must not block.
 */
#ifndef INTERLOCK_LAB_H
#define INTERLOCK_LAB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAB_MAXIMUM_THREADS 8

#define LAB_UNLIMITED ((unsigned)-1)

/* Flags of a scenario. */
#define LAB_RUN_EXIT    0x1u /* a thread that returns exits like a host thread: its mutants are abandoned, ... */
#define LAB_CHECK_LEAKS 0x2u /* memory allocated during the schedule must be freed by its end */
#define LAB_MAY_BLOCK   0x4u /* threads that stay blocked are not a deadlock: Finish decides */
#define LAB_LARGE       0x8u /* too large to be exhausted: not tried; gets a third of the time */
#define LAB_PRECISE     0x10u /* interrupts also come before plain accesses outside of the thread's stack */

typedef struct _LAB_SCENARIO {
    const char *Name;
    void (*Setup)(void);
    void (*Threads[LAB_MAXIMUM_THREADS])(void);
    void (*Invariant)(void); /* after every step */
    void (*Finish)(void);    /* at the end of every schedule */
    unsigned Flags;
    /* How often each of these may happen in one schedule, at any time. */
    unsigned SpuriousWakes;
    unsigned AllocationFailures;
    unsigned Deaths;       /* exits of threads that have called LabMayDie */
    unsigned Kills;        /* of processes that threads have entered: LabEnterProcess */
    unsigned WeakFailures; /* spurious, of weak compare-exchanges; 0: the command line's */
    unsigned Timeouts;     /* while other threads could run; 0: the default, 2; LAB_UNLIMITED */
    unsigned Reuse;        /* allocations that get a block of that size freed before; 0: the command line's, none */
    /* What is known about the scenario. */
    const char *Expect;        /* the verdict that must be found; NULL: no failure may be found */
    const char *Model;         /* "sc", "tso" or "c11"; NULL: the command line's */
    unsigned MaximumSchedules; /* an exhaustive search that needs more continues at random; 0: the default */
    unsigned Processors;       /* of the machine; 0: the command line's, or 2 */
    unsigned StaleReads;       /* tso, c11: accesses per schedule behind the newest store; 0: the default */
    const char *File;          /* where it is written, by the macro */
    unsigned Line;
} LAB_SCENARIO;

#define LAB_SCENARIO(Identifier, ...) LAB_SCENARIO_NAMED(Identifier, #Identifier, __VA_ARGS__)
#define LAB_SCENARIO_NAMED(Identifier, Text, ...)                                                                      \
    static const LAB_SCENARIO LabScenario_##Identifier = {.Name = Text, __VA_ARGS__, .File = __FILE__, .Line = __LINE__}; \
    static const LAB_SCENARIO *const LabRegistered_##Identifier __attribute__((used, section("lab_scenarios"))) =      \
        &LabScenario_##Identifier

/* A failure of the running schedule. */
#define LabAssert(Condition) ((Condition) ? (void)0 : LabFail("assertion", #Condition, __FILE__, __LINE__))
void LabFail(const char *Verdict, const char *Text, const char *File, int Line) __attribute__((noreturn));

/* Returns 0 .. Count - 1; the explorer tries each value. */
unsigned LabChoose(unsigned Count);

/* Starts another thread from a thread. The schedule ends after it has ended. Returns its number. */
unsigned LabSpawn(void (*Routine)(void *), void *Argument);
/* Waits until that thread, which LabSpawn has started, has ended. */
void LabJoin(unsigned Thread);
/* The calling thread exits here, like a host thread. */
void LabExitThread(void) __attribute__((noreturn));
/*
 * From here on the calling thread may exit, as by LabExitThread, before any step of its own function (LabYield is one),
 * but not inside functions that it calls. This happens up to .Deaths times in a schedule.
 */
void LabMayDie(void);
unsigned LabCurrentThread(void);
/*
 * From here on the calling thread belongs to that process (1 to 7), which may be killed: all of its threads stop, without
 * running anything, before any of them writes to the Size bytes at Shared, the memory that processes share, or wakes a
 * thread that sleeps there. This happens up to .Kills times in a schedule. A thread that enters a killed process stops.
 */
void LabEnterProcess(unsigned Process, const volatile void *Shared, size_t Size);
void LabLeaveProcess(void); /* the last thread to leave ends the process, in order */
unsigned LabCurrentProcess(void); /* 0: none */
int LabIsProcessKilled(unsigned Process);
int LabAwaitProcess(unsigned Process); /* until it is killed or has ended; 1: it was killed */

/*
 * The calling thread has made progress. Only for programs that do not end: if the machine returns to an earlier state,
 * a thread that has called neither this nor LabEnd in between made no progress, and may never make any.
 */
void LabProgress(void);

/* A point at which other threads may run, without an access to memory. */
void LabYield(void);
/* Advances virtual time, in units of 100 ns, without sleeping. */
void LabAdvanceTime(uint64_t Time);

/*
 * Between these two the calling thread is inside the C library, as an interrupt sees it: one that would stop the thread
 * is deferred until the thread has left.
 */
void LabEnterLibc(void);
void LabLeaveLibc(void);

/*
 * For searches that compare states: what the program will not look at again.
 * LabIgnore, in Setup: a statistic of up to 8 bytes, in one aligned word. No decision depends on it, so it is not part of a state,
 * and its accesses are not steps.
 * LabForget clears memory that the program overwrites before it reads it again, and LabForgetBits some bits of a word. That is
 * not an access: other threads see it as part of the last store there.
 */
void LabIgnore(const volatile void *Address, size_t Size);
void LabForget(volatile void *Address, size_t Size);
void LabForgetBits(volatile uint32_t *Address, uint32_t Bits);

/* Memory of the schedule. Accessing freed memory is a failure. It is reused only if .Reuse allows that. */
void *LabAllocate(size_t Size);
void LabFree(void *Memory);

/* Like a futex: blocks while *Address == Expected; LabWakeWord wakes at most Count blocked threads. */
void LabWaitOnWord(volatile uint32_t *Address, uint32_t Expected);
/* With a timeout, in units of 100 ns. Returns 0 if it has passed. */
int LabWaitOnWordFor(volatile uint32_t *Address, uint32_t Expected, uint64_t Time);
void LabWakeWord(volatile uint32_t *Address, unsigned Count);

/*
 * Histories. A thread brackets an operation on an object with LabBegin and LabEnd. At the end of the schedule
 * LabCheckLinearizable searches for an order of all operations that respects real time and that the model allows.
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
    /* Applies the operation to State. 0: the model does not allow it now (with this result, if it returned). */
    int (*Apply)(intptr_t State[LAB_MODEL_STATE], const LAB_OPERATION *Operation);
    const char *const *OperationNames;
} LAB_MODEL;

unsigned LabBegin(unsigned Name, intptr_t Argument);
void LabEnd(unsigned Operation, intptr_t Result);
void LabCheckLinearizable(const LAB_MODEL *Model);

/*
 * The lab's models. A model's operations are numbered from 0 in the order of its OperationNames. For the models used
 * most: event: set, reset, wait; semaphore: release (Argument: the number), wait; mutex: acquire, release, try; stack
 * and queue: push (Argument: an element, not 0), pop (Result: the element, or 0 if there was none); reader/writer
 * lock: acquire and release exclusive, acquire and release shared, try exclusive, try shared, convert to exclusive,
 * convert to shared. The Result of a set, reset or release is what the function returns, the previous state. The
 * Result of a wait, a try or a conversion is 1 if it succeeded.
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
