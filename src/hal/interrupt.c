/*
 * interrupt.c: one thread interrupts another by a real-time signal; barriers on all threads.
 *
 * The signal is the first one from SIGRTMIN+9 on that has no handler when the library is loaded, or the one that
 * INTERLOCK_SIGNAL names ("44" or "SIGRTMIN+5"). The handler runs before the program's (handler.c), even before one that the
 * program installs later: every send checks first. Our signals carry a value, including those from the timer below. Any other
 * signal of that number is passed to the predecessor. If a filter refuses the system call for a value, signals without one are
 * used, unless the program has a handler for the signal.
 *
 * A signal that was sent need not arrive: the thread may block it, take it by sigwait without a handler, or the program
 * may change the action before delivery. The sender checks (HalIsInterruptOnItsWay).
 */
#include "hal.h"
#include "halp.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Was a thread interrupted inside the C library?
 *
 * A thread that is stopped there may hold the heap's lock. Then every thread that allocates stops, and a fork never
 * ends: the C library takes the heap's locks after the fork handlers have run, and ours have closed the dispatcher by
 * then, so no thread could resume it. The locks are invisible, but the thread's position is not. A thread inside the C
 * library, the loader or the provider of malloc runs on for a while and is interrupted again, except
 * 1. in a system call that waits, where it may stay forever. Calls for memory do not count: the heap makes them with
 *    its lock held. A thread that waits for a lock holds none that matters here.
 * 2. after MOST_RETRIES: it may spin forever, or copy a gigabyte.
 *
 * A thread that does nothing but allocate is inside at nearly every interrupt: at 94 of 100 on one processor, at more
 * where interrupts skid past the few cheap instructions outside. If it is inside at 999 of 1000, MOST_RETRIES interrupts
 * miss the rest twice in 10^9 suspensions; they take two seconds of running. The time between two of them varies, so
 * that they do not synchronize with the program's loop.
 *
 * If the host has no timer (HalLaterRefused), the caller falls back to another way. In a program that is linked with the
 * C library statically the two cannot be distinguished: the thread stops where it is.
 */

#define SHORTEST_RETRY 25000    /* nanoseconds: many times what malloc takes */
#define RETRY_VARIATION 150000
#define MOST_RETRIES 20000
#define MOST_TIMER_TRIES 64     /* the user's limit of queued signals may be reached at the moment */
#define GOLDEN_RATIO 0x9E3779B9 /* its multiples, modulo 2^32, are spread evenly */
#define MOST_RANGES 8

/* The system call instruction, and the registers of its number and result. */
#if defined(__x86_64__)
static const UCHAR HalpSystemCall[] = {0x0f, 0x05};
#define CONTEXT_CALL(Context) ((Context)->uc_mcontext.gregs[REG_RAX])
#define CONTEXT_RESULT(Context) CONTEXT_CALL(Context)
#elif defined(__aarch64__)
static const UCHAR HalpSystemCall[] = {0x01, 0x00, 0x00, 0xd4};
#define CONTEXT_CALL(Context) ((Context)->uc_mcontext.regs[8])
#define CONTEXT_RESULT(Context) ((Context)->uc_mcontext.regs[0])
#elif defined(__riscv) && __riscv_xlen == 64
static const UCHAR HalpSystemCall[] = {0x73, 0x00, 0x00, 0x00};
#define CONTEXT_CALL(Context) ((Context)->uc_mcontext.__gregs[REG_A0 + 7])
#define CONTEXT_RESULT(Context) ((Context)->uc_mcontext.__gregs[REG_A0])
#endif

typedef struct _HALP_RANGE {
    ULONG_PTR First;
    ULONG_PTR End;
} HALP_RANGE;

static HALP_RANGE HalpLibcCode[MOST_RANGES];
static ULONG HalpLibcRanges;
static PCSTR HalpOwnObject; /* the loader's name of the object that this code is in; NULL: the program itself */
HALP_THREAD_LOCAL ULONG HalpRetries;
HALP_THREAD_LOCAL int HalpRetryTimer; /* the host's number plus 1; 0: none */

