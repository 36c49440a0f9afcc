/*
 * explain.c: `interlock explain`: what happened to a process, in a paragraph, after !analyze -v: which rule was broken,
 * by which thread, which thread holds what, where to look. For a bugcheck report in a log, a core file, or a running
 * process.
 */
#include "bugadvice.h"
#include "stopreport.h"
#include "target.h"
#include "views.h"

#include "ke/bugcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#define WIDTH 100
#define MOST_FRAMES 64
#define NULL_PAGE 0x10000

typedef enum cause { BUGCHECK, SIGNAL, DEADLOCK, NOTHING } cause;

static const char *const cause_names[] = {"bugcheck", "signal", "deadlock", "none"};

typedef struct story {
    cause cause;
    kd_snapshot *snapshot;      /* NULL: of a report */
    kd_stop_report bug;         /* of a bugcheck */
    int signal;
    bool has_address;           /* of a signal */
    kd_address address;
    uint32_t thread_id;         /* 0: none is to blame */
    int thread;                 /* index, -1: none, or not known to the library */
    kd_frame frames[MOST_FRAMES];
    size_t frame_count;
    const char *stack_problem;  /* or NULL */
    char text[4096];            /* the paragraph */
} story;

/* Words. */

static void add(story *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(story *s, const char *format, ...)
{
    size_t used = strlen(s->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(s->text + used, sizeof(s->text) - used, format, arguments);
    va_end(arguments);
}

/* The text is clean: no line of it is broken inside a character. */
static void print_paragraph(const char *text)
{
    size_t column = 0;

    while (*text != '\0') {
        size_t length = strcspn(text, " ");

        if (column != 0 && column + 1 + length > WIDTH) {
            putchar('\n');
            column = 0;
        } else if (column != 0) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)length, text);
        column += length;
        text += length;
        while (*text == ' ')
            text++;
    }
    putchar('\n');
}

static const char *signal_name(int number)
{
    const char *name = sigabbrev_np(number);

    return name != NULL ? name : "?";
}

static void describe_thread(const story *s, char *buffer, size_t size)
{
    if (s->thread >= 0)
        kd_describe_thread(s->snapshot, s->thread, buffer, size);
    else if (s->thread_id != 0)
        snprintf(buffer, size, "thread %u", s->thread_id);
    else
        snprintf(buffer, size, "a thread that the report does not name");
}

/* NULL: an unknown code. */
static const char *name_of(uint32_t code)
{
    return code != 0 && KiFindBugCode(code)->Code == code ? KiFindBugCode(code)->Name : NULL;
}

static const KI_VIOLATION *violation_of(const story *s)
{
    return KiFindViolation(s->bug.code, s->bug.parameter[0]);
}

static const char *sentence_of(const story *s)
{
    const KI_VIOLATION *violation = violation_of(s);

    if (s->bug.sentence[0] != '\0')
        return s->bug.sentence;
    return violation != NULL ? violation->Description : KiBugSentence(s->bug.code);
}

static const char *meaning_of(const story *s, size_t number)
{
    const KI_VIOLATION *violation = violation_of(s);

    return violation != NULL && number > 0 ? violation->Parameter[number - 1] : KiFindBugCode(s->bug.code)->Parameter[number];
}

static void add_waiters(const kd_lock *lock, char *buffer, size_t size)
{
    size_t used = strlen(buffer);

    if (lock->waiter_count != 0)
        snprintf(buffer + used, size - used, ", %zu wait%s for it", lock->waiter_count, lock->waiter_count == 1 ? "s" : "");
}

/* A lock: its owners, and how many threads wait. */
static void describe_lock_fully(const story *s, const kd_lock *lock, char *buffer, size_t size)
{
    char text[512], owner[192] = "";

    kd_describe_lock(lock, text, sizeof(text));
    if (lock->owner_count != 0 && lock->owners[0].thread >= 0)
        kd_describe_thread(s->snapshot, lock->owners[0].thread, owner, sizeof(owner));
    else if (lock->owner_count != 0 && lock->owners[0].id != 0)
        snprintf(owner, sizeof(owner), "thread %u, which has ended", lock->owners[0].id);
    snprintf(buffer, size, "%s%s%s%s", text, owner[0] != '\0' ? ", held by " : "", owner,
             lock->owner_count > 1 ? " and others" : "");
    add_waiters(lock, buffer, size);
}

