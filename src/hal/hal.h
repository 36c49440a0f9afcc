/*
 * hal.h: the host machine's services. Everything above this folder runs on any host that implements this header; the
 * explorer links its own simulated one.
 */
#ifndef INTERLOCK_HAL_H
#define INTERLOCK_HAL_H

#include <interlock/exception.h>
#include <interlock/ntdef.h>
#include <interlock/interlocked.h>
#include <interlock/ntstatus.h>

/* The deadline of a wait. Times are in units of 100 ns. */
typedef enum _HAL_CLOCK {
    HalNoDeadline,
    HalInterruptTime, /* since boot, never steps */
    HalSystemTime     /* since 1601, follows clock steps */
} HAL_CLOCK;

typedef struct _HAL_DEADLINE {
    HAL_CLOCK Clock;
    ULONGLONG Time;
} HAL_DEADLINE, *PHAL_DEADLINE;

/*
 * The operations that tests replace. Wait sleeps while *Address == Expected, with spurious wakeups; it returns FALSE only
 * when the deadline has passed. Wake wakes at most Count threads that sleep on Address. CurrentProcessor is the host's
 * number: a hint, and not always below HalProcessorCount.
 */
typedef struct _HAL_DISPATCH {
    BOOLEAN (*Wait)(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline);
    VOID (*Wake)(volatile ULONG *Address, ULONG Count);
    ULONGLONG (*QueryInterruptTime)(VOID);
    ULONGLONG (*QueryTickTime)(VOID); /* the interrupt time of the host's last tick, at most HalTickLength ago: cheap */
    ULONGLONG (*QuerySystemTime)(VOID);
    VOID (*Yield)(VOID);
    ULONG (*CurrentProcessor)(VOID);
    ULONG (*CountSwitches)(VOID); /* how often the host has switched away from this thread */
} HAL_DISPATCH;

/*
 * A machine that runs one thread at a time can make the acquisition of a short lock one operation, and the sleep of a waiting
 * thread too: the explorer's does, on demand. On every other machine ke spins and sleeps itself (ke/park.h).
 */
#ifndef HAL_SIMULATED
#define HAL_SIMULATED 0
#endif
/* Waits until Bit is clear in the word, and sets it. Returns the word with the bit; 0: the caller acquires the lock itself. */
ULONG64 HalSimulateAcquire(volatile VOID *Word, ULONG Size, ULONG64 Bit);
/* Sleeps until *Word is Value, or until the deadline: then *Reached is FALSE. FALSE: the caller sleeps itself. */
BOOLEAN HalSimulateSleep(volatile ULONG *Word, ULONG Value, const HAL_DEADLINE *Deadline, PBOOLEAN Reached);

extern HAL_DISPATCH HalDispatch;
extern ULONG HalTickLength; /* in units of interrupt time */

/* The running thread; NULL before it is adopted. */
struct _KTHREAD;
extern __thread struct _KTHREAD *HalCurrentThread __attribute__((tls_model("initial-exec")));

/* Callbacks from the host into the layers above; ke sets them once, before it uses anything else of hal. */
typedef struct _HAL_CALLBACKS {
    VOID (*ThreadExit)(struct _KTHREAD *Thread); /* on the exiting host thread, with HalCurrentThread still set */
    VOID (*Interrupt)(BOOLEAN InsideLibc);       /* on the interrupted host thread, asynchronously, never nested: it
                                                    returns or ends the thread; InsideLibc: it may hold the heap's
                                                    lock and should not be stopped now */
    VOID (*ForkPrepare)(VOID);
    VOID (*ForkParent)(BOOLEAN LateFollows);     /* an allocator may have locked its heap */
    VOID (*ForkParentLate)(VOID);                /* after the allocator's handlers */
    VOID (*ForkChild)(VOID);                     /* HalFree defers, since an allocator may have locked its heap */
    VOID (*ForkChildLate)(VOID);                 /* after its handlers; not if the parent never created a thread */
#ifdef INTERLOCK_DEBUG
    VOID (*HeapUse)(VOID);                       /* before each use of the heap */
#endif
} HAL_CALLBACKS;

/* In two steps. The first allocates nothing: the first call may come from a malloc that uses this library. */
VOID HalInitialize(const HAL_CALLBACKS *Callbacks);
VOID HalCompleteInitialization(VOID);

/* Host threads. Ids are the host's and fit in 32 bits. */
ULONG HalCurrentThreadId(VOID);
ULONG HalCurrentProcessId(VOID);
BOOLEAN HalQueryRandom(PVOID Buffer, SIZE_T Size); /* at most 256 bytes; FALSE: the host has none */
NTSTATUS HalCreateThread(VOID (*StartRoutine)(PVOID), PVOID Context, SIZE_T StackSize, PCSTR Name);
DECLSPEC_NORETURN VOID HalExitThread(VOID);
/* Ends the host thread at once, in any context: no destructor and no cleanup handler runs, its stack is not freed. Sets
   *StackIsLeft (release) after the last use of the stack. */
