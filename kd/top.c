/*
 * top.c: `interlock top`: the terminal, refreshed. A frame is written into memory, cut to the size of the terminal, and
 * printed at once. Without a terminal frames are printed one after the other.
 */
#include "history.h"
#include "views.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define RED "\033[1;31m"
#define REVERSE "\033[7m"
#define PLAIN "\033[0m"

#define LONGEST_DEADLOCKS 12 /* lines; `interlock deadlocks` has the rest */

typedef enum lock_order { BY_WAITERS, BY_CONTENTION, BY_NAME } lock_order;
typedef enum thread_order { BY_TIME, BY_ID, BY_THREAD_NAME } thread_order;

typedef struct top {
    kd_options options;
    bool batch, paused, help, quit;
    uint64_t frames;           /* 0: without end */
    double interval;
    lock_order locks;
    thread_order threads;
    kd_target *target;
    kd_history *history;
    struct termios before;
    int rows, columns;         /* 0: as many as there are */
} top;

static volatile sig_atomic_t ended, resized;

/* Output. */

static int by_locks(const void *one, const void *other, void *context)
{
    const kd_lock *const *a = one, *const *b = other;
    const top *t = context;
    int64_t difference = 0;

    if (t->locks == BY_WAITERS)
        difference = (int64_t)(*b)->waiter_count - (int64_t)(*a)->waiter_count;
    if (difference == 0 && t->locks != BY_NAME)
        difference = (*b)->contention - (*a)->contention;
    if (difference == 0)
        difference = strcmp((*a)->name, (*b)->name);
    return difference < 0 ? -1 : difference > 0 ? 1 : (*a)->address < (*b)->address ? -1 : 1;
}

static int by_threads(const void *one, const void *other, void *context)
{
    const kd_thread *const *a = one, *const *b = other;
    const top *t = context;
    int difference = 0;

    if (t->threads == BY_THREAD_NAME)
        difference = strcmp((*a)->name, (*b)->name);
    else if (t->threads == BY_TIME && (*a)->waiting != (*b)->waiting)
        difference = (*a)->waiting ? -1 : 1;
    else if (t->threads == BY_TIME && (*a)->raw->WaitTime != (*b)->raw->WaitTime)
        difference = (*a)->raw->WaitTime < (*b)->raw->WaitTime ? -1 : 1;
    return difference != 0 ? difference : (*a)->id < (*b)->id ? -1 : 1;
}

static double rate(uint64_t count, const kd_sample *sample)
{
    return sample->interval > 0 ? (double)count / sample->interval : 0;
}

static void write_deadlocks(FILE *out, const kd_snapshot *snapshot, const char *red, const char *plain)
{
    const kd_deadlocks *deadlocks = snapshot->deadlocks;
    int lines = 0;
    char thread[192], lock[512];

    for (size_t c = 0; c < deadlocks->cycle_count; c++) {
        const kd_cycle *cycle = &deadlocks->cycles[c];

        fprintf(out, "%s%s%s\n", red, cycle->orphaned ? "ORPHANED LOCK: its owner has ended"
                                      : cycle->certain ? "DEADLOCK" : "PROBABLE DEADLOCK", plain);
        for (size_t i = 0; i < cycle->count && lines < LONGEST_DEADLOCKS; i++, lines++)
            fprintf(out, "%s  %s waits for %s, held by %u%s\n", red,
                    kd_describe_thread(snapshot, cycle->links[i].thread, thread, sizeof(thread)),
                    kd_describe_lock(&snapshot->locks[cycle->links[i].lock], lock, sizeof(lock)),
                    cycle->links[i].owner_id, plain);
    }
    for (size_t i = 0; i < deadlocks->suspicion_count && lines < LONGEST_DEADLOCKS; i++, lines++)
        fprintf(out, "%sPossible deadlock over %s: see `interlock deadlocks`%s\n", red,
                kd_describe_lock(&snapshot->locks[deadlocks->suspicions[i].lock], lock, sizeof(lock)), plain);
}

static void write_processors(FILE *out, kd_snapshot *snapshot)
{
    KPRCB *prcb = kd_allocate_lines(sizeof(*prcb));
    uint32_t busy = 0, shown = 0, queued = 0;
    kd_address address;
    char text[192];

    fprintf(out, "Processors: %u", snapshot->processors);
    for (uint32_t p = 0; p < snapshot->processors; p++) {
        int owner;

        if (!kd_read_processor(snapshot, p, &address, prcb))
            continue;
        busy += !kd_is_idle_processor(prcb);
        queued += (uint32_t)(prcb->DpcData[KI_DPC_NORMAL].DpcQueueDepth + prcb->DpcData[KI_DPC_THREADED].DpcQueueDepth);
        owner = kd_owner_of_processor(snapshot, prcb);
        if (owner >= 0 && shown++ < 3)
            fprintf(out, "  CPU %u: %s at IRQL %u", p, kd_describe_thread(snapshot, owner, text, sizeof(text)),
                    snapshot->threads[owner].raw->Irql);
    }
    fprintf(out, "  busy %u, DPCs queued %u\n", busy, queued);
    free(prcb);
}

