/* contention.c: `interlock contention`: the locks that a command's threads had to wait for most, and where. */
#include "record.h"
#include "views.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STACKS_SHOWN 3
#define DEFAULT_TOP 10

static const char usage[] =
    "usage: interlock contention [--top N] [--json] [-o FILE] [--] COMMAND [ARGUMENTS]\n"
    "       interlock contention [--top N] [--json] [-o FILE] [--seconds N] PID\n"
    "       interlock contention [--top N] [--json] [-o FILE] --read RECORDING\n"
    "  --top N      so many locks, those that were waited for longest (10)\n"
    "  -o FILE      where the report goes (standard error)\n"
    "  --seconds N  how long a running process is recorded; otherwise until it ends or the command is interrupted\n"
    "  --read       a recording that a process has left which INTERLOCK_CONTENTION was set for\n";

static const struct option known[] = {
    {"output", required_argument, NULL, 'o'}, {"top", required_argument, NULL, 't'},
    {"json", no_argument, NULL, 'j'},         {"seconds", required_argument, NULL, 's'},
    {"read", required_argument, NULL, 'r'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

/* Count and time, per lock or per stack. */
typedef struct figures {
    uint64_t count, time, longest;
    int64_t waiting;
} figures;

typedef struct lock {
    kd_address address;
    unsigned kind;
    figures figures;
    uint32_t owner;
    const TRACE_CONTENTION_ENTRY **stacks; /* the longest first */
    size_t stack_count;
} lock;

typedef struct report {
    kd_recording *recording;
    lock *locks;
    size_t count;
} report;

static void add(figures *sum, const TRACE_CONTENTION_ENTRY *entry)
{
    sum->count += entry->Count;
    sum->time += entry->Time;
    sum->waiting += entry->Waiting;
    if (entry->Longest > sum->longest)
        sum->longest = entry->Longest;
}

static int by_identity(const void *one, const void *other)
{
    const TRACE_CONTENTION_ENTRY *a = *(const TRACE_CONTENTION_ENTRY *const *)one;
    const TRACE_CONTENTION_ENTRY *b = *(const TRACE_CONTENTION_ENTRY *const *)other;

    if (a->Lock != b->Lock)
        return a->Lock < b->Lock ? -1 : 1;
    if (a->Kind != b->Kind)
        return a->Kind < b->Kind ? -1 : 1;
    return a->Time > b->Time ? -1 : a->Time < b->Time;
}

/* Threads that still wait come first, then the total time. */
static int by_figures(const figures *a, const figures *b)
{
    if ((a->waiting > 0) != (b->waiting > 0))
        return a->waiting > 0 ? -1 : 1;
    if (a->time != b->time)
        return a->time > b->time ? -1 : 1;
    return a->count > b->count ? -1 : a->count < b->count;
}

static int by_time(const void *one, const void *other)
{
    return by_figures(&((const lock *)one)->figures, &((const lock *)other)->figures);
}

static int stack_by_time(const void *one, const void *other)
{
    figures a = {0}, b = {0};

    add(&a, *(const TRACE_CONTENTION_ENTRY *const *)one);
    add(&b, *(const TRACE_CONTENTION_ENTRY *const *)other);
    return by_figures(&a, &b);
}

static void add_to_lock(report *r, const TRACE_CONTENTION_ENTRY *entry)
{
    lock *last = r->count != 0 ? &r->locks[r->count - 1] : NULL;

    if (last == NULL || last->address != entry->Lock || last->kind != entry->Kind) {
        r->locks = kd_grow(r->locks, r->count, sizeof(lock));
        last = &r->locks[r->count++];
        last->address = entry->Lock;
        last->kind = entry->Kind;
    }
    add(&last->figures, entry);
    if (entry->LastOwner != 0 && last->owner == 0)
        last->owner = entry->LastOwner;
    last->stacks = kd_grow(last->stacks, last->stack_count, sizeof(*last->stacks));
    last->stacks[last->stack_count++] = entry;
}

static report make_report(kd_recording *recording)
{
    const TRACE_CONTENTION_ENTRY *entries = (const TRACE_CONTENTION_ENTRY *)(recording->file + 1), **found = NULL;
    report r = {.recording = recording};
    size_t count = 0;

    for (uint32_t i = 0; i < recording->file->Units; i++) {
        if (entries[i].State == TraceEntryReady && (entries[i].Count != 0 || entries[i].Waiting > 0) && entries[i].Frames <= TRACE_CONTENTION_FRAMES &&
            entries[i].Kind < KiLockKinds) {
            found = kd_grow(found, count, sizeof(*found));
            found[count++] = &entries[i];
        }
    }
    if (count != 0)
        qsort(found, count, sizeof(*found), by_identity);
    for (size_t i = 0; i < count; i++)
        add_to_lock(&r, found[i]);
    free(found);
    for (size_t i = 0; i < r.count; i++)
        qsort(r.locks[i].stacks, r.locks[i].stack_count, sizeof(*r.locks[i].stacks), stack_by_time);
    if (r.count != 0)
        qsort(r.locks, r.count, sizeof(lock), by_time);
    return r;
}

static void free_report(report *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->locks[i].stacks);
    free(r->locks);
}

static const char *name_of(const report *r, const lock *l, char buffer[KD_SYMBOL_SIZE])
{
    return kd_symbol_in(kd_recorded_module(r->recording, l->address), l->address, buffer) ? buffer : NULL;
}

static kd_frame frame_of(const report *r, const TRACE_CONTENTION_ENTRY *stack, unsigned number)
{
    kd_address pc = stack->Frame[number];
    kd_frame frame;

    kd_describe_frame(kd_recorded_module(r->recording, pc - 1), pc, false, &frame);
    return frame;
}

/* For people. */

static const char *interval(uint64_t nanoseconds, char buffer[32])
{
    double seconds = (double)nanoseconds / 1e9;

    if (seconds >= 1)
        snprintf(buffer, 32, "%.3f s", seconds);
    else if (seconds >= 1e-3)
        snprintf(buffer, 32, "%.3f ms", seconds * 1e3);
    else
        snprintf(buffer, 32, "%.3f us", seconds * 1e6);
    return buffer;
}

static void print_figures(FILE *to, const figures *f)
{
    char time[32], longest[32];

    fprintf(to, "%" PRIu64 " times, %s, at most %s", f->count, interval(f->time, time), interval(f->longest, longest));
    if (f->waiting > 0)
        fprintf(to, ", and %" PRId64 " still waited", f->waiting);
}

static void print_stack(FILE *to, const report *r, const TRACE_CONTENTION_ENTRY *stack)
{
    figures f = {0};

    add(&f, stack);
    fprintf(to, "    %s: ", stack->Exclusive ? "exclusively" : "shared");
    print_figures(to, &f);
    fputc('\n', to);
    for (unsigned i = 0; i < stack->Frames; i++) {
        kd_frame frame = frame_of(r, stack, i);

        fprintf(to, "        %016" PRIx64 " %s", frame.pc, frame.symbol);
        if (frame.line != 0)
            fprintf(to, " [%s @ %d]", frame.file, frame.line);
        fputc('\n', to);
    }
}

static void print_lock(FILE *to, const report *r, const lock *l)
{
    char buffer[KD_SYMBOL_SIZE];
    const char *name = name_of(r, l, buffer);

    fprintf(to, "%s 0x%" PRIx64, TraceLockKindName(l->kind), l->address);
    if (name != NULL)
        fprintf(to, " (%s)", name);
    fprintf(to, "\n    ");
    print_figures(to, &l->figures);
    if (l->owner != 0)
        fprintf(to, ", last held by thread %u", l->owner);
    fputc('\n', to);
    for (size_t i = 0; i < l->stack_count && i < STACKS_SHOWN; i++)
        print_stack(to, r, l->stacks[i]);
    if (l->stack_count > STACKS_SHOWN)
        fprintf(to, "    and %zu other stacks\n", l->stack_count - STACKS_SHOWN);
}

static void print_report(FILE *to, const report *r, uint64_t top)
{
    const TRACE_FILE *file = r->recording->file;
    char program[4 * TRACE_NAME + 1];

    fprintf(to, "Contended locks of %s, process %u:%s\n",
            kd_clean(program, sizeof(program), file->Program, TRACE_NAME), file->ProcessId,
            r->count == 0 ? " none" : "");
    for (size_t i = 0; i < r->count && i < top; i++)
        print_lock(to, r, &r->locks[i]);
    if (r->count > top)
        fprintf(to, "and %zu other locks\n", r->count - (size_t)top);
    if (file->Dropped != 0)
        fprintf(to, "%llu acquires had no room in the table and are missing\n", (unsigned long long)file->Dropped);
}

/* For programs. */

static const char *kind_name(unsigned kind)
{
    static const kd_kind kinds[] = {
        [KiLockPushLock] = KD_PUSH_LOCK,         [KiLockSRWLock] = KD_SRW_LOCK,
        [KiLockFastMutex] = KD_FAST_MUTEX,       [KiLockGuardedMutex] = KD_GUARDED_MUTEX,
        [KiLockResource] = KD_RESOURCE,          [KiLockCriticalSection] = KD_CRITICAL_SECTION,
        [KiLockMutant] = KD_MUTANT,
    };

    return kind < sizeof(kinds) / sizeof(kinds[0]) ? kd_kind_name(kinds[kind]) : "spin_lock";
}

static void json_figures(json *out, const figures *f)
{
    json_number(out, "count", (int64_t)f->count);
    json_real(out, "seconds", (double)f->time / 1e9);
    json_real(out, "longest", (double)f->longest / 1e9);
    json_number(out, "waiting", f->waiting > 0 ? f->waiting : 0);
}

static void json_stack(json *out, const report *r, const TRACE_CONTENTION_ENTRY *stack)
{
    figures f = {0};

    add(&f, stack);
    json_object(out, NULL);
    json_bool(out, "exclusive", stack->Exclusive);
    json_figures(out, &f);
    json_array(out, "stack");
    for (unsigned i = 0; i < stack->Frames; i++) {
        kd_frame frame = frame_of(r, stack, i);

        json_object(out, NULL);
        json_address(out, "pc", frame.pc);
        json_string(out, "symbol", frame.symbol);
        json_string(out, "file", frame.line != 0 ? frame.file : NULL);
        if (frame.line != 0)
            json_number(out, "line", frame.line);
        else
            json_null(out, "line");
        json_end(out);
    }
    json_end(out);
    json_end(out);
}

static void json_lock(json *out, const report *r, const lock *l)
{
    char buffer[KD_SYMBOL_SIZE];

    json_object(out, NULL);
    json_string(out, "kind", kind_name(l->kind));
    json_address(out, "address", l->address);
    json_string(out, "name", name_of(r, l, buffer));
    json_figures(out, &l->figures);
    if (l->owner != 0)
        json_number(out, "last_owner", l->owner);
    else
        json_null(out, "last_owner");
    json_array(out, "stacks");
    for (size_t i = 0; i < l->stack_count; i++)
        json_stack(out, r, l->stacks[i]);
    json_end(out);
    json_end(out);
}

static void json_report(json *out, const report *r, uint64_t top)
{
    const TRACE_FILE *file = r->recording->file;
    char program[4 * TRACE_NAME + 1];

    kd_clean(program, sizeof(program), file->Program, TRACE_NAME);
    json_object(out, NULL);
    json_number(out, "process_id", file->ProcessId);
    json_string(out, "program", program);
    json_bool(out, "finished", file->End != 0);
    json_number(out, "dropped", (int64_t)file->Dropped);
    json_array(out, "locks");
    for (size_t i = 0; i < r->count && i < top; i++)
        json_lock(out, r, &r->locks[i]);
    json_end(out);
    json_end(out);
}

static void write_reports(FILE *to, const kd_recordings *recordings, const kd_record_options *options)
{
    json out = {.file = to};

    if (options->json) {
        json_object(&out, NULL);
        json_array(&out, "processes");
    }
    for (size_t i = 0; i < recordings->count; i++) {
        report r = make_report(&recordings->list[i]);

        if (options->json)
            json_report(&out, &r, options->top);
        else
            print_report(to, &r, options->top);
        free_report(&r);
    }
    if (options->json) {
        json_end(&out);
        json_end(&out);
    }
}

int command_contention(int argc, char **argv)
{
    kd_record_options options = {.top = DEFAULT_TOP};
    kd_recordings recordings;
    FILE *to = stderr;
    int result = kd_parse_record(argc, argv, usage, known, &options);

    if (result != 0)
        return result < 0 ? 0 : result;
    if (options.output != NULL && (to = fopen(options.output, "we")) == NULL)
        return kd_say("cannot write %s: %s", options.output, strerror(errno)), 1;
    result = kd_record("INTERLOCK_CONTENTION", TraceContention, &options, &recordings);
    if (result == 0)
        write_reports(to, &recordings, &options);
    kd_discard(&recordings);
    if (to != stderr && fclose(to) != 0)
        return kd_say("cannot write %s: %s", options.output, strerror(errno)), 1;
    return result != 0 ? result : recordings.status;
}
