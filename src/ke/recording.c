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

/* The name of the recording itself, behind which nothing but a file may be. */
static BOOLEAN KiFindRawFile(PKI_RECORDING Recording, HAL_FILE_PROBLEM *Problem)
{
    static HAL_OUTPUT Raw;
    SIZE_T Length = strlen(Recording->Output.Path);
    if (Length + sizeof(KI_TRACE_RAW) > sizeof(Recording->Path)) {
        Problem->Text = "the name is too long";
        return FALSE;
    }
    memcpy(Recording->Path, Recording->Output.Path, Length);
    memcpy(Recording->Path + Length, KI_TRACE_RAW, sizeof(KI_TRACE_RAW));
    if (!HalFindOutput(Recording->Path, &Raw, Problem)) {
        return FALSE;
    }
    memcpy(Recording->Path, Raw.Path, sizeof(Recording->Path));
    HalDiscardOutput(&Raw);
    Problem->Text = "it is no file";
    return !Raw.Stream;
}

static BOOLEAN KiTryCreateRecording(PKI_RECORDING Recording, KI_TRACE_CONTENT Content, BOOLEAN WithId,
                                    HAL_FILE_PROBLEM *Problem)
{
    PSTR Path = Recording->Path;
    *Problem = (HAL_FILE_PROBLEM){0};
    KiExpandPattern(Recording->Pattern, WithId, Path, sizeof(Recording->Path));
    Recording->Convert = Content == KiTraceEvents && !KiHasEnding(Path, KI_TRACE_RAW);
    if (!HalFindOutput(Path, &Recording->Output, Problem)) {
        return FALSE;
    }
    if (Recording->Output.Stream) {
        Path[0] = '\0';
    } else if (!Recording->Convert) {
        memcpy(Path, Recording->Output.Path, sizeof(Recording->Path));
    } else if (!KiFindRawFile(Recording, Problem)) {
        return FALSE;
    }
    Recording->File = HalCreateMappedFile(Path[0] != '\0' ? Path : NULL, Recording->Size, &Recording->Descriptor, Problem);
    if (Recording->File == NULL) {
        HalDiscardOutput(&Recording->Output);
    }
    return Recording->File != NULL;
}

static VOID KiCreateRecording(KI_TRACE_CONTENT Content, BOOLEAN WithId)
{
    PKI_RECORDING Recording = &KiRecording[Content];
    HAL_FILE_PROBLEM Problem;
    if (!KiTryCreateRecording(Recording, Content, WithId, &Problem) &&
        !(Problem.InUse && KiTryCreateRecording(Recording, Content, TRUE, &Problem))) {
        HalPrint("interlock: %s: cannot write %s: %s; nothing is recorded\n", Recording->Setting,
                 Recording->Path[0] != '\0' ? Recording->Path : Recording->Output.Path, Problem.Text);
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
        /* There is no other stream for the child. */
        if (KiRecording[Content].Output.Stream) {
            HalDiscardOutput(&KiRecording[Content].Output);
            Tracing &= ~(1u << Content);
        }
    }
    Tracing = (Tracing | Tracing >> KI_TRACE_POSTPONED) & KI_TRACE_CONTENTS;
    __atomic_store_n(&KiTracing, Tracing << KI_TRACE_POSTPONED, __ATOMIC_RELAXED);
}

/* Finishing. */

typedef struct _KI_BUFFER {
    PHAL_OUTPUT Output;
    HAL_FILE_PROBLEM Problem;
    SIZE_T Length;
    CHAR Text[KI_TRACE_BUFFER];
} KI_BUFFER, *PKI_BUFFER;

static BOOLEAN KiFlush(PKI_BUFFER Buffer)
{
    SIZE_T Length = Buffer->Length;
    Buffer->Length = 0;
    return HalWriteOutput(Buffer->Output, Buffer->Text, Length, &Buffer->Problem);
}

static BOOLEAN KiWriteToBuffer(PVOID Context, PCSTR Text, SIZE_T Length)
{
    PKI_BUFFER Buffer = Context;
    if (Length > sizeof(Buffer->Text) - Buffer->Length && !KiFlush(Buffer)) {
        return FALSE;
    }
    memcpy(Buffer->Text + Buffer->Length, Text, Length);
    Buffer->Length += Length;
    return TRUE;
}

static BOOLEAN KiNameByHost(PVOID Context, ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    UNREFERENCED_PARAMETER(Context);
    return HalQueryAddressName(Address, Buffer, Size);
}

static BOOLEAN KiConvertRecording(PKI_RECORDING Recording, PKI_BUFFER Buffer, BOOLEAN Orderly)
{
    KI_TRACE_SINK Sink = {.Write = KiWriteToBuffer, .Name = KiNameByHost, .Context = Buffer};
    KI_TRACE_SUMMARY Summary;
    BOOLEAN Written;

    if (Orderly) {
        Sink.Scratch = HalAllocate(KiTraceScratchSize(Recording->File), sizeof(ULONG64));
    }
    Written = KiWriteTraceJson(Recording->File, &Sink, &Summary) && KiFlush(Buffer);
    if (Sink.Scratch != NULL) {
        HalFree(Sink.Scratch);
    }
    if (Summary.Dropped != 0) {
        HalPrint("interlock: %s: %llu older events were dropped, INTERLOCK_TRACE_LIMIT allows for more\n", Recording->Setting,
                 (unsigned long long)Summary.Dropped);
    }
    return Written;
}

/* To where the user has named, if the recording is not there already. */
static VOID KiWriteRecording(PKI_RECORDING Recording, BOOLEAN Orderly)
{
    static KI_BUFFER Buffer;
    PHAL_OUTPUT Output = &Recording->Output;
    BOOLEAN Written = HalOpenOutput(Output, &Buffer.Problem);

    Buffer.Output = Output;
    Buffer.Length = 0;
    if (Written && Recording->Convert) {
        Written = KiConvertRecording(Recording, &Buffer, Orderly);
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
        HalRemoveMappedFile(Recording->Path, Recording->Descriptor);
    }
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
        if (Recording->Convert || Recording->Output.Stream) {
            KiWriteRecording(Recording, Orderly);
        }
    }
}

static __attribute__((destructor)) VOID KiFinishTraceAtExit(VOID)
{
    KiFinishTrace(TRUE);
}
