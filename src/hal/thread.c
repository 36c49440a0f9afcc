/* thread.c: host threads: their ids, start and end, their names, times and priorities. */
#include "halp.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATH_SIZE 48
#define HOST_NAME_SIZE 16
/* Room for the host's own needs (thread-local storage, signal frames with every vector register) and for routines that
   run on top of an interrupted thread. */
#define SMALLEST_STACK (256 * 1024)

__thread struct _KTHREAD *HalCurrentThread __attribute__((tls_model("initial-exec")));

HALP_THREAD_LOCAL ULONG HalpThreadId;
HALP_THREAD_LOCAL BOOLEAN HalpExitDeferred;
static ULONG HalpProcessId;
static pthread_key_t HalpExitKey;

/* The host's struct sched_attr, first version; not every C library declares it. */
typedef struct _HALP_SCHEDULING {
    UINT32 Size;
    UINT32 Policy;
    UINT64 Flags;
    INT32 Nice;
    UINT32 Priority;
    UINT64 Runtime;
    UINT64 Deadline;
    UINT64 Period;
} HALP_SCHEDULING;

static HALP_SCHEDULING HalpBaseScheduling; /* what the process started with. Size 0: the host did not say */

ULONG HalCurrentThreadId(VOID)
{
    if (HalpThreadId == 0) {
        HalpThreadId = (ULONG)HalpCall(SYS_gettid);
    }
    return HalpThreadId;
}

ULONG HalCurrentProcessId(VOID)
{
    return HalpProcessId;
}

/* Neither query needs rights on the thread. */
BOOLEAN HalIsThreadOfOtherProcess(ULONG ThreadId)
{
    pid_t Thread = (pid_t)ThreadId;
    if (Thread <= 0 || HalpCall(SYS_tgkill, getpid(), Thread, 0) == 0) {
        return FALSE;
    }
    /* by the system call: a C library that follows POSIX refuses thread ids here */
    return HalpCall(SYS_sched_getscheduler, Thread) >= 0;
}

/*
 * Does the program have other threads?
 *
 * The host lists the threads of the process. Two kinds are not the program's: those that have ended (the first thread
 * of a process stays in the list) and the library's own, which have entered their ids in a table. (Names do not help: a
 * program may be called interlock-something, and its threads inherit that.) Two kinds briefly look like the program's, so
 * the caller asks again: a thread that is about to end, which is recorded before it counts as ended for the library, and
 * one of the library's own that has not yet entered its id.
 */

#define NOTED_THREADS 64 /* a power of 2 */
#define LIST_SIZE 4096

typedef struct _HALP_LISTED {
    ULONG64 Number;
    LONG64 Next;
    USHORT Length;
    UCHAR Type;
    CHAR Name[];
} HALP_LISTED;

#define OWN_THREADS 8192 /* a power of 2; beyond them an own thread counts as one of the program's */

static volatile ULONG HalpNotedThreads[NOTED_THREADS];
static volatile ULONG HalpNotes;
static volatile ULONG HalpStartingThreads; /* created by HalCreateThread, and not yet entered */

/* The process id in the upper half, so a forked child has none; 0: free. A thread enters itself at its id or after
 * it. */
static volatile ULONG64 HalpOwnThreads[OWN_THREADS];
HALP_THREAD_LOCAL ULONG HalpOwnPlace; /* + 1; 0: it is not entered */

static ULONG64 HalpOwnEntry(ULONG ThreadId)
{
    return (ULONG64)HalCurrentProcessId() << 32 | ThreadId;
}

