/* record.h: runs a command with recording on, and collects the recordings of the command and its children. */
#ifndef INTERLOCK_KD_RECORD_H
#define INTERLOCK_KD_RECORD_H

#include "kd.h"

#include <getopt.h>

#include "trace/tracefile.h"

typedef struct kd_record_options {
    bool json;
    const char *output;    /* NULL: the default */
    const char *recording; /* an existing one; NULL: run a command */
    const char *flame;     /* where a flame graph goes, and */
    const char *folded;    /* its text; NULL: none */
    const char *limit;     /* in megabytes; NULL: the library's own */
    uint64_t top;
    double seconds;        /* how long a process is recorded; 0: until it ends or the user interrupts */
    char **command;        /* ended by NULL; or the id of a process */
} kd_record_options;

/* One process. */
typedef struct kd_recording {
    char *path;
    const TRACE_FILE *file;
    size_t size;
    struct Dwfl *dwfl;     /* its modules; NULL: unknown */
    kd_target *target;     /* or whose they are, if the recording was read from its memory */
    bool stopped;          /* the process continued */
    kd_segments segments;
} kd_recording;

typedef struct kd_recordings {
    kd_recording *list;    /* in the order in which the processes began */
    size_t count;
    int process;           /* of the command; 0: none was run */
    int status;            /* of the command, as a shell reports it */
    kd_target *target;     /* a core file that they were read from; NULL: none */
} kd_recordings;

/* Parses those of these options that are known: -o FILE, -l MEGABYTES, -t NUMBER, -s SECONDS, -j, -r RECORDING, -f FLAME,
   -F FOLDED, -h. 0, the exit status, or -1: it has printed the help. */
int kd_parse_record(int argc, char **argv, const char *usage, const struct option *known, kd_record_options *options);
/* 0, or the exit status: it has reported why. */
int kd_record(const char *setting, TRACE_CONTENT content, const kd_record_options *options,
              kd_recordings *recordings);
/* Records a running process; the same results. */
int kd_attach(TRACE_CONTENT content, const kd_record_options *options, kd_recordings *recordings);
void kd_add_recording(kd_recordings *recordings, const char *path, const TRACE_FILE *file, size_t size); /* it has the mapping */
/* A copy of the recording in the memory of a process or core file. NULL: there is none. */
const TRACE_FILE *kd_read_contention(kd_target *target, bool *active);
#define KD_CONTENTION_SIZE (sizeof(TRACE_FILE) + TRACE_CONTENTION_ENTRIES * sizeof(TRACE_CONTENTION_ENTRY))
void kd_discard(kd_recordings *recordings);
struct Dwfl_Module *kd_recorded_module(kd_recording *recording, kd_address address); /* NULL: none */

#endif
