/* diag.c: a report of the library becomes the verdict of the schedule. */
#include "labhal.h"

#include "ke/ki.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

PCSTR HalGetEnvironment(PCSTR Name)
{
    return getenv(Name);
}

VOID HalPrint(PCSTR Format, ...)
{
    va_list Arguments;

    va_start(Arguments, Format);
    if (lab->running) {
        size_t Room = sizeof(lab->printed) - lab->printed_length;
        int Length = vsnprintf(lab->printed + lab->printed_length, Room, Format, Arguments);
        lab->printed_length += Length > 0 && (size_t)Length < Room ? (size_t)Length : 0;
    } else {
        vfprintf(stderr, Format, Arguments);
    }
    va_end(Arguments);
}

/* By the chain of frame pointers. */
VOID HalPrintStackTrace(ULONG FramesToSkip)
{
    uintptr_t *Frame = __builtin_frame_address(0);
    lab_thread *Thread = lab->current;

    while (Thread != NULL && (char *)Frame >= Thread->stack && (char *)Frame < Thread->stack + STACK_SIZE - 16 &&
           Frame[1] != 0) {
        char Place[64];
        if (FramesToSkip != 0) {
            FramesToSkip -= 1;
        } else {
            lab_report_place(Frame[1], Place, sizeof(Place));
            HalPrint("      %s\n", Place);
        }
        Frame = (uintptr_t *)Frame[0];
    }
}

VOID HalAbort(VOID)
{
    if (!lab->running) {
        abort();
    }
    lab_sched_fail(VERDICT_BUGCHECK, 0, "\n%s", lab->printed);
}

/* What the thread waits for, as the library sees it. */
bool lab_describe_wait(lab_thread *Thread, char *Buffer, size_t Size, bool *Satisfied)
{
    struct _KTHREAD *Object;
    size_t Used = 0;

    memcpy(&Object, Thread->tls + ((char *)&HalCurrentThread - lab->tls), sizeof(Object));
    if (Object == NULL || Thread->op.address != (uintptr_t)&Object->WakeWord || !(Object->WaitRegister & KI_WAIT_ACTIVE)) {
        return false;
    }
    for (ULONG Index = 0; Index < Object->WaitBlockCount && Used + 100 < Size; Index += 1) {
        PKWAIT_BLOCK Block = &Object->WaitBlockList[Index];
        PDISPATCHER_HEADER Header = Block->Object;
        char Symbol[64];

        lab_report_symbol((uintptr_t)Header, Symbol, sizeof(Symbol));
        Used += (size_t)snprintf(Buffer + Used, Size - Used, "%s%s (SignalState %d)", Index == 0 ? "waits for " : ", ",
                                 Symbol, Header->SignalState);
        *Satisfied |= Block->WaitType == WaitAny && Header->SignalState > 0;
    }
    return true;
}
