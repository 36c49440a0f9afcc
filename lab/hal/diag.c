/* diag.c: a report of the library becomes the verdict of the schedule. */
#include "labhal.h"

#include "ke/ki.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PCSTR HalGetEnvironment(PCSTR Name)
{
    return getenv(Name);
}

PCSTR HalTakeEnvironment(PCSTR Name)
{
    PCSTR Value = getenv(Name);
    unsetenv(Name);
    return Value;
}

static PSTR LabhalCapture;
static SIZE_T LabhalCaptureSize;

/* One thread runs at a time, and it prints without a switch. */
VOID HalCapturePrint(PSTR Buffer, SIZE_T Size)
{
    LabhalCapture = Buffer;
    LabhalCaptureSize = Size;
    if (Buffer != NULL) {
        Buffer[0] = '\0';
    }
}

VOID HalPrint(PCSTR Format, ...)
{
    va_list Arguments;

    va_start(Arguments, Format);
    if (LabhalCapture != NULL) {
        SIZE_T Used = strlen(LabhalCapture);
        vsnprintf(LabhalCapture + Used, LabhalCaptureSize - Used, Format, Arguments);
    } else if (lab->running || lab->preparing) {
        size_t Room = sizeof(lab->printed) - lab->printed_length;
        int Length = vsnprintf(lab->printed + lab->printed_length, Room, Format, Arguments);
        lab->printed_length += Length > 0 && (size_t)Length < Room ? (size_t)Length : 0;
    } else {
        vfprintf(stderr, Format, Arguments);
    }
    va_end(Arguments);
}

/* Follows the chain of frame pointers. */
VOID HalPrintStackTrace(PVOID Caller)
{
    uintptr_t *Frame = __builtin_frame_address(0);
    lab_thread *Thread = lab->current;

    while (Thread != NULL && (char *)Frame >= Thread->stack && (char *)Frame < Thread->stack + STACK_SIZE - 16 &&
           Frame[1] != 0) {
        char Place[64];
        if (Caller == NULL || Frame[1] == (uintptr_t)Caller) {
            Caller = NULL;
            lab_report_place(Frame[1], Place, sizeof(Place));
            HalPrint("      %s\n", Place);
        }
        Frame = (uintptr_t *)Frame[0];
    }
}

ULONG HalCaptureStack(ULONG FramesToSkip, PULONG64 Frames, ULONG Count)
{
    uintptr_t *Frame = __builtin_frame_address(0);
    lab_thread *Thread = lab->current;
    ULONG Found = 0;

    while (Thread != NULL && (char *)Frame >= Thread->stack && (char *)Frame < Thread->stack + STACK_SIZE - 16 &&
           Frame[1] != 0 && Found < Count) {
        if (FramesToSkip != 0) {
            FramesToSkip -= 1;
        } else {
            Frames[Found++] = Frame[1];
        }
        Frame = (uintptr_t *)Frame[0];
    }
    return Found;
}

VOID HalPrintCallers(const ULONG64 *Frames, ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        char Place[64];
        lab_report_place(Frames[Index], Place, sizeof(Place));
        HalPrint("      %s\n", Place);
    }
}

BOOLEAN HalQueryAddressName(ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    return lab_describe_address(Address, Buffer, Size);
}

BOOLEAN HalQueryReturnAddressName(ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    lab_report_place(Address, Buffer, Size);
    return TRUE;
}

VOID HalAbort(VOID)
{
    if (!lab->running && !lab->preparing) {
        abort();
    }
    lab_sched_fail(VERDICT_BUGCHECK, 0, "\n%s", lab->printed);
}

typedef struct _LABHAL_FIELD {
    size_t Offset;
    size_t Size;
    PCSTR Name;
} LABHAL_FIELD;

#define LABHAL_FIELD_ENTRY(Name)                                                                                       \
    {                                                                                                                  \
        offsetof(struct _KTHREAD, Name), sizeof(((struct _KTHREAD *)0)->Name), #Name                                   \
    }

/* The fields that traces show most often. */
static const LABHAL_FIELD LabhalThreadFields[] = {
    LABHAL_FIELD_ENTRY(Header),       LABHAL_FIELD_ENTRY(WaitRegister), LABHAL_FIELD_ENTRY(WakeWord),
    LABHAL_FIELD_ENTRY(WaitStatus),   LABHAL_FIELD_ENTRY(WaitBlock),    LABHAL_FIELD_ENTRY(State),
    LABHAL_FIELD_ENTRY(WaitReason),   LABHAL_FIELD_ENTRY(Irql),         LABHAL_FIELD_ENTRY(DispatcherDepth),
    LABHAL_FIELD_ENTRY(ApcQueueLock), LABHAL_FIELD_ENTRY(ThreadLock),   LABHAL_FIELD_ENTRY(SuspendLock),
    LABHAL_FIELD_ENTRY(SuspendEvent), LABHAL_FIELD_ENTRY(Priority),     LABHAL_FIELD_ENTRY(QueueLock),
    LABHAL_FIELD_ENTRY(ThreadId),     LABHAL_FIELD_ENTRY(Timer),        LABHAL_FIELD_ENTRY(WakerProcessor),
};

static VOID LabhalDescribeField(ULONG Number, size_t Offset, char *Buffer, size_t Size)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(LabhalThreadFields); Index += 1) {
        const LABHAL_FIELD *Field = &LabhalThreadFields[Index];
        if (Offset >= Field->Offset && Offset < Field->Offset + Field->Size) {
            snprintf(Buffer, Size, Offset == Field->Offset ? "%c.%s" : "%c.%s+%zu", (char)('a' + Number), Field->Name,
                     Offset - Field->Offset);
            return;
        }
    }
    snprintf(Buffer, Size, "%c.KTHREAD+%#zx", (char)('a' + Number), Offset);
}

bool lab_describe_address(uintptr_t Address, char *Buffer, size_t Size)
{
    for (ULONG Index = 0; Index < lab->run.thread_count; Index += 1) {
        uintptr_t Object = (uintptr_t)LabhalThreadObject(&lab->run.threads[Index]);
        if (Object != 0 && Address >= Object && Address < Object + sizeof(struct _KTHREAD)) {
            LabhalDescribeField(Index, Address - Object, Buffer, Size);
            return true;
        }
    }
    return false;
}

/* A breakpoint of the code under test is a failure like any raised status, even if a debugger is attached to the explorer. */
BOOLEAN HalIsDebuggerPresent(VOID)
{
    return FALSE;
}

VOID HalBreakIntoDebugger(VOID)
{
    __builtin_trap();
}
