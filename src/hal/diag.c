/* diag.c: reports on standard error, stack traces, the debugger, and the end of the process. */
#include "halp.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The text that a thread keeps instead of writing it. */
HALP_THREAD_LOCAL PSTR HalpCapture;
HALP_THREAD_LOCAL SIZE_T HalpCaptureSize;

VOID HalCapturePrint(PSTR Buffer, SIZE_T Size)
{
    HalpCapture = Buffer;
    HalpCaptureSize = Size;
    if (Buffer != NULL) {
        Buffer[0] = '\0';
    }
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
    if (HalpCapture != NULL) {
        SIZE_T Used = strlen(HalpCapture);

        Text[Length > 0 && Length < (int)sizeof(Text) ? Length : (int)sizeof(Text) - 1] = '\0';
        snprintf(HalpCapture + Used, HalpCaptureSize - Used, "%s", Text);
        return;
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

/* 0: this host has no unwinder. Inline, so that it adds no frame in any build. */
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

/* The first use loads the unwinder, which must not happen in a signal handler, without memory, or in an allocator of the
   program that calls the library. Until then there are no stacks. */
static BOOLEAN HalpHasUnwinder;

VOID HalpInitializeStackTrace(VOID)
{
    PVOID Frame;

    HalpUnwind(&Frame, 1);
    __atomic_store_n(&HalpHasUnwinder, TRUE, __ATOMIC_RELEASE); /* release: pairs with the acquire in HalCaptureStack */
}

DECLSPEC_NOINLINE ULONG HalCaptureStack(ULONG FramesToSkip, PULONG64 Frames, ULONG Count)
{
    HALP_HOST_CALLS;
    PVOID Found[DEEPEST_STACK];
    if (!__atomic_load_n(&HalpHasUnwinder, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    ULONG Skip = FramesToSkip < DEEPEST_STACK ? FramesToSkip + 1 : DEEPEST_STACK;
    ULONG Depth = HalpUnwind(Found, Count + Skip < DEEPEST_STACK ? Count + Skip : DEEPEST_STACK);
    ULONG Frame;

    for (Frame = 0; Frame + Skip < Depth; Frame++) {
        Frames[Frame] = (ULONG64)Found[Frame + Skip];
    }
    return Frame;
}

/* How many frames a sanitizer or the compiler puts before the caller varies, so the caller is searched for. */
VOID HalPrintStackTrace(PVOID Caller)
{
    ULONG64 Frames[DEEPEST_STACK];
    ULONG Depth = HalCaptureStack(0, Frames, DEEPEST_STACK);
    ULONG First = 0;

    while (Caller != NULL && First < Depth && Frames[First] != (ULONG64)Caller) {
        First += 1;
    }
    First = First < Depth ? First : 0;
    HalPrintCallers(Frames + First, Depth - First);
    if (Depth == 0) {
        HalPrint("  (no stack trace on this host)\n");
    }
}

VOID HalPrintCallers(const ULONG64 *Frames, ULONG Count)
{
    ULONG First = HalCountInternalFrames(Frames, Count);

    for (ULONG Frame = First; Frame < Count; Frame++) {
        CHAR Name[LONGEST_ADDRESS_NAME] = "";
        HalQueryReturnAddressName(Frames[Frame], Name, sizeof(Name));
        HalPrint("  %2u  %p%s%s\n", Frame - First, (PVOID)Frames[Frame], Name[0] != '\0' ? "  " : "", Name);
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