/* Paragraphs. */

static void tell_bugcheck(story *s)
{
    kd_advice advice = kd_bug_advice(s->bug.code, s->bug.parameter[0]);
    const char *sentence = sentence_of(s);
    const char *name = name_of(s->bug.code);
    char thread[256];

    describe_thread(s, thread, sizeof(thread));
    thread[0] = (char)(thread[0] == 't' ? 'T' : thread[0] == 'a' ? 'A' : thread[0]);
    add(s, "%s stopped the process with bugcheck 0x%08X", thread, s->bug.code);
    if (name != NULL)
        add(s, ", %s", name);
    add(s, "%s%s. %s %s", sentence != NULL ? ": " : "", sentence != NULL ? sentence : "", advice.rule, advice.look);
}

static bool is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE;
}

static void tell_signal(story *s)
{
    char thread[256];

    describe_thread(s, thread, sizeof(thread));
    add(s, "SIG%s ended the process in %s", signal_name(s->signal), thread);
    if (s->frame_count != 0)
        add(s, ", in %s", s->frames[0].symbol);
    if (s->frame_count != 0 && s->frames[0].line != 0)
        add(s, " [%s @ %d]", s->frames[0].file, s->frames[0].line);
    if (s->has_address && (s->signal == SIGSEGV || s->signal == SIGBUS))
        add(s, ", at address 0x%" PRIx64 "%s", s->address,
            s->address < NULL_PAGE ? ", a member of a structure whose pointer is NULL" : "");
    add(s, ". The library did not stop it: there is no bugcheck. ");
    if (is_fault(s->signal))
        add(s, "Look at the stack: the program's first function in it caused the fault. If the memory that it used was freed "
               "before, AddressSanitizer shows by whom. ");
    else if (s->signal == SIGABRT)
        add(s, "The program ended itself (abort, an assertion, an uncaught exception), or another process sent the signal, as a "
               "watchdog does. ");
    else
        add(s, "Another process sent it, or a limit was reached. ");
    if (kd_status_of(s->snapshot) == KD_DEADLOCKED)
        add(s, "The process was deadlocked at that time: the cycle below is why it did not continue. ");
    if (s->thread >= 0 && s->snapshot->threads[s->thread].owned_count != 0)
        add(s, "The thread holds locks, below: the data that they protect may be inconsistent. ");
}

static void tell_deadlock(story *s)
{
    size_t deadlocked = 0;

    for (size_t i = 0; i < s->snapshot->thread_count; i++)
        deadlocked += s->snapshot->threads[i].deadlocked;
    add(s, "The process hangs: the waits of %zu thread%s can never end. ", deadlocked, deadlocked == 1 ? "" : "s");
    if (s->snapshot->deadlocks->cycles[0].orphaned)
        add(s, "A lock is held by a thread that has ended, so no thread will release it: look for a path out of that thread without a "
               "release, or for TerminateThread. ");
    else
        add(s, "Each holds a lock that the next one waits for. All threads have to acquire locks in one order: the stacks (interlock "
               "deadlocks --stack) show which code acquired them in which order; the lock order verifier finds such a cycle before "
               "it hangs (docs/hunting-deadlocks.md). ");
}

