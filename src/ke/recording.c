/* recording.c: the files that are recorded into, for who asks by the environment: their beginning and their end. */
#include "recording.h"

#include <stdio.h>

#define KI_TRACE_DEFAULT_LIMIT 32 /* in megabytes */
#define KI_TRACE_RAW ".trace"     /* a file of this name is left as it is, for `interlock trace` */
#define KI_TRACE_BUFFER 65536

ULONG KiTracing;
KI_RECORDING KiRecording[] = {
    [KiTraceEvents] = {.Setting = "INTERLOCK_TRACE"},
    [KiTraceContention] = {.Setting = "INTERLOCK_CONTENTION"},
};

/* Beginning. */

static BOOLEAN KiHasEnding(PCSTR Text, PCSTR Ending)
{
    SIZE_T Length = strlen(Text);
    return Length >= strlen(Ending) && strcmp(Text + Length - strlen(Ending), Ending) == 0;
}

/* The pattern with the id of the process: where it has %p, or before its last dot. */
static VOID KiExpandPattern(PCSTR Pattern, BOOLEAN Always, PSTR Path, SIZE_T Size)
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

static BOOLEAN KiTryCreateRecording(PKI_RECORDING Recording, KI_TRACE_CONTENT Content, BOOLEAN WithId,
                                    HAL_FILE_PROBLEM *Problem)
{
    PCSTR Raw = Content == KiTraceEvents && !KiHasEnding(Recording->Pattern, KI_TRACE_RAW) ? KI_TRACE_RAW : "";
    SIZE_T Room = sizeof(Recording->Output) - sizeof(KI_TRACE_RAW);

    KiExpandPattern(Recording->Pattern, WithId, Recording->Output, Room);
    memcpy(Recording->Path, Recording->Output, sizeof(Recording->Path));
    strcat(Recording->Path, Raw);
    if (Raw[0] == '\0') {
        Recording->Output[0] = '\0';
    }
    Recording->File = HalCreateMappedFile(Recording->Path, Recording->Size, &Recording->Descriptor, Problem);
    return Recording->File != NULL;
}

static VOID KiCreateRecording(KI_TRACE_CONTENT Content, BOOLEAN WithId)
{
    PKI_RECORDING Recording = &KiRecording[Content];
    HAL_FILE_PROBLEM Problem;
    if (!KiTryCreateRecording(Recording, Content, WithId, &Problem) &&
        !(Problem.InUse && KiTryCreateRecording(Recording, Content, TRUE, &Problem))) {
        HalPrint("interlock: %s: cannot write %s: %s; nothing is recorded\n", Recording->Setting, Recording->Path,
                 Problem.Text);
        return;
    }
    PKI_TRACE_FILE File = Recording->File;
    File->Content = Content;
    File->ProcessId = HalCurrentProcessId();
    File->Start = HalQueryNanoseconds();
    File->Units = (ULONG)((Recording->Size - sizeof(*File)) / KiTraceUnitSize(Content));
    HalQueryProgramName(File->Program, sizeof(File->Program));
    File->ModulesLength = HalQueryModules(File->Modules, sizeof(File->Modules));
    File->Magic = KI_TRACE_MAGIC;
    __atomic_fetch_or(&KiTracing, 1u << Content, __ATOMIC_RELAXED);
}

static VOID KiReadRecordingSetting(KI_TRACE_CONTENT Content, PCSTR Default, SIZE_T Size)
{
    PKI_RECORDING Recording = &KiRecording[Content];
    PCSTR Path = HalGetEnvironment(Recording->Setting);
    if (Path == NULL || Path[0] == '\0' || strcmp(Path, "0") == 0) {
        return;
    }
    if (!HalMakeAbsolutePath(strcmp(Path, "1") == 0 ? Default : Path, Recording->Pattern, sizeof(Recording->Pattern))) {
        HalPrint("interlock: %s: the name is too long; nothing is recorded\n", Recording->Setting);
        return;
    }
    Recording->Size = sizeof(KI_TRACE_FILE) + Size;
    KiCreateRecording(Content, FALSE);
}

VOID KiInitializeTrace(VOID)
{
    SIZE_T Limit = KiReadSetting("INTERLOCK_TRACE_LIMIT", 1, 4096, KI_TRACE_DEFAULT_LIMIT);
    KiReadRecordingSetting(KiTraceEvents, "interlock-%p.json", Limit << 20);
    KiReadRecordingSetting(KiTraceContention, "interlock-%p.contention",
                           KI_CONTENTION_ENTRIES * sizeof(KI_CONTENTION_ENTRY));
}

