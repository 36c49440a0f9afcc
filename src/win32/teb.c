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
    return Teb;
}
