/* contention.c: `interlock contention`: the most contended locks, where threads waited, and which threads held them. */
#include "profile.h"
#include "views.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACKS_SHOWN 3
#define DEFAULT_TOP 10
#define VIEW_LOCKS 20
#define VIEW_STACKS 5

static const char usage[] =
    "usage: interlock contention [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
    "       interlock contention [OPTIONS] [--seconds N] PID\n"
    "       interlock contention [OPTIONS] CORE|--read RECORDING\n"
    "  --top N      the N locks with the longest waits (10)\n"
    "  --json       the report as JSON\n"
    "  -o FILE      writes the report to FILE (default: standard error)\n"
    "  --flame FILE   also writes a flame graph (SVG): holds that others waited for, and waits\n"
    "  --folded FILE  the same as text, one line per stack, in nanoseconds, for other tools\n"
    "  --seconds N  how long a running process is recorded; otherwise until it ends or the command is interrupted\n"
    "  --read       a recording left by a process that ran with INTERLOCK_CONTENTION\n";

static const struct option known[] = {
    {"output", required_argument, NULL, 'o'}, {"top", required_argument, NULL, 't'},
    {"json", no_argument, NULL, 'j'},         {"seconds", required_argument, NULL, 's'},
    {"read", required_argument, NULL, 'r'},   {"flame", required_argument, NULL, 'f'},
    {"folded", required_argument, NULL, 'F'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

/* Text. */

/* At most 8 characters. */
static const char *interval(uint64_t nanoseconds, char buffer[32])
{
    static const struct {
        double size;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    double time = (double)nanoseconds;
    size_t unit = 0;

    while (unit < 3 && time < units[unit].size)
        unit++;
    time /= units[unit].size;
    snprintf(buffer, 32, "%.*f %s", unit == 3 || time >= 99999 ? 0 : time >= 100 ? 1 : time >= 10 ? 2 : 3, time, units[unit].name);
    return buffer;
}

static void print_row(FILE *to, const kd_figures *f)
{
    static const unsigned percents[] = {50, 90, 99};
    char text[32];

    fprintf(to, "%8" PRIu64 " %9s", f->count, interval(f->time, text));
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
        fprintf(to, " %9s", interval(kd_percentile(f, percents[i]), text));
    fprintf(to, " %9s", interval(f->longest, text));
}

static void print_lock_name(FILE *to, const kd_profile *p, const kd_profile_lock *l)
{
    char buffer[KD_SYMBOL_SIZE];
    const char *name = kd_profile_name(p, l, buffer);

    fprintf(to, "%s 0x%" PRIx64, TraceLockKindName(l->kind), l->address);
    if (name != NULL)
        fprintf(to, " (%s)", name);
}

static void print_table(FILE *to, const kd_profile *p, uint64_t top)
{
    fprintf(to, "             TIMES     TOTAL       P50       P90       P99   LONGEST\n");
    for (size_t i = 0; i < p->count && i < top; i++) {
        const kd_profile_lock *l = &p->locks[i];

        print_lock_name(to, p, l);
        fprintf(to, "\n    waited");
        print_row(to, &l->waits.figures);
        if (l->holds.count != 0) {
            fprintf(to, "\n    held  ");
            print_row(to, &l->holds.figures);
        }
        fputc('\n', to);
    }
}

static void print_figures(FILE *to, const kd_figures *f)
{
    char time[32], p50[32], p99[32], longest[32];

    fprintf(to, "%" PRIu64 " times, %s, p50 %s, p99 %s, at most %s", f->count, interval(f->time, time),
            interval(kd_percentile(f, 50), p50), interval(kd_percentile(f, 99), p99), interval(f->longest, longest));
    if (f->waiting > 0)
        fprintf(to, ", and %" PRId64 " still waited", f->waiting);
}

static void print_frames(FILE *to, const kd_profile *p, const TRACE_CONTENTION_ENTRY *entry)
{
    for (unsigned i = 0; i < entry->Frames; i++) {
        kd_frame frame = kd_profile_frame(p, entry, i);

        fprintf(to, "        %016" PRIx64 " %s", frame.pc, frame.symbol);
        if (frame.line != 0)
            fprintf(to, " [%s @ %d]", frame.file, frame.line);
        fputc('\n', to);
    }
}

static void print_stacks(FILE *to, const kd_profile *p, const kd_stacks *stacks, const char *what)
{
    for (size_t i = 0; i < stacks->count && i < STACKS_SHOWN; i++) {
        const TRACE_CONTENTION_ENTRY *entry = stacks->list[i];
        kd_figures f = kd_figures_of(entry);
        char blocked[32];

        fprintf(to, "    %s %s: ", what, entry->Exclusive ? "exclusively" : "shared");
        print_figures(to, &f);
        if (entry->Role == TraceHeld)
            fprintf(to, ", last by thread %u; others waited %s", entry->LastOwner, interval(f.blocked, blocked));
        fputc('\n', to);
        print_frames(to, p, entry);
    }
    if (stacks->count > STACKS_SHOWN)
        fprintf(to, "    and %zu other stacks\n", stacks->count - STACKS_SHOWN);
}

static void print_lock(FILE *to, const kd_profile *p, const kd_profile_lock *l)
{
    fputc('\n', to);
    print_lock_name(to, p, l);
    fprintf(to, "\n    waited for: ");
    print_figures(to, &l->waits.figures);
    if (l->waits.thread != 0)
        fprintf(to, ", last held by thread %u", l->waits.thread);
    fputc('\n', to);
    print_stacks(to, p, &l->holds, "held");
    print_stacks(to, p, &l->waits, "waited");
}

static void print_profile(FILE *to, const kd_profile *p, uint64_t top)
{
    const TRACE_FILE *file = p->recording->file;
    char program[4 * TRACE_NAME + 1];

    fprintf(to, "Contended locks of %s, process %u:%s\n",
            kd_clean(program, sizeof(program), file->Program, TRACE_NAME), file->ProcessId,
            p->count == 0 ? " none" : "");
    if (p->count != 0)
        print_table(to, p, top);
    if (p->count > top)
        fprintf(to, "and %zu other locks\n", p->count - (size_t)top);
    for (size_t i = 0; i < p->count && i < top; i++)
        print_lock(to, p, &p->locks[i]);
    if (file->Dropped != 0)
        fprintf(to, "%llu acquires or holds had no room and are missing\n", (unsigned long long)file->Dropped);
}

/* JSON. */

static const char *kind_name(unsigned kind)
{
    static const kd_kind kinds[] = {
        [KiLockPushLock] = KD_PUSH_LOCK,         [KiLockSRWLock] = KD_SRW_LOCK,
        [KiLockFastMutex] = KD_FAST_MUTEX,       [KiLockGuardedMutex] = KD_GUARDED_MUTEX,
        [KiLockResource] = KD_RESOURCE,          [KiLockCriticalSection] = KD_CRITICAL_SECTION,
        [KiLockMutant] = KD_MUTANT,              [KiLockRtlResource] = KD_RTL_RESOURCE,
    };

    return kind == KiLockSpinLock ? "spin_lock" : kd_kind_name(kinds[kind]);
}

static void json_figures(json *out, const kd_figures *f)
{
    json_number(out, "count", (int64_t)f->count);
    json_real(out, "seconds", (double)f->time / 1e9);
    json_real(out, "longest", (double)f->longest / 1e9);
    json_real(out, "p50", (double)kd_percentile(f, 50) / 1e9);
    json_real(out, "p90", (double)kd_percentile(f, 90) / 1e9);
    json_real(out, "p99", (double)kd_percentile(f, 99) / 1e9);
}

static void json_thread(json *out, const char *key, uint32_t thread)
{
    if (thread != 0)
        json_number(out, key, thread);
    else
        json_null(out, key);
}

/* The figures of a lock's waits, or of its holds. */
static void json_rest(json *out, const kd_figures *f, bool holds)
{
    if (holds)
        json_real(out, "blocked", (double)f->blocked / 1e9);
    else
        json_number(out, "waiting", f->waiting > 0 ? f->waiting : 0);
}

static void json_stacks(json *out, const char *key, const kd_profile *p, const kd_stacks *stacks, size_t most)
{
    json_array(out, key);
    for (size_t i = 0; i < stacks->count && i < most; i++) {
        const TRACE_CONTENTION_ENTRY *entry = stacks->list[i];
        kd_figures f = kd_figures_of(entry);

        json_object(out, NULL);
        json_bool(out, "exclusive", entry->Exclusive);
        json_figures(out, &f);
        json_rest(out, &f, entry->Role == TraceHeld);
        if (entry->Role == TraceHeld)
            json_thread(out, "last_thread", entry->LastOwner);
        json_array(out, "stack");
        for (unsigned n = 0; n < entry->Frames; n++) {
            kd_frame frame = kd_profile_frame(p, entry, n);

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
    json_end(out);
}

static void json_lock(json *out, const kd_profile *p, const kd_profile_lock *l, size_t most_stacks)
{
    char buffer[KD_SYMBOL_SIZE];

    json_object(out, NULL);
    json_string(out, "kind", kind_name(l->kind));
    json_address(out, "address", l->address);
    json_string(out, "name", kd_profile_name(p, l, buffer));
    json_figures(out, &l->waits.figures);
    json_rest(out, &l->waits.figures, false);
    json_thread(out, "last_owner", l->waits.thread);
    json_object(out, "holds");
    json_figures(out, &l->holds.figures);
    json_rest(out, &l->holds.figures, true);
    json_thread(out, "last_thread", l->holds.thread);
    json_end(out);
    json_stacks(out, "holders", p, &l->holds, most_stacks);
    json_stacks(out, "stacks", p, &l->waits, most_stacks);
    json_number(out, "stacks_left_out", (int64_t)((l->holds.count > most_stacks ? l->holds.count - most_stacks : 0) +
                                                  (l->waits.count > most_stacks ? l->waits.count - most_stacks : 0)));
    json_end(out);
}

static void json_profile(json *out, const kd_profile *p, uint64_t top, size_t most_stacks)
{
    const TRACE_FILE *file = p->recording->file;
    char program[4 * TRACE_NAME + 1];

    kd_clean(program, sizeof(program), file->Program, TRACE_NAME);
    json_object(out, NULL);
    json_number(out, "process_id", file->ProcessId);
    json_string(out, "program", program);
    json_bool(out, "finished", file->End != 0);
    json_number(out, "dropped", (int64_t)file->Dropped);
    json_array(out, "locks");
    for (size_t i = 0; i < p->count && i < top; i++)
        json_lock(out, p, &p->locks[i], most_stacks);
    json_end(out);
    json_number(out, "locks_left_out", p->count > top ? (int64_t)(p->count - top) : 0);
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
        kd_profile p = kd_profile_make(&recordings->list[i]);

        if (options->json)
            json_profile(&out, &p, options->top, SIZE_MAX);
        else
            print_profile(to, &p, options->top);
        kd_profile_free(&p);
    }
    if (options->json) {
        json_end(&out);
        json_end(&out);
    }
}

/* The counts so far of a process that is being recorded: for the page, and for `interlock snapshot`. */
static int show(kd_snapshot *snapshot, const kd_options *options)
{
    bool active;
    const TRACE_FILE *file = kd_read_contention(snapshot->target, &active);
    json out = kd_json(options);

    json_object(&out, NULL);
    json_number(&out, "process_id", snapshot->process_id);
    json_bool(&out, "recording", active);
    json_array(&out, "processes");
    if (file != NULL) {
        kd_recording recording = {.file = file, .target = snapshot->target};
        kd_profile p = kd_profile_make(&recording);

        json_profile(&out, &p, VIEW_LOCKS, VIEW_STACKS);
        kd_profile_free(&p);
        munmap((void *)(uintptr_t)file, KD_CONTENTION_SIZE);
    }
    json_end(&out);
    kd_json_end(&out, snapshot);
    return 0;
}

const kd_view kd_contention_view = {.name = "contention", .arguments = "PID|CORE", .show = show};

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
    if (result == 0) {
        write_reports(to, &recordings, &options);
        if ((options.flame != NULL && !kd_write_flame(options.flame, &recordings)) ||
            (options.folded != NULL && !kd_write_folded(options.folded, &recordings)))
            result = 1;
    }
    kd_discard(&recordings);
    if (to != stderr && fclose(to) != 0)
        return kd_say("cannot write %s: %s", options.output, strerror(errno)), 1;
    return result != 0 ? result : recordings.status;
}