DECLSPEC_NORETURN VOID HalTerminateThread(volatile UCHAR *StackIsLeft);
VOID HalSetThreadName(ULONG ThreadId, PCSTR Name);  /* truncated to what the host accepts */
VOID HalQueryThreadTimes(ULONG ThreadId, PULONGLONG KernelTime, PULONGLONG UserTime); /* 0: no such thread */
/* The program's other threads. ForNow: one may only be ending or starting, so ask again. Others: also if the host does not
   say. */
typedef enum _HAL_OTHERS { HalNoOthers, HalOthersForNow, HalOthers } HAL_OTHERS;
HAL_OTHERS HalFindOtherThreads(VOID);
VOID HalNoteThreadEnds(VOID);                       /* by a thread, before it counts as ended: its host thread ends
                                                       later */
/* Adopts: Callbacks.ThreadExit will run for this thread, and interrupts reach it. NULL: ThreadExit need not run. */
VOID HalWatchThreadExit(struct _KTHREAD *Thread);
/* Callbacks.Interrupt runs on that thread soon, unless something blocks the interrupt (interrupt.c); several may merge
   into one. STATUS_INVALID_CID: the thread has ended; STATUS_INSUFFICIENT_RESOURCES: the host's queue of signals is
   full; STATUS_ACCESS_DENIED: the host or the program blocks it. */
NTSTATUS HalInterruptThread(ULONG ThreadId);
/* After HalInterruptThread. TRUE: the thread takes the interrupt before it runs any further; also while it is in
   sigwait, so check before the interrupt whether it sleeps. FALSE: the thread blocks it, it has arrived or was taken by
   something else, or the host does not say. */
BOOLEAN HalIsInterruptOnItsWay(ULONG ThreadId);
BOOLEAN HalIsThreadAsleep(ULONG ThreadId);          /* in a system call */
/* In Callbacks.Interrupt, inside the C library: runs it again soon. Refused: the host has no timer for this thread. */
typedef enum _HAL_LATER { HalLaterSet, HalLaterRefused, HalLaterTooOften } HAL_LATER;
HAL_LATER HalInterruptLater(VOID);
BOOLEAN HalCanInterruptLater(VOID);                 /* does the host have timers now? */
BOOLEAN HalIsThreadOfOtherProcess(ULONG ThreadId);  /* FALSE also if there is no such thread */
/* Every running thread passes a full barrier. FALSE: the host does not offer it, which is known from the start. */
BOOLEAN HalBarrierAllThreads(VOID);
BOOLEAN HalSetThreadPriority(ULONG ThreadId, LONG NtPriority); /* FALSE: the process may not */

/* Processors. */
ULONG HalProcessorCount(VOID);
/* The primitives of ke/park.h. The number of processors is the one at load time. */
BOOLEAN HalOtherProcessorAvailable(VOID);           /* can another thread run while one spins? */
BOOLEAN HalProcessorsAvailable(ULONG Count);        /* can that many threads of this process run at a time? */
ULONG HalSpinsForCycles(ULONG NtCycles);            /* how many pauses take that many of NT's cycles */
FORCEINLINE VOID HalPause(VOID) { YieldProcessor(); }

/* Fetches the line of a word that is read next and then changed by a locked instruction: without it the read fetches a line
   of another processor shared, and the instruction fetches it again. gcc and clang emit prefetchw only for newer processors
   than the oldest of x86-64, where it does nothing. */
FORCEINLINE VOID HalPrefetchForWrite(const volatile VOID *Word)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const volatile CHAR *)Word));
#else
    __builtin_prefetch((const VOID *)Word, TRUE);
#endif
}
VOID HalPauseFor(ULONG Pauses);
/* Pauses for others to write Word, then reads it: roughly how many of NT's cycles that took. FALSE: no thread wrote. */
BOOLEAN HalTimeLine(const volatile ULONG *Word, ULONG Pauses, PULONG Cycles);
/* The time that a line of a distant core takes, averaged over the noted ones. 0: not known yet. */
VOID HalNoteFarLine(ULONG Cycles);
ULONG HalFarLineCycles(VOID);
ULONG HalYieldsBeforeSleep(VOID);                   /* how often to yield before it is better to sleep */
BOOLEAN HalYieldToOther(VOID);                      /* FALSE: no other thread wanted the processor */
/* The thread has found a lock held, or in a crowd has passed waiters. Yields if the thread's turn on its processor is over: see fairshare.c. */
typedef struct _HAL_TURN {
    ULONGLONG Began;
    ULONG Acquires;    /* contended ones, and passes in a crowd */
    ULONG Turns;
    ULONG Switches;    /* at the last count */
    ULONG CountsAlone; /* counts in a row that found no other thread on the processor */
    ULONG Period;      /* in which it was last counted among those that contend */
} HAL_TURN, *PHAL_TURN;
VOID HalCountContention(PHAL_TURN Turn);
VOID HalDisperseCrowd(VOID); /* a thread wants to share a lock that it has found held */
BOOLEAN HalIsCrowded(VOID); /* dozens of threads to a processor contend for locks */
/* Sleep and wake on a word that processes share. As HalDispatch.Wait and Wake, but a word whose memory was unmapped is
   a spurious wakeup. */
