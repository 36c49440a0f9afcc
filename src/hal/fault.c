/*
 * fault.c: reading memory that another thread may unmap at any time.
 *
 * The read is one instruction at a known address. A fault of that very instruction, at the very address that it reads,
 * continues behind it, where the read says that it failed. Every other fault goes to whoever would have got it.
 *
 * 1. The handlers of SIGSEGV and SIGBUS stand in front of the program's (handler.c): they are installed by the first
 *    read. The signal goes on to the host's default action if there was no handler.
 * 2. A program may install its own handler later. Each thread looks at its first read and again every
 *    READS_BETWEEN_LOOKS reads; until somebody has looked, a read that fails ends up in the program's handler.
 * 3. A blocked fault ends the process, so the first read of a thread unblocks the two signals.
 */
#include "context.h"
#include "handler.h"

#define READS_BETWEEN_LOOKS 4096
#define FAULT_SIGNALS 2

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

volatile ULONG64 HalpFailedReads;
HALP_THREAD_LOCAL ULONG HalpReadsBeforeLook;

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

static HALP_CHAIN HalpFaultChain[FAULT_SIGNALS];

static VOID HalpHandleFault(ULONG Place, int Signal, siginfo_t *Information, VOID *Context)
{
    if (!HalpSkipTryRead(Information, Context) &&
        !HalpPassOn(&HalpFaultChain[Signal == SIGBUS].Predecessor[Place], Signal, Information, Context)) {
        HalpTakeDefaultAction(Signal, Information);
    }
}

HALP_DEFINE_HANDLERS(HalpFaultHandler, HalpHandleFault);

#define FAULT_CHAIN(Number)                                                                                           \
    {                                                                                                                 \
        .Signal = (Number), .Handler = HalpFaultHandler, .FlagsIfDefault = SA_ONSTACK,                                \
        .InheritedFlags = SA_NODEFER | SA_ONSTACK | SA_RESTART                                                        \
    }

static HALP_CHAIN HalpFaultChain[FAULT_SIGNALS] = {FAULT_CHAIN(SIGSEGV), FAULT_CHAIN(SIGBUS)};

static VOID HalpLookAtHandlers(VOID)
{
    HALP_HOST_CALLS;
    sigset_t Before;
    ULONG Index;

    HalpLockHandlers(&Before);
    for (Index = 0; Index < FAULT_SIGNALS; Index++) {
        HalpStandInFront(&HalpFaultChain[Index]);
        sigdelset(&Before, HalpFaultChain[Index].Signal);
    }
    HalpReadsBeforeLook = READS_BETWEEN_LOOKS;
    HalpUnlockHandlers(&Before);
}

HAL_READ HalReadPointerOrFault(PVOID volatile *Address)
{
    if (__builtin_expect(HalpReadsBeforeLook-- == 0, 0)) {
        HalpLookAtHandlers();
    }
    return HalpTryRead(Address);
}
