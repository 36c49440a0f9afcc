/*
 * fault.c: reading memory that another thread may unmap at any time.
 *
 * The read is one instruction at a known address. A fault of that very instruction, at the very address that it reads,
 * continues behind it, where the read says that it failed. Every other fault goes to whoever would have got it.
 *
 * 1. The handlers of SIGSEGV and SIGBUS are installed by the first read, and what was there before is kept with the
 *    handler that took its place: the signal goes on to it with the same arguments, under the same mask and flags, and
 *    to the host's default action if there was no handler.
 * 2. A program may install its own handler later. Each thread looks at its first read and again every
 *    READS_BETWEEN_LOOKS reads; it then puts another handler of ours in front. As each of ours knows its own
 *    predecessor, it does not matter whether the program's handler passes faults on to the one it had replaced, or puts
 *    that one back. Until somebody has looked, a read that fails ends up in the program's handler.
 * 3. A blocked fault ends the process, so the first read of a thread unblocks the two signals.
 */
#include "context.h"
#include "halp.h"

#include <signal.h>

#define READS_BETWEEN_LOOKS 4096
#define FAULT_SIGNALS 2
#define INHERITED_FLAGS (SA_NODEFER | SA_ONSTACK | SA_RESTART)

/* HAL_READ HalpTryRead(PVOID volatile *): the two members are returned in the first two result registers. */
#define TRY_READ(Load, Succeed, Fail)                                                                                 \
    __asm__(".pushsection .text\n"                                                                                    \
            ".balign 16\n"                                                                                            \
            ".globl HalpTryRead\n.hidden HalpTryRead\n.type HalpTryRead, %function\n"                                 \
            ".globl HalpTryReadFailed\n.hidden HalpTryReadFailed\n"                                                   \
            "HalpTryRead:\n"                                                                                          \
            ".cfi_startproc\n" Load "\n" Succeed "\nret\n"                                                            \
            "HalpTryReadFailed:\n" Fail "\nret\n"                                                                     \
            ".cfi_endproc\n"                                                                                          \
            ".size HalpTryRead, . - HalpTryRead\n"                                                                    \
            ".popsection\n")

#if defined(__x86_64__)
TRY_READ("movq (%rdi), %rax", "movl $1, %edx", "xorl %eax, %eax\nxorl %edx, %edx");
#define CONTEXT_ADDRESS(Context) ((Context)->uc_mcontext.gregs[REG_RDI])
#define ADDRESS_MASK MAXULONG_PTR
#elif defined(__aarch64__)
TRY_READ("ldr x0, [x0]", "mov x1, #1", "mov x0, xzr\nmov x1, xzr");
#define CONTEXT_ADDRESS(Context) ((Context)->uc_mcontext.regs[0])
#define ADDRESS_MASK (MAXULONG_PTR >> 8) /* the host reports addresses without their tag */
#elif defined(__riscv) && __riscv_xlen == 64
TRY_READ("ld a0, 0(a0)", "li a1, 1", "li a0, 0\nli a1, 0");
#define CONTEXT_ADDRESS(Context) ((Context)->uc_mcontext.__gregs[REG_A0])
#define ADDRESS_MASK MAXULONG_PTR
#else
#error "fault.c does not know how this machine reads memory that may be gone."
#endif

HAL_READ HalpTryRead(PVOID volatile *Address); /* begins with the load */
extern const UCHAR HalpTryReadFailed[];

typedef VOID HALP_FAULT_HANDLER(int Signal, siginfo_t *Information, VOID *Context);

volatile ULONG64 HalpFailedReads;
HALP_THREAD_LOCAL ULONG HalpReadsBeforeLook;

static const int HalpFaultSignal[FAULT_SIGNALS] = {SIGSEGV, SIGBUS};
static volatile ULONG HalpFaultLock; /* 0, or the process id of who holds it: a forked child frees that of its parent */

static BOOLEAN HalpSkipTryRead(const siginfo_t *Information, ucontext_t *Context)
{
    ULONG_PTR Address = (ULONG_PTR)CONTEXT_ADDRESS(Context);

    if ((ULONG_PTR)HALP_CONTEXT_INSTRUCTION(Context) != (ULONG_PTR)HalpTryRead || Information->si_code <= 0 ||
        (((ULONG_PTR)Information->si_addr ^ Address) & ADDRESS_MASK) != 0) {
        return FALSE;
    }
    __atomic_fetch_add(&HalpFailedReads, 1, __ATOMIC_RELAXED); /* a statistic */
    HALP_CONTEXT_INSTRUCTION(Context) = (__typeof__(HALP_CONTEXT_INSTRUCTION(Context)))(ULONG_PTR)HalpTryReadFailed;
    return TRUE;
}

/* A fault happens again when the handler returns; what was sent by somebody has to be sent again. */
static VOID HalpTakeDefaultAction(int Signal, siginfo_t *Information)
{
    struct sigaction Default = {.sa_handler = SIG_DFL};

    sigaction(Signal, &Default, NULL);
    if (Information->si_code <= 0) {
        HalpCall(SYS_rt_tgsigqueueinfo, getpid(), HalpCall(SYS_gettid), Signal, Information);
    }
}

typedef struct _HALP_PREDECESSOR {
    struct sigaction Action;
    volatile BOOLEAN Spent; /* SA_RESETHAND: it has had its one signal */
} HALP_PREDECESSOR;

