/* diag.c: reports on standard error, stack traces, the debugger, and the end of the process. */
#include "halp.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HOST_UNWINDS 1
#endif

#define LONGEST_MESSAGE 1024
#define LONGEST_ADDRESS_NAME 512
#define DEEPEST_STACK 64
#define FULL_PIPE_TIMEOUT_SECONDS 1
#define STATUS_BYTES 2048 /* of /proc/self/status: more than precedes TracerPid */

PCSTR HalGetEnvironment(PCSTR Name)
{
    return secure_getenv(Name);
}

PCSTR HalTakeEnvironment(PCSTR Name)
{
    PCSTR Value = secure_getenv(Name);
    if (getenv(Name) != NULL) {
        unsetenv(Name); /* the text itself stays where the host put it */
    }
    return Value;
}

VOID HalPrint(PCSTR Format, ...)
{
    HALP_HOST_CALLS;
    CHAR Text[LONGEST_MESSAGE];
    PCSTR Rest = Text;
    va_list Arguments;
    int Length;

    va_start(Arguments, Format);
    Length = vsnprintf(Text, sizeof(Text), Format, Arguments);
    va_end(Arguments);
    if (Length >= (int)sizeof(Text)) {
        Length = sizeof(Text);
        memcpy(Text + sizeof(Text) - 4, "...\n", 4);
    }
    while (Length > 0) {
        SSIZE_T Written = HalpWriteFile(STDERR_FILENO, Rest, (SIZE_T)Length);
        if (Written == -EAGAIN) {
            struct pollfd Output = {.fd = STDERR_FILENO, .events = POLLOUT};
            struct timespec Timeout = {.tv_sec = FULL_PIPE_TIMEOUT_SECONDS};
            Written = HalpCall(SYS_ppoll, &Output, 1, &Timeout, NULL, 0) > 0 ? -EINTR : 0;
        }
        if (Written > 0) {
            Rest += Written;
            Length -= (int)Written;
        } else if (Written != -EINTR) {
            return;
        }
    }
}

/* 0: this host has no unwinder. Inline, so that it is no frame of its own in any build. */
FORCEINLINE ULONG HalpUnwind(PVOID *Frames, ULONG Count)
{
#ifdef HOST_UNWINDS
    return (ULONG)backtrace(Frames, (int)Count);
#else
    UNREFERENCED_PARAMETER(Frames);
    UNREFERENCED_PARAMETER(Count);
    return 0;
#endif
}

/* The first use loads the unwinder, which must not happen in a signal handler or without memory. */
VOID HalpInitializeStackTrace(VOID)
{
    PVOID Frame;

    HalpUnwind(&Frame, 1);
}

DECLSPEC_NOINLINE ULONG HalCaptureStack(ULONG FramesToSkip, PULONG64 Frames, ULONG Count)
{
    HALP_HOST_CALLS;
    PVOID Found[DEEPEST_STACK];
    ULONG Skip = FramesToSkip < DEEPEST_STACK ? FramesToSkip + 1 : DEEPEST_STACK;
    ULONG Depth = HalpUnwind(Found, Count + Skip < DEEPEST_STACK ? Count + Skip : DEEPEST_STACK);
    ULONG Frame;

    for (Frame = 0; Frame + Skip < Depth; Frame++) {
        Frames[Frame] = (ULONG64)Found[Frame + Skip];
    }
    return Frame;
}

BOOLEAN HalQueryAddressName(ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;
    Dl_info Place;
    PCSTR File;

    if (dladdr((PVOID)Address, &Place) == 0 || Place.dli_fname == NULL) {
        return FALSE;
    }
    File = strrchr(Place.dli_fname, '/');
    File = File != NULL ? File + 1 : Place.dli_fname;
    if (Place.dli_sname == NULL) {
        snprintf(Buffer, Size, "%s+0x%lx", File, (ULONG_PTR)Address - (ULONG_PTR)Place.dli_fbase);
    } else if ((ULONG_PTR)Place.dli_saddr == Address) {
        snprintf(Buffer, Size, "%s!%s", File, Place.dli_sname);
    } else {
        snprintf(Buffer, Size, "%s!%s+0x%lx", File, Place.dli_sname, (ULONG_PTR)Address - (ULONG_PTR)Place.dli_saddr);
    }
    return TRUE;
}

VOID HalPrintFrames(const ULONG64 *Frames, ULONG Count)
{
    for (ULONG Frame = 0; Frame < Count; Frame++) {
        CHAR Name[LONGEST_ADDRESS_NAME] = "";
        HalQueryAddressName(Frames[Frame], Name, sizeof(Name));
        HalPrint("  %2u  %p%s%s\n", Frame, (PVOID)Frames[Frame], Name[0] != '\0' ? "  " : "", Name);
    }
}

DECLSPEC_NOINLINE VOID HalPrintStackTrace(ULONG FramesToSkip)
{
    ULONG64 Frames[DEEPEST_STACK];
    ULONG Skip = FramesToSkip < DEEPEST_STACK ? FramesToSkip + 1 : DEEPEST_STACK;
    ULONG Depth = HalCaptureStack(Skip, Frames, DEEPEST_STACK);
    PVOID Innermost;

    HalPrintFrames(Frames, Depth);
    if (HalpUnwind(&Innermost, 1) == 0) {
        HalPrint("  (no stack trace on this host)\n");
    }
}

BOOLEAN HalIsDebuggerPresent(VOID)
{
    HALP_HOST_CALLS;
    CHAR Text[STATUS_BYTES];
    PCSTR Tracer = NULL;
    int File = HalpOpenFile("/proc/self/status", O_RDONLY);

    if (File >= 0) {
        SSIZE_T Length = HalpReadFile(File, Text, sizeof(Text) - 1);
        HalCloseDescriptor(File);
        Text[Length > 0 ? Length : 0] = '\0';
        Tracer = strstr(Text, "\nTracerPid:");
    }
    return Tracer != NULL && strtol(Tracer + strlen("\nTracerPid:"), NULL, 10) != 0;
}

VOID HalBreakIntoDebugger(VOID)
{
    raise(SIGTRAP);
}

VOID HalAbort(VOID)
{
    abort();
}