DECLSPEC_NOINLINE ULONG KiBeginPostponed(VOID)
{
    ULONG Tracing = __atomic_fetch_and(&KiTracing, KI_TRACE_CONTENTS, __ATOMIC_RELAXED);
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(KiRecording); Content++) {
        if (Tracing & (1u << (KI_TRACE_POSTPONED + Content))) {
            KiCreateRecording((KI_TRACE_CONTENT)Content, TRUE);
        }
    }
    return __atomic_load_n(&KiTracing, __ATOMIC_RELAXED);
}

/* The parent goes on in its file; nothing of it is the child's. */
VOID KiTraceForkChild(VOID)
{
    ULONG Tracing = __atomic_exchange_n(&KiTracing, 0, __ATOMIC_RELAXED);
    if (Tracing != 0) {
        KiForgetTracks();
    }
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(KiRecording); Content++) {
        if (Tracing & (1u << Content)) {
            HalUnmapFile(KiRecording[Content].File, KiRecording[Content].Size, KiRecording[Content].Descriptor);
            KiRecording[Content].File = NULL;
        }
    }
    Tracing = (Tracing | Tracing >> KI_TRACE_POSTPONED) & KI_TRACE_CONTENTS;
    __atomic_store_n(&KiTracing, Tracing << KI_TRACE_POSTPONED, __ATOMIC_RELAXED);
}

/* Finishing. */

typedef struct _KI_OUTPUT {
    LONG Descriptor;
    SIZE_T Length;
    CHAR Buffer[KI_TRACE_BUFFER];
} KI_OUTPUT, *PKI_OUTPUT;

static BOOLEAN KiFlushOutput(PKI_OUTPUT Output)
{
    SIZE_T Length = Output->Length;
    Output->Length = 0;
    return HalWriteOutput(Output->Descriptor, Output->Buffer, Length);
}

static BOOLEAN KiWriteToOutput(PVOID Context, PCSTR Text, SIZE_T Length)
{
    PKI_OUTPUT Output = Context;
    if (Length > sizeof(Output->Buffer) - Output->Length && !KiFlushOutput(Output)) {
        return FALSE;
    }
    memcpy(Output->Buffer + Output->Length, Text, Length);
    Output->Length += Length;
    return TRUE;
}

static BOOLEAN KiNameByHost(PVOID Context, ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    UNREFERENCED_PARAMETER(Context);
    return HalQueryAddressName(Address, Buffer, Size);
}

static VOID KiConvertRecording(PKI_RECORDING Recording, BOOLEAN Orderly)
{
    static KI_OUTPUT Output;
    KI_TRACE_SINK Sink = {.Write = KiWriteToOutput, .Name = KiNameByHost, .Context = &Output};
    KI_TRACE_SUMMARY Summary;
    HAL_FILE_PROBLEM Problem;

    Output.Descriptor = HalCreateOutput(Recording->Output, &Problem);
    if (Output.Descriptor < 0) {
        HalPrint("interlock: %s: cannot write %s: %s\n", Recording->Setting, Recording->Output, Problem.Text);
        return;
    }
    if (Orderly) {
        Sink.Scratch = HalAllocate(KiTraceScratchSize(Recording->File), sizeof(ULONG64));
    }
    if (KiWriteTraceJson(Recording->File, &Sink, &Summary) && KiFlushOutput(&Output)) {
        HalRemoveFile(Recording->Path);
    } else {
        HalPrint("interlock: %s: %s could not be written whole; %s has what was recorded\n", Recording->Setting,
                 Recording->Output, Recording->Path);
    }
    if (Sink.Scratch != NULL) {
        HalFree(Sink.Scratch);
    }
    HalCloseDescriptor(Output.Descriptor);
}

VOID KiFinishTrace(BOOLEAN Orderly)
{
    ULONG Tracing = __atomic_exchange_n(&KiTracing, 0, __ATOMIC_RELAXED);
    for (ULONG Content = 0; Content < RTL_NUMBER_OF(KiRecording); Content++) {
        PKI_RECORDING Recording = &KiRecording[Content];
        if (!(Tracing & (1u << Content))) {
            continue;
        }
        if (Content == KiTraceEvents) {
            KiFinishTrackNames(Recording->File);
        }
        Recording->File->ModulesLength = HalQueryModules(Recording->File->Modules, sizeof(Recording->File->Modules));
        Recording->File->End = HalQueryNanoseconds();
        if (Recording->Output[0] != '\0') {
            KiConvertRecording(Recording, Orderly);
        }
    }
}

static __attribute__((destructor)) VOID KiFinishTraceAtExit(VOID)
{
    KiFinishTrace(TRUE);
}
