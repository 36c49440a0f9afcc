/* recording.c: opens the files that settings request, and finishes them when the process ends. */
#include "tracep.h"

#include <stdio.h>

#include "../ke/debugdata.h"

#define TRACE_DEFAULT_LIMIT 32 /* in megabytes */
#define TRACE_RAW ".trace"     /* a file with this ending is not converted; `interlock trace` reads it */
#define TRACE_BUFFER 65536

ULONG TraceActive;
TRACE_RECORDING TraceRecording[] = {
    [TraceEvents] = {.Setting = "INTERLOCK_TRACE"},
    [TraceContention] = {.Setting = "INTERLOCK_CONTENTION"},
};

KD_REGISTER_ROOT(TraceActive);
KD_REGISTER_ROOT(TraceRecording);
KD_REGISTER_LAYOUT(TraceRecordingLayout, TRACE_RECORDING_LAYOUT);

/* Beginning. */

/* Puts the process id where the pattern has %p, else, if Always, before its last dot. */
static VOID TracepExpandPattern(PCSTR Pattern, BOOLEAN Always, PSTR Path, SIZE_T Size)
{
    PCSTR Place = strstr(Pattern, "%p");
    PCSTR Rest = Place != NULL ? Place + 2 : NULL;
    PCSTR Slash = strrchr(Pattern, '/');
    if (Place == NULL && !Always) {
        snprintf(Path, Size, "%s", Pattern);
        return;
    }
    if (Place == NULL) {
        Place = strrchr(Pattern, '.');
        Place = Place != NULL && (Slash == NULL || Place > Slash) ? Place : Pattern + strlen(Pattern);
        Rest = Place;
    }
    snprintf(Path, Size, "%.*s%s%u%s", (int)(Place - Pattern), Pattern, Rest == Place ? "." : "", HalCurrentProcessId(),
             Rest);
}

/* The path of the recording itself, which must be a regular file. */
static BOOLEAN TracepFindRawFile(PTRACE_RECORDING Recording, HAL_FILE_PROBLEM *Problem)
{
    static HAL_OUTPUT Raw;
    SIZE_T Length = strlen(Recording->Output.Path);
    if (Length + sizeof(TRACE_RAW) > sizeof(Recording->Path)) {
        Problem->Text = "the name is too long";
        return FALSE;
    }
    memcpy(Recording->Path, Recording->Output.Path, Length);
    memcpy(Recording->Path + Length, TRACE_RAW, sizeof(TRACE_RAW));
    if (!HalFindOutput(Recording->Path, &Raw, Problem)) {
        return FALSE;
    }
    memcpy(Recording->Path, Raw.Path, sizeof(Recording->Path));
    HalDiscardOutput(&Raw);
    Problem->Text = "it is not a regular file";
    return !Raw.Stream;
}

static BOOLEAN TracepTryCreate(PTRACE_RECORDING Recording, TRACE_CONTENT Content, BOOLEAN WithId,
                                    HAL_FILE_PROBLEM *Problem)
{
    PSTR Path = Recording->Path;
    SIZE_T Length;
    *Problem = (HAL_FILE_PROBLEM){0};
    TracepExpandPattern(Recording->Pattern, WithId, Path, sizeof(Recording->Path));
    Length = strlen(Path);
    Recording->Convert = Content == TraceEvents &&
                         (Length < strlen(TRACE_RAW) || strcmp(Path + Length - strlen(TRACE_RAW), TRACE_RAW) != 0);
    if (!HalFindOutput(Path, &Recording->Output, Problem)) {
        return FALSE;
    }
    if (Recording->Output.Stream) {
        Path[0] = '\0';
    } else if (!Recording->Convert) {
        memcpy(Path, Recording->Output.Path, sizeof(Recording->Path));
    } else if (!TracepFindRawFile(Recording, Problem)) {
        return FALSE;
    }
    Recording->File = HalCreateMappedFile(Path[0] != '\0' ? Path : NULL, Recording->Size, &Recording->Open, Problem);
    if (Recording->File == NULL) {
        HalDiscardOutput(&Recording->Output);
    }
    return Recording->File != NULL;
}

static BOOLEAN TracepCreateInMemory(PTRACE_RECORDING Recording, HAL_FILE_PROBLEM *Problem)
{
    *Problem = (HAL_FILE_PROBLEM){0};
    Recording->File = HalCreateMappedFile(NULL, Recording->Size, &Recording->Open, Problem);
    return Recording->File != NULL;
}

