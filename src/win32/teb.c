/* teb.c: what a thread sees of itself. */
#include <interlock/rtl.h>
#include <interlock/win32/thread.h>

#include "../hal/hal.h"
#include "../rtl/teb.h"

PTEB NtCurrentTeb(VOID)
{
    PTEB Teb = RtlpCurrentTeb();
    Teb->NtTib.Self = &Teb->NtTib;
    Teb->ClientId.UniqueProcess = ULongToHandle(KiInitialProcess.ProcessId); /* another one after a fork */
    Teb->ClientId.UniqueThread = ULongToHandle(HalCurrentThreadId());
    /* asked again only on another stack than last time: that of a fiber, or the thread's own */
    ULONG_PTR Here = (ULONG_PTR)__builtin_frame_address(0);
    if (Here < (ULONG_PTR)Teb->NtTib.StackLimit || Here >= (ULONG_PTR)Teb->NtTib.StackBase) {
        GetCurrentThreadStackLimits((PULONG_PTR)&Teb->NtTib.StackLimit, (PULONG_PTR)&Teb->NtTib.StackBase);
    }
    return Teb;
}
