/* record.c: runs a command with recording on, and collects the recordings of the command and its children. attach.c is
   for a running process. */
#include "record.h"

#include <dirent.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED_TO_RUN 127

static int parse_one(int option, const char *usage, kd_record_options *options)
{
    uint64_t limit;
    char *end;

    switch (option) {
    case 'o':
        options->output = optarg;
        return 0;
    case 'l':
        if (!kd_parse_number(optarg, &limit) || limit < 1 || limit > 4096)
            return kd_say("--limit takes a number of megabytes from 1 to 4096"), 2;
        options->limit = optarg;
        return 0;
    case 't':
        if (!kd_parse_number(optarg, &options->top) || options->top == 0)
            return kd_say("--top takes a number of locks, from 1"), 2;
        return 0;
    case 's':
        options->seconds = strtod(optarg, &end);
        if (*optarg == '\0' || *end != '\0' || !(options->seconds > 0) || options->seconds > 1e9)
            return kd_say("--seconds takes a time above 0, not %s", optarg), 2;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case 'r':
        options->recording = optarg;
        return 0;
    case 'f':
        options->flame = optarg;
        return 0;
    case 'F':
        options->folded = optarg;
        return 0;
    case 'h':
        return fputs(usage, stdout), -1;
    default:
        return fputs(usage, stderr), 2;
    }
}

static bool is_number(const char *word)
{
    return word[0] != '\0' && strspn(word, "0123456789") == strlen(word);
}

/* A number alone: no command has such a name. */
static bool is_process(char **command)
{
    return command[1] == NULL && is_number(command[0]);
}

/* Options may also follow a process, unlike those of a command, which are the command's own. */
static int parse_all(int argc, char **argv, const char *usage, const struct option *known, kd_record_options *options)
{
    char *process = NULL;
    int option, result = 0;

    for (;;) {
        while (result == 0 && (option = getopt_long(argc, argv, "+o:h", known, NULL)) != -1)
            result = parse_one(option, usage, options);
        if (result != 0 || process != NULL || optind + 1 >= argc || !is_number(argv[optind]) || argv[optind + 1][0] != '-')
            break;
        process = argv[optind++];
    }
    if (result == 0 && process != NULL && optind < argc)
        return kd_say("one argument too many: %s", argv[optind]), fputs(usage, stderr), 2;
    if (process != NULL)
        argv[--optind] = process;
    options->command = argv + optind;
    return result;
}

int kd_parse_record(int argc, char **argv, const char *usage, const struct option *known, kd_record_options *options)
{
    int result = parse_all(argc, argv, usage, known, options);

    if (result != 0)
        return result;
    if ((options->command[0] == NULL) == (options->recording == NULL))
        return fputs(usage, stderr), 2;
    if (options->seconds != 0 && (options->recording != NULL || !is_process(options->command)))
        return kd_say("--seconds is for a running process"), 2;
    return 0;
}

static volatile sig_atomic_t command_process;

static void pass_on(int number)
{
    if (command_process > 0)
        kill((pid_t)command_process, number);
}

static const int passed_on[] = {SIGTERM, SIGHUP};

/* Until the command's id is known. Returns the previous mask. */
static sigset_t block_signals(void)
{
    sigset_t set, before;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    return before;
}

/* A signal that ends the command must not end this process, which reports about it. */
static void handle_signals(const sigset_t *mask)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    sigaction(SIGINT, &action, NULL); /* the terminal signals the command too */
    sigaction(SIGQUIT, &action, NULL);
    action.sa_handler = pass_on;
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        sigaction(passed_on[i], &action, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
}

static int status_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(char **command, kd_recordings *recordings)
{
    int status, failed[2];
    int reason = 0;
    sigset_t mask;
    pid_t child;

    if (pipe2(failed, O_CLOEXEC) != 0)
        return kd_say("cannot run %s: %s", command[0], strerror(errno)), 1;
    mask = block_signals();
    child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &mask, NULL);
        execvp(command[0], command);
        reason = errno;
        if (write(failed[1], &reason, sizeof(reason)) < 0)
            _exit(FAILED_TO_RUN + 1);
        _exit(FAILED_TO_RUN);
    }
    close(failed[1]);
    if (child > 0) {
        command_process = child;
        handle_signals(&mask);
        if (read(failed[0], &reason, sizeof(reason)) != sizeof(reason))
            reason = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        command_process = 0;
        recordings->process = child;
        recordings->status = status_of(status);
    } else {
        reason = errno;
    }
    close(failed[0]);
    if (reason != 0)
        return kd_say("cannot run %s: %s", command[0], strerror(reason)), FAILED_TO_RUN;
    return 0;
}

