/* context.c: the registers of a thread that an interrupt has stopped. */
#include "context.h"

#include "handler.h"

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
        /* the area behind the registers is the host's own */
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
