/*
 * fiber.c: stacks that a host thread can switch to.
 *
 * A switch pushes the registers that a called function preserves, exchanges the stack pointers, and pops the others.
 * Thread-local data stays with the thread: so a function that has the address of a thread-local variable in a register
 * must not use it after a switch. HalSwitchFiber and what its callers do before and after it are separate functions for
 * that reason.
 *
 * A processor with a shadow stack keeps a second copy of the return addresses, and a switch must exchange that stack
 * too, as the C library's swapcontext does.
 *
 * Sanitizers keep track of stacks: AddressSanitizer of their bounds, ThreadSanitizer of everything that a thread does.
 * Their functions are weak: a program may be built with one and the library without.
 */
#include "hal.h"
#include "halp.h"

#include <sys/mman.h>
#include <ucontext.h>

#define SMALLEST_FIBER_STACK (256 * 1024)
#define DEFAULT_FIBER_STACK (1024 * 1024)

#define SWITCH_FUNCTION(Save, Exchange, Restore)                                                                      \
    __asm__(".pushsection .text\n"                                                                                    \
            ".balign 16\n"                                                                                            \
            ".globl HalpSwitchStack\n.hidden HalpSwitchStack\n.type HalpSwitchStack, %function\n"                     \
            "HalpSwitchStack:\n"                                                                                      \
            Save "\n" Exchange "\n" Restore "\n"                                                                      \
            ".size HalpSwitchStack, . - HalpSwitchStack\n"                                                            \
            ".popsection\n")

/* The outermost frame of a fiber: calls the function in the second preserved register with the first one as
 * argument, and has no caller. */
#define ENTRY_FUNCTION(NoCaller, Call)                                                                                \
    __asm__(".pushsection .text\n"                                                                                    \
            ".balign 16\n"                                                                                            \
            ".globl HalpEnterFiber\n.hidden HalpEnterFiber\n.type HalpEnterFiber, %function\n"                        \
            "HalpEnterFiber:\n"                                                                                       \
            ".cfi_startproc\n.cfi_undefined " NoCaller "\n" Call "\n.cfi_endproc\n"                                  \
            ".size HalpEnterFiber, . - HalpEnterFiber\n"                                                              \
            ".popsection\n")

/* SAVED_WORDS: on the stack of a fiber that does not run. WORD_OF_: where among them the two registers and the
 * return address are. */
#if defined(__x86_64__)
SWITCH_FUNCTION("pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15",
                "movq %rsp, (%rdi)\nmovq %rsi, %rsp",
                "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret");
ENTRY_FUNCTION("rip", "movq %r12, %rdi\ncallq *%r13\nud2");
#define SAVED_WORDS 9 /* the entry finds the stack aligned */
#define WORD_OF_CONTEXT 3
#define WORD_OF_START 2
#define WORD_OF_RETURN 6
#elif defined(__aarch64__)
SWITCH_FUNCTION("sub sp, sp, #160\n"
                "stp x19, x20, [sp, #0]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
                "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
                "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]",
                "mov x9, sp\nstr x9, [x0]\nmov sp, x1",
                "ldp x19, x20, [sp, #0]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
                "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
                "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
                "add sp, sp, #160\nret");