static void tell_nothing(story *s)
{
    const kd_snapshot *snapshot = s->snapshot;
    int longest = -1;
    size_t living = 0, waiting = 0;
    char thread[256], lock[512];

    for (size_t i = 0; i < snapshot->own_count; i++) {
        const kd_thread *t = &snapshot->threads[i];

        living += t->raw->State != Terminated;
        waiting += t->waiting;
        if (t->waiting && !t->system && (longest < 0 || t->raw->WaitTime < snapshot->threads[longest].raw->WaitTime))
            longest = (int)i;
    }
    add(s, "Nothing looks wrong: no bugcheck, no signal, no deadlock. %zu of %zu threads wait", waiting, living);
    if (longest >= 0) {
        const kd_thread *t = &snapshot->threads[longest];

        add(s, "; %s has waited longest", kd_describe_thread(snapshot, longest, thread, sizeof(thread)));
        if (snapshot->now != 0)
            add(s, ", for %.1f s", kd_waited(snapshot, t));
        if (t->block_count != 0 && t->blocks[0].lock >= 0)
            add(s, ", for %s", kd_describe_lock(&snapshot->locks[t->blocks[0].lock], lock, sizeof(lock)));
    }
    add(s, ". ");
    if (snapshot->deadlocks->suspicion_count != 0)
        add(s, "A deadlock is possible, if one of the threads below holds a lock that does not record its owner. ");
    else
        add(s, "If it should do something, find the code that should signal what its threads wait for: interlock threads --stack. ");
}

static void tell(story *s)
{
    switch (s->cause) {
    case BUGCHECK:
        tell_bugcheck(s);
        break;
    case SIGNAL:
        tell_signal(s);
        break;
    case DEADLOCK:
        tell_deadlock(s);
        break;
    case NOTHING:
        tell_nothing(s);
        break;
    }
}

/* Text. */

static void print_parameters(const story *s)
{
    for (size_t i = 0; i < KI_BUGCHECK_PARAMETERS; i++) {
        const char *meaning = meaning_of(s, i), *explanation = s->bug.explanation[i];

        if (meaning[0] != '\0' || s->bug.parameter[i] != 0)
            printf("    %zu: 0x%016" PRIx64 "  %s%s%s\n", i + 1, s->bug.parameter[i], meaning,
                   meaning[0] != '\0' && explanation[0] != '\0' ? ": " : "", explanation);
    }
}

static void print_stack(const story *s)
{
    for (size_t i = 0; i < s->frame_count; i++) {
        printf("    %016" PRIx64 " %s", s->frames[i].pc, s->frames[i].symbol);
        if (s->frames[i].line != 0)
            printf(" [%s @ %d]", s->frames[i].file, s->frames[i].line);
        printf("\n");
    }
    for (size_t i = 0; i < s->bug.frame_count; i++)
        printf("    %s\n", s->bug.frames[i]);
    if (s->frame_count == 0 && s->bug.frame_count == 0)
        printf("    none: %s\n", s->stack_problem != NULL ? s->stack_problem : "the report ends before it");
}

static void print_held(const story *s)
{
    const kd_thread *t = s->thread >= 0 ? &s->snapshot->threads[s->thread] : NULL;
    char text[1024];

    if (t == NULL)
        return;
    printf("\n%s", t->owned_count != 0 ? "Locks that it holds:\n" : "It holds no lock that records its owner.\n");
    for (size_t i = 0; i < t->owned_count; i++) {
        kd_describe_lock(&s->snapshot->locks[t->owned[i]], text, sizeof(text));
        add_waiters(&s->snapshot->locks[t->owned[i]], text, sizeof(text));
        printf("    %s\n", text);
    }
}

static void print_story(const story *s)
{
    char thread[256];

    print_paragraph(s->text);
    if (s->cause == BUGCHECK) {
        printf("\nParameters:\n");
        print_parameters(s);
        if (s->bug.thread[0] != '\0')
            printf("\nThread %s\n", s->bug.thread);
    }
    if (s->thread_id != 0 || s->cause == BUGCHECK) {
        describe_thread(s, thread, sizeof(thread));
        printf("\nStack of %s:\n", thread);
        print_stack(s);
        print_held(s);
    }
    if (s->snapshot != NULL && (s->snapshot->deadlocks->cycle_count != 0 || s->snapshot->deadlocks->suspicion_count != 0)) {
        printf("\n");
        kd_print_deadlocks(s->snapshot);
    }
}

/* JSON. */