static void write_header(FILE *out, const top *t, kd_snapshot *snapshot, const kd_sample *sample)
{
    size_t suspended = 0, moving = 0;
    char now[16] = "";
    time_t clock = time(NULL);
    struct tm local;

    for (size_t i = 0; i < snapshot->own_count; i++) {
        suspended += snapshot->threads[i].raw->SuspendCount != 0;
        moving += snapshot->threads[i].moving;
    }
    if (localtime_r(&clock, &local) != NULL)
        strftime(now, sizeof(now), "%H:%M:%S", &local);
    fprintf(out, "interlock top%s  process %u  Interlock %s  %s\n", t->paused ? " (paused)" : "", snapshot->process_id,
            kd_version(snapshot->target), snapshot->now != 0 ? now : "core file");
    fprintf(out, "Threads: %zu  running %zu  waiting %zu  suspended %zu  moving %zu  deadlocked %zu\n", sample->threads,
            sample->threads - sample->waiting, sample->waiting, suspended, moving, sample->deadlocked);
    fprintf(out, "Per second: %.1f waits, %.1f DPCs, %.1f interrupts\n", rate(sample->waits, sample),
            rate(sample->dpcs, sample), rate(sample->interrupts, sample));
    write_processors(out, snapshot);
}

static void write_owner(FILE *out, const kd_lock *lock)
{
    char owner[32] = "-";

    if (lock->owner_count > 1)
        snprintf(owner, sizeof(owner), "%zu threads", lock->owner_count);
    else if (lock->owner_count == 1 && lock->owners[0].id != 0)
        snprintf(owner, sizeof(owner), "%s%u", lock->owners[0].probable ? "~" : "", lock->owners[0].id);
    else if (lock->hold == KD_FREE)
        snprintf(owner, sizeof(owner), "free");
    fprintf(out, " %10s", owner);
}

static void write_locks(FILE *out, top *t, const kd_snapshot *snapshot, const kd_sample *sample, int most)
{
    const kd_lock **locks = kd_allocate(snapshot->lock_count + 1, sizeof(*locks));
    size_t count = 0;
    int shown = 0;

    for (size_t i = 0; i < snapshot->lock_count; i++)
        if (snapshot->locks[i].process_id == 0 && snapshot->locks[i].address != 0 &&
            kd_is_lock(&snapshot->locks[i]) && (t->options.verbose || snapshot->locks[i].waiter_count != 0 ||
                                                snapshot->locks[i].hold != KD_FREE ||
                                                snapshot->locks[i].contended != 0))
            locks[count++] = &snapshot->locks[i];
    qsort_r(locks, count, sizeof(*locks), by_locks, t);
    for (; (size_t)shown < count && shown < most; shown++) {
        const kd_lock *lock = locks[shown];

        fprintf(out, "%7zu", lock->waiter_count);
        if (lock->contention >= 0)
            fprintf(out, " %10" PRId64 " %8.1f", lock->contention, rate(lock->contended, sample));
        else
            fprintf(out, " %10s %8s", "-", "-");
        write_owner(out, lock);
        fprintf(out, "  %-17s %s", kd_kind_title(lock->kind), lock->name);
        fprintf(out, lock->name[0] != '\0' ? "\n" : "0x%" PRIx64 "\n", lock->address);
    }
    if ((size_t)shown < count)
        fprintf(out, "        and %zu more\n", count - (size_t)shown);
    free(locks);
}

static void write_thread(FILE *out, const kd_snapshot *snapshot, const kd_thread *thread, const char *red,
                         const char *plain)
{
    const kd_lock *lock = thread->block_count != 0 && thread->blocks[0].lock >= 0
                              ? &snapshot->locks[thread->blocks[0].lock] : NULL;
    char text[512], name[80];
    int wide = (int)kd_characters(kd_copy(name, sizeof(name), thread->name, 16));

    fprintf(out, "%s%8u %s%*s", thread->deadlocked ? red : "", thread->id, name, 16 - wide, "");
    if (thread->waiting && snapshot->now != 0)
        fprintf(out, " %10.3f", kd_waited(snapshot, thread));
    else
        fprintf(out, " %10s", "-");
    fprintf(out, "  %-17s", thread->moving ? "moving" : thread->waiting ? kd_wait_reason_name(thread->raw->WaitReason)
                            : kd_thread_state_name(thread->raw->State));
    if (lock != NULL)
        fprintf(out, " %s", kd_describe_lock(lock, text, sizeof(text)));
    if (thread->block_count > 1)
        fprintf(out, " and %zu more (%s)", thread->block_count - 1,
                kd_wait_type_name(thread->blocks[0].raw.WaitType));
    fprintf(out, "%s\n", thread->deadlocked ? plain : "");
}

