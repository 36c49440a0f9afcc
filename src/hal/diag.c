/* diag.c: reports to standard error, and the end of the process. */
#include "halp.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HOST_UNWINDS 1
#endif

#define LONGEST_MESSAGE 1024
#define DEEPEST_STACK 64
#define FULL_PIPE_TIMEOUT_SECONDS 1

PCSTR HalGetEnvironment(PCSTR Name)
{
    return secure_getenv(Name);
}

static BOOLEAN HalpStandardErrorTakesMore(SSIZE_T Error)
{
    struct pollfd Output = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct timespec Timeout = {.tv_sec = FULL_PIPE_TIMEOUT_SECONDS};

    return Error == -EINTR || (Error == -EAGAIN && HalpCall(SYS_ppoll, &Output, 1, &Timeout, NULL, 0) > 0);
}

static VOID HalpWriteToStandardError(PCSTR Text, SIZE_T Length)
{
    while (Length != 0) {
        SSIZE_T Written = HalpWriteFile(STDERR_FILENO, Text, Length);

        if (Written > 0) {
            Text += Written;
            Length -= (SIZE_T)Written;
        } else if (Written == 0 || !HalpStandardErrorTakesMore(Written)) {
            return;
        }
    }
}

VOID HalPrint(PCSTR Format, ...)
{
    HALP_HOST_CALLS;
    CHAR Text[LONGEST_MESSAGE];
    va_list Arguments;
    int Length;

    va_start(Arguments, Format);
    Length = vsnprintf(Text, sizeof(Text), Format, Arguments);
    va_end(Arguments);
    if (Length >= (int)sizeof(Text)) {
        Length = sizeof(Text);
        memcpy(Text + sizeof(Text) - 4, "...\n", 4);
    }
    if (Length > 0) {
        HalpWriteToStandardError(Text, (SIZE_T)Length);
    }
}

#ifdef HOST_UNWINDS

static PCSTR HalpFileName(PCSTR Path)
{
    PCSTR Slash = strrchr(Path, '/');

    return Slash != NULL ? Slash + 1 : Path;
}

static VOID HalpPrintFrame(ULONG Number, PVOID Address)
{
    Dl_info Place;

    if (dladdr(Address, &Place) == 0 || Place.dli_fname == NULL) {
        HalPrint("  %2u  %p\n", Number, Address);
    } else if (Place.dli_sname == NULL) {
        HalPrint("  %2u  %p  %s+0x%lx\n", Number, Address, HalpFileName(Place.dli_fname),
                 (ULONG_PTR)Address - (ULONG_PTR)Place.dli_fbase);
    } else {
        HalPrint("  %2u  %p  %s!%s+0x%lx\n", Number, Address, HalpFileName(Place.dli_fname), Place.dli_sname,
                 (ULONG_PTR)Address - (ULONG_PTR)Place.dli_saddr);
    }
}

/* The first use of the unwinder loads it, which must not happen in a signal handler or without memory. */
VOID HalpInitializeStackTrace(VOID)
{
    PVOID Frame;

    backtrace(&Frame, 1);
}

DECLSPEC_NOINLINE VOID HalPrintStackTrace(ULONG FramesToSkip)
{
    HALP_HOST_CALLS;
    PVOID Frames[DEEPEST_STACK];
    int Depth = backtrace(Frames, DEEPEST_STACK);
    int First = FramesToSkip < DEEPEST_STACK ? (int)FramesToSkip + 1 : DEEPEST_STACK;
    int Frame;

    for (Frame = First; Frame < Depth; Frame++) {
        HalpPrintFrame((ULONG)(Frame - First), Frames[Frame]);
    }
}

#else

VOID HalpInitializeStackTrace(VOID)
{
}

VOID HalPrintStackTrace(ULONG FramesToSkip)
{
    (VOID)FramesToSkip;
    HalPrint("  (this host offers no stack trace)\n");
}

#endif

VOID HalAbort(VOID)
{
    abort();
}
