/* processkey.c: which process is which, over reused ids and exec. */
#include "halp.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH_SIZE 48

/*
 * The key of a process. Its start alone is not enough: a thread that calls exec ends all others, with whatever they were
 * doing, and leaves the start as it was. By the time the host shows the new program's addresses, the other threads have
 * ended.
 *
 *      62                38 37             22 21            0
 *     +--------------------+-----------------+---------------+
 *     |       start        |     program     |      id       |
 *     +--------------------+-----------------+---------------+
 *
 * program: a hash of where its code and its stack begin, 0 if the host does not say (the process is ending or must not be
 * read).
 */
#define PROGRAM_BITS 16
#define PROGRAM_MASK ((1ull << PROGRAM_BITS) - 1)
#define START_BITS (63 - HAL_PROCESS_ID_BITS - PROGRAM_BITS)
#define PROGRAM_SHIFT HAL_PROCESS_ID_BITS
#define START_SHIFT (PROGRAM_SHIFT + PROGRAM_BITS)

/* After the state, by their numbers in proc(5), less 4. */
enum { FieldThreads = 16, FieldStart = 18, FieldCodeBegin = 22, FieldCodeEnd = 23, FieldStack = 24, FieldsRead };

typedef struct _HALP_PROCESS_STATUS {
    char State;
    ULONG64 Field[FieldsRead];
} HALP_PROCESS_STATUS;

static BOOLEAN HalpReadProcessStatus(ULONG ProcessId, HALP_PROCESS_STATUS *Status)
{
    HALP_HOST_CALLS;
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    snprintf(Path, PATH_SIZE, "/proc/%u/stat", ProcessId);
    char *Text = HalpReadStatus(Path, Line, 0);
    if (Text == NULL) {
        return FALSE;
    }
    Status->State = Text[1];
    Text += 2;
    for (ULONG Field = 0; Field < FieldsRead; Field += 1) {
        Status->Field[Field] = strtoull(Text, &Text, 10);
    }
    return TRUE;
}

/* A first thread that has exited stays a zombie while others run. */
static BOOLEAN HalpHasEnded(const HALP_PROCESS_STATUS *Status)
{
    return Status->State == 'X' || Status->State == 'x' || (Status->State == 'Z' && Status->Field[FieldThreads] <= 1);
}

static ULONG64 HalpHashProgram(const HALP_PROCESS_STATUS *Status)
{
    ULONG64 Stack = Status->Field[FieldStack];
    ULONG64 Hash = (Stack ^ Status->Field[FieldCodeBegin] * 31 ^ Status->Field[FieldCodeEnd] * 17) * 0x9e3779b97f4a7c15ull;
    return Stack == 0 ? 0 : (Hash >> (64 - PROGRAM_BITS)) | 1;
}

ULONG64 HalQueryProcessKey(ULONG ProcessId)
{
    HALP_PROCESS_STATUS Status;
    if (ProcessId == 0 || ProcessId >> HAL_PROCESS_ID_BITS != 0 || !HalpReadProcessStatus(ProcessId, &Status) ||
        HalpHasEnded(&Status)) {
        return 0;
    }
    return (Status.Field[FieldStart] & ((1ull << START_BITS) - 1)) << START_SHIFT |
           HalpHashProgram(&Status) << PROGRAM_SHIFT | ProcessId;
}

BOOLEAN HalIsProcessAlive(ULONG64 Key)
{
    ULONG ProcessId = (ULONG)(Key & ((1ull << HAL_PROCESS_ID_BITS) - 1));
    ULONG64 Now = HalQueryProcessKey(ProcessId);
    if (Now == Key) {
        return Key != 0;
    }
    if (Now == 0) {
        HALP_PROCESS_STATUS Status;
        return HalpReadProcessStatus(ProcessId, &Status)
                   ? !HalpHasEnded(&Status)
                   : ProcessId != 0 && HalpCall(SYS_kill, (pid_t)ProcessId, 0) != -ESRCH;
    }
    return Now >> START_SHIFT == Key >> START_SHIFT &&
           ((Now >> PROGRAM_SHIFT & PROGRAM_MASK) == 0 || (Key >> PROGRAM_SHIFT & PROGRAM_MASK) == 0);
}

BOOLEAN HalIsProcessGone(ULONG64 Key)
{
    ULONG ProcessId = (ULONG)(Key & ((1ull << HAL_PROCESS_ID_BITS) - 1));
    return ProcessId == 0 || HalpCall(SYS_kill, (pid_t)ProcessId, 0) == -ESRCH ||
           (ProcessId == (ULONG)getpid() && !HalIsProcessAlive(Key));
}

ULONG64 HalKeyOfAnyProgram(ULONG64 Key)
{
    return Key & ~(PROGRAM_MASK << PROGRAM_SHIFT);
}
