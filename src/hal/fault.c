/*
 * fault.c: reads memory that another thread may unmap at any time, and replaces memory whose file was truncated.
 *
 * The read is one instruction at a known address. If that instruction faults at the address that it reads, execution
 * continues after it, where the read reports failure. Every other fault goes to the program's handler.
 *
 * 1. The first read installs handlers for SIGSEGV and SIGBUS in front of the program's (handler.c). Without a handler of
 *    the program's, a fault takes the host's default action.
 * 2. A program may install its own handler later. Each thread checks at its first read and every READS_BETWEEN_CHECKS
 *    reads; until then a failing read ends up in the program's handler.
 * 3. A blocked fault kills the process, so the first read of a thread unblocks both signals.
 */
#include "halp.h"

#include <sys/mman.h>

#define READS_BETWEEN_CHECKS 4096
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
#error "fault.c: no code for a read that may fault on this machine."
#endif

HAL_READ HalpTryRead(PVOID volatile *Address); /* begins with the load */
extern const UCHAR HalpTryReadFailed[];

volatile ULONG64 HalpFailedReads;
HALP_THREAD_LOCAL ULONG HalpReadsBeforeCheck;
static VOID HalpCheckFaultHandlers(VOID);

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

/*
 * Mappings of files that others may truncate. A slot is claimed by its Lost; Size is set last and cleared first: the
 * handler only reads slots with a Size.
 */
#define GUARDED_MAPPINGS 8

static struct {
    volatile ULONG *volatile Lost;
    volatile ULONG_PTR Base;
    volatile SIZE_T Size;
} HalpGuarded[GUARDED_MAPPINGS];

BOOLEAN HalGuardMapping(PVOID Memory, SIZE_T Size, volatile ULONG *Lost)
{
    for (ULONG Slot = 0; Slot < GUARDED_MAPPINGS; Slot += 1) {
        volatile ULONG *Free = NULL;
        if (__atomic_compare_exchange_n(&HalpGuarded[Slot].Lost, &Free, Lost, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            HalpGuarded[Slot].Base = (ULONG_PTR)Memory;
            __atomic_store_n(&HalpGuarded[Slot].Size, Size, __ATOMIC_RELEASE);
            HalpCheckFaultHandlers();
            return TRUE;
        }
    }
    return FALSE;
}

VOID HalForgetMapping(PVOID Memory)
{
    for (ULONG Slot = 0; Slot < GUARDED_MAPPINGS; Slot += 1) {
        if (HalpGuarded[Slot].Size != 0 && HalpGuarded[Slot].Base == (ULONG_PTR)Memory) {
            __atomic_store_n(&HalpGuarded[Slot].Size, 0, __ATOMIC_RELAXED);
            /* release: pairs with the acquire in HalGuardMapping; the slot is free */
            __atomic_store_n(&HalpGuarded[Slot].Lost, NULL, __ATOMIC_RELEASE);
        }
    }
}

/* Zeros from the page of the fault to the end. */
static BOOLEAN HalpReplaceLost(ULONG Slot, ULONG_PTR Address, SIZE_T Size)
{
    ULONG_PTR Page = Address & ~((ULONG_PTR)HalQueryPageSize() - 1);
    long Result = HalpCall(SYS_mmap, Page, HalpGuarded[Slot].Base + Size - Page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    __atomic_store_n(HalpGuarded[Slot].Lost, 1, __ATOMIC_RELEASE);
    return Result == (long)Page;
}

static BOOLEAN HalpRepairMapping(int Signal, const siginfo_t *Information, ucontext_t *Context)
{
    BOOLEAN Lost = Signal == SIGBUS && Information->si_code == BUS_ADRERR;
    BOOLEAN Forbidden = Signal == SIGSEGV && Information->si_code == SEGV_ACCERR;
    ULONG_PTR Address = (ULONG_PTR)Information->si_addr, Instruction = (ULONG_PTR)HALP_CONTEXT_INSTRUCTION(Context);
    for (ULONG Slot = 0; (Lost || Forbidden) && Slot < GUARDED_MAPPINGS; Slot += 1) {
        SIZE_T Size = __atomic_load_n(&HalpGuarded[Slot].Size, __ATOMIC_ACQUIRE);
        ULONG_PTR Base = HalpGuarded[Slot].Base;
        /* a jump into the mapping is forbidden as well, and stays so */
        if (Size != 0 && Address - Base < Size && Instruction - Base >= Size) {
            return Lost ? HalpReplaceLost(Slot, Address, Size)
                        : HalpCall(SYS_mprotect, Base, Size, PROT_READ | PROT_WRITE) == 0;
        }
    }
    return FALSE;
}

static HALP_CHAIN HalpFaultChain[FAULT_SIGNALS];

static VOID HalpHandleFault(ULONG Place, int Signal, siginfo_t *Information, VOID *Context)
{
    struct sigaction Default = {.sa_handler = SIG_DFL};

    if (HalpSkipTryRead(Information, Context) || HalpRepairMapping(Signal, Information, Context) ||
        HalpPassOn(&HalpFaultChain[Signal == SIGBUS].Predecessor[Place], Signal, Information, Context)) {
        return;
    }
    sigaction(Signal, &Default, NULL);
    /* A fault repeats when the handler returns; a sent signal has to be sent again. */
    if (Information->si_code <= 0) {
        HalpCall(SYS_rt_tgsigqueueinfo, getpid(), HalpCall(SYS_gettid), Signal, Information);
    }
}

HALP_DEFINE_HANDLERS(HalpFaultHandler, HalpHandleFault);

#define FAULT_CHAIN(Number)                                                                                           \
    {                                                                                                                 \
        .Signal = (Number), .Handler = HalpFaultHandler, .FlagsIfDefault = SA_ONSTACK,                                \
        .InheritedFlags = SA_NODEFER | SA_ONSTACK | SA_RESTART                                                        \
    }

static HALP_CHAIN HalpFaultChain[FAULT_SIGNALS] = {FAULT_CHAIN(SIGSEGV), FAULT_CHAIN(SIGBUS)};

static VOID HalpCheckFaultHandlers(VOID)
{
    HALP_HOST_CALLS;
    sigset_t Before;

    HalpLockHandlers(&Before);
    for (ULONG Index = 0; Index < FAULT_SIGNALS; Index++) {
        HalpStandInFront(&HalpFaultChain[Index]);
        sigdelset(&Before, HalpFaultChain[Index].Signal);
    }
    HalpReadsBeforeCheck = READS_BETWEEN_CHECKS;
    HalpUnlockHandlers(&Before);
}

HAL_READ HalReadPointerOrFault(PVOID volatile *Address)
{
    if (__builtin_expect(HalpReadsBeforeCheck-- == 0, 0)) {
        HalpCheckFaultHandlers();
    }
    return HalpTryRead(Address);
}