static void json_bugcheck(json *out, const story *s)
{
    kd_advice advice = kd_bug_advice(s->bug.code, s->bug.parameter[0]);

    if (s->cause != BUGCHECK) {
        json_null(out, "bugcheck");
        return;
    }
    json_object(out, "bugcheck");
    json_hex(out, "code", s->bug.code);
    json_string(out, "name", name_of(s->bug.code));
    json_string(out, "sentence", sentence_of(s));
    json_string(out, "rule", advice.rule);
    json_string(out, "look_at", advice.look);
    json_array(out, "parameters");
    for (size_t i = 0; i < KI_BUGCHECK_PARAMETERS; i++) {
        json_object(out, NULL);
        json_hex(out, "value", s->bug.parameter[i]);
        json_string(out, "meaning", meaning_of(s, i)[0] != '\0' ? meaning_of(s, i) : NULL);
        json_string(out, "explanation", s->bug.explanation[i][0] != '\0' ? s->bug.explanation[i] : NULL);
        json_end(out);
    }
    json_end(out);
    json_end(out);
}

static void json_signal(json *out, const story *s)
{
    char name[32];

    if (s->cause != SIGNAL) {
        json_null(out, "signal");
        return;
    }
    json_object(out, "signal");
    json_number(out, "number", s->signal);
    snprintf(name, sizeof(name), "SIG%s", signal_name(s->signal));
    json_string(out, "name", name);
    if (s->has_address)
        json_hex(out, "address", s->address);
    else
        json_null(out, "address");
    json_end(out);
}

static void json_stack(json *out, const story *s)
{
    json_array(out, "stack");
    for (size_t i = 0; i < s->frame_count; i++) {
        json_object(out, NULL);
        json_address(out, "pc", s->frames[i].pc);
        json_string(out, "symbol", s->frames[i].symbol);
        json_string(out, "file", s->frames[i].line != 0 ? s->frames[i].file : NULL);
        if (s->frames[i].line != 0)
            json_number(out, "line", s->frames[i].line);
        else
            json_null(out, "line");
        json_end(out);
    }
    for (size_t i = 0; i < s->bug.frame_count; i++) {
        json_object(out, NULL);
        json_null(out, "pc");
        json_string(out, "symbol", s->bug.frames[i]);
        json_null(out, "file");
        json_null(out, "line");
        json_end(out);
    }
    json_end(out);
}

static void json_thread(json *out, const story *s)
{
    const kd_thread *t = s->thread >= 0 ? &s->snapshot->threads[s->thread] : NULL;

    if (s->thread_id == 0) {
        json_null(out, "thread");
        return;
    }
    json_object(out, "thread");
    json_number(out, "id", s->thread_id);
    json_string(out, "name", t != NULL ? t->name : NULL);
    if (t != NULL)
        json_number(out, "irql", t->raw->Irql);
    else
        json_null(out, "irql");
    json_array(out, "owns");
    for (size_t i = 0; t != NULL && i < t->owned_count; i++)
        kd_json_lock_briefly(out, NULL, &s->snapshot->locks[t->owned[i]]);
    json_end(out);
    json_end(out);
}

static void write_story(json *out, story *s)
{
    json_object(out, NULL);
    json_string(out, "cause", cause_names[s->cause]);
    json_string(out, "explanation", s->text);
    json_bugcheck(out, s);
    json_signal(out, s);
    json_thread(out, s);
    json_stack(out, s);
    if (s->snapshot != NULL) {
        json_number(out, "process_id", s->snapshot->process_id);
        kd_json_deadlocks(out, s->snapshot);
        kd_json_end(out, s->snapshot);
    } else {
        json_end(out);
    }
}

/* A core file or process. */

static void keep_frame(const kd_frame *frame, void *context)
{
    story *s = context;

    if (s->frame_count < MOST_FRAMES)
        s->frames[s->frame_count++] = *frame;
}

/* Starts at the function that stopped the process, as in the report. */
static void drop_inner_frames(story *s, kd_address caller)
{
    for (size_t i = 0; caller != 0 && i < s->frame_count; i++) {
        if (s->frames[i].pc == caller) {
            memmove(s->frames, s->frames + i, (s->frame_count - i) * sizeof(kd_frame));
            s->frame_count -= i;
            return;
        }
    }
}