ENTRY_FUNCTION("x30", "mov x0, x19\nblr x20\nbrk #0");
#define SAVED_WORDS 20
#define WORD_OF_CONTEXT 0
#define WORD_OF_START 1
#define WORD_OF_RETURN 11
#elif defined(__riscv) && __riscv_xlen == 64
SWITCH_FUNCTION("addi sp, sp, -208\n"
                "sd s0, 0(sp)\nsd s1, 8(sp)\nsd s2, 16(sp)\nsd s3, 24(sp)\nsd s4, 32(sp)\nsd s5, 40(sp)\n"
                "sd s6, 48(sp)\nsd s7, 56(sp)\nsd s8, 64(sp)\nsd s9, 72(sp)\nsd s10, 80(sp)\nsd s11, 88(sp)\n"
                "sd ra, 96(sp)\n"
                "fsd fs0, 104(sp)\nfsd fs1, 112(sp)\nfsd fs2, 120(sp)\nfsd fs3, 128(sp)\nfsd fs4, 136(sp)\n"
                "fsd fs5, 144(sp)\nfsd fs6, 152(sp)\nfsd fs7, 160(sp)\nfsd fs8, 168(sp)\nfsd fs9, 176(sp)\n"
                "fsd fs10, 184(sp)\nfsd fs11, 192(sp)",
                "sd sp, 0(a0)\nmv sp, a1",
                "ld s0, 0(sp)\nld s1, 8(sp)\nld s2, 16(sp)\nld s3, 24(sp)\nld s4, 32(sp)\nld s5, 40(sp)\n"
                "ld s6, 48(sp)\nld s7, 56(sp)\nld s8, 64(sp)\nld s9, 72(sp)\nld s10, 80(sp)\nld s11, 88(sp)\n"
                "ld ra, 96(sp)\n"
                "fld fs0, 104(sp)\nfld fs1, 112(sp)\nfld fs2, 120(sp)\nfld fs3, 128(sp)\nfld fs4, 136(sp)\n"
                "fld fs5, 144(sp)\nfld fs6, 152(sp)\nfld fs7, 160(sp)\nfld fs8, 168(sp)\nfld fs9, 176(sp)\n"
                "fld fs10, 184(sp)\nfld fs11, 192(sp)\n"
                "addi sp, sp, 208\nret");
ENTRY_FUNCTION("ra", "mv a0, s0\njalr s1\nebreak");
#define SAVED_WORDS 26
#define WORD_OF_CONTEXT 0
#define WORD_OF_START 1
#define WORD_OF_RETURN 12
#else
#error "fiber.c: no code to switch stacks on this machine."
#endif

/* Not every C library has them. */
extern __typeof__(getcontext) getcontext __attribute__((weak));
extern __typeof__(makecontext) makecontext __attribute__((weak));
extern __typeof__(swapcontext) swapcontext __attribute__((weak));

VOID HalpSwitchStack(PVOID *StackPointer, PVOID NewStackPointer);
VOID HalpEnterFiber(VOID);

BOOLEAN HalpSwitchByContext; /* set by the first fiber, or by a test before that */

static BOOLEAN HalpHasShadowStack(VOID)
{
    ULONG_PTR Pointer = 0;
#if defined(__x86_64__)
    __asm__ volatile("rdsspq %0" : "+r"(Pointer)); /* does nothing on a processor without one, or while it is off */
#endif
    return Pointer != 0;
}

static VOID HalpEnterContext(unsigned Low, unsigned High)
{
    PHAL_FIBER Fiber = (PHAL_FIBER)((ULONG_PTR)Low | (ULONG_PTR)High << 32);

    Fiber->Start(Fiber->StartContext);
}

/* Floating point: rounding and which exceptions trap. */

static ULONG64 HalpReadFloatControl(VOID)
{
    ULONG64 Control = 0;
#if defined(__x86_64__)
    UINT32 Vector = 0;
    UINT16 Stack = 0;

    __asm__ volatile("stmxcsr %0\nfnstcw %1" : "=m"(Vector), "=m"(Stack));
    Control = (ULONG64)Stack << 32 | Vector;
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(Control));
#else
    __asm__ volatile("frcsr %0" : "=r"(Control));
#endif
    return Control;
}

static VOID HalpWriteFloatControl(ULONG64 Control)
{
#if defined(__x86_64__)
    UINT32 Vector = (UINT32)Control;
    UINT16 Stack = (UINT16)(Control >> 32);

    __asm__ volatile("ldmxcsr %0\nfldcw %1" : : "m"(Vector), "m"(Stack));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(Control));
#else
    __asm__ volatile("fscsr %0" : : "r"(Control));
#endif
}

/* Sanitizers. */

extern VOID __sanitizer_start_switch_fiber(PVOID *FakeStack, const VOID *Bottom, SIZE_T Size) __attribute__((weak));
extern VOID __sanitizer_finish_switch_fiber(PVOID FakeStack, const VOID **OldBottom, SIZE_T *OldSize)
    __attribute__((weak));
