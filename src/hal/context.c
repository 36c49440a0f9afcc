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

static NTSTATUS HalpReadRegisters(const ucontext_t *Host, PCONTEXT Context)
{
    const greg_t *Register = Host->uc_mcontext.gregs;

    if (Context->ContextFlags & PART(CONTEXT_CONTROL)) {
        Context->Rip = (ULONG64)Register[REG_RIP];
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

    Register[REG_RIP] = (greg_t)Context->Rip;
    Register[REG_RSP] = (greg_t)Rsp;
    Register[REG_EFL] = (greg_t)Context->EFlags;
}

static NTSTATUS HalpWriteRegisters(ucontext_t *Host, const CONTEXT *Context)
{
    greg_t *Register = Host->uc_mcontext.gregs;

    if (Context->ContextFlags & PART(CONTEXT_CONTROL)) {
        HalpWriteControl(Register, Context);
    }
    for (ULONG Index = 0; Context->ContextFlags & PART(CONTEXT_INTEGER) && Index < ARRAYSIZE(HalpIntegers); Index++) {
        Register[HalpIntegers[Index].Host] = (greg_t) *(const ULONG64 *)((const UCHAR *)Context + HalpIntegers[Index].Offset);
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

BOOLEAN HalQueryPlace(const CONTEXT *Now, const CONTEXT *New, PHAL_PLACE Place)
{
#if defined(__x86_64__)
    if ((New->ContextFlags & PART(CONTEXT_CONTROL)) == 0 || (New->Rip == Now->Rip && New->Rsp == Now->Rsp)) {
        return FALSE;
    }
    *Place = (HAL_PLACE){New->Rip, HalpNewStackPointer(Now->Rip, Now->Rsp, New), New->Rsp == Now->Rsp};
    return TRUE;
#else
    UNREFERENCED_PARAMETER(Now);
    UNREFERENCED_PARAMETER(New);
    UNREFERENCED_PARAMETER(Place);
    return FALSE;
#endif
}

/* A function that is entered has no caller: a return address of 0 ends stack traces and unwinding. */
VOID HalContinueAt(const HAL_PLACE *Place)
{
#if defined(__x86_64__)
    if (Place->Enters) {
        __asm__ volatile("movq %1, %%rsp\n\tmovq $0, (%%rsp)\n\txorl %%ebp, %%ebp\n\tjmp *%0"
                         :
                         : "a"(Place->Rip), "d"(Place->Rsp)
                         : "memory");
    } else {
        __asm__ volatile("movq %1, %%rsp\n\tjmp *%0" : : "a"(Place->Rip), "d"(Place->Rsp) : "memory");
    }
#else
    UNREFERENCED_PARAMETER(Place);
#endif
    __builtin_unreachable();
}
