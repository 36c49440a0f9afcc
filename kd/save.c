/*
 * save.c: `interlock snapshot`: saves what the views read of a process, in a file that the views read like a core file.
 *
 * All threads are stopped while the views run once over the process. The pages that they read are the file's segments,
 * with the registers and the tops of the stacks, and what libdwfl needs to find the modules. So the file is small, and
 * consistent. A note of its own has the time, which a core file does not.
 */
#include "target.h"
#include "views.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_THREADS 100000
#define MOST_ROUNDS 10               /* of stopping threads that were made meanwhile */
#define STACK_SAVED (128 * 1024)     /* of each thread */
#define MODULE_DATA (1024 * 1024)    /* of each module: the dynamic linker's lists are there */
#define HEADER_PAGES 4               /* of each module */
#define MOST_FILE_SEGMENTS 60000

/* Stopping. */

typedef struct stopped {
    pid_t *threads;
    size_t count;
} stopped;

static bool is_stopped(const stopped *all, pid_t thread)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->threads[i] == thread)
            return true;
    return false;
}

static bool stop_thread(stopped *all, pid_t thread)
{
    int status;

    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0)
        return errno == ESRCH; /* it has ended */
    if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0 || waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status))
        return true;
    all->threads = kd_grow(all->threads, all->count, sizeof(pid_t));
    all->threads[all->count++] = thread;
    return true;
}

/* FALSE: tracing it is not permitted. *New: threads that were not stopped before. */
static bool stop_round(stopped *all, pid_t process, size_t *new)
{
    char path[64];
    DIR *tasks;
    struct dirent *entry;
    bool may = true;

    *new = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
    tasks = opendir(path);
    while (may && tasks != NULL && (entry = readdir(tasks)) != NULL && all->count < MOST_THREADS) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

        if (thread > 0 && !is_stopped(all, thread)) {
            may = stop_thread(all, thread);
            *new += 1;
        }
    }
    if (tasks != NULL)
        closedir(tasks);
    return may;
}

static bool stop_all(stopped *all, pid_t process)
{
    size_t new = 1;

    for (int i = 0; i < MOST_ROUNDS && new != 0; i++)
        if (!stop_round(all, process, &new))
            return false;
    return all->count != 0;
}

static void continue_all(stopped *all)
{
    for (size_t i = 0; i < all->count; i++)
        ptrace(PTRACE_DETACH, all->threads[i], NULL, NULL);
    free(all->threads);
}

/* The contents of the file. */

/* kd_read records everything that the views read. */
static bool read_by_views(kd_target *target)
{
    static const kd_view *const views[] = {&kd_threads_view, &kd_locks_view, &kd_handles_view, &kd_graph_view,
                                           &kd_qlocks_view, &kd_dpcs_view, &kd_timers_view, &kd_pool_view, &kd_contention_view};
    kd_options options = {.json = true, .verbose = true, .file = fopen("/dev/null", "we")};
    kd_snapshot *snapshot = options.file != NULL ? kd_snapshot_take(target) : NULL;

    for (size_t i = 0; snapshot != NULL && i < sizeof(views) / sizeof(views[0]); i++) {
        kd_renew_budget(target, 1);
        views[i]->show(snapshot, &options);
    }
    if (snapshot != NULL)
        kd_snapshot_free(snapshot);
    if (options.file != NULL)
        fclose(options.file);
    return snapshot != NULL;
}

/* The parts of modules by which libdwfl knows them, and the names of the files for its note. */
typedef struct files {
    char *names;     /* one after the other */
    size_t size;
    Elf64_Xword (*ranges)[3];
    size_t count;
} files;

static void add_file(files *all, kd_address begin, kd_address end, uint64_t offset, const char *name)
{
    size_t length = strlen(name) + 1;

    all->ranges = kd_grow(all->ranges, all->count, sizeof(*all->ranges));
    all->ranges[all->count][0] = begin;
    all->ranges[all->count][1] = end;
    all->ranges[all->count++][2] = offset / KD_PAGE;
    all->names = realloc(all->names, all->size + length);
    if (all->names == NULL)
        kd_no_memory();
    memcpy(all->names + all->size, name, length);
    all->size += length;
}