BOOLEAN HalWaitShared(volatile ULONG *Address, ULONG Expected, const HAL_DEADLINE *Deadline);
VOID HalWakeShared(volatile ULONG *Address, ULONG Count);
VOID HalGiveWay(ULONG Round);                       /* between two checks of a wait without a waker: yields, later
                                                       naps */

/* The sleep of the clock thread, one at a time: until *Wake != Expected or either deadline, also if the system clock is
   stepped, or a spurious wakeup. 0: no deadline. A thread that has changed *Wake calls HalClockWake. */
VOID HalClockWait(volatile ULONG *Wake, ULONG Expected, ULONGLONG InterruptTime, ULONGLONG SystemTime);
VOID HalClockWake(volatile ULONG *Wake);
ULONGLONG HalQueryPerformanceCounter(VOID);         /* in units of HAL_PERFORMANCE_FREQUENCY */
#define HAL_PERFORMANCE_FREQUENCY 10000000ULL
LONGLONG HalQueryZoneOffset(ULONGLONG SystemTime);  /* the UTC offset in effect at SystemTime */

/* The time zone, by its two seasons. */
#define HAL_ZONE_NAME 32
typedef struct _HAL_SEASON {
    BOOLEAN Known;
    LONG Offset;                   /* its UTC offset, in seconds */
    LONGLONG Begins;               /* this year, on the clock of the other season, in seconds since 1970; 0: never */
    CHAR Name[HAL_ZONE_NAME];
} HAL_SEASON, *PHAL_SEASON;
typedef struct _HAL_TIME_ZONE {
    BOOLEAN Daylight;              /* now */
    HAL_SEASON Seasons[2];         /* standard time, daylight saving time */
} HAL_TIME_ZONE, *PHAL_TIME_ZONE;
struct tm;
BOOLEAN HalBreakDownTime(LONGLONG Seconds, BOOLEAN Local, struct tm *Fields); /* FALSE: there is no such date */
VOID HalQueryTimeZone(LONGLONG Now, PHAL_TIME_ZONE Zone);                     /* in seconds since 1970 */

/* Keys of the terminal. */
LONG HalReadKey(BOOLEAN Echo);                      /* blocks for a byte; -1: the input has ended */
BOOLEAN HalIsKeyReady(VOID);                        /* FALSE: that would block */

/* Descriptors. The events are the host's own bits. A watch is for one event: it has to be renewed after that. */
#define HAL_DESCRIPTOR_READABLE 0x001u
#define HAL_DESCRIPTOR_URGENT 0x002u
#define HAL_DESCRIPTOR_WRITABLE 0x004u
#define HAL_DESCRIPTOR_FAILED 0x008u
#define HAL_DESCRIPTOR_CLOSED 0x010u
#define HAL_MOST_READY 32

typedef struct _HAL_READY {
    ULONG64 Cookie;
    ULONG Events;
} HAL_READY, *PHAL_READY;

/* The identity of a descriptor's file. All files of some kinds (eventfd, epoll, timerfd) share one. */
typedef struct _HAL_FILE_ID {
    ULONG64 Device;
    ULONG64 File;
} HAL_FILE_ID, *PHAL_FILE_ID;

typedef enum _HAL_MEMBERSHIP { HalDescriptorIsMember, HalDescriptorAlwaysReady, HalDescriptorRefused } HAL_MEMBERSHIP;

#define HAL_NO_COOKIE MAXULONGLONG                  /* of a member that is never armed */

NTSTATUS HalDuplicateDescriptor(LONG Descriptor, PLONG Duplicate);
VOID HalCloseDescriptor(LONG Descriptor);
ULONG HalPollDescriptor(LONG Descriptor, ULONG Events);
BOOLEAN HalQueryFileId(LONG Descriptor, PHAL_FILE_ID Id); /* FALSE: it is not open */
BOOLEAN HalIsFile(LONG Descriptor, const HAL_FILE_ID *Id);
BOOLEAN HalIsTellingId(const HAL_FILE_ID *Id);      /* no other file has it; after the keeper was opened */
/* The keeper of the library's own descriptors: the theory is in hal/descriptor.c. */
ULONG HalOpenKeeper(VOID);                          /* reopens it, without members; one thread at a time. 0: refused */
BOOLEAN HalIsKeeperIntact(VOID);                    /* FALSE: the program has closed some of it */
VOID HalAwaitKeeperLoss(ULONG Keeper);
HAL_MEMBERSHIP HalEnterDescriptor(LONG Descriptor, ULONG64 Cookie); /* it is not armed */
BOOLEAN HalIsMember(LONG Descriptor);               /* FALSE: the number is not ours */
BOOLEAN HalArmDescriptor(LONG Descriptor, ULONG Events, ULONG64 Cookie); /* for one event; FALSE: not a member */
VOID HalForgetDescriptor(LONG Descriptor);
/* Ready: HAL_MOST_READY of them. FALSE: the keeper is lost, or is another one. */
BOOLEAN HalWaitForDescriptors(ULONG Keeper, PHAL_READY Ready, PULONG Count);
LONG HalCreateSignalDescriptor(VOID);               /* below 0: there is none */
VOID HalSignalDescriptor(LONG Descriptor);          /* readable from now on, until it is drained */
VOID HalDrainDescriptor(LONG Descriptor);