extern PVOID __tsan_get_current_fiber(VOID) __attribute__((weak));
extern PVOID __tsan_create_fiber(unsigned Flags) __attribute__((weak));
extern VOID __tsan_destroy_fiber(PVOID Fiber) __attribute__((weak));
extern VOID __tsan_switch_to_fiber(PVOID Fiber, unsigned Flags) __attribute__((weak));

/* Inline, as is HalpSwitchContext: ThreadSanitizer treats a return after the announcement as a return in To. */
FORCEINLINE VOID HalpAnnounceSwitch(PHAL_FIBER From, PHAL_FIBER To)
{
    if (__sanitizer_start_switch_fiber != NULL) {
        __sanitizer_start_switch_fiber(From->Ends ? NULL : &From->AddressSanitizer, To->StackBottom, To->StackRoom);
    }
    if (__tsan_switch_to_fiber != NULL && To->ThreadSanitizer != NULL) {
        __tsan_switch_to_fiber(To->ThreadSanitizer, 0);
    }
}

/* The bounds of a host thread's own stack are known once it has been left. */
VOID HalFinishSwitch(PHAL_FIBER Current, PHAL_FIBER Previous)
{
    const VOID *Bottom;
    SIZE_T Size;

    if (Current->SwitchFloat) {
        HalpWriteFloatControl(Current->FloatControl);
    }
    if (__sanitizer_finish_switch_fiber != NULL) {
        __sanitizer_finish_switch_fiber(Current->AddressSanitizer, &Bottom, &Size);
        Previous->StackBottom = Bottom;
        Previous->StackRoom = Size;
    }
}

/* Fibers. */

/* ThreadSanitizer's record of the host thread. It refuses an exit under any other. */
HALP_THREAD_LOCAL PVOID HalpThreadRecord;

VOID HalpAnnounceExit(VOID)
{
    if (HalpThreadRecord != NULL) {
        __tsan_switch_to_fiber(HalpThreadRecord, 0);
    }
}

static ULONG HalpPage(VOID)
{
    return (ULONG)sysconf(_SC_PAGESIZE);
}

static PVOID HalpAllocateStack(SIZE_T Size)
{
    SIZE_T Guard = HalpPage();
    PUCHAR Stack = mmap(NULL, Size + Guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
                        -1, 0);

    if (Stack == MAP_FAILED) {
        return NULL;
    }
    if (mprotect(Stack, Guard, PROT_NONE) != 0) {
        munmap(Stack, Size + Guard);
        return NULL;
    }
    return Stack + Guard;
}

static VOID HalpFreeStack(PHAL_FIBER Fiber)
{
    SIZE_T Guard = HalpPage();

    munmap((PUCHAR)Fiber->Stack - Guard, Fiber->StackSize + Guard);
}

VOID HalInitializeThreadFiber(PHAL_FIBER Fiber, BOOLEAN SwitchFloat)
{
    memset(Fiber, 0, sizeof(*Fiber));
    Fiber->SwitchFloat = SwitchFloat;
    if (__tsan_get_current_fiber != NULL) {
        Fiber->ThreadSanitizer = __tsan_get_current_fiber();
        HalpThreadRecord = HalpThreadRecord != NULL ? HalpThreadRecord : Fiber->ThreadSanitizer;
    }
}

/* The registers that HalpSwitchStack pops, so that it returns to HalpEnterFiber. */
static VOID HalpPrepareStack(PHAL_FIBER Fiber)
{
    ULONG_PTR *Words = (ULONG_PTR *)((PUCHAR)Fiber->Stack + Fiber->StackSize) - SAVED_WORDS;

    Words[WORD_OF_CONTEXT] = (ULONG_PTR)Fiber->StartContext;
    Words[WORD_OF_START] = (ULONG_PTR)Fiber->Start;
    Words[WORD_OF_RETURN] = (ULONG_PTR)HalpEnterFiber;
    Fiber->StackPointer = Words;
}

static BOOLEAN HalpPrepareContext(PHAL_FIBER Fiber)
{
    ucontext_t *Context = HalAllocate(sizeof(*Context), MEMORY_ALLOCATION_ALIGNMENT);

    if (Context == NULL || swapcontext == NULL || getcontext(Context) != 0) {
        HalFree(Context);
        return FALSE;
    }
    Context->uc_stack.ss_sp = Fiber->Stack;
    Context->uc_stack.ss_size = Fiber->StackSize;
    makecontext(Context, (void (*)(void))HalpEnterContext, 2, (unsigned)(ULONG_PTR)Fiber,
                (unsigned)((ULONG_PTR)Fiber >> 32));
    Fiber->Host = Context;
    return TRUE;
}