static void note_modules(kd_target *target, files *all)
{
    FILE *maps = kd_open_of_process(target, "maps");
    char *line = NULL;
    size_t size = 0;

    while (maps != NULL && getline(&line, &size, maps) > 0 && all->count < KD_MOST_REGIONS) {
        uint64_t begin, end, offset;
        char rights[8] = "";
        int what = 0;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &begin, &end, rights, &offset, &what) < 4 ||
            what == 0 || line[what] != '/' || strncmp(line + what, "/dev/", 5) == 0 || rights[0] != 'r')
            continue;
        add_file(all, begin, end, offset, line + what);
        if (offset == 0)
            kd_note_pages(target, begin, end - begin < HEADER_PAGES * KD_PAGE ? end - begin : HEADER_PAGES * KD_PAGE);
        if (rights[1] == 'w' && rights[3] == 'p')
            kd_note_pages(target, begin, end - begin < MODULE_DATA ? end - begin : MODULE_DATA);
    }
    free(line);
    if (maps != NULL)
        fclose(maps);
}

typedef struct blob {
    char *data;
    size_t size;
} blob;

static void put(blob *to, const void *data, size_t size)
{
    to->data = realloc(to->data, to->size + size + 8);
    if (to->data == NULL)
        kd_no_memory();
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void put_note(blob *to, const char *owner, uint32_t type, const void *data, size_t size)
{
    static const char zeros[4];
    Elf64_Nhdr header = {.n_namesz = (Elf64_Word)strlen(owner) + 1, .n_descsz = (Elf64_Word)size, .n_type = type};

    put(to, &header, sizeof(header));
    put(to, owner, header.n_namesz);
    put(to, zeros, (4 - header.n_namesz % 4) % 4);
    put(to, data, size);
    put(to, zeros, (4 - size % 4) % 4);
}

#ifdef __x86_64__
#define MACHINE EM_X86_64
#define STACK_POINTER rsp
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define STACK_POINTER sp
#else
#define MACHINE EM_RISCV
#define STACK_POINTER sp
#endif

static kd_address stack_pointer(const struct elf_prstatus *status)
{
    struct user_regs_struct registers;

    memcpy(&registers, &status->pr_reg, sizeof(registers));
    return registers.STACK_POINTER;
}

static void put_thread(kd_target *target, blob *notes, pid_t thread)
{
    struct elf_prstatus status = {.pr_pid = (pid_t)kd_own_thread_id(target, thread)};
    struct iovec registers = {&status.pr_reg, sizeof(status.pr_reg)};
    kd_address begin, end, stack;

    if (ptrace(PTRACE_GETREGSET, thread, (void *)(uintptr_t)NT_PRSTATUS, &registers) != 0)
        return;
    put_note(notes, "CORE", NT_PRSTATUS, &status, sizeof(status));
    stack = stack_pointer(&status);
    if (kd_mapping_of(target, stack, &begin, &end)) {
        stack -= stack - begin < 256 ? stack - begin : 256; /* what a leaf function has below it */
        kd_note_pages(target, stack, end - stack < STACK_SAVED ? end - stack : STACK_SAVED);
    }
}

static void put_file_note(blob *notes, const files *all)
{
    Elf64_Xword head[2] = {all->count, KD_PAGE};
    blob note = {NULL, 0};

    put(&note, head, sizeof(head));
    put(&note, all->ranges, all->count * sizeof(*all->ranges));
    put(&note, all->names, all->size);
    put_note(notes, "CORE", NT_FILE, note.data, note.size);
    free(note.data);
}

static void put_process(kd_target *target, blob *notes)
{
    struct elf_prpsinfo process = {.pr_sname = 'S', .pr_pid = target->process};
    FILE *file = kd_open_of_process(target, "auxv");
    char vector[4096];
    size_t size = file != NULL ? fread(vector, 1, sizeof(vector), file) : 0;

    kd_process_name(target, process.pr_fname, sizeof(process.pr_fname));
    put_note(notes, "CORE", NT_PRPSINFO, &process, sizeof(process));
    put_note(notes, "CORE", NT_AUXV, vector, size);
    if (file != NULL)
        fclose(file);
}

static blob make_notes(kd_target *target, const stopped *all)
{
    blob notes = {NULL, 0};
    files modules = {.count = 0};
    kd_time taken = kd_time_now();

    note_modules(target, &modules);
    /* The first thread comes before the process, as in core files. */
    for (size_t i = 0; i < all->count; i++) {
        put_thread(target, &notes, all->threads[i]);
        if (i == 0) {
            put_process(target, &notes);
            put_file_note(&notes, &modules);
        }
    }
    put_note(&notes, KD_NOTE_OWNER, KD_NOTE_TIME, &taken, sizeof(taken));
    free(modules.names);
    free(modules.ranges);
    return notes;
}

/* Writing. */

/* Neighbouring pages are one segment. Gap: up to this many pages in between are written too. */
static size_t make_segments(const kd_target *target, uint64_t gap, Elf64_Phdr **segments)
{
    size_t count = 0;

    *segments = NULL;
    for (size_t i = 0; i < target->noted_count; i++) {
        kd_address page = target->noted[i];
        Elf64_Phdr *last = count != 0 ? &(*segments)[count - 1] : NULL;

        if (last != NULL && page - (last->p_vaddr + last->p_filesz) <= gap * KD_PAGE) {
            last->p_filesz = last->p_memsz = page + KD_PAGE - last->p_vaddr;
            continue;
        }
        *segments = kd_grow(*segments, count, sizeof(Elf64_Phdr));
        (*segments)[count++] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = page, .p_filesz = KD_PAGE,
                                            .p_memsz = KD_PAGE, .p_align = KD_PAGE};
    }
    return count;
}