static BOOLEAN TracepCreateFile(PTRACE_RECORDING Recording, TRACE_CONTENT Content, BOOLEAN WithId)
{
    HAL_FILE_PROBLEM Problem;
    BOOLEAN Created = Recording->Pattern[0] == '\0'
                          ? TracepCreateInMemory(Recording, &Problem)
                          : TracepTryCreate(Recording, Content, WithId, &Problem) ||
                                (Problem.InUse && TracepTryCreate(Recording, Content, TRUE, &Problem));
    if (!Created) {
        HalPrint("interlock: %s: cannot write %s: %s; nothing is recorded\n", Recording->Setting,
                 Recording->Path[0] != '\0' ? Recording->Path : Recording->Output.Path, Problem.Text);
    }
    return Created;
}

static VOID TracepCreate(TRACE_CONTENT Content, BOOLEAN WithId)
{
    PTRACE_RECORDING Recording = &TraceRecording[Content];
    if (Recording->File == NULL && !TracepCreateFile(Recording, Content, WithId)) {
        return;
    }
    PTRACE_FILE File = Recording->File;
    Recording->Beginnings += 1;
    if (Content == TraceContention && Recording->Beginnings > 1) {
        TracepForgetContention(File);
    }
    File->Content = Content;
    File->ProcessId = HalCurrentProcessId();
    File->Start = HalQueryNanoseconds();
    File->End = 0;
    File->Units = (ULONG)((Recording->Size - sizeof(*File)) / TraceUnitSize(Content));
    HalQueryProgramName(File->Program, sizeof(File->Program));
    File->ModulesLength = HalQueryModules(File->Modules, sizeof(File->Modules));
    /* release: pairs with the acquire of a debugger, which finds the head complete */
    __atomic_store_n(&File->Magic, TRACE_MAGIC, __ATOMIC_RELEASE);
    if ((__atomic_load_n(&TraceActive, __ATOMIC_RELAXED) & TRACE_CONTENTS) == 0) {
        TracepForgetWaiters();
    }
    __atomic_fetch_or(&TraceActive, 1u << Content, __ATOMIC_RELEASE); /* release: threads find the file */
}

static VOID TracepReadSetting(TRACE_CONTENT Content, PCSTR Default, SIZE_T Size)
{
    PTRACE_RECORDING Recording = &TraceRecording[Content];
    PCSTR Path = HalGetEnvironment(Recording->Setting);
    if (Path == NULL || Path[0] == '\0' || strcmp(Path, "0") == 0) {
        return;
    }
    if (!HalMakeAbsolutePath(strcmp(Path, "1") == 0 ? Default : Path, Recording->Pattern, sizeof(Recording->Pattern))) {
        HalPrint("interlock: %s: the name is too long; nothing is recorded\n", Recording->Setting);
        return;
    }
    Recording->Size = sizeof(TRACE_FILE) + Size;
    TracepCreate(Content, FALSE);
}

VOID TraceInitialize(VOID)
{
    SIZE_T Limit = KiReadSetting("INTERLOCK_TRACE_LIMIT", 1, 4096, TRACE_DEFAULT_LIMIT);
    TracepReadSetting(TraceEvents, "interlock-%p.json", Limit << 20);
    TracepReadSetting(TraceContention, "interlock-%p.contention",
                           TRACE_CONTENTION_ENTRIES * sizeof(TRACE_CONTENTION_ENTRY));
}

/* Not in an interrupt of the host, which may have interrupted the host's allocator. */
DECLSPEC_NOINLINE ULONG TracepBeginPostponed(VOID)
{
    if (KiCurrentThread()->HostInterrupts != 0) {
        return __atomic_load_n(&TraceActive, __ATOMIC_ACQUIRE);
    }
    ULONG Active = __atomic_fetch_and(&TraceActive, TRACE_CONTENTS, __ATOMIC_RELAXED);
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(TraceRecording); Content++) {
        if (Active & (1u << (TRACE_POSTPONED + Content))) {
            TracepCreate((TRACE_CONTENT)Content, TRUE);
        }
    }
    return __atomic_load_n(&TraceActive, __ATOMIC_ACQUIRE);
}

/* The parent continues in its file; the child keeps nothing of it. */
VOID TraceForkChild(VOID)
{
    ULONG Active = __atomic_exchange_n(&TraceActive, 0, __ATOMIC_RELAXED);
    BOOLEAN Recorded = Active != 0;
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(TraceRecording); Content++) {
        PTRACE_RECORDING Recording = &TraceRecording[Content];
        if (Recording->File != NULL) {
            HalUnmapFile(Recording->File, Recording->Size, &Recording->Open);
            Recording->File = NULL;
            Recorded = TRUE;
        }
        /* A child has no stream of its own, and no debugger has requested it. */
        if (Recording->Output.Stream) {
            HalDiscardOutput(&Recording->Output);
            Active &= ~(1u << Content);
        } else if (Recording->Pattern[0] == '\0') {
            Active &= ~((1u | 1u << TRACE_POSTPONED) << Content);
        }
    }
    if (Recorded) {
        TracepForgetTracks();
        TracepForgetWaiters();
    }
    Active = (Active | Active >> TRACE_POSTPONED) & TRACE_CONTENTS;
    __atomic_store_n(&TraceActive, Active << TRACE_POSTPONED, __ATOMIC_RELAXED);
}