/* Sets up the initial stack. FALSE: no memory. */
static BOOLEAN HalpPrepareFiber(PHAL_FIBER Fiber)
{
    if (HalpHasShadowStack()) {
        HalpSwitchByContext = TRUE;
    }
    if (HalpSwitchByContext) {
        return HalpPrepareContext(Fiber);
    }
    HalpPrepareStack(Fiber);
    return TRUE;
}

NTSTATUS HalCreateFiber(PHAL_FIBER Fiber, SIZE_T StackSize, BOOLEAN SwitchFloat,
                        DECLSPEC_NORETURN VOID (*Start)(PVOID Context), PVOID Context)
{
    HALP_HOST_CALLS;
    SIZE_T Page = HalpPage();

    memset(Fiber, 0, sizeof(*Fiber));
    StackSize = StackSize == 0 ? DEFAULT_FIBER_STACK : StackSize;
    StackSize = StackSize < SMALLEST_FIBER_STACK ? SMALLEST_FIBER_STACK : StackSize;
    if (StackSize > MAXLONG_PTR) {
        return STATUS_NO_MEMORY;
    }
    Fiber->StackSize = (StackSize + Page - 1) / Page * Page;
    Fiber->Stack = HalpAllocateStack(Fiber->StackSize);
    if (Fiber->Stack == NULL) {
        return STATUS_NO_MEMORY;
    }
    Fiber->StackBottom = Fiber->Stack;
    Fiber->StackRoom = Fiber->StackSize;
    Fiber->SwitchFloat = SwitchFloat;
    Fiber->FloatControl = HalpReadFloatControl();
    Fiber->Start = Start;
    Fiber->StartContext = Context;
    if (!HalpPrepareFiber(Fiber)) {
        HalpFreeStack(Fiber);
        return STATUS_NO_MEMORY;
    }
    if (__tsan_create_fiber != NULL) {
        Fiber->ThreadSanitizer = __tsan_create_fiber(0);
    }
    return STATUS_SUCCESS;
}

VOID HalDeleteFiber(PHAL_FIBER Fiber)
{
    HALP_HOST_CALLS;

    HalFree(Fiber->Host);
    if (Fiber->Stack == NULL) {
        return; /* ThreadSanitizer's record of a thread goes with the thread */
    }
    if (__tsan_destroy_fiber != NULL && Fiber->ThreadSanitizer != NULL) {
        __tsan_destroy_fiber(Fiber->ThreadSanitizer);
    }
    HalpFreeStack(Fiber);
}

/* A host thread's own stack gets its context when it is first left. */
FORCEINLINE VOID HalpSwitchContext(PHAL_FIBER From, PHAL_FIBER To)
{
    if (From->Host == NULL) {
        From->Host = HalAllocate(sizeof(ucontext_t), MEMORY_ALLOCATION_ALIGNMENT);
    }
    if (From->Host == NULL) {
        HalPrint("interlock: no memory for the registers of a fiber\n");
        HalAbort();
    }
    swapcontext(From->Host, To->Host);
}

DECLSPEC_NOINLINE VOID HalSwitchFiber(PHAL_FIBER From, PHAL_FIBER To)
{
    if (From->SwitchFloat) {
        From->FloatControl = HalpReadFloatControl();
    }
    HalpAnnounceSwitch(From, To);
    if (HalpSwitchByContext) {
        HalpSwitchContext(From, To);
    } else {
        HalpSwitchStack(&From->StackPointer, To->StackPointer);
    }
}

BOOLEAN HalIsOnStack(const HAL_FIBER *Fiber)
{
    ULONG_PTR Here = (ULONG_PTR)__builtin_frame_address(0);

    return Fiber->Stack != NULL && Here - (ULONG_PTR)Fiber->Stack < Fiber->StackSize;
}

/* The registers of a thread that an interrupt has stopped. */