static bool write_pages(kd_target *target, FILE *to, const Elf64_Phdr *segment)
{
    char page[KD_PAGE];

    for (uint64_t done = 0; done < segment->p_filesz; done += KD_PAGE) {
        struct iovec local = {page, KD_PAGE}, remote = {(void *)(uintptr_t)(segment->p_vaddr + done), KD_PAGE};

        if (process_vm_readv(target->process, &local, 1, &remote, 1, 0) != KD_PAGE)
            memset(page, 0, sizeof(page)); /* in a gap */
        if (fwrite(page, 1, KD_PAGE, to) != KD_PAGE)
            return false;
    }
    return true;
}

static bool pad(FILE *to, uint64_t from, uint64_t until)
{
    for (; from < until; from++)
        if (fputc(0, to) == EOF)
            return false;
    return true;
}

static bool write_file(kd_target *target, FILE *to, const blob *notes)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_CORE, .e_machine = MACHINE, .e_version = EV_CURRENT, .e_phoff = sizeof(header),
        .e_ehsize = sizeof(header), .e_phentsize = sizeof(Elf64_Phdr),
    };
    Elf64_Phdr *segments = NULL, note = {.p_type = PT_NOTE, .p_filesz = notes->size, .p_align = 4};
    size_t count = 0;
    uint64_t gap = 0, offset;
    bool written;

    do {
        free(segments);
        count = make_segments(target, gap, &segments);
        gap = gap * 2 + 1;
    } while (count > MOST_FILE_SEGMENTS);
    header.e_phnum = (Elf64_Half)(count + 1);
    note.p_offset = sizeof(header) + (count + 1) * sizeof(Elf64_Phdr);
    offset = (note.p_offset + notes->size + KD_PAGE - 1) / KD_PAGE * KD_PAGE;
    for (size_t i = 0; i < count; i++) {
        segments[i].p_offset = offset;
        offset += segments[i].p_filesz;
    }
    written = fwrite(&header, sizeof(header), 1, to) == 1 && fwrite(&note, sizeof(note), 1, to) == 1 &&
              (count == 0 || fwrite(segments, sizeof(Elf64_Phdr), count, to) == count) &&
              fwrite(notes->data, 1, notes->size, to) == notes->size &&
              pad(to, note.p_offset + notes->size, (note.p_offset + notes->size + KD_PAGE - 1) / KD_PAGE * KD_PAGE);
    for (size_t i = 0; i < count && written; i++)
        written = write_pages(target, to, &segments[i]);
    free(segments);
    return written;
}