/* Processes, each known by a descriptor that becomes readable when it ends. */
typedef enum _HAL_PROCESS_REQUEST { HalSuspendProcess, HalResumeProcess, HalTerminateProcess } HAL_PROCESS_REQUEST;

typedef struct _HAL_SPAWN {
    PCSTR Path;                                     /* looked up in PATH if it has no slash */
    PSTR *Arguments;                                /* at least one, ended by NULL */
    PSTR *Environment;                              /* NULL: that of this process */
    PCSTR Directory;                                /* NULL: that of this process */
    LONG Standard[3];                               /* descriptors for input, output, errors; -1: those of this process */
    BOOLEAN Stopped;                                /* until HalResumeProcess */
    PCSTR Variable;                                 /* NAME=value, in the environment beside the others; NULL: none */
} HAL_SPAWN;

NTSTATUS HalOpenProcess(ULONG ProcessId, PLONG Descriptor); /* STATUS_INVALID_CID: there is no such process */
ULONG64 HalQueryProcessStart(ULONG ProcessId);      /* another process with that id has another one; 0: unknown */
/* A unique key of a process: its id in the low HAL_PROCESS_ID_BITS, above that its start and what an exec changes, 63
   bits in all. 0: there is no such process, it has ended, or the host does not say. */
#define HAL_PROCESS_ID_BITS 22
ULONG64 HalQueryProcessKey(ULONG ProcessId);
/* FALSE: all threads of that process have ended, or another program runs in it. If in doubt, TRUE. */
BOOLEAN HalIsProcessAlive(ULONG64 Key);
ULONG64 HalKeyOfAnyProgram(ULONG64 Key); /* the same process, also across an exec */
BOOLEAN HalIsProcessGone(ULONG64 Key); /* cheap: the host has no process with that id, or it is this one under another key */
NTSTATUS HalSpawnProcess(const HAL_SPAWN *Spawn, PULONG ProcessId, PLONG Descriptor);
BOOLEAN HalQueryProcessExit(LONG Process, BOOLEAN Reap, PULONG ExitCode); /* FALSE: it runs, or is not our child */
VOID HalAwaitProcess(LONG Process);                  /* until a child has ended */
NTSTATUS HalRequestOfProcess(LONG Process, HAL_PROCESS_REQUEST Request);
DECLSPEC_NORETURN VOID HalExitProcess(ULONG ExitCode, BOOLEAN AtOnce);

/* A forked child that runs a routine and sends a result back. */
typedef struct _HAL_CHILD {
    LONG Output;
    ULONG ExitStatus;                                /* its signal, or its exit code plus 256; 0: there was no child */
} HAL_CHILD, *PHAL_CHILD;

/* FALSE: it ended without one. */
BOOLEAN HalRunChild(PHAL_CHILD Child, VOID (*Routine)(PVOID), PVOID Context, PVOID Result, SIZE_T Size);
DECLSPEC_NORETURN VOID HalFinishChild(const HAL_CHILD *Child, const VOID *Result, SIZE_T Size); /* in the child */

/* Memory: never used on a wait, signal, acquire or release path. */
PVOID HalAllocate(SIZE_T Size, SIZE_T Alignment);   /* zeroed; NULL: there is none */
/* Called before each HalAllocate, and before creations that need no memory. TRUE: this one fails. NULL: none does. */
typedef BOOLEAN HAL_FAULT_ROUTINE(VOID);
extern HAL_FAULT_ROUTINE *volatile HalFaultRoutine;
FORCEINLINE BOOLEAN HalIsFaultInjected(VOID)
{
#ifdef INTERLOCK_HOST
    HAL_FAULT_ROUTINE *Routine = __atomic_load_n(&HalFaultRoutine, __ATOMIC_RELAXED); /* relaxed: set while it matters */
    return __builtin_expect(Routine != NULL, FALSE) && Routine();
#else
    return FALSE;
#endif
}
PVOID HalAllocateWithoutFault(SIZE_T Size, SIZE_T Alignment); /* likewise; for allocations that the caller does not
                                                                 see */
PVOID HalAllocateUninitialized(SIZE_T Size, SIZE_T Alignment); /* likewise; not initialized */
VOID HalFree(PVOID Memory);
SIZE_T HalQueryAllocationSize(PVOID Memory);         /* at least what was asked for; 0: unknown */
ULONG HalQueryPageSize(VOID);
/* Whole pages, zeroed, from the host itself: works inside malloc, too. NULL: there are none. */
PVOID HalAllocatePages(SIZE_T Size);
VOID HalFreePages(PVOID Memory, SIZE_T Size);