static void blame(story *s, uint32_t id)
{
    s->thread_id = id;
    s->thread = kd_thread_with_id(s->snapshot, id);
    if (id != 0)
        s->stack_problem = kd_stack(s->snapshot->target, id, keep_frame, s);
}

/* Describes a parameter of a bugcheck: a value by its meaning; otherwise a thread, a lock, or a symbol. */
static void explain_parameter(story *s, size_t number)
{
    kd_address value = s->bug.parameter[number];
    char *to = s->bug.explanation[number], symbol[KD_SYMBOL_SIZE];
    size_t size = sizeof(s->bug.explanation[number]);
    const char *meaning = meaning_of(s, number);
    int index;

    if (!KiExplainValue(meaning, (ULONG_PTR)value, to, size) || meaning[0] == '\0')
        return;
    index = kd_thread_at(s->snapshot, value);
    if (index >= 0 && index == s->thread)
        snprintf(to, size, "this thread");
    else if (index >= 0)
        kd_describe_thread(s->snapshot, index, to, size);
    else if ((index = kd_find_lock(s->snapshot, value)) >= 0 || (index = kd_object_lock(s->snapshot, value)) >= 0)
        describe_lock_fully(s, &s->snapshot->locks[index], to, size);
    else if (kd_symbol(s->snapshot->target, KiEndsIn(meaning, "raised at") || KiEndsIn(meaning, "caller") ? value - 1 : value,
                       symbol))
        kd_copy(to, size, symbol, SIZE_MAX);
}

static bool find_bugcheck(story *s)
{
    kd_target *target = s->snapshot->target;
    size_t id_size = 0, data_size = 0;
    kd_address id_at = kd_root(target, "KiBugCheckThreadId", &id_size), at = kd_root(target, "KiBugCheckData", &data_size);
    KI_BUGCHECK data;
    ULONG id;

    if (id_size != sizeof(id) || data_size != sizeof(data) || !kd_read(target, id_at, &id, sizeof(id)) || id == 0 ||
        !kd_read(target, at, &data, sizeof(data)))
        return false;
    s->cause = BUGCHECK;
    s->bug.code = data.Code;
    for (size_t i = 0; i < KI_BUGCHECK_PARAMETERS; i++)
        s->bug.parameter[i] = data.Parameter[i];
    if (data.Reason != NULL)
        kd_read_string(target, KD_ADDRESS(data.Reason), s->bug.sentence, sizeof(s->bug.sentence));
    blame(s, id);
    drop_inner_frames(s, KD_ADDRESS(data.Caller));
    for (size_t i = 0; i < KI_BUGCHECK_PARAMETERS; i++)
        explain_parameter(s, i);
    return true;
}

/* The first note is that of the thread that the signal ended; the signal's note belongs to it. */
typedef struct notes {
    bool has_status, has_info;
    struct elf_prstatus status;
    siginfo_t info;
} notes;

static bool read_note(const GElf_Nhdr *note, const char *name, const char *contents, void *context)
{
    notes *n = context;

    (void)name;
    if (note->n_type == NT_PRSTATUS && !n->has_status && note->n_descsz == sizeof(n->status)) {
        memcpy(&n->status, contents, sizeof(n->status));
        n->has_status = true;
    } else if (note->n_type == NT_SIGINFO && !n->has_info && note->n_descsz == sizeof(n->info)) {
        memcpy(&n->info, contents, sizeof(n->info));
        n->has_info = true;
    }
    return !n->has_status || !n->has_info;
}

/* A core file that gcore or interlock snapshot wrote belongs to a process that continued. */
static bool find_signal(story *s)
{
    notes n = {.has_status = false};

    if (kd_core(s->snapshot->target) == NULL)
        return false;
    kd_visit_notes(s->snapshot->target, read_note, &n);
    if (!n.has_status || n.status.pr_cursig <= 0 || n.status.pr_cursig >= NSIG || n.status.pr_pid <= 0 ||
        n.status.pr_cursig == SIGSTOP || n.status.pr_cursig == SIGTRAP)
        return false;
    s->cause = SIGNAL;
    s->signal = n.status.pr_cursig;
    s->has_address = n.has_info && n.info.si_signo == s->signal && is_fault(s->signal);
    s->address = s->has_address ? KD_ADDRESS(n.info.si_addr) : 0;
    blame(s, (uint32_t)n.status.pr_pid);
    return true;
}