/* With all threads stopped, unless tracing is not permitted: then the snapshot may be inconsistent. */
static int save(const char *process, FILE *to, const char *name)
{
    kd_target *target;
    stopped all = {.count = 0};
    blob notes;
    int result = 1;

    if (!stop_all(&all, (pid_t)strtol(process, NULL, 10)))
        kd_say("the threads cannot be stopped, another debugger may be attached: changing data may be inconsistent");
    target = kd_open_noting(process);
    if (target != NULL && read_by_views(target)) {
        notes = make_notes(target, &all);
        kd_sort_noted(target);
        result = write_file(target, to, &notes) && fflush(to) == 0 ? 0 : 1;
        if (result != 0)
            kd_say("cannot write %s: %s", name, strerror(errno));
        free(notes.data);
    }
    continue_all(&all);
    kd_close(target);
    return result;
}

static const char usage[] = "usage: interlock snapshot [-o FILE] PID\n"
                            "       interlock snapshot [--json] --compare BEFORE AFTER\n"
                            "  -o FILE    writes the snapshot to FILE (default: standard output)\n"
                            "  --compare  what changed between two, and what did not. Each is a snapshot, a core file or a process\n"
                            "Every view accepts a snapshot instead of a process: interlock view FILE, interlock threads FILE.\n";

typedef struct settings {
    const char *words[2];
    size_t count;
    const char *output;
    bool json, compare;
} settings;

/* -1: continue; otherwise the exit status. */
static int parse(int argc, char **argv, settings *given)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return fputs(usage, stdout), 0;
        if (strcmp(argv[i], "--json") == 0)
            given->json = true;
        else if (strcmp(argv[i], "--compare") == 0)
            given->compare = true;
        else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            given->output = argv[++i];
        else if (argv[i][0] == '-')
            return kd_say("there is no option %s", argv[i]), fputs(usage, stderr), 2;
        else if (given->count < 2)
            given->words[given->count++] = argv[i];
        else
            return kd_say("one argument too many: %s", argv[i]), fputs(usage, stderr), 2;
    }
    if (given->count != (given->compare ? 2 : 1) || (given->compare ? given->output != NULL : given->json))
        return fputs(usage, stderr), 2;
    return -1;
}

/* Before anything is stopped, so that errors are reported first. */
static bool is_process(const char *what)
{
    kd_target *target = kd_open(what, false);
    bool right = target != NULL && kd_process_of(target) != 0;

    if (target != NULL && !right)
        kd_say("%s is a file: a snapshot is taken of a process", what);
    kd_close(target);
    return right;
}

int command_snapshot(int argc, char **argv)
{
    settings given = {.count = 0};
    int result = parse(argc, argv, &given);
    FILE *to;

    if (result >= 0)
        return result;
    if (given.compare)
        return kd_compare(given.words[0], given.words[1], given.json);
    if (given.output == NULL && isatty(STDOUT_FILENO))
        return kd_say("a snapshot is not for a terminal: name a file with -o, or redirect the output"), 2;
    if (!is_process(given.words[0]))
        return 1;
    to = given.output != NULL ? fopen(given.output, "we") : stdout;
    if (to == NULL)
        return kd_say("cannot write %s: %s", given.output, strerror(errno)), 1;
    result = save(given.words[0], to, given.output != NULL ? given.output : "the output");
    if (given.output != NULL && fclose(to) != 0 && result == 0)
        return kd_say("cannot write %s: %s", given.output, strerror(errno)), 1;
    return result;
}