/* Reading memory that another thread may unmap at any time. */
typedef struct _HAL_READ {
    PVOID Value;
    ULONG_PTR Readable;                             /* 0: the read faulted, and Value is meaningless */
} HAL_READ;

HAL_READ HalReadPointerOrFault(PVOID volatile *Address);

/* The C library's error number, for functions that have it in their contract. */
typedef enum _HAL_ERROR { HalErrorInvalid, HalErrorAccess, HalErrorMemory, HalErrorAgain } HAL_ERROR;
VOID HalSetError(HAL_ERROR Error);

/* Diagnostics. */
PCSTR HalGetEnvironment(PCSTR Name);
PCSTR HalTakeEnvironment(PCSTR Name);               /* the same, and removes it; while the process has one thread */
VOID HalPrint(PCSTR Format, ...) __attribute__((format(printf, 1, 2))); /* to standard error, safe in any context */
VOID HalCapturePrint(PSTR Buffer, SIZE_T Size);      /* of this thread, until it is called with NULL; truncated at the
                                                        end */
/* From the frame with that return address on; NULL: all. Functions of the library that lead there from one of its public
   functions are left out. */
VOID HalPrintStackTrace(PVOID Caller);
VOID HalPrintCallers(const ULONG64 *Frames, ULONG Count); /* likewise, of return addresses */
BOOLEAN HalIsDebuggerPresent(VOID);
VOID HalBreakIntoDebugger(VOID);
DECLSPEC_NORETURN VOID HalAbort(VOID);

/* Recording (trace/recording.c); the simulated machine has none of it. */
#define HAL_LONGEST_PATH 1024

typedef struct _HAL_FILE_PROBLEM {
    PCSTR Text;
    BOOLEAN InUse;                                  /* by another running process */
} HAL_FILE_PROBLEM;

/* A file that the library keeps open. The program may close its descriptor or reuse the number for another file, so each use
   checks that the number still refers to this file. */
typedef struct _HAL_OPEN_FILE {
    LONG Descriptor;                                /* -1: none is open */
    HAL_FILE_ID Id;
} HAL_OPEN_FILE, *PHAL_OPEN_FILE;

/* A file that the user named. A stream is anything but a regular file: a device, a pipe, an open descriptor. It is
   written to, never replaced or removed. */
typedef struct _HAL_OUTPUT {
    CHAR Path[HAL_LONGEST_PATH];                    /* with symbolic links resolved */
    BOOLEAN Stream;
    HAL_OPEN_FILE File;
    CHAR Temporary[HAL_LONGEST_PATH];               /* renamed to Path when it is complete */
} HAL_OUTPUT, *PHAL_OUTPUT;

ULONG64 HalQueryNanoseconds(VOID);                  /* of a clock that never steps */
BOOLEAN HalMakeAbsolutePath(PCSTR Path, PSTR Buffer, SIZE_T Size);
/* The functions below: FALSE or NULL: *Problem. */
BOOLEAN HalFindOutput(PCSTR Path, PHAL_OUTPUT Output, HAL_FILE_PROBLEM *Problem); /* changes nothing */
BOOLEAN HalOpenOutput(PHAL_OUTPUT Output, HAL_FILE_PROBLEM *Problem);
BOOLEAN HalWriteOutput(PHAL_OUTPUT Output, PCSTR Text, SIZE_T Length, HAL_FILE_PROBLEM *Problem);
BOOLEAN HalCompleteOutput(PHAL_OUTPUT Output, HAL_FILE_PROBLEM *Problem); /* replaces what was there */
VOID HalDiscardOutput(PHAL_OUTPUT Output);          /* also after HalFindOutput alone */
/* Memory that is a file at Path, or nowhere if that is NULL. Zeroed; room for all of it is reserved. */
PVOID HalCreateMappedFile(PCSTR Path, SIZE_T Size, PHAL_OPEN_FILE File, HAL_FILE_PROBLEM *Problem);
VOID HalUnmapFile(PVOID Memory, SIZE_T Size, PHAL_OPEN_FILE File);
VOID HalRemoveMappedFile(PCSTR Path, const HAL_OPEN_FILE *File); /* unless there is another file now */
/* Files in memory that processes share (sharedfile.c). */
#define HAL_COMMON_MEMORY "/dev/shm"

typedef struct _HAL_SHARED_FILE {
    PCSTR Path;
    BOOLEAN Machine;                                /* root's and for all users; otherwise this user's own */
    SIZE_T AddressSpace;                            /* what is mapped; the file may be shorter */
    ULONG64 Size;                                   /* of a new one */
    VOID (*Initialize)(PVOID Memory, ULONG64 Size); /* a new one, before others see it; NULL: creates none */
} HAL_SHARED_FILE;

typedef struct _HAL_SHARED_MAPPING {
    PVOID Memory;
    HAL_FILE_ID File;
    ULONG64 Size;
} HAL_SHARED_MAPPING, *PHAL_SHARED_MAPPING;