static void write_threads(FILE *out, top *t, const kd_snapshot *snapshot, int most)
{
    const kd_thread **threads = kd_allocate(snapshot->thread_count + 1, sizeof(*threads));
    size_t count = 0;
    int shown = 0;

    for (size_t i = 0; i < snapshot->own_count; i++)
        if (snapshot->threads[i].raw->State != Terminated && (t->options.verbose || !snapshot->threads[i].system))
            threads[count++] = &snapshot->threads[i];
    qsort_r(threads, count, sizeof(*threads), by_threads, t);
    for (; (size_t)shown < count && shown < most; shown++)
        write_thread(out, snapshot, threads[shown], t->batch ? "" : RED, t->batch ? "" : PLAIN);
    if ((size_t)shown < count)
        fprintf(out, "         and %zu more\n", count - (size_t)shown);
    free(threads);
}

static void write_title(FILE *out, const top *t, const char *title)
{
    fprintf(out, "\n%s%s%s\n", t->batch ? "" : REVERSE, title, t->batch ? "" : PLAIN);
}

static void write_frame(FILE *out, top *t, kd_snapshot *snapshot, const kd_sample *sample)
{
    int room = t->rows > 0 ? t->rows : 40;

    write_header(out, t, snapshot, sample);
    write_deadlocks(out, snapshot, t->batch ? "" : RED, t->batch ? "" : PLAIN);
    write_title(out, t, "WAITERS CONTENTION    PER S      OWNER  LOCK");
    write_locks(out, t, snapshot, sample, room / 3);
    write_title(out, t, "  THREAD NAME                SECONDS  WAIT              FOR");
    write_threads(out, t, snapshot, room);
    kd_note_spent(snapshot);
    kd_write_faults(out, snapshot);
}

static const char help[] = "\nKeys: q quits, space pauses, + and - change the interval, v shows everything\n"
                           "      locks by w waiters, c contention, n name; threads by t time, i id, m name\n"
                           "      h: this\n";

/* Truncates a line to the terminal's width: escape sequences and continuation bytes do not count. */
static void print_line(const char *line, size_t length, int columns)
{
    bool escape = false;
    int width = 0;

    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)line[i];

        if (c == '\033')
            escape = true;
        if (escape || (c & 0xc0) == 0x80) {
            if (escape || width <= columns)
                putchar(c);
            escape = escape && c != 'm';
        } else if (++width <= columns) {
            putchar(c);
        }
    }
}