/* The modules of the process at its end, or, without an orderly end, at its beginning. */
static struct Dwfl *open_modules(const TRACE_FILE *file)
{
    static char *debug_path;
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .debuginfo_path = &debug_path,
    };
    struct Dwfl *dwfl = NULL;
    FILE *maps = file->ModulesLength != 0 ? fmemopen((void *)(uintptr_t)file->Modules, file->ModulesLength, "r") : NULL;

    if (maps != NULL)
        dwfl = dwfl_begin(&callbacks);
    if (dwfl != NULL) {
        dwfl_linux_proc_maps_report(dwfl, maps);
        dwfl_report_end(dwfl, NULL, NULL);
    }
    if (maps != NULL)
        fclose(maps);
    return dwfl;
}

struct Dwfl_Module *kd_recorded_module(kd_recording *recording, kd_address address)
{
    if (recording->target != NULL)
        return kd_module_at(recording->target, address);
    return recording->dwfl != NULL ? kd_module_in(recording->dwfl, &recording->segments, address) : NULL;
}

/* FALSE: not a recording. errno is 0 if it could be read. */
static bool open_recording(const char *path, TRACE_CONTENT content, kd_recording *recording)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    void *memory = MAP_FAILED;

    if (file < 0)
        return false;
    kd_guard_start(false); /* it is mapped, and may become shorter */
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    else
        errno = 0;
    close(file);
    if (memory == MAP_FAILED)
        return false;
    errno = 0;
    if (!TraceIsFile(memory, (size_t)status.st_size, content)) {
        munmap(memory, (size_t)status.st_size);
        return false;
    }
    *recording = (kd_recording){.path = strdup(path), .file = memory, .size = (size_t)status.st_size};
    recording->dwfl = open_modules(recording->file);
    return true;
}

void kd_add_recording(kd_recordings *recordings, const char *path, const TRACE_FILE *file, size_t size)
{
    recordings->list = kd_grow(recordings->list, recordings->count, sizeof(*recordings->list));
    recordings->list[recordings->count++] =
        (kd_recording){.path = strdup(path), .file = file, .size = size, .dwfl = open_modules(file), .stopped = file->End == 0};
}

static int by_start(const void *one, const void *other)
{
    uint64_t a = ((const kd_recording *)one)->file->Start, b = ((const kd_recording *)other)->file->Start;

    return a < b ? -1 : a > b;
}

/* Opens and removes the files in the folder: open files stay readable. */
static void collect(const char *folder, TRACE_CONTENT content, kd_recordings *recordings)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char *path = NULL;
        kd_recording recording;

        if (entry->d_name[0] == '.' || asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            continue;
        if (open_recording(path, content, &recording)) {
            recordings->list = kd_grow(recordings->list, recordings->count, sizeof(*recordings->list));
            recordings->list[recordings->count++] = recording;
        }
        unlink(path);
        free(path);
    }
    if (directory != NULL)
        closedir(directory);
    rmdir(folder);
    if (recordings->count > 1)
        qsort(recordings->list, recordings->count, sizeof(*recordings->list), by_start);
}

/* A core file or a snapshot. */
static bool is_core(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    Elf64_Ehdr head;
    bool is = file >= 0 && read(file, &head, sizeof(head)) == (ssize_t)sizeof(head) &&
              memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_type == ET_CORE;

    if (file >= 0)
        close(file);
    return is;
}