typedef struct _HAL_SHARED_PLACE {
    CHAR Directory[256];
    ULONG User;
    ULONG64 Namespace;                              /* of process ids */
} HAL_SHARED_PLACE, *PHAL_SHARED_PLACE;

VOID HalQuerySharedPlace(PHAL_SHARED_PLACE Place);
/* STATUS_ACCESS_DENIED: it is not a regular file, or has another owner or mode. STATUS_OBJECT_NAME_NOT_FOUND. */
NTSTATUS HalMapSharedFile(const HAL_SHARED_FILE *Wanted, PHAL_SHARED_MAPPING Mapping);
BOOLEAN HalIsSharedFile(PCSTR Path, BOOLEAN Machine); /* one that HalMapSharedFile would map */
VOID HalUnmapSharedFile(PVOID Memory, SIZE_T AddressSpace);
/* HalMapSharedFile maps what is beyond the end of the file read-only. After the file has grown, this makes at least the first
 * Size bytes writable. */
VOID HalMakeSharedWritable(PVOID Memory, SIZE_T Size);
/* Grows it to Size bytes, all of which the host has room for. FALSE also if there is another file at Path. */
BOOLEAN HalGrowSharedFile(PCSTR Path, const HAL_FILE_ID *File, ULONG64 Size);
VOID HalRemoveSharedFile(PCSTR Path, const HAL_FILE_ID *File); /* the name, if it is this file's */
/* If the file was truncated, an access to the memory after its end finds zeros, and *Lost becomes 1. A write where only reads
   are allowed makes all of the memory writable. FALSE: too many. */
BOOLEAN HalGuardMapping(PVOID Memory, SIZE_T Size, volatile ULONG *Lost);
VOID HalForgetMapping(PVOID Memory);
/* Around a fork: the parent waits until the child has closed its end or has ended, or the fork has failed. */
BOOLEAN HalOpenBirth(LONG Ends[2]);
BOOLEAN HalAwaitBirth(LONG Ends[2], ULONG Milliseconds); /* FALSE: not yet */
ULONG HalQueryModules(PSTR Buffer, ULONG Size);     /* the host's text about where they are; returns its length */
VOID HalQueryProgramName(PSTR Buffer, SIZE_T Size);
VOID HalQueryThreadName(ULONG ThreadId, PSTR Buffer, SIZE_T Size); /* left alone if there is no such thread */
BOOLEAN HalQueryAddressName(ULONG64 Address, PSTR Buffer, SIZE_T Size); /* FALSE: no program or library has it */
BOOLEAN HalQueryReturnAddressName(ULONG64 Address, PSTR Buffer, SIZE_T Size); /* likewise, of the call before it */
ULONG HalCountInternalFrames(const ULONG64 *Frames, ULONG Count); /* return addresses of the library's own at the beginning */
ULONG64 HalQueryStableAddress(ULONG64 Address);     /* of a return address; independent of load addresses */
ULONG HalCaptureStack(ULONG FramesToSkip, PULONG64 Frames, ULONG Count); /* innermost first; returns how many */

/* A file of lines that several runs of a program share. */
BOOLEAN HalReadLines(PCSTR Path, VOID (*Use)(PCSTR Line)); /* FALSE: there is no such file */
BOOLEAN HalAppendText(PCSTR Path, PCSTR Text);      /* creates it */

/* Where a thread continues; fiber.c has its use. */
typedef struct _HAL_PLACE {
    ULONG64 Rip;
    ULONG64 Rsp;
    BOOLEAN Enters; /* a function, with a stack that is not prepared for it */
} HAL_PLACE, *PHAL_PLACE;

/* What this library, or the program itself, exports by that name; NULL: nothing. Linked into the program, the library
   exports what the program's dynamic symbol table has of it. */
typedef enum _HAL_MODULE { HalLibrary, HalProgram } HAL_MODULE;
PVOID HalFindExport(HAL_MODULE Module, PCSTR Name);
PVOID HalFindModuleBase(PVOID Address);             /* of the object that has the address; NULL: none */

/* console.c: reading and writing descriptors, and signals as console events. */

typedef enum _HAL_DESCRIPTOR_KIND { HalUnknownFile, HalDiskFile, HalTerminal, HalCharacterFile, HalPipe } HAL_DESCRIPTOR_KIND;

HAL_DESCRIPTOR_KIND HalQueryDescriptorKind(LONG Descriptor);
/* At least one byte, unless Length is 0 or the file ends: 0 bytes, or STATUS_PIPE_BROKEN for a pipe. */
NTSTATUS HalReadDescriptor(LONG Descriptor, PVOID Buffer, ULONG Length, PULONG Done);
NTSTATUS HalWriteDescriptor(LONG Descriptor, const VOID *Buffer, ULONG Length, PULONG Done); /* all of it; no SIGPIPE */

/* Console events, and the signals that they come from: SIGINT, SIGQUIT, SIGHUP, SIGTERM. */
typedef enum _HAL_CONSOLE_EVENT {
    HalConsoleInterrupt,
    HalConsoleBreak,
    HalConsoleClose,
    HalConsoleShutdown,
    HalConsoleEvents
} HAL_CONSOLE_EVENT;

