/* trace.c: `interlock trace`: a command's waits, signals and contended acquires, for Perfetto and chrome://tracing. */
#include "record.h"
#include "views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: interlock trace [-o FILE] [--limit MEGABYTES] [--] COMMAND [ARGUMENTS]\n"
    "       interlock trace [-o FILE] [--limit MEGABYTES] [--seconds N] PID\n"
    "       interlock trace [-o FILE] --convert RECORDING\n"
    "  -o FILE      writes the trace to FILE; %p is the process id (interlock-%p.json)\n"
    "  --limit N    megabytes kept per process; older events are dropped and counted (32)\n"
    "  --seconds N  how long a running process is recorded; otherwise until it ends or the command is interrupted\n"
    "  --convert    a recording left by a process that ran with INTERLOCK_TRACE\n";

static const struct option known[] = {
    {"output", required_argument, NULL, 'o'},
    {"limit", required_argument, NULL, 'l'},
    {"seconds", required_argument, NULL, 's'},
    {"convert", required_argument, NULL, 'r'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* The name with the id of the process, where it has %p or before its last dot. */
static char *output_name(const char *pattern, int process, bool always)
{
    const char *place = strstr(pattern, "%p"), *slash = strrchr(pattern, '/'), *dot = strrchr(pattern, '.');
    char *name = NULL;
    int result;

    if (place != NULL)
        result = asprintf(&name, "%.*s%d%s", (int)(place - pattern), pattern, process, place + 2);
    else if (!always)
        result = asprintf(&name, "%s", pattern);
    else if (dot != NULL && (slash == NULL || dot > slash))
        result = asprintf(&name, "%.*s.%d%s", (int)(dot - pattern), pattern, process, dot);
    else
        result = asprintf(&name, "%s.%d", pattern, process);
    return result < 0 ? NULL : name;
}

typedef struct output {
    FILE *file;
    kd_recording *recording;
} output;

static BOOLEAN write_text(PVOID context, PCSTR text, SIZE_T length)
{
    return fwrite(text, 1, length, ((output *)context)->file) == length;
}

static BOOLEAN name_address(PVOID context, ULONG64 address, PSTR buffer, SIZE_T size)
{
    char symbol[KD_SYMBOL_SIZE];
    struct Dwfl_Module *module = kd_recorded_module(((output *)context)->recording, address);

    if (module == NULL || !kd_symbol_in(module, address, symbol))
        return FALSE;
    kd_copy(buffer, size, symbol, size);
    return TRUE;
}

static bool convert(kd_recording *recording, const char *path)
{
    output out = {.file = fopen(path, "we"), .recording = recording};
    TRACE_SINK sink = {.Write = write_text, .Name = name_address, .Context = &out};
    TRACE_SUMMARY summary;

    if (out.file == NULL) {
        kd_say("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    sink.Scratch = kd_allocate(TraceScratchSize(recording->file) + 1, 1);
    bool written = TraceWriteJson(recording->file, &sink, &summary);
    free(sink.Scratch);
    if (fclose(out.file) != 0 || !written) {
        kd_say("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    kd_say("%s: %llu events of %u thread%s%s", path, (unsigned long long)summary.Events, summary.Threads,
           summary.Threads == 1 ? "" : "s", recording->file->End == 0 && !recording->stopped ? ", the process did not end by itself" : "");
    if (summary.Dropped != 0)
        kd_say("%llu older events were dropped, --limit allows for more", (unsigned long long)summary.Dropped);
    return true;
}

int command_trace(int argc, char **argv)
{
    kd_record_options options = {.output = "interlock-%p.json"};
    kd_recordings recordings;
    size_t count;
    int result = kd_parse_record(argc, argv, usage, known, &options);

    if (result != 0)
        return result < 0 ? 0 : result;
    result = kd_record("INTERLOCK_TRACE", TraceEvents, &options, &recordings);
    count = result == 0 ? recordings.count : 0;
    for (size_t i = 0; i < count; i++) {
        int process = (int)recordings.list[i].file->ProcessId;
        bool only = recordings.count == 1 || process == recordings.process;
        char *path = output_name(options.output, process, !only);

        if (path == NULL || !convert(&recordings.list[i], path))
            result = 1;
        free(path);
    }
    kd_discard(&recordings);
    return result != 0 ? result : recordings.status;
}