static VOID HalpPassOn(HALP_PREDECESSOR *Predecessor, int Signal, siginfo_t *Information, VOID *Context)
{
    const struct sigaction *Action = &Predecessor->Action;
    BOOLEAN Spent = (Action->sa_flags & SA_RESETHAND) != 0 &&
                    __atomic_exchange_n(&Predecessor->Spent, TRUE, __ATOMIC_RELAXED);

    if (Action->sa_handler == SIG_IGN && Information->si_code <= 0) {
        return;
    }
    if (Spent || Action->sa_handler == SIG_DFL || Action->sa_handler == SIG_IGN) {
        HalpTakeDefaultAction(Signal, Information);
    } else if ((Action->sa_flags & SA_SIGINFO) != 0) {
        Action->sa_sigaction(Signal, Information, Context);
    } else {
        Action->sa_handler(Signal);
    }
}

/* As many handlers as a program may put in front of one another; one more stays in front. */
#define FOR_EACH_PLACE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define COUNT_PLACE(Place) +1
#define PLACES (FOR_EACH_PLACE(COUNT_PLACE))

typedef struct _HALP_CHAIN {
    HALP_PREDECESSOR Predecessor[PLACES];
    ULONG Used; /* under HalpFaultLock */
} HALP_CHAIN;

static HALP_CHAIN HalpChain[FAULT_SIGNALS];

static VOID HalpHandleFault(ULONG Place, int Signal, siginfo_t *Information, VOID *Context)
{
    if (!HalpSkipTryRead(Information, Context)) {
        HalpPassOn(&HalpChain[Signal == SIGBUS].Predecessor[Place], Signal, Information, Context);
    }
}

#define DEFINE_HANDLER(Place)                                                                                         \
    static VOID HalpHandleFault##Place(int Signal, siginfo_t *Information, VOID *Context)                             \
    {                                                                                                                 \
        HalpHandleFault(Place, Signal, Information, Context);                                                         \
    }
#define NAME_HANDLER(Place) HalpHandleFault##Place,

FOR_EACH_PLACE(DEFINE_HANDLER)
static HALP_FAULT_HANDLER *const HalpHandler[PLACES] = {FOR_EACH_PLACE(NAME_HANDLER)};

static BOOLEAN HalpIsOwnHandler(const struct sigaction *Action)
{
    ULONG Place;

    for (Place = 0; Place < PLACES; Place++) {
        if ((Action->sa_flags & SA_SIGINFO) != 0 && Action->sa_sigaction == HalpHandler[Place]) {
            return TRUE;
        }
    }
    return FALSE;
}

static BOOLEAN HalpIsSameAction(const struct sigaction *First, const struct sigaction *Second)
{
    return First->sa_sigaction == Second->sa_sigaction && First->sa_flags == Second->sa_flags &&
           memcmp(&First->sa_mask, &Second->sa_mask, sizeof(First->sa_mask)) == 0;
}

/* The place whose handler stands in front of this action; a place is never given another predecessor. */
static ULONG HalpPlaceBefore(HALP_CHAIN *Chain, const struct sigaction *Action)
{
    ULONG Place;

    for (Place = 0; Place < Chain->Used; Place++) {
        if (HalpIsSameAction(&Chain->Predecessor[Place].Action, Action)) {
            return Place;
        }
    }
    if (Chain->Used < PLACES) {
        Chain->Predecessor[Place].Action = *Action;
        Chain->Used = Place + 1;
    }
    return Place;
}

static VOID HalpStandInFront(ULONG Index)
{
    struct sigaction Present;
    struct sigaction Own = {.sa_flags = SA_SIGINFO};
    ULONG Place;

    if (sigaction(HalpFaultSignal[Index], NULL, &Present) != 0 || HalpIsOwnHandler(&Present)) {
        return;
    }
    Place = HalpPlaceBefore(&HalpChain[Index], &Present);
    if (Place == PLACES) {
        return;
    }
    Own.sa_sigaction = HalpHandler[Place];
    Own.sa_mask = Present.sa_mask;
    Own.sa_flags |= Present.sa_handler == SIG_DFL ? SA_ONSTACK : Present.sa_flags & INHERITED_FLAGS;
    /* A one-shot handler that is there now has been put there anew. */
    __atomic_store_n(&HalpChain[Index].Predecessor[Place].Spent, FALSE, __ATOMIC_RELAXED);
    sigaction(HalpFaultSignal[Index], &Own, NULL);
}

static VOID HalpAcquireFaultLock(VOID)
{
    ULONG Process = (ULONG)getpid();
    ULONG Holder = 0;
    ULONG Round = 0;

    /* acquire: pairs with the release in HalpReleaseFaultLock */
    while (!__atomic_compare_exchange_n(&HalpFaultLock, &Holder, Process, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (Holder == Process) {
            HalLongSpin(Round++);
            Holder = 0;
        }
    }
}

static VOID HalpReleaseFaultLock(VOID)
{
    __atomic_store_n(&HalpFaultLock, 0, __ATOMIC_RELEASE);
}

/* With every signal blocked, so that no handler on this thread comes here while the lock is held. */
static VOID HalpLookAtHandlers(VOID)
{
    HALP_HOST_CALLS;
    sigset_t All;
    sigset_t Before;
    ULONG Index;

    sigfillset(&All);
    pthread_sigmask(SIG_SETMASK, &All, &Before);
    HalpAcquireFaultLock();
    for (Index = 0; Index < FAULT_SIGNALS; Index++) {
        HalpStandInFront(Index);
        sigdelset(&Before, HalpFaultSignal[Index]);
    }
    HalpReleaseFaultLock();
    HalpReadsBeforeLook = READS_BETWEEN_LOOKS;
    pthread_sigmask(SIG_SETMASK, &Before, NULL);
}

HAL_READ HalReadPointerOrFault(PVOID volatile *Address)
{
    if (__builtin_expect(HalpReadsBeforeLook-- == 0, 0)) {
        HalpLookAtHandlers();
    }
    return HalpTryRead(Address);
}
