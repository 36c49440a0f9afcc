/* debugger.c: whether somebody traces this process, and stopping for it. */
#include "halp.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* The first two kilobytes hold all lines that come before the one that is looked for. */
#define STATUS_BYTES 2048

BOOLEAN HalIsDebuggerPresent(VOID)
{
    HALP_HOST_CALLS;
    CHAR Text[STATUS_BYTES];
    PCSTR Tracer = NULL;
    int File = HalpOpenFile("/proc/self/status", O_RDONLY);
    SSIZE_T Length;

    if (File >= 0) {
        Length = HalpReadFile(File, Text, sizeof(Text) - 1);
        HalCloseDescriptor(File);
        Text[Length > 0 ? Length : 0] = 0;
        Tracer = strstr(Text, "\nTracerPid:");
    }
    return Tracer != NULL && strtol(Tracer + strlen("\nTracerPid:"), NULL, 10) != 0;
}

VOID HalBreakIntoDebugger(VOID)
{
    raise(SIGTRAP);
}