static int show_explanation(kd_snapshot *snapshot, const kd_options *options)
{
    story *s = kd_allocate(1, sizeof(*s));
    json out = kd_json(options);

    s->snapshot = snapshot;
    s->thread = -1;
    if (!find_bugcheck(s) && !find_signal(s))
        s->cause = snapshot->deadlocks->cycle_count != 0 ? DEADLOCK : NOTHING;
    tell(s);
    if (options->json)
        write_story(&out, s);
    else
        print_story(s);
    free(s);
    return 0;
}

const kd_view kd_explain_view = {
    .name = "explain",
    .arguments = "[--json] [PID|CORE|REPORT]\n"
                 "Explains what happened to a process, from a bugcheck report in a log, a core file, or a running process.\n"
                 "Without a name, or with -, the report is read from standard input.\n"
                 "The exit status is 0, or 3 if there is a certain deadlock.",
    .show = show_explanation,
    .status = kd_status_of,
};

/* A report. */

static int explain_report(const char *text, size_t length, const char *what, const kd_options *options)
{
    story *s = kd_allocate(1, sizeof(*s));
    json out = kd_json(options);
    const char *problem = kd_read_report(text, length, &s->bug);

    if (problem != NULL) {
        kd_say("%s: %s", what, problem);
        free(s);
        return 1;
    }
    s->thread = -1;
    s->thread_id = s->bug.thread_id;
    s->cause = BUGCHECK;
    tell(s);
    if (options->json)
        write_story(&out, s);
    else
        print_story(s);
    free(s);
    return 0;
}

/* All of it, up to the limit. NULL: errno has the reason. */
static char *read_all(int file, size_t *length)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t count = 1;

    *length = 0;
    while (count > 0 && *length < KD_LARGEST_REPORT) {
        if (*length + 4096 > room) {
            room = 2 * room + 65536;
            text = realloc(text, room);
            if (text == NULL)
                kd_no_memory();
        }
        count = read(file, text + *length, room - *length);
        if (count < 0 && errno == EINTR)
            count = 1;
        else if (count > 0)
            *length += (size_t)count;
    }
    if (count >= 0)
        return text;
    free(text);
    return NULL;
}

/* Is it a text, and not a core file or something that views refuse? -1: it cannot be opened, which the view reports. */
static int open_text(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    char magic[SELFMAG] = "";

    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
        !(pread(file, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0))
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

static int explain_text(int file, const char *what, const kd_options *options)
{
    size_t length;
    char *text = read_all(file, &length);
    int status;

    if (text == NULL)
        return kd_say("%s cannot be read: %s", what, strerror(errno)), 1;
    status = explain_report(text, length, what, options);
    free(text);
    return status;
}

/* The only argument other than --json, if it may be a text file. */
static const char *text_of(int argc, char **argv, bool *as_json)
{
    const char *only = "-";

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            *as_json = true;
        else if ((argv[i][0] == '-' && argv[i][1] != '\0') || strcmp(only, "-") != 0)
            return NULL; /* kd_run parses the options */
        else
            only = argv[i];
    }
    return only;
}

int command_explain(int argc, char **argv)
{
    kd_options options = {.file = stdout};
    const char *what = text_of(argc, argv, &options.json);
    uint64_t process;
    int file, status;

    if (what != NULL && strcmp(what, "-") == 0)
        return explain_text(STDIN_FILENO, "the standard input", &options);
    if (what == NULL || kd_parse_number(what, &process) || (file = open_text(what)) < 0)
        return kd_run(&kd_explain_view, argc, argv);
    status = explain_text(file, what, &options);
    close(file);
    return status;
}