const TRACE_FILE *kd_read_contention(kd_target *target, bool *active)
{
    static TRACE_RECORDING recording;
    size_t size = 0;
    kd_address bits = kd_root(target, "TraceActive", NULL), at = kd_root(target, "TraceRecording", &size);
    uint32_t word;
    char *memory;
    bool read = true;

    *active = false;
    if (bits == 0 || size < (TraceContention + 1) * sizeof(recording) || !kd_read(target, bits, &word, sizeof(word)) ||
        !kd_read(target, at + TraceContention * sizeof(recording), &recording, sizeof(recording)) ||
        recording.File == NULL || recording.Size != KD_CONTENTION_SIZE)
        return NULL;
    *active = (word & 1u << TraceContention) != 0;
    at = KD_ADDRESS(recording.File);
    memory = mmap(NULL, KD_CONTENTION_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        kd_no_memory();
    /* the names of modules, which are between the two, are known from the target */
    read = kd_read(target, at, memory, TRACE_UNIT);
    for (size_t i = sizeof(TRACE_FILE); read && i < KD_CONTENTION_SIZE; i += sizeof(TRACE_CONTENTION_ENTRY))
        read = kd_read(target, at + i, memory + i, sizeof(TRACE_CONTENTION_ENTRY));
    if (read && TraceIsFile((const TRACE_FILE *)memory, KD_CONTENTION_SIZE, TraceContention))
        return (const TRACE_FILE *)memory;
    munmap(memory, KD_CONTENTION_SIZE);
    return NULL;
}

static int read_core(const char *path, kd_recordings *recordings)
{
    kd_target *target = kd_open(path, false);
    const TRACE_FILE *file;
    bool active;

    if (target == NULL)
        return 1;
    kd_renew_budget(target, 1);
    file = kd_read_contention(target, &active);
    if (file == NULL) {
        kd_say("%s has no recording of contention: the process did not record, or recorded into a file", path);
        kd_close(target);
        return 1;
    }
    recordings->list = kd_grow(NULL, 0, sizeof(*recordings->list));
    recordings->list[recordings->count++] = (kd_recording){
        .path = strdup(path), .file = file, .size = KD_CONTENTION_SIZE, .target = target, .stopped = true};
    recordings->target = target;
    return 0;
}

static int read_one(const char *path, TRACE_CONTENT content, kd_recordings *recordings)
{
    recordings->list = kd_grow(NULL, 0, sizeof(*recordings->list));
    if (open_recording(path, content, recordings->list)) {
        recordings->count = 1;
        return 0;
    }
    if (errno != 0)
        kd_say("cannot read %s: %s", path, strerror(errno));
    else
        kd_say("%s is not a recording of %s by this version of Interlock", path,
               content == TraceEvents ? "a trace" : "contention");
    return 1;
}

int kd_record(const char *setting, TRACE_CONTENT content, const kd_record_options *options,
              kd_recordings *recordings)
{
    const char *parent = getenv("TMPDIR");
    char *folder = NULL, *value = NULL;
    int result;

    *recordings = (kd_recordings){.list = NULL};
    if (content == TraceContention && is_core(options->recording != NULL ? options->recording : options->command[0]))
        return read_core(options->recording != NULL ? options->recording : options->command[0], recordings);
    if (options->recording != NULL)
        return read_one(options->recording, content, recordings);
    if (is_process(options->command))
        return kd_attach(content, options, recordings);
    if (asprintf(&folder, "%s/interlock-XXXXXX", parent != NULL && parent[0] != '\0' ? parent : "/tmp") < 0)
        return 1;
    if (mkdtemp(folder) == NULL) {
        kd_say("cannot create a folder for the recordings, %s: %s", folder, strerror(errno));
        free(folder);
        return 1;
    }
    if (asprintf(&value, "%s/%%p.trace", folder) < 0)
        return 1;
    setenv(setting, value, 1);
    if (options->limit != NULL)
        setenv("INTERLOCK_TRACE_LIMIT", options->limit, 1);
    result = run(options->command, recordings);
    collect(folder, content, recordings);
    if (result == 0 && recordings->count == 0)
        kd_say("nothing was recorded: neither %s nor a child of it that has ended uses this version of Interlock",
               options->command[0]);
    free(value);
    free(folder);
    return result;
}

void kd_discard(kd_recordings *recordings)
{
    for (size_t i = 0; i < recordings->count; i++) {
        munmap((void *)(uintptr_t)recordings->list[i].file, recordings->list[i].size);
        if (recordings->list[i].dwfl != NULL) {
            kd_forget_symbols(recordings->list[i].dwfl);
            dwfl_end(recordings->list[i].dwfl);
        }
        free(recordings->list[i].segments.list);
        free(recordings->list[i].path);
    }
    if (recordings->target != NULL)
        kd_close(recordings->target);
    free(recordings->list);
}