static BOOLEAN HalpContains(const struct dl_phdr_info *Object, ULONG_PTR Address)
{
    for (ULONG Index = 0; Index < Object->dlpi_phnum; Index++) {
        const ElfW(Phdr) *Segment = &Object->dlpi_phdr[Index];
        ULONG_PTR Begin = Object->dlpi_addr + Segment->p_vaddr;
        if (Segment->p_type == PT_LOAD && Address >= Begin && Address - Begin < Segment->p_memsz) {
            return TRUE;
        }
    }
    return FALSE;
}

/* Context: addresses in the objects whose code counts, ended by 0. The program itself has no name; with musl it has one. */
static int HalpLookAtObject(struct dl_phdr_info *Object, size_t Size, VOID *Context)
{
    const ULONG_PTR *Landmark = Context;

    UNREFERENCED_PARAMETER(Size);
    if (Object->dlpi_name[0] == '\0' || (ULONG_PTR)Object->dlpi_phdr == getauxval(AT_PHDR)) {
        return 0;
    }
    if (HalpContains(Object, (ULONG_PTR)HalpLookAtObject)) {
        HalpOwnObject = Object->dlpi_name;
        return 0;
    }
    while (*Landmark != 0 && !HalpContains(Object, *Landmark)) {
        Landmark += 1;
    }
    for (ULONG Index = 0; *Landmark != 0 && Index < Object->dlpi_phnum && HalpLibcRanges < MOST_RANGES; Index++) {
        const ElfW(Phdr) *Segment = &Object->dlpi_phdr[Index];
        if (Segment->p_type == PT_LOAD && (Segment->p_flags & PF_X) != 0) {
            ULONG_PTR Begin = Object->dlpi_addr + Segment->p_vaddr;
            HalpLibcCode[HalpLibcRanges++] = (HALP_RANGE){.First = Begin, .End = Begin + Segment->p_memsz};
        }
    }
    return 0;
}

static VOID HalpInitializeLibc(VOID)
{
    const ULONG_PTR Found[] = {
        (ULONG_PTR)dlsym(RTLD_DEFAULT, "malloc"),
        (ULONG_PTR)dlsym(RTLD_DEFAULT, "sysconf"), /* the C library, even if something else provides malloc */
        (ULONG_PTR)getauxval(AT_BASE),             /* the loader */
    };
    ULONG_PTR Landmarks[ARRAYSIZE(Found) + 1] = {0};
    ULONG Count = 0;

    for (ULONG Index = 0; Index < ARRAYSIZE(Found); Index++) {
        if (Found[Index] != 0) {
            Landmarks[Count++] = Found[Index];
        }
    }
    dl_iterate_phdr(HalpLookAtObject, Landmarks);
}

/*
 * Threads, signal handlers and the destructor of a thread-specific key run here until the process ends, even if the
 * program unloads the object. The shared library is linked with nodelete; a plugin with a static copy of the library is
 * pinned here. dlopen is weak: a program that is statically linked with the C library has no loader.
 */
extern __typeof__(dlopen) dlopen __attribute__((weak));