/* From now on the signals of this process are events, or have their previous meaning again. FALSE: the host refuses. */
BOOLEAN HalWatchConsole(BOOLEAN Watch);
HAL_CONSOLE_EVENT HalAwaitConsoleEvent(VOID);      /* by one thread */
VOID HalTakeDefaultAction(HAL_CONSOLE_EVENT Event); /* what the signal would have done; often ends the process */
/* To a process group, 0: that of the caller. FALSE: there is no such group. */
BOOLEAN HalSendConsoleEvent(ULONG Group, HAL_CONSOLE_EVENT Event);

/* The program's variables and files. */

#define HAL_NO_VARIABLE ((SIZE_T)-1)

/* The variables of the host's environment, one thread at a time: the C library does not synchronize setenv and
   getenv. */
/* Returns the length of the value, which is copied if it fits with its terminator; HAL_NO_VARIABLE: there is none. */
SIZE_T HalQueryVariable(PCSTR Name, PSTR Buffer, SIZE_T Size);
BOOLEAN HalSetVariable(PCSTR Name, PCSTR Value); /* Value NULL: removes it. FALSE: no memory */
PSTR HalCopyVariables(PSIZE_T Size);             /* a block that an empty string ends, for HalFree; NULL: no memory */

SIZE_T HalQueryModulePath(HAL_MODULE Module, PSTR Buffer, SIZE_T Size); /* the length; 0: unknown, or too long */

/* virtual.c: address space of the process. Addresses and sizes are multiples of the page. */

#define HAL_ACCESS_READ 1u
#define HAL_ACCESS_WRITE 2u
#define HAL_ACCESS_EXECUTE 4u

/* What is at an address: a mapping, or the gap between two. */
typedef struct _HAL_MAPPING {
    ULONG_PTR Begin;
    ULONG_PTR End;
    ULONG_PTR FileBegin;             /* of the first mapping of the same file in a row; Begin: not a file */
    ULONG Access;                    /* HAL_ACCESS_* */
    BOOLEAN Mapped;                  /* FALSE: a gap */
    BOOLEAN File;
    BOOLEAN Shared;
} HAL_MAPPING, *PHAL_MAPPING;

/* Reserves address space that cannot be accessed, at Address or, if that is NULL, anywhere. STATUS_CONFLICTING_ADDRESSES:
   the range is in use, or the host refuses this address. */
NTSTATUS HalReserveMemory(PVOID Address, SIZE_T Size, SIZE_T Alignment, PVOID *Base);
VOID HalReleaseMemory(PVOID Base, SIZE_T Size);
NTSTATUS HalProtectMemory(PVOID Base, SIZE_T Size, ULONG Access);
NTSTATUS HalDecommitMemory(PVOID Base, SIZE_T Size); /* back to reserved, contents lost */
VOID HalResetMemory(PVOID Base, SIZE_T Size);        /* the host may drop the contents */
BOOLEAN HalLockMemory(PVOID Base, SIZE_T Size, BOOLEAN Lock);
NTSTATUS HalQueryMapping(ULONG_PTR Address, PHAL_MAPPING Mapping); /* STATUS_NOT_SUPPORTED: the host does not say */

/* The machine (machine.c): times of processes, topology, memory, stacks. */

typedef struct _HAL_PROCESS_TIMES {
    ULONGLONG CreateTime;            /* system time */
    ULONGLONG KernelTime;
    ULONGLONG UserTime;
} HAL_PROCESS_TIMES, *PHAL_PROCESS_TIMES;

BOOLEAN HalQueryProcessTimes(ULONG ProcessId, PHAL_PROCESS_TIMES Times); /* FALSE: no such process; nothing is stored */

/* Topology. A relation is a set of processors that share something. Processors are counted among those on which the
   process may run. */
typedef enum _HAL_RELATION_KIND { HalCore, HalCache, HalPackage, HalNode } HAL_RELATION_KIND;
typedef enum _HAL_CACHE_TYPE { HalCacheUnified, HalCacheInstruction, HalCacheData } HAL_CACHE_TYPE;

#define HAL_MOST_PROCESSORS 2560
#define HAL_PROCESSOR_WORDS (HAL_MOST_PROCESSORS / 64)

typedef struct _HAL_RELATION {
    HAL_RELATION_KIND Kind;
    ULONG Number;                    /* of a node */
    HAL_CACHE_TYPE Type;             /* of a cache, as are the members below */
    ULONG Level;
    ULONG LineSize;
    ULONG Size;
    ULONG Ways;                      /* 0: fully associative, or unknown */
    ULONG64 Processors[HAL_PROCESSOR_WORDS];
} HAL_RELATION, *PHAL_RELATION;

/* Every one of Processors processors is in a core, in a package and in a node. HalFree frees the array. FALSE: no
   memory. */
BOOLEAN HalQueryTopology(ULONG Processors, PHAL_RELATION *Relations, PULONG Count);