/* Finishing. */

typedef struct _TRACEP_BUFFER {
    PHAL_OUTPUT Output;
    HAL_FILE_PROBLEM Problem;
    SIZE_T Length;
    CHAR Text[TRACE_BUFFER];
} TRACEP_BUFFER, *PTRACEP_BUFFER;

static BOOLEAN TracepFlush(PTRACEP_BUFFER Buffer)
{
    SIZE_T Length = Buffer->Length;
    Buffer->Length = 0;
    return HalWriteOutput(Buffer->Output, Buffer->Text, Length, &Buffer->Problem);
}

static BOOLEAN TracepWriteToBuffer(PVOID Context, PCSTR Text, SIZE_T Length)
{
    PTRACEP_BUFFER Buffer = Context;
    if (Length > sizeof(Buffer->Text) - Buffer->Length && !TracepFlush(Buffer)) {
        return FALSE;
    }
    memcpy(Buffer->Text + Buffer->Length, Text, Length);
    Buffer->Length += Length;
    return TRUE;
}

static BOOLEAN TracepNameByHost(PVOID Context, ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    UNREFERENCED_PARAMETER(Context);
    return HalQueryAddressName(Address, Buffer, Size);
}

static BOOLEAN TracepConvert(PTRACE_RECORDING Recording, PTRACEP_BUFFER Buffer, BOOLEAN Orderly)
{
    TRACE_SINK Sink = {.Write = TracepWriteToBuffer, .Name = TracepNameByHost, .Context = Buffer};
    TRACE_SUMMARY Summary;
    BOOLEAN Written;

    if (Orderly) {
        Sink.Scratch = HalAllocate(TraceScratchSize(Recording->File), sizeof(ULONG64));
    }
    Written = TraceWriteJson(Recording->File, &Sink, &Summary) && TracepFlush(Buffer);
    if (Sink.Scratch != NULL) {
        HalFree(Sink.Scratch);
    }
    if (Summary.Dropped != 0) {
        HalPrint("interlock: %s: %llu older events were dropped, INTERLOCK_TRACE_LIMIT allows for more\n", Recording->Setting,
                 (unsigned long long)Summary.Dropped);
    }
    return Written;
}

/* Writes what the user named, if the recording is not that file itself. */
static VOID TracepWriteOutput(PTRACE_RECORDING Recording, BOOLEAN Orderly)
{
    static TRACEP_BUFFER Buffer;
    PHAL_OUTPUT Output = &Recording->Output;
    BOOLEAN Written = HalOpenOutput(Output, &Buffer.Problem);

    Buffer.Output = Output;
    Buffer.Length = 0;
    if (Written && Recording->Convert) {
        Written = TracepConvert(Recording, &Buffer, Orderly);
    } else if (Written) {
        Written = HalWriteOutput(Output, (PCSTR)Recording->File, Recording->Size, &Buffer.Problem);
    }
    if (Written) {
        Written = HalCompleteOutput(Output, &Buffer.Problem);
    } else {
        HalDiscardOutput(Output);
    }
    if (!Written) {
        HalPrint("interlock: %s: cannot write %s: %s%s%s\n", Recording->Setting, Output->Path, Buffer.Problem.Text,
                 Recording->Path[0] != '\0' ? "; what was recorded is in " : "", Recording->Path);
    } else if (Recording->Path[0] != '\0') {
        HalRemoveMappedFile(Recording->Path, &Recording->Open);
    }
}

VOID TraceFinish(BOOLEAN Orderly)
{
    ULONG Active = __atomic_exchange_n(&TraceActive, 0, __ATOMIC_RELAXED);
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(TraceRecording); Content++) {
        PTRACE_RECORDING Recording = &TraceRecording[Content];
        if (!(Active & (1u << Content))) {
            continue;
        }
        if (Content == TraceEvents) {
            TracepFinishTrackNames(Recording->File);
        }
        Recording->File->ModulesLength = HalQueryModules(Recording->File->Modules, sizeof(Recording->File->Modules));
        Recording->File->End = HalQueryNanoseconds();
        if (Recording->Convert || Recording->Output.Stream) {
            TracepWriteOutput(Recording, Orderly);
        }
    }
}

static __attribute__((destructor)) VOID TracepFinishAtExit(VOID)
{
    TraceFinish(TRUE);
}