__thread PVOID HalInterruptFrame __attribute__((tls_model("initial-exec")));

#if defined(__x86_64__)

#define RED_ZONE 128
#define PART(Flag) ((Flag) & ~(ULONG)CONTEXT_AMD64)
#define FLOAT_BYTES sizeof(XMM_SAVE_AREA32)

/* Where the host has a register and where the context has it. */
static const struct {
    UCHAR Host;
    USHORT Offset;
} HalpIntegers[] = {
    {REG_RAX, FIELD_OFFSET(CONTEXT, Rax)}, {REG_RCX, FIELD_OFFSET(CONTEXT, Rcx)}, {REG_RDX, FIELD_OFFSET(CONTEXT, Rdx)},
    {REG_RBX, FIELD_OFFSET(CONTEXT, Rbx)}, {REG_RBP, FIELD_OFFSET(CONTEXT, Rbp)}, {REG_RSI, FIELD_OFFSET(CONTEXT, Rsi)},
    {REG_RDI, FIELD_OFFSET(CONTEXT, Rdi)}, {REG_R8, FIELD_OFFSET(CONTEXT, R8)},   {REG_R9, FIELD_OFFSET(CONTEXT, R9)},
    {REG_R10, FIELD_OFFSET(CONTEXT, R10)}, {REG_R11, FIELD_OFFSET(CONTEXT, R11)}, {REG_R12, FIELD_OFFSET(CONTEXT, R12)},
    {REG_R13, FIELD_OFFSET(CONTEXT, R13)}, {REG_R14, FIELD_OFFSET(CONTEXT, R14)}, {REG_R15, FIELD_OFFSET(CONTEXT, R15)},
};

/* Enters the function in R11. It has no caller: a return address of 0 ends stack traces and unwinding. The handler cannot
   store it, since its own frame is there. */
VOID HalpEnterFunction(VOID) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
        ".hidden HalpEnterFunction\n"
        ".globl HalpEnterFunction\n"
        ".type HalpEnterFunction, @function\n"
        "HalpEnterFunction:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    movq $0, (%rsp)\n"
        "    xorl %ebp, %ebp\n"
        "    jmp *%r11\n"
        "    .cfi_endproc\n"
        ".size HalpEnterFunction, . - HalpEnterFunction\n"
        ".popsection\n");

static NTSTATUS HalpReadRegisters(const ucontext_t *Host, PCONTEXT Context)
{
    const greg_t *Register = Host->uc_mcontext.gregs;

    if (Context->ContextFlags & PART(CONTEXT_CONTROL)) {
        Context->Rip = (ULONG64)Register[Register[REG_RIP] == (greg_t)HalpEnterFunction ? REG_R11 : REG_RIP];
        Context->Rsp = (ULONG64)Register[REG_RSP];
        Context->EFlags = (ULONG)Register[REG_EFL];
        Context->SegCs = (USHORT)Register[REG_CSGSFS];
        Context->SegSs = (USHORT)((ULONG64)Register[REG_CSGSFS] >> 48);
    }
    for (ULONG Index = 0; Context->ContextFlags & PART(CONTEXT_INTEGER) && Index < ARRAYSIZE(HalpIntegers); Index++) {
        *(PULONG64)((PUCHAR)Context + HalpIntegers[Index].Offset) = (ULONG64)Register[HalpIntegers[Index].Host];
    }
    if ((Context->ContextFlags & PART(CONTEXT_FLOATING_POINT)) && Host->uc_mcontext.fpregs != NULL) {
        memcpy(&Context->FltSave, Host->uc_mcontext.fpregs, FLOAT_BYTES);
        Context->MxCsr = Context->FltSave.MxCsr;
    }
    return STATUS_SUCCESS;
}

static ULONG64 HalpNewStackPointer(ULONG64 Rip, ULONG64 Rsp, const CONTEXT *New)
{
    BOOLEAN Enters = New->Rip != Rip && New->Rsp == Rsp;

    return Enters ? ((Rsp - RED_ZONE) & ~15ULL) - sizeof(PVOID) : New->Rsp;
}