/* Memory and stacks. */
typedef struct _HAL_MEMORY_STATUS {
    ULONG64 TotalPhysical;
    ULONG64 AvailablePhysical;
    ULONG64 TotalSwap;
    ULONG64 AvailableSwap;
    ULONG Pressure;                  /* percent of the last 10 s in which a thread has stalled for memory */
} HAL_MEMORY_STATUS, *PHAL_MEMORY_STATUS;

VOID HalQueryMemoryStatus(PHAL_MEMORY_STATUS Status); /* zeros: the host does not say */
/* Waits until the interval is over, or memory gets scarce where the host reports that. */
VOID HalAwaitMemoryPressure(ULONGLONG Interval);
VOID HalQueryStackLimits(PULONG_PTR Low, PULONG_PTR High); /* of the host thread's own stack */
VOID HalFlushWriteBuffers(VOID);     /* a full barrier on every running thread of the process */

/*
 * Stacks that a host thread can switch to, and the registers of a thread that an interrupt has stopped. Theory in fiber.c.
 */

typedef struct _HAL_FIBER {
    PVOID StackPointer;              /* where the registers are, while no thread runs the fiber */
    PVOID Host;                      /* the host's own context instead, where it is needed */
    PVOID Stack;                     /* the lowest usable address; NULL: it is a host thread's own stack */
    SIZE_T StackSize;
    BOOLEAN SwitchFloat;             /* the floating-point control word is the fiber's own */
    ULONG64 FloatControl;
    BOOLEAN Ends;                    /* it will not run again: set before the last switch from it */
    PVOID AddressSanitizer;          /* its fake stack, and */
    const VOID *StackBottom;         /* what it considers the stack of the fiber */
    SIZE_T StackRoom;
    PVOID ThreadSanitizer;           /* its record of the fiber */
    DECLSPEC_NORETURN VOID (*Start)(PVOID Context);
    PVOID StartContext;
} HAL_FIBER, *PHAL_FIBER;

/* The running thread as a fiber. */
VOID HalInitializeThreadFiber(PHAL_FIBER Fiber, BOOLEAN SwitchFloat);
/* A new stack; Start runs on it after the first switch, and begins with HalFinishSwitch. */
NTSTATUS HalCreateFiber(PHAL_FIBER Fiber, SIZE_T StackSize, BOOLEAN SwitchFloat,
                        DECLSPEC_NORETURN VOID (*Start)(PVOID Context), PVOID Context);
VOID HalDeleteFiber(PHAL_FIBER Fiber); /* no thread runs it */
/* Returns when a thread switches to From again, perhaps another one. The caller calls HalFinishSwitch then. */
VOID HalSwitchFiber(PHAL_FIBER From, PHAL_FIBER To);
VOID HalFinishSwitch(PHAL_FIBER Current, PHAL_FIBER Previous);
BOOLEAN HalIsOnStack(const HAL_FIBER *Fiber); /* does the caller run on its stack? FALSE for a host thread's own */

/* Registers. */

/* In Callbacks.Interrupt: the registers of the interrupted code, restored when the callback returns; else NULL. */
extern __thread PVOID HalInterruptFrame __attribute__((tls_model("initial-exec")));

/* Reads the registers of a stopped thread that Context->ContextFlags names. STATUS_NOT_SUPPORTED: not on this machine. */
NTSTATUS HalReadFrame(PVOID Frame, PCONTEXT Context);
/* A new instruction without a new stack pointer begins a function: the stack is aligned for that, below the red zone. */
NTSTATUS HalWriteFrame(PVOID Frame, const CONTEXT *Context);
/* HalQueryPlace: the place that the new registers name, with a stack as above. STATUS_NO_YIELD_PERFORMED, a success: it is the
   one that was shown, or they name none. */
VOID HalNotePlace(const CONTEXT *Context, PHAL_PLACE Place);
NTSTATUS HalQueryPlace(const HAL_PLACE *Shown, const CONTEXT *New, PHAL_PLACE Place);
DECLSPEC_NORETURN VOID HalContinueAt(const HAL_PLACE *Place); /* leaves the frames of the callers behind */

/*
 * Static probes that perf, bpftrace, SystemTap and gdb find in the library, with provider `interlock`. A probe is one nop
 * and a note beside the code; its arguments are the registers or memory that already hold the values. None may be a single
 * byte: gdb does not know all registers of that size.
 */
#ifdef INTERLOCK_USDT
#include <sys/sdt.h>
#define HAL_PROBE2(Name, First, Second) DTRACE_PROBE2(interlock, Name, First, Second)
#define HAL_PROBE3(Name, First, Second, Third) DTRACE_PROBE3(interlock, Name, First, Second, Third)
#define HAL_PROBE4(Name, First, Second, Third, Fourth) DTRACE_PROBE4(interlock, Name, First, Second, Third, Fourth)
#else
#define HAL_PROBE2(Name, First, Second) ((VOID)0)
#define HAL_PROBE3(Name, First, Second, Third) ((VOID)0)
#define HAL_PROBE4(Name, First, Second, Third, Fourth) ((VOID)0)
#endif

#endif