/* Until HalNoteThreadEnds. */
static VOID HalpEnterOwnThread(VOID)
{
    ULONG64 Own = HalpOwnEntry(HalCurrentThreadId());

    for (ULONG Try = 0; Try < OWN_THREADS; Try++) {
        ULONG Place = ((ULONG)Own + Try) % OWN_THREADS;
        ULONG64 Found = __atomic_load_n(&HalpOwnThreads[Place], __ATOMIC_RELAXED);
        /* relaxed: HalpStartingThreads releases it */
        if (Found >> 32 != Own >> 32 && __atomic_compare_exchange_n(&HalpOwnThreads[Place], &Found, Own, FALSE,
                                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            HalpOwnPlace = Place + 1;
            return;
        }
    }
}

static BOOLEAN HalpIsOwnThread(ULONG ThreadId)
{
    ULONG64 Own = HalpOwnEntry(ThreadId);

    for (ULONG Try = 0; Try < OWN_THREADS; Try++) {
        /* acquire: pairs with the release in HalNoteThreadEnds */
        if (__atomic_load_n(&HalpOwnThreads[(ThreadId + Try) % OWN_THREADS], __ATOMIC_ACQUIRE) == Own) {
            return TRUE;
        }
    }
    return FALSE;
}

VOID HalNoteThreadEnds(VOID)
{
    /* relaxed, both: the change of the thread's state, which comes later, releases them */
    ULONG Note = __atomic_fetch_add(&HalpNotes, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&HalpNotedThreads[Note % NOTED_THREADS], HalCurrentThreadId(), __ATOMIC_RELAXED);
    if (HalpOwnPlace != 0) { /* now that it is noted: its id may soon be that of another thread */
        /* release: pairs with the acquire in HalpIsOwnThread; a thread that is not entered any more is noted */
        __atomic_store_n(&HalpOwnThreads[HalpOwnPlace - 1], 0, __ATOMIC_RELEASE);
        HalpOwnPlace = 0;
    }
}

static BOOLEAN HalpIsNoted(ULONG ThreadId)
{
    for (ULONG Index = 0; Index < NOTED_THREADS; Index++) {
        if (__atomic_load_n(&HalpNotedThreads[Index], __ATOMIC_RELAXED) == ThreadId) {
            return TRUE;
        }
    }
    return FALSE;
}

static HAL_OTHERS HalpClassifyThread(ULONG ThreadId)
{
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    const char *State;
    /* acquire: pairs with the release in HalpRunThread. Loaded first: if no own thread is starting, all of them are in
       the list. */
    BOOLEAN Starting = __atomic_load_n(&HalpStartingThreads, __ATOMIC_ACQUIRE) != 0;

    if (HalpIsOwnThread(ThreadId)) {
        return HalNoOthers;
    }
    snprintf(Path, PATH_SIZE, "/proc/self/task/%u/stat", ThreadId);
    State = HalpReadStatus(Path, Line, 0);
    if (State == NULL) { /* it is gone, or no descriptor is left to find out */
        return HalpCall(SYS_tgkill, HalCurrentProcessId(), ThreadId, 0) == -ESRCH ? HalNoOthers : HalOthers;
    }
    if (State[1] == 'Z' || State[1] == 'X') {
        return HalNoOthers;
    }
    return HalpIsNoted(ThreadId) || Starting ? HalOthersForNow : HalOthers;
}

static HAL_OTHERS HalpClassifyList(const CHAR *List, long Length)
{
    HAL_OTHERS Others = HalNoOthers;

    for (long Offset = 0; Offset < Length && Others != HalOthers;) {
        const HALP_LISTED *Listed = (const HALP_LISTED *)(List + Offset);
        ULONG ThreadId = (ULONG)strtoul(Listed->Name, NULL, 10); /* 0: "." and ".." */
        if (ThreadId != 0 && ThreadId != HalCurrentThreadId()) {
            HAL_OTHERS One = HalpClassifyThread(ThreadId);
            Others = One > Others ? One : Others;
        }
        Offset += Listed->Length;
    }
    return Others;
}

HAL_OTHERS HalFindOtherThreads(VOID)
{
    HALP_HOST_CALLS;
    CHAR List[LIST_SIZE] DECLSPEC_ALIGN(8);
    HAL_OTHERS Others = HalNoOthers;
    int Folder = HalpOpenFile("/proc/self/task", O_RDONLY | O_DIRECTORY);
    long Length;

    if (Folder < 0) {
        return HalOthers;
    }
    while (Others != HalOthers && (Length = HalpCall(SYS_getdents64, Folder, List, sizeof(List))) > 0) {
        HAL_OTHERS Some = HalpClassifyList(List, Length);
        Others = Some > Others ? Some : Others;
    }
    HalCloseDescriptor(Folder);
    return Others;
}

/* Start. */

typedef struct _HALP_START {
    VOID (*Routine)(PVOID);
    PVOID Context;
    CHAR Name[HOST_NAME_SIZE];
} HALP_START;

/* The host hands its creator's policy and priority down to a thread, NT does not. A refusal leaves the thread as it is. */
static VOID HalpStartAtNormal(VOID)
{
    HALP_SCHEDULING Current = {0};

    if (HalpBaseScheduling.Size != 0 && HalpCall(SYS_sched_getattr, 0, &Current, sizeof(Current), 0) == 0 &&
        (Current.Policy != HalpBaseScheduling.Policy || Current.Nice != HalpBaseScheduling.Nice ||
         Current.Priority != HalpBaseScheduling.Priority)) {
        HalpCall(SYS_sched_setattr, 0, &HalpBaseScheduling, 0);
    }
}

static VOID *HalpRunThread(VOID *Argument)
{
    HALP_START Start = *(HALP_START *)Argument;

    HalFree(Argument);
    HalpStartAtNormal();
    if (Start.Name[0] != '\0') {
        HalpCall(SYS_prctl, PR_SET_NAME, Start.Name);
        HalpEnterOwnThread();
    }
    __atomic_fetch_sub(&HalpStartingThreads, 1, __ATOMIC_RELEASE); /* release: the thread is entered */
    HalpUnblockInterrupt();
    Start.Routine(Start.Context);
    if (Start.Name[0] != '\0') {
        HalNoteThreadEnds();
    }
    return NULL;
}

static int HalpSetStackSize(pthread_attr_t *Attributes, SIZE_T StackSize)
{
    SIZE_T Page = (SIZE_T)sysconf(_SC_PAGESIZE);
    SIZE_T Smallest = SMALLEST_STACK > PTHREAD_STACK_MIN ? SMALLEST_STACK : (SIZE_T)PTHREAD_STACK_MIN;

    if (StackSize == 0) {
        return 0;
    }
    if (StackSize > SIZE_MAX - Page) {
        return ENOMEM;
    }
    StackSize = StackSize < Smallest ? Smallest : StackSize;
    return pthread_attr_setstacksize(Attributes, (StackSize + Page - 1) / Page * Page);
}

static int HalpStartDetached(HALP_START *Start, SIZE_T StackSize)
{
    pthread_attr_t Attributes;
    pthread_t Thread;
    int Error = pthread_attr_init(&Attributes);

    if (Error != 0) {
        return Error;
    }
    pthread_attr_setdetachstate(&Attributes, PTHREAD_CREATE_DETACHED);
    Error = HalpSetStackSize(&Attributes, StackSize);
    if (Error == 0) {
        Error = pthread_create(&Thread, &Attributes, HalpRunThread, Start);
    }
    pthread_attr_destroy(&Attributes);
    return Error;
}

NTSTATUS HalCreateThread(VOID (*StartRoutine)(PVOID), PVOID Context, SIZE_T StackSize, PCSTR Name)
{
    HALP_HOST_CALLS;
    static pthread_once_t Once = PTHREAD_ONCE_INIT;
    HALP_START *Start = calloc(1, sizeof(*Start));
    int Error;

    if (Start == NULL) {
        return STATUS_NO_MEMORY;
    }
    pthread_once(&Once, HalpRegisterLateForkHandlers);
    Start->Routine = StartRoutine;
    Start->Context = Context;
    if (Name != NULL) {
        strncpy(Start->Name, Name, HOST_NAME_SIZE - 1);
    }
    __atomic_fetch_add(&HalpStartingThreads, 1, __ATOMIC_RELAXED); /* relaxed: the host's creation orders it */
    Error = HalpStartDetached(Start, StackSize);
    if (Error == 0) {
        return STATUS_SUCCESS;
    }
    __atomic_fetch_sub(&HalpStartingThreads, 1, __ATOMIC_RELAXED);
    free(Start);
    return Error == ENOMEM ? STATUS_NO_MEMORY : STATUS_INSUFFICIENT_RESOURCES;
}

/* End. */

VOID HalExitThread(VOID)
{
    HalpAnnounceExit();
    pthread_exit(NULL);
}

/* Assembly, because compiled code may use the stack between a store and a call. */
static DECLSPEC_NORETURN VOID HalpLeaveStack(volatile UCHAR *StackIsLeft)
{
#if defined(__x86_64__)
    __asm__ volatile("movb $1, (%0)\n\t" /* a store of x86 is a release */
                     "movl %1, %%eax\n\txorl %%edi, %%edi\n\tsyscall\n\tud2"
                     :
                     : "r"(StackIsLeft), "i"(SYS_exit)
                     : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov w9, #1\n\tstlrb w9, [%0]\n\t"
                     "mov x0, #0\n\tmov x8, %1\n\tsvc #0\n\tbrk #0"
                     :
                     : "r"(StackIsLeft), "i"(SYS_exit)
                     : "memory", "x9");
#elif defined(__riscv) && __riscv_xlen == 64
    __asm__ volatile("li t0, 1\n\tfence rw, w\n\tsb t0, 0(%0)\n\t"
                     "li a0, 0\n\tli a7, %1\n\tecall\n\tebreak"
                     :
                     : "r"(StackIsLeft), "i"(SYS_exit)
                     : "memory", "t0");
#else
#error "thread.c: no code to end a thread on this machine."
#endif
    __builtin_unreachable();
}

/*
 * The thread's stack may serve another thread once it has been joined, and the host assumes that an ended thread has
 * cleared its values: the other thread would find them, and its end would call their destructors, ours too.
 */
VOID HalTerminateThread(volatile UCHAR *StackIsLeft)
{
    static const ULONG64 AllSignals = ~0ULL;

    HalpCancelInterruptLater();
    for (pthread_key_t Key = 0; Key < PTHREAD_KEYS_MAX; Key++) {
        pthread_setspecific(Key, NULL);
    }
    /* the C library's own signals too: no handler may run on a stack that is freed */
    HalpCall(SYS_rt_sigprocmask, SIG_SETMASK, &AllSignals, NULL, sizeof(AllSignals));
    HalpLeaveStack(StackIsLeft);
}

/*
 * The host calls the destructors of all keys in rounds, a few times, as long as one of them sets a value again. The
 * first call requests another round, so that destructors of other libraries, which may still call in, run first. A
 * thread does so once: if a late destructor is adopted again, that ends in the next call, since no round may follow.
 */
static VOID HalpThreadExits(VOID *Thread)
{
    if (!HalpExitDeferred) {
        HalpExitDeferred = TRUE;
        if (pthread_setspecific(HalpExitKey, Thread) == 0) {
            return;
        }
    }
    HalNoteThreadEnds();
    HalCurrentThread = Thread;
    if (HalpCallbacks.ThreadExit != NULL) {
        HalpCallbacks.ThreadExit(Thread);
    }
    HalCurrentThread = NULL;
    HalpCancelInterruptLater();
}

VOID HalWatchThreadExit(struct _KTHREAD *Thread)
{
    HALP_HOST_CALLS;
    int Error = pthread_setspecific(HalpExitKey, Thread);

    if (Error != 0) {
        HalPrint("interlock: the end of thread %u will not be noticed (error %d)\n", HalCurrentThreadId(), Error);
    }
    HalpUnblockInterrupt();
}

VOID HalpInitializeThreads(VOID)
{
    HalpProcessId = (ULONG)getpid();
    HalpCall(SYS_sched_getattr, 0, &HalpBaseScheduling, sizeof(HalpBaseScheduling), 0);
    HalpBaseScheduling.Nice = getpriority(PRIO_PROCESS, 0); /* also for a real-time policy, whose attributes have none */
    HalpBaseScheduling.Flags = 0;
    if (pthread_key_create(&HalpExitKey, HalpThreadExits) != 0) {
        HalPrint("interlock: the host has no thread-specific key left\n");
        HalAbort();
    }
}

VOID HalpForkChildThread(VOID)
{
    HalpStartingThreads = 0;
    HalpThreadId = 0;
    HalpProcessId = (ULONG)getpid();
    if (HalpOwnPlace != 0) { /* in the child the forking thread is still one of the library's own */
        HalpEnterOwnThread();
    }
}

/* The host's information about a thread, mostly queried by another one. */

#define STATUS_SIZE 4096 /* the processor masks, of any length, come after those of signals */
/* The fields of a stat line after the name; state is the first of them. */
#define FIELDS_BEFORE_TIMES 11
/* The host's number for the processor time of one thread: its id inverted, three bits that mark it. */
#define THREAD_CLOCK(ThreadId) ((clockid_t)(~(ULONG)(ThreadId) << 3 | 6))

static VOID HalpMakeThreadPath(CHAR Path[PATH_SIZE], ULONG ThreadId, PCSTR File)
{
    snprintf(Path, PATH_SIZE, "/proc/self/task/%u/%s", ThreadId, File);
}

VOID HalSetThreadName(ULONG ThreadId, PCSTR Name)
{
    CHAR Path[PATH_SIZE];
    int File;

    HalpMakeThreadPath(Path, ThreadId, "comm");
    File = HalpOpenFile(Path, O_WRONLY);
    if (File >= 0) {
        /* a thread that has just ended keeps its name */
        HalpWriteFile(File, Name, strnlen(Name, HOST_NAME_SIZE - 1));
        HalCloseDescriptor(File);
    }
}

BOOLEAN HalIsThreadAsleep(ULONG ThreadId)
{
    HALP_HOST_CALLS;
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    const char *State;

    HalpMakeThreadPath(Path, ThreadId, "stat");
    State = HalpReadStatus(Path, Line, 0);
    return State != NULL && (strncmp(State, " S", 2) == 0 || strncmp(State, " D", 2) == 0);
}

/* A line of hexadecimal digits, the first signal in the lowest bit. */
static BOOLEAN HalpHasSignal(PCSTR Text, PCSTR Line, int Signal)
{
    PCSTR Found = strstr(Text, Line);

    return Found != NULL && (strtoull(Found + strlen(Line), NULL, 16) >> (Signal - 1) & 1) != 0;
}

/*
 * A sanitizer has its own handlers and calls ours later: there an unblocked signal may still be pending after the host
 * has delivered it.
 */
BOOLEAN HalpIsSignalOnItsWay(ULONG ThreadId, int Signal)
{
    HALP_HOST_CALLS;
    CHAR Path[PATH_SIZE], Text[STATUS_SIZE];
    SSIZE_T Length = -1;
    BOOLEAN OnItsWay;
    int File;

    HalpMakeThreadPath(Path, ThreadId, "status");
    File = HalpOpenFile(Path, O_RDONLY);
    if (File >= 0) {
        Length = HalpReadFile(File, Text, STATUS_SIZE - 1);
        HalCloseDescriptor(File);
    }
    Text[Length > 0 ? Length : 0] = '\0';
    OnItsWay = strstr(Text, "\nSigBlk:") != NULL && !HalpHasSignal(Text, "\nSigBlk:", Signal);
#ifndef HALP_THREAD_SANITIZER
    OnItsWay = OnItsWay && HalpHasSignal(Text, "\nSigPnd:", Signal);
#endif
    return OnItsWay;
}

/* The host gives the sum exactly and the two parts in ticks: they are scaled to the sum. */
static VOID HalpQueryTimesOf(ULONG ThreadId, PULONGLONG KernelTime, PULONGLONG UserTime)
{
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    ULONGLONG Kernel, User, Sum;
    struct timespec Time;
    char *Field;

    HalpMakeThreadPath(Path, ThreadId, "stat");
    Field = HalpReadStatus(Path, Line, FIELDS_BEFORE_TIMES);
    if (Field == NULL || clock_gettime(THREAD_CLOCK(ThreadId), &Time) != 0) {
        return;
    }
    User = strtoull(Field, &Field, 10);
    Kernel = strtoull(Field, NULL, 10);
    Sum = HalpUnitsOfTimespec(&Time);
    if (Kernel + User != 0) {
        *KernelTime = (ULONGLONG)((__extension__ (unsigned __int128)Sum) * Kernel / (Kernel + User));
    }
    *UserTime = Sum - *KernelTime;
}

VOID HalQueryThreadTimes(ULONG ThreadId, PULONGLONG KernelTime, PULONGLONG UserTime)
{
    HALP_HOST_CALLS;
    struct rusage Usage;

    *KernelTime = 0;
    *UserTime = 0;
    if (ThreadId != HalCurrentThreadId()) {
        HalpQueryTimesOf(ThreadId, KernelTime, UserTime);
    } else if (getrusage(RUSAGE_THREAD, &Usage) == 0) {
        *KernelTime = HalpUnitsOfTimeval(&Usage.ru_stime);
        *UserTime = HalpUnitsOfTimeval(&Usage.ru_utime);
    }
}

/*
 * NT priorities on the host's scheduler. 16 to 31 are SCHED_FIFO 1 to 16. 0 to 15 are nice values, two steps for each
 * level; 8 is the nice value that the process started with. The host changes policy and nice value in one call, so a
 * refusal leaves the thread as it was.
 */
#define NORMAL_PRIORITY 8
#define HALP_LOW_REALTIME_PRIORITY 16
#define HALP_HIGH_PRIORITY 31
#define NICE_STEPS 2
#define LOWEST_NICE (-20)
#define HIGHEST_NICE 19

static INT32 HalpNiceFromPriority(LONG NtPriority)
{
    LONG Nice = HalpBaseScheduling.Nice + (NORMAL_PRIORITY - NtPriority) * NICE_STEPS;

    return Nice < LOWEST_NICE ? LOWEST_NICE : Nice > HIGHEST_NICE ? HIGHEST_NICE : Nice;
}

/* Whether the limit or the capability permits it. */
static BOOLEAN HalpMayReachNice(INT32 Nice)
{
    struct __user_cap_header_struct Header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct Data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct rlimit Limit;

    if (getrlimit(RLIMIT_NICE, &Limit) == 0 && Limit.rlim_cur >= (rlim_t)(20 - Nice)) {
        return TRUE;
    }
    return syscall(SYS_capget, &Header, Data) == 0 &&
           (Data[CAP_TO_INDEX(CAP_SYS_NICE)].effective & CAP_TO_MASK(CAP_SYS_NICE)) != 0;
}

BOOLEAN HalSetThreadPriority(ULONG ThreadId, LONG NtPriority)
{
    HALP_HOST_CALLS;
    HALP_SCHEDULING Current = {0};
    HALP_SCHEDULING New = {.Size = sizeof(New)};

    if (NtPriority < 0 || NtPriority > HALP_HIGH_PRIORITY ||
        syscall(SYS_sched_getattr, ThreadId, &Current, sizeof(Current), 0) != 0) {
        return FALSE;
    }
    if (NtPriority >= HALP_LOW_REALTIME_PRIORITY) {
        New.Policy = SCHED_FIFO;
        New.Priority = (UINT32)(NtPriority - HALP_LOW_REALTIME_PRIORITY + 1);
    } else {
        New.Policy = SCHED_OTHER;
        New.Nice = HalpNiceFromPriority(NtPriority);
        /* A process that could not raise it again must not lower it. */
        if (New.Nice > Current.Nice && !HalpMayReachNice(Current.Nice)) {
            return FALSE;
        }
    }
    return syscall(SYS_sched_setattr, ThreadId, &New, 0) == 0;
}

VOID HalSetError(HAL_ERROR Error)
{
    static const int Numbers[] = {
        [HalErrorInvalid] = EINVAL, [HalErrorAccess] = EACCES, [HalErrorMemory] = ENOMEM, [HalErrorAgain] = EAGAIN};

    errno = Numbers[Error];
}
