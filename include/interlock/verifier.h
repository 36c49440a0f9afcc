/*
 * verifier.h: a test's interface to the verifier. It turns the checks on, expects bugchecks, finds pool memory that was
 * not freed, and makes allocations fail. Windows has no functions of these names: code under test does not call them,
 * its test does.
 */
#ifndef INTERLOCK_VERIFIER_H
#define INTERLOCK_VERIFIER_H

#include <setjmp.h>

#include <interlock/ke.h>

INTERLOCK_BEGIN

/* The verifier. INTERLOCK_VERIFIER=1 turns it on for a whole process. */

/* Turns the verifier on or off: all that INTERLOCK_VERIFIER=1 checks, from now on. Releasing a lock that is held at
   this moment is not a violation. Returns STATUS_INVALID_DEVICE_STATE above PASSIVE_LEVEL, and STATUS_NOT_SUPPORTED if
   this build cannot turn it off. Call it before other threads use the library, for example at the beginning of main.
   PASSIVE_LEVEL. Only in Interlock. */
INTERLOCK_API NTSTATUS VfEnableVerifier(BOOLEAN Enable);

/* TRUE: the verifier is on. Any IRQL. Only in Interlock. */
INTERLOCK_API BOOLEAN VfIsVerifierEnabled(VOID);

/* Expecting a bugcheck. A caught bugcheck writes no report and ends nothing. */

#define VF_REPORT_SIZE 8192

typedef enum _VF_OUTCOME {
    VfReturned,              /* no bugcheck */
    VfStopped,               /* a bugcheck: the other members describe it */
    VfDied                   /* child only: it ended in another way; Code is its signal, or its exit code plus 256 */
} VF_OUTCOME;

typedef struct _VF_BUGCHECK {
    VF_OUTCOME Outcome;
    ULONG Code;
    ULONG_PTR Parameter[4];
    ULONG MutexesReleased;   /* that the routine owned: they were released */
    ULONG LocksHeld;         /* spinlocks that the routine still holds; with the verifier on */
    CHAR Report[VF_REPORT_SIZE]; /* the text that goes to standard error otherwise */
} VF_BUGCHECK, *PVF_BUGCHECK;

typedef VOID VF_ROUTINE(PVOID Context);
typedef VF_ROUTINE *PVF_ROUTINE;

/* Runs the routine and returns the code of its bugcheck, or 0 if it returned. BugCheck may be NULL. The bugcheck ends the
   routine as longjmp would, and the thread continues in its previous state: its IRQL, its processor, its critical and
   guarded regions, its affinity, its __try frames; mutexes that it acquired are released. Other locks stay as they are.
   A bugcheck of another thread, in an interrupt service routine, or inside a lock of the library ends the process as
 * usual. Below DISPATCH_LEVEL. Only in Interlock. */
INTERLOCK_API ULONG VfExpectBugCheck(PVF_ROUTINE Routine, PVOID Context, PVF_BUGCHECK BugCheck);

/* The same in a forked child, which catches the bugcheck of any thread in any state and leaves this process alone. The
   routine must not use assertions of a test framework. Also returns 0 if the child ended in another way or could not be
 * created. PASSIVE_LEVEL. Only in Interlock. */
INTERLOCK_API ULONG VfExpectBugCheckInChild(PVF_ROUTINE Routine, PVOID Context, PVF_BUGCHECK BugCheck);

typedef struct _VF_EXPECTATION {
    struct _VF_EXPECTATION *Next;
    ULONG_PTR Mark;
    PVF_BUGCHECK BugCheck;
    BOOLEAN Active;
    BOOLEAN Pass;
    KIRQL Irql;
    UCHAR DpcDepth;
    UCHAR HostInterrupts;
    UCHAR ServiceDepth;
    BOOLEAN KernelApcInProgress;
    BOOLEAN SystemAffinityActive;
    SHORT KernelApcDisable;
    SHORT SpecialApcDisable;
    ULONG DispatcherDepth;
    ULONG Mutants;
    ULONG Held;
    PVOID ExceptionList;
    jmp_buf Context;
} VF_EXPECTATION, *PVF_EXPECTATION;

/* Internal: VF_EXPECT_BUGCHECK expands to these. */
INTERLOCK_API BOOLEAN VfBeginExpectation(PVF_EXPECTATION Expectation);
INTERLOCK_API VOID VfEndExpectation(PVF_EXPECTATION Expectation);
FORCEINLINE VF_EXPECTATION VfMakeExpectation(PVF_BUGCHECK BugCheck)
{
    VF_EXPECTATION Expectation;
    Expectation.BugCheck = BugCheck;
    Expectation.Active = FALSE;
    Expectation.Pass = TRUE;
    return Expectation;
}