VOID HalpStayLoaded(VOID)
{
    HALP_HOST_CALLS;
    if (HalpOwnObject != NULL && dlopen != NULL && dlopen(HalpOwnObject, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL) {
        HalPrint("interlock: %s must not be unloaded, but the loader refuses to pin it\n", HalpOwnObject);
    }
}

static BOOLEAN HalpIsSystemCallAt(const HALP_RANGE *Code, ULONG_PTR Instruction)
{
    return Instruction >= Code->First && Code->End - Instruction >= sizeof(HalpSystemCall) &&
           memcmp((const VOID *)Instruction, HalpSystemCall, sizeof(HalpSystemCall)) == 0;
}

/* The host goes back to the instruction to restart the call, or leaves the call with EINTR. */
static BOOLEAN HalpIsWaitingCall(const HALP_RANGE *Code, const ucontext_t *Context)
{
    ULONG_PTR Instruction = (ULONG_PTR)HALP_CONTEXT_INSTRUCTION(Context);
    ULONG_PTR Call = (ULONG_PTR)CONTEXT_CALL(Context);

    if (HalpIsSystemCallAt(Code, Instruction)) {
        return Call != SYS_mmap && Call != SYS_munmap && Call != SYS_mremap && Call != SYS_mprotect &&
               Call != SYS_madvise && Call != SYS_brk;
    }
    return HalpIsSystemCallAt(Code, Instruction - sizeof(HalpSystemCall)) &&
           (LONG_PTR)CONTEXT_RESULT(Context) == -EINTR;
}

VOID HalpCancelInterruptLater(VOID)
{
    if (HalpRetryTimer != 0) {
        HalpCall(SYS_timer_delete, HalpRetryTimer - 1);
        HalpRetryTimer = 0;
    }
}

static BOOLEAN HalpIsInsideLibc(const VOID *Context)
{
    ULONG_PTR Instruction = (ULONG_PTR)HALP_CONTEXT_INSTRUCTION((const ucontext_t *)Context);
    BOOLEAN Inside = FALSE;

    HalpCancelInterruptLater();
    for (ULONG Index = 0; Index < HalpLibcRanges; Index++) {
        const HALP_RANGE *Code = &HalpLibcCode[Index];
        if (Instruction >= Code->First && Instruction < Code->End) {
            Inside = !HalpIsWaitingCall(Code, Context);
            break;
        }
    }
    if (!Inside) {
        HalpRetries = 0;
    }
    return Inside;
}

/* The host's own structure for its bare calls: the C library's timers are not safe in a signal handler. */
typedef struct _HALP_SIGNAL_EVENT {
    union sigval Value;
    int Signal;
    int Notify;
    int ThreadId;
    int Unused[11];
} HALP_SIGNAL_EVENT;

static BOOLEAN HalpCreateTimer(int Signal, PVOID Value, int *Timer)
{
    HALP_SIGNAL_EVENT Event = {
        .Value.sival_ptr = Value, .Signal = Signal, .Notify = SIGEV_THREAD_ID, .ThreadId = (int)HalCurrentThreadId()};
    LONG_PTR Result = -EAGAIN;

    C_ASSERT(sizeof(Event) == sizeof(struct sigevent));
    for (ULONG Round = 0; Result == -EAGAIN && Round < MOST_TIMER_TRIES; Round++) {
        Result = HalpCall(SYS_timer_create, CLOCK_MONOTONIC, &Event, Timer);
        if (Result == -EAGAIN) {
            HalGiveWay(Round);
        }
    }
    return Result == 0;
}

static HAL_LATER HalpInterruptLater(int Signal, PVOID Value)
{
    struct itimerspec When = {.it_value.tv_nsec = SHORTEST_RETRY};
    int Timer;

    if (HalpRetries == MOST_RETRIES) {
        HalpRetries = 0;
        return HalLaterTooOften;
    }
    HalpRetries += 1;
    When.it_value.tv_nsec += (LONG_PTR)((ULONGLONG)(HalpRetries * GOLDEN_RATIO) * RETRY_VARIATION >> 32);
    if (!HalpCreateTimer(Signal, Value, &Timer)) {
        return HalLaterRefused;
    }
    HalpRetryTimer = Timer + 1;
    if (HalpCall(SYS_timer_settime, Timer, 0, &When, NULL) == 0) {
        return HalLaterSet;
    }
    HalpCancelInterruptLater();
    return HalLaterRefused;
}

static BOOLEAN HalpHasTimer(int Signal, PVOID Value)
{
    int Timer;

    if (!HalpCreateTimer(Signal, Value, &Timer)) {
        return FALSE;
    }
    HalpCall(SYS_timer_delete, Timer);
    return TRUE;
}

/* The timer stayed in the parent. */
VOID HalpForkChildLibc(VOID)
{
    HalpRetryTimer = 0;
}

#define PREFERRED_OFFSET 9
#define MOST_TRIES 1024

static HALP_CHAIN HalpInterruptChain;
static volatile ULONG HalpSignalsArePlain; /* the host refuses signals that carry a value */

static BOOLEAN HalpIsOwnInterrupt(const HALP_PREDECESSOR *Predecessor, const siginfo_t *Information)
{
    BOOLEAN FromSelf = (ULONG)Information->si_pid == HalCurrentProcessId();

    if (Information->si_code == SI_TKILL) {
        /* relaxed: the sender set it before its system call */
        return FromSelf && __atomic_load_n(&HalpSignalsArePlain, __ATOMIC_RELAXED) != 0 &&
               !HalpHasHandler(&Predecessor->Action);
    }
    return Information->si_value.sival_ptr == &HalpInterruptChain &&
           (Information->si_code == SI_TIMER || (Information->si_code == SI_QUEUE && FromSelf));
}

/* A foreign signal without a handler is ignored: its default action would kill the process. */
static VOID HalpHandleInterrupt(ULONG Place, int Signal, siginfo_t *Information, VOID *Context)
{
    HALP_PREDECESSOR *Predecessor = &HalpInterruptChain.Predecessor[Place];
    int Error = errno;

    if (!HalpIsOwnInterrupt(Predecessor, Information)) {
        HalpPassOn(Predecessor, Signal, Information, Context);
    } else if (HalCurrentThread != NULL && HalpCallbacks.Interrupt != NULL) {
        PVOID Outer = HalInterruptFrame;

        HalInterruptFrame = Context;
        HalpCallbacks.Interrupt(HalpIsInsideLibc(Context));
        HalInterruptFrame = Outer;
    }
    errno = Error;
}

HALP_DEFINE_HANDLERS(HalpInterruptHandler, HalpHandleInterrupt);

static HALP_CHAIN HalpInterruptChain = {.Handler = HalpInterruptHandler, .Flags = SA_RESTART};

/* The first one from SIGRTMIN+9 on that has no handler. */
static int HalpFindFreeSignal(VOID)
{
    int Count = SIGRTMAX - SIGRTMIN + 1;

    for (int Offset = 0; Offset < Count; Offset++) {
        int Signal = SIGRTMIN + (PREFERRED_OFFSET + Offset) % Count;
        struct sigaction Action;
        if (sigaction(Signal, NULL, &Action) == 0 && (Action.sa_flags & SA_SIGINFO) == 0 &&
            Action.sa_handler == SIG_DFL) {
            return Signal;
        }
    }
    return SIGRTMIN + PREFERRED_OFFSET;
}

/* "44" or "SIGRTMIN+5"; 0: no real-time signal. */
static int HalpParseSignal(PCSTR Text)
{
    static const CHAR Symbolic[] = "SIGRTMIN+";
    BOOLEAN FromFirst = strncmp(Text, Symbolic, sizeof(Symbolic) - 1) == 0;
    PCSTR Digits = FromFirst ? Text + sizeof(Symbolic) - 1 : Text;
    char *End;
    long Number = strtol(Digits, &End, 10);

    if (End == Digits || *End != '\0' || Number < 0 || Number > SIGRTMAX) {
        return 0;
    }
    Number += FromFirst ? SIGRTMIN : 0;
    return Number >= SIGRTMIN && Number <= SIGRTMAX ? (int)Number : 0;
}

/* The program may have replaced our handler since the last call. */
static BOOLEAN HalpEnsureHandler(VOID)
{
    sigset_t Before;
    BOOLEAN InFront = HalpIsInFront(&HalpInterruptChain);

    if (!InFront) {
        HalpLockHandlers(&Before);
        InFront = HalpStandInFront(&HalpInterruptChain);
        HalpUnlockHandlers(&Before);
    }
    return InFront;
}

VOID HalpInitializeInterrupt(VOID)
{
    PCSTR Setting = HalGetEnvironment("INTERLOCK_SIGNAL");
    int Signal = Setting != NULL ? HalpParseSignal(Setting) : 0;

    HalpInitializeLibc();
    HalpInterruptChain.Signal = Signal != 0 ? Signal : HalpFindFreeSignal();
    if (Setting != NULL && Signal == 0) {
        HalPrint("interlock: INTERLOCK_SIGNAL=%s is not a real-time signal (%d to %d); using %d\n", Setting, SIGRTMIN,
                 SIGRTMAX, HalpInterruptChain.Signal);
    }
    if (!HalpEnsureHandler()) {
        HalPrint("interlock: the host refuses a handler for signal %d (error %d)\n", HalpInterruptChain.Signal, errno);
        HalAbort();
    }
}

VOID HalpUnblockInterrupt(VOID)
{
    sigset_t Set;

    sigemptyset(&Set);
    sigaddset(&Set, HalpInterruptChain.Signal);
    pthread_sigmask(SIG_UNBLOCK, &Set, NULL);
}

/* Without a value: only where no handler of the program's could take the signal for its own. */
static BOOLEAN HalpTrySendPlain(ULONG ThreadId)
{
    struct sigaction Present;

    sigaction(HalpInterruptChain.Signal, NULL, &Present);
    for (ULONG Place = 0; Place < HALP_PLACES; Place++) {
        if (Present.sa_sigaction == HalpInterruptHandler[Place] &&
            !HalpHasHandler(&HalpInterruptChain.Predecessor[Place].Action)) {
            __atomic_store_n(&HalpSignalsArePlain, 1, __ATOMIC_RELAXED); /* relaxed: the system call comes after it */
            return syscall(SYS_tgkill, HalCurrentProcessId(), ThreadId, HalpInterruptChain.Signal) == 0;
        }
    }
    errno = EPERM;
    return FALSE;
}

/*
 * ESRCH, EINVAL: there is no such thread. EAGAIN: the user's limit of queued signals is reached for the moment. Any
 * other error comes from a filter of system calls.
 */
NTSTATUS HalInterruptThread(ULONG ThreadId)
{
    int Error = errno;
    NTSTATUS Status = STATUS_ACCESS_DENIED;
    siginfo_t Information;

    if (HalpEnsureHandler()) {
        memset(&Information, 0, sizeof(Information));
        Information.si_signo = HalpInterruptChain.Signal;
        Information.si_code = SI_QUEUE;
        Information.si_pid = (pid_t)HalCurrentProcessId();
        Information.si_value.sival_ptr = &HalpInterruptChain;
        for (ULONG Round = 0;; Round++) {
            if (syscall(SYS_rt_tgsigqueueinfo, HalCurrentProcessId(), ThreadId, Information.si_signo, &Information) == 0 ||
                (errno != EAGAIN && errno != ESRCH && errno != EINVAL && HalpTrySendPlain(ThreadId))) {
                Status = STATUS_SUCCESS;
            } else if (errno == ESRCH || errno == EINVAL) {
                Status = STATUS_INVALID_CID;
            } else if (errno == EAGAIN && Round < MOST_TRIES) {
                HalGiveWay(Round);
                continue;
            } else if (errno == EAGAIN) {
                Status = STATUS_INSUFFICIENT_RESOURCES;
            }
            break;
        }
    }
    errno = Error;
    return Status;
}

BOOLEAN HalIsInterruptOnItsWay(ULONG ThreadId)
{
    return HalpIsSignalOnItsWay(ThreadId, HalpInterruptChain.Signal);
}

HAL_LATER HalInterruptLater(VOID)
{
    return HalpInterruptLater(HalpInterruptChain.Signal, &HalpInterruptChain);
}

BOOLEAN HalCanInterruptLater(VOID)
{
    return HalpHasTimer(HalpInterruptChain.Signal, &HalpInterruptChain);
}

static BOOLEAN HalpBarrierOffered;

static BOOLEAN HalpMakeBarrier(VOID)
{
    return HalpCall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static BOOLEAN HalpRegisterAndMakeBarrier(VOID)
{
    HalpCall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    return HalpMakeBarrier();
}

VOID HalpInitializeBarrier(VOID)
{
    HalpBarrierOffered = HalpRegisterAndMakeBarrier();
}

/*
 * A process may enter a sandbox later that refuses the call. The other threads still rely on what was offered at the
 * start. Then time replaces the barrier: a store is visible to all processors within microseconds, and a thread that
 * does not run has been through the host's scheduler, which is a barrier.
 */
BOOLEAN HalBarrierAllThreads(VOID)
{
    if (HalpBarrierOffered && !HalpMakeBarrier() && !HalpRegisterAndMakeBarrier()) {
        HalpOutwaitStores();
    }
    return HalpBarrierOffered;
}
