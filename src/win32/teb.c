/* teb.c: a thread's view of itself. */
#include <interlock/rtl.h>
#include <interlock/win32/schedule.h>
#include <interlock/win32/thread.h>

#include "../hal/hal.h"
#include "../rtl/teb.h"

PTEB NtCurrentTeb(VOID)
{
    PTEB Teb = RtlpCurrentTeb();
    Teb->NtTib.Self = &Teb->NtTib;
    Teb->ClientId.UniqueProcess = ULongToHandle(KiInitialProcess.ProcessId); /* changes after a fork */
    Teb->ClientId.UniqueThread = ULongToHandle(HalCurrentThreadId());
    /* queried again only if the stack has changed: a fiber's, or the thread's own */
    ULONG_PTR Here = (ULONG_PTR)__builtin_frame_address(0);
    if (Here < (ULONG_PTR)Teb->NtTib.StackLimit || Here >= (ULONG_PTR)Teb->NtTib.StackBase) {
        GetCurrentThreadStackLimits((PULONG_PTR)&Teb->NtTib.StackLimit, (PULONG_PTR)&Teb->NtTib.StackBase);
    }
    return Teb;
}