/*
 * The statement form of VfExpectBugCheck:
 *
 *     VF_BUGCHECK BugCheck;
 *     VF_EXPECT_BUGCHECK(&BugCheck) {
 *         KeRaiseIrql(DISPATCH_LEVEL, &OldIrql);
 *         KeWaitForSingleObject(&Event, Executive, KernelMode, FALSE, NULL);
 *     }
 *     assert_int_equal(BugCheck.Code, IRQL_NOT_LESS_OR_EQUAL);
 *
 * break and return leave the statement as they leave any loop. A local variable that it changes and that is used
 * afterwards must be volatile, as for setjmp. In C++ destructors of objects inside do not run if there is a bugcheck.
 */
#define VF_EXPECT_BUGCHECK(BugCheck) VF_EXPECT_BUGCHECK_IN(BugCheck, VF_JOIN(VfExpectation, __LINE__))
#define VF_JOIN(a, b) VF_JOIN_EXPANDED(a, b)
#define VF_JOIN_EXPANDED(a, b) a##b
#define VF_EXPECT_BUGCHECK_IN(BugCheck, Expectation)                                                                   \
    for (VF_EXPECTATION Expectation __attribute__((cleanup(VfEndExpectation))) = VfMakeExpectation(BugCheck);          \
         VfBeginExpectation(&Expectation); Expectation.Pass = FALSE)                                                   \
        if (setjmp(Expectation.Context) == 0)

/* Pool memory by tag. `interlock pool` shows the same of a running process. */

typedef struct _VF_POOL_USE {
    ULONG64 Allocations;
    ULONG64 Frees;
    ULONG64 Bytes;           /* that are allocated now */
    ULONG64 PeakBytes;       /* the most that were; with the verifier on, else 0 */
} VF_POOL_USE, *PVF_POOL_USE;

typedef struct _VF_POOL_MARK {
    ULONG Tag;
    BOOLEAN Verified;        /* the verifier was on */
    ULONG64 Number;          /* of the next block */
    ULONG64 Blocks;          /* that were allocated */
} VF_POOL_MARK, *PVF_POOL_MARK;

/* Counts the use of a pool tag in paged and nonpaged pool; either pointer may be NULL. Returns FALSE if nothing was ever
   allocated with the tag. Any IRQL. Only in Interlock. */
INTERLOCK_API BOOLEAN VfQueryPoolTag(ULONG Tag, PVF_POOL_USE NonPaged, PVF_POOL_USE Paged);

/* Marks this moment: later, VfCountPoolLeaks finds what was allocated since. Tag 0 means all tags. Only in Interlock. */
INTERLOCK_API VF_POOL_MARK VfMarkPool(ULONG Tag);

/* Counts the blocks that were allocated since the mark and are not freed, and lists them on standard error: with the
   verifier on, address, size, tag and stack of each; without it, only their number is known. Tag and mark may be combined:
   VfCountTagLeaks counts all blocks of a tag. Below DISPATCH_LEVEL. Only in Interlock. */
INTERLOCK_API ULONG64 VfCountPoolLeaks(const VF_POOL_MARK *Mark);
INTERLOCK_API ULONG64 VfCountTagLeaks(ULONG Tag);

/* Failing allocations. Each distinct call stack of an allocation fails once, one per round. */

typedef struct _VF_FAULT {
    BOOLEAN Injected;        /* in this round */
    ULONG64 Stack;           /* which call stack: the same number in every run of the same program */
    ULONG Round;
    ULONG FrameCount;
    ULONG64 Frames[24];      /* return addresses, innermost first */
} VF_FAULT, *PVF_FAULT;

/* Begins fault injection in this process: forgets which stacks have failed. Then
   while (VfNextFault()) runs what is under test. Returns FALSE if INTERLOCK_FAULTS has begun it, or there is no memory. Only
   in Interlock. */
INTERLOCK_API BOOLEAN VfBeginFaults(VOID);

/* Begins the next round: in it, the first allocation whose call stack has not failed yet fails: of pool memory, an object, a
   handle, a thread, or anything else that the library allocates for its caller. Returns FALSE when all have failed: after
   a round in which nothing did. Only in Interlock. */
INTERLOCK_API BOOLEAN VfNextFault(VOID);

/* Ends fault injection, even in the middle of a round. Only in Interlock. */
INTERLOCK_API VOID VfEndFaults(VOID);

/* Reports what has failed in this round. Only in Interlock. */
INTERLOCK_API VOID VfQueryFault(PVF_FAULT Fault);

INTERLOCK_END

#endif