static void print_on_terminal(const top *t, const char *frame)
{
    int row = 0;

    fputs("\033[H", stdout);
    while (*frame != '\0' && ++row < t->rows) {
        const char *end = strchr(frame, '\n');
        size_t length = end != NULL ? (size_t)(end - frame) : strlen(frame);

        print_line(frame, length, t->columns);
        fputs(PLAIN "\033[K\n", stdout);
        frame += length + (end != NULL);
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

static void show(top *t, kd_snapshot *snapshot)
{
    const kd_sample *sample = kd_history_last(t->history);
    char *frame = NULL;
    size_t size;
    FILE *out;

    if (t->options.json) {
        json to = kd_json(&t->options);

        kd_json_sample(&to, sample, snapshot);
        fflush(stdout);
        return;
    }
    out = open_memstream(&frame, &size);
    if (out == NULL)
        return;
    write_frame(out, t, snapshot, sample);
    if (t->help)
        fputs(help, out);
    fclose(out);
    if (t->batch) {
        printf("%s\n", frame);
        fflush(stdout);
    } else {
        print_on_terminal(t, frame);
    }
    free(frame);
}

/* The terminal. */

static void note_end(int signal)
{
    (void)signal;
    ended = true;
}

static void note_size(int signal)
{
    (void)signal;
    resized = true;
}

static void read_size(top *t)
{
    struct winsize size;

    resized = false;
    t->rows = 24;
    t->columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row != 0 && size.ws_col != 0) {
        t->rows = size.ws_row;
        t->columns = size.ws_col;
    }
}

static void enter_terminal(top *t)
{
    struct termios raw;

    tcgetattr(STDIN_FILENO, &t->before);
    raw = t->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\033[?1049h\033[?25l", stdout);
    read_size(t);
}

static void leave_terminal(const top *t)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static void press(top *t, char key)
{
    switch (key) {
    case 'q':
        t->quit = true;
        break;
    case ' ':
    case 'p':
        t->paused = !t->paused;
        break;
    case '+':
        t->interval = t->interval > 0.2 ? t->interval / 2 : t->interval;
        break;
    case '-':
        t->interval = t->interval < 60 ? t->interval * 2 : t->interval;
        break;
    case 'w':
        t->locks = BY_WAITERS;
        break;
    case 'c':
        t->locks = BY_CONTENTION;
        break;
    case 'n':
        t->locks = BY_NAME;
        break;
    case 't':
        t->threads = BY_TIME;
        break;
    case 'i':
        t->threads = BY_ID;
        break;
    case 'm':
        t->threads = BY_THREAD_NAME;
        break;
    case 'v':
        t->options.verbose = !t->options.verbose;
        break;
    case 'h':
    case '?':
        t->help = !t->help;
        break;
    default:
        break;
    }
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Waits for the next snapshot. TRUE: the screen must be redrawn before that. */
static bool rest(top *t, double until)
{
    struct pollfd input = {.fd = t->batch ? -1 : STDIN_FILENO, .events = POLLIN};
    double left = t->paused ? 3600 : until - seconds_now();
    char key;

    if (left <= 0)
        return false;
    if (poll(&input, 1, (int)(left * 1000) + 1) > 0) {
        if (read(STDIN_FILENO, &key, 1) <= 0)
            t->quit = true;
        else
            press(t, key);
        return true;
    }
    if (resized)
        read_size(t);
    return !t->batch && (ended || seconds_now() < until || t->paused);
}

static int watch(top *t)
{
    kd_snapshot *snapshot = NULL;
    uint64_t frames = 0;
    int status = 0;

    while (!t->quit && !ended && (t->frames == 0 || frames < t->frames)) {
        double until = seconds_now() + t->interval;

        if (snapshot != NULL)
            kd_snapshot_free(snapshot);
        snapshot = kd_snapshot_take(t->target);
        if (snapshot == NULL) {
            status = 1;
            break;
        }
        kd_renew_budget(t->target, 1);
        kd_history_add(t->history, snapshot);
        show(t, snapshot);
        frames++;
        if (kd_process_of(t->target) == 0 || frames == t->frames)
            break;
        while (!t->quit && !ended && rest(t, until))
            show(t, snapshot);
    }
    if (snapshot != NULL)
        kd_snapshot_free(snapshot);
    return status;
}

static const char usage_text[] =
    "usage: interlock top [--batch] [-n FRAMES] [-d SECONDS] [--json] [-v] PID|CORE\n"
    "  --batch      prints one frame after the other, as without a terminal\n"
    "  -n FRAMES    stops after this many frames\n"
    "  -d SECONDS   the interval between two frames (1)\n"
    "  --json       the counters of each frame\n"
    "  -v           also free locks, and the threads of the library itself\n"
    "On a terminal, q quits and h lists the keys.\n";

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && *seconds >= 0.1 && *seconds <= 3600;
}

/* 0: continue; otherwise the status plus 1. */
static int parse(top *t, int argc, char **argv)
{
    bool wrong = false;

    for (int i = 1; i < argc && !wrong; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return fputs(usage_text, stdout) < 0 ? 2 : 1;
        if (strcmp(argv[i], "--batch") == 0)
            t->batch = true;
        else if (strcmp(argv[i], "--json") == 0)
            t->options.json = t->batch = true;
        else if (strcmp(argv[i], "-v") == 0)
            t->options.verbose = true;
        else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            wrong = !kd_parse_number(argv[++i], &t->frames) || t->frames == 0;
        else if (strcmp(argv[i], "-d") == 0 && i + 1 < argc)
            wrong = !parse_seconds(argv[++i], &t->interval);
        else if (argv[i][0] != '-' && t->options.target == NULL)
            t->options.target = argv[i];
        else
            wrong = true;
        if (wrong)
            kd_say("unrecognized argument: %s", argv[i]);
    }
    if (wrong || t->options.target == NULL) {
        fputs(usage_text, stderr);
        return 3;
    }
    return 0;
}

static void catch_signals(void)
{
    struct sigaction end = {.sa_handler = note_end}, size = {.sa_handler = note_size};

    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGWINCH, &size, NULL);
}

int command_top(int argc, char **argv)
{
    top t = {.options = {.file = stdout, .compact = true}, .interval = 1};
    int status = parse(&t, argc, argv);

    if (status != 0)
        return status - 1;
    t.target = kd_open(t.options.target, false);
    if (t.target == NULL)
        return 1;
    t.batch = t.batch || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || kd_process_of(t.target) == 0;
    t.history = kd_history_create();
    catch_signals();
    if (!t.batch)
        enter_terminal(&t);
    status = watch(&t);
    if (!t.batch)
        leave_terminal(&t);
    kd_history_free(t.history);
    kd_close(t.target);
    return status;
}