static VOID HalpWriteControl(greg_t *Register, const CONTEXT *Context)
{
    ULONG64 Rsp = HalpNewStackPointer((ULONG64)Register[REG_RIP], (ULONG64)Register[REG_RSP], Context);

    if (Rsp != Context->Rsp) {
        Register[REG_R11] = (greg_t)Context->Rip;
        Register[REG_RIP] = (greg_t)HalpEnterFunction;
    } else {
        Register[REG_RIP] = (greg_t)Context->Rip;
    }
    Register[REG_RSP] = (greg_t)Rsp;
    Register[REG_EFL] = (greg_t)Context->EFlags;
}

static NTSTATUS HalpWriteRegisters(ucontext_t *Host, const CONTEXT *Context)
{
    greg_t *Register = Host->uc_mcontext.gregs;

    for (ULONG Index = 0; Context->ContextFlags & PART(CONTEXT_INTEGER) && Index < ARRAYSIZE(HalpIntegers); Index++) {
        Register[HalpIntegers[Index].Host] = (greg_t) *(const ULONG64 *)((const UCHAR *)Context + HalpIntegers[Index].Offset);
    }
    if (Context->ContextFlags & PART(CONTEXT_CONTROL)) {
        HalpWriteControl(Register, Context);
    }
    if ((Context->ContextFlags & PART(CONTEXT_FLOATING_POINT)) && Host->uc_mcontext.fpregs != NULL) {
        /* the area after the registers is the host's own */
        memcpy(Host->uc_mcontext.fpregs, &Context->FltSave, FIELD_OFFSET(XMM_SAVE_AREA32, Reserved4));
    }
    return STATUS_SUCCESS;
}

#endif

NTSTATUS HalReadFrame(PVOID Frame, PCONTEXT Context)
{
#if defined(__x86_64__)
    return HalpReadRegisters(Frame, Context);
#else
    UNREFERENCED_PARAMETER(Frame);
    UNREFERENCED_PARAMETER(Context);
    return STATUS_NOT_SUPPORTED;
#endif
}

NTSTATUS HalWriteFrame(PVOID Frame, const CONTEXT *Context)
{
#if defined(__x86_64__)
    return HalpWriteRegisters(Frame, Context);
#else
    UNREFERENCED_PARAMETER(Frame);
    UNREFERENCED_PARAMETER(Context);
    return STATUS_NOT_SUPPORTED;
#endif
}

VOID HalNotePlace(const CONTEXT *Context, PHAL_PLACE Place)
{
#if defined(__x86_64__)
    if (Context->ContextFlags & PART(CONTEXT_CONTROL)) {
        *Place = (HAL_PLACE){Context->Rip, Context->Rsp, FALSE};
    }
#else
    UNREFERENCED_PARAMETER(Context);
    UNREFERENCED_PARAMETER(Place);
#endif
}

NTSTATUS HalQueryPlace(const HAL_PLACE *Shown, const CONTEXT *New, PHAL_PLACE Place)
{
#if defined(__x86_64__)
    if ((New->ContextFlags & PART(CONTEXT_CONTROL)) == 0 || (New->Rip == Shown->Rip && New->Rsp == Shown->Rsp)) {
        return STATUS_NO_YIELD_PERFORMED;
    }
    *Place = (HAL_PLACE){New->Rip, HalpNewStackPointer(Shown->Rip, Shown->Rsp, New), New->Rsp == Shown->Rsp};
    return STATUS_SUCCESS;
#else
    UNREFERENCED_PARAMETER(Shown);
    UNREFERENCED_PARAMETER(New);
    UNREFERENCED_PARAMETER(Place);
    return STATUS_NOT_SUPPORTED;
#endif
}

VOID HalContinueAt(const HAL_PLACE *Place)
{
#if defined(__x86_64__)
    ULONG64 Rip = Place->Enters ? (ULONG64)(ULONG_PTR)HalpEnterFunction : Place->Rip;

    __asm__ volatile("movq %0, %%r11\n\tmovq %1, %%rsp\n\tjmp *%2"
                     :
                     : "r"(Place->Rip), "d"(Place->Rsp), "a"(Rip)
                     : "memory", "r11");
#else
    UNREFERENCED_PARAMETER(Place);
#endif
    __builtin_unreachable();
}
